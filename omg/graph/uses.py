"""
How often each note was of use to a prompt, and when last: a line for each use, in `uses.jsonl` of a graph.

A prompt adds one line, however many notes there are. A crash may lose a count. Not here: what a use is
(inject/decide.py), and what it counts for (index/scores.py, reflect/upkeep.py).
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

from ..vault.files import read_if_changed
from .files import write_private

USE_DAY_MS = 86_400_000  # a talk about one thing is one use of it
USES_SLACK = 1_000  # lines beyond one a note before the file is made short again: some 80 kB


class Uses:
    """Node id → times and when last. Threads and processes may share one."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._times: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self._seen: tuple[int, int] | None = None  # inode and size of the file as we know it
        self._lines = 0
        self._reading = threading.RLock()

    def times(self) -> Mapping[str, int]:
        """To be looked at; it goes on counting."""
        with self._reading:
            self._refresh()
            return self._times

    def last_ms(self, id: str) -> int:
        """0: never."""
        with self._reading:
            self._refresh()
            return self._last.get(id, 0)

    def add(self, ids: Iterable[str], at_ms: int) -> None:
        """Each of *ids* was of use at *at_ms*, if it was not within a day before."""
        with self._reading:
            self._refresh()
            fresh = [id for id in ids if at_ms - self._last.get(id, 0) >= USE_DAY_MS]
            self._write({id: (self._times.get(id, 0) + 1, at_ms) for id in fresh})

    def adopt(self, known: Mapping[str, tuple[int, int]]) -> None:
        """Take what is *known* of notes that have no count here."""
        with self._reading:
            self._refresh()
            self._write({id: use for id, use in known.items() if id not in self._times})

    def all(self) -> dict[str, tuple[int, int]]:
        with self._reading:
            self._refresh()
            return {id: (times, self._last[id]) for id, times in self._times.items()}

    def drop(self, gone: Callable[[str], bool]) -> None:
        """Leave no trace of the ids that are *gone*."""
        with self._reading:
            self._refresh()
            if any(map(gone, self._times)):
                self._rewrite({id: use for id, use in self.all().items() if not gone(id)})

    def keep(self, ids: Collection[str]) -> None:
        """Forget the counts of notes that are not among *ids*."""
        self.drop(lambda id: id not in ids)

    # --- inside

    def _refresh(self) -> None:
        """Read the file again if another process has written to it."""
        read = read_if_changed(self.file, self._seen)
        if read is None:
            return
        data, self._seen = read
        times: dict[str, int] = {}
        last: dict[str, int] = {}
        lines = data.splitlines()
        for text in lines:
            try:
                id, n, at_ms = json.loads(text)
                times[str(id)], last[str(id)] = int(n), int(at_ms)
            except (ValueError, TypeError, OverflowError):
                continue  # torn by a crash
        self._times, self._last, self._lines = times, last, len(lines)

    def _write(self, uses: Mapping[str, tuple[int, int]]) -> None:
        if not uses:
            return
        if self._lines > len(self._times) + USES_SLACK:
            return self._rewrite({**self.all(), **uses})
        # A line that a crash left torn is ended by the empty one. No fsync: no prompt waits for a disk.
        with os.fdopen(os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab") as f:
            f.write(f"\n{use_lines(uses)}".encode())
            f.flush()
            found = os.fstat(f.fileno())
        self._take(uses, found)
        self._lines += len(uses) + 1

    def _rewrite(self, uses: Mapping[str, tuple[int, int]]) -> None:
        found = write_private(self.file, use_lines(uses))
        self._times, self._last, self._lines = {}, {}, len(uses)
        self._take(uses, found)

    def _take(self, uses: Mapping[str, tuple[int, int]], found: os.stat_result) -> None:
        for id, (times, at_ms) in uses.items():
            self._times[id], self._last[id] = times, at_ms
        self._seen = found.st_ino, found.st_size


def use_lines(uses: Mapping[str, tuple[int, int]]) -> str:
    return "".join(json.dumps([id, *use], ensure_ascii=False) + "\n" for id, use in uses.items())
