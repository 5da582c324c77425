"""
The days that a question asks for, in English and German. "Since Monday" lasts until today.

German is read by writing its words for days in English, since the forms of dates (rules.py) are few and the same. Only
questions are read so: a note is dated by what English says surely.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date

from .rules import MONTHS, WEEKDAYS, When, resolve_dates

GERMAN_WEEKDAYS = ("Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag")
GERMAN_MONTHS = (
    *("Januar", "Februar", "März", "April", "Mai", "Juni"),
    *("Juli", "August", "September", "Oktober", "November", "Dezember"),
)
UNITS = {"tag": "days", "woche": "weeks", "monat": "months", "jahr": "years"}
COUNTED = ("ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn")
_N = rf"(?P<{{}}>\d{{{{1,3}}}}|{'|'.join(COUNTED)})(?:e[mnrs]?)?\s+(?P<{{}}>tag|woche|monat|jahr)(?:en|n|e)?"
# Words that make a text German; "am" and "in" are English as well.
GERMAN_DAY = re.compile(
    rf"\b(?:(?:vor)?gestern|heute|(?:über)?morgen|woche(?:n|nende)?|monat\w*|jahr\w*|tage?n?|{'|'.join(GERMAN_WEEKDAYS)}"
    r"|januar|februar|märz|mai|juni|juli|oktober|dezember|(?:im|seit|bis)\s+(?:april|august|september|november))\b",
    re.I,
)
_WORDS = re.compile(
    rf"\bvor\s+{_N.format('ago', 'ago_unit')}\b|\bin\s+{_N.format('ahead', 'ahead_unit')}\b"
    r"|\b(?P<day>\d\d?)\.(?=\s+[A-ZÄ])"
    r"|\b(?P<last>(?:letzt|vergangen|vorig)e[nrsm]?)\b|\b(?P<this>diese[nrsm]?)\b"
    r"|\b(?P<next>(?:nächst|kommend)e[nrsm]?)\b"
    rf"|\b(?P<weekday>{'|'.join(GERMAN_WEEKDAYS)})\b|\b(?P<month>{'|'.join(GERMAN_MONTHS)})\b"
    r"|\b(?P<since>seit)\b|\b(?P<at>am|an)\b|\b(?P<within>im)\b"
    r"|\b(?P<word>vorgestern|gestern|heute|übermorgen|(?<!guten )(?<!am )morgen|wochenende|woche|monat|jahr)\b"
    r"|\b(?P<past>war|waren|hatten?|gab|passiert|gemacht|gesagt|besprochen)\b"
    r"|\b(?P<plan>geplant|plan(?:e|en)|werden?)\b",
    re.I,
)
_ENGLISH = {
    **{"vorgestern": "the day before yesterday", "gestern": "yesterday", "heute": "today"},
    **{"übermorgen": "the day after tomorrow", "morgen": "tomorrow", "wochenende": "weekend"},
    **{"woche": "week", "monat": "month", "jahr": "year"},
}
_SINCE = re.compile(r"\b(?:since|seit)\s+(?:the\s+|de[mr]\s+)?$", re.I)


def days_asked(text: str, today: date) -> list[When]:
    """The days that *text*, a question of *today*, asks for, in reading order."""
    found = german_days(text, today) if GERMAN_DAY.search(text) else resolve_dates(text, today)
    return [
        when._replace(end=today) if when.start <= today and _SINCE.search(text, 0, when.at) else when
        for when in found
    ]


def german_days(text: str, today: date) -> list[When]:
    """The days of a German *text*; each phrase as it stands in *text*."""
    english = _English()
    for m in _WORDS.finditer(text):
        english.add(text, m)
    english.rest(text)
    whole = "".join(english.parts)
    found = []
    for when in resolve_dates(whole, today):
        start, end = english.place(when.at), english.place(when.after - 1) + 1
        end = next((m.end() for m in _WORDS.finditer(text) if m.start() < end <= m.end()), end)
        found.append(When(when.start, when.end, text[start:end], start))
    return found


@dataclass(slots=True)
class _English:
    """A text as it is put into English, and where each of its characters comes from."""

    parts: list[str] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    at: int = 0  # read so far

    def place(self, n: int) -> int:
        return self.places[n]

    def add(self, text: str, m: re.Match[str]) -> None:
        self._put(text[self.at : m.start()], self.at)
        word = _english_of(m)
        self.parts.append(word)
        self.places += [m.start()] * len(word)
        self.at = m.end()

    def rest(self, text: str) -> None:
        self._put(text[self.at :], self.at)

    def _put(self, text: str, since: int) -> None:
        self.parts.append(text)
        self.places += range(since, since + len(text))


def _english_of(m: re.Match[str]) -> str:
    kind, text = m.lastgroup or "", m[0]
    if kind.endswith("_unit"):
        n = m[kind.removesuffix("_unit")].lower()
        count = n if n.isdigit() else str(COUNTED.index(n) + 1)
        words = f"{count} {UNITS[m[kind].lower()]}"
        return f"{words} ago" if kind == "ago_unit" else f"in {words}"
    if kind == "weekday":
        return WEEKDAYS[[d.lower() for d in GERMAN_WEEKDAYS].index(text.lower())]
    if kind == "month":
        return MONTHS[[d.lower() for d in GERMAN_MONTHS].index(text.lower())]
    fixed = {"last": "last", "this": "this", "next": "next", "since": "since", "at": "on", "within": "in"}
    if kind == "day":
        return m["day"]
    return fixed.get(kind) or {"past": "was", "plan": "plan to"}.get(kind) or _ENGLISH[text.lower()]
