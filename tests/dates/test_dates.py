"""What people say for days, and how far off a day is said to be."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omg.dates.days import (
    day_of_ms,
    day_words,
    days_asked,
    due_text,
    event_span,
    mark_past_plans,
    pause_text,
    relative_day,
    time_zone,
)
from omg.dates.rules import resolve_dates

HERE = Path(__file__).parents[1]
SAID = date(2023, 5, 17)  # a Wednesday
DAYS = st.dates(date(1900, 1, 1), date(2100, 1, 1))


def meant(text: str, said: date = SAID) -> list[str]:
    """ISO days of what *text* speaks of, ranges as a..b."""
    return [str(a) if a == b else f"{a}..{b}" for a, b, *_ in resolve_dates(text, said)]


# --- relative


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        *((0, "today"), (-1, "yesterday"), (1, "tomorrow")),
        *((-2, "2 days ago"), (-6, "6 days ago"), (-7, "1 week ago"), (-13, "13 days ago")),
        *((-14, "2 weeks ago"), (-29, "4 weeks ago"), (-30, "1 month ago"), (-59, "1 month ago")),
        *((-60, "2 months ago"), (-364, "12 months ago"), (-365, "1 year ago"), (-800, "2 years ago")),
        *((2, "in 2 days"), (7, "in 1 week"), (9, "in 9 days"), (21, "in 3 weeks"), (45, "in 1 month")),
        (400, "in 1 year"),
    ],
)
def test_a_distance_in_days_is_written_in_whole_units(days: int, expected: str) -> None:
    assert relative_day(SAID + timedelta(days), SAID) == expected


@given(DAYS, st.integers(2, 20_000))
def test_future_distances_use_the_same_units_as_past_ones(today: date, days: int) -> None:
    past, future = relative_day(today - timedelta(days), today), relative_day(today + timedelta(days), today)
    assert future == f"in {past.removesuffix(' ago')}"


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        *((-5, None), (599, None), (600, "10 minutes"), (3_600, "1 hour"), (5_400, "1 hour 30 minutes")),
        *((90_000, "1 day 1 hour"), (86_400 * 9, "1 week 2 days"), (86_400 * 45, "1 month 2 weeks")),
        (86_400 * 400, "1 year 1 month"),
    ],
)
def test_a_pause_is_written_in_its_two_largest_units(seconds: int, expected: str | None) -> None:
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
def test_a_due_day_is_told_relative_to_today(event: str | None, loop: str | None, expected: str) -> None:
    assert due_text(event, SAID, loop) == expected


def test_a_day_that_was_in_the_future_when_noted_is_shown_as_a_plan() -> None:
    assert (
        due_text("2023-05-10", SAID, said=date(2023, 5, 1)) == "planned for 2023-05-10, has probably happened"
    )
    assert due_text("2023-05-10", SAID, said=date(2023, 5, 11)) == "1 week ago"
    assert due_text("2023-05-10", SAID, loop="done", said=date(2023, 5, 1)) == "1 week ago"
    assert due_text("2023-05-10", SAID, loop="open", said=date(2023, 5, 9)).startswith("was due")
    assert due_text("2023-05-10", SAID, loop="open", said=date(2023, 5, 10)) == "1 week ago"
    assert due_text("2023-04-01", SAID, loop="open", said=date(2023, 5, 9)) == "1 month ago"
    spell = due_text("2023-05-08..2023-05-10", SAID, said=date(2023, 5, 1))
    assert spell == "planned for 2023-05-08 to 2023-05-10, has probably happened"


@given(st.one_of(st.none(), st.text(max_size=25), DAYS.map(str)))
def test_any_text_as_an_event_gives_a_due_text_without_an_error(event: str | None) -> None:
    assert isinstance(due_text(event, SAID, "open"), str)
    assert (event_span(event) is None) == (due_text(event, SAID, "open") == "")


def test_an_event_is_one_day_or_a_span_of_days() -> None:
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
def test_the_past_date_of_a_plan_is_marked_as_probably_happened(text: str, expected: str) -> None:
    assert mark_past_plans(text, SAID) == expected


def test_the_day_of_the_message_is_not_marked_as_a_past_plan() -> None:
    text = "Decided to tell people starting 2023-05-01 (told on 2023-05-02)."
    assert mark_past_plans(text, SAID, said=date(2023, 5, 2)) == text
    assert "has probably happened" in mark_past_plans(text, SAID, said=date(2023, 5, 1))


@given(
    st.lists(
        st.sampled_from(["on ", "2023-05-03", "May 3, 2023", "(", ")", ". ", "will ", "[[a", "]]", "\n"])
    )
)
def test_marking_days_twice_changes_nothing_more(parts: list[str]) -> None:
    once = mark_past_plans("".join(parts), SAID)
    assert mark_past_plans(once, SAID) == once


# --- zones


def test_one_moment_is_on_different_days_in_different_time_zones() -> None:
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


def test_a_day_is_indexed_under_the_words_that_people_search_for() -> None:
    assert day_words(date(2026, 3, 5)) == "2026-03-05 5 March 2026 Thursday"


# --- what people say


def sayings() -> Iterator[Any]:
    """The rows of the table, each with what it shows and its words as its id."""
    shows = ""
    for line in (HERE / "corpora" / "sayings.tsv").read_text("utf-8").splitlines():
        if line.startswith("#"):
            shows = line[2:]
        elif line:
            said, expected, text = line.split("\t")
            yield pytest.param(date.fromisoformat(said), expected, text, id=f"{shows}: {text}")


@pytest.mark.parametrize(("said", "expected", "text"), [*sayings()])
def test_common_phrases_for_days_are_understood(said: date, expected: str, text: str) -> None:
    assert (" ".join(meant(text, said)) or "-") == expected


@pytest.mark.parametrize(
    "text",
    [
        "I've got a webinar coming up on March 20, hosted by the council.",
        "I'm worried about the policy, since it's gonna be reviewed on March 20.",
        "I'm gonna call Linda on March 20 as Carla recommended.",
        "I'm stressed about the launch on March 20 that Jeffrey invited me to.",
        "I've got a flight to Toronto on March 20, and I secured a flat.",
    ],
)
def test_another_clause_does_not_change_the_meaning_of_a_day(text: str) -> None:
    assert meant(text, date(2026, 3, 12)) == ["2026-03-20"]


def test_a_moved_date_gives_the_old_day_and_the_new_day() -> None:
    moved = resolve_dates(
        "The exam was moved from 3 December to 10 December.", date(2026, 11, 24), ahead=True
    )
    assert [w.phrase for w in moved] == ["3 December", "10 December"]
    moved = resolve_dates("I'm rescheduling the exam from 3 December to 10 December.", date(2026, 11, 24))
    assert [w.phrase for w in moved] == ["3 December", "10 December"]


def test_several_days_are_listed_in_reading_order_with_their_words() -> None:
    text = "We met last Friday, and I'm seeing him again on May 30, or in June."
    assert [w.phrase for w in resolve_dates(text, SAID)] == ["last Friday", "May 30", "June"]
    assert all(w.phrase in text for w in resolve_dates(text, SAID))


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


def test_a_day_after_the_word_since_is_past_even_in_a_sentence_about_the_future() -> None:
    asked = (
        "How will I fix it? I'm having trouble since joining the calendar on September 20, how will I fix it?"
    )
    assert meant(asked, date(2024, 10, 3)) == ["2024-09-20"]


@given(st.lists(st.sampled_from(WORDS.split()), max_size=12).map(" ".join) | st.text(max_size=60), st.dates())
def test_each_day_has_the_position_of_its_words(text: str, said: date) -> None:
    assert all(text[w.at : w.after] == w.phrase for w in resolve_dates(text, said))


# --- what is to come


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("My visa runs until October", "2026-10-01..2026-10-31"),
        ("The lease runs through August", "2026-08-01..2026-08-31"),
        ("It has to be done by the end of May", "2026-05-21..2026-05-31"),
        ("It is valid until the end of May", "2026-05-21..2026-05-31"),
        ("They gave me until January", "2027-01-01..2027-01-31"),
        ("The cabin is booked for October", "2026-10-01..2026-10-31"),
        ("I'm in Lisbon for three months", "2026-02-10..2026-05-10"),
        ("I lived there until October", "2025-10-01..2025-10-31"),
        ("I finished it by October", "2025-10-01..2025-10-31"),
    ],
)
def test_until_october_ends_in_the_future_unless_the_sentence_is_about_the_past(text: str, days: str) -> None:
    assert meant(text, date(2026, 2, 10)) == [days]


@pytest.mark.parametrize(
    "text",
    ["I've been in Lisbon for three months", "I worked there for three months", "It is a gift for April"],
)
def test_a_past_duration_or_a_name_is_not_read_as_a_day(text: str) -> None:
    assert meant(text, date(2026, 2, 10)) == []


@pytest.mark.parametrize(
    ("text", "days", "phrase"),
    [
        ("What's new since Monday?", "2026-03-16..2026-03-19", "Monday"),
        ("Was ist gestern passiert?", "2026-03-18", "gestern"),
        ("Was gibt's Neues seit Montag?", "2026-03-16..2026-03-19", "Montag"),
        ("Was haben wir letzte Woche gemacht?", "2026-03-09..2026-03-15", "letzte Woche"),
        ("Was habe ich am 12. März gemacht?", "2026-03-12", "12. März"),
        ("Was war vor zwei Wochen?", "2026-03-02..2026-03-08", "vor zwei Wochen"),
        ("Was war am Montag?", "2026-03-16", "Montag"),
        ("Was ist im April geplant?", "2026-04-01..2026-04-30", "April"),
    ],
)
def test_the_days_that_a_question_names_are_found_in_english_and_german(
    text: str, days: str, phrase: str
) -> None:
    when, *_ = days_asked(text, date(2026, 3, 19))
    assert "..".join(dict.fromkeys((str(when.start), str(when.end)))) == days
    assert when.phrase == phrase == text[when.at : when.after]


def test_a_past_day_named_without_a_year_in_a_question_also_means_the_next_such_day() -> None:
    def asked(text: str) -> list[str]:
        return [str(when.start) for when in days_asked(text, date(2026, 2, 17))]

    assert asked("What have I got on 27 February?") == ["2025-02-27", "2026-02-27"]
    assert asked("What happened on 8 February?") == ["2026-02-08", "2027-02-08"]
    assert asked("What happened since 3 January?") == ["2026-01-03"]
    assert asked("What did I do last February?") == ["2025-02-01"]
    assert asked("Was war im Mai 2023?") == ["2023-05-01"]
    assert asked("What happened on Monday, 9 February?") == ["2026-02-09"]
    assert asked("Was war am Montag, 9. Februar?") == ["2026-02-09"]


def test_good_morning_names_no_day() -> None:
    assert days_asked("Guten Morgen, wie geht's?", date(2026, 3, 19)) == []
