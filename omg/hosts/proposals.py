"""
What an assistant asks to have remembered or corrected without a message of the person's behind it.

It is written as the assistant's note, tagged `proposed`: found, shown with its mark, never in `system`. It becomes the
person's by `omg confirm`; only then a correction takes the place of the note that it corrects.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from ..curate.notes import (
    CurationResult,
    done_with,
    find_note,
    planning_under_lock,
    receipt_of,
    refuse_pages,
    refuse_retired,
    write_edits,
)
from ..errors import BadInput
from ..graph.graph import Graph
from ..grounding.sight import PERSONS
from ..index.entries import Entry
from ..message.redaction import redact
from ..plan.edits import Edit, one_line
from ..tools.remembering import days_asked

PROPOSED, CORRECTION = "proposed", "correction"


def propose_note(graph: Graph, text: str, title: str, when: str, now: datetime) -> str:
    """Write *text* as the assistant's; returns the note's path."""
    text, title = (redact(one_line(given))[0] for given in (text, title))
    if not text:
        raise BadInput("remember what? give `text`, one line")
    edit = Edit(
        "create", title or text[:50], text, event=days_asked(when), tags=(PROPOSED,), origin="assistant"
    )
    return write_edits(graph, [edit], now, f"proposed {edit.title}")


def propose_correction(graph: Graph, name: str, new: str, now: datetime) -> str:
    """Write *new* as what the assistant would have the note *name* say; that note stays as it is."""
    path, new = find_note(graph, name), redact(one_line(new))[0]
    if not new:
        raise BadInput("correct it to what? give `new`, the whole sentence that holds")
    refuse_pages(graph, path)
    node = graph.vault.read(path)
    refuse_retired(node)
    edit = Edit(
        "create",
        f"Correction of {node.title}",
        new,
        tags=(PROPOSED, CORRECTION),
        links=(path,),
        origin="assistant",
    )
    return write_edits(graph, [edit], now, f"proposed a correction of {path}")


def proposed_notes(graph: Graph) -> Iterator[Entry]:
    """What waits to be confirmed."""
    for entry in graph.index.entries():
        if entry.origin == "assistant" and entry.path.startswith("nodes/"):
            node = graph.vault.read(entry.path)
            if PROPOSED in node.tags:
                yield entry


def confirm_note(graph: Graph, name: str, now: datetime) -> CurationResult:
    """Make the note *name* the person's; a correction takes the place of what it corrects."""
    path = find_note(graph, name)
    refuse_pages(graph, path)
    with planning_under_lock(graph, now) as plan:
        node = plan.draft(path).node
        refuse_retired(node)
        if node.origin in PERSONS:
            raise BadInput(f"{path} is the person's already; nothing was changed")
        corrected = [p for p in node.links if p.startswith("nodes/")] if CORRECTION in node.tags else []
        plan.amend(
            path,
            origin="human",
            tags=tuple(tag for tag in node.tags if tag not in (PROPOSED, CORRECTION)),
            supersedes=(*node.supersedes, *corrected),
        )
        for old in corrected:
            plan.mark_superseded(old, path)
        return done_with(graph, path, receipt_of(plan, now, f"confirmed {path}"))
