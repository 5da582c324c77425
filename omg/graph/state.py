"""
The state of a graph: its sessions, its latest observation and reflection, how often notes were of use, and what
prompts were given.

An invalid value in state.json is dropped, and no error is raised. The next prompt then gets a new `system` text, as at
the beginning of a session.
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

# --- Private files: read as JSON, locked by the kernel, set aside if unreadable. vault/files.py writes these files.


def read_object(file: Path) -> dict[str, Any]:
    """Read the JSON object in *file*; {} if there is no file or no object."""
    try:
        return parsed_object(file.read_text(encoding="utf-8", errors="replace")) or {}
    except OSError:
        return {}


def parsed_object(text: str | bytes) -> dict[str, Any] | None:
    """Parse *text* as a JSON object; None if it is not one. *text* may be any value, such as a database's NULL."""
    try:
        value = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def mapping_in(body: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the JSON object under *key* of *body*; {} if there is none."""
    value = body.get(key)
    return dict(value) if isinstance(value, Mapping) else {}


def objects_in(body: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the JSON objects in the list under *key* of *body*; [] if there is no list."""
    value = body.get(key)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def process_alive(pid: int) -> bool:
    """Whether the process *pid* runs. Another process may have got the number since, which only delays a clean-up."""
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


# --- Unreadable files: set aside as damaged/<name>; damaged/<name>.txt says what to do.

log = logging.getLogger(__name__)

DAMAGED_FOLDER = "damaged"


def set_aside_damaged(graph: Path, file: Path, why: str, mend: str, part: bytes | None = None) -> None:
    """Move *file*, or copy only its damaged *part*, to damaged/ in the folder *graph*, with a text of *why* and what to do
    (*mend*). Does nothing if *file* is gone."""
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
    """Yield each file that was set aside, with the line that explains it."""
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


SESSIONS_KEPT = 100  # of one identity; an older session that returns is merely activated anew


Ms = Annotated[int, Field(gt=-LAST_MS, lt=LAST_MS)]  # ms since the epoch, within the range of dates


@dataclass(slots=True)
class SessionState:
    """The state of one session. Times are in ms since the epoch; 0 means never."""

    task: str = ""  # continuation hints, from the last observation that had any
    state: str = ""
    next: str = ""
    shared: list[str] = field(default_factory=list)  # names of the hints that other sessions may see
    at_ms: Ms = 0  # time of the messages that gave the hints
    system: str = ""  # the `system` slice as served until the next activation
    activated_ms: Ms = 0
    reason: str = ""
    epoch: int = -1  # State.epoch when `system` was rendered
    model: str = ""
    last_ms: Ms = 0  # time of the last turn seen
    session_id: str = ""  # the gateway's id in its last request; another id: the conversation began anew
    cut: str = ""  # what last cut the session's context: "compaction" or "reset"
    cut_ms: Ms = 0  # when `cut` happened
    window: int = 0  # tokens of turns taken in since the last activation
    # with OMG as the context engine (context.py):
    asked_ms: Ms = 0  # when the gateway last asked what leaves the context
    prompted: int = 0  # tokens of the prompts since OMG is the engine, by the provider's count
    cached: int = 0  # how many of these tokens were in the provider's cache
    timeline: str = ""  # the text that replaces cut turns, as served until the next cut
    timeline_epoch: int = -1  # State.epoch when `timeline` was rendered
    cut_turns: dict[str, int] = field(default_factory=dict)  # a turn's beginning -> how many messages it has
    cut_tokens: dict[str, int] = field(default_factory=dict)  # a turn's beginning -> how many tokens it has
    told_before_ms: Ms = 0  # the timeline covers all messages before: the gateway no longer sends them
    # a run -> the `prompt` slice that the run got since the last cut
    served: dict[str, str] = field(default_factory=dict)
    assembled: str = ""  # the newest run whose slice is in the last assembled context
    raw_tokens: int = 0  # tokens of the turns in that context that were not cut
    raw_from_ms: Ms = 0  # time of the first of these turns
    context_cut_ms: Ms = 0


@dataclass(slots=True)
class State:
    sessions: dict[str, SessionState] = field(default_factory=dict)
    epoch: int = 0  # grows when a person edits, forgets or undoes; every `system` slice is then outdated
    observed_ms: Ms = 0  # when an observation was last completed
    quiet_ms: Ms = 0  # when an observation last ran because the conversation rested
    urgent_ms: Ms = 0  # when a compaction or reset last asked to observe everything
    near_day_ms: Ms = 0  # time of the first pending message that names a day soon
    failures: int = 0  # in a row
    failed_ms: Ms = 0
    error: str = ""
    reflected_ms: Ms = 0
    reflected: str = ""  # what the last reflection did, in numbers
    redactions: int = 0  # how often words were removed: a text drafted before a removal still has the words
    changed_tokens: int = 0  # tokens of notes written since the last reflection
    verdicts: int = 0  # verdicts on notes that a model gave in the last reflection that asked one
    verdicts_refused: int = 0  # how many of these verdicts were not followed
    # turns that only the rules have read; a model reads them at night: "<ms of the first> <session>" -> ms of the last
    unread: dict[str, int] = field(default_factory=dict)
    # who speaks in a group: a hash of a first name -> hashes of the sender ids that have it, in the order they came
    people: dict[str, list[str]] = field(default_factory=dict)
    # inbox note that a person wrote -> its mtime when it was read, ns
    by_hand: dict[str, int] = field(default_factory=dict)
    former_rules: str = ""  # the cycle that archived notes of earlier rules, or "none"; "": not looked at yet


STATE = TypeAdapter(State)


def file_look(file: Path) -> tuple[int, int, int]:
    """Return inode, mtime (ns) and size of *file*, which tell its versions apart; zeros if there is no file."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return (0, 0, 0)
    return (found.st_ino, found.st_mtime_ns, found.st_size)


def copied_state(state: State) -> State:
    """Copy *state*, so that the copy can be changed while others read *state*. Dicts and lists of sessions are shared:
    replace them, never alter them."""
    return replace(state, sessions={key: replace(own) for key, own in state.sessions.items()})


def forget_served(own: SessionState) -> None:
    """Delete every text that was served to a session, because such a text may quote forgotten words."""
    own.system = own.timeline = ""
    own.served = {}


def note_session_id(state: State, session: str, session_id: str) -> None:
    """Record the session's *session_id*. A changed id means that the conversation began anew, although no hook said so."""
    own = state.sessions.setdefault(session, SessionState())
    if own.session_id and own.last_ms > own.cut_ms:
        own.cut, own.cut_ms = "reset", own.last_ms
    own.session_id = session_id


def drop_oldest_sessions(state: State) -> None:
    """
    Remove all but the SESSIONS_KEPT newest sessions from *state*.

    The state has to stay small, because each change writes the whole state to disk.
    """
    if len(state.sessions) > SESSIONS_KEPT:
        latest = sorted(state.sessions, key=lambda key: live_ms(state.sessions[key]), reverse=True)
        for key in latest[SESSIONS_KEPT:]:
            del state.sessions[key]


def live_ms(session: SessionState) -> int:
    return max(session.last_ms, session.at_ms, session.activated_ms, session.cut_ms)


def state_fields(state: State | SessionState) -> dict[str, Any]:
    """Return the fields as a dict, for JSON. `dataclasses.asdict` copies every value and takes ten times as long."""
    return {name: getattr(state, name) for name in state.__slots__}


def load_state(file: Path) -> tuple[State, str]:
    """
    Read the state from *file*, and leave out its invalid parts.

    Returns (state, what is invalid); the text is "" if every part is valid. The loss of a part has one effect: the next
    prompt gets a new `system` text.
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
            return state, f"has an invalid value in {', '.join(sorted(odd))}" if odd else ""
        except ValidationError as e:
            places = {error["loc"][: 3 if error["loc"][:1] == ("sessions",) else 1] for error in e.errors()}
        if () in places:
            return State(), "holds no valid state"
        for place in places:
            *above, name = place
            odd.add("a session" if len(place) == 2 else f"`{name}`")
            reduce(getitem, above, raw).pop(name)


# --- How often each note was of use to a prompt, and when last: a line for each use, in `uses.jsonl` of a graph.
#
# A crash may lose a count. inject/decide.py decides what counts as a use; index/search.py and reflect/similar.py read the
# counts.


USE_DAY_MS = 86_400_000  # uses of a note within a day count once, because they are one conversation
NEVER = (0, 0)


class Uses:
    """
    Counts how often each note was of use: id → (count, time of the latest use in ms).

    Processes may share the file.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._kept = Entries(file, use_in, lambda id, use: [id, *(use or NEVER)])

    def all(self) -> Mapping[str, tuple[int, int]]:
        """Return all counts. The caller must not change the result, which later calls may change."""
        return self._kept.all()

    def add(self, ids: Iterable[str], at_ms: int) -> None:
        """Count a use at *at_ms* for each id, unless a use of that id was counted within the day before."""
        with self._kept.guard:
            known = {id: self.all().get(id, NEVER) for id in ids}
            fresh = {id: use for id, use in known.items() if at_ms - use[1] >= USE_DAY_MS}
            self._kept.put({id: (times + 1, at_ms) for id, (times, _) in fresh.items()})

    def adopt(self, known: Mapping[str, tuple[int, int]]) -> None:
        """Take over the counts in *known* for notes that have no count yet."""
        with self._kept.guard:
            self._kept.put({id: use for id, use in known.items() if id not in self.all()})

    def drop(self, gone: Callable[[str], bool]) -> None:
        """Remove the ids for which *gone* is true."""
        self._kept.drop(gone)


def use_in(value: Any) -> tuple[str, tuple[int, int]]:
    id, times, at_ms = value
    return str(id), (int(times), int(at_ms))


# --- What recent prompts were given and why: a line for each prompt, in `given.jsonl` of a graph.
#
# A line holds paths of notes, times of the quoted messages, scores and reasons. A line quotes only the words by which a note
# was found; the page reads the texts from the vault and the archive. Forgetting removes the lines that name what was
# forgotten (forget/erase.py). A crash may lose a line; no prompt waits for the disk.


GIVEN = "given.jsonl"
KEPT = 200  # prompts
LONGEST_BYTES = 600_000  # size of the file at which all but the last KEPT lines are removed


def note_given(graph: Path, record: Mapping[str, Any]) -> None:
    """Append *record* to given.jsonl in the folder *graph*."""
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
    """Yield the last KEPT records of given.jsonl, newest first. Torn lines are left out."""
    for line in reversed(given_lines(graph)[-KEPT:]):
        if (record := parsed_object(line)) is not None and isinstance(record.get("at"), int):
            yield record
