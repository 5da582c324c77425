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
from dataclasses import dataclass, replace
from datetime import date, datetime

from ..dates.days import event_span
from ..dates.spoken import resolve_dates
from ..text.negation import negations
from ..text.words import ISO_DAY, Words, told_words
from .judge import days_in, is_persons, statement
from .notes import days_of
from .sight import DAYS_CHARS, Ground, Sight
from .statements import clauses_of, sentences_of

# "a week later": counted from the day that the note has, and not from today
SHIFT = re.compile(r"\b(?:an?|one|two|three|four|five|six|\d{1,3}) (?:day|week|month|year)s?\b", re.I)
WEEKDAY = re.compile(r"\b(mon|tue|wed|thu|fri|sat|sun)[a-z]*day", re.I)
ONLY = re.compile(r"\b(?:only|just|nur|seulement|solo|soltanto|apenas|alleen)\b", re.I)
YEAR = re.compile(r"(?<=[a-z]\s)(?:19|20)\d\d\b")
NAME_OR_NUMBER = re.compile(r"(?<=[^.!?\s]\s)[^\W\d_a-z][\w'-]*|(?<!\S)\S{0,60}?\d\S{0,60}")
ANY_DAY = date(2000, 1, 3)
MOVED_DAYS = 31  # of the day that it had, or of today: where a day is told by its number alone


@dataclass(frozen=True, slots=True)
class Correction:
    """A sentence of a note, and what takes its place."""

    was: str
    says: str
    event: str | None = None  # day or days of what happens, if they change
    event_was: str | None = None


def taken_days(made: Correction) -> frozenset[date]:
    """Those that do not hold any more."""
    was, now = set(days_of(made.event_was or "")), set(days_of(made.event or ""))
    return (days_in(made.was) | (was if now else set())) - days_in(made.says) - now


def is_asked_for(made: Correction, ground: Ground, sight: Sight) -> bool:
    """Whether the person says what *made* says. *ground*: their message, with the note as what is known."""
    said = statement(made.says)
    if not is_persons(said, ground, sight):
        return False
    clauses = tuple(said_clauses(ground))
    if unsaid_names(made, ground, clauses) or unsaid_denial(made, clauses):
        return False
    ground = replace(ground, texts=clauses)
    return is_spoken_of(made, ground) and all(
        is_their_day(day, made, ground, sight) for day in new_days(made)
    )


def said_clauses(ground: Ground) -> Iterator[str]:
    """What they state: the clauses of their message without its questions, but for those they said yes to."""
    for text in ground.texts:
        for sentence in sentences_of(text):
            for clause, asks in clauses_of(sentence):
                if not asks or (ground.accepted and told_words(clause) <= ground.accepted):
                    yield clause


def unsaid_names(made: Correction, ground: Ground, clauses: tuple[str, ...]) -> bool:
    """Whether it brings in a name, a number or a weekday that they did not say."""
    fresh = told_words(
        " ".join(NAME_OR_NUMBER.findall(YEAR.sub("", ISO_DAY.sub(" ", made.says))))
    ) - told_words(made.was)
    days = {m[1].lower() for m in WEEKDAY.finditer(made.says)} - {
        m[1].lower() for m in WEEKDAY.finditer(made.was)
    }
    said = " ".join(clauses)
    if made.event or resolve_dates(said[:DAYS_CHARS], ANY_DAY):  # as "tomorrow", or in another language
        days = set()
    return bool(fresh - ground.own.of(fresh)) or any(not re.search(rf"\b{day}", said, re.I) for day in days)


def unsaid_denial(made: Correction, clauses: tuple[str, ...]) -> bool:
    """Whether it denies something anew that they did not deny in one clause."""
    if not negations(made.says) - negations(made.was):
        return False
    theirs = [Words(told_words(clause)) for clause in clauses if negations(clause)]
    parts = [clause for sentence in sentences_of(made.says) for clause, _ in clauses_of(sentence)]
    new = [told_words(part) for part in parts if negations(part)]
    return not all(any(2 * len(said.of(words)) >= len(words) for said in theirs) for words in new)


def is_spoken_of(made: Correction, ground: Ground) -> bool:
    """Where nothing new is said, only left out or turned round: whether they speak of it, and not only near it."""
    new, gone = told_words(made.says), told_words(made.was) - told_words(made.says)
    if new - told_words(made.was) or new_days(made):
        return True
    if negations(made.says) - negations(made.was):  # in their words, as was looked at before
        return True
    if gone:
        return 2 * len(ground.own.of(gone)) >= len(gone) or any(map(ONLY.search, ground.texts))
    return any(2 * len(Words(told_words(text)).of(new)) > len(new) for text in ground.texts)


def new_days(made: Correction) -> frozenset[date]:
    known = days_in(made.was) | set(days_of(made.event_was or ""))
    return (days_in(made.says) | set(days_of(made.event or ""))) - known


def is_their_day(day: date, made: Correction, ground: Ground, sight: Sight) -> bool:
    """Whether the person names *day*, by its date, its number or a weekday, or how far it moved."""
    number = re.compile(
        rf"(?<!\d)0?{day.day}(?:st|nd|rd|th|\.)(?!\w)"
        rf"|\b(?:the|on|to|am|den|auf|le|el|il|al) 0?{day.day}(?=\s{{0,3}}(?:$|[.,;!?]|(?:at|now|instead|please|um)\b))",
        re.I,
    )
    before = event_span(made.event_was) or ()
    near = any(abs((day - was).days) <= MOVED_DAYS for was in before) or any(
        0 <= (day - datetime.fromtimestamp(m.timestamp / 1000, sight.zone).date()).days <= MOVED_DAYS
        for m in sight.messages[-1:]
    )
    return (
        sight.speaks_of(ground, day)
        or (near and any(number.search(text) for text in ground.texts))
        or any(
            start <= day <= end for text in ground.texts for start, end in moved_days(text, made.event_was)
        )
    )


def moved_days(text: str, event: str | None) -> Iterator[tuple[date, date]]:
    """The days that *text* moves *event* to: "a week later", "two days earlier"."""
    for from_day in event_span(event) or ():
        for m in SHIFT.finditer(text[:DAYS_CHARS]):
            for when in (*resolve_dates(f"in {m[0]}", from_day), *resolve_dates(f"{m[0]} ago", from_day)):
                yield when.start, when.end
