"""What people say for days, and how far off a day is said to be."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omg.dates.days import (
    day_of_ms,
    day_words,
    due_text,
    event_span,
    gap_line,
    mark_past_plans,
    pause_text,
    relative_day,
    time_zone,
)
from omg.dates.rules import resolve_dates

SAID = date(2023, 5, 17)  # a Wednesday
DAYS = st.dates(date(1900, 1, 1), date(2100, 1, 1))


def meant(text: str, said: date = SAID) -> list[str]:
    """ISO days of what *text* speaks of, ranges as a..b."""
    return [str(a) if a == b else f"{a}..{b}" for a, b, _ in resolve_dates(text, said)]


# --- relative


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        *((0, "today"), (-1, "yesterday"), (1, "tomorrow")),
        *((-2, "2 days ago"), (-6, "6 days ago"), (-7, "1 week ago"), (-13, "1 week ago")),
        *((-14, "2 weeks ago"), (-29, "4 weeks ago"), (-30, "1 month ago"), (-59, "1 month ago")),
        *((-60, "2 months ago"), (-364, "12 months ago"), (-365, "1 year ago"), (-800, "2 years ago")),
        *((2, "in 2 days"), (7, "in 1 week"), (21, "in 3 weeks"), (45, "in 1 month"), (400, "in 1 year")),
    ],
)
def test_a_day_is_as_far_off_as_whole_units_say(days: int, expected: str) -> None:
    assert relative_day(SAID + timedelta(days), SAID) == expected


@given(DAYS, st.integers(2, 20_000))
def test_the_future_mirrors_the_past(today: date, days: int) -> None:
    past, future = relative_day(today - timedelta(days), today), relative_day(today + timedelta(days), today)
    assert future == f"in {past.removesuffix(' ago')}"


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        *((-3, None), (0, None), (1, None), (2, "[2 days later]"), (7, "[1 week later]")),
        *(
            (14, "[2 weeks later]"),
            (31, "[1 month later]"),
            (90, "[3 months later]"),
            (400, "[1 year later]"),
        ),
    ],
)
def test_only_a_gap_of_more_than_a_day_is_marked(days: int, expected: str | None) -> None:
    assert gap_line(SAID, SAID + timedelta(days)) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        *((-5, None), (599, None), (600, "10 minutes"), (3_600, "1 hour"), (5_400, "1 hour 30 minutes")),
        *((90_000, "1 day 1 hour"), (86_400 * 9, "1 week 2 days"), (86_400 * 45, "1 month 2 weeks")),
        (86_400 * 400, "1 year 1 month"),
    ],
)
def test_a_silence_is_said_in_its_two_largest_units(seconds: int, expected: str | None) -> None:
    assert pause_text(seconds) == expected


# --- due


@pytest.mark.parametrize(
    ("event", "loop", "expected"),
    [
        *((None, "open", ""), ("soon", "open", ""), ("2023-05-19", "open", "due in 2 days")),
        *(("2023-05-17", "open", "due today"), ("2023-05-18", "open", "due tomorrow")),
        *(("2023-05-15", "open", "was due 2 days ago"), ("2023-05-16", "open", "was due yesterday")),
        ("2023-03-05", "open", "planned for 2023-03-05, has probably happened"),
        ("2023-05-10..2023-05-20", "open", "due in 3 days"),
        *(
            ("2023-05-24", None, "in 1 week"),
            ("2023-05-10", None, "1 week ago"),
            ("2023-05-17", None, "today"),
        ),
        *(("2023-05-10..2023-05-20", None, "until 2023-05-20"), ("2023-05-10", "done", "1 week ago")),
    ],
)
def test_what_is_due_is_said_as_of_today(event: str | None, loop: str | None, expected: str) -> None:
    assert due_text(event, SAID, loop) == expected


def test_a_day_that_lay_ahead_when_it_was_noted_was_a_plan() -> None:
    assert (
        due_text("2023-05-10", SAID, said=date(2023, 5, 1)) == "planned for 2023-05-10, has probably happened"
    )
    assert due_text("2023-05-10", SAID, said=date(2023, 5, 11)) == "1 week ago"
    assert due_text("2023-05-10", SAID, loop="done", said=date(2023, 5, 1)) == "1 week ago"
    spell = due_text("2023-05-08..2023-05-10", SAID, said=date(2023, 5, 1))
    assert spell == "planned for 2023-05-08 to 2023-05-10, has probably happened"


@given(st.one_of(st.none(), st.text(max_size=25), DAYS.map(str)))
def test_no_event_breaks_what_is_due(event: str | None) -> None:
    assert isinstance(due_text(event, SAID, "open"), str)
    assert (event_span(event) is None) == (due_text(event, SAID, "open") == "")


def test_an_event_is_a_day_or_some() -> None:
    assert event_span("2026-03-05") == (date(2026, 3, 5), date(2026, 3, 5))
    assert event_span("2026-03-08..2026-03-05") == (date(2026, 3, 5), date(2026, 3, 8))
    assert event_span("2026-02-30") is None


# --- past plans


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Moved on 2023-05-03.", "Moved on 2023-05-03."),
        ("Plans to move on 2023-05-03.", "Plans to move on 2023-05-03 (2 weeks ago, has probably happened)."),
        ("Is going to move on 2023-05-31.", "Is going to move on 2023-05-31."),
        ("Plans (for May 3, 2023).", "Plans (for May 3, 2023, 2 weeks ago, has probably happened)."),
        ("From 2023-05-16 to 2023-05-18 away", "From 2023-05-16 to 2023-05-18 away"),
        ("Will's birthday was on 2023-05-03", "Will's birthday was on 2023-05-03"),
        ("Plans a trip. Left on 2023-05-03", "Plans a trip. Left on 2023-05-03"),
        ("Will plays on 2023-05-03", "Will plays on 2023-05-03"),
        ("Will play on 2023-05-03", "Will play on 2023-05-03 (2 weeks ago, has probably happened)"),
        ("Will move today, 2023-05-17", "Will move today, 2023-05-17"),
        ("[[nodes/episode/2023-05-03|2023-05-03]]", "[[nodes/episode/2023-05-03|2023-05-03]]"),
        *(("at 2023-05-03T10:30", "at 2023-05-03T10:30"), ("v2023-05-03-rc1", "v2023-05-03-rc1")),
        *(("on May 3", "on May 3"), ("some day", "some day"), ("", "")),
    ],
)
def test_a_full_date_that_is_past_and_was_looked_forward_to_has_probably_happened(
    text: str, expected: str
) -> None:
    assert mark_past_plans(text, SAID) == expected


@given(
    st.lists(
        st.sampled_from(["on ", "2023-05-03", "May 3, 2023", "(", ")", ". ", "will ", "[[a", "]]", "\n"])
    )
)
def test_marking_twice_is_marking_once(parts: list[str]) -> None:
    once = mark_past_plans("".join(parts), SAID)
    assert mark_past_plans(once, SAID) == once


# --- zones


def test_a_moment_is_another_day_in_another_zone() -> None:
    ms = round(datetime(2026, 3, 5, 23, 30, tzinfo=UTC).timestamp() * 1000)
    assert day_of_ms(ms, UTC) == date(2026, 3, 5)
    assert day_of_ms(ms, time_zone("Europe/Berlin")) == date(2026, 3, 6)


def test_the_systems_zone_knows_summer_time(monkeypatch: pytest.MonkeyPatch) -> None:
    time_zone.cache_clear()
    monkeypatch.setenv("TZ", "Europe/Berlin")
    offsets = {time_zone("").utcoffset(datetime(2026, month, 1)) for month in (1, 7)}
    time_zone.cache_clear()
    monkeypatch.setenv("TZ", "nowhere")
    assert len(offsets) == 2
    assert time_zone("") is UTC
    time_zone.cache_clear()


def test_a_days_words_are_those_that_someone_searches_for() -> None:
    assert day_words(date(2026, 3, 5)) == "2026-03-05 5 March 2026 Thursday"


# --- what people say

SAYINGS = """
yesterday                                    2023-05-16
the day before yesterday                     2023-05-15
last night                                   2023-05-16
today's plan                                 2023-05-17
tonight                                      2023-05-17
tomorrow morning                             2023-05-18
the day after tomorrow                       2023-05-19
last week                                    2023-05-08..2023-05-14
this week                                    2023-05-15..2023-05-21
next week                                    2023-05-22..2023-05-28
last month                                   2023-04-01..2023-04-30
next month's trip                            2023-06-01..2023-06-30
this year                                    2023-01-01..2023-12-31
last year                                    2022-01-01..2022-12-31
last weekend                                 2023-05-13..2023-05-14
this past weekend                            2023-05-13..2023-05-14
this weekend                                 2023-05-20..2023-05-21
next weekend                                 2023-05-27..2023-05-28
two weekends ago                             2023-05-06..2023-05-07
the weekend before last                      2023-05-06..2023-05-07
over the weekend we hiked                    2023-05-13..2023-05-14
the week after next                          2023-05-29..2023-06-04
last Friday                                  2023-05-12
last Fri                                     2023-05-12
last Tues.                                   2023-05-16
last Wednesday                               2023-05-10
this Friday                                  2023-05-19
next Friday                                  2023-05-26
next Monday                                  2023-05-22
on Friday                                    2023-05-19
see you Friday                               2023-05-19
I was there on Friday                        2023-05-12
on Fri we talked                             2023-05-12
by Monday                                    2023-05-22
since Monday                                 2023-05-15
Friday of next week                          2023-05-26
next week on Monday                          2023-05-22
Monday last week                             2023-05-08
3 days ago                                   2023-05-14
a week ago                                   2023-05-08..2023-05-14
two weeks ago                                2023-05-01..2023-05-07
2-3 weeks ago                                2023-04-24..2023-05-07
a week or two ago                            2023-05-01..2023-05-14
a couple of months ago                       2023-03-01..2023-03-31
a few years ago                              2018-01-01..2021-12-31
ten years ago                                2013-01-01..2013-12-31
in 3 days                                    2023-05-20
in about two weeks                           2023-05-29..2023-06-04
in a month                                   2023-06-01..2023-06-30
two weeks from now                           2023-05-29..2023-06-04
a week from Friday                           2023-05-26
a year from today                            2024-05-17
within a week                                2023-05-17..2023-05-24
over the past week                           2023-05-10..2023-05-17
the last 3 months                            2023-02-16..2023-05-17
the next few days                            2023-05-17..2023-05-22
on May 7                                     2023-05-07
7 May 2023                                   2023-05-07
the 7th of May, 2023                         2023-05-07
May 7th, 2023                                2023-05-07
Friday, May 19                               2023-05-19
2023-05-07                                   2023-05-07
2023/5/7                                     2023-05-07
7.5.2023                                     2023-05-07
13/7/2023                                    2023-07-13
7/13/23                                      2023-07-13
December 24                                  2022-12-24
we flew home on December 24                  2022-12-24
we are flying home on December 24            2023-12-24
Feb 29                                       2024-02-29
on the 1st                                   2023-06-01
in May                                       2023-05-01..2023-05-31
in May 2021                                  2021-05-01..2021-05-31
May '21                                      2021-05-01..2021-05-31
2021-05                                      2021-05-01..2021-05-31
last August                                  2022-08-01..2022-08-31
next March                                   2024-03-01..2024-03-31
early May                                    2023-05-01..2023-05-10
mid-July 2022                                2022-07-11..2022-07-20
late 2021                                    2021-09-01..2021-12-31
the end of the month                         2023-05-21..2023-05-31
in 2022                                      2022-01-01..2022-12-31
since 2019                                   2019-01-01..2019-12-31
in the 1990s                                 1990-01-01..1999-12-31
last summer                                  2022-06-01..2022-08-31
this summer                                  2023-06-01..2023-08-31
in the fall of 2021                          2021-09-01..2021-11-30
winter 2022                                  2022-12-01..2023-02-28
Q2 2024                                      2024-04-01..2024-06-30
we will ship it in Q4                        2023-10-01..2023-12-31
by Q3 we need numbers                        2023-07-01..2023-09-30
we will launch Q4, then rest                 2023-10-01..2023-12-31
send the Q4 report by 2 June                 2023-06-02
Q3 2022 numbers came in May 2023             2023-05-01..2023-05-31
in the Q4 report of 2 May                    2023-05-02
last quarter                                 2023-01-01..2023-03-31
the third quarter of 2022                    2022-07-01..2022-09-30
from April to June 2022                      2022-04-01..2022-06-30
between March and May                        2023-03-01..2023-05-31
November to January 2023                     2022-11-01..2023-01-31
May 27-28, 2023                              2023-05-27..2023-05-28
27-28 May                                    2023-05-27..2023-05-28
May 30 to June 2                             2023-05-30..2023-06-02
30 December to 2 January 2022                2021-12-30..2022-01-02
between 3 and 5 May                          2023-05-03..2023-05-05
2023-05-01 to 2023-05-07                     2023-05-01..2023-05-07
from 3 to 7 January 2024                     2024-01-03..2024-01-07
from the 3rd to the 5th                      2023-06-03..2023-06-05
Friday 19 to Sunday 21 May                   2023-05-19..2023-05-21
between Monday and Wednesday                 2023-05-22..2023-05-24
from tomorrow until 20 May                   2023-05-18..2023-05-20
the weekend of 27 May                        2023-05-27..2023-05-28
the weekend of the 27th                      2023-05-27..2023-05-28
the week of May 24                           2023-05-22..2023-05-28
the third Thursday of December 2023          2023-12-21
the first Monday in June                     2023-06-05
the last Friday of the month                 2023-05-26
the 2nd weekend of next month                2023-06-10..2023-06-11
the last day of January                      2023-01-31
the second week of June                      2023-06-08..2023-06-14
at the end of June                           2023-06-21..2023-06-30
the first of June                            2023-06-01
by the 28th of this month                    2023-05-28
Friday the 2nd                               2023-06-02
on Monday 29th                               2023-05-29
Friday 2 and Saturday 3 June                 2023-06-02..2023-06-03
"""


@pytest.mark.parametrize("saying", SAYINGS.strip().splitlines(), ids=lambda s: s[:45].strip())
def test_what_people_say_for_days_is_understood(saying: str) -> None:
    text, expected = saying[:45].strip(), saying[45:].strip()
    assert meant(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        *("every Friday", "on Mondays", "each Sunday", "Black Friday sales"),
        *("5/7/2023", "2022 people came", "I may 5", "this may work", "may I ask", "march on", "at 10:30"),
        *("sat down in the sun", "we wed", "in the third quarter we scored", "the fall hurt", "20230507"),
        *("version 2023.5.7", "in 5 minutes", "some time ago", "the last one", "in two", "31 out of 40"),
        *("on the 5th floor", "the last week of the course", "I finished it in 3 days", "1234-56-78", ""),
        *("Q3 numbers", "in the 2025 budget", "Karin's Q4 report", "by the May report"),
        *("I work Monday to Friday", "the first Thursday of every month", "every last Friday of the month"),
        *(
            "the Saturday after next",
            "my last day at work",
            "on Monday the 30th",
            "we meet Thursday week",
            "we meet on the first Monday",
            "pages 3 to 7 may be cut",
            "on the 99th",
            "the fifth Monday of June 2023",
        ),
    ],
)
def test_what_is_no_day_is_left_alone(text: str) -> None:
    assert meant(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I'm flying on 12 December and come back on the 19th.", ["2026-12-12", "2026-12-19"]),
        ("My train leaves on 3 January and I return on the 9th.", ["2027-01-03", "2027-01-09"]),
        ("We leave on 28 December and return on the 4th.", ["2026-12-28", "2027-01-04"]),
        ("I flew out on 3 March and came back on the 9th.", ["2026-03-03", "2026-03-09"]),
        (
            "I was away from 12 to 14 October and met Lena on the 13th.",
            ["2026-10-12..2026-10-14", "2026-10-13"],
        ),
        ("My trip is on 12 December. I pay on the 19th.", ["2026-12-12", "2026-11-19"]),
    ],
)
def test_a_day_without_a_month_follows_the_full_day_of_its_sentence(text: str, expected: list[str]) -> None:
    assert meant(text, date(2026, 11, 3)) == expected


@pytest.mark.parametrize(
    ("text", "said", "expected"),
    [
        ("We leave on Friday and return on Wednesday.", date(2026, 11, 24), ["2026-11-27", "2026-12-02"]),
        ("Leaving on Friday, back on Wednesday.", date(2026, 11, 24), ["2026-11-27", "2026-12-02"]),
        ("We left on Friday and came back on Wednesday.", date(2026, 11, 23), ["2026-11-13", "2026-11-18"]),
        ("Yoga on Friday and the exam on Wednesday.", date(2026, 11, 24), ["2026-11-27", "2026-11-25"]),
        (
            "I'm flying on 20 December and coming back on 3 January.",
            date(2026, 3, 2),
            ["2026-12-20", "2027-01-03"],
        ),
        (
            "We left on 28 December and came back on 2 January.",
            date(2026, 12, 30),
            ["2025-12-28", "2026-01-02"],
        ),
        (
            "I'm flying on 20 December and booked on 3 November.",
            date(2026, 11, 24),
            ["2026-12-20", "2026-11-03"],
        ),
    ],
)
def test_what_is_done_next_is_done_later(text: str, said: date, expected: list[str]) -> None:
    assert meant(text, said) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I booked a cabin from 3 to 7 January.", "2027-01-03..2027-01-07"),
        ("We reserved two rooms, 14–16 February.", "2027-02-14..2027-02-16"),
        ("Booked: Hotel Astoria, 12–15 April.", "2027-04-12..2027-04-15"),
        ("We were in Rome from 3 to 7 January.", "2026-01-03..2026-01-07"),
        ("We were away from 28 December to 2 January.", "2025-12-28..2026-01-02"),
        ("I was ill from Thursday to Monday.", "2026-11-19..2026-11-23"),
        ("The wedding is on 3 July.", "2027-07-03"),
        ("The camp is from 3 July to 10 August.", "2027-07-03..2027-08-10"),
        ("The photo is from 3 July.", "2026-07-03"),
        ("The museum is closed on Monday.", "2026-11-30"),
        ("The house was sold on 3 March.", "2026-03-03"),
    ],
)
def test_what_is_booked_or_is_to_be_lies_ahead_and_what_was_lies_behind(text: str, expected: str) -> None:
    assert meant(text, date(2026, 11, 24)) == [expected]


def test_the_ends_of_a_move_are_two_days() -> None:
    moved = resolve_dates(
        "The exam was moved from 3 December to 10 December.", date(2026, 11, 24), ahead=True
    )
    assert [w.phrase for w in moved] == ["3 December", "10 December"]


@pytest.mark.parametrize(
    ("text", "said", "expected"),
    [
        ("last Friday", date(2023, 5, 19), "2023-05-12"),  # said on a Friday
        ("next Friday", date(2023, 5, 19), "2023-05-26"),
        ("on Friday", date(2023, 5, 19), "2023-05-26"),
        ("this Friday", date(2023, 5, 19), "2023-05-19"),
        ("last weekend", date(2023, 5, 21), "2023-05-13..2023-05-14"),  # on a Sunday
        ("last week", date(2023, 5, 21), "2023-05-14..2023-05-20"),
        ("next week", date(2023, 5, 21), "2023-05-22..2023-05-28"),
        ("this week", date(2023, 5, 21), "2023-05-15..2023-05-21"),
        ("last month", date(2023, 1, 31), "2022-12-01..2022-12-31"),
        ("next month", date(2023, 12, 31), "2024-01-01..2024-01-31"),
        ("this winter", date(2023, 1, 10), "2022-12-01..2023-02-28"),
        ("last summer", date(2023, 10, 1), "2023-06-01..2023-08-31"),
        ("a year from today", date(2024, 2, 29), "2025-02-28"),
    ],
)
def test_the_day_it_is_said_on_decides(text: str, said: date, expected: str) -> None:
    assert meant(text, said) == [expected]


def test_several_days_come_in_reading_order_with_their_words() -> None:
    text = "We met last Friday, and I'm seeing him again on May 30, or in June."
    assert [w.phrase for w in resolve_dates(text, SAID)] == ["last Friday", "May 30", "June"]
    assert all(w.phrase in text for w in resolve_dates(text, SAID))


def test_the_verbs_of_its_own_sentence_decide_where_a_weekday_lies() -> None:
    assert meant("We went out on Friday. We will go again on Sunday.") == ["2023-05-12", "2023-05-21"]


WORDS = """in on last next this the a few two 31 1 29 2023 99 May February Friday week weeks month years ago from now
to between and quarter of Q3 summer - .. , 0000-00-00 2023-13-45 30 9999 999 days end early couple by since"""


@given(st.lists(st.sampled_from(WORDS.split()), max_size=12).map(" ".join) | st.text(max_size=60), st.dates())
def test_any_text_said_on_any_day_is_read_without_an_error(text: str, said: date) -> None:
    found = resolve_dates(text, said)
    assert all(w.start <= w.end and w.phrase in text for w in found)
    places, at = [], 0
    for w in found:
        at = text.index(w.phrase, at) + len(w.phrase)
        places.append(at)
    assert places == sorted(places)


# --- which year


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((f"{said} submitted on May 28", "2026-05-28") for said in ("I", "The paper was", "Application")),
        ("The paper was submitted on May 28 and is waiting for review.", "2026-05-28"),
        ("The paper was submitted on March 3 and is waiting for review.", "2026-03-03"),
        ("I need to tell you that the paper was submitted on March 3", "2026-03-03"),
        ("I'm applying to Oslo, submitted on May 28", "2026-05-28"),
        ("I plan to sell the house we bought on March 3", "2026-03-03"),
        *(("It is due on May 28", "2026-05-28"), ("the deadline is May 28", "2026-05-28")),
        *(("It is due on March 3", "2027-03-03"), ("The grant is due June 10", "2026-06-10")),
        *(("We will present on May 28", "2027-05-28"), ("Remind me on May 28 to renew", "2027-05-28")),
        ("The report will be submitted on June 10", "2026-06-10"),
        *(("My flight leaves on January 14", "2027-01-14"), ("My flight left on January 14", "2026-01-14")),
        *(("The course starts on March 3", "2027-03-03"), ("The course starts on May 28", "2026-05-28")),
        *(("I want it finished by June 10", "2026-06-10"), ("I booked a flight for June 10", "2026-06-10")),
        *(("The meeting moved to June 10", "2026-06-10"), ("We went to Rome on June 10", "2025-06-10")),
        *(("what did I submit on May 28?", "2026-05-28"), ("anything about May 28?", "2026-05-28")),
        *(("what is due on May 28?", "2026-05-28"), ("what did we do on June 10?", "2025-06-10")),
    ],
)
def test_of_a_day_without_a_year_the_nearest_verb_and_the_nearest_day_decide(
    text: str, expected: str
) -> None:
    assert meant(text, date(2026, 6, 1)) == [expected]
