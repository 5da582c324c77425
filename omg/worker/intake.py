"""
Takes drops and inbox notes in, as turns that wait in their graph.

    spool/<ms>-<uuid>.json  ─ take_in ─  graphs/<graph>/pending  ─ Worker.work ─  vault

The daemon and the command line call the same functions, under one lock. A drop leaves the spool only after its content
is on disk elsewhere. schedule.py decides when waiting turns are observed.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from ..config import own_memory
from ..dates.days import day_of_ms
from ..errors import error_text
from ..graph.graph import Graph
from ..graph.state import State, flock, parsed_object, write_private
from ..identity import person_label
from ..inbox import INBOX_SESSION, Runs, take_loose
from ..message.drop import Writes
from ..message.turn import Message, Turn
from .reader import BadDrop, DropReader
from .registry import PATIENCE_S, Registry
from .schedule import names_near_day, note_heard, note_urgent

log = logging.getLogger(__name__)

ENDED_ERRORS = ("turn", "catchup", "end")  # reasons of a drop that arrives after its run has ended
URGENT = ("compaction", "reset", "remember")  # reasons of a drop that is observed at once

# a drop that is being written
HALF_MADE = re.compile(r"\.(\d{1,15}-[\w-]{1,120}\.json)\.[\w.-]{1,80}", re.ASCII)
IN_THE_MAKING_S = 10  # writing one takes milliseconds
HALF_KEPT_S = 3_600


IMPORTED = "import"  # reason of a drop whose messages keep their times
AHEAD_MS = 86_400_000  # clocks and time zones differ; a time further in the future is wrong


def arrived(message: Message, now_ms: int) -> Message:
    """*message* with the time of its arrival, if its own is in the future."""
    return replace(message, timestamp=now_ms) if message.timestamp > now_ms + AHEAD_MS else message


def told_apart(graph: Graph, messages: Sequence[Message]) -> list[Message]:
    """*messages* of a group with a different label for each sender."""
    people = {name: [*senders] for name, senders in graph.state().people.items()}
    named = [
        replace(m, sender=person_label(people, graph.identity.key, m.sender, m.sender_id))
        if m.role == "user"
        else m
        for m in messages
    ]
    if people != graph.state().people:
        graph.update(partial(note_people, people=people))
    return named


def note_people(state: State, people: dict[str, list[str]]) -> None:
    for name, senders in people.items():
        known = state.people.setdefault(name, [])
        known += [sender for sender in senders if sender not in known]


class Intake:
    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.spool, self.runs = registry.folder / "spool", Runs(registry.folder)
        self.reader = DropReader()
        self._taking = threading.Lock()
        self._loose: dict[Path, tuple[int, ...]] = {}  # loose notes → their file's state when last read

    def take_in(self) -> int:
        """Move every drop of the spool to its graph; return how many messages were new."""
        with self._taking, flock(self.registry.folder / "intake.lock", "the spool"):
            return self._take_in()

    def _take_in(self) -> int:
        self._adopt_drops()
        fresh = 0
        for file in self.drops():
            try:
                if (read := self._read_drop(file)) is not None:
                    turn, shown = read
                    over, now_ms = turn.reason in ENDED_ERRORS, self.registry.now_ms()
                    self.runs.took(turn.session, file.name, shown, now_ms, over=over)
                    fresh += self._take(file.stem, turn)
                    file.unlink(missing_ok=True)
            except FileNotFoundError:
                continue  # another process was quicker
            except Exception as e:  # such as a locked graph; the other drops do not wait for it
                log.info("%s: waits in the spool: %s", file.name, error_text(e))
        self.runs.settle(self.registry.now_ms())
        return fresh

    def _read_drop(self, file: Path) -> tuple[Turn, list[Writes]] | None:
        """The turn in *file*, and the files that it shows as written; None for a bad drop, which is set aside."""
        try:
            return self.reader.read(file, self.registry.config.identity.members)
        except BadDrop as e:
            self._set_aside(file, str(e), e.text)
            return None

    def drops(self) -> list[Path]:
        """The drops in the spool, oldest first. A dotfile is still being written."""
        return sorted(self.spool.glob("[!.]*.json"))

    def _adopt_drops(self) -> None:
        """
        Rename complete drops that a killed hook left under a temporary name. An incomplete drop is removed after a
        while; the transcript still has its messages. If the hook is still alive, it writes the same drop again, which
        adds nothing.
        """
        for file in self.spool.glob(".*.json.*"):
            try:
                age_s = time.time() - file.stat().st_mtime
                if age_s < IN_THE_MAKING_S or not (named := HALF_MADE.fullmatch(file.name)):
                    continue
                if parsed_object(file.read_bytes()):
                    file.rename(file.with_name(named[1]))
                elif age_s > HALF_KEPT_S:
                    file.unlink()
            except FileNotFoundError:
                continue

    def _take(self, name: str, turn: Turn) -> int:
        who = self.registry.whose(turn)
        if who is None:
            if turn.messages and (off := self.registry.config.switched_off(turn.agent)):
                count = len(turn.messages)
                self.registry.tell("not_taken_in", session=turn.session, messages=count, because=off)
            return 0
        if not turn.messages and who not in self.registry.identities():
            return 0  # the person only sent `/omg …`, which does not begin a memory
        self.registry.note_speakers(turn)
        graph = self.registry.graph(who, wait_s=PATIENCE_S)
        messages = graph.unseen(turn.messages)
        if messages:
            if turn.reason != IMPORTED:
                messages = [arrived(m, self.registry.now_ms()) for m in messages]
            if who.scope == "group":
                messages = told_apart(graph, messages)
            kept = graph.put(name, replace(turn, messages=tuple(messages)))
            last = max(m.timestamp for m in messages)
            near = names_near_day(kept.turn(), day_of_ms(last, graph.zone))
            graph.update(partial(note_heard, turn=turn, last_ms=last, tokens=kept.tokens, near=near))
            redacted, count = sum(m.redacted for m in messages), len(messages)
            whose = {"graph": who.key, "session": turn.session}
            self.registry.tell("taken_in", **whose, messages=count, tokens=kept.tokens, redacted=redacted)
        if turn.reason in URGENT or (turn.reason == "end" and self._is_enough(graph)):
            pressed = partial(note_urgent, session=turn.session, reason=turn.reason)
            graph.update(partial(pressed, at_ms=self.registry.now_ms(), waiting=bool(graph.pending())))
        return len(messages)

    def _is_enough(self, graph: Graph) -> bool:
        """Whether enough is pending for the end of a session to start observing."""
        return sum(p.tokens for p in graph.pending()) >= self.registry.config.observation.quiet_tokens

    def _set_aside(self, file: Path, why: str, text: str | None) -> None:
        """Set an unreadable drop aside, as *text* or unchanged, with the reason beside it, so that it does not
        block others."""
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
        """Take new notes in the inbox of *graph* in as pending turns; with *force* also a note saved just now."""
        who, now = graph.identity, self.registry.clock()
        memory = own_memory(self.registry.folder, who.agent)
        if taken := take_loose(graph, now, self._loose, self.runs.wrote, memory, force=force):
            self.registry.tell("taken_in", graph=who.key, session=INBOX_SESSION, messages=taken)
