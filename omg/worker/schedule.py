"""
Decides when pending turns are observed.

    observation_due   why turns are observed now, or None; called for every graph at every tick
    what_is_due       why, and which turns: today's conversations before older ones
    when_due          when turns are observed if nothing more is said
    why_waiting       why turns are not observed yet, for a person
    note_…            changes to a graph's state: heard, urgent, edited, failure, capped, completed
    names_near_day    whether a turn names a day of the coming week; such a turn waits at most `quiet_after`

The functions read no file and no clock. With each failure a graph pauses longer, and its turns stay pending.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, datetime

from ..config import Observation
from ..dates.rules import resolve_dates
from ..graph.graph import Pending
from ..graph.state import SessionState, State
from ..message.turn import Turn

FIRST_PAUSE_S, LONGEST_PAUSE_S = 30, 3600  # pause after a failed observation; doubles with each failure
FRESH_MS = 86_400_000  # conversations with a turn of this last day are observed before older ones
PRESSING, FRESH, OLD = range(3)  # ranks: the lowest is observed first
# A plan for a day within NEAR_DAYS does not wait until the talk ends. READ_CHARS of a message are searched for such a day.
NEAR_DAYS, READ_CHARS = 7, 4_000
# Less than so many steps below the threshold, a step is half as large, as in Mastra's memory.
NEAR_THRESHOLD = 1.1


def step_tokens(state: State, options: Observation) -> float:
    """
    Return how many tokens of pending turns start an observation.

    This number is one step of *options*, or half a step if OMG is about to shorten a session's context. Without a step
    (`buffer_tokens = false`), the number is `message_tokens`.
    """
    if options.step is None:
        return options.message_tokens
    # Notes replace the turns that leave a context, so the notes have to be ready before a context is full.
    widest = max((s.window for s in state.sessions.values() if s.asked_ms), default=0)
    return (
        options.step / 2 if widest >= options.message_tokens - NEAR_THRESHOLD * options.step else options.step
    )


def observation_due(
    state: State, pending: Sequence[Pending], options: Observation, now: datetime
) -> str | None:
    """
    Return the reason why *pending* is observed now; None if *pending* waits.

        urgent    a context is about to be cut, or was cut
        turn      `buffer_tokens = "turn"`, or the effort is low: each turn is observed at once
        step      enough tokens are pending; with `buffer_tokens = false`, as many as `message_tokens`
        quiet     nobody has spoken for a while

    With `buffer_tokens = false`, the reason is never "turn" or "quiet".
    """
    at = now.timestamp()
    if not pending or at < retry_at(state):
        return None
    if state.urgent_ms:
        return "urgent"
    if options.buffer_tokens == "turn" or (options.effort == "low" and options.buffer_tokens is not False):
        return "turn"
    if sum(p.tokens for p in pending) >= step_tokens(state, options):
        return "step"
    rest = rest_at(state, pending, options)
    return "quiet" if rest is not None and at >= rest else None


def what_is_due(
    state: State, pending: Sequence[Pending], options: Observation, now: datetime, *, asked: bool = False
) -> tuple[str, int, Sequence[Pending]]:
    """
    Return why turns of *pending* are observed now ("" if all wait), their rank (PRESSING, FRESH or OLD), and these
    turns.

    Conversations with a turn of the last day come first. *asked*: somebody asked to have all turns observed.
    """
    since_ms = now.timestamp() * 1000 - FRESH_MS
    live = {p.session for p in pending if p.at_ms >= since_ms}
    for rank, files in (
        (FRESH, [p for p in pending if p.session in live]),
        (OLD, [p for p in pending if p.session not in live]),
    ):
        reason = "asked" if asked and files else observation_due(state, files, options, now)
        if reason:
            return reason, PRESSING if reason == "urgent" else rank, files
    return "", OLD, ()


def when_due(state: State, pending: Sequence[Pending], options: Observation, now: datetime) -> float | None:
    """
    The time at which *pending* is observed if nobody speaks before, in seconds since the epoch. None: not until
    somebody speaks.
    """
    if not pending:
        return None
    if what_is_due(state, pending, options, now)[0]:
        return now.timestamp()
    rest = rest_at(state, pending, options)
    return max(retry_at(state), rest or 0) if state.failures else rest


def rest_at(state: State, pending: Sequence[Pending], options: Observation) -> float | None:
    """
    Return when silence alone starts the observation of *pending*, in seconds since the epoch.

    Returns None if silence starts no observation.
    - The silence has to last `quiet_after` seconds after the last turn.
    - A turn that names a day of the coming week waits only `quiet_after` seconds, even if people go on speaking.
    - After a failure, no further silence is needed. Then only `retry_at` delays the observation.
    """
    if options.quiet_after is False or options.buffer_tokens is False:
        return None
    # a plan must be a note before its day
    begins = min(last_ms(pending), state.near_day_ms or math.inf) / 1000
    return begins if state.failures else begins + options.quiet_after


def names_near_day(turn: Turn, day: date) -> bool:
    """
    Whether a person names a day of the coming week in *turn*, said on *day*. "Within six months" names no such day.
    """
    said = (m.spoken[:READ_CHARS] for m in turn.messages if m.role == "user")
    days = (when for text in said for when in resolve_dates(text, day))
    return any(0 <= (when.end - day).days <= NEAR_DAYS for when in days)


def why_waiting(
    state: State, pending: Sequence[Pending], options: Observation, now: datetime, cap: str
) -> str:
    """
    Return why pending turns are not observed yet, for a person to read.

    Times are in the zone of *now*. Returns "" if no turn is pending. *cap*: the reason why the graph cannot be observed
    at all, or "".
    """
    if not pending:
        return ""
    if cap:
        return cap
    if now.timestamp() < retry_at(state):
        return f"{state.error}; asked again at {clock_text(retry_at(state), now)}, or by `omg observe`"
    if observation_due(state, pending, options, now):
        return "due now; a running daemon observes these turns"
    tokens, needed = sum(p.tokens for p in pending), step_tokens(state, options)
    text = f"{tokens:,} tokens are pending of the {needed:,.0f} that start an observation"
    if (rest := rest_at(state, pending, options)) is None:
        return text if options.buffer_tokens is False else f"{text}; all is observed in the night"
    return f"{text}; all is observed at {clock_text(rest, now)} if nothing more is said"


def clock_text(seconds: float, now: datetime) -> str:
    """A time soon after *now*: 14:30:05 if it is on the same day, else with its date."""
    at = datetime.fromtimestamp(seconds, now.tzinfo)
    return f"{at:%H:%M:%S}" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M:%S}"


def last_ms(pending: Sequence[Pending]) -> int:
    return max(p.at_ms for p in pending)


def retry_at(state: State) -> float:
    """The end of a graph's pause after a failure, in seconds since the epoch; 0 without a failure."""
    if not state.failures:
        return 0.0
    pause: int = min(FIRST_PAUSE_S << min(state.failures - 1, 20), LONGEST_PAUSE_S)
    return state.failed_ms / 1000 + pause


# --- changes to the state


def note_heard(state: State, turn: Turn, last_ms: int, tokens: int, near: bool) -> None:
    """Record a turn that was taken in. *near*: the answer of `names_near_day`."""
    if near and not state.near_day_ms:
        state.near_day_ms = last_ms
    entry = state.sessions.setdefault(turn.session, SessionState())
    entry.last_ms = max(entry.last_ms, last_ms)
    entry.window += tokens
    if entry.asked_ms:  # else nobody reads these counts
        entry.prompted += turn.prompted
        entry.cached += turn.cached


def note_urgent(state: State, session: str, reason: str, at_ms: int, waiting: bool) -> None:
    """
    Record that pending turns are to be observed at once, if any are *waiting*.

    A *reason* "compaction" or "reset" says that the session's context was cut. This cut is recorded in any case.
    """
    if waiting:
        state.urgent_ms = at_ms
    if reason in ("compaction", "reset"):
        entry = state.sessions.setdefault(session, SessionState())
        entry.cut, entry.cut_ms = reason, at_ms


def note_asked(state: State, session: str, at_ms: int) -> None:
    """
    Record that the gateway asked what to remove from the context of *session*.

    Nothing is recorded for a session without turns.
    """
    if session in state.sessions:
        state.sessions[session].asked_ms = at_ms


def note_edited(state: State) -> None:
    state.epoch += 1


def note_failure(state: State, error: str, at_ms: int) -> None:
    state.failures += 1
    state.failed_ms, state.error = at_ms, error


def recovered(state: State) -> None:
    state.failures, state.error = 0, ""


def note_capped(state: State, error: str) -> None:
    """Record *error*: today's cap on costs is reached. Unlike a failure, this makes no pause longer."""
    state.error = error


def note_completed(state: State, reason: str, began_ms: int, at_ms: int) -> None:
    """Record that all turns that were pending at *began_ms* are observed."""
    state.failures, state.error, state.observed_ms = 0, "", at_ms
    if state.urgent_ms <= began_ms:
        state.urgent_ms = 0
    if state.near_day_ms <= began_ms:
        state.near_day_ms = 0
    if reason == "quiet":
        state.quiet_ms = at_ms
