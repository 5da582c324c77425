"""
The worst texts for a regular expression, made of the expression itself.

What makes an expression slow is mostly its own characters, many times over, and then an end that does not
fit: of every part that may repeat, of every run of literals and of every beginning, a sample is made, and the
sample repeated. Not a proof: a search for what is not linear, without knowledge of what the expression is for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from re import _constants as c  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]

REPEATS = (c.MAX_REPEAT, c.MIN_REPEAT, c.POSSESSIVE_REPEAT)
CATEGORIES = {
    c.CATEGORY_DIGIT: "7",
    c.CATEGORY_SPACE: " ",
    c.CATEGORY_WORD: "a",
    c.CATEGORY_NOT_DIGIT: "a",
    c.CATEGORY_NOT_SPACE: "a",
    c.CATEGORY_NOT_WORD: " ",
}


def member(items: list) -> str:
    """A character that the class *items* takes."""
    if items and items[0][0] is c.NEGATE:
        flags = re.compile("[^" + "".join(_text(i) for i in items[1:]) + "]") if len(items) > 1 else None
        return next((ch for ch in "a 7-\n.x\"'(" if not flags or flags.match(ch)), "a")
    op, value = items[0]
    if op is c.LITERAL:
        return chr(value)
    if op is c.RANGE:
        return chr(value[0])
    return CATEGORIES.get(value, "a")


def members(items: list) -> Iterator[str]:
    """One for each part of the class *items*."""
    if items and items[0][0] is c.NEGATE:
        yield member(items)
        return
    for item in items:
        yield member([item])


def _text(item: tuple) -> str:
    op, value = item
    if op is c.LITERAL:
        return re.escape(chr(value))
    if op is c.RANGE:
        return f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
    names = {
        c.CATEGORY_DIGIT: r"\d",
        c.CATEGORY_SPACE: r"\s",
        c.CATEGORY_WORD: r"\w",
        c.CATEGORY_NOT_DIGIT: r"\D",
        c.CATEGORY_NOT_SPACE: r"\S",
        c.CATEGORY_NOT_WORD: r"\W",
    }
    return names.get(value, "")


def sample(items, groups: dict[int, str], pick: int = 0) -> str:
    """A text that the parsed *items* would take, more or less; of alternatives the one numbered *pick*."""
    out = ""
    for op, value in items:
        if op is c.LITERAL:
            out += chr(value)
        elif op is c.NOT_LITERAL:
            out += "a" if value != ord("a") else "b"
        elif op is c.ANY:
            out += "a"
        elif op is c.IN:
            found = list(members(value))
            out += found[pick % len(found)]
        elif op is c.BRANCH:
            out += sample(value[1][pick % len(value[1])], groups, pick)
        elif op is c.SUBPATTERN:
            groups[value[0]] = made = sample(value[3], groups, pick)
            out += made
        elif op is c.ATOMIC_GROUP:
            out += sample(value, groups, pick)
        elif op in REPEATS:
            low, high, body = value
            out += sample(body, groups, pick) * min(max(low, 1), high, 40)
        elif op is c.GROUPREF:
            out += groups.get(value, "a")
        elif op is c.GROUPREF_EXISTS:
            out += sample(value[1], groups, pick)
    return out


def parts(items) -> Iterator[tuple[str, object]]:
    """Everything within *items* that is repeated, and every beginning of a sequence."""
    ops = list(items)
    for op, value in ops:
        if op in REPEATS:
            yield "repeat", value[2]
            yield from parts(value[2])
        elif op is c.BRANCH:
            for way in value[1]:
                yield "way", way
                yield from parts(way)
        elif op is c.SUBPATTERN:
            yield from parts(value[3])
        elif op is c.ATOMIC_GROUP:
            yield from parts(value)
        elif op in (c.ASSERT, c.ASSERT_NOT):
            yield from parts(value[1])
        elif op is c.GROUPREF_EXISTS:
            for way in value[1:]:
                if way:
                    yield from parts(way)


def units(pattern: re.Pattern[str], most: int = 60) -> list[tuple[str, str]]:
    """Pairs (a beginning, what is then repeated) that may be bad for *pattern*."""
    parsed = _parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)
    groups: dict[int, str] = {}
    ops = list(parsed)
    found: dict[tuple[str, str], None] = {}

    def add(head: str, unit: str) -> None:
        if unit and len(unit) < 400 and len(found) < most:
            found.setdefault((head, unit))

    for op, value in _walk(parsed):  # single characters of what repeats come first: the commonest trouble
        if op in REPEATS:
            for inner_op, inner in value[2]:
                if inner_op is c.IN:
                    for ch in members(inner):
                        add("", ch)
                elif inner_op in (c.LITERAL, c.ANY, c.NOT_LITERAL):
                    add("", sample([(inner_op, inner)], groups))
    for n in range(1, len(ops) + 1):
        for pick in (0, 1):
            add("", sample(ops[:n], groups, pick))
    for n, (op, value) in enumerate(ops):
        if op in REPEATS or op is c.SUBPATTERN:
            head = sample(ops[:n], groups)
            for _, body in parts([(op, value)]):
                for pick in (0, 1):
                    made = sample(body, groups, pick)
                    add(head, made)
                    add("", made)
    for _, body in parts(parsed):
        add("", sample(body, groups))
    for sequence in _sequences(parsed):
        for n, (op, value) in enumerate(sequence):
            if op in REPEATS:
                head = sample(sequence[:n], groups)
                for one in _singles(value[2]):
                    add(head, one)
                add(head, sample(value[2], groups))
                add("", head + sample(value[2], groups))
    for ch in " \n\ta7":
        add("", ch)
    return list(found)


def _singles(items) -> Iterator[str]:
    for op, value in items:
        if op is c.IN:
            yield from members(value)


def _sequences(items) -> Iterator[list]:
    ops = list(items)
    yield ops
    for op, value in ops:
        if op in REPEATS:
            yield from _sequences(value[2])
        elif op is c.BRANCH:
            for way in value[1]:
                yield from _sequences(way)
        elif op is c.SUBPATTERN:
            yield from _sequences(value[3])
        elif op is c.ATOMIC_GROUP:
            yield from _sequences(value)
        elif op in (c.ASSERT, c.ASSERT_NOT):
            yield from _sequences(value[1])


def _walk(items) -> Iterator[tuple]:
    for op, value in items:
        yield op, value
        if op in REPEATS:
            yield from _walk(value[2])
        elif op is c.BRANCH:
            for way in value[1]:
                yield from _walk(way)
        elif op is c.SUBPATTERN:
            yield from _walk(value[3])
        elif op is c.ATOMIC_GROUP:
            yield from _walk(value)
        elif op in (c.ASSERT, c.ASSERT_NOT):
            yield from _walk(value[1])
        elif op is c.GROUPREF_EXISTS:
            for way in value[1:]:
                if way:
                    yield from _walk(way)
