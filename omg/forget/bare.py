"""
Removes the graph of a session that was forgotten whole, if nothing else is in it.

The graph's identity.json and folder name hold the session's key. The tombstones, which keep the session from coming
back, stay under a hash (graph/graph.py). A graph that holds anything of a person's, or of another session, stays.
"""

from __future__ import annotations

import secrets
import shutil
from contextlib import suppress
from pathlib import Path

from ..config import shipped_folder
from ..graph.graph import GRAPH_MARK, REMOVED_GRAPH, Graph, kept_tombstones, marked_identity, write_mark
from ..graph.state import write_private
from ..journal import receipts_of
from ..node.note import LOG_FOLDER
from ..vault.files import LEFTOVER
from .places import Trace, archived_messages


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
    """Whether the vault holds more than the template and our generated pages."""
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
    Remove the graph with its lock, which the caller holds. A process that waits for the lock then finds no graph and
    asks again.
    """
    tombstones, kept = graph.tombstones.file, kept_tombstones(graph.folder)
    if tombstones.exists():
        kept.parent.mkdir(exist_ok=True, mode=0o700)
        write_private(kept, tombstones.read_text(encoding="utf-8", errors="replace"))
    gone = graph.folder.with_name(f"{REMOVED_GRAPH}{secrets.token_hex(4)}")
    graph.folder.rename(gone)
    remove_remains(gone)


def remove_remains(gone: Path) -> None:
    """Remove the folder of a graph that is forgotten whole. Turns that came in meanwhile start a new one."""
    for turn in sorted((gone / "pending").glob("*.json")):
        who = marked_identity(gone / GRAPH_MARK)
        begun = gone.with_name(who.folder)
        (begun / "pending").mkdir(parents=True, exist_ok=True, mode=0o700)
        write_mark(begun, who)
        with suppress(FileNotFoundError):  # another process is removing it, too
            turn.rename(begun / "pending" / turn.name)
    shutil.rmtree(gone, ignore_errors=True)  # the next start removes the rest
