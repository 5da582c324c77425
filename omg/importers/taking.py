"""
Takes in drops and a program's messages through the spool, and keeps a record of each import, to undo it in one
step.

    <home>/imports/<id>.jsonl   the record of an import, line by line: the imported files; each drop, written before
                                the intake gets the drop; how the import ended
    <home>/imports/chats.json   chat → when it was last changed, so that an older export does not bring an older copy

A killed import is continued under the same id. Drops that were taken in before add nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import BadInput, NotFound, how_many
from ..forget.places import Trace, archived_messages
from ..forget.removal import Removal, change_files, changed_lines
from ..forget.selection import readable_note
from ..graph.graph import Graph
from ..graph.state import State, append_lines, flock, parsed_object, read_object, write_private
from ..identity import Identity
from ..journal import (
    Change,
    Rebase,
    Receipt,
    commit_receipt,
    encode_text,
    new_receipt,
    receipts_of,
    replay_open,
)
from ..message.drop import read_drop
from ..message.turn import Turn
from ..plan.pages import MapPages
from .drops import Drops, JsonObject, Session, digest, drop_chunks, drop_name

if TYPE_CHECKING:
    from ..worker.intake import Intake
    from ..worker.registry import Registry

FOLDER, CHATS = "imports", "chats.json"


@dataclass(slots=True)
class ImportRecord:
    """The record of one import. `id` is "" until something is taken in."""

    home: Path
    files: list[str]
    id: str = ""
    drops: list[JsonObject] = field(default_factory=list)  # {graph, drop, ids}

    @property
    def file(self) -> Path:
        return self.home / FOLDER / f"{self.id}.jsonl"

    def add(self, now: datetime, graph: str, drop: str, ids: Sequence[str]) -> None:
        """Record that *drop* goes into *graph*. Called before the drop is taken in."""
        line = {"graph": graph, "drop": drop, "ids": sorted(ids)}
        first = []
        if not self.id:
            self.id = f"import-{now:%Y%m%dT%H%M%S}-{digest(json.dumps(self.files), 2)}"
            self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            first = [json.dumps({"at": now.isoformat(timespec="seconds"), "files": self.files})]
        append_lines(self.file, [*first, json.dumps(line)])
        self.drops.append(line)

    def end(self, what: str, **more: Any) -> None:
        if self.id:
            append_lines(self.file, [json.dumps({"ended": what, **more})])


def records(home: Path) -> Iterator[tuple[ImportRecord, str]]:
    """Yield each import and its state, the oldest first: "" while it is not finished, "done" or "undone"."""
    for file in sorted((home / FOLDER).glob("import-*.jsonl")):
        lines = [v for line in file.read_text("utf-8").splitlines() if (v := parsed_object(line))]
        files = [str(f) for f in (lines[0].get("files") if lines else None) or []]
        ended = [str(v["ended"]) for v in lines if "ended" in v]
        yield ImportRecord(home, files, file.stem, [v for v in lines if "drop" in v]), (ended or [""])[-1]


def record_of(home: Path, paths: Sequence[Path]) -> ImportRecord:
    """The record of an import of *paths*: the record of an interrupted import, or a new one."""
    files = [str(path.resolve()) for path in paths]
    for record, ended in records(home):
        if not ended and record.files == files:
            return record
    return ImportRecord(home, files)


def known_chats(home: Path) -> dict[str, int]:
    return {k: v for k, v in read_object(home / FOLDER / CHATS).items() if isinstance(v, int)}


def import_drops(
    intake: Intake,
    drops: Drops,
    *,
    dry_run: bool = False,
    progress: Callable[[int], None] = lambda n: None,
    record: ImportRecord | None = None,
) -> JsonObject:
    """
    Take *drops* in. A drop without a new message changes nothing. With *dry_run* nothing is changed.

    *progress* is called with the bytes read since its previous call. Returns counts of `messages`, `new` messages,
    `sessions` and `left_out` entries; the reasons are in `skipped` and `why_left_out`.
    """
    messages, new, reported, entries, registry = 0, 0, 0, 0, intake.registry
    sessions: set[tuple[str, str]] = set()
    met: set[str] = set()  # ids that a dry run has counted
    for drop in drops:
        text = json.dumps(drop)
        turn = read_drop(text.encode(), registry.config.identity.members)
        if off := registry.config.switched_off(turn.agent):
            drops.reading.skipped.append(f"{turn.session}: OMG is switched off, {off}")
            continue
        fresh = unknown_ids(intake, turn) - met
        if dry_run:
            met |= fresh
        elif fresh:
            if record and (who := registry.whose(turn)):
                record.add(registry.clock(), who.key, drop_name(drop), sorted(fresh))
            write_private(intake.spool / f"{drop_name(drop)}.json", text)
            intake.take_in()
        entries += len(drop["entries"])
        messages, new = messages + len(turn.messages), new + len(fresh)
        sessions.add((turn.session, turn.session_id))
        progress(drops.reading.done - reported)
        reported = drops.reading.done
    progress(drops.reading.total - reported)
    if record and not dry_run and drops.reading.newest:
        (record.home / FOLDER).mkdir(parents=True, exist_ok=True, mode=0o700)
        known = known_chats(record.home)
        newest = {k: max(v, known.get(k, 0)) for k, v in drops.reading.newest.items()}
        write_private(record.home / FOLDER / CHATS, json.dumps({**known, **newest}))
    return {
        "messages": messages,
        "new": new,
        "sessions": len(sessions),
        "skipped": drops.reading.skipped,
        "left_out": drops.reading.left_out.total() + entries - messages,
        "why_left_out": dict(drops.reading.left_out),
    }


def capture_entries(intake: Intake, who: Identity, session: str, entries: list[JsonObject]) -> int:
    """Take in a program's messages of *session*, which belongs to *who*. Returns how many were new."""
    new = 0
    for drop in drop_chunks(Session(session, session, who.agent), entries):
        text = json.dumps(drop)
        new += len(unknown_ids(intake, read_drop(text.encode(), intake.registry.config.identity.members)))
        write_private(intake.spool / f"{drop_name(drop)}.json", text)
    if entries:
        intake.take_in()
    return new


def unknown_ids(intake: Intake, turn: Turn) -> set[str]:
    """The ids of a turn's messages that its graph does not have yet; none if the turn belongs to nobody."""
    who = intake.registry.whose(turn)
    if who is None:
        return set()
    if who not in intake.registry.identities():
        return {m.id for m in turn.messages}
    return {m.id for m in intake.registry.graph(who).unseen(turn.messages)}


# --- Takes back a whole import in one step.
#
# Every note is put back as it was before the import, unless it changed since. The imported messages are removed from
# pending turns, the archive and the index. They do not count as forgotten, so the same files can be imported again.


@dataclass(slots=True)
class Undone:
    """
    The result of an undo: notes that were put back, notes left as they are because they changed since, and the number
    of messages removed.
    """

    id: str
    restored: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    messages: int = 0


def find_import(home: Path, id: str) -> ImportRecord:
    """The import *id*, or the only import whose id ends with *id*. Raises NotFound, or BadInput if it was undone."""
    known = {record.id: (record, ended) for record, ended in records(home)}
    fitting = [name for name in known if name == id or name.endswith(id)]
    if len(fitting) != 1:
        names = ", ".join(known) or "none was made"
        raise NotFound(
            f"{'several imports have' if fitting else 'no import has'} the id {id!r} or an id that ends so; imports: {names}"
        )
    record, ended = known[fitting[0]]
    if ended == "undone":
        raise BadInput(f"{record.id} is undone already; import the same files to have it again")
    return record


def undo_import(registry: Registry, record: ImportRecord, now: datetime) -> Undone:
    """Undo the import of *record* in each of its graphs."""
    undone = Undone(record.id)
    for who in registry.identities():
        if lines := [line for line in record.drops if line["graph"] == who.key]:
            graph = registry.graph(who)
            with flock(graph.folder / "observe.lock", f"the observing of {who.key}", math.inf), graph.lock():
                replay_open(graph)
                drops = {line["drop"] for line in lines}
                ids = {id for line in lines for id in line["ids"]}
                undo_in_graph(graph, record.id, drops, ids, now, undone)
    chats = record.home / FOLDER / CHATS
    chats.unlink(missing_ok=True)  # the file only keeps out older copies of chats
    record.end("undone")
    return undone


def undo_in_graph(
    graph: Graph, id: str, drops: Collection[str], ids: set[str], now: datetime, undone: Undone
) -> None:
    for pending in graph.pending():
        if drop_of(pending.name) in drops:
            undone.messages += len(pending.turn().messages)
            pending.file.unlink()
    back, refused = changes_back(graph, drops)
    undone.refused += refused
    if back:
        told = f"undid {id}: {how_many(len(back), 'note')}"
        commit_receipt(graph, new_receipt("undo", now, back, name="import", summary=(told,), person=True))
        undone.restored += [change.path for change in back]
    archive = graph.folder / "archive"
    undone.messages += sum(m.id in ids for _, m in archived_messages(archive))
    without_them = Removal(said=lambda m: m, clean=str, trace=Trace(messages=frozenset(ids)))
    change_files(archive.glob("*.jsonl"), partial(changed_lines, removal=without_them))
    left = {session for session, _ in archived_messages(archive)}

    def without(state: State) -> None:
        state.unread = {k: ms for k, ms in state.unread.items() if k.partition(" ")[2] in left}
        state.epoch += 1

    graph.update(without)
    graph.index.rebuild(graph.vault, graph.folder / "archive")
    if changes := MapPages(graph).anew(now.astimezone(graph.zone).date()):
        commit_receipt(graph, new_receipt("edit", now, changes, name="maps"))


def drop_of(pending: str) -> str:
    return pending.partition(".")[0]


def is_of(receipt: Receipt, drops: Collection[str]) -> bool:
    return bool(receipt.pending) and all(drop_of(name) in drops for name in receipt.pending)


def changes_back(graph: Graph, drops: Collection[str]) -> tuple[list[Change], list[str]]:
    """
    Return (changes, paths): the changes that undo an import, and the notes to leave alone.

    - Only the import changed the note: the note gets its text from before the import.
    - Something else, such as daily use, changed the note between two changes of the import: only the import's
      changes after this one are undone.
    - Something else changed the note after the import: the note is left alone.

    *drops*: the names of the import's drops.
    """
    path_changes: dict[str, list[tuple[bool, Change]]] = {}
    for receipt in receipts_of(graph):  # the last one first
        ours = is_of(receipt, drops)
        for change in receipt.changes:
            path_changes.setdefault(change.path, []).append((ours, change))
    back, refused = [], []
    for path, changes in path_changes.items():
        if not any(ours for ours, _ in changes):
            continue
        there = graph.vault.bytes(path)
        now, latest = there, changes[0][1]
        for ours, change in changes:
            if not ours or encode_text(change.after) != now:
                break
            now = encode_text(change.before)
        if now != there:
            text = None if now is None else now.decode("utf-8")
            before = None if there is None else there.decode("utf-8")
            back.append(replace(latest, before=before, after=text, rebase=Rebase()))
        elif there is not None:
            refused.append(path)
    return back, refused


# --- the notes of an import


@dataclass(slots=True)
class Became:
    """Holds what an import did to the notes."""

    notes: dict[str, list[str]] = field(default_factory=dict)  # kind, as in KINDS → titles of new notes
    changed: int = 0  # number of older notes that the import changed
    against: list[tuple[str, str]] = field(default_factory=list)  # paths of notes that cannot both be true


KINDS = {
    "identity": "you and your people",
    "project": "projects",
    "preference": "wishes and likes",
    "decision": "decisions",
    "episode": "plans and events",
    "fact": "facts",
}


def became(graphs: Iterator[Graph], record: ImportRecord) -> Became:
    found, drops = Became(), {line["drop"] for line in record.drops}
    for graph in graphs:
        made: dict[str, bool] = {}  # path → whether it is new
        for receipt in receipts_of(graph):
            if is_of(receipt, drops):
                for change in receipt.changes:
                    if change.path.startswith("nodes/"):
                        made[change.path] = made.get(change.path, False) or change.before is None
        for path, new in made.items():
            if (node := readable_note(graph, path)) is None or node.status != "active":
                continue
            found.changed += not new
            kind = KINDS.get(node.type, node.type)
            if new:
                found.notes.setdefault(kind, []).append(node.title)
            found.against += [
                (path, other) for other in node.contradicts if (other, path) not in found.against
            ]
    return found


def became_text(found: Became, id: str) -> str:
    """Say for a person what notes an import made, in at most ten lines."""
    lines = []
    for kind in KINDS.values():
        if titles := found.notes.get(kind):
            more = f", and {len(titles) - 4} more" if len(titles) > 4 else ""
            lines.append(f"{kind}: {', '.join(titles[:4])}{more}")
    if found.changed:
        lines.append(f"changed notes that you had before: {found.changed}")
    for path, other in found.against[:1]:
        more = (
            f", and {len(found.against) - 1} more (`omg doctor` lists all)" if len(found.against) > 1 else ""
        )
        lines.append(f"for you to decide: {path} and {other} contradict each other{more}")
    lines.append(f"`omg undo {id}` takes all of it back")
    return "\n".join(lines)
