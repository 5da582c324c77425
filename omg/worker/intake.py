"""
Reads drops from the spool and notes from the inbox, and stores them as pending turns.

    spool/<ms>-<uuid>.json  ─ take_in ─  graphs/<graph>/pending  ─ Worker.work ─  vault

The daemon and the command line call the same functions, under one lock. A drop leaves the spool only after its content
is on disk elsewhere. schedule.py decides when waiting turns are observed.
"""

from __future__ import annotations

import json
import logging
import os
import re
import stat
import sys
import threading
import time
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from logging.handlers import BufferingHandler
from pathlib import Path
from typing import Any

from ..config import own_memory
from ..dates.days import day_of_ms
from ..errors import BadInput, OmgError, error_text
from ..graph.graph import Graph
from ..graph.state import State, flock, parsed_object, write_private
from ..identity import person_label
from ..inbox import INBOX_SESSION, Runs, parsed_writes, take_loose, writes_line
from ..llm.child import Child, serve_parent
from ..message.drop import Writes, read_drop, writes_of
from ..message.turn import Message, Turn, turn_from_json, turn_to_json
from ..secrets import redact
from .registry import PATIENCE_S, Registry
from .schedule import names_near_day, note_heard, note_urgent

log = logging.getLogger(__name__)

ENDED_ERRORS = ("turn", "catchup", "end")  # reasons of a drop that arrives after its run has ended
URGENT = ("compaction", "reset", "remember")  # reasons of a drop that is observed at once

# The temporary name of a drop that is being written.
HALF_MADE = re.compile(r"\.(\d{1,15}-[\w-]{1,120}\.json)\.[\w.-]{1,80}", re.ASCII)
IN_THE_MAKING_S = 10  # seconds; to write a drop takes milliseconds
HALF_KEPT_S = 3_600


IMPORTED = "import"  # reason of a drop whose messages keep their times
AHEAD_MS = 86_400_000  # clocks and time zones differ; a time further in the future is wrong


def arrived(message: Message, now_ms: int) -> Message:
    """Give *message* the time of its arrival, if its own time is in the future."""
    return replace(message, timestamp=now_ms) if message.timestamp > now_ms + AHEAD_MS else message


def told_apart(graph: Graph, messages: Sequence[Message]) -> list[Message]:
    """Return *messages* of a group chat with a different label for each person: "Ann", "Ann-2"."""
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
    """Turns drops, inbox files and the agent's daily notes into pending turns. A bad drop is set aside."""

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
            except Exception as e:  # for example a locked graph; the other drops are taken in
                log.info("%s: waits in the spool: %s", file.name, error_text(e))
        self.runs.settle(self.registry.now_ms())
        return fresh

    def _read_drop(self, file: Path) -> tuple[Turn, list[Writes]] | None:
        """
        Read the turn in *file*, and the files that its tool calls may have written. None for a bad drop, which is set
        aside.
        """
        try:
            return self.reader.read(file, self.registry.config.identity.members)
        except BadDrop as e:
            self._set_aside(file, str(e), e.text)
            return None

    def drops(self) -> list[Path]:
        """The drops in the spool, oldest first. A file whose name begins with a dot is still being written."""
        return sorted(self.spool.glob("[!.]*.json"))

    def _adopt_drops(self) -> None:
        """
        Rename complete drops that a killed hook left under a temporary name.

        An incomplete drop is removed after a while, since the transcript still has its messages. If the hook is still
        alive and writes the same drop again, nothing is added.
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
            return 0  # the person only sent `/omg …`, which begins no memory
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
        """Whether enough is pending in *graph* to observe it at the end of a session."""
        return sum(p.tokens for p in graph.pending()) >= self.registry.config.observation.quiet_tokens

    def _set_aside(self, file: Path, why: str, text: str | None) -> None:
        """
        Move an unreadable drop to spool/bad, as *text* or unchanged, with the reason in a file beside it. There it
        blocks no other drop.
        """
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
        """
        Take in new notes from the inbox of *graph* as pending turns. *force*: also a note that was saved just now.
        """
        who, now = graph.identity, self.registry.clock()
        memory = own_memory(self.registry.folder, who.agent)
        if taken := take_loose(graph, now, self._loose, self.runs.wrote, memory, force=force):
            self.registry.tell("taken_in", graph=who.key, session=INBOX_SESSION, messages=taken)


# --- Reads a drop: its turn, and the files that its tool calls may have written. A long drop is read in its own process.
#
#     DropReader.read ─ a short drop ─▶ read_file
#                     └ a long one ── a JSON line ──▶ serve_reader → read_file ── a JSON line ──▶ a Turn
#
# A megabyte takes seconds of regular expressions, each of which holds the interpreter, while the daemon has to answer
# prompts. The process only reads the drop, so killing it at any moment loses nothing. A drop that ends the process twice
# is set aside as bad.


LONG_BYTES = 32_000  # a shorter drop is read in 10 to 20 ms, which a prompt can wait
DEATHS = 2  # so many deaths of the process on one drop count; the first death may have another cause
LINES_KEPT = 1_000  # log lines that are kept while one drop is read
LONGEST_S, S_PER_MB = 60.0, 20.0  # a megabyte took at most 1.5 s of CPU; the machine may be busy
# -P: modules in the working folder are not imported. The path makes the child import this very package.
READING_CHILD = (
    sys.executable,
    "-P",
    "-c",
    "import sys; sys.path.insert(0, sys.argv[1]); from omg.worker.intake import serve_reader; serve_reader()",
    str(Path(__file__).parents[2]),
)

Read = tuple[Turn, list[Writes]]


class BadDrop(BadInput):
    """A drop cannot be used. *text*: the drop's text without secrets; None: the file is kept unchanged."""

    def __init__(self, why: str, text: str | None = None) -> None:
        super().__init__(why)
        self.text = text


class DropReader:
    """Reads drops. *apart*: read long drops in another process, as a daemon must."""

    def __init__(self, *, apart: bool = False) -> None:
        self._child = Child(command=READING_CHILD) if apart else None
        self._deaths: Counter[str] = Counter()

    def read(self, file: Path, asked: Collection[str]) -> Read:
        """Read a drop. Raises BadDrop; OmgError if it may be readable later; OSError, such as FileNotFoundError."""
        look = file.stat()
        if self._child is None or not stat.S_ISREG(look.st_mode) or look.st_size < LONG_BYTES:
            return read_file(file, asked)
        question = {"file": str(file), "asked": [*asked]}
        answer = self._child.call(question, LONGEST_S + S_PER_MB * look.st_size / 1e6)
        for line in answer.get("logged", ()):
            log.warning("%s", line)
        if "turn" in answer:
            del self._deaths[file.name]
            return turn_from_json(answer["turn"]), [*parsed_writes(answer["writes"])]
        if "bad" in answer:
            raise BadDrop(answer["bad"], answer["text"])
        if "failed" in answer:
            raise OmgError(answer["failed"])
        if not answer.get("started", True):  # for example after an upgrade while this daemon runs
            log.warning("%s: read here: %s", file.name, answer["why"])
            return read_file(file, asked)
        if not answer["again"]:
            raise OmgError(answer["why"])
        file.stat()  # raises FileNotFoundError if another process has taken the drop
        self._deaths[file.name] += 1
        if self._deaths[file.name] < DEATHS:
            raise OmgError(f"{answer['why']}; the drop is read again")
        del self._deaths[file.name]
        raise BadDrop(
            f"the process that read this drop ended {DEATHS} times: {answer['why']}; the file is kept unchanged"
        )

    def close(self) -> None:
        if self._child is not None:
            self._child.close()


def read_file(file: Path, asked: Collection[str]) -> Read:
    """Read the drop *file*. A message without a time gets the time of the drop. Raises BadDrop, OSError."""
    if not stat.S_ISREG(file.stat().st_mode):
        raise BadDrop("not a regular file")
    data = file.read_bytes()
    try:
        turn = read_drop(data, asked)
    except BadInput as e:
        raise BadDrop(str(e), redact(data.decode("utf-8", "replace"))[0]) from e
    came_ms = dropped_ms(file)
    messages = tuple(m if m.timestamp else replace(m, timestamp=came_ms) for m in turn.messages)
    return replace(turn, messages=messages), writes_of(json.loads(data)["entries"])


def dropped_ms(file: Path) -> int:
    """The time in ms at which a drop was made: from its name `<ms>-…`, else from its file's time."""
    head = file.name.partition("-")[0]
    return int(head) if re.fullmatch(r"[0-9]{13,15}", head) else int(file.stat().st_mtime * 1000)


# The child's end


def serve_reader() -> None:
    os.nice(5)  # prompts have priority
    kept = BufferingHandler(LINES_KEPT)
    kept.setLevel(logging.WARNING)
    logging.getLogger().addHandler(kept)

    def logged() -> list[str]:
        """The log lines since the previous call, for the parent's log."""
        lines = [record.getMessage() for record in kept.buffer]
        kept.flush()
        return lines

    def answer(question: dict[str, Any]) -> dict[str, Any]:
        try:
            turn, shown = read_file(Path(question["file"]), question["asked"])
        except BadDrop as e:
            return {"bad": str(e), "text": e.text}
        except Exception as e:
            return {"failed": error_text(e), "logged": logged()}
        return {
            "turn": turn_to_json(turn),
            "writes": "\n".join(map(writes_line, shown)),
            "logged": logged(),
        }

    serve_parent(float(sys.argv[-1]), answer)
