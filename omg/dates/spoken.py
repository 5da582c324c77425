"""The days that a text speaks of: "next Friday", "in May", "3 weeks ago", said on a day → the days meant."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import NamedTuple

from .rules import DATED_RULES, RULES, Rule
from .spans import Days
from .tense import INTENT, sentence_around, tense_of


class When(NamedTuple):
    """The first and the last day meant, and the words that say so, exactly as they stand in the text."""

    start: date
    end: date
    phrase: str


def resolve_dates(text: str, said: date, ahead: bool = False) -> list[When]:
    """
    The days that *text*, said on *said*, speaks of; in reading order, never overlapping.

    Weeks begin on Monday, but on a Sunday "last week" is the seven days before it. "next Friday" is in next week, "last
    Friday" is the latest before *said*. A bare weekday and a date without a year lie ahead in a plan and behind in a
    report, as the verbs and "for", "by" and "until" tell. Where nothing tells, the weekday lies ahead, and the date in
    the nearest year. A date within two months is taken for the one meant if its verb allows that ("the deadline is May
    28", said in June). A weekday named with a date has to fit. *ahead*: every day lies ahead, whatever the verbs.
    Recurring days ("every Friday", "on Mondays") are left out.
    """
    return [
        When(*days, text[start:end].rstrip("."))
        for start, end, days in _found(text, said, RULES, ahead=ahead)
    ]


def full_dates(text: str) -> list[tuple[int, int, Days]]:
    """`(start, end, days)` for each date in *text* that names day, month and year."""
    return _found(text, date(2000, 1, 1), DATED_RULES, with_year=True)


def looks_ahead(text: str, start: int, end: int) -> bool:
    """Whether the sentence up to *start* speaks of a plan: "is going to", "plans to"."""
    return bool(INTENT.search(sentence_around(text, start, end)[0]))


LOOKED_AT = 8_000  # chars in which days are sought, at 25 µs a char: no question and no note is longer


def _found(
    text: str, said: date, rules: Iterable[Rule], with_year: bool = False, ahead: bool = False
) -> list[tuple[int, int, Days]]:
    """Every match that means something; what an earlier rule matched, no later one touches."""
    found: list[tuple[int, int, Days]] = []
    text = text[:LOOKED_AT]
    taken = bytearray(len(text))
    for pattern, meaning in rules:
        for m in pattern.finditer(text):
            start, end = m.span()
            if any(taken[start:end]) or (with_year and not m.groupdict("")["year"]):
                continue
            try:
                days = meaning(m, said, "ahead" if ahead else tense_of(text, start, end))
            except (ValueError, OverflowError):  # 31 February, the year 10000
                continue
            if days:
                found.append((start, end, (min(days), max(days))))
            if days is not None:
                taken[start:end] = b"x" * (end - start)
    return sorted(found)
