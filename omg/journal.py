"""
The journal of one batch: every file with its text before and after, written before the first note changes.

    receipts/<id>.open.json   changes that are planned, and perhaps half made
    receipts/<id>.json        changes that are made

After a crash `replay_open` makes the rest of the changes, so a model is never asked twice. `undo_receipt` undoes the same
record. For each file the text on disk decides:

    `after`           the change is made already
    `before`          the change is made now
    no file           if a person renamed the file, the change is made under the new name; if a person deleted the file,
                      nothing is written
    any other text    a person edited the file: the change is applied to their text; if that fails, the new text goes to
                      inbox/

A closed receipt leaves out maps, index and Now, because these are made anew whenever notes change.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from .errors import BadInput, BadNode, NotFound, OutsideVault, Stale
from .graph.graph import Graph
from .graph.state import SessionState, State, set_aside_damaged, write_private
from .node.markdown import told_in, with_generated_block
from .node.note import amend_text, parse_node

KEPT_DAYS = 30  # how far `omg undo` and `omg history` reach back
RECEIPTS_KEPT = 50  # the last cycles are kept at any age: somebody may come back after a year


@dataclass(frozen=True, slots=True)
class Rebase:
    """The parts of a change that can still be made if a person edited the file after the change was planned."""

    block: str | None = None  # the generated block
    set: dict[str, Any] = field(default_factory=dict)  # frontmatter keys
    history: str | None = None  # a line for ## History


@dataclass(frozen=True, slots=True)
class Change:
    path: str
    before: str | None  # None: there was no file
    after: str | None  # None: the file is removed
    rebase: Rebase = Rebase()
    theirs: bool = False  # amends a person's note: the note stays the person's, and is never rendered anew
    mode: int | None = None  # permissions of a file that the change creates; None: only the owner can read it


@dataclass(frozen=True, slots=True)
class Receipt:
    id: str
    kind: str  # observation, reflection, edit, rebuild, forget, undo, upgrade
    at: str  # ISO, UTC
    changes: tuple[Change, ...] = ()
    pending: tuple[str, ...] = ()  # files of pending/ that this batch has observed
    hints: dict[str, dict[str, Any]] = field(default_factory=dict)  # session -> SessionState fields
    # `unread` is added to State.unread, for a model to read at night; `read` are keys to remove from State.unread
    unread: dict[str, int] = field(default_factory=dict)
    read: tuple[str, ...] = ()
    summary: tuple[str, ...] = ()  # what was done, a line each, for a person
    person: bool = False  # a person asked for the changes: every `system` slice is refreshed
    tokens: int = 0  # tokens of the notes written, which count towards the next reflection
    done: str = ""  # when the receipt was committed, ISO, UTC; `at` may be when its turns were said

    def dumps(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)

    @staticmethod
    def loads(text: str) -> Receipt:
        raw = json.loads(text)
        changes = tuple(Change(**{**c, "rebase": Rebase(**c["rebase"])}) for c in raw.pop("changes"))
        raw |= {name: tuple(raw.get(name, ())) for name in ("pending", "read", "summary")}
        return Receipt(changes=changes, **raw)


def receipt_id(at: datetime, name: str = "", of: str | None = None) -> str:
    """
    Return an id, `<UTC time>-<name>-<mark>`, that sorts by time.

    *of*: the parts of the batch. The same parts give the same id, so a batch repeated after a crash is recognised. Without
    *of*, each call gives a new id, even within one second.
    """
    mark = hashlib.sha256(of.encode()).hexdigest()[:8] if of is not None else f"{time.time_ns() // 1000:x}"
    return "-".join(filter(None, (f"{at.astimezone(UTC):%Y%m%dT%H%M%S}", name, mark)))


def new_receipt(
    kind: str, at: datetime, changes: Iterable[Change], *, name: str = "", **more: Any
) -> Receipt:
    """
    Make a receipt with a new id. The id contains *name* or, without *name*, *kind*. *more*: other fields of Receipt.
    """
    stamp = at.astimezone(UTC).isoformat(timespec="seconds")
    return Receipt(receipt_id(at, name or kind), kind, stamp, tuple(changes), **more)


@dataclass(slots=True)
class Outcome:
    """The paths of files, by what became of their changes."""

    written: list[str] = field(default_factory=list)
    kept: list[str] = field(
        default_factory=list
    )  # files that a person changed: changed further, or left alone
    inbox: list[str] = field(default_factory=list)


def read_receipt(file: Path) -> Receipt:
    """Read the receipt in *file*. Raises BadInput, which names the file, if the receipt is damaged."""
    try:
        return Receipt.loads(file.read_text(encoding="utf-8"))
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise BadInput(f"{file}: this receipt is damaged ({e}); move it away, then run `omg doctor`") from e


def readable(graph: Graph, file: Path) -> Receipt | None:
    """Read the receipt in *file*. If it is damaged, set it aside and return None."""
    try:
        return read_receipt(file)
    except BadInput as e:
        cut = file.name.endswith(".open.json")
        mend = "its turns are observed again" if cut else "that cycle cannot be undone any more"
        set_aside_damaged(graph.folder, file, f"is damaged ({e.__cause__})", mend)
        return None


def commit_receipt(graph: Graph, receipt: Receipt) -> Outcome:
    """Write *receipt* to disk, then make its changes. The caller holds `graph.lock()`."""
    receipt = replace(receipt, done=datetime.now(UTC).isoformat(timespec="microseconds"))
    file = graph.folder / "receipts" / f"{receipt.id}.open.json"
    write_private(file, receipt.dumps())
    return finish_receipt(graph, file, receipt)


def replay_open(graph: Graph) -> list[str]:
    """Finish the receipts that a crash left open, and return their ids. The caller holds `graph.lock()`."""
    done = []
    for file in sorted((graph.folder / "receipts").glob("*.open.json")):
        if (receipt := readable(graph, file)) is not None:
            finish_receipt(graph, file, receipt)
            done.append(receipt.id)
    return done


def finish_receipt(graph: Graph, file: Path, receipt: Receipt) -> Outcome:
    outcome = Outcome()
    for change in receipt.changes:
        if graph.vault.read_only(change.path) and graph.vault.bytes(change.path) != encode_text(change.after):
            put_in_inbox(graph, change, outcome, "is read-only")  # its owner made it read-only on purpose
        else:
            apply_change(graph, change, outcome)
    graph.update(lambda state: note_written(state, receipt))
    graph.archive(receipt.pending)
    graph.index.sync(graph.vault, [c.path for c in receipt.changes] + outcome.inbox)
    if receipt.kind == "rebuild":
        # Otherwise the next rebuild would continue this one.
        shutil.rmtree(graph.folder / "rebuild", ignore_errors=True)
    close(file, receipt)
    return outcome


def close(file: Path, receipt: Receipt) -> None:
    """Close *receipt*: keep only the changes that an undo needs. Also remove receipts that are too old."""
    kept = tuple(c for c in receipt.changes if not remade(c))
    if len(kept) < len(receipt.changes):
        write_private(file, replace(receipt, changes=kept).dumps())
    file.replace(file.with_name(f"{receipt.id}.json"))
    expire(file.parent)


def remade(change: Change) -> bool:
    """
    Whether *change* only made a map, the index or Now anew. False for a new or removed page, and if a model's text on the
    page changed.
    """
    page = change.path in ("index", "now") or change.path.startswith("mocs/")
    if not page or change.rebase.block is None or change.before is None or change.after is None:
        return False
    return told_in(change.before) == told_in(change.after)


def expire(folder: Path) -> None:
    """
    Delete old receipts in *folder*. A receipt is deleted if all of these hold:

    - The receipt is closed, and is not the receipt of an undo.
    - The file was written more than KEPT_DAYS ago.
    - The receipt is not among the last RECEIPTS_KEPT.
    """
    # The receipt of an imported conversation is named by the conversation's day, so the file's time gives the age.
    # Receipts of undos stay, so that the Reflector does not repeat what a person undid (reflect/verdicts.py).
    with os.scandir(folder) as entries:
        closed = [e for e in entries if is_closed(e.name) and "-undo-" not in e.name]
    if len(closed) <= RECEIPTS_KEPT:
        return
    newest_first = sorted(((e.stat().st_mtime, e.path) for e in closed), reverse=True)
    for written, path in newest_first[RECEIPTS_KEPT:]:
        if written < time.time() - KEPT_DAYS * 86_400:
            Path(path).unlink()


def is_closed(name: str) -> bool:
    return name.endswith(".json") and not name.endswith(".open.json") and not name.startswith(".")


def note_hints(state: State, hints: Mapping[str, Mapping[str, Any]]) -> None:
    """Enter *hints* (session → fields) into *state*. Hints older than those in *state* change nothing."""
    for session, told in hints.items():
        entry = state.sessions.setdefault(session, SessionState())
        if told.get("at_ms", 0) >= entry.at_ms:
            for key, value in told.items():
                setattr(entry, key, value)


def note_written(state: State, receipt: Receipt) -> None:
    """Enter *receipt* into *state*."""
    # A crash may enter a receipt twice. Then `changed_tokens` and `epoch` grow twice, which does no harm.
    note_hints(state, receipt.hints)
    state.changed_tokens += receipt.tokens
    unread = state.unread | {k: max(ms, state.unread.get(k, 0)) for k, ms in receipt.unread.items()}
    state.unread = {key: ms for key, ms in unread.items() if key not in receipt.read}
    if receipt.person:
        state.epoch += 1
    if receipt.kind == "upgrade":
        state.former_rules = receipt.id


def apply_change(graph: Graph, change: Change, outcome: Outcome) -> None:
    vault = graph.vault
    for _ in range(5):  # an attempt may lose a race with a save, but not five in a row
        now = vault.bytes(change.path)
        before, after = encode_text(change.before), encode_text(change.after)
        try:
            if now == after:
                if after is not None:
                    own_change(graph, change, after)
                return outcome.written.append(change.path)
            if now == before:
                if after is None:
                    assert before is not None
                    vault.remove(change.path, before)
                else:
                    vault.write(change.path, after, before, change.mode)
                    own_change(graph, change, after)
                return outcome.written.append(change.path)
            if now is None:
                if (there := renamed_to(graph, change)) is None:
                    return None  # the next scan of the vault makes its tombstone
                change = replace(change, path=there)
                continue
            rebased = rebase_change(now, change)
            if rebased is None:
                return put_in_inbox(graph, change, outcome)
            if rebased != now:
                words = change.rebase.block is None and not vault.ours(now)
                vault.write(change.path, rebased, now)
                own_change(graph, replace(change, theirs=words), rebased)
            return outcome.kept.append(change.path)
        except Stale:
            continue
    put_in_inbox(graph, change, outcome)


def own_change(graph: Graph, change: Change, data: bytes) -> None:
    """Record whether *data*, which is now in the file, is OMG's or a person's."""
    if change.theirs:
        graph.vault.mark_theirs(change.path, data)
    else:
        graph.vault.remember(change.path, data)


def rebase_change(now: bytes, change: Change) -> bytes | None:
    """
    Apply *change* to *now*, a person's text, and return the new text; None if this is not possible. Applying *change* again
    changes nothing.
    """
    what = change.rebase
    try:
        text = now.decode("utf-8")
        if what.block is not None:
            return with_generated_block(text, what.block).encode()
        if what.set or what.history:
            history = None if what.history and what.history in text else what.history
            return amend_text(text, set=what.set, history=history).encode()
    except (UnicodeDecodeError, BadNode):
        pass
    return None


def id_in(text: str, path: str) -> str | None:
    """Return the id of the note with this *text*; None if the text cannot be read as a note."""
    try:
        return parse_node(text, path).id
    except BadNode:
        return None


def renamed_to(graph: Graph, change: Change) -> str | None:
    """Return the present path of the note of *change*, if a person renamed the note since *change* was planned, else None."""
    assert change.before is not None
    if (id := id_in(change.before, change.path)) is None:
        return None
    entry = graph.index.entry(id)
    known = graph.index.hashes().keys() - {entry.path if entry else None}  # paths of other notes
    for path in graph.vault.paths():
        if path not in known:
            with suppress(BadNode, NotFound, OutsideVault):
                if graph.vault.read(path).id == id:
                    return path
    return None


def add_undone(graph: Graph, change: Change) -> None:
    """
    Add a tombstone for the note that *change* made or extended, because a person undid *change*.

    Without the tombstone, OMG would make the note again from the messages that *change* added. Does nothing if *change*
    added no message, or if the file is not a valid note.
    """
    try:
        after = parse_node(change.after, change.path) if change.after else None
        before = parse_node(change.before, change.path) if change.before else None
    except BadNode:
        return
    known = {s.id for s in before.sources} if before else set()
    if after and (news := {s.id for s in after.sources} - known):
        graph.tombstones.add(news, after.id)


def put_in_inbox(
    graph: Graph, change: Change, outcome: Outcome, why: str = "you changed at the same time"
) -> None:
    """
    Save the new text of *change*, which failed, as an inbox note for the person.

    - For a new note, the text is the whole note.
    - For a changed note, the text is the line that *change* adds to the note's History.
    - For any other change, there is no text to save. Only the path is added to `outcome.kept`.

    *why*: completes "This was meant for `<path>`, which …".
    """
    new = change.rebase.history
    if change.before is None and change.rebase.block is None:
        new = change.after
    if new is None:
        return outcome.kept.append(change.path)
    # The same text gives the same inbox note, so a repeat adds nothing.
    body = f"This was meant for `{change.path}`, which {why}.\n\n{new}"
    outcome.inbox.append(graph.vault.put_inbox(f"for {Path(change.path).name}", body))


def encode_text(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8")


def receipts_of(graph: Graph) -> list[Receipt]:
    """Return the closed receipts, the most recently committed receipt first."""
    found = [r for f in reversed(closed_files(graph)) if (r := readable(graph, f)) is not None]
    return sorted(found, key=lambda r: r.done, reverse=True)


def closed_files(graph: Graph) -> list[Path]:
    """Return the files of closed receipts, oldest first by `at`."""
    files = [f for f in (graph.folder / "receipts").glob("*.json") if is_closed(f.name)]
    # Sort by the second, then by the mark: the name between them says nothing about time.
    return sorted(files, key=lambda f: (f.stem.partition("-")[0], f.stem.rpartition("-")[2]))


def changes_since(graph: Graph, day: date) -> Iterator[Change]:
    """
    Yield the changes of closed receipts since *day*, oldest first. Begins a day earlier, so that all time zones are
    covered. Reads one receipt at a time.
    """
    for file in closed_files(graph):
        if file.name >= f"{day - timedelta(days=1):%Y%m%d}" and (receipt := readable(graph, file)):
            yield from receipt.changes


def has_open_receipt(graph: Graph) -> bool:
    """
    Return whether *graph* has an open receipt. Then a batch is being written, or a crash interrupted the writing.
    The notes of the batch may not be in the index yet.
    """
    return any((graph.folder / "receipts").glob("*.open.json"))


def find_receipt(graph: Graph, id: str) -> Receipt:
    """Return the closed receipt *id*, or the only receipt whose id ends in *id*. Raises NotFound; BadInput if several fit."""
    names = [f.name.removesuffix(".json") for f in (graph.folder / "receipts").glob("*.json")]
    fitting = [n for n in names if n == id] or [
        n for n in names if n.endswith(id) and not n.endswith(".open")
    ]
    if not fitting:
        raise NotFound(
            f"no cycle {id!r} in the memory of {graph.identity.key}; `omg history` lists the cycles of {KEPT_DAYS} days"
        )
    if len(fitting) > 1:
        raise BadInput(f"{id!r} fits {len(fitting)} cycles; give more of the id")
    return read_receipt(graph.folder / "receipts" / f"{fitting[0]}.json")


def short_cycle(id: str) -> str:
    """
    Return the last four characters of a receipt's id. A person types these to name the receipt, as in `/omg undo
    3f2a`.
    """
    return id[-4:]  # with 50 receipts, two have the same end in one home of 50


UNDONE = "undid "  # begins the summary of an undo's receipt


def undone_cycles(graph: Graph) -> set[str]:
    """Return the ids of the cycles that are undone. A cycle whose undo was itself undone is not among them."""
    found: dict[str, str] = {}
    for file in (graph.folder / "receipts").glob("*-undo-*.json"):
        receipt = readable(graph, file)
        if receipt and receipt.summary:
            found[file.stem] = receipt.summary[0].removeprefix(UNDONE)
    return {cycle for undo, cycle in found.items() if undo not in found.values()}


def undo_receipt(graph: Graph, id: str, now: datetime) -> tuple[Outcome, list[str]]:
    """
    Undo cycle *id*: restore every note that the cycle changed. Also return the paths left alone because they were edited
    since.

    The caller holds `graph.lock()`. An undo is itself a receipt, so an undo can be undone. A note that was renamed and then
    edited keeps its new name. Raises BadInput if no note is as the cycle left it.
    """
    receipt = find_receipt(graph, id)
    back, refused = [], []
    edited = {
        id_in(c.after, c.path)
        for c in receipt.changes
        if c.after is not None and graph.vault.bytes(c.path) not in (None, encode_text(c.after))
    }
    for change in reversed(receipt.changes):
        there = graph.vault.bytes(change.path)
        if change.before and change.after is None and id_in(change.before, change.path) in edited:
            continue
        if there == encode_text(change.after):
            back.append(replace(change, before=change.after, after=change.before, rebase=Rebase()))
        elif there != encode_text(change.before) and change.rebase.block is None:
            refused.append(change.path)  # not for maps: the caller makes changed maps anew
    if receipt.changes and not back:
        why = "its notes were renamed or deleted since, or the cycle is undone already"
        if refused:
            why = f"changed since, and left alone: {', '.join(refused)}"
        raise BadInput(
            f"nothing of {receipt.id} was undone: {why}; `omg history` lists the other changes, `omg undo CYCLE` undoes one"
        )
    if receipt.kind == "observation":
        for change in receipt.changes:
            add_undone(graph, change)
    undone = new_receipt("undo", now, back, summary=(f"{UNDONE}{receipt.id}",), person=True)
    return commit_receipt(graph, undone), refused
