"""Makes the notes of a graph again from its archive, for example with a better model.

`build_anew` makes a new graph in graphs/<graph>/rebuild/, and can be continued after an interruption. `take_rebuilt`
writes the new notes into the vault as one cycle; before that, the vault is not changed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path

from .config import Config
from .errors import BadNode, NotFound, how_many
from .forget.places import archived_messages
from .graph.graph import Graph
from .graph.state import flock, read_object, write_private
from .index.index import Index
from .journal import Change, commit_receipt, new_receipt, receipts_of, replay_open
from .message.turn import Turn, split_messages
from .node.note import TYPES, parse_node
from .observe.question import Observer
from .observe.run import observe_batch, pending_batches
from .plan.drafts import PERSONS
from .plan.pages import MapPages
from .vault.files import digest
from .vault.vault import Vault

TURN_TOKENS = 4_000  # tokens of one pending file


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """The result of a rebuild: the new vault, and numbers of notes."""

    folder: Path  # of the new vault
    before: int  # active notes
    after: int
    kept: int  # files that a person made or changed


def build_anew(graph: Graph, observer: Observer, config: Config, now: datetime) -> Rebuilt:
    """Make the new graph, or continue making it. Raises ModelError if no model answers; the finished parts are kept."""
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
                new.vault.settle(older_than_s=0)  # nobody else writes to the new vault
            before, after = (sum(e.type in TYPES for e in g.index.entries()) for g in (graph, new))
            return Rebuilt(new.vault.root, before, after, kept=sum(1 for _ in persons_notes(graph)))
        finally:
            new.close()


def open_new(graph: Graph) -> Graph:
    """
    Open the new graph, or create it. Bring in every message, edit and deletion of *graph* that the new graph lacks.
    """
    folder = graph.folder / "rebuild"
    vault = Vault(folder / "vault", folder / "written.jsonl")
    if not vault.root.exists():
        vault.root.mkdir(parents=True, mode=0o700)
        with suppress(FileNotFoundError):
            shutil.copyfile(graph.folder / "written.jsonl", folder / "written.jsonl")
    carried = carry_over(graph, vault, folder)
    index = Index(folder / "index.db", None, graph.zone)
    new = Graph(graph.identity, folder, vault=vault, index=index, zone=graph.zone)
    new.former, new.carried = graph.index, carried
    new.index.sync(vault)
    new.index.archive(folder / "archive")
    fill_pending(graph, new)
    return new


def carry_over(graph: Graph, new: Vault, folder: Path) -> frozenset[str]:
    """
    Copy every tombstone, and the notes that a person made or changed, to the new graph. Remove from the new graph
    what the person deleted from the old one. Returns the paths of the copied notes.

    A note that was copied before (carried.json) is copied again only if the person changed it since. The copy is
    removed if the note is no longer the person's, or was renamed.
    """
    with suppress(FileNotFoundError):
        shutil.copyfile(graph.folder / "tombstones.jsonl", folder / "tombstones.jsonl")
    copied = read_object(folder / "carried.json")
    kept = {p: digest(data) for p in persons_notes(graph) if (data := graph.vault.bytes(p)) is not None}
    for path in copied.keys() - kept.keys():
        new.file(path).unlink(missing_ok=True)
    for path in [p for p, now in kept.items() if copied.get(p) != now]:
        target = new.file(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)  # an older copy may be read-only, and cannot be overwritten
        # The copy keeps the mode and the time of the person's last change, so that later messages count as newer.
        shutil.copy2(graph.vault.file(path), target)
    write_private(folder / "carried.json", json.dumps(kept))
    for path in [p for p in new.paths("nodes/") if p not in kept and is_deleted(graph, new, p)]:
        new.file(path).unlink()
    return frozenset(kept)


def is_deleted(graph: Graph, new: Vault, path: str) -> bool:
    """Whether the person deleted the note at *path* of *new*, or a note made from the same messages."""
    try:
        node = new.read(path)
    except BadNode:  # the copy of a file that cannot be parsed and is gone
        return True
    ids = [s.id for s in node.sources]
    return node.origin == "human" or graph.tombstones.blocks(node.id, ids, cited=lambda: True)


def persons_notes(graph: Graph) -> Iterator[str]:
    """
    Yield the paths of notes that a person made, changed, pinned or made read-only, and of files that cannot be
    parsed. A change by a command counts as long as the journal has it.
    """
    asked = {c.path for r in receipts_of(graph) if r.person and r.kind == "edit" for c in r.changes}
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
    """Make all archived messages pending, in order, each once. Forgotten messages are left out."""
    said = sorted(archived_messages(graph.folder / "archive"), key=lambda s: s[1].timestamp)
    fresh = {m.id for m in new.unseen(m for _, m in said)}
    for session, group in groupby((s for s in said if s[1].id in fresh), key=lambda s: s[0]):
        for piece in split_messages([m for _, m in group], TURN_TOKENS):
            turn = Turn(session, agent=graph.identity.agent, reason="import", messages=piece)
            new.put(f"{piece[0].timestamp:015d}-{digest(piece[0].id.encode())[:16]}", turn)


def take_rebuilt(graph: Graph, now: datetime) -> str:
    """
    Replace the old notes by the new notes in one cycle, which can be undone. Returns the id of the cycle. The new
    graph is kept until the cycle is written.
    """
    if not (graph.folder / "rebuild").exists():
        raise NotFound(f"nothing was rebuilt for {graph.identity.key}; run `omg rebuild` first")
    with graph.lock():
        replay_open(graph)
        was = {path: graph.vault.bytes(path) for path in graph.vault.paths()}
        new = open_new(graph)
        try:
            changes, state = list(differences(graph, was, new)), new.state()
        finally:
            new.close()
        notes = how_many(sum(c.path.startswith("nodes/") for c in changes), "note")
        receipt = new_receipt(
            "rebuild",
            now,
            changes,
            person=True,
            summary=(f"made {notes} again from the archive",),
            tokens=state.changed_tokens,
            unread=state.unread,
            read=tuple(graph.state().unread.keys() - state.unread.keys()),
        )
        (graph.folder / "reflected.json").unlink(missing_ok=True)  # the next night looks at all notes
        commit_receipt(graph, receipt)
        maps = MapPages(graph).anew(now.astimezone(graph.zone).date())
        commit_receipt(graph, new_receipt("edit", now, maps, name="maps"))
    return receipt.id


def differences(graph: Graph, was: Mapping[str, bytes | None], new: Graph) -> Iterator[Change]:
    """
    Yield the changes that turn the notes and reflections of *graph* into those of *new*.

    *was*: path → content of each file of *graph*, read before *new* was brought up to date. If the person saves a file
    after that, the person's version stays.
    """
    for path in sorted({*was, *new.vault.paths()}):
        before, after = was.get(path), new.vault.bytes(path)
        if path.startswith(("nodes/", "reflections/")) and after not in (before, graph.vault.bytes(path)):
            text, now = (None if data is None else data.decode("utf-8") for data in (before, after))
            yield Change(path, text, now, theirs=before is not None and not graph.vault.ours(before))
