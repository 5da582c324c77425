"""
Days in spans: the week around a day, the day two months on, which of several years is meant; words for them.

One rule: a span is its first and its last day, both included.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date, timedelta

ONE_DAY = timedelta(days=1)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}  # first month; northern
NEAR_DAYS = 60  # a day so near needs no verb
Days = tuple[date, date]  # the first and the last


def span_around(day: date, unit: str) -> Days:
    """The *unit* that *day* lies in: "week", "weekend", "month", "quarter", "year"; else the day."""
    monday = day - day.weekday() * ONE_DAY
    if unit in ("week", "fortnight"):
        return monday, monday + 6 * ONE_DAY
    if unit == "weekend":
        return monday + 5 * ONE_DAY, monday + 6 * ONE_DAY
    if unit == "month":
        return month_span(day.year, day.month, 1)
    if unit == "quarter":
        return month_span(day.year, (day.month - 1) // 3 * 3 + 1, 3)
    if unit == "year":
        return date(day.year, 1, 1), date(day.year, 12, 31)
    return day, day


def month_span(year: int, month: int, n: int) -> Days:
    """*n* months from *month* of *year* on."""
    after = year * 12 + month - 1 + n
    return date(year, month, 1), date(after // 12, after % 12 + 1, 1) - ONE_DAY


def shift_day(day: date, unit: str, n: int) -> date:
    """*day* moved by *n* units; for months and longer, to the first of the month."""
    if size := {"month": 1, "quarter": 3, "year": 12}.get(unit):
        at = day.year * 12 + day.month - 1 + n * size
        return date(at // 12, at % 12 + 1, 1)
    return day + n * {"week": 7, "weekend": 7, "fortnight": 14}.get(unit, 1) * ONE_DAY


def pick_days(candidates: Sequence[Days], said: date, tense: str, doubt: bool = False) -> Days | None:
    """
    Of the same days in several years, those meant: the last begun, the next to end, or the nearest.

    *doubt*: a day within two months is meant all the same, rather than one of another year that the tense tells.
    """
    if len(candidates) == 1:  # the year was said
        return candidates[0]

    def off(days: Days) -> int:
        return max((days[0] - said).days, (said - days[1]).days, 0)

    told = candidates
    if tense == "behind":
        told = [s for s in candidates if s[0] <= said][-1:]
    elif tense == "ahead":
        told = [s for s in candidates if s[1] >= said][:1]
    nearest = min(candidates, key=off, default=None)
    return nearest if doubt and nearest and off(nearest) <= NEAR_DAYS else min(told, key=off, default=None)


def choose_days(which: str, candidates: Sequence[Days], said: date, tense: str) -> Days | None:
    """As pick_days, but "last", "this" or "next" decides where it stands."""
    if not which:
        return pick_days(candidates, said, tense)
    if direction(which) < 0:
        return max(s for s in candidates if s[1] < said)
    if direction(which) > 0:
        return min(s for s in candidates if s[0] > said)
    return max(s for s in candidates if s[0].year == said.year)


def direction(which: str) -> int:
    """-1 for "last" and "this past", 1 for "next" and "this coming", 0 for "this"."""
    last = which.lower().rpartition(" ")[2]
    return {"last": -1, "past": -1, "previous": -1, "next": 1, "coming": 1, "upcoming": 1}.get(last, 0)


COUNTING = "one two three four five six seven eight nine ten eleven twelve"
_NUMBERS = {word: n for n, word in enumerate(COUNTING.split(), 1)}
_NUMBERS |= {"a": 1, "an": 1, "another": 1, "couple": 2, "dozen": 12}
_VAGUE = {"few": (2, 5), "several": (3, 7)}


def number_range(text: str) -> tuple[int, int]:
    """The least and the most that *text* may mean: "a few" is 2 to 5."""
    word = " ".join(text.lower().split()).removeprefix("a ").removesuffix(" of")
    n = int(word) if word.isdigit() else _NUMBERS.get(word, 0)
    return _VAGUE.get(word, (n, n))


def place_in_list(names: Iterable[str], text: str) -> int:
    """Which of *names* begins as *text* does, in three letters."""
    return next(i for i, name in enumerate(names) if name[:3].lower() == text[:3].lower())


def day_number(text: str) -> int:
    """The day of "7th"."""
    return int(re.sub(r"\D", "", text))
