"""
Which turns leave the context: the law of the window, without I/O.

    whole_turns    where a conversation may be cut at all: between turns, never between a call and its result
    turns_to_cut   which of them go once the raw messages have reached the threshold: the oldest that are observed

Not here: what is said in their place (timeline.py). One rule: what is not observed stays, whatever it costs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

LAST_TURNS = 2  # stay in any case: the answer just given, and what it answers to
# Of the threshold: a cut that gains less is not worth a new prefix, which no provider has in its cache.
LEAST_GAIN = 0.2


@dataclass(frozen=True, slots=True)
class Shown:
    """A message of the context as the law sees it. *answers*: the call that a tool's result answers."""

    role: str
    tokens: int
    calls: tuple[str, ...] = ()
    answers: str = ""


def whole_turns(messages: Sequence[Shown]) -> list[range]:
    """
    *messages* by turns: each begins with what a person says, and ends before the next that is no part of it.

    What is said while a call runs belongs to the turn of the call: its result is still to come.
    """
    ends, _ = answered_calls(messages)
    starts, until = [0], 0  # *until*: where the last result of a call made so far stands
    for i, message in enumerate(messages):
        begins = message.role == "user" and i > 0 and messages[i - 1].role != "user"
        if begins and i > until:
            starts.append(i)
        until = max(until, ends.get(i, 0))
    stops = [*starts[1:], len(messages)]
    return [range(start, stop) for start, stop in zip(starts, stops, strict=True) if start < stop]


def answered_calls(messages: Sequence[Shown]) -> tuple[dict[int, int], set[int]]:
    """Where calls are made → where the last of their results stands; and where one is made that has none."""
    waiting: dict[str, int] = {}
    ends: dict[int, int] = {}
    unanswered: set[int] = set()
    for i, message in enumerate(messages):
        if message.answers in waiting:
            ends[waiting.pop(message.answers)] = i
        # an id may come again: what it called before has got no answer, and gets none
        for call in message.calls:
            unanswered |= {waiting[call]} if call in waiting else set()
            waiting[call] = i
    return ends, unanswered | set(waiting.values())


def raw_tokens(messages: Sequence[Shown], turns: Sequence[range], cut: Collection[int]) -> int:
    """What the turns cost that are not *cut*."""
    return sum(messages[i].tokens for n, turn in enumerate(turns) if n not in cut for i in turn)


def turns_to_cut(
    messages: Sequence[Shown],
    turns: Sequence[range],
    cut: Collection[int],
    observed: Collection[int],
    *,
    threshold: int,
    floor: int,
) -> list[int]:
    """
    The turns that go now, besides those *cut* before: the oldest of the *observed*, until *floor* tokens are left raw.

    None below *threshold*, and none where too little would be gained. The last turns and those with an open call stay.
    """
    left = raw_tokens(messages, turns, cut)
    if left < threshold:
        return []
    (_, unanswered), gain = answered_calls(messages), 0
    going: list[int] = []
    for n, turn in enumerate(turns[:-LAST_TURNS]):
        if left - gain <= floor:
            break
        if n in cut or n not in observed or not unanswered.isdisjoint(turn):
            continue
        going.append(n)
        gain += sum(messages[i].tokens for i in turn)
    return going if gain >= LEAST_GAIN * threshold else []
