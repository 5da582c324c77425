"""
Forgets or redacts what a Selection names, step by step.

The selection is first written to forgetting.json. After a crash, the next start finishes the forgetting; every step may
be repeated. Afterwards only tombstones (salted hashes) are left, by which import and rebuild skip forgotten messages. If
a removed note also came from other messages, these messages become pending again.
"""

from __future__ import annotations

import json
import secrets
import shutil
from contextlib import suppress
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

from ..config import shipped_folder
from ..graph.graph import GRAPH_MARK, REMOVED_GRAPH, Graph, kept_tombstones, marked_identity, write_mark
from ..graph.state import GIVEN, State, flock, forget_served, write_private
from ..journal import Change, Outcome, apply_change, receipts_of
from ..node.note import LOG_FOLDER
from ..plan.pages import MapPages
from ..vault.files import LEFTOVER
from .places import SEEN, Trace, archived_messages, copies_of
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
    Forget the *selection*. An interrupted forgetting is finished first. The caller holds `graph.lock()`.

    Raises Locked, and does nothing, while the graph is being rebuilt.
    """
    finish_forgetting(graph)
    with flock(graph.folder / "rebuild.lock", f"the rebuilding of {graph.identity.key}", 0):
        write_private(graph.folder / JOURNAL, json.dumps(asdict(selection)))
    finish_forgetting(graph)


def begun_paths(graph: Graph) -> frozenset[str]:
    """The paths of the notes that an unfinished forgetting removes or renames."""
    try:
        raw = json.loads((graph.folder / JOURNAL).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return frozenset()
    return frozenset(raw["paths"]) | {old for old, _ in raw.get("renamed", ())}


def finish_forgetting(graph: Graph) -> bool:
    """
    Finish an interrupted forgetting; False if there is none. Every step may be repeated. The caller holds the lock.
    """
    journal = graph.folder / JOURNAL
    if not journal.exists():
        return False
    raw, home = json.loads(journal.read_text(encoding="utf-8")), graph.folder.parents[1]
    values: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in raw.items()}
    what = Selection(**values)
    edit = redacting(what) if what.redacts else forgetting(graph, what)
    raise_mark(home)
    change_everywhere(graph, edit)
    # A second time, because texts served meanwhile came from the old index.
    graph.update(blank_served)
    raise_mark(home)
    if edit.forgets and is_bare(graph, edit.trace):
        remove_graph(graph)  # also removes the journal
        change_logs(home, edit)  # a daemon may have logged the note meanwhile
    else:
        journal.unlink()
    return True


def change_everywhere(graph: Graph, edit: Removal) -> None:
    """Apply *edit* to each place in turn: notes, the graph's folder, copies of the graph, derived files, the home."""
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
    """
    Rebuild the files that OMG derives from the notes: maps, log pages and the index.

    Files that only save calls of a model (SEEN) are removed, and not rebuilt.
    """
    for name in SEEN:  # these files name notes; to make them again costs a few calls of a model
        (graph.folder / name).unlink(missing_ok=True)
    remap_pages(graph, trace)
    graph.vault.settle(0)
    graph.vault.compact()
    graph.index.rebuild(graph.vault, graph.folder / "archive")


def remap_pages(graph: Graph, trace: Trace) -> None:
    """Generate all maps again without the removed notes, and remove the lines about these notes from the log pages."""
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


# --- The graph of a session that was forgotten whole is removed, if nothing else is in it.
#
# Its identity.json and folder name hold the session's key. The tombstones, which keep the session from coming back, stay
# under a hash (graph/graph.py). A graph that holds anything of a person's, or of another session, stays.


def is_bare(graph: Graph, trace: Trace) -> bool:
    if graph.identity.key not in trace.keys or not graph.vault.root.is_relative_to(graph.folder):
        return False
    if graph.pending() or any(archived_messages(graph.folder / "archive")):
        return False
    if any((graph.folder / "damaged").glob("*")):
        return False
    undone = (c.path for receipt in receipts_of(graph) for c in receipt.changes)
    return not any(path.startswith("nodes/") for path in undone) and not has_persons_files(graph)


def has_persons_files(graph: Graph) -> bool:
    """Whether the vault holds files besides the template and our generated pages."""
    root, template = graph.vault.root, shipped_folder("vault_template")
    pages = {f"{path}.md": path for path in graph.vault.paths()}
    for file in (f for f in root.rglob("*") if f.is_symlink() or f.is_file()):
        below = file.relative_to(root)
        if below.parts[0] == ".obsidian" or LEFTOVER.fullmatch(file.name):
            continue
        if (laid := template / below).is_file() and laid.read_bytes() == file.read_bytes():
            continue
        path = pages.get(below.as_posix())
        made = path in ("index", "now") or (path or "").startswith(("mocs/", LOG_FOLDER))
        if path is None or not made or not graph.vault.ours(graph.vault.bytes(path) or b""):
            return True
    return False


def remove_graph(graph: Graph) -> None:
    """
    Remove the graph with its lock, which the caller holds. A process that waits for this lock then sees that the
    graph is gone, and looks up the graph again.
    """
    tombstones, kept = graph.tombstones.file, kept_tombstones(graph.folder)
    if tombstones.exists():
        kept.parent.mkdir(exist_ok=True, mode=0o700)
        write_private(kept, tombstones.read_text(encoding="utf-8", errors="replace"))
    gone = graph.folder.with_name(f"{REMOVED_GRAPH}{secrets.token_hex(4)}")
    graph.folder.rename(gone)
    remove_remains(gone)


def remove_remains(gone: Path) -> None:
    """Remove the folder of a graph that is forgotten whole. A turn that comes meanwhile starts a new folder."""
    for turn in sorted((gone / "pending").glob("*.json")):
        who = marked_identity(gone / GRAPH_MARK)
        begun = gone.with_name(who.folder)
        (begun / "pending").mkdir(parents=True, exist_ok=True, mode=0o700)
        write_mark(begun, who)
        with suppress(FileNotFoundError):  # another process is removing it, too
            turn.rename(begun / "pending" / turn.name)
    shutil.rmtree(gone, ignore_errors=True)  # the next start removes the rest
