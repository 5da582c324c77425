"""
The journal of one batch: every file with its text before and after, written before the first note changes.

    receipts/<id>.open.json   promised, perhaps half done
    receipts/<id>.json        done

After a crash `replay_open` finishes what a receipt promises, so a model is never asked twice. The same record
is what `undo_receipt` takes back. For each file the text on disk decides:

    it is `after`     done already
    it is `before`    write
    it is gone        a person renamed it: the change is made under its new name; or deleted it: nothing is written,
                      and a map is made anew when its notes change next
    anything else a person edited it: the change is rebased on their text; if that fails, its new text goes to inbox/

A closed receipt leaves out maps, index and Now: they are made anew whenever notes change, also by an undo. Closed
receipts are kept for KEPT_DAYS.

Not here: what to write (plan/drafts.py). A receipt is the only way into a vault.
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
RECEIPTS_KEPT = 50  # the last cycles are kept however old they are: somebody may come back after a year


@dataclass(frozen=True, slots=True)
class Rebase:
    """The parts of the change that can still be made if the file has changed since it was planned."""

    block: str | None = None  # the generated block
    set: dict[str, Any] = field(default_factory=dict)  # frontmatter keys
    history: str | None = None  # a line for ## History


@dataclass(frozen=True, slots=True)
class Change:
    path: str
    before: str | None  # None: there was no file
    after: str | None  # None: the file goes
    rebase: Rebase = Rebase()
    theirs: bool = False  # amends a person's note: the note stays theirs, and is never rendered anew
    mode: int | None = None  # permissions of a file that the change creates; None: as new files have


@dataclass(frozen=True, slots=True)
class Receipt:
    id: str
    kind: str  # observation, reflection, edit, rebuild, forget, undo, upgrade
    at: str  # ISO, UTC
    changes: tuple[Change, ...] = ()
    pending: tuple[str, ...] = ()  # files of pending/ that this batch has observed
    hints: dict[str, dict[str, Any]] = field(default_factory=dict)  # session -> SessionState fields
    # to add to State.unread, which a model reads at night; and the keys to remove because a model has read them
    unread: dict[str, int] = field(default_factory=dict)
    read: tuple[str, ...] = ()
    summary: tuple[str, ...] = ()  # what was done, a line each, for a person
    person: bool = False  # a person asked for it: every `system` slice is refreshed
    tokens: int = 0  # tokens of the nodes written; they count towards the next reflection
    done: str = ""  # when it was committed, ISO, UTC; `at` of an observation is when it was said

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
    `<UTC time>-<name>-<mark>`; sorts by time.

    *of*: the parts of the batch; the same parts give the same id, so that a batch repeated after a crash is
    recognised. Without *of*, each call gives a new id, even within one second.
    """
    mark = hashlib.sha256(of.encode()).hexdigest()[:8] if of is not None else f"{time.time_ns() // 1000:x}"
    return "-".join(filter(None, (f"{at.astimezone(UTC):%Y%m%dT%H%M%S}", name, mark)))


def new_receipt(
    kind: str, at: datetime, changes: Iterable[Change], *, name: str = "", **more: Any
) -> Receipt:
    """A receipt with a new id. The id contains *name*, or *kind* without one; *more*: other fields of Receipt."""
    stamp = at.astimezone(UTC).isoformat(timespec="seconds")
    return Receipt(receipt_id(at, name or kind), kind, stamp, tuple(changes), **more)


@dataclass(slots=True)
class Outcome:
    """What became of the changes."""

    written: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)  # a person's file: rebased or left alone
    inbox: list[str] = field(default_factory=list)


def read_receipt(file: Path) -> Receipt:
    """Read the receipt in *file*. Raises BadInput, which names the file, if the receipt is damaged."""
    try:
        return Receipt.loads(file.read_text(encoding="utf-8"))
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise BadInput(
            f"{file}: is damaged ({e}); move it away, and `omg doctor` looks after the rest"
        ) from e


def readable(graph: Graph, file: Path) -> Receipt | None:
    """The receipt in *file*; None for one that is damaged, which is set aside."""
    try:
        return read_receipt(file)
    except BadInput as e:
        cut = file.name.endswith(".open.json")
        mend = "its turns are observed again" if cut else "that cycle cannot be undone any more"
        set_aside_damaged(graph.folder, file, f"is damaged ({e.__cause__})", mend)
        return None


def commit_receipt(graph: Graph, receipt: Receipt) -> Outcome:
    """Write the receipt to disk, then make its changes. The caller holds `graph.lock()`."""
    receipt = replace(receipt, done=datetime.now(UTC).isoformat(timespec="microseconds"))
    file = graph.folder / "receipts" / f"{receipt.id}.open.json"
    write_private(file, receipt.dumps())
    return finish_receipt(graph, file, receipt)


def replay_open(graph: Graph) -> list[str]:
    """Finish what a crash left open; returns the receipts' ids. The caller holds `graph.lock()`."""
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
    """Close the receipt: keep only what an undo needs, and remove receipts that are too old."""
    kept = tuple(c for c in receipt.changes if not remade(c))
    if len(kept) < len(receipt.changes):
        write_private(file, replace(receipt, changes=kept).dumps())
    file.replace(file.with_name(f"{receipt.id}.json"))
    expire(file.parent)


def remade(change: Change) -> bool:
    """
    Whether the change only made a map, the index or Now anew. A new or removed page counts as a change, and so does a
    model's text on it.
    """
    page = change.path in ("index", "now") or change.path.startswith("mocs/")
    if not page or change.rebase.block is None or change.before is None or change.after is None:
        return False
    return told_in(change.before) == told_in(change.after)


def expire(folder: Path) -> None:
    """
    Remove closed receipts that are neither younger than KEPT_DAYS nor among the last RECEIPTS_KEPT. The age is that of the
    file, because the receipt of an imported talk has the day of the talk. The receipt of an undo stays: the Reflector does
    not repeat what a person took back (reflect/verdicts.py).
    """
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
    """Enter *hints*, by conversation, into *state*; hints older than those in *state* change nothing."""
    for session, told in hints.items():
        entry = state.sessions.setdefault(session, SessionState())
        if told.get("at_ms", 0) >= entry.at_ms:
            for key, value in told.items():
                setattr(entry, key, value)


def note_written(state: State, receipt: Receipt) -> None:
    """Enter the receipt into the state. Doing this twice only changes `changed_tokens`, which is a rough measure."""
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
    for _ in range(5):  # each attempt may lose a race with a save; five in a row do not happen
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
    """Record whether *data*, which is now in place, is OMG's or a person's."""
    if change.theirs:
        graph.vault.mark_theirs(change.path, data)
    else:
        graph.vault.remember(change.path, data)


def rebase_change(now: bytes, change: Change) -> bytes | None:
    """
    Apply *change* to *now*, a person's text; None if that is not possible. Applying it twice changes nothing more.
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
    """The id of the note with this *text*; None if it cannot be read."""
    try:
        return parse_node(text, path).id
    except BadNode:
        return None


def renamed_to(graph: Graph, change: Change) -> str | None:
    """The present path of the note of *change*, if a person renamed it since the change was planned."""
    assert change.before is not None
    if (id := id_in(change.before, change.path)) is None:
        return None
    entry = graph.index.entry(id)
    known = graph.index.hashes().keys() - {entry.path if entry else None}  # other notes, which have other ids
    for path in graph.vault.paths():
        if path not in known:
            with suppress(BadNode, NotFound, OutsideVault):
                if graph.vault.read(path).id == id:
                    return path
    return None


def add_undone(graph: Graph, change: Change) -> None:
    """
    Add a tombstone for the note of *change* and its messages, as if the person had deleted the note: they undid the
    change.
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
    Write the new text of a change that could not be made into an inbox note: a whole new note, or a line of history.
    Maps are made anew anyway; sources, links and older states are not new text.
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
    """Closed receipts, the last one done first."""
    found = [r for f in reversed(closed_files(graph)) if (r := readable(graph, f)) is not None]
    return sorted(found, key=lambda r: r.done, reverse=True)


def closed_files(graph: Graph) -> list[Path]:
    """The files of closed receipts, by `at`, oldest first."""
    files = [f for f in (graph.folder / "receipts").glob("*.json") if is_closed(f.name)]
    # Sorted by the second, then by the mark; the name between them says nothing about time.
    return sorted(files, key=lambda f: (f.stem.partition("-")[0], f.stem.rpartition("-")[2]))


def changes_since(graph: Graph, day: date) -> Iterator[Change]:
    """The changes of closed receipts of *day*, in any time zone, and later; oldest first. One receipt is read at a time."""
    for file in closed_files(graph):
        if file.name >= f"{day - timedelta(days=1):%Y%m%d}" and (receipt := readable(graph, file)):
            yield from receipt.changes


def has_open_receipt(graph: Graph) -> bool:
    """Whether a cycle is under way or was interrupted: its archived messages may not be in the index yet."""
    return any((graph.folder / "receipts").glob("*.open.json"))


def find_receipt(graph: Graph, id: str) -> Receipt:
    """The closed receipt *id*, or the only one whose id ends with it. Raises NotFound, BadInput if ambiguous."""
    names = [f.name.removesuffix(".json") for f in (graph.folder / "receipts").glob("*.json")]
    fitting = [n for n in names if n == id] or [
        n for n in names if n.endswith(id) and not n.endswith(".open")
    ]
    if not fitting:
        raise NotFound(
            f"no cycle {id!r} in the graph of {graph.identity.key}; `omg history` lists those of {KEPT_DAYS} days"
        )
    if len(fitting) > 1:
        raise BadInput(f"{id!r} fits {len(fitting)} cycles; give more of the id")
    return read_receipt(graph.folder / "receipts" / f"{fitting[0]}.json")


def short_cycle(id: str) -> str:
    """
    The end of the cycle's *id* that a person types, as in `/omg undo 3f2a`. With 50 cycles, one home in 50 has two with
    the same end.
    """
    return id[-4:]


UNDONE = "undid "  # begins the summary of an undo's receipt


def undone_cycles(graph: Graph) -> set[str]:
    """Ids of the cycles that were undone and not restored by another undo."""
    found: dict[str, str] = {}
    for file in (graph.folder / "receipts").glob("*-undo-*.json"):
        receipt = readable(graph, file)
        if receipt and receipt.summary:
            found[file.stem] = receipt.summary[0].removeprefix(UNDONE)
    return {cycle for undo, cycle in found.items() if undo not in found.values()}


def undo_receipt(graph: Graph, id: str, now: datetime) -> tuple[Outcome, list[str]]:
    """
    Put back every note that cycle *id* changed; returns also the paths refused because they were edited since.

    The caller holds `graph.lock()`. What is put back is itself a receipt, so an undo can be undone. A note that was
    renamed and then edited stays under its new name alone. Raises BadInput if nothing is as the cycle left it.
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
            refused.append(change.path)  # the caller makes maps anew that changed since
    if receipt.changes and not back:
        why = "its notes were renamed or deleted since, or it is undone already"
        if refused:
            why = f"{', '.join(refused)} changed since, and stays as it is"
        raise BadInput(
            f"nothing of {receipt.id} was undone: {why}; `omg undo CYCLE` takes back another change, as `omg history` names it"
        )
    if receipt.kind == "observation":
        for change in receipt.changes:
            add_undone(graph, change)
    undone = new_receipt("undo", now, back, summary=(f"{UNDONE}{receipt.id}",), person=True)
    return commit_receipt(graph, undone), refused
