"""Searches all notes for notes that resemble the new ones, because a model can name only notes that it was shown.

A second question shows the model such notes, and asks of each new note whether it updates one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from ..errors import BadReply
from ..index.search import ALONE
from ..index.store import Entry
from ..llm.replies import ModelReply, cut_out, object_schema
from ..plan.corrections import is_proposal
from ..plan.drafts import PERSONS, Plan
from ..plan.edits import Edit, one_line
from ..text.characters import visible
from ..text.words import stems_of
from .question import beyond_line, note_line
from .reply import ParsedReply, ShownToObserver, handle, short_line, target_of_note

# For each new note: the hits of the search that are looked at, and the notes that are shown.
HITS, OF_EACH = 6, 2
# The least share of words that two notes must have in common. 9 of 18 pairs have this share that a careful model replaced
# or called contradictory at night. In two chats, 5 of 198 new notes had such a note that was not shown. (At .25: 12 and
# 12.) The scores of the search tell less.
LIKE = 0.3
SAME_SCHEMA = object_schema(
    "same",
    same={
        "type": "array",
        "items": object_schema(
            "new node", new={"type": "string"}, node={"type": "string"}, description={"type": "string"}
        ),
    },
)


@dataclass(frozen=True, slots=True)
class Twins:
    """
    New notes of a reply, and existing notes that resemble them.

    Handles are `e1` for a new note and `n1` for an existing note. `bodies` has the texts of existing notes.
    """

    new: Mapping[str, int]  # e1 → place of the edit
    notes: Mapping[str, Entry]
    bodies: Mapping[str, str]


def likely_twins(plan: Plan, parsed: ParsedReply, shown: ShownToObserver) -> Twins | None:
    """
    Find the new notes of *parsed* that resemble notes of the vault which were not *shown*. None if there are none.
    """
    known = {e.path for e in shown.notes.values()}
    new: dict[str, int] = {}
    found: dict[str, Entry] = {}
    for place, edit in enumerate(parsed.edits):
        near = notes_like(plan, edit, known) if edit.op == "create" else []
        if near:
            new[f"e{place + 1}"] = place
            found |= {e.path: e for e in near}
    if not new:
        return None
    notes = {f"n{len(shown.notes) + n}": e for n, e in enumerate(found.values(), 1)}
    return Twins(new, notes, {h: body for h, e in notes.items() if (body := beyond_line(plan, e))})


def notes_like(plan: Plan, edit: Edit, known: set[str]) -> list[Entry]:
    """
    Return active notes that resemble *edit*, best first, without the *known* notes.

    If *edit* comes from what a person said, only notes made from people's words are returned. Otherwise only notes made
    from an assistant's words are returned.
    """
    graph, text = plan.graph, f"{edit.title}. {edit.description}"
    at = datetime.fromtimestamp(edit.said_ms / 1000, UTC)
    near = []
    for hit in graph.index.search(text, HITS, now=at, how=ALONE):
        e = hit.entry
        if (
            e.path.startswith("nodes/")
            and e.status == "active"
            and e.path not in known | plan.drafts.keys()
            and (e.origin in PERSONS) == (edit.origin in PERSONS)
            and e.origin != "tool"
            and likeness(text, f"{e.title} {e.description}") >= LIKE
            and not is_proposal(graph, e)
        ):
            near.append(e)
    return near[:OF_EACH]


def likeness(a: str, b: str) -> float:
    """The share of words that two texts have in common, from 0 to 1."""
    one, two = stems_of(a).keys(), stems_of(b).keys()
    return len(one & two) / len(one | two) if one and two else 0.0


def render_twins(twins: Twins, edits: Sequence[Edit]) -> str:
    """The user part of the question: the new notes, then the notes that exist."""
    new = []
    for name, place in twins.new.items():
        edit = edits[place]
        what = ", ".join([edit.type, *([f"on {edit.event}"] if edit.event else [])])
        new.append(f"{name} [{what}] {edit.title}: {edit.description} {one_line(edit.body)}".rstrip())
    known = [
        note_line(h, e) + (f"\n    {twins.bodies[h]}" if h in twins.bodies else "")
        for h, e in twins.notes.items()
    ]
    return "\n".join(["# New notes", "", *new, "", "# Notes that exist", "", *known])


def with_twins(parsed: ParsedReply, twins: Twins, reply: ModelReply) -> ParsedReply:
    """
    Turn each new note of *parsed* into an update, if an existing note says the same.

    *reply*: the model's answer, which names the existing note for each such new note.
    """
    try:
        items: Any = cut_out(reply.text, "same", "new")["same"]
    except BadReply:
        why = "new notes were not compared with existing ones, because the model's reply could not be read"
        return replace(parsed, dropped=[*parsed.dropped, why])
    edits, targets = list(parsed.edits), dict(parsed.targets)
    for item in items if isinstance(items, list) else ():
        place = twins.new.get(handle(item.get("new"), "e")) if isinstance(item, dict) else None
        note = twins.notes.get(handle(item.get("node"), "n")) if place is not None else None
        if place is None or note is None or edits[place].op != "create":
            continue
        said, rest = short_line(visible(one_line(str(item.get("description") or ""))))
        edit = edits[place]
        edits[place] = replace(
            edit,
            op="update",
            target=note.path,
            title=note.title,
            description=said or edit.description,
            body=f"{edit.body}\n{rest}".strip(),
            sets=frozenset(["standing"] if edit.standing else []),
        )
        body = next((text for h, text in twins.bodies.items() if twins.notes[h] is note), "")
        targets[place] = target_of_note(note, body)
    return replace(parsed, edits=edits, targets=targets)
