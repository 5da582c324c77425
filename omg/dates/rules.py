"""Finds dates in English text: each rule is a pattern, and the days that its match means.

A phrase that could mean two different days, such as 5/7/2023, is left alone. A phrase may mean several days: "two weeks
ago" means a whole week, "in 2022" a whole year."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from ..text.words import bases, is_past

# --- Spans: the week around a day, a day two months later, a choice between years; number words.
#
# A span is its first and its last day, both included.


ONE_DAY = timedelta(days=1)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}  # first month, in the north
NEAR_DAYS = 60  # in doubt, a date at most so many days away is chosen, whatever the tense
Days = tuple[date, date]  # the first and the last


def span_around(day: date, unit: str) -> Days:
    """The *unit* that *day* lies in: "week", "weekend", "month", "quarter" or "year"; else *day* alone."""
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
    """The span of *n* months that begins with *month* of *year*."""
    after = year * 12 + month - 1 + n
    return date(year, month, 1), date(after // 12, after % 12 + 1, 1) - ONE_DAY


def shift_day(day: date, unit: str, n: int) -> date:
    """Move *day* by *n* units. A move by months, quarters or years ends on the first day of a month."""
    if size := {"month": 1, "quarter": 3, "year": 12}.get(unit):
        at = day.year * 12 + day.month - 1 + n * size
        return date(at // 12, at % 12 + 1, 1)
    return day + n * {"week": 7, "weekend": 7, "fortnight": 14}.get(unit, 1) * ONE_DAY


def pick_days(candidates: Sequence[Days], today: date, tense: str, doubt: bool = False) -> Days | None:
    """
    Choose which of *candidates* is meant. They are the same days in several years.

    *tense*: "behind" chooses the latest candidate that has begun, "ahead" the first that has not ended, "" the
    nearest. *doubt*: if the nearest is within two months, it is chosen whatever the tense.
    """
    if len(candidates) == 1:  # the year was said
        return candidates[0]

    def off(days: Days) -> int:
        return max((days[0] - today).days, (today - days[1]).days, 0)

    told = candidates
    if tense == "behind":
        told = [s for s in candidates if s[0] <= today][-1:]
    elif tense == "ahead":
        told = [s for s in candidates if s[1] >= today][:1]
    nearest = min(candidates, key=off, default=None)
    return nearest if doubt and nearest and off(nearest) <= NEAR_DAYS else min(told, key=off, default=None)


def choose_days(which: str, candidates: Sequence[Days], today: date, tense: str) -> Days | None:
    """Choose one of *candidates* by *which*: "last", "this" or "next". If *which* is "", choose as `pick_days` does."""
    if not which:
        return pick_days(candidates, today, tense)
    if direction(which) < 0:
        return max(s for s in candidates if s[1] < today)
    if direction(which) > 0:
        return min(s for s in candidates if s[0] > today)
    return max(s for s in candidates if s[0].year == today.year)


def direction(which: str) -> int:
    """-1 for words such as "last" and "this past", 1 for words such as "next" and "this coming", 0 for "this"."""
    last = which.lower().rpartition(" ")[2]
    return {"last": -1, "past": -1, "previous": -1, "next": 1, "coming": 1, "upcoming": 1}.get(last, 0)


COUNTING = "one two three four five six seven eight nine ten eleven twelve"
ORDINALS = ("first", "second", "third", "fourth", "fifth")
_NUMBERS = {word: n for n, word in enumerate(COUNTING.split(), 1)}
_NUMBERS |= {"a": 1, "an": 1, "another": 1, "couple": 2, "dozen": 12}
_VAGUE = {"few": (2, 5), "several": (3, 7)}


def number_range(text: str) -> tuple[int, int]:
    """The least and the most that a number word may mean: "a few" is 2 to 5."""
    word = " ".join(text.lower().split()).removeprefix("a ").removesuffix(" of")
    n = int(word) if word.isdigit() else _NUMBERS.get(word, 0)
    return _VAGUE.get(word, (n, n))


def place_in_list(names: Iterable[str], text: str) -> int:
    """The index of the first name that begins with the same three letters as *text*."""
    return next(i for i, name in enumerate(names) if name[:3].lower() == text[:3].lower())


def day_number(text: str) -> int:
    """The number in "7th"; 1 for a word without a number, as "first"."""
    return int(re.sub(r"\D", "", text) or 1)


# --- Whether the words around a date look back or ahead. English only.


# The person Will does not look forward to anything.
INTENT = re.compile(
    r"\b(?:(?-i:will)|(?-i:^Will(?= [a-z]))(?! \w+s\b)|(?:am|is|are|be) to|shall|plan(?:s|ned|ning)?"
    r"|going to|gonna|looking forward|intend(?:s|ed|ing)?|wants?|needs?|about to|hop(?:es?|ing)|due|deadline|scheduled"
    r"|expect(?:s|ed|ing)?|promised|decided to)\b|['’]ll\b",
    re.I,
)
AHEAD = re.compile(
    INTENT.pattern + r"|\b(?:must|should|ha(?:ve|s) to|gotta|let['’]s|remind|(?:up)?coming(?: up)?|see you"
    r"|leaves|departs|arrives|starts|begins|expires|takes (?:place|off)"  # as timetables say it
    r"|excited|wait|(?:can|could) (?:we|you|i)|(?:i['’]m|we['’]re|is|are|am) \w+ing)\b",
    re.I,
)
# What somebody arranged lies ahead if the day comes after the verb: "bought tickets for the concert on 12 January".
_BOOKED = "booked|reserved|arranged|registered|enrolled|signed up"
ARRANGED = re.compile(
    rf"\b(?:{_BOOKED}|invit(?:ed|es?|ations?)|tickets?)\b[^,;:]{{0,80}}?(?:\b(?:for|to|from|between)\b|[,:])",
    re.I,
)
ARRANGING = re.compile(rf"\b(?:{_BOOKED}|invit\w+|scheduled|accepted|starting|applied)\b", re.I)
MOVED = re.compile(
    r"\b(?:(?:mov|push|postpon|reschedul|shift|chang|delay|extend)(?:ed|ing)|brought forward)\b", re.I
)
BEHIND = re.compile(
    r"\b(?:was|were|did|didn['’]t|had|went|(?<!['’]ve )(?<!have )got|came|saw|made|took|met|bought|said|told|gave|found|left|felt|ate|won"
    r"|lost|began|broke|spoke|wrote|ran|sent|spent|thought|knew|kept|held|heard|built|taught|drove|flew|sold|paid"
    r"|(?!hundred)[a-z]{2,}[^\We]ed)\b",
    re.I,
)
# The participle in "is closed" is no past tense.
STATE = re.compile(r"(?:\b(?:is|are|am)|['’](?:re|m))\s+(?:\w+\s+)?$", re.I)
# "is on 3 July" lies ahead; a letter that "is from 3 July" lies behind
PRESENT = re.compile(r"(?:\b(?:is|are)|['’](?:s|re))\s+(?P<from>from\s+)?(?:(?:on|between|the)\s+)*$", re.I)
# A day after "since" is past in any sentence: "since joining the firm on September 20".
SINCE = re.compile(r"\bsince\b(?! then\b)[^,;:.?!]*$", re.I)
FINITE = re.compile(r"was|were|did|didn['’]t|went|came|saw|took|gave|ate|wrote|knew|drove|flew", re.I)
BORDER = re.compile(r"[,;:—–(]|\b(?:and|but|so|because|which|after|when|as)\b", re.I)
# A verb in the present: then the tense of a later clause says nothing about the day.
NOW = re.compile(r"\b(?:i|we|you|they|he|she|it|there)(?:['’](?:m|re|ve got)| am| are| have got)\b", re.I)
LATER_CLAUSE = re.compile(BORDER.pattern + r"|\b(?:that|where|since)\b", re.I)
CLAUSE = re.compile(
    BORDER.pattern + r"|\b(?:i|we|he|she|they|who|has|have)\s+(?:\w+ly\s+)?\Z",
    re.I,
)
# A subject and its verb, unless that is a noun: "the plumber comes", not "all the plays"
PRESENT_VERB = re.compile(r"(?<!\bthe )(?<!\ba )(?<!\bof )(?<!\bfor )(?<=\w )[a-z]{2,}s\b")
# Words that never go with a past day. A deadline may be past, and so may a day that somebody waits for.
FUTURE = re.compile(r"\b(?:(?-i:will)|shall|going to|gonna|remind|plan(?:s|ning)? to)\b|['’]ll\b", re.I)
_NEAR = 200  # chars
_STOPS = (". ", "! ", "? ", "\n")


def sentence_around(text: str, start: int, end: int) -> tuple[str, str]:
    """The text before *start* and the text after *end* within the same sentence, at most 200 characters each."""
    low, high = max(0, start - _NEAR), min(len(text), end + _NEAR)
    first = max((at + len(stop) for stop in _STOPS if (at := text.rfind(stop, low, start)) >= 0), default=low)
    last = min((at for stop in _STOPS if (at := text.find(stop, end, high)) >= 0), default=high)
    return text[first:start], text[end:last]


def tense_of(text: str, start: int, end: int) -> str:
    """
    Whether the sentence looks "ahead" or "behind" at a date; "" for neither. The verb nearest to the date decides.
    """
    before, after = sentence_around(text, start, end)
    if (since := SINCE.search(before)) and not AHEAD.search(since[0]):
        return "behind"
    if border := LATER_CLAUSE.search(after):  # "gonna call her on May 5, as Carla recommended"
        tense = tense_between(before, after[: border.start()])
        if tense or NOW.search(before):
            return tense
    return tense_between(before, after)


def tense_between(before: str, after: str) -> str:
    """The tense of a date ("ahead", "behind" or ""), from the text before and after the date."""
    sentence, at = f"{before} {after}", len(before)
    ahead = [m.span() for m in (*AHEAD.finditer(sentence), *ARRANGED.finditer(before))]
    # "Booked the van: 19 December" names the day of what was booked, not the day of the booking.
    since = max(before.rfind(": "), 0)
    if border := list(BORDER.finditer(before)):
        clause = border[-1].end()  # it may have its verb: "I sold the stove, Ann fetches it on 4 November"
        if any({m[0][:-1], m[0][:-2]} & bases() for m in PRESENT_VERB.finditer(before, clause)):
            since = max(since, clause)
    behind = [m.span() for m in BEHIND.finditer(sentence, since) if is_past_tense(sentence, m, ahead)]
    if not ahead and (m := PRESENT.search(before)) and (not m["from"] or re.match(r"\s+to\b", after)):
        return "ahead"
    if not ahead or not behind:
        return "ahead" if ahead else "behind" if behind else ""
    far = [min(max(at - b, a - at, 0) for a, b in spans) for spans in (ahead, behind)]
    return "ahead" if far[0] <= far[1] else "behind"


def is_past_tense(sentence: str, m: re.Match[str], ahead: list[tuple[int, int]]) -> bool:
    """Return whether the verb *m* tells of the past. False for the verb in "will be submitted" and "is closed"."""
    since = max((b for _, b in ahead if b <= m.start()), default=-1)
    state = STATE.search(sentence, max(0, m.start() - 12), m.start())
    return not state and (
        since < 0 or bool(FINITE.fullmatch(m[0]) or CLAUSE.search(sentence, since, m.start()))
    )


# (match, today, tense) → the days meant. None: a later rule may match the text. (): no rule may.
Meaning = Callable[[re.Match[str], date, str], Days | tuple[()] | None]


_LED = re.compile(r"\b(?:in|during|over|since|until|till|by|before|after|around|through)(\s+the)?\s+$", re.I)


def _led(m: re.Match[str], article: bool = False) -> bool:
    """Whether a word before the match marks it as a time: "in May". *article*: also "over the summer", with "the"."""
    led = _LED.search(m.string, max(0, m.start() - 20), m.start())
    return bool(led and (article or not led[1]))


_END = re.compile(r"\b(?:by|until|till|through|for)\s+(?:the\s+)?$", re.I)
# What somebody was given lasts into the future: "they gave me until the end of May".
GRANTED = re.compile(r"\b(?:gave|got|granted|lent|rented|hired|leased|paid|postponed|renewed)\b", re.I)
_PREPOSITIONS = ("on", "by", "until", "since", "before", "after", "from", "to", "between")
# After these words a day lies ahead, whatever the verb: "booked the cabin for 27 February"
_TO_COME = ("by", "until", "till", "for")


def _word_before(m: re.Match[str]) -> str:
    found = re.search(r"(\w{1,20})\s{1,20}$", m.string[max(0, m.start() - 20) : m.start()])
    return found[1].lower() if found else ""


# --- the meaning of each form


def _years(m: re.Match[str], today: date) -> Iterable[int]:
    """The year that *m* names. Without a year: the 8 years before *today*, this year, and the 8 years after. The match
    may be a leap day, and leap days are at most 8 years apart."""
    if text := m["year"]:
        return [int(text) if len(text) == 4 else 2000 + int(text[-2:])]
    return range(max(today.year - 8, 1), today.year + 9)


def _unit(m: re.Match[str]) -> str:
    unit: str = m["unit"].lower()
    return "day" if unit == "night" else unit


def _iso(m: re.Match[str], _today: date, _tense: str) -> Days:
    at = date(*map(int, re.findall(r"\d+", m[0])))
    return at, at


def _numeric(m: re.Match[str], _today: date, _tense: str) -> Days | None:
    """7.5.2023 is 7 May. 5/7/2023 has no meaning, because either number may be the month."""
    a, b, year = int(m["a"]), int(m["b"]), int(m["year"])
    if m["sep"] == "/" and a != b and a <= 12 and b <= 12:
        return None
    day, month = (a, b) if m["sep"] == "." or a > 12 else (b, a)
    at = date(year + 2000 * (year < 100), month, day)
    return at, at


def _dated(m: re.Match[str], today: date, tense: str) -> Days | tuple[()] | None:
    """Return the days of a date: "7 January", "3 to 7 January 2026". Return None if the match is no date: "I may 5".

    - Without a year, the tense of the verb chooses the year.
    - "Monday 5 May" without a year can only mean last year, this year or next year.
    - If the weekday fits in no year, return (). If "we will meet on Monday 5 May" fits only a past year, ignore the
      weekday."""
    years, weekday = _years(m, today), m["wd"] or m["wd2"]
    if weekday and not m["year"]:
        years = range(today.year - 1, today.year + 2)
    if m["month"] == "may" and not m["year"] and _word_before(m) not in _PREPOSITIONS:
        return None  # "I may 5"
    found: list[Days] = []
    misnamed: list[Days] = []
    month = place_in_list(MONTHS, m["month"]) + 1
    for year in years:
        try:
            first, last = (date(year, month, day_number(text)) for text in (m["day"], m["day2"] or m["day"]))
        except ValueError:
            continue
        ends = ((m["wd"], first), (m["wd2"], last))
        fits = all(not name or place_in_list(WEEKDAYS, name) == day.weekday() for name, day in ends)
        if first <= last:
            (found if fits else misnamed).append((first, last))
    if weekday and not found:
        return ()
    word = _word_before(m)
    if weekday and not m["year"] and tense == "ahead" and all(days[1] < today for days in found):
        found = misnamed
    if word in (*_TO_COME, "to"):  # "moved to June 10"
        return pick_days(found, today, "ahead", doubt=True)
    return pick_days(found, today, tense, doubt=_in_doubt(m, tense))


def _in_doubt(m: re.Match[str], tense: str) -> bool:
    """Return whether the date *m* may disagree with *tense*: "I booked a session on May 20" may mean a future day."""
    before, after = sentence_around(m.string, *m.span())
    if tense == "behind":  # in "I booked a session on May 20", May 20 may be the day of the session
        return bool(ARRANGING.search(before))
    sentence = f"{before} {after}"
    return bool(BEHIND.search(sentence)) or not FUTURE.search(sentence)


def _month(m: re.Match[str], today: date, tense: str) -> Days | None:
    """A month, or a span of months: "May", "June to August 2023"."""
    which, group = m["which"] or "", m.groupdict()
    planned = tense == "ahead" and _word_before(m) == "for"  # "booked for October", not "a gift for April"
    if not (which or m["year"] or "part" in group or group.get("month2") or planned or _led(m)):
        return None  # a name, or a verb
    if which.lower() == "this" and m["month"] in ("may", "march"):
        return None
    first, last = (
        place_in_list(MONTHS, text) + 1 for text in (m["month"], group.get("month2") or m["month"])
    )
    before = 1 if m["year"] and first > last else 0  # November to January 2023
    months = [month_span(year - before, first, (last - first) % 12 + 1) for year in _years(m, today)]
    return choose_days(which, months, today, _tense_of_end(m, tense))


def _tense_of_end(m: re.Match[str], tense: str) -> str:
    """The tense of a date. The end of a span ("runs until October") lies ahead, unless a verb is in the past."""
    if not _END.search(m.string, max(0, m.start() - 30), m.start()):
        return tense
    before = sentence_around(m.string, *m.span())[0]
    given = ARRANGING.search(before) or MOVED.search(before) or GRANTED.search(before)
    return tense if tense == "behind" and not given else "ahead"


def _season(m: re.Match[str], today: date, tense: str) -> Days | None:
    """A season or a quarter: "last summer", "Q3 2023"."""
    which, name = m["which"] or "", (m["season"] or m["quarter"]).lower()
    if not (which or _led(m, article=bool(m["season"])) or (m["year"] and m["season"])):
        return None
    first = SEASONS.get(name) or int(name[1]) * 3 - 2
    found = [month_span(year, first, 3) for year in _years(m, today)]
    if which.lower() == "this" and (on := [s for s in found if s[0] <= today <= s[1]]):
        return on[0]  # in January, this winter began last year
    return choose_days(which, found, today, tense)


def _part(m: re.Match[str], today: date, tense: str) -> Days | None:
    """The first, middle or last third of a span: "early May", "mid-2023", "the end of next month"."""
    if m["month"]:
        whole = _month(m, today, tense)
    elif m["unit"]:
        whole = span_around(shift_day(today, _unit(m), direction(m["which"] or "")), _unit(m))
    else:
        whole = date(int(m["year2"]), 1, 1), date(int(m["year2"]), 12, 31)
    if whole is None:
        return None
    part = (m["part"] or m["part_of"]).lower()
    third = 2 if part in ("late", "end") else 1 if part.startswith("mid") else 0
    days = (whole[1] - whole[0]).days + 1
    return whole[0] + days * third // 3 * ONE_DAY, whole[0] + (days * (third + 1) // 3 - 1) * ONE_DAY


def _counted(m: re.Match[str], today: date, sign: int) -> Days:
    low = number_range(m["n"])[0]
    high = max(number_range(m["n2"] or m["n"])[1], 2 if m["more"] else 0)  # "a week or two"
    ends = [span_around(shift_day(today, _unit(m), sign * n), _unit(m)) for n in (low, high)]
    return min(ends)[0], max(ends)[1]


def _ago(m: re.Match[str], today: date, _tense: str) -> Days:
    return _counted(m, today, -1)


def _in(m: re.Match[str], today: date, tense: str) -> Days | None:
    return None if tense == "behind" else _counted(m, today, 1)  # "I read it in two days" is no date


def _lasting(m: re.Match[str], today: date, _tense: str) -> Days | None:
    """A span from the day it is said: "for three months". None if the sentence looks back or names a first day."""
    before, after = sentence_around(m.string, *m.span())
    sentence = f"{before} {after}"
    if not _LASTS.search(before) or _LASTED.search(before) or _BEGINS.search(sentence):
        return None
    return today, shift_end(today, _unit(m), number_range(m["n"])[1])


_LASTS = re.compile(
    r"\b(?:am|is|are|runs|lasts|holds|(?-i:will)|going to)\b|['’](?:m|re|ll)\b|\bhave (?:the|a|an|my|our)\b",
    re.I,
)
_LASTED = re.compile(
    r"\b(?:have|has|had)\s+been\b|['’]ve\b|\b(?:learning|waiting|working|living|trying)\b", re.I
)
_BEGINS = re.compile(
    rf"\b(?:from|starting|since|next|tomorrow|{'|'.join((*WEEKDAYS, *MONTHS))}|in\s+(?:a|\d|{COUNTING.replace(' ', '|')}))\b",
    re.I,
)


def shift_end(day: date, unit: str, n: int) -> date:
    """The same day of the month, *n* units later, or the last day of that month if it is shorter."""
    if unit not in ("month", "quarter", "year"):
        return shift_day(day, unit, n)
    first, last = span_around(shift_day(day, unit, n), "month")
    return min(first + (day.day - 1) * ONE_DAY, last)


def _rolling(m: re.Match[str], today: date, tense: str) -> Days | None:
    """A span up to the day it is said, or from that day on: "the last three weeks", "within a month"."""
    if m["within"] and tense == "behind":
        return None
    days = {"day": 1, "fortnight": 14, "month": 30, "quarter": 91, "year": 365}.get(_unit(m), 7)
    n = number_range(m["n"] or ("few" if m[0].endswith("s") else "a"))[1]
    return today, today + (1 if m["within"] else direction(m["which"])) * days * n * ONE_DAY


def _this_unit(m: re.Match[str], today: date, _tense: str) -> Days:
    if _unit(m) == "week" and today.isoweekday() == 7 and direction(m["which"]) < 0:
        # even for people whose week begins on Sunday, "last week" is the seven days before
        return (today - 7 * ONE_DAY, today - ONE_DAY)
    return span_around(shift_day(today, _unit(m), direction(m["which"])), _unit(m))


def _second_unit(m: re.Match[str], today: date, _tense: str) -> Days:
    """The unit after the next or before the last: "the week before last", "the weekend after next"."""
    return span_around(shift_day(today, _unit(m), -2 if m["which"].lower() == "before last" else 2), _unit(m))


def _the_weekend(_m: re.Match[str], today: date, tense: str) -> Days | None:
    nearest = "behind" if today.weekday() < 3 else "ahead"  # said on a Monday, "the weekend" is the last one
    weekends = [span_around(today + 7 * n * ONE_DAY, "weekend") for n in (-1, 0, 1)]
    return pick_days(weekends, today, tense or nearest)


def _weekday_of_week(m: re.Match[str], today: date, _tense: str) -> Days:
    monday = span_around(shift_day(today, "week", direction(m["which"])), "week")[0]
    at = monday + place_in_list(WEEKDAYS, m["wd"]) * ONE_DAY
    return at, at


def _of_month(m: re.Match[str], today: date, tense: str) -> Days | tuple[()] | None:
    """A day, a week or a weekend by its number: "the third Thursday of December", "the last weekend of next month"."""
    nth, name, which = m["nth"].lower(), m["name"].title(), m["which"] or ""
    n = -1 if nth == "last" else int(nth[0]) - 1 if nth[0].isdigit() else ORDINALS.index(nth)
    if m["month"]:
        months = [month_span(year, place_in_list(MONTHS, m["month"]) + 1, 1) for year in _years(m, today)]
    else:
        shifts = (direction(which),) if which else (-1, 0, 1)
        months = [span_around(shift_day(today, "month", shift), "month") for shift in shifts]
    return choose_days(which if m["month"] else "", _nth_days(n, name, months), today, tense) or ()


def _nth_days(n: int, name: str, months: Iterable[Days]) -> list[Days]:
    """Return, for each month, the day, week or weekend number *n*: the third Friday, the last weekend. *name*: "Day",
    "Week", "Weekend" or a weekday. *n* counts from 0, and -1 is the last. The first week is days 1 to 7."""
    found: list[Days] = []
    for first, last in months:
        days = [first + i * ONE_DAY for i in range((last - first).days + 1)]
        if name == "Week":
            days = [*days[:28:7], days[-7]]
        elif name != "Day":
            days = [d for d in days if WEEKDAYS[d.weekday()] == name.replace("Weekend", "Saturday")]
        found += [(d, d + {"Weekend": 1, "Week": 6}.get(name, 0) * ONE_DAY) for d in days[n:][:1]]
    return found


def _weekday(m: re.Match[str], today: date, tense: str) -> Days | None:
    day, which, word = place_in_list(WEEKDAYS, m["wd"]), (m["which"] or "").lower(), _word_before(m)
    if word in ("every", "each", "other", "most", "usual", "black", *ORDINALS):
        return None
    if len(m["wd"]) < 6 and not which and (word not in ("on", "by", "until", "since") or m["wd"].islower()):
        return None  # sat, sun, wed
    if word in _TO_COME and not m.string.startswith(("'s", "’s"), m.end()):  # not "paid for Monday's visit"
        tense = "ahead"
    elif word == "since":
        tense = "behind"
    weekday = today.weekday()
    if which == "next":
        days = 7 - weekday + day
    elif which == "this" or direction(which) > 0:
        days = (day - weekday) % 7
    elif which or tense == "behind":
        days = -((weekday - day - 1) % 7 + 1)
    else:
        days = (day - weekday - 1) % 7 + 1
    return today + days * ONE_DAY, today + days * ONE_DAY


def _nth(m: re.Match[str], today: date, tense: str) -> Days | tuple[()] | None:
    """A day of a month without the month's name: "on the 5th", "on the 5th of next month", "Friday the 5th"."""
    if not (m["of"] or m["wd"] or _word_before(m) in _PREPOSITIONS or AROUND.search(m.string, 0, m.start())):
        return None
    shifts = (direction(m["which"]),) if m["which"] else range(-2, 3)
    months = (span_around(shift_day(today, "month", shift), "month") for shift in shifts)
    days = _nth_days(day_number(m["day"]) - 1, "Day", months)
    found = [d for d in days if not m["wd"] or WEEKDAYS[d[0].weekday()] == m["wd"].title()]
    return pick_days(found, today, tense or "ahead") or ()


def _year(m: re.Match[str], _today: date, _tense: str) -> Days | None:
    year = int(m["year"])
    if not _led(m, article=bool(m["decade"])) or (m["decade"] and year % 10):
        return None
    return date(year, 1, 1), date(year + (9 if m["decade"] else 0), 12, 31)


def _month_number(m: re.Match[str], _today: date, _tense: str) -> Days:
    return month_span(int(m["year"]), int(m["mm"]), 1)


def _from(m: re.Match[str], today: date, _tense: str) -> Days | tuple[()]:
    """A day counted from another day: "a week from tomorrow", "two weeks on Saturday"."""
    if _unit(m) in ("month", "quarter", "year"):
        return ()
    base = m["base"].lower()
    days = 1 if base == "tomorrow" else (place_in_list(WEEKDAYS, base) - today.weekday() - 1) % 7 + 1
    there = shift_day(today + days * ONE_DAY, _unit(m), number_range(m["n"])[0])
    return there, there


def _fixed(days: int) -> Meaning:
    return lambda _m, today, _tense: (today + days * ONE_DAY, today + days * ONE_DAY)


# --- the table

PARTS = {
    # What may follow a number that is a day, and not part of a name.
    "alone": r"(?=\s*(?:$|[.,;:!?)]|(?:and|or|but|because|if|when|at|for|with|we|i|to|until|till)\b))",
    "wd": "(?:mon|tues|wednes|thurs|fri|satur|sun)day",
    "short": "(?:mon|tues?|wed|thurs?|thu|fri|sat|sun)",
    "month": r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?",
    "year": r"(?:(?:19|20)\d\d|['’]\d\d)\b",
    "day": r"(?:(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?(?![\d:.%]\d|\w)|first(?=\s+of\b))",
    "iso": r"(?:19|20)\d\d[-/](?:0?[1-9]|1[0-2])[-/](?:[12]\d|3[01]|0?[1-9])",
    "to": r"(?:\s{0,9}[-–—/]\s{0,9}|\s{1,9}(?:to|through|until|till)\s{1,9}(?:the\s{1,9})?)",
    "unit": r"(?P<unit>day|night|weekend|week|fortnight|month|quarter|year)s?(?![\w-])",
    "season": r"(?P<season>spring|summer|autumn|fall|winter)\b",
    "n": rf"(?:\d{{1,3}}|(?:a\s+)?(?:couple(?:\s+of)?|few|dozen)|an?|{COUNTING.replace(' ', '|')}|another|several)",
    "which": r"(?P<which>this\s+past|this\s+coming|last|past|previous|this|next|(?<!is )(?<!are )(?<!'s )(?<!'re )coming|upcoming)",
}


class Rule(NamedTuple):
    pattern: re.Pattern[str]
    meaning: Meaning


def _rule(pattern: str, meaning: Meaning) -> Rule:
    return Rule(re.compile(re.sub(r"@(\w+)", lambda m: PARTS[m[1]], pattern), re.I), meaning)


_YEAR = r"(?:,?\s+(?:of\s+|in\s+)?(?P<year>@year))?"
_DAY_MONTH = r"(?:\s+of\s+|\s+(?!(?-i:may|march)\b(?!,?\s+@year)))"  # "only 5 may come"
_COUNT = r"(?P<n>@n)(?:\s*(?:[-–]|\bor\b|\bto\b)\s*(?P<n2>@n))?\s+@unit(?P<more>\s+or\s+two)?"

_FIRST = r"\b(?:(?:@which\s+)?(?P<wd>@wd),?\s+(?:the\s+)?)?"
# The second of two days in one month.
_SECOND = r"(?:(?:@to|\s+(?:and|or)\s+(?:the\s+)?)(?:(?P<wd2>@wd),?\s+)?(?:the\s+)?(?P<day2>@day))?"
_MONTH_DAY = r"(?P<month>@month)\s+(?:the\s+)?(?P<day>@day)"
DATED_RULES = [
    _rule(r"(?:\b@wd,?\s+)?(?<![\w/-])(?P<year>@iso)(?!(?!T\d)\w|[/-]\w)", _iso),
    _rule(r"(?<![\w./])(?P<a>\d\d?)(?P<sep>[./])(?P<b>\d\d?)(?P=sep)(?P<year>\d{4}|\d\d)(?![\w/])", _numeric),
    # 27 May, 27-28 May, Friday 27 to Saturday 28 May 2023; May 27, May 27-28, but not May 27 to 2 June
    _rule(_FIRST + "(?P<day>@day)" + _SECOND + _DAY_MONTH + "(?P<month>@month)" + _YEAR, _dated),
    _rule(_FIRST + _MONTH_DAY + _SECOND + r"(?!\s+(?:of\s+)?@month)" + _YEAR, _dated),
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
        r"\b(?:(?P<wd>@wd),?\s+(?:the\s+)?|the\s+)(?P<day>\d\d?(?:st|nd|rd|th)|first(?=\s+of))(?:(?P<of>\s+of\s+(?:the|@which)\s+month\b)|@alone)",
        _nth,
    ),
    _rule(
        r"\b(?<!every\s)(?<!each\s)(?P<nth>first|second|third|fourth|fifth|last|[1-5](?:st|nd|rd|th))\s+(?P<name>@wd|weekend|week|day)\s+(?:of|in)\s+"
        r"(?:(?:the|@which)\s+)?(?:month\b|(?P<month>@month)(?:,?\s+(?:of\s+)?(?P<year>@year))?)",
        _of_month,
    ),
    _rule(
        r"\b(?P<b>(?<=between\s))?(?:@which\s+)?(?P<month>@month)(?:(?:\s+@year)?(?(b)\s+and\s+|@to)(?P<month2>@month))?"
        r"(?:,?\s+(?:of\s+)?(?P<year>@year))?(?!\s*\d)",
        _month,
    ),
    _rule(r"(?<![\w/-])(?P<year>(?:19|20)\d\d)-(?P<mm>0[1-9]|1[0-2])(?![\w/-])", _month_number),
    _rule(
        r"\b(?:@which\s+)?(?:@season|(?P<quarter>(?-i:Q)[1-4])\b)(?:\s+(?:of\s+)?(?P<year>@year))?", _season
    ),
    _rule(r"\b(?:the\s+)?day\s+before\s+yesterday\b", _fixed(-2)),
    _rule(r"\b(?:the\s+)?day\s+after\s+tomorrow\b", _fixed(2)),
    _rule(
        r"\b(?:the\s+)?(?P<unit>week|weekend|month|year)\s+(?P<which>before last|after next)\b", _second_unit
    ),
    _rule(rf"\b{_COUNT}\s+from\s+(?:now|today)\b", _in),
    _rule(rf"\b{_COUNT}\s+(?:from|on)\s+(?P<base>tomorrow|@wd)\b", _from),
    _rule(r"\byesterday\b|\blast\s+night\b", _fixed(-1)),
    _rule(r"\b(?:today|tonight|this\s+(?:morning|afternoon|evening))\b", _fixed(0)),
    _rule(r"\btomorrow\b", _fixed(1)),
    _rule(rf"\b{_COUNT}\s+(?:ago|back)\b", _ago),
    _rule(rf"\bin\s+(?:about\s+|around\s+|roughly\s+)?{_COUNT}(?!\s+(?:of|total|straight)\b)", _in),
    _rule(rf"\bfor\s+(?:the\s+next\s+)?{_COUNT}\b", _lasting),
    _rule(
        r"\b(?:(?P<within>within)|(?:the\s+)?(?P<which>last|past|previous|next|coming))\s+(?:the\s+next\s+)?(?P<n>@n)\s+@unit",
        _rolling,
    ),
    _rule(
        r"\b(?P<within>(?!))?(?:the|this)\s+(?P<which>past|coming)\s+(?P<n>(?!))?@unit(?<!weekend)", _rolling
    ),
    _rule(r"\b@which\s+week(?:\s+on)?\s+(?P<wd>@wd)\b", _weekday_of_week),
    _rule(r"\b(?P<wd>@wd)\s+(?:of\s+)?@which\s+week\b", _weekday_of_week),
    _rule(r"\b@which\s+(?!day)@unit(?!\s+of\b)", _this_unit),
    _rule(r"\bthe\s+weekend\b(?!\s+of\b)", _the_weekend),
    _rule(
        r"\b(?:@which\s+)?(?P<wd>@wd|@short)\b(?!\s+(?:(?:morning|afternoon|evening|night)s|week|after\s+next)\b)",
        _weekday,
    ),
    _rule(r"\b(?P<year>(?:19|20)\d\d)(?P<decade>s)?(?![\w/-]|[.:,]\d)", _year),
]


# --- The days that a text speaks of: "next Friday", "in May", "3 weeks ago", said on a day → the days meant.


class When(NamedTuple):
    """The first and the last day meant, the words that name them, and the position of these words in the text."""

    start: date
    end: date
    phrase: str
    at: int = 0

    @property
    def after(self) -> int:
        """The position where the words end."""
        return self.at + len(self.phrase)


def resolve_dates(text: str, today: date, ahead: bool = False) -> list[When]:
    """
    Find the days in *text*, said *today*. Return them in order, without overlaps. *ahead*: treat *text* as a plan.

    - Weeks begin on Monday. On a Sunday, "last week" means the seven days before this Sunday.
    - "next Friday" is in next week; "last Friday" is the latest Friday before *today*.
    - A weekday, or a date without a year, is future in a plan, and past in a report. The nearest verb decides
      between the two; "for", "by" and "until" make a plan. If no word decides, a weekday is future, and a date gets
      the year in which it is nearest to *today*.
    - A date up to two months ago is chosen if the verb allows it: "the deadline is May 28", said in June.
    - A date with a wrong weekday gives no day: "Sunday 13 November 2026", which is a Friday.
    - "A to B" gives one span. Recurring days give no day: "every Friday", "on Mondays", "I work Monday to Friday".
    - In "leave on Monday and return on Wednesday", the second day is the later day.
    """
    hits = _found(text, today, RULES, ahead=ahead)
    return [When(*h.days, text[h.start : h.end].rstrip("."), h.start) for h in hits]


def full_dates(text: str) -> list[tuple[int, int, Days]]:
    """`(start, end, days)` for each date in *text* that names day, month and year."""
    return [(h.start, h.end, h.days) for h in _found(text, date(2000, 1, 1), DATED_RULES, with_year=True)]


def looks_ahead(text: str, start: int, end: int) -> bool:
    """Whether the words before the date at *start* … *end* are about a plan: "is going to", "plans to"."""
    return bool(INTENT.search(sentence_around(text, start, end)[0]))


LOOKED_AT = 8_000  # only so many characters are searched, at 25 µs each; no question and no note is longer


class _Hit(NamedTuple):
    """A match of a rule in a text, from *start* to *end*. *days*: the days that the match means in a text said today.
    `days_from` finds the days for a text said on another day, by *meaning* (the rule's function) and *match*."""

    start: int
    end: int
    days: Days
    tense: str
    meaning: Meaning
    match: re.Match[str]

    def days_from(self, today: date, tense: str) -> Days:
        """Return the days that the match means in a text said *today*; if it means none, the field `days`."""
        return _meant(self.meaning, self.match, today, tense) or self.days

    def floats(self) -> bool:
        """Whether the match names its day without a year and without a word such as "next"."""
        group = self.match.groupdict()
        return self.meaning in (_dated, _weekday, _nth) and not (group.get("year") or group.get("which"))


def _meant(meaning: Meaning, m: re.Match[str], today: date, tense: str) -> Days | tuple[()] | None:
    try:
        days = meaning(m, today, tense)
    except (ValueError, OverflowError):  # 31 February, the year 10000
        return None
    return days and (min(days), max(days))


def _found(
    text: str, today: date, rules: Iterable[Rule], with_year: bool = False, ahead: bool = False
) -> list[_Hit]:
    """All matches that mean days. A later rule does not match text that an earlier rule has matched."""
    found: list[_Hit] = []
    text = text[:LOOKED_AT]
    taken = bytearray(len(text))
    for pattern, meaning in rules:
        for m in pattern.finditer(text):
            start, end = m.span()
            if any(taken[start:end]) or (with_year and not m.groupdict("")["year"]):
                continue
            tense = "ahead" if ahead else tense_of(text, start, end)
            days = _meant(meaning, m, today, tense)
            if days:
                found.append(_Hit(start, end, days, tense, meaning, m))
            if days is not None:
                taken[start:end] = b"x" * (end - start)
    return _joined(text, sorted(found, key=lambda hit: hit.start), today)


# --- Days that depend on another day of the sentence: "from Monday to Wednesday", "leave on Monday and return on Wednesday".


TO = re.compile(PARTS["to"] + r"|\.\.", re.I)
AROUND = re.compile(r"\b(week|weekend)\s+of\s+(?:the\s+)?$", re.I)
# The next step of the same people: "and return on", ", then we come back on".
NEXT = re.compile(
    r"(?:,|\b(?:and|then))\s+(?:(?:then|i|we|he|she|they|will|am|is|are)\s+)*(\w+)[^,;:]*$", re.I
)


def _joined(text: str, hits: Iterable[_Hit], today: date) -> list[_Hit]:
    """Join hits that depend on each other: "A to B" and "the weekend of A"; put the days of one clause in order."""
    out: list[_Hit] = []
    for hit in hits:
        opening = sentence_around(text, hit.start, hit.end)[0]
        since = hit.start - len(opening)
        last = out[-1] if out and out[-1].end >= since else None
        if last and hit.meaning is _nth and last.meaning in (_dated, _iso, _numeric):
            hit = hit._replace(days=hit.days_from(last.days[0], "ahead"))
        if around := AROUND.search(opening):
            start, unit = since + around.start(), around[1].lower()
            hit = hit._replace(start=start, days=span_around(hit.days[0], unit))
        if last:
            link, lead = text[last.end : hit.start], _word_before(last.match)
            to = TO.fullmatch(link) or (lead == "between" and link.strip() == "and")
            if to and not MOVED.search(opening):
                del out[-1]
                led = last.tense or lead in ("from", "between")
                if last.meaning is hit.meaning is _weekday and not led:
                    continue  # "I work Monday to Friday"
                ends = _in_order(last, hit, today)
                hit = last._replace(end=hit.end, days=(min(ends)[0], max(ends)[1]))
            elif hit.days[1] < last.days[0] and hit.tense == last.tense and _is_next(link):
                days, ordered = _in_order(last, hit, today)
                out[-1], hit = last._replace(days=days), hit._replace(days=ordered)
        out.append(hit)
    return out


def _is_next(link: str) -> bool:
    """Whether *link*, the text between two dates, tells what the same people do next: "and return on"."""
    word = m[1].lower() if (m := NEXT.search(link)) else ""
    return word == "back" or word.endswith("ing") or is_past(word) or word.removesuffix("s") in bases()


def _in_order(first: _Hit, last: _Hit, today: date) -> tuple[Days, Days]:
    """Return the days of *first* and *last*, with *last* later. If the verb is in the past, no day is after *today*."""
    later = last.days_from(first.days[0], "ahead") if last.floats() else last.days
    if first.floats() and (not last.floats() or (first.tense == "behind" and later[0] > today)):
        return first.days_from(last.days[0], "behind"), last.days
    return first.days, later
