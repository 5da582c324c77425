"""
What comes in: a drop of the spool, and a note left in an inbox, as turns that wait in their graph.

    spool/<ms>-<uuid>.json  ─ take_in ─  graphs/<graph>/pending  ─ Worker.work ─  vault

The daemon and the command line call the same functions; whoever does holds the lock. Not here: when what waits
is observed (worker.py). One rule: a drop leaves the spool only when what it holds is on disk elsewhere.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from ..config.agents import own_memory
from ..errors import error_text
from ..graph.files import flock, write_private
from ..graph.graph import Graph
from ..inbox import INBOX_SESSION, Runs, take_loose
from ..message.turn import Turn
from ..message.writes import Writes
from .reading import BadDrop, DropReader
from .registry import PATIENCE_S, Registry
from .schedule import note_heard, note_urgent

log = logging.getLogger(__name__)

ENDED_ERRORS = ("turn", "catchup")  # reasons of a drop that comes when its run is over
URGENT = ("compaction", "reset", "remember")  # reasons for which nothing waits

# a drop that is being written
HALF_MADE = re.compile(r"\.(\d{1,15}-[\w-]{1,120}\.json)\.[\w.-]{1,80}", re.ASCII)
IN_THE_MAKING_S = 10  # writing one takes milliseconds
HALF_KEPT_S = 3_600


class Intake:
    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.spool, self.runs = registry.folder / "spool", Runs(registry.folder)
        self.reader = DropReader()
        self._taking = threading.Lock()
        self._loose: dict[Path, tuple[int, ...]] = {}  # notes of inboxes, as they were when last read

    def take_in(self) -> int:
        """Move every drop of the spool to the graph it belongs to; returns how many messages were new."""
        with self._taking, flock(self.registry.folder / "intake.lock", "the spool"):
            return self._take_in()

    def _take_in(self) -> int:
        self._adopt_drops()
        fresh = 0
        for file in self.drops():
            try:
                if (read := self._read_drop(file)) is not None:
                    turn, shown = read
                    self.runs.took(
                        turn.session,
                        file.name,
                        shown,
                        self.registry.now_ms(),
                        over=turn.reason in ENDED_ERRORS,
                    )
                    fresh += self._take(file.stem, turn)
                    file.unlink(missing_ok=True)
            except FileNotFoundError:
                continue  # another process was quicker
            except Exception as e:  # a graph that is locked, or cannot be written: no other drop waits for it
                log.info("%s: waits in the spool: %s", file.name, error_text(e))
        self.runs.settle(self.registry.now_ms())
        return fresh

    def _read_drop(self, file: Path) -> tuple[Turn, list[Writes]] | None:
        """The turn in *file*, and what it shows of files written; None for one of no use, which is set aside."""
        try:
            return self.reader.read(file, self.registry.config.identity.members)
        except BadDrop as e:
            self._set_aside(file, str(e), e.text)
            return None

    def drops(self) -> list[Path]:
        """What is in the spool, oldest first; a dotfile is still being written."""
        return sorted(self.spool.glob("[!.]*.json"))

    def _adopt_drops(self) -> None:
        """
        What a hook that was killed has written and not put in place: a whole drop is one, the rest is nothing that
        its transcript has not. A hook that is alive after all hands the same over again, which adds nothing.
        """
        for file in self.spool.glob(".*.json.*"):
            try:
                age_s = time.time() - file.stat().st_mtime
                if age_s < IN_THE_MAKING_S or not (named := HALF_MADE.fullmatch(file.name)):
                    continue
                if is_json(file.read_bytes()):
                    file.rename(file.with_name(named[1]))
                elif age_s > HALF_KEPT_S:
                    file.unlink()
            except FileNotFoundError:
                continue

    def _take(self, name: str, turn: Turn) -> int:
        who = self.registry.whose(turn)
        if who is None:
            if turn.messages and (off := self.registry.config.switched_off(turn.agent)):
                self.registry.tell(
                    "not_taken_in", session=turn.session, messages=len(turn.messages), because=off
                )
            return 0
        self.registry.note_speakers(turn)
        graph = self.registry.graph(who, wait_s=PATIENCE_S)
        messages = graph.unseen(turn.messages)
        if messages:
            kept = graph.put(name, replace(turn, messages=tuple(messages)))
            last = max(m.timestamp for m in messages)
            graph.update(partial(note_heard, turn=turn, last_ms=last, tokens=kept.tokens))
            redacted = sum(m.redacted for m in messages)
            self.registry.tell(
                "taken_in",
                graph=who.key,
                session=turn.session,
                messages=len(messages),
                tokens=kept.tokens,
                redacted=redacted,
            )
        if turn.reason in URGENT:
            pressed = partial(
                note_urgent, session=turn.session, reason=turn.reason, at_ms=self.registry.now_ms()
            )
            graph.update(partial(pressed, waiting=bool(graph.pending())))
        return len(messages)

    def _set_aside(self, file: Path, why: str, text: str | None) -> None:
        """A drop that cannot be read is kept, as *text* or as it is, the reason beside it, where it stops nothing."""
        bad = self.spool / "bad"
        try:
            bad.mkdir(exist_ok=True, mode=0o700)
            write_private(bad / f"{file.stem}.txt", why)
            if text is None:
                file.rename(bad / file.name)
            else:
                write_private(bad / file.name, text)
                file.unlink()
        except OSError as e:
            log.warning("%s: %s; left in the spool: %s", file.name, why, error_text(e))
        else:
            log.warning("%s: %s; moved to spool/bad", file.name, why)

    def take_notes(self, graph: Graph, *, force: bool) -> None:
        """Let what is new in the inbox of *graph* wait with its turns; with *force* a note saved just now, too."""
        who, now = graph.identity, self.registry.clock()
        memory = own_memory(self.registry.folder, who.agent)
        if taken := take_loose(graph, now, self._loose, self.runs.wrote, memory, force=force):
            self.registry.tell("taken_in", graph=who.key, session=INBOX_SESSION, messages=taken)


def is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True
