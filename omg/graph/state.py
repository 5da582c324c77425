"""
What is live in each session, and when a graph was last observed and reflected: state.json.

A value in the file that makes no sense leads to an activation, not to an error. Not here: the file's lock (graph.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from ..dates.days import LAST_MS

SESSIONS_KEPT = 100  # of one identity; one that comes back later is activated anew, and has lost nothing else


@dataclass(slots=True)
class SessionState:
    """What is live in one session. Times in ms since the epoch; 0 = never."""

    task: str = ""  # continuation hints, from the last observation that had any
    state: str = ""
    next: str = ""
    shared: list[str] = field(default_factory=list)  # names of those hints that other sessions may see
    at_ms: int = 0  # when what the hints say was said
    foreign: bool = False  # text of tools, pages or third persons was in sight: the assistant may repeat it
    system: str = ""  # the `system` slice as served until the next activation
    activated_ms: int = 0
    reason: str = ""
    epoch: int = -1  # State.epoch when it was rendered
    mocs: list[str] = field(default_factory=list)  # the two on show
    falls: dict[str, int] = field(default_factory=dict)  # MOC -> entry points since the last activation
    model: str = ""
    last_ms: int = 0  # the last turn seen
    session_id: str = ""  # of the gateway, under which it last asked; another one is another window
    cut: str = ""  # what last cut its context, "compaction" or "reset",
    cut_ms: int = 0  # and when
    window: int = 0  # tokens of turns taken in since the last activation
    # with OMG as the context engine (window/context.py):
    asked_ms: int = 0  # when the gateway last asked what leaves the context
    prompted: int = 0  # tokens of its prompts since the engine came, as the provider counted them,
    cached: int = 0  # and those of them that it had in its cache
    timeline: str = ""  # what stands for the turns that were cut, as served until the next cut
    timeline_epoch: int = -1  # State.epoch when it was rendered
    cut_turns: dict[str, int] = field(default_factory=dict)  # a turn's beginning -> how many messages it has
    cut_tokens: dict[str, int] = field(default_factory=dict)  # and what these cost
    told_before_ms: int = 0  # the timeline stands for all that was said before, too: it was not handed over
    # a run -> the `prompt` slice it got since the last cut
    served: dict[str, str] = field(default_factory=dict)
    assembled: str = ""  # the newest run whose slice stands in the context that was last put together,
    raw_tokens: int = 0  # what of that was not cut costs,
    raw_from_ms: int = 0  # and when it begins
    context_cut_ms: int = 0


@dataclass(slots=True)
class State:
    sessions: dict[str, SessionState] = field(default_factory=dict)
    epoch: int = 0  # grows when a person edits, forgets, undoes: every `system` slice is stale then
    observed_ms: int = 0  # when an observation was last completed
    quiet_ms: int = 0  # when one was that ran because the conversation rested
    urgent_ms: int = 0  # when a compaction or reset last asked for everything to be taken in
    failures: int = 0  # in a row
    failed_ms: int = 0
    error: str = ""
    reflected_ms: int = 0
    redactions: int = 0  # how often words were taken out: what was drafted before has them
    changed_tokens: int = 0  # of nodes written since the last reflection
    verdicts: int = 0  # of the last reflection that asked a model: on how many notes it said something,
    verdicts_refused: int = 0  # and how much of that was not followed
    # inbox note that a person wrote -> its mtime then, ns
    by_hand: dict[str, int] = field(default_factory=dict)


def file_look(file: Path) -> tuple[int, int, int]:
    """What tells one version of *file*, which is always replaced, from another."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return (0, 0, 0)
    return (found.st_ino, found.st_mtime_ns, found.st_size)


def copied_state(state: State) -> State:
    """A State that can be changed while others read *state*; what its sessions hold is replaced, never altered."""
    return replace(state, sessions={key: replace(own) for key, own in state.sessions.items()})


def forget_served(own: SessionState) -> None:
    """Let go of every text that was served to a session: it may quote what is gone."""
    own.system = own.timeline = ""
    own.served = {}


def note_window(state: State, session: str, session_id: str) -> None:
    """A session goes on under *session_id*: under another one than before its window is new, and no hook told."""
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


def former_uses(file: Path) -> dict[str, tuple[int, int]]:
    """The counts that state.json held before they had a file of their own."""
    try:
        uses = json.loads(file.read_text(encoding="utf-8"))["uses"]
        return {str(id): (int(times), int(last_ms)) for id, (times, last_ms) in uses.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return {}


def state_fields(state: State | SessionState) -> dict[str, Any]:
    """For json; `dataclasses.asdict` copies every value and takes ten times as long."""
    return {name: getattr(state, name) for name in state.__slots__}


def load_state(file: Path) -> tuple[State, str]:
    """The state as far as it makes sense, and what does not, "" if all does. The rest only costs an activation."""
    try:
        raw = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return State(), ""
    except (ValueError, RecursionError):
        return State(), "is no JSON"
    odd: list[str] = []
    given = sound_fields(State, raw, "the whole", odd)
    of_each = given.get("sessions", {}).items()
    given["sessions"] = {
        key: SessionState(**sound_fields(SessionState, own, "a session", odd)) for key, own in of_each
    }
    return State(**given), f"makes no sense in {', '.join(sorted(set(odd)))}" if odd else ""


FIELD_KINDS: dict[str, Callable[[Any], bool]] = {
    "str": lambda value: isinstance(value, str),
    "bool": lambda value: isinstance(value, bool),
    "int": lambda value: whole_field(value),
    "list[str]": lambda value: isinstance(value, list) and all(isinstance(v, str) for v in value),
    "dict[str, str]": lambda value: (
        isinstance(value, dict) and all(isinstance(v, str) for v in value.values())
    ),
    "dict[str, int]": lambda value: (
        isinstance(value, dict) and all(isinstance(v, int) for v in value.values())
    ),
    "dict": lambda value: isinstance(value, dict),
}


def sound_fields(
    form: type[State] | type[SessionState], raw: object, what: str, odd: list[str]
) -> dict[str, Any]:
    """Those fields of *raw* that *form* has and that are of its kind; what is not goes to *odd*, by name."""
    if not isinstance(raw, dict):
        odd.append(what)
        return {}
    found = {}
    for of in (f for f in fields(form) if f.name in raw):
        fits = FIELD_KINDS.get(str(of.type), FIELD_KINDS["dict"])
        if fits(raw[of.name]):
            found[of.name] = raw[of.name]
        else:
            odd.append(f"`{of.name}`")
    return found


def whole_field(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < LAST_MS
