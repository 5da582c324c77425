"""
Settles doubts of the memory and undoes changes: `/omg confirm`, `reject`, `keep`, `undo`, and the page's
buttons.

Each function returns one line about its effect, for a person.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from ..curate import (
    CurationResult,
    amend_note,
    confirm_note,
    find_note,
    keep_both,
    reject_note,
    supersede_by,
    take_back,
    undoable,
)
from ..errors import BadInput, how_many
from ..graph.graph import Graph
from ..journal import short_cycle
from ..plan.drafts import PERSONS

Settled = tuple[str, CurationResult]


def told(done: CurationResult, text: str) -> Settled:
    return (text if done.cycle else "Nothing was changed: this was already done."), done


def confirm(graph: Graph, name: str, now: datetime) -> Settled:
    """Make the note *name* the person's own. A note that is already the person's gets today's date."""
    path = find_note(graph, name)
    if graph.vault.read(path).origin not in PERSONS:
        return told(confirm_note(graph, path, now), "Confirmed: the note counts as your own word now.")
    done = amend_note(graph, path, now, f"still so: {path}", updated=now.astimezone(graph.zone).date())
    return told(done, "Confirmed: the note counts as your own word of today.")


def reject(graph: Graph, name: str, now: datetime) -> Settled:
    """Remove the note *name*. OMG makes no note from the removed note's messages again."""
    done = reject_note(graph, name, now)
    return "Removed. OMG makes no note from the same words again.", CurationResult("", done.cycle)


def keep(graph: Graph, name: str, other: str, now: datetime, *, both: bool = False) -> Settled:
    """Settle a contradiction: the note *name* replaces *other*. With *both*, both notes stay valid."""
    path, beside = find_note(graph, name), find_note(graph, other)
    if both:
        return told(keep_both(graph, path, beside, now), "Both notes stay valid.")
    done = supersede_by(graph, beside, path, now)
    return told(done, "Settled. The other note is kept in the history as outdated.")


def keep_named(graph: Graph, names: str, now: datetime) -> Settled:
    """
    Settle contradictions. With one name, this note replaces each note that contradicts it. With two names, both notes
    stay valid.
    """
    path, *others = names.split()
    if others:
        return keep(graph, path, others[0], now, both=True)
    entry = graph.index.entry(find_note(graph, path))
    if entry is None or not entry.contradicts:
        raise BadInput(f"nothing contradicts {path}; nothing was changed")
    return [keep(graph, entry.path, other, now) for other in entry.contradicts][-1]


def undo(graph: Graph, cycle: str, now: datetime) -> Settled:
    """Undo the changes of *cycle*, which is given by its id or by the end of its id."""
    outcome, refused = take_back(graph, undoable(graph, cycle).id, now)
    text = f"Undone: {how_many(len(outcome.written), 'file')} changed back."
    if refused:
        text += f" Left unchanged, because edited later: {', '.join(refused)}."
    return text, CurationResult("", None)


COMMANDS: dict[str, Callable[[Graph, str, datetime], Settled]] = {
    "confirm": confirm,
    "reject": reject,
    "keep": keep_named,
    "undo": undo,
}


def settle_command(graph: Graph, verb: str, names: str, now: datetime) -> str:
    """The answer to `/omg VERB NAMES`."""
    text, done = COMMANDS[verb](graph, names, now)
    return text + (f" To undo this: /omg undo {short_cycle(done.cycle)}" if done.cycle else "")
