"""
Records what OMG wrote: for each path a hash of the bytes, and for a note the marks of its parts. Each write adds a line.

When in doubt, bytes are a person's: after a lost or torn line OMG no longer rewrites that file. Not here: what the
parts of a note are (vault.py).
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .files import read_if_changed

WRITTEN_SLACK = 1_000  # lines beyond one a path before the file is made short again: some 350 kB


@dataclass(frozen=True, slots=True)
class Record:
    """What we wrote to one path."""

    hash: str
    # "part=mark part=mark"; "" for what is no note, and for lines from before there were marks
    parts: str = ""
    theirs: frozenset[str] = frozenset()  # the parts whose value is a person's, which we wrote back as it was

    @property
    def marks(self) -> dict[str, str]:
        return dict(part.split("=", 1) for part in self.parts.split())

    @property
    def id(self) -> str:
        """The mark of the note's id; "" if unknown."""
        return self.marks.get("id", "")


def keys(record: Record | None) -> list[str]:
    return [key for key in (record.hash, record.id) if key] if record else []


def joined(marks: Mapping[str, str]) -> str:
    return " ".join(f"{part}={mark}" for part, mark in marks.items())


class Written:
    """
    Path → Record. *file* of None keeps them in memory only.

    Reading changes nothing. Writing is for whoever holds the vault's lock; others see it when they look next.
    Threads may share one: none sees it half read.
    """

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self._records: dict[str, Record] = {}
        self._paths: dict[str, dict[str, None]] = {}  # hash, or mark of an id → paths, the latest last
        self._seen: tuple[int, int] | None = None  # inode and size of the file as we know it
        self._lines = 0
        self._torn = False
        self._reading = threading.RLock()

    def __bool__(self) -> bool:
        with self._reading:
            self._refresh()
            return bool(self._records)

    def get(self, path: str) -> Record | None:
        with self._reading:
            self._refresh()
            return self._records.get(path)

    def unmarked(self) -> list[tuple[str, str]]:
        """Path and hash of what is known by its bytes alone."""
        with self._reading:
            self._refresh()
            return [(path, record.hash) for path, record in self._records.items() if not record.parts]

    def find(self, key: str) -> Record | None:
        """What we wrote of that hash, or last to the note whose id has that mark."""
        with self._reading:
            self._refresh()
            return next((self._records[path] for path in reversed(self._paths.get(key, {}))), None)

    def note(self, path: str, record: Record | None) -> None:
        """*path* has what *record* says now; None: nothing of ours is there."""
        with self._reading:
            if self.get(path) == record:
                return
            self._set(path, record)
            if self.file is None:
                return
            if self._torn or self._lines > len(self._records) + WRITTEN_SLACK:
                self._rewrite(self.file)
            else:
                self._append(self.file, written_line(path, record))

    def compact(self) -> None:
        """Leave no trace of the paths that are gone."""
        with self._reading:
            self._refresh()
            if self.file is not None and self._lines > len(self._records):
                self._rewrite(self.file)

    def _refresh(self) -> None:
        """Read the file again if another process has written to it."""
        if self.file is None:
            return
        read = read_if_changed(self.file, self._seen)
        if read is None:
            return
        data, self._seen = read
        self._records.clear()
        self._paths.clear()
        self._torn = bool(data) and not data.endswith(b"\n")
        self._lines = 0
        for text in data.splitlines():
            self._lines += 1
            try:
                entry = json.loads(text)
                self._set(entry["path"], read_line(entry))
            except (ValueError, KeyError, TypeError):  # torn by a crash
                self._torn = True

    def _set(self, path: str, record: Record | None) -> None:
        for key in keys(self._records.pop(path, None)):
            del self._paths[key][path]
            if not self._paths[key]:
                del self._paths[key]
        for key in keys(record):
            self._paths.setdefault(key, {})[path] = None
        if record is not None:
            self._records[path] = record

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
            f.write("".join(written_line(path, record) for path, record in self._records.items()).encode())
            f.flush()
            os.fsync(f.fileno())
            found = os.fstat(f.fileno())
        tmp.replace(file)
        self._seen = found.st_ino, found.st_size
        self._lines = len(self._records)
        self._torn = False


def read_line(entry: Mapping[str, Any]) -> Record | None:
    """Raises KeyError, TypeError for what is no line of ours."""
    if entry["hash"] is None:
        return None
    return Record(entry["hash"], entry.get("parts", ""), frozenset(entry.get("theirs", ())))


def written_line(path: str, record: Record | None) -> str:
    entry: dict[str, Any] = {"path": path, "hash": record and record.hash}
    if record and record.parts:
        entry["parts"] = record.parts
    if record and record.theirs:
        entry["theirs"] = sorted(record.theirs)
    return json.dumps(entry, ensure_ascii=False) + "\n"
