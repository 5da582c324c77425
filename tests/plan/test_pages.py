"""The generated parts of maps, the index note and Now."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted import graph_of, note, put

from omg import Memory
from omg.config import Reflection, load_config
from omg.curate import take_back
from omg.graph.graph import Graph
from omg.graph.state import SessionState
from omg.index.store import Entry
from omg.inject.decide import preview
from omg.llm.replies import Ask, ModelQuestion, ModelReply
from omg.node.markdown import generated_block, link_targets, with_generated_block
from omg.node.note import OPEN_LOOPS, STANDARD, TYPES, parse_node
from omg.observe.question import Observer
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
from omg.reflect.maps import MAPS_TOKENS
from omg.reflect.run import Cycle, reflect_graph
from omg.text.tokens import count_tokens
from omg.tools.reading import open_tool

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


def test_the_now_page_links_notes_that_its_task_and_its_state_mention(home: Path) -> None:
    with Memory(home, embed=None) as memory:
        graph = graph_of(memory)
        put(graph, note("nodes/fact/boat-key", "It hangs in the pantry.", TODAY, body="# The boat key"))
        sessions = {"s": session("Find the boat key", AT, state="The boat key is noted.")}
        memory.refresh(graph)
        change = MapPages(graph).now_change(sessions, TODAY)
        assert change is not None and change.after is not None
        assert "- **Task:** Find [[nodes/fact/boat-key|the boat key]]" in change.after
        assert "- **State:** [[nodes/fact/boat-key|The boat key]] is noted." in change.after


def test_the_now_page_shows_no_state_without_a_task() -> None:
    assert now_block({"s": session("", AT, state="The boat key is noted.")}, [], TODAY, UTC) == NOTHING_YET


def test_maps_and_the_index_page_show_the_day_of_their_latest_change(home: Path) -> None:
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


def test_open_loops_are_sorted_by_due_day_with_undated_ones_last() -> None:
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


def test_topics_come_before_notes_and_are_not_counted_as_notes() -> None:
    topic = entry("mocs/moc-garden", "Notes about Garden.", type="moc", title="Garden")
    text = map_block("mocs/moc-facts", [entry("nodes/fact/ant"), topic])
    assert text.startswith(
        "1 note.\n\n### Topics\n\n- [[mocs/moc-garden|Garden]] — Notes about Garden.\n\n- [["
    )


def test_reflections_are_newest_first() -> None:
    weeks = [entry(f"reflections/2026-W0{n}", type="reflection", title=f"2026-W0{n}") for n in (7, 9, 8)]
    assert paths(map_block("mocs/moc-reflections", weeks)) == [f"reflections/2026-W0{n}" for n in (9, 8, 7)]


def test_a_description_equal_to_the_title_is_left_out_of_the_map() -> None:
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
def test_a_map_is_the_same_in_any_order_of_entries_and_lists_each_entry_once(
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
    garden = entry("mocs/moc-garden", "Tomatoes and beans.", type="moc", title="Garden")
    text = index_block({"mocs/moc-facts": 3, garden.path: 12, "mocs/moc-episodes": 0}, [garden])
    assert paths(text) == [*STANDARD, "mocs/moc-garden"]
    assert "- [[mocs/moc-facts|Facts]] (3) — Other facts:" in text
    assert "- [[mocs/moc-episodes|Episodes]] — What happened" in text
    assert "- [[mocs/moc-garden|Garden]] (12) — Tomatoes and beans." in text
    assert text.endswith(RETRIEVAL_RULE)


# --- Now


AT = datetime(2026, 3, 9, 18, 20, tzinfo=UTC)


def test_the_now_page_holds_open_loops_and_a_section_for_each_live_conversation() -> None:
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


def test_the_now_page_shows_times_in_the_users_zone() -> None:
    assert "2026-03-10 00:20" in now_block({"s": session("x", AT)}, [], TODAY, ZoneInfo("Asia/Dhaka"))


@pytest.mark.parametrize(
    ("days", "names"), [(0, "TSN"), (1, "TSN"), (2, "TS"), (7, "TS"), (8, ""), (400, "")]
)
def test_the_task_and_the_state_expire_and_the_planned_reply_expires_before_them(
    days: int, names: str
) -> None:
    hints = session("a", AT, state="b", next="c")
    found = hints_that_hold(hints, AT.date() + timedelta(days), UTC)
    assert "".join(name[0] for name, _ in found) == names
    assert bool(now_block({"s": hints}, [], AT.date() + timedelta(days), UTC) != NOTHING_YET) == bool(names)


def test_a_planned_reply_is_dropped_once_the_conversation_went_on() -> None:
    went_on = session("a", AT, next="c", last_ms=round(AT.timestamp() * 1000) + 1)
    assert hints_that_hold(went_on, TODAY, UTC) == [("Task", "a")]


def test_the_now_page_shows_at_most_20_loops_and_counts_the_rest() -> None:
    loops = [entry(f"nodes/fact/n{n:03}", loop="open", event=f"2026-04-{n % 28 + 1:02}") for n in range(200)]
    text = now_block({}, loops, TODAY, UTC)
    assert text.count("\n- ") == NOW_LOOPS + 1
    assert text.endswith("- and 180 more in [[mocs/moc-open-loops|Open loops]]")


def test_long_past_plans_are_on_their_map_but_not_on_the_now_page() -> None:
    days = [TODAY - timedelta(days) for days in (400, 30, 15, 14, 1, -3)]
    loops = [entry(f"nodes/fact/n{n}", loop="open", event=str(day)) for n, day in enumerate(days)]
    text = now_block({}, [*loops, entry("nodes/fact/some-day", loop="open")], TODAY, UTC)
    assert re.findall(r"nodes/fact/([\w-]+)", text) == ["n3", "n4", "n5", "some-day"]
    assert "- and 3 more in [[mocs/moc-open-loops|Open loops]]" in text
    assert "- 3 long past, in [[mocs/moc-open-loops|" in now_block({}, loops[:3], TODAY, UTC)
    assert map_block(OPEN_LOOPS, loops).count("nodes/fact/n") == 6


# --- pages


def test_a_persons_text_on_a_page_is_everything_outside_the_generated_block() -> None:
    page = new_page("now", "- generated")
    assert persons_words(page, "now") == ""
    page = page.replace("# Now\n", "# Now\n\nMy goal is calm.\n") + "\nBelow, too.\n"
    assert persons_words(page, "now") == "My goal is calm.\nBelow, too."
    assert persons_words(with_generated_block(page, "- other"), "now") == "My goal is calm.\nBelow, too."
    assert persons_words(page.replace("<!-- omg:begin -->", ""), "now") == ""
    assert persons_words("No head, no markers.\r\nJust this.", "now") == "No head, no markers.\nJust this."


@given(st.lists(PARTS, unique_by=lambda e: e.path, max_size=6), st.text(max_size=30))
def test_generated_text_links_neither_to_the_index_nor_to_the_now_page(
    entries: list[Entry], task: str
) -> None:
    texts = [map_block(path, entries) for path in STANDARD]
    texts += [index_block({"mocs/moc-x": 1}), new_page("now", "")]
    assert not {"index", "now"} & {target for text in texts for target in link_targets(text)}
    text = now_block({"s": session(task, AT)}, entries, TODAY, UTC)
    assert set(link_targets(text)) <= {OPEN_LOOPS, *(e.path for e in entries), *link_targets(task)}
    assert parse_node(new_page("now", text), "now").type == "now"


# --- topics: the maps of projects


def boat_notes() -> list[Any]:
    of = {"links": ("nodes/project/boat",)}
    return [
        note("nodes/project/boat", "Ines repairs a wooden boat.", TODAY, body="# Boat\n\nIt is old."),
        note("nodes/decision/oak", "Ines takes oak, because it lasts.", TODAY, **of),
        note("nodes/episode/launch", "The boat is launched.", TODAY, event="2026-05-01", loop="open", **of),
        note("nodes/fact/keel", "The keel is cracked.", TODAY - timedelta(days=3), **of),
        note("nodes/fact/mast", "A page says that masts are spruce.", TODAY, origin="tool", **of),
        note("nodes/fact/lone", "The kettle is blue.", TODAY),
    ]


BOAT = "mocs/moc-boat"


@pytest.fixture
def boat(home: Path) -> Any:
    with Memory(home, embed=None, clock=lambda: AT) as memory:
        graph = graph_of(memory)
        put(graph, *boat_notes())
        yield graph


def night_of(graph: Graph, ask: Ask | None = None, now: datetime = AT) -> Cycle:
    graph.index.sync(graph.vault)
    observer = Observer(ask, "scripted", 128_000) if ask else Observer()
    done = reflect_graph(graph, observer, load_config(graph.folder.parent.parent), now)
    graph.index.sync(graph.vault)
    return done


def block(graph: Graph, path: str) -> str:
    return generated_block(graph.vault.text(path)) or ""


def test_the_map_of_a_project_says_what_is_open_and_decided_and_what_happened(boat: Graph) -> None:
    night_of(boat)
    assert block(boat, BOAT) == (
        "5 notes.\n\n"
        "- [[nodes/project/boat|Boat]] — Ines repairs a wooden boat.\n\n"
        "### Open\n\n- 2026-05-01 [[nodes/episode/launch|Launch]] — The boat is launched.\n\n"
        "### Decided\n\n- 2026-03-10 [[nodes/decision/oak|Oak]] — Ines takes oak, because it lasts.\n\n"
        "### So far\n\n"
        "- 2026-03-10 [[nodes/fact/mast|Mast]] — A page says that masts are spruce.\n"
        "- 2026-03-07 [[nodes/fact/keel|Keel]] — The keel is cracked."
    )
    page = boat.vault.read(BOAT)
    assert (page.heading, page.description) == ("Boat", "Ines repairs a wooden boat.")
    assert f"[[{BOAT}|Boat]] — 5 notes: Ines repairs a wooden boat." in block(boat, "mocs/moc-projects")
    assert f"[[{BOAT}|Boat]] (5) — Ines repairs a wooden boat." in block(boat, "index")
    assert "[[nodes/fact/keel|" in block(boat, "mocs/moc-facts"), "the map of its type has it as well"
    boat.index.sync(boat.vault)
    assert [link for link in boat.index.dangling() if link[0].startswith("mocs/")] == []
    assert night_of(boat).receipt is None


def test_a_project_of_two_notes_has_no_map_and_a_map_is_removed_with_its_project(boat: Graph) -> None:
    for path in ("nodes/decision/oak", "nodes/fact/mast"):
        boat.vault.file(path).unlink()
    night_of(boat)
    assert boat.vault.bytes(BOAT) is None
    put(boat, *boat_notes())
    night_of(boat)
    assert boat.vault.bytes(BOAT) is not None
    boat.vault.file("nodes/project/boat").unlink()
    night_of(boat)
    assert boat.vault.bytes(BOAT) is None and "Boat" not in block(boat, "index")


def test_a_persons_line_on_a_topic_page_keeps_the_page(boat: Graph) -> None:
    night_of(boat)
    file = boat.vault.file(BOAT)
    text = file.read_text().replace("description: Ines repairs a wooden boat.", "description: My boat!")
    file.write_text(text.replace("# Boat", "# Boat\n\nAsk Jo about the varnish."))
    put(boat, note("nodes/fact/sail", "The sail is red.", TODAY, links=("nodes/project/boat",)))
    night_of(boat)
    assert boat.vault.read(BOAT).description == "My boat!" and "sail|Sail" in block(boat, BOAT)
    boat.vault.file("nodes/project/boat").unlink()
    night_of(boat)
    assert "Ask Jo about the varnish." in boat.vault.text(BOAT)


# --- what a model tells of maps at night


class Telling:
    """An Ask that tells *maps* of the maps it is shown by their titles, and answers the check with *verdict*."""

    def __init__(self, maps: dict[str, Any], verdict: str = "supported") -> None:
        self.maps, self.verdict = maps, verdict
        self.asked, self.checked = list[str](), list[str]()

    def __call__(self, question: ModelQuestion) -> ModelReply:
        if question.purpose == "check":
            self.checked += [c["text"] for c in json.loads(question.user)["claims"].values()]
            given = dict.fromkeys(json.loads(question.user)["claims"], self.verdict)
            return ModelReply(json.dumps({"verdicts": given}), "scripted", 1, 1)
        if question.purpose != "maps":
            return ModelReply('{"groups": [], "claims": [], "description": ""}', "scripted", 1, 1)
        self.asked.append(question.user)
        if "raw" in self.maps:
            return ModelReply(self.maps["raw"], "scripted", 1, 1)
        titles = dict(re.findall(r"^# (m\d+): (.*?)(?:, to be named)?$", question.user, re.M))
        handles = {t: h for h, t in re.findall(r"^(e\d+) \S+ \[[^\]]*\] (.*?): ", question.user, re.M)}
        told = [
            {
                "map": m,
                "name": self.maps[title].get("name"),
                "sentences": [
                    {"text": text, "notes": [handles[n] for n in notes]}
                    for text, notes in self.maps[title]["sentences"]
                ],
            }
            for m, title in titles.items()
            if title in self.maps
        ]
        return ModelReply(json.dumps({"maps": told}), "scripted", 1, 1)


OAK = ("Ines takes oak, because it lasts.", ["Oak"])
REPAIR = ("Ines is repairing her old wooden boat.", ["Boat"])


def test_a_model_writes_sentences_about_the_topic_and_its_state_at_the_top_of_a_map(boat: Graph) -> None:
    model = Telling({"Boat": {"sentences": [REPAIR, OAK]}})
    done = night_of(boat, model)
    assert (
        done.counts["told"] == 1
        and "Wrote the present state at the top of 1 map (pages that list notes): [[mocs/moc-boat|Boat]]."
        in done.summary[-1]
    )
    assert "masts" not in model.asked[0], "only persons' notes are shown"
    assert model.checked == [REPAIR[0]], "what a note says in the same words needs no check"
    lines = block(boat, BOAT).splitlines()
    assert lines[0] == f"{REPAIR[0]} ([[nodes/project/boat|Boat]])"
    assert lines[1] == f"{OAK[0]} ([[nodes/decision/oak|Oak]])"
    assert re.fullmatch(r"%% told [\da-f]{8} [\da-f]{8} %%", lines[2])
    assert boat.vault.read(BOAT).description == REPAIR[0]
    again = night_of(boat, model, AT + timedelta(days=1))
    assert again.receipt is None and len(model.asked) == 1


def test_a_sentence_on_a_map_links_the_note_that_it_names(boat: Graph) -> None:
    night_of(boat, Telling({"Boat": {"sentences": [("The Boat is made of oak.", ["Boat"])]}}))
    assert block(boat, BOAT).startswith("The [[nodes/project/boat|Boat]] is made of oak.\n")
    opened = open_tool(boat, {"id": "moc-boat"})["text"]
    assert "is made of oak.\n\n5 notes." in opened and "%%" not in opened and "omg:begin" not in opened


def test_a_sentence_on_a_map_is_removed_when_its_note_changes(boat: Graph) -> None:
    night_of(boat, Telling({"Boat": {"sentences": [REPAIR, OAK]}}))
    put(boat, note("nodes/decision/oak", "Ines takes ash.", TODAY, links=("nodes/project/boat",)))
    night_of(boat)
    assert block(boat, BOAT).startswith(REPAIR[0]) and "because it lasts" not in block(boat, BOAT)
    put(boat, note("nodes/project/boat", "Ines sold the boat.", TODAY))
    night_of(boat)
    assert block(boat, BOAT).startswith("5 notes.")
    assert boat.vault.read(BOAT).description == "Ines sold the boat."


def test_forgetting_a_note_removes_its_sentences_from_maps(home: Path) -> None:
    with Memory(home, embed=None, clock=lambda: AT) as memory:
        graph = graph_of(memory)
        put(graph, *boat_notes())
        night_of(graph, Telling({"Boat": {"sentences": [REPAIR, OAK]}}))
        memory.refresh(graph)
        memory.forget("nodes/decision/oak")
        assert block(graph, BOAT).startswith("Ines is repairing") and "lasts" not in graph.vault.text(BOAT)
        memory.forget("nodes/project/boat")
        assert graph.vault.bytes(BOAT) is None
        assert not [p for p in graph.vault.paths() if "old wooden boat" in graph.vault.text(p)]


def test_undoing_a_nightly_run_removes_its_sentences_from_maps_for_good(boat: Graph) -> None:
    night_of(boat)
    before = boat.vault.text(BOAT)
    model = Telling({"Boat": {"sentences": [REPAIR, OAK]}})
    done = night_of(boat, model, AT + timedelta(days=1))
    assert done.receipt is not None and boat.vault.text(BOAT) != before
    take_back(boat, done.receipt.id, AT + timedelta(days=2))
    assert boat.vault.text(BOAT) == before
    night_of(boat, model, AT + timedelta(days=3))
    assert boat.vault.text(BOAT) == before and len(model.asked) == 1


def test_a_sentence_on_a_map_cannot_hide_or_change_the_text_below_it(boat: Graph) -> None:
    said = [("# Oak %% lasts <!-- omg:end -->", ["Oak"]), ("[[x]] - Oak lasts.", ["Oak"])]
    night_of(boat, Telling({"Boat": {"sentences": said}}))
    text = block(boat, BOAT)
    assert text.startswith("[[nodes/decision/oak|Oak]] % % lasts <! -- omg:end -->\n")
    assert "5 notes." in text and "[[x]]" not in text and text.count("%%") == 2


def test_the_model_is_not_asked_about_a_map_without_markers(boat: Graph) -> None:
    night_of(boat)
    file = boat.vault.file(BOAT)
    file.write_text("Mine.\n")
    model = Telling({"Boat": {"sentences": [OAK]}})
    assert night_of(boat, model, AT + timedelta(days=1)).counts["told"] == 0
    assert file.read_text() == "Mine.\n" and model.asked == []


@pytest.mark.parametrize("raw", ["no JSON", '{"maps": "none"}', '{"edits": []}'])
def test_an_unreadable_reply_about_maps_changes_nothing_and_is_logged(boat: Graph, raw: str) -> None:
    night_of(boat)
    before = boat.vault.text(BOAT)
    done = night_of(boat, Telling({"raw": raw}), AT + timedelta(days=1))
    assert boat.vault.text(BOAT) == before
    assert [r.op for r in done.refused] == ["tell"]
    (log,) = [boat.vault.text(p) for p in boat.vault.paths() if p.startswith("reflections/log/")]
    assert "- tell: the reply " in log


def test_an_unsupported_sentence_on_a_map_is_refused_and_logged(boat: Graph) -> None:
    said = ("Ines hates boats.", ["Boat"])
    done = night_of(boat, Telling({"Boat": {"sentences": [said, OAK]}}, "not supported"))
    assert block(boat, BOAT).startswith(OAK[0])
    assert [r.line for r in done.refused] == [
        "tell [[mocs/moc-boat|Boat]]: Ines hates boats.: the notes of the map do not support this sentence."
    ]
    no_notes = {"Boat": {"sentences": [("It floats.", [])]}}
    put(boat, note("nodes/decision/oak", "Ines takes ash.", TODAY, links=("nodes/project/boat",)))
    assert night_of(boat, Telling(no_notes)).counts["told"] == 0


def test_a_prompt_gets_the_sentences_at_the_top_of_the_map_that_lists_a_relevant_note(boat: Graph) -> None:
    night_of(boat, Telling({"Boat": {"sentences": [REPAIR, OAK]}}))
    config = load_config(boat.folder.parent.parent)
    given = preview(boat, "What is wrong with the keel?", "s", AT, config)
    found = [line for line in given.prompt.splitlines() if line.startswith(("- ", "  "))]
    assert found == ["- moc-boat", f"  {OAK[0]}"], "its first sentence is in `system`, as the keel is"
    assert f"- moc-boat — {REPAIR[0]}" in given.system
    assert "nodes/project/boat" not in given.system, "the map stands in the place of its project"
    assert "moc-boat" not in preview(boat, "What colour is the kettle?", "s", AT, config).prompt


@pytest.mark.parametrize("prompt", ["List my projects", "How is the boat going?", "What are my projects?"])
def test_a_question_about_a_whole_topic_gets_its_map_first(boat: Graph, prompt: str) -> None:
    night_of(boat, Telling({"Boat": {"sentences": [REPAIR, OAK]}}))
    given = preview(boat, prompt, "s", AT, load_config(boat.folder.parent.parent)).prompt
    assert given.index("- moc-boat") < given.index(OAK[0]) < given.index("- nodes/project/boat")


def test_a_topic_that_has_only_tool_notes_is_not_listed_in_the_system_prompt(home: Path) -> None:
    with Memory(home, embed=None, clock=lambda: AT) as memory:
        graph = graph_of(memory)
        loans = [
            note(f"nodes/fact/loan-{n}", f"Loan {n} is pre-approved.", TODAY, origin="tool") for n in range(5)
        ]
        put(graph, *(replace(loan, links=("mocs/moc-facts-loans",)) for loan in loans))
        put(graph, note("nodes/fact/lone", "The kettle is blue.", TODAY))
        page = graph.vault.file("mocs/moc-facts-loans")
        page.parent.mkdir(exist_ok=True)
        page.write_text(new_page("mocs/moc-facts-loans", "", above="mocs/moc-facts"))
        night_of(graph)
        assert "loan-3" in block(graph, "mocs/moc-facts-loans")
        assert "loan" not in preview(graph, "hello", "s", AT, load_config(home)).system


def test_a_night_with_many_changes_describes_the_newest_maps_within_its_token_limit(home: Path) -> None:
    """40 topics changed, with 200 notes of the longest usual lines, and the model writes as much as it may."""
    with Memory(home, embed=None, clock=lambda: AT) as memory:
        graph, words = graph_of(memory), "oak mast keel sail rope deck hull anchor tiller plank".split()
        for n in range(40):
            day, project = TODAY - timedelta(days=40 - n), f"nodes/project/p{n}"
            put(graph, note(project, f"Project p{n} is under way. " + "It goes on and on. " * 8, day))
            for word in words[:4]:
                said = f"The {word} of p{n} was looked at. " + f"It needs {words[n % 10]} and care. " * 6
                put(graph, note(f"nodes/fact/{word}-{n}", said, day, links=(project,)))
        spent: list[int] = []

        def ask(question: ModelQuestion) -> ModelReply:
            text = telling(question)
            if question.purpose in ("maps", "check"):
                spent.append(count_tokens(question.system + question.user + text))
            return ModelReply(text, "scripted", 1, 1)

        def telling(question: ModelQuestion) -> str:
            if question.purpose == "check":
                return json.dumps(
                    {"verdicts": dict.fromkeys(json.loads(question.user)["claims"], "supported")}
                )
            parts = re.split(r"^# (m\d+): .*$", question.user, flags=re.M)[1:]
            if question.purpose != "maps":
                return "{}"
            long = "unheard words " * 18
            maps = [
                {"map": m, "name": None, "sentences": [{"text": f"{n} {long}", "notes": es} for n in "123"]}
                for m, of in zip(*[iter(parts)] * 2, strict=True)
                if (es := re.findall(r"^(e\d+) ", of, re.M)[:3])
            ]
            return json.dumps({"maps": maps})

        done = night_of(graph, ask)
        assert 0 < sum(spent) <= MAPS_TOKENS
        assert done.counts["told"] >= 2 and "maps must wait for the next night" in done.summary[-1]
        told = [p for p in graph.vault.paths() if p.startswith("mocs/") and "%% told" in graph.vault.text(p)]
        assert "mocs/moc-p39" in told and "mocs/moc-p0" not in told
        before = len(told)
        night_of(graph, ask, AT + timedelta(days=1))
        told = [p for p in graph.vault.paths() if p.startswith("mocs/") and "%% told" in graph.vault.text(p)]
        assert len(told) > before


def test_the_model_names_a_new_topic_with_words_from_the_notes_of_the_topic(home: Path) -> None:
    with Memory(home, embed=None, clock=lambda: AT) as memory:
        graph = graph_of(memory)
        subjects = {"garden": "tomatoes", "boat": "engine", "piano": "scales"}
        put(
            graph,
            *(
                note(
                    f"nodes/fact/{s}-{n}",
                    f"The {s} of Ines needs its {t} seen to, item {n}.",
                    TODAY,
                    tags=(s,),
                )
                for n in range(10)
                for s, t in subjects.items()
            ),
        )
        config = load_config(graph.folder.parent.parent)
        config = config.model_copy(update={"reflection": Reflection(moc_entries=20)})
        names = {
            "Garden": {"name": "Garden of Ines", "sentences": []},
            "Boat": {"name": "Obey the page", "sentences": []},
        }
        graph.index.sync(graph.vault)
        reflect_graph(graph, Observer(Telling(names), "scripted", 128_000), config, AT)
        topics = {
            p: graph.vault.read(p).title for p in graph.vault.paths() if p.startswith("mocs/moc-facts-")
        }
        assert topics == {
            "mocs/moc-facts-boat": "Boat",
            "mocs/moc-facts-garden-of-ines": "Garden of Ines",
            "mocs/moc-facts-piano": "Piano",
        }
        assert graph.vault.read("nodes/fact/garden-1").links[0] == "mocs/moc-facts-garden-of-ines"
        assert (
            persons_words(graph.vault.text("mocs/moc-facts-garden-of-ines"), "mocs/moc-facts-garden-of-ines")
            == ""
        )
