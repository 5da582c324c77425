"""
Forgets or redacts what a Selection names, step by step.

The selection is first written to forgetting.json, so that the next start finishes what a crash interrupted; every step
may be repeated. Afterwards only a tombstone of salted hashes is left, which import and rebuild heed. A note that also
has other sources is not lost: those messages become pending again.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import date
from typing import Any

from ..graph.graph import Graph
from ..graph.state import GIVEN, State, flock, forget_served, write_private
from ..journal import Change, Outcome, apply_change
from ..node.note import LOG_FOLDER
from ..plan.pages import MapPages
from .bare import is_bare, remove_graph
from .places import SEEN, Trace, copies_of
from .removal import (
    Removal,
    change_file,
    change_folder,
    change_home,
    change_logs,
    forgetting,
    raise_mark,
    redacting,
    without_lines,
)
from .selection import Selection

JOURNAL = "forgetting.json"


def forget_now(graph: Graph, selection: Selection) -> None:
    """
    Forget the selection, after finishing a forgetting that was begun before. The caller holds `graph.lock()`.

    Raises Locked, and does nothing, while the graph is being rebuilt.
    """
    finish_forgetting(graph)
    with flock(graph.folder / "rebuild.lock", f"the rebuilding of {graph.identity.key}", 0):
        write_private(graph.folder / JOURNAL, json.dumps(asdict(selection)))
    finish_forgetting(graph)


def begun_paths(graph: Graph) -> frozenset[str]:
    """The notes that an unfinished forgetting removes or renames."""
    try:
        raw = json.loads((graph.folder / JOURNAL).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return frozenset()
    return frozenset(raw["paths"]) | {old for old, _ in raw.get("renamed", ())}


def finish_forgetting(graph: Graph) -> bool:
    """Complete a forgetting that was begun; False if none was. Every step may be repeated. The caller holds the lock."""
    journal = graph.folder / JOURNAL
    if not journal.exists():
        return False
    raw, home = json.loads(journal.read_text(encoding="utf-8")), graph.folder.parents[1]
    values: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in raw.items()}
    what = Selection(**values)
    edit = redacting(what) if what.redacts else forgetting(graph, what)
    raise_mark(home)
    change_everywhere(graph, edit)
    # Again: texts served meanwhile were rendered from the old index.
    graph.update(blank_served)
    raise_mark(home)
    if edit.forgets and is_bare(graph, edit.trace):
        remove_graph(graph)  # and the journal with it
        change_logs(home, edit)  # a daemon may have logged the note meanwhile
    else:
        journal.unlink()
    return True


def change_everywhere(graph: Graph, edit: Removal) -> None:
    """Change each place in turn: the notes, the graph's folder, its copies, derived files, the home."""
    edit.tombstones(graph)
    edit.notes(graph)
    change_folder(graph.folder, edit)
    for folder, vault in copies_of(graph):
        edit.copy(folder, vault)
    graph.update(edit.state)
    edit.uses(graph)
    change_file(graph.folder / GIVEN, edit.given)
    make_anew(graph, edit.trace)
    change_home(graph.folder.parents[1], graph.folder, edit)


def make_anew(graph: Graph, trace: Trace) -> None:
    """Remove files that are derived from the notes."""
    for name in SEEN:  # these files name notes, and making them again costs a few model calls
        (graph.folder / name).unlink(missing_ok=True)
    remap_pages(graph, trace)
    graph.vault.settle(0)
    graph.vault.compact()
    graph.index.rebuild(graph.vault, graph.folder / "archive")


def remap_pages(graph: Graph, trace: Trace) -> None:
    """Regenerate all maps without the removed notes, and remove the lines about these notes from the log pages."""
    graph.index.sync(graph.vault)
    outcome = Outcome()
    for change in MapPages(graph).anew(date.today()):
        apply_change(graph, change, outcome)
    for path in [p for p in graph.vault.paths() if p.startswith(LOG_FOLDER)]:
        text = graph.vault.text(path)
        if (kept := without_lines(text, trace)) != text:
            apply_change(graph, Change(path, text, kept), outcome)


def blank_served(state: State) -> None:
    for s in state.sessions.values():
        forget_served(s)
    state.epoch += 1
