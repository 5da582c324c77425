"""Turns a statement into a note: the person's own words with dates in brackets, a title from these words, and an
event.

    “My sister Maya moved to Lisbon in May.”  →  “My sister Maya moved to Lisbon in May (2026-05).”"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta

from ..dates.days import span_text
from ..dates.rules import ARRANGED, MOVED, When, resolve_dates, tense_of
from ..text.words import STOP, cut_text
from .kinds import CLAUSE, QUOTED_NAME, cue, holds, straight

TITLE_CHARS = 50  # short enough for the name of a file
SHORTEST = 10  # least characters of a title's first clause if more than one day was removed from the text
SMALL = 2  # letters; a title does not end with a lower-case word as short as this
LONGEST_EVENT = 366  # days
# Words before a day that is not the day of the event ("not on Monday", "since May").
NOT_THE_DAY = re.compile(
    r"(?:\b(?:since|not|instead of|rather than|from|after)|n't)\s+(?:on\s+)?(?:the\s+)?$", re.I
)
IS_NAME = re.compile(r"\b(?:called|named|name(?:'s| is))\s+$", re.I)
TO = re.compile(r"\bto\s+(?:the\s+)?$", re.I)
UP_TO = re.compile(r"(?<!not )\bbefore\s+(?:the\s+)?$", re.I)  # "before March" ends with February
END = re.compile(r"(?:the\s+)?end of\b", re.I)
# Words before a day, which a title leaves out together with the day.
BEFORE_DAY = re.compile(
    r"[\s,(]*(?:\b(?:on|by|until|till|before|at|in|for|from|to|of|starting|since|am|bis|el|le|ab))?(?:\s+the)?\s*$",
    re.I,
)


def named_days(text: str, said: date) -> list[When]:
    """
    Find the days named in *text*, which was said on the day *said*.

    These days are left out:
    - a day in a name or a title
    - the day of a yearly birthday, unless its words name the year, or it is a birthday in one year only (`is_one_of`)
    """
    text = straight(text)
    found = resolve_dates(text, said)
    if (moved := MOVED.search(text)) and any(TO.search(text[moved.end() : d.at]) for d in found):
        found = resolve_dates(text, said, ahead=True)  # "moved from Thursday to Friday": both days lie ahead
    titles = [m.span() for m in QUOTED_NAME.finditer(text) if is_title(m[0])]
    days = [d for d in found if not IS_NAME.search(text[: d.at]) and not any(a < d.at < b for a, b in titles)]
    if holds("yearly", text):  # a yearly birthday has no day, unless its weekday or its year is named
        return [d for d in days if str(d.start.year) in d.phrase or is_one_of(d, text)]
    return days


def is_title(quoted: str) -> bool:
    """Whether *quoted* is written like the title of a book or film: "The Thursday Murder Club"."""
    words = quoted[1:-1].split()
    return len(words) > 1 and all(not word.islower() or word in STOP for word in words)


def is_one_of(day: When, text: str) -> bool:
    """
    Whether *day* is a birthday in one year only: "her birthday last Friday".

    False for the date of every birthday: "her birthday is May 8". True if the words for *day* name a weekday, or if
    *text* speaks of *day* in the past tense.
    """
    return "day" in day.phrase.lower() or tense_of(text, day.at, day.after) == "behind"


def in_brackets(when: When) -> str:
    """The text of a bracket: a day, a month, a year, or two days with ".." between them."""
    start, end = when.start, when.end
    if start.day == 1 and (end + timedelta(days=1)).day == 1:
        if (start.year, start.month) == (end.year, end.month):
            return f"{start:%Y-%m}"
        if (start.month, end.month, start.year) == (1, 12, end.year):
            return f"{start:%Y}"
    return span_text(start, end)


def with_days(text: str, days: Sequence[When]) -> str:
    """
    Write the date of each of *days* into *text*, behind the words for the day.

    The date stands in brackets. No date is added in two cases:
    - The words for the day name the year.
    - The same date was already added.
    """
    out, at = "", 0
    told: set[tuple[date, date]] = set()
    for when in days:
        if str(when.start.year) in when.phrase or (when.start, when.end) in told:
            continue
        told.add((when.start, when.end))
        end = when.after
        out += f"{text[at:end]} ({in_brackets(when)})"
        at = end
    return out + text[at:]


def event_of(text: str, days: Sequence[When], said: date) -> str | None:
    """
    Return when the event in *text* happens: a day, or first and last day ("2026-03-05..2026-03-07").

    Takes the first of *days* that fits; None if none fits. If *text* is about a plan, days that are not over come
    first.
    """
    text = straight(text)
    moved = [m.end() for m in re.finditer(rf"[,.;…—–-]\s*(?:{cue('right').pattern})[,.:;!\s]", text, re.I)]
    found = [
        d
        for d in days
        if (d.end - d.start).days <= LONGEST_EVENT
        and (d.start != d.end or not NOT_THE_DAY.search(text[: d.at]))
    ]
    if moved and (later := [d for d in found if d.at >= moved[-1]]):
        found = later  # "tomorrow… no, Monday"
    ahead = [d for d in found if d.end >= said]
    if ahead and (ARRANGED.search(text) or any(tense_of(text, d.at, d.after) == "ahead" for d in ahead)):
        found = ahead
    if not found:
        return None
    day = next((d for d in found if (d.end - d.start).days < 31), found[0])
    start, end = day.start, day.end
    if start != end and end >= said and UP_TO.search(text[: day.at]):
        start = end = end if END.match(day.phrase) else start - timedelta(days=1)
    return span_text(start, end)


def person_in(text: str, at: int) -> str:
    """
    The person or pet whom the speaker calls "my …" at *at*: "Sister Maya" in "My sister Maya lives in Lisbon". "" if
    the text has no such words at *at*.
    """
    m = cue("person").match(straight(text), at)
    name = text[m.start() : m.end()].partition(" ")[2] if m else ""
    return name[:1].upper() + name[1:]


def ends_badly(word: str) -> bool:
    """Whether a title should not end with *word*: it is a stop word, or a very short word."""
    return word.lower() in STOP or (word.islower() and len(word) <= SMALL)


def title_of(text: str, at: int, days: Sequence[When]) -> str:
    """
    Make a title from the clause of *text* that begins at *at*: the clause's own words, without "I" and without
    *days*.
    """
    out, end = "", at
    for when in days:
        if when.at >= end:
            before = text[end : when.at]
            out += BEFORE_DAY.sub("", before, count=1) if when.at > at else before
            end = when.after
    said = " ".join((out + text[end:]).split())
    if m := cue("subject").match(straight(said)):
        rest = said[m.end() :].lstrip()
        said = rest if len(rest.split()) > 1 or len(rest) > 3 else said
    least = TITLE_CHARS // 2 if len(days) < 2 else SHORTEST  # the second day belongs to another clause
    border = next((m.start() for m in CLAUSE.finditer(said) if m.start() > least), None)
    said = said[:border] if border and border <= TITLE_CHARS else said
    cut = cut_text(said, TITLE_CHARS).rstrip("….") if len(said) > TITLE_CHARS else said
    kept = cut.strip(" .,;:!?-–—\"'“”„«»()*_。，！").split(" ")
    while (days or cut != said) and len(kept) > 2 and ends_badly(kept[-1]):
        kept.pop()
    title = " ".join(kept).strip(" ,;:-–—")
    return title[:1].upper() + title[1:]
