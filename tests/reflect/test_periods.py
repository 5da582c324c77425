"""Pages of weeks and months tell what was said then: in the words of then, with what changed, and nothing forgotten."""

from __future__ import annotations

import datetime as dt

import pytest
from openai_server import believing
from planted import MONDAY, NOW, OWNER, graph_of, ms, note, put

from omg.curate import forget_selection, select_to_forget
from omg.graph.graph import Graph
from omg.inject.decide import preview
from omg.journal import commit_receipt, new_receipt
from omg.llm.replies import ModelQuestion, ModelReply
from omg.memory import Memory
from omg.node.note import Source
from omg.observe.question import Observer
from omg.plan.drafts import Plan
from omg.plan.edits import Edit
from omg.reflect.run import Cycle, CycleOptions, reflect_graph
from tests.forget.test_everywhere import traces
from tests.forget.test_reflections import home as home

DAY = dt.timedelta(days=1)
WEEK = dt.timedelta(days=7)
FIRST, SECOND, THIRD = (f"reflections/2026-W0{n}" for n in (2, 3, 4))
WEDDING = "nodes/project/wedding"
AROUND = (
    "Ines carried eleven boxes up to the third floor of the house at Rua da Bica with Tomas.",
    "Ines had dinner with the neighbours Alma and Bruno, who keep bees on the roof of the house.",
    "Ines found an old map of the tram lines in a drawer and hung it up beside the kitchen window.",
    "Ines repaired the bicycle of her brother, whose chain had been rusty since the autumn rains.",
)


@pytest.fixture
def graph(home: Memory) -> Graph:
    """Three weeks with something to tell in each."""
    graph = graph_of(home)
    for n in range(3):
        days = [MONDAY + n * WEEK + i * DAY for i in range(len(AROUND))]
        put(
            graph,
            *[note(f"nodes/episode/{d}-{n}", text, d) for d, text in zip(days, AROUND, strict=True)],
        )
    graph.index.sync(graph.vault)
    return graph


def say(graph: Graph, day: dt.date, description: str, target: str | None = None, **more: str) -> str:
    """Let the Observer note *description* on *day*, in the note *target* if there is one; returns the note's path."""
    plan = Plan(graph, day)
    source = Source(OWNER, f"m-{day}-{len(description)}", ms(day))
    path = plan.apply(
        Edit(
            op="update" if target else "create",
            title="Wedding",
            description=description,
            type="project",
            priority="high",  # so that a page has room for it
            target=target,
            sources=(source,),
            origin="user",
            **more,  # type: ignore[arg-type]
        )
    )
    at = dt.datetime(day.year, day.month, day.day, 13, tzinfo=dt.UTC)
    commit_receipt(graph, new_receipt("observation", at, plan.changes()))
    assert path
    return path


def moved(graph: Graph) -> None:
    """A wedding that moves twice, each time in another week."""
    say(graph, MONDAY, "The wedding of Alma is on 8 December.")
    say(graph, MONDAY + WEEK, "The wedding of Alma is on 9 December.", WEDDING)
    say(graph, MONDAY + 5 * WEEK, "The wedding of Alma is on 20 December.", WEDDING)


def night(home: Memory, ask: object = None, now: dt.datetime = NOW) -> Cycle:
    graph = graph_of(home)
    home.refresh(graph)
    observer = Observer(believing(ask), "scripted", 128_000) if ask else Observer()  # type: ignore[arg-type]
    return reflect_graph(graph, observer, home.config, now, CycleOptions(refresh=lambda: home.refresh(graph)))


class Asked:
    """A model that repeats all it is shown of a week, each line as a claim on its note; `weeks` has what it was shown."""

    def __init__(self) -> None:
        self.weeks: dict[str, str] = {}

    def __call__(self, question: ModelQuestion) -> ModelReply:
        if "# Length" not in question.user:
            return ModelReply('{"groups": []}', "scripted", 10, 10)
        self.weeks[question.user.partition(",")[0]] = question.user
        return ModelReply(
            '{"description": "A week.", "claims": [{"text": "It was.", "notes": ["e1"]}]}', "scripted", 10, 10
        )


def without_head(graph: Graph, path: str) -> str:
    return graph.vault.read(path).body


def test_the_page_of_a_week_shows_the_latest_state_of_a_note_in_that_week_and_the_states_before(
    home: Memory, graph: Graph
) -> None:
    moved(graph)
    night(home)
    first, second, third = (without_head(graph, path) for path in (FIRST, SECOND, THIRD))
    assert "is on 8 December." in first and "9 December" not in first and "20 December" not in first
    assert "is on 9 December. Before: The wedding of Alma is on 8 December." in second
    assert "20 December" not in second and "wedding" not in third.lower()


def test_the_page_of_a_week_names_former_states_also_after_an_import(home: Memory, graph: Graph) -> None:
    say(graph, MONDAY + WEEK, "The wedding of Alma is on 8 December.")
    say(graph, MONDAY + WEEK + 3 * DAY, "The wedding of Alma is on 9 December.", WEDDING)
    say(graph, MONDAY - 290 * WEEK, "The wedding of Alma is on a beach in Faro.", WEDDING)
    night(home)
    page = without_head(graph, SECOND)
    assert "9 December. Before: The wedding of Alma is on 8 December." in page and "Faro" not in page


def test_for_the_page_of_a_week_a_model_is_shown_the_text_that_notes_had_then(
    home: Memory, graph: Graph
) -> None:
    moved(graph)
    say(graph, MONDAY + 6 * WEEK, "", WEDDING, body="The caterer is Rossi.")
    model = Asked()
    night(home, model)
    (second,) = (user for title, user in model.weeks.items() if title == "# Week 3 of 2026")
    assert "9 December. Before: The wedding of Alma is on 8 December." in second
    assert "20 December" not in second and "Rossi" not in second


@pytest.mark.parametrize("receipts", [True, False])
def test_a_later_addition_to_a_note_is_on_the_page_of_the_week_of_the_addition(
    home: Memory, graph: Graph, receipts: bool
) -> None:
    """Once the receipts are gone, the week has the note's line alone, and nothing that was said later."""
    say(graph, MONDAY, "The wedding of Alma is on 8 December.")
    say(graph, MONDAY + WEEK, "", WEDDING, body="The caterer is Rossi.")
    say(graph, MONDAY + 5 * WEEK, "", WEDDING, body="The band is Fado Novo.")
    for file in () if receipts else (graph.folder / "receipts").iterdir():
        file.unlink()
    night(home)
    first, second = without_head(graph, FIRST), without_head(graph, SECOND)
    assert "is on 8 December." in first and "Rossi" not in first and f"[[{WEDDING}|" in second
    assert ("The caterer is Rossi." in second) == receipts
    assert "Fado" not in first + second


def test_a_replaced_note_is_on_the_page_of_the_week_in_which_it_was_written(
    home: Memory, graph: Graph
) -> None:
    old, new = "nodes/preference/tea-a", "nodes/preference/tea-b"
    put(graph, note(old, "Ines drinks black tea.", MONDAY, priority="high"))
    put(graph, note(new, "Ines drinks green tea.", MONDAY + WEEK))
    graph.index.sync(graph.vault)
    plan = Plan(graph, MONDAY + WEEK)
    plan.mark_superseded(old, new)
    commit_receipt(graph, new_receipt("observation", NOW, plan.changes()))
    night(home)
    assert "Ines drinks black tea." in without_head(graph, FIRST)
    assert f"[[{old}|" in without_head(graph, FIRST) and old not in without_head(graph, SECOND)


def test_a_finished_week_is_not_rewritten_when_its_notes_change(home: Memory, graph: Graph) -> None:
    moved(graph)
    model = Asked()
    night(home, model)
    pages = {path: graph.vault.bytes(path) for path in (FIRST, SECOND, THIRD)}
    say(graph, NOW.date(), "The wedding of Alma is on 27 December.", WEDDING)
    model.weeks.clear()
    later = night(home, model, NOW + 9 * DAY)
    assert model.weeks.keys() <= {"# April 2026", "# Week 17 of 2026"} and later.calls <= 2
    assert {path: graph.vault.bytes(path) for path in pages} == pages


def test_the_page_of_a_week_quotes_a_persons_edit(home: Memory, graph: Graph) -> None:
    moved(graph)
    home.refresh(graph)
    text = graph.vault.text(WEDDING)
    graph.vault.file(WEDDING).write_text(text.replace("is on 20 December", "is called off"))
    model = Asked()
    night(home, model)
    assert "The wedding of Alma is called off." in model.weeks["# Week 2 of 2026"]
    assert "8 December" not in model.weeks["# Week 2 of 2026"]


# --- what is forgotten, or taken out by hand


@pytest.mark.parametrize("what", [{"ids": [WEDDING]}, {"matching": "8 December"}])
def test_forgotten_former_texts_of_a_note_are_removed_from_the_pages_of_weeks_for_good(
    home: Memory, graph: Graph, what: dict[str, object]
) -> None:
    moved(graph)
    night(home)
    assert "8 December" in without_head(graph, FIRST) and "8 December" in without_head(graph, SECOND)
    forget_selection(home.intake, graph, select_to_forget(graph, **what))
    assert traces(home, "8 december") == []
    night(home, now=NOW + DAY)
    assert traces(home, "8 december") == []
    assert "wedding" not in without_head(graph, FIRST).lower() and "bicycle" in without_head(graph, FIRST)


def test_words_that_a_person_removed_do_not_come_back_from_receipts(home: Memory, graph: Graph) -> None:
    say(graph, MONDAY, "The wedding of Alma is on 8 December.")
    say(graph, MONDAY + WEEK, "", WEDDING, body="The caterer is Rossi. The hall holds sixty.")
    say(graph, MONDAY + 5 * WEEK, "The wedding of Alma is on 9 December.", WEDDING)
    home.refresh(graph)
    text = graph.vault.text(WEDDING)
    graph.vault.file(WEDDING).write_text(text.replace("The caterer is Rossi. ", ""))
    model = Asked()
    night(home, model)
    assert not any("Rossi" in user for user in model.weeks.values())


# --- in a prompt


def test_a_question_about_a_week_or_month_gets_its_page(home: Memory, graph: Graph) -> None:
    moved(graph)
    night(home)
    home.refresh(graph)
    for asked, there in (("What happened in January?", True), ("How do plants grow in winter?", False)):
        given = preview(graph, asked, OWNER, NOW, home.config).prompt
        assert ("2026-01 — " in given) == there
    week = dt.datetime(2026, 1, 20, 9, tzinfo=dt.UTC)
    given = preview(graph, "What happened last week?", OWNER, week, home.config).prompt
    assert "2026-W03 — " in given and "9 December. Before: The wedding of Alma is on 8 December." in given
