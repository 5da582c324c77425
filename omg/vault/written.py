"""
Which bytes are ours: a hash for each path that we wrote, in a file that grows by a line a write.

Not here: anything about notes (vault.py). One rule: when in doubt, bytes are a person's; a lost or torn
line costs us the right to rewrite one file, never a person their words.
"""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from pathlib import Path

SLACK = 1_000  # lines beyond one a path before the file is made short again: some 100 kB


class Written:
    """
    Path → hash. *file* of None keeps them in memory only.

    Reading changes nothing. Writing is for whoever holds the vault's lock; others see it when they look next.
    Threads may share one: none sees it half read.
    """

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self._hashes: dict[str, str] = {}
        self._paths: Counter[str] = Counter()  # hash → paths that have it
        self._seen: tuple[int, int] | None = None  # inode and size of the file as we know it
        self._lines = 0
        self._torn = False
        self._reading = threading.RLock()

    def __contains__(self, hash: str) -> bool:
        with self._reading:
            self._refresh()
            return hash in self._paths

    def __bool__(self) -> bool:
        with self._reading:
            self._refresh()
            return bool(self._hashes)

    def get(self, path: str) -> str | None:
        with self._reading:
            self._refresh()
            return self._hashes.get(path)

    def note(self, path: str, hash: str | None) -> None:
        """*path* has *hash* now; None: nothing of ours is there."""
        with self._reading:
            if self.get(path) == hash:
                return
            self._set(path, hash)
            if self.file is None:
                return
            if self._torn or self._lines > len(self._hashes) + SLACK:
                self._rewrite(self.file)
            else:
                self._append(self.file, line(path, hash))

    def compact(self) -> None:
        """Leave no trace of the paths that are gone."""
        with self._reading:
            self._refresh()
            if self.file is not None and self._lines > len(self._hashes):
                self._rewrite(self.file)

    def _refresh(self) -> None:
        """Read the file again if another process has written to it."""
        if self.file is None:
            return
        try:
            found = self.file.stat()
        except FileNotFoundError:
            return
        if (found.st_ino, found.st_size) == self._seen:
            return
        data = self.file.read_bytes()
        self._seen = found.st_ino, len(data)
        self._hashes.clear()
        self._paths.clear()
        self._torn = bool(data) and not data.endswith(b"\n")
        self._lines = 0
        for text in data.splitlines():
            self._lines += 1
            try:
                entry = json.loads(text)
                self._set(entry["path"], entry["hash"])
            except (ValueError, KeyError, TypeError):  # torn by a crash
                self._torn = True

    def _set(self, path: str, hash: str | None) -> None:
        before = self._hashes.pop(path, None)
        if before is not None:
            self._paths[before] -= 1
            if not self._paths[before]:
                del self._paths[before]
        if hash is not None:
            self._hashes[path] = hash
            self._paths[hash] += 1

    def _append(self, file: Path, text: str) -> None:
        # No fsync: what a power cut takes away makes us more careful, not less.
        file.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab") as f:
            f.write(text.encode())
            f.flush()
            found = os.fstat(f.fileno())
        self._seen = found.st_ino, found.st_size
        self._lines += 1

    def _rewrite(self, file: Path) -> None:
        tmp = file.with_name(f".{file.name}.tmp")
        with os.fdopen(os.open(tmp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as f:
            f.write("".join(line(path, hash) for path, hash in self._hashes.items()).encode())
            f.flush()
            os.fsync(f.fileno())
            found = os.fstat(f.fileno())
        tmp.replace(file)
        self._seen = found.st_ino, found.st_size
        self._lines = len(self._hashes)
        self._torn = False


def line(path: str, hash: str | None) -> str:
    return json.dumps({"path": path, "hash": hash}, ensure_ascii=False) + "\n"
