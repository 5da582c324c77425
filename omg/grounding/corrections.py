"""
Whether a person asked for a correction: that what a note says is wrong, or has changed.

A page that a tool fetched may have talked a model into it, and a tool's result of the same turn is nowhere to be seen here.
So the words are held to the strictest measure, with days and denials that the rest of grounding leaves to others' words.
Not here: finding the note (tools/correcting.py), changing it (curate/correct.py). One rule: what the person did not say, or
take up when it was proposed, changes nothing that is remembered.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from ..dates.days import event_span
from ..dates.spoken import resolve_dates
from .judge import is_persons, statement, whole_day
from .notes import days_of
from .sight import DAYS_CHARS, Ground, Sight
from .statements import negations
from .words import ISO_DAY, told_words

# "a week later": counted from the day that the note has, and not from today
SHIFT = re.compile(r"\b(?:an?|one|two|three|four|five|six|\d{1,3}) (?:day|week|month|year)s?\b", re.I)


@dataclass(frozen=True, slots=True)
class Correction:
    """A sentence of a note, and what takes its place."""

    was: str
    says: str
    event: str | None = None  # day or days of what happens, if they change
    event_was: str | None = None


def days_in(text: str) -> set[date]:
    return {day for m in ISO_DAY.finditer(text) if (day := whole_day(m[0]))}


def taken_days(made: Correction) -> set[date]:
    """Those that do not hold any more."""
    was, now = set(days_of(made.event_was or "")), set(days_of(made.event or ""))
    return (days_in(made.was) | (was if now else set())) - days_in(made.says) - now


def is_asked_for(made: Correction, ground: Ground, sight: Sight) -> bool:
    """Whether the person says what *made* says. *ground*: their message, with the note as what is known."""
    said = statement(made.says)
    if not is_persons(said, ground, sight):
        return False
    if negations(made.says) - negations(made.was) and not any(map(negations, ground.texts)):
        return False
    return is_spoken_of(made, ground) and all(
        is_their_day(day, made, ground, sight) for day in new_days(made)
    )


def is_spoken_of(made: Correction, ground: Ground) -> bool:
    """Where nothing new is said, only left out or turned round: whether they speak of it, and not only near it."""
    new, gone = told_words(made.says), told_words(made.was) - told_words(made.says)
    if new - told_words(made.was) or new_days(made):
        return True
    return 2 * len(ground.stated.of(new)) > len(new) or (
        bool(gone) and 2 * len(ground.own.of(gone)) >= len(gone)
    )


def new_days(made: Correction) -> set[date]:
    known = days_in(made.was) | set(days_of(made.event_was or ""))
    return (days_in(made.says) | set(days_of(made.event or ""))) - known


def is_their_day(day: date, made: Correction, ground: Ground, sight: Sight) -> bool:
    """Whether the person names *day*, by its date, its number or a weekday, or how far it moved."""
    number = re.compile(rf"(?<!\d)0?{day.day}(?:st|nd|rd|th|\.)?(?![\w:])", re.I)
    return (
        sight.speaks_of(ground, day)
        or any(number.search(text) for text in ground.texts)
        or any(
            start <= day <= end for text in ground.texts for start, end in moved_days(text, made.event_was)
        )
    )


def moved_days(text: str, event: str | None) -> Iterator[tuple[date, date]]:
    """The days that *text* moves *event* to: "a week later", "two days earlier"."""
    for from_day in event_span(event) or ():
        for m in SHIFT.finditer(text[:DAYS_CHARS]):
            for when in (
                *resolve_dates(f"in {m[0]}", from_day),
                *resolve_dates(f"{m[0]} ago", from_day),
            ):
                yield when.start, when.end
