"""
What an assistant asks to remember without the person's words behind it, and `omg confirm`.

Both are proposals of the assistant's (plan/corrections.py): found, shown with their mark, never in `system`.
"""

from __future__ import annotations

from datetime import datetime

from ..curate import (
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
from ..plan.corrections import Correction, correction_proposed, take_up
from ..plan.drafts import PERSONS
from ..plan.edits import Edit, one_line
from ..secrets import redact
from ..tools.changing import days_asked


def propose_note(graph: Graph, text: str, title: str, when: str, now: datetime) -> str:
    """Write *text* as the assistant's; returns the note's path."""
    text, title = (redact(one_line(given))[0] for given in (text, title))
    if not text:
        raise BadInput("remember what? give `text`, one line")
    event = days_asked(when)
    edit = Edit("create", title or text[:50], text, event=event, origin="assistant", proposes="fact")
    return write_edits(graph, [edit], now, f"proposed {edit.title}")


def propose_correction(graph: Graph, name: str, new: str, now: datetime) -> str:
    """Write *new* as what the assistant would have the note *name* say; that note stays as it is."""
    path, new = find_note(graph, name), redact(one_line(new))[0]
    if not new:
        raise BadInput("correct it to what? give `new`, the whole sentence that holds")
    refuse_pages(graph, path)
    node = graph.vault.read(path)
    refuse_retired(node)
    edit = correction_proposed(node, Correction(node.description, new), ())
    return write_edits(graph, [edit], now, f"proposed a correction of {path}")


def confirm_note(graph: Graph, name: str, now: datetime) -> CurationResult:
    """Make the note *name* the person's; a correction is made in the note that it corrects."""
    path = find_note(graph, name)
    refuse_pages(graph, path)
    with planning_under_lock(graph, now) as plan:
        node = plan.draft(path).node
        refuse_retired(node)
        if node.origin in PERSONS:
            raise BadInput(f"{path} is the person's already; nothing was changed")
        if node.proposes:
            path = take_up(plan, path)
        plan.amend(path, origin="human")
        return done_with(graph, path, receipt_of(plan, now, f"confirmed {path}"))
