"""
A conversation cut into pieces that a model's window holds.

A tool call stays with its result, and material of a message stays material in each of its parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..text.tokens import split_text
from .material import Span
from .turn import FRAME_TOKENS, Call, Message

SMALLEST = 1_000  # tokens: what a model cannot answer of these, it cannot of fewer


def split_messages(messages: Sequence[Message], budget_tokens: int) -> list[tuple[Message, ...]]:
    """
    *messages* in order, in pieces of at most *budget_tokens*.

    A call stays with its result. A message above the budget is split into parts that keep its id and say
    which part they are; calls too many for one piece are dealt out, each with its result.
    """
    done: list[tuple[Message, ...]] = []
    current: list[Message] = []
    used = 0
    for unit in _uncut_units(messages):
        for part in _shrink(unit, budget_tokens):
            cost = sum(m.tokens for m in part)
            if current and used + cost > budget_tokens:
                done.append(tuple(current))
                current, used = [], 0
            current += part
            used += cost
    return [*done, tuple(current)] if current else done


def split_halves(messages: Sequence[Message]) -> list[tuple[Message, ...]]:
    """
    *messages* in two or three pieces of half their tokens; in one, if they cannot be cut.

    A message, or a call and its result, is not cut where it fits into SMALLEST tokens.
    """
    units = [sum(m.tokens for m in unit) for unit in _uncut_units(messages)]
    found = split_messages(messages, max(-(-sum(units) // 2), min(max(units, default=0), SMALLEST)))
    # A long call stands before each part of its result: where that leaves nothing smaller, it is one piece.
    return found if all(sum(m.tokens for m in part) < sum(units) for part in found) else [tuple(messages)]


def _answers(messages: Sequence[Message]) -> dict[int, tuple[int, Call]]:
    """Place of a result → place of its call, and the call: the last before it, for some models reuse ids."""
    found: dict[int, tuple[int, Call]] = {}
    made: dict[str, tuple[int, Call]] = {}
    for i, m in enumerate(messages):
        if m.call_id in made:
            found[i] = made[m.call_id]
        made |= {call.id: (i, call) for call in m.calls}
    return found


def _uncut_units(messages: Sequence[Message]) -> Iterator[tuple[Message, ...]]:
    """What must not be cut: a call, its results, and whatever was said in between."""
    last = {at: i for i, (at, _) in _answers(messages).items()}
    start, until = 0, 0
    for i in range(len(messages)):
        until = max(until, last.get(i, i))
        if i == until:
            yield tuple(messages[start : i + 1])
            start = i + 1


def _shrink(unit: tuple[Message, ...], budget: int) -> Iterator[tuple[Message, ...]]:
    """*unit*, in parts that fit where it does not."""
    if sum(m.tokens for m in unit) <= budget:
        yield unit
        return
    answers = _answers(unit)
    answered = {(at, call.id) for at, call in answers.values()}
    for i, m in enumerate(unit):
        if i in answers:
            at, call = answers[i]
            again = replace(unit[at], text="", calls=(call,))
            for part in _parts(m, max(budget - again.tokens, budget // 2)):
                yield again, part
            continue
        if m.text:
            yield from ((part,) for part in _parts(replace(m, calls=()), budget))
        if left := tuple(call for call in m.calls if (i, call.id) not in answered):
            yield (replace(m, text="", calls=left),)


def _parts(message: Message, budget: int) -> list[Message]:
    """*message*, or parts of it within *budget*."""
    if message.tokens <= budget:
        return [message]
    texts = split_text(message.text, max(16, budget - FRAME_TOKENS - 12))  # 12: "[part 3/14]" and a seam
    parts, at = [], 0
    for n, text in enumerate(texts, 1):
        head = f"[part {n}/{len(texts)}]\n"
        spans = tuple(
            Span(max(s.start - at, 0) + len(head), min(s.end - at, len(text)) + len(head), s.kind)
            for s in message.material
            if s.start < at + len(text) and s.end > at
        )
        # A tool's result is material as a whole, whatever part of it this is.
        parts.append(replace(message, text=head + text, spans=spans if message.role == "user" else None))
        at += len(text)
    return parts
