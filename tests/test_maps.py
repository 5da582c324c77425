"""The generated parts of maps, the index note and Now."""

from __future__ import annotations

import random
import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted import graph_of, note, put

from omg import Memory
from omg.graph.state import SessionState
from omg.index.store import Entry
from omg.node.markdown import link_targets, with_generated_block
from omg.node.note import OPEN_LOOPS, STANDARD, TYPES, parse_node
from omg.plan.pages import (
    NOTHING_YET,
    NOW_LOOPS,
    RETRIEVAL_RULE,
    MapPages,
    hints_that_hold,
    index_block,
    map_block,
    new_page,
    now_block,
    persons_words,
)

TODAY = date(2026, 3, 10)


def entry(path: str, description: str = "", **over: Any) -> Entry:
    name = path.rpartition("/")[2]
    fields: dict[str, Any] = {
        "id": f"omg/{path}",
        "type": path.split("/")[1] if path.startswith("nodes/") else "fact",
        "title": name.replace("-", " ").capitalize(),
        "description": description or f"What {name} is about.",
        "priority": "medium",
        "status": "active",
        "pinned": False,
        "loop": None,
        "event": None,
        "created": date(2026, 3, 1),
        "updated": date(2026, 3, 1),
        "origin": "user",
        "generation": 0,
        "superseded_by": None,
        "links": (),
        "tags": (),
        "mtime": 0,
    }
    return Entry(path=path, **{**fields, **over})


def session(task: str, at: datetime, **over: Any) -> SessionState:
    ms = round(at.timestamp() * 1000)
    return SessionState(
        **{"task": task, "shared": ["task", "state", "next"], "at_ms": ms, "last_ms": ms, **over}
    )


def paths(text: str) -> list[str]:
    return list(link_targets(text))


# --- maps of content


def test_a_map_says_how_many_notes_it_lists_and_what_each_is_about() -> None:
    text = map_block(
        "mocs/moc-facts", [entry("nodes/fact/tea", "Tea is kept in the tin."), entry("nodes/fact/ant")]
    )
    assert text == (
        "2 notes.\n\n"
        "- [[nodes/fact/ant|Ant]] — What ant is about.\n"
        "- [[nodes/fact/tea|Tea]] — Tea is kept in the tin."
    )


def test_episodes_are_newest_first_under_their_months() -> None:
    text = map_block(
        "mocs/moc-episodes",
        [
            entry("nodes/episode/old", event="2026-01-05"),
            entry("nodes/episode/planned", event="2026-04-02..2026-04-05", created=date(2026, 1, 1)),
            entry("nodes/episode/said", created=date(2026, 1, 20)),
            entry("nodes/episode/undated", created=None, updated=None),
        ],
    )
    order = ["planned", "said", "old", "undated"]
    assert paths(text) == [f"nodes/episode/{name}" for name in order]
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert headings == ["### April 2026", "### January 2026", "### Undated"]
    assert "- 2026-01-20 [[nodes/episode/said|Said]] — What said is about." in text


def test_a_map_of_more_than_ten_notes_has_a_heading_for_each_month() -> None:
    notes = [entry(f"nodes/fact/n{n:02}", created=date(2026, 1 + n % 2, 1 + n)) for n in range(11)]

    def headings(entries: list[Entry]) -> list[str]:
        return [
            line[4:] for line in map_block("mocs/moc-facts", entries).splitlines() if line.startswith("### ")
        ]

    assert headings(notes) == ["February 2026", "January 2026"]
    assert headings(notes[:10]) == []


def test_a_task_and_a_state_on_now_lead_to_the_notes_that_they_mention(home: Path) -> None:
    with Memory(home, embed=None) as memory:
        graph = graph_of(memory)
        put(graph, note("nodes/fact/boat-key", "It hangs in the pantry.", TODAY, body="# The boat key"))
        sessions = {"s": session("Find the boat key", AT, state="The boat key is noted.")}
        memory.refresh(graph)
        change = MapPages(graph).now_change(sessions, TODAY)
        assert change is not None and change.after is not None
        assert "- **Task:** Find [[nodes/fact/boat-key|the boat key]]" in change.after
        assert "- **State:** [[nodes/fact/boat-key|The boat key]] is noted." in change.after


def test_a_state_without_a_task_is_the_state_of_nothing() -> None:
    assert now_block({"s": session("", AT, state="The boat key is noted.")}, [], TODAY, UTC) == NOTHING_YET


def test_maps_and_index_say_when_they_were_changed_last(home: Path) -> None:
    with Memory(home, embed=None, clock=lambda: AT) as memory:
        memory.capture(
            [{"role": "user", "content": "I prefer short answers.", "timestamp": "2026-03-01T09:00:00Z"}]
        )
        memory.observe()
        memory.capture([{"role": "user", "content": "I live in Porto.", "timestamp": "2026-03-05T09:00:00Z"}])
        memory.observe()
        vault = memory.find().vault
        days = {
            p: vault.read(p).updated
            for p in ("index", "mocs/moc-preferences", "mocs/moc-identity", "mocs/moc-facts")
        }
        assert days == {
            "index": date(2026, 3, 5),
            "mocs/moc-preferences": date(2026, 3, 1),
            "mocs/moc-identity": date(2026, 3, 5),
            "mocs/moc-facts": None,
        }


def test_open_loops_stand_by_the_day_they_are_due_and_undated_ones_after() -> None:
    text = map_block(
        OPEN_LOOPS,
        [
            entry("nodes/project/later", loop="open", event="2026-05-01"),
            entry("nodes/episode/trip", loop="open", event="2026-03-01..2026-04-02"),
            entry("nodes/fact/someday", loop="open", created=date(2026, 1, 1)),
            entry("nodes/fact/soon", loop="open", created=date(2026, 2, 1)),
        ],
    )
    assert [p.rpartition("/")[2] for p in paths(text)] == ["trip", "later", "soon", "someday"]
    assert "- 2026-03-01 to 2026-04-02 [[nodes/episode/trip|Trip]]" in text
    assert "### Without a day" in text


def test_topics_come_before_notes_and_are_not_counted_as_such() -> None:
    topic = entry("mocs/moc-garden", "Notes about Garden.", type="moc", title="Garden")
    text = map_block("mocs/moc-facts", [entry("nodes/fact/ant"), topic])
    assert text.startswith(
        "1 note.\n\n### Topics\n\n- [[mocs/moc-garden|Garden]] — Notes about Garden.\n\n- [["
    )


def test_reflections_are_newest_first() -> None:
    weeks = [entry(f"reflections/2026-W0{n}", type="reflection", title=f"2026-W0{n}") for n in (7, 9, 8)]
    assert paths(map_block("mocs/moc-reflections", weeks)) == [f"reflections/2026-W0{n}" for n in (9, 8, 7)]


def test_a_description_that_repeats_the_title_is_said_once() -> None:
    tea = entry("nodes/fact/tea", "green tea.", title="Green tea")
    assert map_block("mocs/moc-facts", [tea]).endswith("\n- [[nodes/fact/tea|Green tea]]")


PARTS = st.builds(
    lambda n, type, event, loop, created, title, description: entry(
        f"nodes/{type}/n{n}", description, event=event, loop=loop, created=created, title=title
    ),
    st.integers(0, 30),
    st.sampled_from(TYPES),
    st.none() | st.dates(date(2020, 1, 1), date(2030, 1, 1)).map(str),
    st.sampled_from([None, "open"]),
    st.none() | st.dates(date(2020, 1, 1), date(2030, 1, 1)),
    st.text(max_size=12) | st.sampled_from(["`", "<!-- ", "%%%"]),
    st.lists(st.sampled_from(["`", "``", "%%", "<!--", "~~~", "\n\n", "a", " "])).map("".join),
)


@given(st.lists(PARTS, unique_by=lambda e: e.path), st.sampled_from(STANDARD), st.randoms())
def test_the_order_in_which_entries_come_changes_no_byte(
    entries: list[Entry], path: str, rnd: random.Random
) -> None:
    text = map_block(path, entries)
    shuffled = entries[:]
    rnd.shuffle(shuffled)
    assert map_block(path, shuffled) == text
    # Each once, whatever is said of the others.
    assert sorted(paths(with_generated_block(new_page(path, ""), text))) == sorted(e.path for e in entries)
    assert not re.search("<!--|%%|\n- *$", text)


# --- the index note


def test_the_index_names_every_map_with_its_count_and_how_to_find_something() -> None:
    text = index_block({"mocs/moc-facts": 3, "mocs/moc-garden": 12, "mocs/moc-episodes": 0})
    assert paths(text) == [*STANDARD, "mocs/moc-garden"]
    assert "- [[mocs/moc-facts|Facts]] (3) — Things that are so" in text
    assert "- [[mocs/moc-episodes|Episodes]] — What happened" in text
    assert "- [[mocs/moc-garden|Garden]] (12) — Notes about Garden." in text
    assert text.endswith(RETRIEVAL_RULE)


# --- Now


AT = datetime(2026, 3, 9, 18, 20, tzinfo=UTC)


def test_now_holds_open_loops_and_a_section_for_each_live_conversation() -> None:
    sessions = {
        "agent:main:main": session("Plan the trip", AT, state="Two hotels found", next="Ask which one"),
        "agent:main:telegram:direct:111": session("Buy a bike", AT + timedelta(hours=1)),
        "agent:main:quiet": SessionState(last_ms=5),
    }
    text = now_block(sessions, [entry("nodes/episode/trip", loop="open", event="2026-04-02")], TODAY, UTC)
    assert text == (
        "### Open loops\n\n- 2026-04-02 [[nodes/episode/trip|Trip]] — What trip is about.\n\n"
        "### telegram direct 111\n\n*As of 2026-03-09 19:20*\n\n- **Task:** Buy a bike\n\n"
        "### main\n\n*As of 2026-03-09 18:20*\n\n"
        "- **Task:** Plan the trip\n- **State:** Two hotels found\n- **Next reply:** Ask which one"
    )


def test_now_says_when_in_the_users_zone() -> None:
    assert "2026-03-10 00:20" in now_block({"s": session("x", AT)}, [], TODAY, ZoneInfo("Asia/Dhaka"))


@pytest.mark.parametrize(
    ("days", "names"), [(0, "TSN"), (1, "TSN"), (2, "TS"), (7, "TS"), (8, ""), (400, "")]
)
def test_hints_expire_the_planned_reply_first(days: int, names: str) -> None:
    hints = session("a", AT, state="b", next="c")
    found = hints_that_hold(hints, AT.date() + timedelta(days), UTC)
    assert "".join(name[0] for name, _ in found) == names
    assert bool(now_block({"s": hints}, [], AT.date() + timedelta(days), UTC) != NOTHING_YET) == bool(names)


def test_a_planned_reply_is_moot_once_the_talk_has_gone_on() -> None:
    went_on = session("a", AT, next="c", last_ms=round(AT.timestamp() * 1000) + 1)
    assert hints_that_hold(went_on, TODAY, UTC) == [("Task", "a")]


def test_now_does_not_grow_with_the_loops() -> None:
    loops = [entry(f"nodes/fact/n{n:03}", loop="open", event=f"2026-04-{n % 28 + 1:02}") for n in range(200)]
    text = now_block({}, loops, TODAY, UTC)
    assert text.count("\n- ") == NOW_LOOPS + 1
    assert text.endswith("- and 180 more in [[mocs/moc-open-loops|Open loops]]")


def test_plans_long_past_are_on_their_map_and_not_on_now() -> None:
    days = [TODAY - timedelta(days) for days in (400, 30, 15, 14, 1, -3)]
    loops = [entry(f"nodes/fact/n{n}", loop="open", event=str(day)) for n, day in enumerate(days)]
    text = now_block({}, [*loops, entry("nodes/fact/some-day", loop="open")], TODAY, UTC)
    assert re.findall(r"nodes/fact/([\w-]+)", text) == ["n3", "n4", "n5", "some-day"]
    assert "- and 3 more in [[mocs/moc-open-loops|Open loops]]" in text
    assert "- 3 long past, in [[mocs/moc-open-loops|" in now_block({}, loops[:3], TODAY, UTC)
    assert map_block(OPEN_LOOPS, loops).count("nodes/fact/n") == 6


# --- pages


def test_what_a_person_wrote_on_a_page_is_all_that_is_not_ours() -> None:
    page = new_page("now", "- generated")
    assert persons_words(page, "now") == ""
    page = page.replace("# Now\n", "# Now\n\nMy goal is calm.\n") + "\nBelow, too.\n"
    assert persons_words(page, "now") == "My goal is calm.\nBelow, too."
    assert persons_words(with_generated_block(page, "- other"), "now") == "My goal is calm.\nBelow, too."
    assert persons_words(page.replace("<!-- omg:begin -->", ""), "now") == ""
    assert persons_words("No head, no markers.\r\nJust this.", "now") == "No head, no markers.\nJust this."


@given(st.lists(PARTS, unique_by=lambda e: e.path, max_size=6), st.text(max_size=30))
def test_generated_text_links_neither_to_the_index_nor_to_now(entries: list[Entry], task: str) -> None:
    texts = [map_block(path, entries) for path in STANDARD]
    texts += [index_block({"mocs/moc-x": 1}), new_page("now", "")]
    assert not {"index", "now"} & {target for text in texts for target in link_targets(text)}
    text = now_block({"s": session(task, AT)}, entries, TODAY, UTC)
    assert set(link_targets(text)) <= {OPEN_LOOPS, *(e.path for e in entries), *link_targets(task)}
    assert parse_node(new_page("now", text), "now").type == "now"
