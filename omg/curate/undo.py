"""Take a cycle back, and tell which cycles there were. What was edited since is refused, by name."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from ..errors import BadNode, NotFound
from ..graph.graph import Graph
from ..journal import (
    Outcome,
    Receipt,
    commit_receipt,
    find_receipt,
    new_receipt,
    receipts_of,
    replay_open,
    undo_receipt,
)
from ..plan.mappages import MapPages
from ..reflect.seen import UNDONE


def take_back(graph: Graph, cycle: str, now: datetime) -> tuple[Outcome, list[str]]:
    """Undo *cycle*; the paths refused because they were edited since come second. Maps are made anew."""
    with graph.lock():
        replay_open(graph)
        outcome, refused = undo_receipt(graph, cycle, now)
        maps = MapPages(graph)
        maps.add_all()
        today = now.astimezone(graph.zone).date()
        pages = [*maps.changes(), maps.now_change(graph.state().sessions, today)]
        if changes := [page for page in pages if page is not None]:
            commit_receipt(graph, new_receipt("edit", now, changes, name="maps"))
    return outcome, refused


def undoable(graph: Graph, cycle: str | None) -> Receipt:
    """*cycle*, or the last that a person asked for at the command line and has not undone. Raises NotFound, BadInput."""
    if cycle is not None:
        return find_receipt(graph, cycle)
    closed = receipts_of(graph)
    undone = {line.removeprefix(UNDONE) for r in closed for line in r.summary if line.startswith(UNDONE)}
    for r in closed:
        if r.kind == "edit" and r.person and r.summary and r.id not in undone:  # none: it was forgotten
            return r
    raise NotFound(
        "you have changed nothing yet; `omg history` lists all cycles, `omg undo CYCLE` takes one back"
    )


def closed_cycles(graph: Graph, path: str | None = None) -> list[Receipt]:
    """Closed cycles, newest first; with *path* those that changed that note, whatever it was called then."""
    if path is None:
        return receipts_of(graph)
    with suppress(BadNode):
        names = {path, *graph.vault.read(path).aliases}
        return [r for r in receipts_of(graph) if any(c.path in names for c in r.changes)]
    return [r for r in receipts_of(graph) if any(c.path == path for c in r.changes)]
