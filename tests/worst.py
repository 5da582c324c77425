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
# Of each category a character that it takes, and how it is written.
CATEGORIES = {
    c.CATEGORY_DIGIT: ("7", r"\d"),
    c.CATEGORY_SPACE: (" ", r"\s"),
    c.CATEGORY_WORD: ("a", r"\w"),
    c.CATEGORY_NOT_DIGIT: ("a", r"\D"),
    c.CATEGORY_NOT_SPACE: ("a", r"\S"),
    c.CATEGORY_NOT_WORD: (" ", r"\W"),
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
    return CATEGORIES.get(value, ("a", ""))[0]


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
    return CATEGORIES.get(value, ("a", ""))[1]


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


def inside(op, value) -> list:
    """The sequences that one part of a parsed expression is made of."""
    if op in REPEATS:
        return [value[2]]
    if op is c.BRANCH:
        return value[1]
    if op is c.SUBPATTERN:
        return [value[3]]
    if op is c.ATOMIC_GROUP:
        return [value]
    if op in (c.ASSERT, c.ASSERT_NOT):
        return [value[1]]
    return [way for way in value[1:] if way] if op is c.GROUPREF_EXISTS else []


def sequences(items) -> Iterator[list]:
    """*items* and every sequence within."""
    yield list(items)
    for op, value in items:
        for sequence in inside(op, value):
            yield from sequences(sequence)


def parts(items) -> Iterator[object]:
    """Everything within *items* that is repeated or an alternative."""
    for op, value in items:
        for sequence in inside(op, value):
            if op in REPEATS or op is c.BRANCH:
                yield sequence
            yield from parts(sequence)


def walk(items) -> Iterator[tuple]:
    for op, value in items:
        yield op, value
        for sequence in inside(op, value):
            yield from walk(sequence)


def units(pattern: re.Pattern[str], most: int = 60) -> list[tuple[str, str]]:
    """Pairs (a beginning, what is then repeated) that may be bad for *pattern*."""
    parsed = _parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)
    groups: dict[int, str] = {}
    ops = list(parsed)
    found: dict[tuple[str, str], None] = {}

    def add(head: str, unit: str) -> None:
        if unit and len(unit) < 400 and len(found) < most:
            found.setdefault((head, unit))

    for op, value in walk(parsed):  # single characters of what repeats come first: the commonest trouble
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
            for body in parts([(op, value)]):
                for pick in (0, 1):
                    made = sample(body, groups, pick)
                    add(head, made)
                    add("", made)
    for body in parts(parsed):
        add("", sample(body, groups))
    for sequence in sequences(parsed):
        for n, (op, value) in enumerate(sequence):
            if op in REPEATS:
                head = sample(sequence[:n], groups)
                for inner_op, inner in value[2]:
                    for one in members(inner) if inner_op is c.IN else ():
                        add(head, one)
                add(head, sample(value[2], groups))
                add("", head + sample(value[2], groups))
    for ch in " \n\ta7":
        add("", ch)
    return list(found)
