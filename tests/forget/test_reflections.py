"""What is forgotten is gone from what nights made of it: weeks, months, topics, the log, and a night under way."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from openai_server import believing
from planted import MONDAY, NOW, OWNER, graph_of, home_at, note, put

from omg.curate import forget_selection, select_to_forget
from omg.forget.places import JOINED
from omg.forget.selection import select_words
from omg.graph.graph import Graph
from omg.llm.replies import Ask, ModelQuestion, ModelReply
from omg.memory import Memory
from omg.message.turn import Message, message_to_json
from omg.node.note import parse_node
from omg.observe.question import Observer
from omg.plan.pages import new_page
from omg.reflect.run import Cycle, CycleOptions, reflect_graph
from omg.reflect.verdicts import load_seen, stage_seen
from tests.forget.test_everywhere import SECRET, traces

DAY = dt.timedelta(days=1)
TEXTS = (
    f"Ines told Tomas that the combination of the locker is {SECRET}, and he wrote it on his hand",
    "Ines signed the lease of the flat at Rua da Bica 7 for 900 euros a month, from February on",
    "Ines and Tomas carried eleven boxes up to the third floor and the lamp from her mother broke",
    "Ines had dinner with the neighbours Alma and Bruno, who keep bees on the roof of the house",
    "Ines found the old map of the tram lines in a drawer and hung it up beside the kitchen window",
)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Memory]:
    which = home_at(tmp_path / "omg")
    yield which
    which.close()


@pytest.fixture
def graph(home: Memory) -> Graph:
    return graph_of(home)


def week(graph: Graph, start: dt.date = MONDAY, n: int = 0, texts: tuple[str, ...] = TEXTS) -> list[str]:
    """Episodes of one week, the first of which is to be forgotten; their paths."""
    days = [start + i * DAY for i in range(len(texts))]
    nodes = [note(f"nodes/episode/{day}-{n}", f"{t}.", day) for day, t in zip(days, texts, strict=True)]
    put(graph, *nodes)
    return [node.path for node in nodes]


def telling(question: ModelQuestion) -> ModelReply:
    """A model that quotes the secret in all it says wherever it was shown it, and claims it of the last note."""
    knows = SECRET in question.user
    handles = re.findall(r"^([en]\d+) ", question.user, re.M)
    if "# Length" in question.user:
        text = f"The word was {SECRET}." if knows else "A quiet time."
        text += " They moved, and met the neighbours." * ("# Week" in question.user)
        said: object = {"description": text, "claims": [{"text": text, "notes": handles[-1:]}]}
    else:
        edits = [("supersede", handles[0], h) for h in handles[1:]] if "tea" in question.user else []
        said = {
            "edits": [
                {"op": op, "node": a, "other": b, "description": "", "why": f"not {SECRET}" if knows else "-"}
                for op, a, b in edits
            ]
        }
    return ModelReply(json.dumps(said), "scripted", 10, 10)


def night(home: Memory, ask: Ask | None = telling, now: dt.datetime = NOW) -> Cycle:
    graph = graph_of(home)
    home.refresh(graph)
    observer = Observer(believing(ask), "scripted", 128_000) if ask else Observer()
    return reflect_graph(graph, observer, home.config, now, CycleOptions(refresh=lambda: home.refresh(graph)))


def forget(home: Memory, **what: object) -> None:
    graph = graph_of(home)
    home.refresh(graph)
    forget_selection(home.intake, graph, select_to_forget(graph, **what))


def leaf(path: str) -> str:
    return path.rpartition("/")[2]


def first_week(graph: Graph) -> str:
    year, number, _ = MONDAY.isocalendar()
    return f"reflections/{year}-W{number:02}"


# --- weeks, and the months that were made of them


def test_forgetting_a_note_rewrites_the_weekly_and_monthly_reflections_about_it(
    home: Memory, graph: Graph
) -> None:
    gone, *kept = week(graph)
    week(graph, MONDAY + 7 * DAY, texts=TEXTS[1:])
    night(home)
    month = "reflections/2026-01"
    assert SECRET in graph.vault.text(first_week(graph)) and SECRET in graph.vault.text(month)
    what = select_to_forget(graph, ids=[gone])
    assert {first_week(graph), month} <= set(what.paths)
    assert gone not in graph.vault.read(first_week(graph)).wikilinks  # made of it without naming it
    forget_selection(home.intake, graph, what)
    assert traces(home) == []
    assert all(graph.vault.read(p).reflected_in == () for p in kept)
    night(home, now=NOW + DAY)
    assert traces(home) == []
    assert "A quiet time." in graph.vault.text(month)
    assert graph.vault.read(kept[0]).reflected_in == (first_week(graph),)


def test_forgetting_a_message_removes_the_reflection_on_a_deleted_note_from_that_message(
    home: Memory, graph: Graph
) -> None:
    gone, *_ = week(graph)
    naming = json.loads(telling(ModelQuestion("", f"# Length\ne1 {SECRET}", {}, "reflect", "main")).text)

    def by_name(question: ModelQuestion) -> ModelReply:
        return (
            ModelReply(json.dumps(naming), "scripted", 10, 10)
            if "# Length" in question.user
            else telling(question)
        )

    night(home, by_name)
    graph.vault.file(gone).unlink()
    home.refresh(graph)
    assert SECRET in graph.vault.text(first_week(graph))
    archive = graph.folder / "archive" / "2026-01.jsonl"
    said = Message(f"m-{leaf(gone)}", "user", TEXTS[0], 1)
    archive.write_text(message_to_json(said, OWNER) + "\n")
    forget(home, session=OWNER)
    assert traces(home) == []


# --- the log, topics, and what was seen


def test_the_log_page_says_nothing_of_a_forgotten_note(home: Memory, graph: Graph) -> None:
    week(graph)
    put(
        graph,
        note("nodes/preference/tea-a", f"Ines drinks {SECRET} tea.", MONDAY),
        note("nodes/preference/tea-b", "Ines drinks green tea.", MONDAY + DAY),
    )
    night(home)
    (page,) = (p for p in graph.vault.paths() if p.startswith("reflections/log/"))
    assert SECRET in graph.vault.text(page)
    forget(home, ids=["nodes/preference/tea-a", "nodes/episode/2026-01-05-0"])
    assert traces(home) == []
    assert "cycle" in graph.vault.text(page)


@pytest.mark.parametrize("how", ["matching", "ids"])
def test_forgetting_removes_a_topic_with_a_forgotten_name_and_keeps_its_other_notes(
    home: Memory, graph: Graph, how: str
) -> None:
    topic = f"mocs/moc-facts-{SECRET}"
    whole = replace(parse_node(new_page(topic, ""), topic), links=("mocs/moc-facts",))
    telling = [note(f"nodes/fact/{SECRET}-{n}", f"The {SECRET} has {n} sides.", MONDAY) for n in range(4)]
    other = note("nodes/fact/drawer", "The drawer is green.", MONDAY)
    notes = [*telling, other] if how == "matching" else telling
    put(graph, whole, *(replace(n, links=(topic,)) for n in notes))
    night(home, None)
    assert SECRET in graph.vault.text("mocs/moc-facts")
    forget(home, **{how: SECRET if how == "matching" else [n.path for n in telling]})
    assert traces(home) == []
    if how == "matching":
        assert "[[nodes/fact/drawer|" in graph.vault.text("mocs/moc-facts")


def test_forgetting_a_note_keeps_a_topic_page_that_a_person_wrote_in(home: Memory, graph: Graph) -> None:
    topic = f"mocs/moc-facts-{SECRET}"
    put(graph, note(f"nodes/fact/{SECRET}", f"The {SECRET} has sides.", MONDAY, links=()))
    page = graph.vault.file(topic)
    page.write_text(new_page(topic, "") + "\nMy own words.\n")
    home.refresh(graph)
    what = select_to_forget(graph, matching=SECRET)
    assert what.left == (topic,)
    forget_selection(home.intake, graph, what)
    assert "My own words." in graph.vault.text(topic)


def test_files_left_by_a_crashed_night_do_not_name_a_forgotten_note(home: Memory, graph: Graph) -> None:
    put(graph, note(f"nodes/fact/{SECRET}", "It is in the cellar.", MONDAY))
    night(home, None)
    stage_seen(graph, load_seen(graph), "crashed")
    forget(home, ids=[f"nodes/fact/{SECRET}"])
    assert traces(home) == []


def test_forgetting_also_searches_the_reflections_of_a_merged_graph(home: Memory, graph: Graph) -> None:
    gone, *_ = week(graph)
    night(home)
    old = home.folder / "joined" / "other"
    old.mkdir(parents=True)
    (old / JOINED).write_text(json.dumps({"into": graph.identity.key}))
    for path in (gone, first_week(graph), "reflections/2026-01"):
        if (data := graph.vault.bytes(path)) is not None:
            # The better model called the note otherwise.
            file = old / "vault" / f"{path.replace('2026-01-05-0', 'worse-name')}.md"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data.replace(b"2026-01-05-0]]", b"worse-name]]"))
    (old / "receipts").mkdir()
    forget(home, ids=[gone])
    assert traces(home) == []


# --- a night under way


def meanwhile(do: Callable[[], None], when: Callable[[ModelQuestion], bool], then: Ask = telling) -> Ask:
    """A model during whose first answer to such a question *do* happens."""
    done: list[bool] = []

    def ask(question: ModelQuestion) -> ModelReply:
        reply = then(question)
        if when(question) and not done:
            done.append(True)
            do()
        return reply

    return ask


@pytest.mark.parametrize("redacts", [False, True])
def test_a_running_night_does_not_write_back_forgotten_or_redacted_words(
    home: Memory, graph: Graph, redacts: bool
) -> None:
    gone, *kept = week(graph)

    def begin() -> None:
        home.refresh(graph)
        what = select_words(graph, SECRET) if redacts else select_to_forget(graph, ids=[gone])
        forget_selection(home.intake, graph, what)

    night(home, meanwhile(begin, lambda q: "# Length" in q.user))
    assert traces(home) == []
    assert redacts or graph.vault.bytes(first_week(graph)) is None
    night(home, now=NOW + DAY)
    assert traces(home) == []
    assert "A quiet time." in graph.vault.text(first_week(graph))
    assert all(first_week(graph) in graph.vault.read(p).reflected_in for p in kept)


def test_if_a_note_is_forgotten_during_a_model_call_the_next_night_judges_similar_notes(
    home: Memory, graph: Graph
) -> None:
    put(
        graph,
        note("nodes/preference/tea-a", "Ines drinks black tea.", MONDAY + 2 * DAY),
        note("nodes/preference/tea-b", "Ines drinks green tea.", MONDAY),
        note("nodes/preference/tea-c", f"Ines drinks {SECRET} tea.", MONDAY + DAY),
    )
    night(home, meanwhile(lambda: forget(home, ids=["tea-c"]), lambda q: "tea" in q.user))
    assert traces(home) == []
    night(home, now=NOW + DAY)
    assert traces(home) == []
    assert graph.vault.read("nodes/preference/tea-b").superseded_by == "nodes/preference/tea-a"
