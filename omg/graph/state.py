"""
What is live in each session, when a graph was last observed and reflected, how often notes were of use, and what prompts
were given.

An invalid value in state.json causes an activation, not an error.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from ..dates.days import LAST_MS
from ..errors import Locked
from ..vault.files import TEMPORARY as TEMPORARY
from ..vault.files import Entries, write_new
from ..vault.files import append_lines as append_lines
from ..vault.files import remove_refused as remove_refused
from ..vault.files import write_private as write_private

# --- Private files: read as JSON, locked by the kernel, set aside where they cannot be read. vault/files.py writes them.


def read_object(file: Path) -> dict[str, Any]:
    """The JSON object in *file*; empty if there is none."""
    try:
        return parsed_object(file.read_text(encoding="utf-8", errors="replace")) or {}
    except OSError:
        return {}


def parsed_object(text: str | bytes) -> dict[str, Any] | None:
    """The JSON object that *text* is, or None; also for what is no text, as a column of a database may hold."""
    try:
        value = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def mapping_in(body: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The JSON object under *key* of *body*; empty if there is none."""
    value = body.get(key)
    return dict(value) if isinstance(value, Mapping) else {}


def objects_in(body: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """The JSON objects in the list under *key* of *body*; empty if there is none."""
    value = body.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def process_alive(pid: int) -> bool:
    """Whether that process runs. After a restart another process may have its number, which only delays a clean-up."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # a process of another user
        return True
    return True


@contextmanager
def flock(file: Path, what: str, timeout_s: float = 30.0) -> Iterator[None]:
    """Hold an exclusive lock on *file*. Raises Locked if another holder keeps it longer than *timeout_s*."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with file.open("a+") as f:
        until = time.monotonic() + timeout_s
        while True:
            try:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise Locked(
                        f"{what} is locked by another process ({file}); try again when it is done"
                    ) from None
                time.sleep(0.02)
        yield  # closing the file releases the lock


# --- what cannot be read: set aside as damaged/<name>, with a line that says what to do in damaged/<name>.txt

log = logging.getLogger(__name__)

DAMAGED_FOLDER = "damaged"


def set_aside_damaged(graph: Path, file: Path, why: str, mend: str, part: bytes | None = None) -> None:
    """Move *file*, or copy a damaged *part* of it, below the folder *graph*; nothing is done if the file is gone."""
    target = free_name(graph, file.name)
    said, line = target.with_name(f"{target.name}.txt"), f"{file}: {why}; set aside as {target}; {mend}"
    write_new(said, line.encode("utf-8", "replace"))
    log.warning("%s", line)
    if part is not None:
        write_new(target, part)
        return
    try:
        file.rename(target)
    except FileNotFoundError:
        said.unlink()


def damaged_files(graph: Path) -> Iterator[tuple[Path, str]]:
    """The files that were set aside, each with the line that explains it."""
    for file in sorted((graph / DAMAGED_FOLDER).glob("*.txt")):
        yield file.with_suffix(""), file.read_text(encoding="utf-8")


def free_name(graph: Path, name: str) -> Path:
    folder = graph / DAMAGED_FOLDER
    folder.mkdir(exist_ok=True, mode=0o700)
    target, n = folder / name, 1
    while target.exists() or target.with_name(f"{target.name}.txt").exists():
        n += 1
        target = folder / f"{n}-{name}"
    return target


SESSIONS_KEPT = 100  # most sessions of one identity; an older session that returns is only activated anew


Ms = Annotated[int, Field(gt=-LAST_MS, lt=LAST_MS)]  # since the epoch; beyond, no date can be made of it


@dataclass(slots=True)
class SessionState:
    """What is live in one session. Times in ms since the epoch; 0 = never."""

    task: str = ""  # continuation hints, from the last observation that had any
    state: str = ""
    next: str = ""
    shared: list[str] = field(default_factory=list)  # names of the hints that other sessions may see
    at_ms: Ms = 0  # time of the messages behind the hints
    system: str = ""  # the `system` slice as served until the next activation
    activated_ms: Ms = 0
    reason: str = ""
    epoch: int = -1  # State.epoch when it was rendered
    model: str = ""
    last_ms: Ms = 0  # the last turn seen
    session_id: str = ""  # of the gateway's last request; another: a conversation begun anew
    cut: str = ""  # what last cut its context, "compaction" or "reset",
    cut_ms: Ms = 0  # and when
    window: int = 0  # tokens of turns taken in since the last activation
    # with OMG as the context engine (context.py):
    asked_ms: Ms = 0  # when the gateway last asked what leaves the context
    prompted: int = 0  # tokens of its prompts since the engine came, as the provider counted them,
    cached: int = 0  # and how many of them were in its cache
    timeline: str = ""  # the text that replaces cut turns, as served until the next cut
    timeline_epoch: int = -1  # State.epoch when it was rendered
    cut_turns: dict[str, int] = field(default_factory=dict)  # a turn's beginning -> how many messages it has
    cut_tokens: dict[str, int] = field(default_factory=dict)  # and how many tokens these cost
    told_before_ms: Ms = 0  # the timeline also covers all earlier messages, which the gateway no longer sends
    # a run -> the `prompt` slice it got since the last cut
    served: dict[str, str] = field(default_factory=dict)
    assembled: str = ""  # the newest run whose slice stands in the context that was last put together,
    raw_tokens: int = 0  # what of that was not cut costs,
    raw_from_ms: Ms = 0  # and when it begins
    context_cut_ms: Ms = 0


@dataclass(slots=True)
class State:
    sessions: dict[str, SessionState] = field(default_factory=dict)
    epoch: int = 0  # grows when a person edits, forgets, undoes: every `system` slice is stale then
    observed_ms: Ms = 0  # when an observation was last completed
    quiet_ms: Ms = 0  # when an observation last ran because the conversation rested
    urgent_ms: Ms = 0  # when a compaction or reset last asked for everything to be taken in
    near_day_ms: Ms = 0  # time of the first pending message that names a day soon
    failures: int = 0  # in a row
    failed_ms: Ms = 0
    error: str = ""
    reflected_ms: Ms = 0
    reflected: str = ""  # what that did, in numbers
    redactions: int = 0  # how often words were removed: a text drafted before a removal still has them
    changed_tokens: int = 0  # of nodes written since the last reflection
    verdicts: int = 0  # of the last reflection that asked a model: on how many notes it said something,
    verdicts_refused: int = 0  # and how much of that was not followed
    # what the rules alone have read, and a model is to read at night: "<ms of the first> <session>" -> ms of the last
    unread: dict[str, int] = field(default_factory=dict)
    # who speaks in a group: a hash of a first name -> hashes of the sender ids that have it, in the order they came
    people: dict[str, list[str]] = field(default_factory=dict)
    # inbox note that a person wrote -> its mtime then, ns
    by_hand: dict[str, int] = field(default_factory=dict)
    former_rules: str = ""  # the cycle that archived notes of earlier rules, or "none"; "": not looked at yet


STATE = TypeAdapter(State)


def file_look(file: Path) -> tuple[int, int, int]:
    """An identifier of this version of *file*, which is always replaced whole."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return (0, 0, 0)
    return (found.st_ino, found.st_mtime_ns, found.st_size)


def copied_state(state: State) -> State:
    """A copy that can be changed while others read *state*; values of its sessions are replaced, never altered."""
    return replace(state, sessions={key: replace(own) for key, own in state.sessions.items()})


def forget_served(own: SessionState) -> None:
    """Drop every text that was served to a session, because it may quote forgotten words."""
    own.system = own.timeline = ""
    own.served = {}


def note_session_id(state: State, session: str, session_id: str) -> None:
    """Record the session's *session_id*. If it changed, the conversation began anew, although no hook said so."""
    own = state.sessions.setdefault(session, SessionState())
    if own.session_id and own.last_ms > own.cut_ms:
        own.cut, own.cut_ms = "reset", own.last_ms
    own.session_id = session_id


def drop_oldest_sessions(state: State) -> None:
    """Keep the sessions that were last live: a state is copied, read and written whole."""
    if len(state.sessions) > SESSIONS_KEPT:
        latest = sorted(state.sessions, key=lambda key: live_ms(state.sessions[key]), reverse=True)
        for key in latest[SESSIONS_KEPT:]:
            del state.sessions[key]


def live_ms(session: SessionState) -> int:
    return max(session.last_ms, session.at_ms, session.activated_ms, session.cut_ms)


def state_fields(state: State | SessionState) -> dict[str, Any]:
    """For json; `dataclasses.asdict` copies every value and takes ten times as long."""
    return {name: getattr(state, name) for name in state.__slots__}


def load_state(file: Path) -> tuple[State, str]:
    """
    The valid part of the state, and the names of invalid parts ("" if none). Invalid parts only cost an activation.
    """
    try:
        raw = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return State(), ""
    except (ValueError, RecursionError):
        return State(), "is no JSON"
    odd: set[str] = set()
    while True:
        try:
            state = STATE.validate_json(json.dumps(raw), strict=True)
            return state, f"makes no sense in {', '.join(sorted(odd))}" if odd else ""
        except ValidationError as e:
            places = {error["loc"][: 3 if error["loc"][:1] == ("sessions",) else 1] for error in e.errors()}
        if () in places:
            return State(), "makes no sense in the whole"
        for place in places:
            *above, name = place
            odd.add("a session" if len(place) == 2 else f"`{name}`")
            reduce(getitem, above, raw).pop(name)


# --- How often each note was of use to a prompt, and when last: a line for each use, in `uses.jsonl` of a graph.
#
# A prompt adds one line, however many notes there are. A crash may lose a count. inject/decide.py decides what counts
# as a use; index/search.py and reflect/similar.py read the counts.


USE_DAY_MS = 86_400_000  # a conversation about one note counts as one use
NEVER = (0, 0)


class Uses:
    """Node id → times and when last, in ms. Threads and processes may share one."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._kept = Entries(file, use_in, lambda id, use: [id, *(use or NEVER)])

    def all(self) -> Mapping[str, tuple[int, int]]:
        """To be read only; it keeps changing."""
        return self._kept.all()

    def add(self, ids: Iterable[str], at_ms: int) -> None:
        """Count a use of each of *ids* at *at_ms*, unless one was counted within the day before."""
        with self._kept.guard:
            known = {id: self.all().get(id, NEVER) for id in ids}
            fresh = {id: use for id, use in known.items() if at_ms - use[1] >= USE_DAY_MS}
            self._kept.put({id: (times + 1, at_ms) for id, (times, _) in fresh.items()})

    def adopt(self, known: Mapping[str, tuple[int, int]]) -> None:
        """Add the counts in *known* for notes without one."""
        with self._kept.guard:
            self._kept.put({id: use for id, use in known.items() if id not in self.all()})

    def drop(self, gone: Callable[[str], bool]) -> None:
        """Remove the ids in *gone* from the file."""
        self._kept.drop(gone)


def use_in(value: Any) -> tuple[str, tuple[int, int]]:
    id, times, at_ms = value
    return str(id), (int(times), int(at_ms))


# --- What recent prompts were given and why: a line for each prompt, in `given.jsonl` of a graph.
#
# A line holds paths of notes, times of the quoted messages, scores and reasons. It quotes only the words by which a note
# was found. The texts are read from the vault and the archive when a person looks. A forgetting takes out the lines that
# name something of it (forget/erase.py). A crash may lose a line; no prompt waits for the disk.


GIVEN = "given.jsonl"
KEPT = 200  # prompts
LONGEST_BYTES = 600_000  # size of the file at which all but the last KEPT lines are removed


def note_given(graph: Path, record: Mapping[str, Any]) -> None:
    """Append *record* to the file in the folder *graph*."""
    file = graph / GIVEN
    line = json.dumps(record, ensure_ascii=False)
    if append_lines(file, [line], durable=False).st_size > LONGEST_BYTES:
        write_private(file, "".join(f"{line}\n" for line in given_lines(graph)[-KEPT:]))


def given_lines(graph: Path) -> list[str]:
    try:
        return (graph / GIVEN).read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []


def given_lately(graph: Path) -> Iterator[dict[str, Any]]:
    """The last records, newest first, without lines that a crash left torn."""
    for line in reversed(given_lines(graph)[-KEPT:]):
        if (record := parsed_object(line)) is not None and isinstance(record.get("at"), int):
            yield record
