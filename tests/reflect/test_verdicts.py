"""A night with a model, beyond merging: what it is asked, once, and what it may do to loops, titles, links, contradictions."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from planted import KEYS, MONDAY, NOW, edit, note, put

from omg.curate import take_back
from omg.graph.graph import Graph
from omg.llm.replies import ModelQuestion, ModelReply
from tests.reflect.test_run import DAY, active, groups_in, history, map_of, night, saying
from tests.reflect.test_run import graph as graph
from tests.reflect.test_run import memory as memory

BOAT, DENTIST, TAXES = "nodes/project/boat", "nodes/decision/dentist", "nodes/decision/taxes"


class Listening:
    """An Ask that keeps what it was asked. *silent*: on these groups; on the others it says that all may stay."""

    def __init__(self, *silent: str) -> None:
        self.silent, self.asked = silent, list[str]()

    def __call__(self, question: ModelQuestion) -> ModelReply:
        if "# Length" in question.user:  # a week; not what these tests are about
            return ModelReply('{"claims": [{"text": "It was.", "notes": ["e1"]}]}', "scripted", 10, 10)
        self.asked.append(question.user)
        said = [{"group": g, "edits": []} for g in groups_in(question.user) if g not in self.silent]
        return ModelReply(json.dumps({"groups": said}), "scripted", 10, 10)

    @property
    def titles(self) -> list[set[str]]:
        """The titles of the notes of each group that it was shown."""
        parts = [part for user in self.asked for part in re.split(r"^# g\d+: .*$", user, flags=re.M)[1:]]
        return [set(re.findall(r"^n\d+ \[[^\]]*\] ([^:]*):", part, re.M)) for part in parts]


def loops(graph: Graph, **more: Any) -> None:
    """A visit to the dentist, which was due in January, and taxes, which were as well; nothing was heard of either."""
    put(
        graph,
        note(DENTIST, "Ines goes to the dentist.", MONDAY, loop="open", event="2026-01-12", **more),
        note(TAXES, "Ines will hand in her tax papers.", MONDAY, loop="open", event="2026-01-20"),
    )


# --- what is asked


def test_a_merge_into_a_note_that_was_not_shown_changes_nothing_and_does_not_end_the_night(
    graph: Graph,
) -> None:
    loops(graph)

    def merging(question: ModelQuestion) -> ModelReply:
        verdict = {"op": "merge", "node": "n1", "other": "n99", "description": "Ines swims.", "why": ""}
        said = [{"group": g, "edits": [verdict]} for g in groups_in(question.user)]
        return ModelReply(json.dumps({"groups": said}), "scripted", 10, 10)

    assert night(graph, merging).counts["merged"] == 0
    assert active(graph, DENTIST) and active(graph, TAXES)


def test_two_notes_that_the_model_left_unchanged_are_compared_again_only_after_an_edit(graph: Graph) -> None:
    def pair(second: str) -> list[Any]:
        return [
            note("nodes/fact/sea", "Ines swims in the sea at Faro.", MONDAY),
            note("nodes/fact/air", second, MONDAY + DAY),
        ]

    put(graph, *pair("Ines swims in the air of Faro."))
    model = Listening()
    assert night(graph, model).calls == 1
    put(graph, note("nodes/fact/bay", "Ines swims in the bay of Faro.", MONDAY + 2 * DAY))
    node = graph.vault.read("nodes/fact/sea")
    put(graph, note("nodes/fact/sea", node.description, MONDAY, tags=("swimming",)))  # reads as it did
    night(graph, model, NOW + DAY)
    assert len(model.asked) == 2
    assert {"Bay", "Sea"} <= set().union(*model.titles[1:])
    assert night(graph, model, NOW + 2 * DAY).calls == 0
    put(graph, *pair("Ines swims in the river of Faro."))
    night(graph, model, NOW + 3 * DAY)
    assert len(model.asked) == 3 and "river" in model.asked[-1]


def test_two_happenings_on_different_days_are_not_asked_about(graph: Graph) -> None:
    days = ("2026-01-05", "2026-02-07", "2026-03-09")
    put(
        graph,
        *[
            note(f"nodes/episode/swim-{d}", f"Ines swam at Faro with {d[5:7]} friends.", MONDAY, event=d)
            for d in days
        ],
    )
    model = Listening()
    night(graph, model)
    assert not [user for user in model.asked if "the same, changed, or two things" in user]


def test_two_notes_that_the_observer_linked_are_not_asked_about(graph: Graph) -> None:
    flat, lease = "nodes/project/flat", "nodes/fact/lease"
    put(
        graph,
        note(flat, "Ines and Tomas look for three rooms in Graça.", MONDAY),
        note(lease, "The landlord in Graça wants rents ahead for three rooms.", MONDAY, links=(flat,)),
    )
    assert night(graph, Listening()).calls == 0


def test_a_model_is_asked_once_more_about_a_group_that_its_reply_left_out(graph: Graph) -> None:
    put(
        graph,
        *KEYS,
        note("nodes/preference/tea", "Tomas likes green tea.", MONDAY),
        note("nodes/preference/cup", "Tomas likes tea that is green.", MONDAY),
    )

    def one_of_them(question: ModelQuestion) -> ModelReply:
        groups = groups_in(question.user)
        name = next(g for g, notes in groups.items() if f"{notes[0]} [fact" in question.user)
        a, b = groups[name]
        said = [{"group": name, "edits": [{"op": "merge", "node": a, "other": b, "why": "the same"}]}]
        return ModelReply(json.dumps({"groups": said}), "scripted", 10, 10)

    assert night(graph, one_of_them).counts["merged"] == 1
    model = Listening("g1")
    night(graph, model, NOW + DAY)
    assert model.titles == [{"Tea", "Cup"}]  # silent again, which is an answer now
    assert night(graph, model, NOW + 2 * DAY).calls == 0


# --- loops past their day


def test_a_finished_loop_leaves_the_map_of_open_loops_and_the_log_gives_the_reason(graph: Graph) -> None:
    loops(graph)
    night(graph)
    assert "dentist" in map_of(graph, "mocs/moc-open-loops")
    ask = saying(
        {"op": "close", "node": "to the dentist", "why": "a visit of January"},
        {"op": "keep", "node": "tax papers", "why": "still owed"},
    )
    cycle = night(graph, ask, NOW + DAY)
    assert cycle.counts["closed"] == 1
    assert graph.vault.read(DENTIST).loop == "done" and graph.vault.read(TAXES).loop == "open"
    listed = map_of(graph, "mocs/moc-open-loops")
    assert "dentist" not in listed and "taxes" in listed
    page = graph.vault.text("reflections/log/2026-04")
    assert f"- Closed [[{DENTIST}|Dentist]], due on 2026-01-12: a visit of January." in page
    assert "as its day 2026-01-12 is past" in history(graph, DENTIST)
    assert night(graph, ask, NOW + 2 * DAY).calls == 0  # what is kept open is not asked about again


def test_the_model_is_asked_again_about_an_open_loop_after_a_related_new_note(graph: Graph) -> None:
    loops(graph)
    night(graph, Listening())
    told = note("nodes/fact/tax-office", "The tax office has the tax papers of Ines.", MONDAY + 100 * DAY)
    put(graph, told)
    ask = saying({"op": "close", "node": "will hand in", "other": "tax office has", "why": "they have them"})
    night(graph, ask, NOW + DAY)
    assert graph.vault.read(TAXES).loop == "done"
    assert "going by [[nodes/fact/tax-office|Tax office]]" in history(graph, TAXES)


def test_a_loop_of_yesterday_is_not_closed_yet(graph: Graph) -> None:
    put(graph, note(BOAT, "Ines will sell the boat.", MONDAY, loop="open", event="2026-04-18"))
    model = Listening()
    assert night(graph, model).calls == 0
    assert night(graph, model, NOW + 10 * DAY).calls == 1
    assert "the day of n1 is past" in model.asked[0] and "Today is 2026-04-30." in model.asked[0]


@pytest.mark.parametrize("by_hand", [True, False])
def test_a_loop_that_a_person_edited_or_pinned_is_proposed_to_them(graph: Graph, by_hand: bool) -> None:
    loops(graph, **({} if by_hand else {"pinned": True}))
    if by_hand:
        edit(graph, DENTIST, "Bring the X-rays.")
    saved = graph.vault.bytes(DENTIST)
    cycle = night(graph, saying({"op": "close", "node": "to the dentist", "why": "over"}))
    assert graph.vault.bytes(DENTIST) == saved
    assert cycle.proposed == [f"[[{DENTIST}|Dentist]] was due on 2026-01-12, and seems to be over."]


def test_a_loop_with_a_future_day_is_not_closed(graph: Graph) -> None:
    loops(graph)
    put(graph, note(BOAT, "Ines will hand in her boat papers.", MONDAY, loop="open", event="2026-08-01"))
    cycle = night(graph, saying({"op": "close", "node": "boat papers", "why": "over"}))
    assert graph.vault.read(BOAT).loop == "open" and cycle.counts["closed"] == 0


# --- contradictions


WIFE, SISTER = "nodes/fact/maya-lisbon", "nodes/fact/maya-porto"


def disagreeing(graph: Graph, **more: Any) -> None:
    put(
        graph,
        note(WIFE, "Maya, the sister of Tomas, was born in Lisbon.", MONDAY),
        note(SISTER, "Maya, the sister of Tomas, was born in Porto.", MONDAY + 10 * DAY, **more),
    )


def test_changes_that_were_undone_are_skipped_and_listed_if_old_notes_are_reflected_again(
    graph: Graph,
) -> None:
    disagreeing(graph)
    before = graph.vault.bytes(WIFE)
    contradict = saying({"op": "contradict", "node": "born in Porto.", "other": "born in Lisbon."})
    cycle = night(graph, contradict)
    assert cycle.receipt is not None
    take_back(graph, cycle.receipt.id, NOW + DAY)
    again = night(graph, contradict, NOW + 2 * DAY, since=MONDAY)
    assert graph.vault.bytes(WIFE) == before
    assert any("that you undid" in line and WIFE in line for line in again.skipped)


def test_two_contradicting_statements_are_linked_and_proposed_to_the_person(graph: Graph) -> None:
    disagreeing(graph)
    cycle = night(
        graph, saying({"op": "contradict", "node": "in Lisbon", "other": "in Porto", "why": "two towns"})
    )
    assert cycle.counts["contradictions"] == 1 and active(graph, WIFE) and active(graph, SISTER)
    for path, other in ((WIFE, SISTER), (SISTER, WIFE)):
        assert graph.vault.read(path).contradicts == (other,)
        assert f"[[{other}|" in history(graph, path) and "says otherwise" in history(graph, path)
    page = graph.vault.text("reflections/log/2026-04")
    assert (
        f"- [[{WIFE}|Maya lisbon]] and [[{SISTER}|Maya porto]] contradict each other. Which one is true?"
        in page
    )


def test_a_contradiction_is_asked_about_again_only_after_one_of_its_notes_changed(graph: Graph) -> None:
    disagreeing(graph)
    night(graph, saying({"op": "contradict", "node": "in Lisbon", "other": "in Porto", "why": "two towns"}))
    model = Listening()
    assert night(graph, model, NOW + DAY).calls == 0
    put(
        graph,
        note("nodes/fact/maya-twin", "Maya and a twin of hers were born in a town.", MONDAY + 20 * DAY),
    )
    obeys = saying({"op": "supersede", "node": "in Porto", "other": "in Lisbon", "why": "newer"})
    night(graph, obeys, NOW + 2 * DAY)
    assert active(graph, WIFE) and active(graph, SISTER)
    wife = graph.vault.read(WIFE)
    said = "Maya, the sister of Tomas, was born in Porto, and not in Lisbon."
    put(graph, note(WIFE, said, MONDAY + 30 * DAY, contradicts=wife.contradicts))
    merged = saying(
        {"op": "supersede", "node": "not in Lisbon", "other": "born in Porto.", "why": "corrected"}
    )
    night(graph, merged, NOW + 3 * DAY)
    assert active(graph, WIFE) and not active(graph, SISTER)


def test_an_assistants_note_does_not_end_the_plan_that_it_is_merged_into(graph: Graph) -> None:
    more: dict[str, Any] = {"loop": "done", "event": "2026-09-09", "origin": "assistant"}
    put(
        graph,
        note(BOAT, "Ines will sell the red boat at Faro.", MONDAY, loop="open"),
        note("nodes/project/boat-2", "Ines will sell the red boat at Faro now.", MONDAY + DAY, **more),
    )
    cycle = night(graph, saying({"op": "merge", "node": "at Faro now", "other": "at Faro.", "why": "same"}))
    boat = graph.vault.read(BOAT)
    assert cycle.counts["merged"] == 1 and (boat.loop, boat.event) == ("open", None)
