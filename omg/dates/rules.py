"""
The forms of dates in English: a pattern for each, and the days that a match means.

A phrase that could be two different days, such as 5/7/2023, is left alone: no date is better than a wrong one.
A range is as wide as what was said; "two weeks ago" is a week, "in 2022" a year.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date, timedelta
from typing import NamedTuple

# --- Days in spans: the week around a day, the day two months on, which of several years is meant; words for them.
#
# A span is its first and its last day, both included.


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
    Choose the year that is meant: the latest days that began, the next to end, or the nearest.

    *doubt*: prefer a day within two months over the one in another year that the tense suggests.
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
    """As pick_days, but "last", "this" or "next" decides if it is there."""
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


# --- Whether the words around a date look back or ahead. English only.


# The person Will does not look forward to anything.
INTENT = re.compile(
    r"\b(?:(?-i:will)|(?-i:^Will(?= [a-z]))(?! \w+s\b)|(?:am|is|are|be) to|shall|plan(?:s|ned|ning)?"
    r"|going to|gonna|looking forward|intend(?:s|ed|ing)?|wants?|needs?|about to|hop(?:es?|ing)|due|deadline|scheduled"
    r"|expect(?:s|ed|ing)?|promised|decided to)\b|['’]ll\b",
    re.I,
)
AHEAD = re.compile(
    INTENT.pattern + r"|\b(?:must|should|ha(?:ve|s) to|gotta|let['’]s|remind|upcoming|see you"
    r"|leaves|departs|arrives|starts|begins|expires|takes (?:place|off)"  # as timetables say it
    r"|excited|wait|(?:can|could) (?:we|you|i)|(?:i['’]m|we['’]re|is|are|am) \w+ing)\b",
    re.I,
)
# What was arranged lies ahead, where its day comes after it: "bought tickets for the concert on 12 January".
ARRANGED = re.compile(
    r"\b(?:booked|reserved|arranged|registered|enrolled|signed up|invited|tickets?)\b[^,;:]{0,80}?\b(?:for|to)\b",
    re.I,
)
BEHIND = re.compile(
    r"\b(?:was|were|did|didn['’]t|had|went|got|came|saw|made|took|met|bought|said|told|gave|found|left|felt|ate|won"
    r"|lost|began|broke|spoke|wrote|ran|sent|spent|thought|knew|kept|held|heard|built|taught|drove|flew|sold|paid"
    r"|(?!hundred)[a-z]{2,}[^\We]ed)\b",
    re.I,
)
FINITE = re.compile(r"was|were|did|didn['’]t|went|came|saw|took|gave|ate|wrote|knew|drove|flew", re.I)
CLAUSE = re.compile(
    r"[,;:—–(]|\b(?:and|but|so|because|which|after|when|as)\b|\b(?:i|we|he|she|they|who|has|have)\s+(?:\w+ly\s+)?\Z",
    re.I,
)
# What looks ahead and can mean no day that is past: a deadline can, and so can what somebody waits for.
FUTURE = re.compile(r"\b(?:(?-i:will)|shall|going to|gonna|remind|plan(?:s|ning)? to)\b|['’]ll\b", re.I)
_NEAR = 200  # chars
_STOPS = (". ", "! ", "? ", "\n")


def sentence_around(text: str, start: int, end: int) -> tuple[str, str]:
    """The parts of the sentence before *start* and after *end* whose words may decide which days are meant."""
    low, high = max(0, start - _NEAR), min(len(text), end + _NEAR)
    first = max((at + len(stop) for stop in _STOPS if (at := text.rfind(stop, low, start)) >= 0), default=low)
    last = min((at for stop in _STOPS if (at := text.find(stop, end, high)) >= 0), default=high)
    return text[first:start], text[end:last]


def tense_of(text: str, start: int, end: int) -> str:
    """Whether the sentence looks "ahead", "behind", or neither: "". Where it does both, the nearest verb decides."""
    before, after = sentence_around(text, start, end)
    sentence, at = f"{before} {after}", len(before)
    ahead = [m.span() for m in (*AHEAD.finditer(sentence), *ARRANGED.finditer(before))]
    # "Booked the van: 19 December" names the day of what was booked, not the day of the booking.
    since = max(before.rfind(": "), 0)
    behind = [m.span() for m in BEHIND.finditer(sentence, since) if is_past_tense(sentence, m, ahead)]
    if not ahead or not behind:
        return "ahead" if ahead else "behind" if behind else ""
    far = [min(max(at - b, a - at, 0) for a, b in spans) for spans in (ahead, behind)]
    return "ahead" if far[0] <= far[1] else "behind"


def is_past_tense(sentence: str, m: re.Match[str], ahead: list[tuple[int, int]]) -> bool:
    """Whether *m* is a past tense, and not the participle in "will be submitted" or "want it finished"."""
    since = max((b for _, b in ahead if b <= m.start()), default=-1)
    return since < 0 or bool(FINITE.fullmatch(m[0]) or CLAUSE.search(sentence, since, m.start()))


# Match, day it was said, tense → the days meant; None: another rule may say; (): no day at all, for any rule.
Meaning = Callable[[re.Match[str], date, str], Days | tuple[()] | None]


_LED = re.compile(r"\b(?:in|during|over|since|until|till|by|before|after|around|through)(\s+the)?\s+$", re.I)


def _led(m: re.Match[str], article: bool = False) -> bool:
    """
    Whether a word before the match marks it as a time: "in May", "since 2019".

    *article*: "the" may stand between, as in "over the summer". Elsewhere it begins a name: "in the 2025 budget".
    """
    led = _LED.search(m.string, max(0, m.start() - 20), m.start())
    return bool(led and (article or not led[1]))


_PREPOSITIONS = ("on", "by", "until", "since", "before", "after", "from", "between")
_TO_COME = ("by", "until", "till", "for")  # whatever the verb: "booked the cabin for 27 February"


def _word_before(m: re.Match[str]) -> str:
    found = re.search(r"(\w{1,20})\s{1,20}$", m.string[max(0, m.start() - 20) : m.start()])
    return found[1].lower() if found else ""


# --- the meaning of each form


def _years(m: re.Match[str], said: date) -> Iterable[int]:
    """The year that *m* gives, else those that may be meant (a leap day is at most 8 years off)."""
    if text := m["year"]:
        return [int(text) if len(text) == 4 else 2000 + int(text[-2:])]
    return range(max(said.year - 8, 1), said.year + 9)


def _unit(m: re.Match[str]) -> str:
    unit: str = m["unit"].lower()
    return "day" if unit == "night" else unit


def _iso(m: re.Match[str], _said: date, _tense: str) -> Days:
    parts = [int(part) for part in re.findall(r"\d+", m[0])]
    return date(*parts[:3]), date(*parts[-3:])


def _numeric(m: re.Match[str], _said: date, _tense: str) -> Days | None:
    """7.5.2023 is 7 May; 5/7/2023 is anyone's guess, unless one of the two cannot be a month."""
    a, b, year = int(m["a"]), int(m["b"]), int(m["year"])
    if m["sep"] == "/" and a != b and a <= 12 and b <= 12:
        return None
    day, month = (a, b) if m["sep"] == "." or a > 12 else (b, a)
    at = date(year + 2000 * (year < 100), month, day)
    return at, at


def _dated(m: re.Match[str], said: date, tense: str) -> Days | tuple[()] | None:
    """
    A day of a month, or a range of days; the year may be missing.

    A named weekday must fit. Without a year it chooses last year, this year or the next; but if all fitting days are past and
    the verb looks ahead, the weekday is taken for the mistake.
    """
    group = m.groupdict()
    years, weekday = _years(m, said), group.get("wd")
    if weekday and not m["year"]:
        years = range(said.year - 1, said.year + 2)
    if m["month"] == "may" and not m["year"] and _word_before(m) not in _PREPOSITIONS:
        return None  # "I may 5"
    found: list[Days] = []
    misnamed: list[Days] = []
    for year in years:
        try:
            first = date(year, place_in_list(MONTHS, m["month"]) + 1, day_number(m["day"]))
            month = place_in_list(MONTHS, group.get("month2") or m["month"]) + 1
            last = date(year, month, day_number(group.get("day2") or m["day"]))
        except ValueError:
            continue
        if last < first:  # 30 December to 2 January; a year that is said is the second's
            first, last = (
                (first.replace(year=year - 1), last) if m["year"] else (first, last.replace(year=year + 1))
            )
        fits = not weekday or first.weekday() == place_in_list(WEEKDAYS, weekday)
        (found if fits else misnamed).append((first, last))
    if weekday and not found:
        return ()
    word = _word_before(m)
    if weekday and not m["year"] and tense == "ahead" and all(days[1] < said for days in found):
        found = misnamed
    if word in (*_TO_COME, "to"):  # "moved to June 10"
        return pick_days(found, said, "ahead", doubt=True)
    return pick_days(found, said, tense, doubt=_in_doubt(m, tense))


def _in_doubt(m: re.Match[str], tense: str) -> bool:
    """Whether the tense alone does not decide: "the deadline was May 28 and they still wait"."""
    if tense == "behind":
        return False
    sentence = " ".join(sentence_around(m.string, *m.span()))
    return bool(BEHIND.search(sentence)) or not FUTURE.search(sentence)


def _month_range(m: re.Match[str], said: date, tense: str) -> Days | None:
    first, last = place_in_list(MONTHS, m["month"]) + 1, place_in_list(MONTHS, m["month2"]) + 1
    before = 1 if m["year"] and first > last else 0  # November to January 2023
    return pick_days(
        [month_span(y - before, first, (last - first) % 12 + 1) for y in _years(m, said)], said, tense
    )


def _month(m: re.Match[str], said: date, tense: str) -> Days | None:
    which = m["which"] or ""
    if not (which or m["year"] or m.groupdict().get("part") or _led(m)):
        return None  # a name, or a verb
    if which.lower() == "this" and m["month"] in ("may", "march"):
        return None
    return choose_days(
        which, [month_span(y, place_in_list(MONTHS, m["month"]) + 1, 1) for y in _years(m, said)], said, tense
    )


def _season(m: re.Match[str], said: date, tense: str) -> Days | None:
    which = m["which"] or ""
    if not (which or m["year"] or _led(m, article=True)):
        return None
    found = [month_span(year, SEASONS[m["season"].lower()], 3) for year in _years(m, said)]
    if which.lower() == "this" and (on := [s for s in found if s[0] <= said <= s[1]]):
        return on[0]  # in January, this winter began last year
    return choose_days(which, found, said, tense)


def _quarter(m: re.Match[str], said: date, tense: str) -> Days | None:
    if m["nth"] and not m["year"]:
        return None  # of a game
    if m["q"] and not _led(m) and not _NOT_IN_A_NAME.match(m.string, m.end()):
        return None  # "the Q4 report"
    n = int(m["q"]) if m["q"] else ("first", "second", "third", "fourth").index(m["nth"].lower()) + 1
    return pick_days([month_span(year, n * 3 - 2, 3) for year in _years(m, said)], said, tense)


def _part(m: re.Match[str], said: date, tense: str) -> Days | None:
    """The first, middle or last third: early May, mid-2023, the end of next month."""
    if m["month"]:
        whole = _month(m, said, tense)
    elif m["unit"]:
        whole = span_around(shift_day(said, _unit(m), direction(m["which"] or "")), _unit(m))
    else:
        whole = date(int(m["year2"]), 1, 1), date(int(m["year2"]), 12, 31)
    if whole is None:
        return None
    part = (m["part"] or m["part_of"]).lower()
    third = 2 if part in ("late", "end") else 1 if part.startswith("mid") else 0
    days = (whole[1] - whole[0]).days + 1
    return whole[0] + days * third // 3 * ONE_DAY, whole[0] + (days * (third + 1) // 3 - 1) * ONE_DAY


def _counted(m: re.Match[str], said: date, sign: int) -> Days:
    low, high = number_range(m["n"])
    if m["n2"]:
        high = number_range(m["n2"])[1]
    if m["more"]:  # "a week or two"
        high = max(high, 2)
    ends = [span_around(shift_day(said, _unit(m), sign * n), _unit(m)) for n in (low, high)]
    return min(ends)[0], max(ends)[1]


def _ago(m: re.Match[str], said: date, _tense: str) -> Days:
    return _counted(m, said, -1)


def _in(m: re.Match[str], said: date, tense: str) -> Days | None:
    return None if tense == "behind" else _counted(m, said, 1)  # "I read it in two days" is no date


def _from(m: re.Match[str], said: date, _tense: str) -> Days:
    """Two weeks from now, a week from Friday, a week on Friday."""
    base = (m["base"] or m["base2"]).lower()
    if base == "now":
        return _counted(m, said, 1)
    day = said + (ONE_DAY if base == "tomorrow" else 0 * ONE_DAY)
    if base not in ("today", "tomorrow"):
        day += ((place_in_list(WEEKDAYS, base) - said.weekday() - 1) % 7 + 1) * ONE_DAY
    there = shift_day(day, _unit(m), number_range(m["n"])[0])
    if _unit(m) in ("month", "quarter", "year"):
        there = min(there + (day.day - 1) * ONE_DAY, span_around(there, "month")[1])
    return there, there


def _rolling(m: re.Match[str], said: date, tense: str) -> Days | None:
    """The last three weeks, the next few days, within a month: up to, or from, the day it is said."""
    if m["within"] and tense == "behind":
        return None
    days = {"day": 1, "weekend": 7, "week": 7, "fortnight": 14, "month": 30, "quarter": 91, "year": 365}[
        _unit(m)
    ]
    there = (
        said
        + (1 if m["within"] else direction(m["which"]))
        * days
        * number_range(m["n"] or ("few" if m[0].endswith("s") else "a"))[1]
        * ONE_DAY
    )
    return said, there


def _this_unit(m: re.Match[str], said: date, _tense: str) -> Days:
    if _unit(m) == "week" and said.isoweekday() == 7 and direction(m["which"]) < 0:
        # to many a week begins today; to all it is the days just gone
        return (said - 7 * ONE_DAY, said - ONE_DAY)
    return span_around(shift_day(said, _unit(m), direction(m["which"])), _unit(m))


def _second_unit(m: re.Match[str], said: date, _tense: str) -> Days:
    """The week before last, the weekend after next."""
    return span_around(shift_day(said, _unit(m), -2 if m["which"].lower() == "before last" else 2), _unit(m))


def _the_weekend(_m: re.Match[str], said: date, tense: str) -> Days | None:
    nearest = "behind" if said.weekday() < 3 else "ahead"  # asked on a Monday, it is the one that was
    return pick_days(
        [span_around(said + 7 * n * ONE_DAY, "weekend") for n in (-1, 0, 1)], said, tense or nearest
    )


def _weekday_of_week(m: re.Match[str], said: date, _tense: str) -> Days:
    at = (
        span_around(shift_day(said, "week", direction(m["which"])), "week")[0]
        + place_in_list(WEEKDAYS, m["wd"]) * ONE_DAY
    )
    return at, at


def _weekday(m: re.Match[str], said: date, tense: str) -> Days | None:
    day, which, word = place_in_list(WEEKDAYS, m["wd"]), (m["which"] or "").lower(), _word_before(m)
    if word in ("every", "each", "other", "most", "usual", "black"):
        return None
    if len(m["wd"]) < 6 and not which and (word not in ("on", "by", "until", "since") or m["wd"].islower()):
        return None  # sat, sun, wed
    if word in _TO_COME and not m.string.startswith(("'s", "’s"), m.end()):  # not "paid for Monday's visit"
        tense = "ahead"
    elif word == "since":
        tense = "behind"
    weekday = said.weekday()
    if which == "next":
        days = 7 - weekday + day
    elif which == "this" or direction(which) > 0:
        days = (day - weekday) % 7
    elif which or tense == "behind":
        days = -((weekday - day - 1) % 7 + 1)
    else:
        days = (day - weekday - 1) % 7 + 1
    return said + days * ONE_DAY, said + days * ONE_DAY


def _nth(m: re.Match[str], said: date, tense: str) -> Days | None:
    """On the 5th: of the month that is meant."""
    if _word_before(m) not in _PREPOSITIONS:
        return None
    months = (span_around(shift_day(said, "month", n), "month") for n in range(-2, 3))
    found = [
        first + (day_number(m["day"]) - 1) * ONE_DAY
        for first, last in months
        if day_number(m["day"]) <= last.day
    ]
    return pick_days([(day, day) for day in found], said, tense or "ahead")


def _year(m: re.Match[str], _said: date, _tense: str) -> Days | None:
    year = int(m["year"])
    if not _led(m, article=bool(m["decade"])) or (m["decade"] and year % 10):
        return None
    return date(year, 1, 1), date(year + (9 if m["decade"] else 0), 12, 31)


def _month_number(m: re.Match[str], _said: date, _tense: str) -> Days:
    return month_span(int(m["year"]), int(m["mm"]), 1)


def _fixed(days: int) -> Meaning:
    return lambda _m, said, _tense: (said + days * ONE_DAY, said + days * ONE_DAY)


# --- the table

PARTS = {
    # What can follow a day or a quarter that is not the first word of a name.
    "alone": r"(?=\s*(?:$|[.,;:!?)]|(?:and|or|but|because|if|when|at|for|with|we|i|to)\b))",
    "wd": "(?:mon|tues|wednes|thurs|fri|satur|sun)day",
    "short": "(?:mon|tues?|wed|thurs?|thu|fri|sat|sun)",
    "month": r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?",
    "year": r"(?:(?:19|20)\d\d|['’]\d\d)\b",
    "day": r"(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?(?![\d:.%]\d|\w)",
    "iso": r"(?:19|20)\d\d[-/](?:0?[1-9]|1[0-2])[-/](?:[12]\d|3[01]|0?[1-9])",
    "to": r"(?:\s*[-–—]\s*|\s+(?:to|through|until|till)\s+(?:the\s+)?)",
    "unit": r"(?P<unit>day|night|weekend|week|fortnight|month|quarter|year)s?(?![\w-])",
    "season": r"(?P<season>spring|summer|autumn|fall|winter)\b",
    "n": rf"(?:\d{{1,3}}|(?:a\s+)?(?:couple(?:\s+of)?|few|dozen)|an?|{COUNTING.replace(' ', '|')}|another|several)",
    "which": r"(?P<which>this\s+past|this\s+coming|last|past|previous|this|next|coming|upcoming)",
}


_NOT_IN_A_NAME = re.compile(PARTS["alone"], re.I)


class Rule(NamedTuple):
    pattern: re.Pattern[str]
    meaning: Meaning


def _rule(pattern: str, meaning: Meaning) -> Rule:
    return Rule(re.compile(re.sub(r"@(\w+)", lambda m: PARTS[m[1]], pattern), re.I), meaning)


_YEAR = r"(?:,?\s+(?:of\s+|in\s+)?(?P<year>@year))?"
_DAY_MONTH = r"(?:\s+of\s+|\s+(?!(?-i:may|march)\b(?!,?\s+@year)))"  # "only 5 may come"
_NAMED = r"\b(?:(?:@which\s+)?(?P<wd>@wd),?\s+"
_COUNT = r"(?P<n>@n)(?:\s*(?:[-–]|\bor\b|\bto\b)\s*(?P<n2>@n))?\s+@unit(?P<more>\s+or\s+two)?"

DATED_RULES = [
    _rule(r"(?<![\w/-])(?P<year>@iso)(?:@to|\.\.)@iso(?!\w|[/-]\w)", _iso),
    _rule(r"(?:\b@wd,?\s+)?(?<![\w/-])(?P<year>@iso)(?!(?!T\d)\w|[/-]\w)", _iso),
    _rule(r"(?<![\w./])(?P<a>\d\d?)(?P<sep>[./])(?P<b>\d\d?)(?P=sep)(?P<year>\d{4}|\d\d)(?![\w/])", _numeric),
    # May 30 to June 2; 30 May to 2 June; May 27-28; 27-28 May; and each with a year, or with between … and
    _rule(
        r"\b(?P<b>between\s+)?(?P<month>@month)\s+(?P<day>@day)(?(b)\s+and\s+|@to)(?P<month2>@month)\s+(?P<day2>@day)"
        + _YEAR,
        _dated,
    ),
    _rule(
        r"\b(?P<b>between\s+)?(?P<day>@day)\s+(?:of\s+)?(?P<month>@month)(?(b)\s+and\s+|@to)(?P<day2>@day)\s+(?:of\s+)?(?P<month2>@month)"
        + _YEAR,
        _dated,
    ),
    _rule(
        r"\b(?P<b>between\s+)?(?P<month>@month)\s+(?P<day>@day)(?(b)\s+and\s+|@to)(?P<day2>@day)" + _YEAR,
        _dated,
    ),
    _rule(
        r"\b(?P<b>between\s+)?(?P<day>@day)(?(b)\s+and\s+|@to)(?P<day2>@day)"
        + _DAY_MONTH
        + "(?P<month>@month)"
        + _YEAR,
        _dated,
    ),
    _rule(_NAMED + r"(?:the\s+)?)?(?P<day>@day)" + _DAY_MONTH + "(?P<month>@month)" + _YEAR, _dated),
    _rule(_NAMED + r")?(?P<month>@month)\s+(?:the\s+)?(?P<day>@day)" + _YEAR, _dated),
]

RULES = [
    *DATED_RULES,
    _rule(
        r"\b(?:(?P<part>early|mid|late)(?:\s+|-)(?:in\s+)?|(?P<part_of>beginning|start|middle|end)\s+of\s+)(?:the\s+)?"
        r"(?:@which\s+)?(?:(?P<month>@month)(?:,?\s+(?:of\s+)?(?P<year>@year))?"
        r"|(?P<unit>week|month|quarter|year)\b|(?P<year2>(?:19|20)\d\d)\b)",
        _part,
    ),
    _rule(
        r"\b(?:(?P<b>between\s+)|(?P<f>from\s+))?(?P<month>@month)(?:\s+@year)?(?(b)\s+and\s+|@to)(?P<month2>@month)"
        r"(?:,?\s+(?:of\s+)?(?P<year>@year))?",
        _month_range,
    ),
    _rule(r"\b(?:@which\s+)?(?P<month>@month)(?:,?\s+(?:of\s+)?(?P<year>@year))?(?!\s*\d)", _month),
    _rule(r"(?<![\w/-])(?P<year>(?:19|20)\d\d)-(?P<mm>0[1-9]|1[0-2])(?![\w/-])", _month_number),
    _rule(
        r"\b(?:(?-i:Q)(?P<q>[1-4])|(?P<nth>first|second|third|fourth)\s+quarter)\b(?:,?\s+(?:of\s+)?(?P<year>@year))?",
        _quarter,
    ),
    _rule(r"\b(?:@which\s+)?@season(?:\s+(?:of\s+)?(?P<year>@year))?", _season),
    _rule(r"\b(?:the\s+)?day\s+before\s+yesterday\b", _fixed(-2)),
    _rule(r"\b(?:the\s+)?day\s+after\s+tomorrow\b", _fixed(2)),
    _rule(
        r"\b(?:the\s+)?(?P<unit>week|weekend|month|year)\s+(?P<which>before last|after next)\b", _second_unit
    ),
    _rule(rf"\b{_COUNT}\s+(?:from\s+(?P<base>now|today|tomorrow|@wd)|on\s+(?P<base2>@wd))\b", _from),
    _rule(r"\byesterday\b|\blast\s+night\b", _fixed(-1)),
    _rule(r"\b(?:today|tonight|this\s+(?:morning|afternoon|evening))\b", _fixed(0)),
    _rule(r"\btomorrow\b", _fixed(1)),
    _rule(rf"\b{_COUNT}\s+(?:ago|back)\b", _ago),
    _rule(rf"\bin\s+(?:about\s+|around\s+|roughly\s+)?{_COUNT}(?!\s+(?:of|total|straight)\b)", _in),
    _rule(
        r"\b(?:(?P<within>within)|(?:the\s+)?(?P<which>last|past|previous|next|coming))\s+(?:the\s+next\s+)?(?P<n>@n)\s+@unit",
        _rolling,
    ),
    _rule(
        r"\b(?P<within>(?!))?(?:the|this)\s+(?P<which>past|coming)\s+(?P<n>(?!))?@unit(?<!weekend)", _rolling
    ),
    _rule(r"\b@which\s+week(?:\s+on)?\s+(?P<wd>@wd)\b", _weekday_of_week),
    _rule(r"\b(?P<wd>@wd)\s+(?:of\s+)?@which\s+week\b", _weekday_of_week),
    _rule(r"\b@which\s+@unit(?!\s+of\b)", _this_unit),
    _rule(r"\bthe\s+weekend\b", _the_weekend),
    _rule(r"\b(?:@which\s+)?(?P<wd>@wd|@short)\b(?!\s+(?:morning|afternoon|evening|night)s\b)", _weekday),
    _rule(r"\bthe\s+(?P<day>\d\d?(?:st|nd|rd|th))@alone", _nth),
    _rule(r"\b(?P<year>(?:19|20)\d\d)(?P<decade>s)?(?![\w/-]|[.:,]\d)", _year),
]


# --- The days that a text speaks of: "next Friday", "in May", "3 weeks ago", said on a day → the days meant.


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
    the nearest year. "the 19th" behind "12 December" is the first 19th from then on. A date within two months is taken for the one meant if its verb allows that ("the deadline is May
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


def full_day_before(text: str, at: int, full: Iterable[tuple[int, Days]]) -> date | None:
    """The last day that the sentence names with its month before *at*; *full*: where such days end in *text*."""
    since = at - len(sentence_around(text, at, at)[0])
    return max(((end, days[1]) for end, days in full if since <= end <= at), default=(0, None))[1]


LOOKED_AT = 8_000  # chars in which days are sought, at 25 µs a char: no question and no note is longer


def _found(
    text: str, said: date, rules: Iterable[Rule], with_year: bool = False, ahead: bool = False
) -> list[tuple[int, int, Days]]:
    """Every match that means days. A later rule never touches what an earlier one matched."""
    found: list[tuple[int, int, Days]] = []
    full: list[tuple[int, Days]] = []
    text = text[:LOOKED_AT]
    taken = bytearray(len(text))
    for pattern, meaning in rules:
        for m in pattern.finditer(text):
            start, end = m.span()
            if any(taken[start:end]) or (with_year and not m.groupdict("")["year"]):
                continue
            try:
                since = full_day_before(text, start, full) if meaning is _nth else None
                tense = "ahead" if ahead or since else tense_of(text, start, end)
                days = meaning(m, since or said, tense)
            except (ValueError, OverflowError):  # 31 February, the year 10000
                continue
            if days:
                found.append((start, end, (min(days), max(days))))
                if meaning in (_dated, _iso, _numeric):
                    full.append((end, found[-1][2]))
            if days is not None:
                taken[start:end] = b"x" * (end - start)
    return sorted(found)
