"""Writes days as words, seen from today ("3 weeks ago"); finds the days that a question asks for; reads time zones."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import cache, lru_cache
from pathlib import Path
from zoneinfo import ZoneInfo

from ..errors import how_many
from .rules import MONTHS, WEEKDAYS, When, full_dates, looks_ahead, resolve_dates

MS_PER_DAY = 86_400_000
ISO_DAY = re.compile(r"(?<!\d)\d{4}-\d\d-\d\d(?!\d)")


def relative_day(day: date, today: date) -> str:
    """Say how far *day* is from *today*: "yesterday", "3 weeks ago", "in 2 months"."""
    n = (day - today).days
    if n in (-1, 0, 1):
        return ("yesterday", "today", "tomorrow")[n + 1]
    return f"{_length(-n)} ago" if n < 0 else f"in {_length(n)}"


def pause_text(seconds: float) -> str | None:
    """Say how long a pause is, in its two largest units: "2 weeks 3 days". None below ten minutes."""
    minutes = int(seconds // 60)
    if minutes < 10:
        return None
    for size, unit, part, smaller in _PAUSES:
        if minutes >= size:
            return _unit_words((minutes // size, unit), (minutes % size // part, smaller))
    return _unit_words((minutes, "minute"))


# In minutes: a unit, and the smaller one beside it.
_PAUSES = (
    *((525_600, "year", 43_200, "month"), (43_200, "month", 10_080, "week")),
    *((10_080, "week", 1_440, "day"), (1_440, "day", 60, "hour"), (60, "hour", 1, "minute")),
)


def due_text(event: str | None, today: date, loop: str | None = None, said: date | None = None) -> str:
    """
    Return when a note's *event* is, seen from *today*: "in 2 days", "3 weeks ago".

    Returns "" without an event. Two kinds of notes get other words:

    - *loop* is "open": something is still to be done. Until the event is over: "due tomorrow". In the two weeks after:
      "was due yesterday", unless *said* is the event's last day. Later: "planned for …, has probably happened", unless
      *said* is the event's last day or a later day.
    - *loop* is None, and the text is from the day *said*, when the event was still ahead. Once the event is over:
      "planned for …, has probably happened".
    """
    days = event_span(event)
    if days is None:
        return ""
    start, end = days
    if loop == "open":
        if end >= today:
            return f"due {relative_day(end, today)}"
        if (today - end).days <= 14 and end != said:
            return f"was due {relative_day(end, today)}"
        if said is not None and end <= said:
            return relative_day(end, today)
        return f"planned for {days_text(days)}, has probably happened"
    if start > today:
        return relative_day(start, today)
    if end >= today:
        return "today" if start == end else f"until {end}"
    if loop is None and said is not None and start > said:
        return f"planned for {days_text(days)}, has probably happened"
    return relative_day(end, today)


def event_span(event: str | None) -> tuple[date, date] | None:
    """The first and the last day of "2026-03-05" or "2026-03-05..2026-03-08"; None for any other text."""
    first, _, last = (event or "").partition("..")
    try:
        start = date.fromisoformat(first.strip())
        end = date.fromisoformat(last.strip()) if last else start
    except ValueError:
        return None
    return (start, end) if start <= end else (end, start)


def days_in(text: str) -> frozenset[date]:
    """The days that *text* names in ISO form, such as 2026-03-05."""
    found = set()
    for m in ISO_DAY.finditer(text):
        with suppress(ValueError):
            found.add(date.fromisoformat(m[0]))
    return frozenset(found)


def says_day(text: str, day: date) -> bool:
    """Whether *text* names *day*, with or without its year."""
    month = f"(?:{MONTHS[day.month - 1][:3]})\\w{{0,7}}"
    number = f"0?{day.day}(?:st|nd|rd|th|\\.)?"
    plain = rf"\b{number}\s(?:of\s)?{month}\b|\b{month}\s{number}\b|\b0?{day.day}\.0?{day.month}\.(?!\d\d?\b)"
    return day.isoformat() in text or bool(re.search(plain, text, re.I))


def span_text(first: date, last: date) -> str:
    """A day in ISO form, or the first and the last day with ".." between them."""
    return "..".join(dict.fromkeys((first.isoformat(), last.isoformat())))


@lru_cache(maxsize=2048)  # 0.1 ms a call, and the tokens of a line are counted several times for one prompt
def mark_past_plans(text: str, today: date, said: date | None = None) -> str:
    """
    Mark planned dates in *text* that are past: "(2 weeks ago, has probably happened)".

    A date is planned if its sentence looks ahead: "the talk will be on 5 March 2026". These dates are never marked:

    - a date without a year
    - a date in a link or in a name
    - the day *said*, on which the text was said

    A second call with the same text adds nothing.
    """
    out, at = "", 0
    for start, end, (_, last) in full_dates(text):
        following = text[end : end + 1]
        in_link = text.rfind("[[", 0, start) > text.rfind("]]", 0, start)
        if in_link or following.isalnum() or _SAID.match(text, end):
            continue
        if last >= today or last == said or not looks_ahead(text, start, end):
            continue
        note = f"{relative_day(last, today)}, has probably happened"
        # "(meaning 2026-03-05)" is already in brackets
        out += text[at:end] + (f", {note}" if following == ")" else f" ({note})")
        at = end
    return out + text[at:]


_SAID = re.compile(r" \(|, (?:today|yesterday|tomorrow|in \d|\d+ \w+ ago)")


def days_text(days: tuple[date, date]) -> str:
    """A day, or a span as people write it: "2026-03-05 to 2026-03-08"."""
    return str(days[0]) if days[0] == days[1] else f"{days[0]} to {days[1]}"


def _length(days: int) -> str:
    # Days to two weeks, weeks to a month, months to a year, all rounded down.
    if days == 7:
        return "1 week"
    for size, unit, below in ((1, "day", 14), (7, "week", 30), (30, "month", 365)):
        if days < below:
            return _unit_words((days // size, unit))
    return _unit_words((days // 365, "year"))


def _unit_words(*amounts: tuple[int, str]) -> str:
    return " ".join(how_many(n, unit) for n, unit in amounts if n)


def day_words(day: date) -> str:
    """The words by which someone may search for *day*: "2026-03-05 5 March 2026 Thursday"."""
    return f"{day} {day.day} {MONTHS[day.month - 1]} {day.year} {WEEKDAYS[day.weekday()]}"


# The last time that is read, since Python's calendar ends in 9999. Times as far before 1970 are not read either.
LAST_MS = 250_000_000_000_000


def day_of_ms(ms: int, zone: tzinfo) -> date:
    """The day in *zone* of the time *ms*, in ms since the epoch. A time after LAST_MS counts as LAST_MS."""
    return datetime.fromtimestamp(min(ms, LAST_MS) / 1000, zone).date()


def iso_time(ms: int) -> str:
    """*ms* since the epoch as ISO text in UTC; "" for 0, which means never."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds") if ms else ""


def time_text(iso: str, zone: tzinfo, timespec: str = "minutes") -> str:
    """An ISO time as a person in *zone* reads it: `2026-03-05 14:30`. Any other text is returned unchanged."""
    try:
        moment = datetime.fromisoformat(iso)
    except ValueError:
        return iso
    return moment.astimezone(zone).replace(tzinfo=None).isoformat(" ", timespec)


@cache
def time_zone(name: str) -> tzinfo:
    """The time zone called *name*; for "" the zone of the system. UTC if there is no such zone."""
    if name := name or os.environ.get("TZ", "").lstrip(":"):
        try:
            return ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            return UTC  # a wrong TZ: the configuration rejects wrong names
    try:
        with Path("/etc/localtime").open("rb") as f:
            return ZoneInfo.from_file(f, key="local")
    except (OSError, ValueError):
        return UTC


# --- The days that a question asks for, in English and German. "Since Monday" lasts until today.
# "On 27 February" means the last such day, and also the next one.
#
# German words for days are replaced by English ones, because both languages have the same few forms of dates (rules.py).
# Only questions are read in German. Notes get their days from English text alone, which is more certain.


GERMAN_WEEKDAYS = ("Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag")
GERMAN_MONTHS = (
    *("Januar", "Februar", "März", "April", "Mai", "Juni"),
    *("Juli", "August", "September", "Oktober", "November", "Dezember"),
)
COUNTED = ("ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn")
_UNITS = {"tag": "days", "woche": "weeks", "monat": "months", "jahr": "years"}
_STEMS = {  # stems: the text has an ending, too, as in "letzten" or "diese"
    **dict.fromkeys(("letzt", "vergangen", "vorig"), "last"),
    **{"dies": "this", "nächst": "next", "kommend": "next"},
}
_ENGLISH = {
    **dict(zip(map(str.lower, (*GERMAN_WEEKDAYS, *GERMAN_MONTHS)), (*WEEKDAYS, *MONTHS), strict=True)),
    **{"vorgestern": "the day before yesterday", "gestern": "yesterday", "heute": "today"},
    **{"übermorgen": "the day after tomorrow", "morgen": "tomorrow", "wochenende": "weekend"},
    **{
        "woche": "week",
        "monat": "month",
        "jahr": "year",
        "seit": "since",
        "am": "on",
        "an": "on",
        "im": "in",
    },
    **dict.fromkeys("war waren hatte hatten gab passiert gemacht gesagt besprochen".split(), "was"),
    **dict.fromkeys("geplant plane planen werde werden".split(), "plan to"),
}
# Words that make a text German; "am" and "in" are English as well.
GERMAN_DAY = re.compile(
    rf"\b(?:(?:vor)?gestern|heute|(?:über)?morgen|woche(?:n|nende)?|monat\w*|jahr\w*|tage?n?|{'|'.join(GERMAN_WEEKDAYS)}"
    r"|januar|februar|märz|mai|juni|juli|oktober|dezember|(?:im|seit|bis)\s+(?:april|august|september|november))\b",
    re.I,
)
_GERMAN = re.compile(
    rf"\b(?P<way>vor|in)\s+(?P<n>\d{{1,3}}|{'|'.join(COUNTED)})(?:e[mnrs]?)?\s+(?P<unit>{'|'.join(_UNITS)})(?:en|n|e)?\b"
    rf"|\b(?P<day>\d\d?)\.(?=\s+[A-ZÄ])|\b(?P<stem>{'|'.join(_STEMS)})e[nrsm]?\b"
    rf"|\b(?!(?:(?<=guten )|(?<=am ))morgen\b)(?P<word>{'|'.join(_ENGLISH)})\b",
    re.I,
)
_MONTH = re.compile("|".join(rf"\b{month[:3]}" for month in (*MONTHS, *GERMAN_MONTHS)), re.I)
# A phrase with one of these words means one certain year: "last May", "Monday, 2 March".
_ONE_YEAR = re.compile(
    rf"\d{{4}}|\b(?:last|letzt|vergangen|vorig|{'|'.join((*WEEKDAYS, *GERMAN_WEEKDAYS))})", re.I
)
_SINCE = re.compile(r"\b(?:since|seit)\s+(?:the\s+|de[mr]\s+)?$", re.I)


def days_asked(text: str, today: date) -> list[When]:
    """The days that the question *text*, asked *today*, is about, in reading order."""
    found = german_days(text, today) if GERMAN_DAY.search(text) else resolve_dates(text, today)
    asked = []
    for when in found:
        if when.start <= today and _SINCE.search(text, 0, when.at):
            asked.append(when._replace(end=today))
            continue
        asked.append(when)
        if when.end < today and _MONTH.search(when.phrase) and not _ONE_YEAR.search(when.phrase):
            years = today.year - when.end.year
            next_ones = (in_later_year(when, n) for n in (years, years + 1))
            asked += [next(other for other in next_ones if other.end >= today)]
    return asked


def in_later_year(when: When, years: int) -> When:
    """*when*, moved by *years*. 29 February becomes 1 March."""
    start, end = (
        date(day.year + years, day.month, 1) + timedelta(day.day - 1) for day in (when.start, when.end)
    )
    return when._replace(start=start, end=end)


def german_days(text: str, today: date) -> list[When]:
    """The days in a German *text*, each with its words as they stand in *text*."""
    # The text in English; the position in *text* of each of its characters.
    parts, places, at = list[str](), list[int](), 0
    words = list(_GERMAN.finditer(text))
    for m in words:
        english = _english_of(m)
        parts += [text[at : m.start()], english]
        places += [*range(at, m.start()), *[m.start()] * len(english)]
        at = m.end()
    places += range(at, len(text))
    found = []
    for when in resolve_dates("".join(parts) + text[at:], today):
        start, end = places[when.at], places[when.after - 1] + 1
        end = next((m.end() for m in words if m.start() < end <= m.end()), end)
        found.append(When(when.start, when.end, text[start:end], start))
    return found


def _english_of(m: re.Match[str]) -> str:
    if n := m["n"]:
        count = n if n.isdigit() else COUNTED.index(n.lower()) + 1
        words = f"{count} {_UNITS[m['unit'].lower()]}"
        return f"{words} ago" if m["way"].lower() == "vor" else f"in {words}"
    if m["stem"]:
        return _STEMS[m["stem"].lower()]
    return m["day"] or _ENGLISH[m["word"].lower()]
