"""
When an agent was at work, and what it may have written then: whether a file of an inbox is a person's.

    runs/<hash of the session>   runs under way: a line for each prompt that was built, in ms since the epoch; what
                                 the transcript has gained since takes it away
    writes.jsonl                 what transcripts showed (message/writes.py), for KEPT_MS

Of all sessions, also of those that are nobody's memory: whoever reaches the agent reaches its tools. Not here:
reading files (notes.py). One rule: a file is a person's only where no run can have written it.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from ..graph.files import append_lines, write_private
from ..message.writes import SLACK_MS, Writes, folded_path

# A run whose transcript has not come by then is one of a gateway that died, or a prompt that no run followed.
LONGEST_MS = 3_600_000
KEPT_MS = 30 * 86_400_000  # a note is filed a minute after it is saved; the rest is for vaults that were away


class Runs:
    def __init__(self, home: Path) -> None:
        self.folder, self.file = home / "runs", home / "writes.jsonl"
        self._guard = threading.Lock()
        self._read: tuple[tuple[int, int], list[Writes]] = ((0, 0), [])  # the file's look, and what is in it

    def began(self, session: str, at_ms: int) -> None:
        """A prompt was built for *session*."""
        self.folder.mkdir(exist_ok=True, mode=0o700)
        with self._guard, (self.folder / mark_name(session)).open("a", encoding="ascii") as file:
            file.write(f"{at_ms}\n")

    def took(self, session: str, drop: str, found: Iterable[Writes], now_ms: int, *, over: bool) -> None:
        """
        What the transcript of *session* has gained is here, by the name of its *drop*, and shows *found*.

        *over*: the runs that began before the drop was made have ended; a compaction comes in the midst of one.
        """
        self._keep(w for w in found if w.end_ms > now_ms - KEPT_MS)
        if over and (made := re.match(r"(\d{1,15})-", drop)):
            self._end(self.folder / mark_name(session), int(made[1]))

    def settle(self, now_ms: int) -> None:
        """Count a run that does not end for one that may have written anything; forget what is long past."""
        for file in self._marks():
            begun = [ms for ms in run_starts(file) if ms < now_ms - LONGEST_MS]
            self._keep(Writes(ms - SLACK_MS, ms + LONGEST_MS, None) for ms in begun)
            if begun:
                self._end(file, max(begun))
        kept = [w for w in self.shown() if w.end_ms > now_ms - KEPT_MS]
        if len(kept) < len(self.shown()):
            write_private(self.file, "".join(writes_line(w) + "\n" for w in kept))

    def wrote(self, name: str, at_ms: Iterable[int]) -> bool | None:
        """
        Whether a run may have written the inbox file *name*, which was changed *at_ms* (its contents, its name or
        its rights); None while a run is under way that may.
        """
        times = list(at_ms)
        for w in self.shown():
            if w.named is None and any(w.begin_ms <= ms <= w.end_ms for ms in times):
                return True
            # Whoever adds to a file that an agent wrote does not make its words their own.
            if w.named and folded_path(name) in w.named and max(times) >= w.begin_ms:
                return True
        begun = [ms for file in self._marks() for ms in run_starts(file)]
        under_way = any(start - SLACK_MS <= ms <= start + LONGEST_MS for start in begun for ms in times)
        return None if under_way else False

    def shown(self) -> list[Writes]:
        """What transcripts showed, oldest first."""
        try:
            found = self.file.stat()
        except FileNotFoundError:
            return []
        if self._read[0] != (look := (found.st_mtime_ns, found.st_size)):
            self._read = (look, [*parsed_writes(self.file.read_text(encoding="utf-8", errors="replace"))])
        return self._read[1]

    def _keep(self, found: Iterable[Writes]) -> None:
        known = set(self.shown())
        if lines := [writes_line(w) for w in dict.fromkeys(found) if w not in known]:
            append_lines(self.file, lines)

    def _marks(self) -> list[Path]:
        return sorted(self.folder.glob("[0-9a-f]*"))

    def _end(self, file: Path, at_ms: int) -> None:
        with self._guard, suppress(FileNotFoundError):
            if later := [ms for ms in run_starts(file) if ms > at_ms]:
                write_private(file, "".join(f"{ms}\n" for ms in later))
            else:
                file.unlink()


def mark_name(session: str) -> str:
    return hashlib.sha256(session.encode("utf-8", "replace")).hexdigest()[:16]


def run_starts(file: Path) -> list[int]:
    try:
        return [int(text) for text in file.read_text(encoding="ascii").split()]
    except (FileNotFoundError, ValueError):
        return []


def writes_line(writes: Writes) -> str:
    return json.dumps(asdict(writes), ensure_ascii=False)


def parsed_writes(text: str) -> Iterator[Writes]:
    for each in text.split("\n"):
        with suppress(ValueError, TypeError, KeyError):  # torn by a crash: its drop is still in the spool
            value = json.loads(each)
            named = value["named"]
            yield Writes(int(value["begin_ms"]), int(value["end_ms"]), named and tuple(map(str, named)))
