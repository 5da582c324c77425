"""
Makes the notes of a graph again from its archive, for example with a better model.

`build_anew` makes graphs/<graph>/rebuild/: it copies the notes that a person made or changed and every tombstone, and
observes the archive once more. If interrupted, it continues where it stopped, with everything said, edited or deleted
meanwhile. `swap_graphs` replaces the old graph by the new one, keeps the old one in graphs/<graph>/replaced/, and keeps
the history of cycles. The old vault is not changed before the swap.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path

from .config import Config
from .errors import BadInput, BadNode, NotFound
from .forget.places import archived_messages
from .graph.graph import Graph
from .graph.state import flock, write_private
from .index.index import Index
from .journal import commit_receipt, new_receipt, receipts_of, replay_open
from .message.turn import Turn, split_messages
from .node.note import TYPES, parse_node
from .observe.question import Observer
from .observe.run import observe_batch, pending_batches
from .plan.drafts import PERSONS
from .plan.pages import MapPages
from .vault.files import digest, flush_folder
from .vault.vault import Vault

TURN_TOKENS = 4_000  # of one pending file
# Files that belong to a vault's notes, besides the index.
MADE = ("receipts", "written.jsonl", "state.json", "reflected.json")


@dataclass(frozen=True, slots=True)
class Rebuilt:
    folder: Path  # of the new vault
    before: int  # active notes
    after: int
    kept: int  # files a person made or touched


def build_anew(graph: Graph, observer: Observer, config: Config, now: datetime) -> Rebuilt:
    """Make the new graph, or continue making it. Raises ModelError as observing does; finished parts stay."""
    with flock(graph.folder / "rebuild.lock", f"the rebuilding of {graph.identity.key}", 0):
        new = open_new(graph)
        try:
            with new.lock():
                replay_open(new)
            for batch in pending_batches(new.pending(), config.observation.max_tokens_per_batch):
                observe_batch(new, batch, observer, config)
            with new.lock():
                maps = MapPages(new)
                maps.add_all()
                commit_receipt(new, new_receipt("edit", now, maps.changes(), name="rebuilt"))
                new.vault.settle(older_than_s=0)  # nobody else writes there
            before, after = (sum(e.type in TYPES for e in g.index.entries()) for g in (graph, new))
            return Rebuilt(new.vault.root, before, after, kept=sum(1 for _ in persons_notes(graph)))
        finally:
            new.close()


def open_new(graph: Graph) -> Graph:
    """The graph under construction, which is begun if there is none, with everything that happened since."""
    folder = graph.folder / "rebuild"
    if not (folder / "begun").exists():
        shutil.rmtree(folder, ignore_errors=True)
        begin_rebuild(graph, folder)
    carried = carry_over(graph, folder)
    vault = Vault(folder / "vault", folder / "written.jsonl")
    index = Index(folder / "index.db", None, graph.zone)
    new = Graph(graph.identity, folder, vault=vault, index=index, zone=graph.zone)
    new.former, new.carried = graph.index, carried
    new.index.sync(vault)
    new.index.archive(folder / "archive")
    fill_pending(graph, new)
    (folder / "filled").touch()
    return new


def begin_rebuild(graph: Graph, folder: Path) -> None:
    """Copy the vault without its notes."""
    folder.mkdir(mode=0o700)
    shutil.copytree(graph.vault.root, folder / "vault", symlinks=True)
    if (graph.folder / "written.jsonl").exists():
        shutil.copyfile(graph.folder / "written.jsonl", folder / "written.jsonl")
    new = Vault(folder / "vault", folder / "written.jsonl")
    for path in list(new.paths()):
        if path.startswith(("nodes/", "reflections/")):
            new.file(path).unlink()
        if path.startswith("reflections/"):
            # its file is missing because of the rebuild, not because a person deleted it; the next night makes it again
            new.mark_not_ours(path)
    (folder / "begun").touch()


def carry_over(graph: Graph, folder: Path) -> frozenset[str]:
    """
    Copy every tombstone, and the files that a person made or changed, to the new graph. A file that was copied before
    (carried.json) is copied again only if it has changed since, and is removed if it is gone. Returns their paths.
    """
    if (graph.folder / "tombstones.jsonl").exists():
        shutil.copyfile(graph.folder / "tombstones.jsonl", folder / "tombstones.jsonl")
    log = folder / "carried.json"
    before = json.loads(log.read_text(encoding="utf-8")) if log.exists() else {}
    now = {p: digest(data) for p in persons_notes(graph) if (data := graph.vault.bytes(p)) is not None}
    for path in before.keys() - now.keys():
        (folder / "vault" / f"{path}.md").unlink(missing_ok=True)
    for path in now:
        if before.get(path) != now[path]:
            target = folder / "vault" / f"{path}.md"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)  # an older copy may be read-only, and cannot be overwritten
            # The copy keeps the mode, and the time of a person's last change: messages since then are news.
            shutil.copy2(graph.vault.file(path), target)
    write_private(log, json.dumps(now))
    drop_deleted(graph, Vault(folder / "vault"), now)
    return frozenset(now)


def drop_deleted(graph: Graph, new: Vault, kept: Collection[str]) -> None:
    """Remove the new notes that the person meanwhile deleted in the old vault."""
    for path in [p for p in new.paths() if p.startswith("nodes/") and p not in kept]:
        node = new.read(path)
        if graph.tombstones.blocks(node.id, [s.id for s in node.sources], cited=lambda: True):
            new.file(path).unlink()


def persons_notes(graph: Graph) -> Iterator[str]:
    """
    Notes that a person made, changed, pinned or made read-only, and files that we cannot read. A change may be in the
    file, or by a command that the journal still has.
    """
    asked = {c.path for r in receipts_of(graph) if r.person for c in r.changes if c.path.startswith("nodes/")}
    for path in graph.vault.paths():
        data = graph.vault.bytes(path) or b""
        try:
            node = parse_node(data.decode("utf-8"), path)
            made_by_hand = node.origin == "human" or node.pinned or (path in asked and node.origin in PERSONS)
        except (BadNode, UnicodeDecodeError):
            made_by_hand = True
        if made_by_hand or graph.vault.read_only(path) or graph.vault.theirs(data):
            yield path


def fill_pending(graph: Graph, new: Graph) -> None:
    """Make all archived messages pending, in order, each once, except forgotten ones."""
    said = sorted(archived_messages(graph.folder / "archive"), key=lambda s: s[1].timestamp)
    fresh = {m.id for m in new.unseen(m for _, m in said)}
    for session, group in groupby((s for s in said if s[1].id in fresh), key=lambda s: s[0]):
        for piece in split_messages([m for _, m in group], TURN_TOKENS):
            turn = Turn(session, agent=graph.identity.agent, reason="import", messages=piece)
            new.put(f"{piece[0].timestamp:015d}-{digest(piece[0].id.encode())[:16]}", turn)


def swap_graphs(graph: Graph, now: datetime) -> Path:
    """
    Replace the old notes by the new ones; return the folder that keeps the old ones.

    The moves are recorded first, so that `finish_swap` can complete them after a crash.
    """
    new = graph.folder / "rebuild"
    if not (new / "filled").exists():
        raise NotFound(f"nothing was rebuilt for {graph.identity.key}; run `omg rebuild` first")
    if os.path.ismount(graph.vault.root):
        raise BadInput(f"{graph.vault.root} is a mount point and cannot be replaced; mount its parent")
    stamp = now.astimezone(UTC).strftime("%Y%m%dT%H%M%S")
    old = graph.folder / "replaced" / stamp
    moves = [(graph.vault.root, old / "vault"), (new / "vault", graph.vault.root)]
    for name in MADE:
        moves += [(graph.folder / name, old / name), (new / name, graph.folder / name)]
    with graph.lock():
        carry_over(graph, new)
        keep_history(graph, new)
        write_moves(graph, [[str(source), str(target)] for source, target in moves])
        finish_swap(graph)
    return old


def keep_history(graph: Graph, new: Path) -> None:
    """Copy the closed cycles to the new graph, so that a person's changes can still be undone there."""
    for file in (graph.folder / "receipts").glob("[!.]*.json"):
        target = new / "receipts" / file.name
        if not file.name.endswith(".open.json") and not target.exists():
            shutil.copy2(file, target)  # with its time, which decides when it expires


def write_moves(graph: Graph, moves: list[list[str]]) -> None:
    """Record which moves are left."""
    write_private(graph.folder / "swap.json", json.dumps({"left": moves}))


def move(source: Path, target: Path) -> None:
    """
    Move a file or folder, also to another file system, or finish a move that a crash interrupted. *source* stays whole
    until *target* is whole, and is then removed in one step.
    """
    gone = source.with_name(f".{source.name}.moved")
    if os.path.lexists(source):
        if target.is_dir() and not any(target.iterdir()):
            target.rmdir()  # made by a process that opened the graph after a crash
        if not os.path.lexists(target):
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                source.rename(target)
                return
            except OSError as e:
                if e.errno != errno.EXDEV:
                    raise
            copy = target.with_name(f".{target.name}.moving")
            remove(copy)
            if source.is_dir():
                shutil.copytree(source, copy, symlinks=True, copy_function=copy_durably)
            else:
                copy_durably(source, copy)
            copy.rename(target)
            flush_folder(target.parent)
        source.rename(gone)
    remove(gone)


def copy_durably(source: str | Path, target: str | Path) -> None:
    shutil.copy2(source, target)
    with Path(target).open("rb") as f:
        os.fsync(f.fileno())


def remove(file: Path) -> None:
    if file.is_dir() and not file.is_symlink():
        shutil.rmtree(file)
    else:
        file.unlink(missing_ok=True)


def finish_swap(graph: Graph) -> None:
    """Complete a swap that was begun. The caller holds the lock."""
    journal = graph.folder / "swap.json"
    if not journal.exists():
        return
    moves = json.loads(journal.read_text(encoding="utf-8"))["left"]
    while moves:
        move(*map(Path, moves[0]))
        moves = moves[1:]
        write_moves(graph, moves)
    shutil.rmtree(graph.folder / "rebuild", ignore_errors=True)
    graph.vault = Vault(graph.vault.root, graph.folder / "written.jsonl")
    graph.vault.names = graph.index.names
    graph.index.rebuild(graph.vault, graph.folder / "archive")
    journal.unlink()
