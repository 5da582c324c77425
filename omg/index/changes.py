"""
A vault's files and the tables brought to one state: which notes are new, changed, moved, gone or unreadable.

A file is read again if its (mtime, size) is not what it was, and entered again if its hash is not. A note is
moved if its id, or else its bytes, turn up at another path while the file at its own is gone.

Not here: the rows themselves (rows.py). One rule: a file that cannot be read as a note costs that note alone.
"""

from __future__ import annotations

import sqlite3
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..dates.days import day_of_ms
from ..errors import BadNode, OutsideVault
from ..node.note import Node, parse_node
from ..text.links import with_labels
from ..text.sentences import split_sentences
from ..text.words import written_words
from ..vault.files import digest
from ..vault.vault import BODY_PART, Vault, copy_of_another
from .rows import NOTES_AT_ONCE, NoteFile, RowWriter
from .store import rows_of
from .vectors import drop_vectors

# saved twice within a tick of the system's clock, a file keeps its time: look again next time
RACY_NS = 50_000_000

ORIGINS_OF_OURS = ("user", "assistant", "tool")  # a person's own note has "human", or none


@dataclass(frozen=True, slots=True)
class Gone:
    """A note whose file is no more."""

    path: str
    id: str
    sources: tuple[str, ...]  # ids of its messages


@dataclass(frozen=True, slots=True)
class Synced:
    changed: tuple[str, ...] = ()  # paths that are new, or have new bytes; those that were moved to as well
    removed: tuple[Gone, ...] = ()  # not those that were moved away from
    moved: tuple[tuple[str, str], ...] = ()  # from, to
    bad: dict[str, str] = field(default_factory=dict)  # path → what to mend, of the files looked at now


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file as it was last seen. *note*: its row; None for one that could not be read."""

    note: int | None
    mtime: int
    size: int
    hash: str


@dataclass(slots=True)
class VaultScan:
    """What one sync sees of the vault."""

    vault: Vault
    found: Mapping[str, tuple[int, int]]  # path → mtime, size
    known: Mapping[str, KnownFile]
    lost: dict[str, str]  # hash → path, of the notes whose files are gone
    moved: dict[str, str] = field(default_factory=dict)
    bad: dict[str, str] = field(default_factory=dict)

    @property
    def stale(self) -> list[str]:
        return [
            p for p, at in self.found.items() if (k := self.known.get(p)) is None or (k.mtime, k.size) != at
        ]


def sync_tables(writer: RowWriter, vault: Vault, paths: Iterable[str] | None) -> Synced:
    """Bring the tables up to all of *vault*, or to *paths* alone."""
    scan = scan_vault(writer.db, vault, paths)
    fresh = paths is None and not scan.known
    stale = scan.stale
    for at in range(0, len(stale), NOTES_AT_ONCE):
        writer.enter(list(read_notes(writer, scan, stale[at : at + NOTES_AT_ONCE])))
    removed = remove_gone(writer, scan)
    writer.settle(fresh)
    changed, moved = sorted(writer.entered.values()), sorted(scan.moved.items())
    return Synced(tuple(changed), removed, tuple(moved), scan.bad)


def scan_vault(db: sqlite3.Connection, vault: Vault, paths: Iterable[str] | None) -> VaultScan:
    good, bad = "select path, id, mtime, size, hash from note", "select path, null, mtime, size, '' from bad"
    if paths is None:
        known = {path: KnownFile(*rest) for path, *rest in db.execute(f"{good} union all {bad}")}
        found = files_of(vault)
        if known.keys() - found.keys():  # renamed while we looked, a file may stand where we had been already
            found = files_of(vault)
    else:
        listed = list(dict.fromkeys(paths))
        found = {path: times for path in listed if (times := file_stat(vault, path))}
        rows = [row for table in (good, bad) for row in rows_of(db, f"{table} where path in", listed)]
        known = {path: KnownFile(*rest) for path, *rest in rows}
    lost = {k.hash: path for path, k in known.items() if path not in found and k.hash}
    return VaultScan(vault, found, known, lost)


def files_of(vault: Vault) -> dict[str, tuple[int, int]]:
    return {path: (mtime, size) for path, mtime, size in vault.scan()}


def file_stat(vault: Vault, path: str) -> tuple[int, int] | None:
    """mtime and size of the note at *path*; None if there is none."""
    if copy_of_another(path.rpartition("/")[2]):
        return None
    try:
        found = vault.file(path).lstat()
    except (OutsideVault, OSError):
        return None
    return (found.st_mtime_ns, found.st_size) if stat.S_ISREG(found.st_mode) else None


def read_notes(writer: RowWriter, scan: VaultScan, paths: Sequence[str]) -> Iterator[NoteFile]:
    """The notes of *paths* whose bytes are new. What is no note is put aside."""
    for path in paths:
        was, (mtime, size) = scan.known.get(path), scan.found[path]
        saved = day_of_ms(mtime // 1_000_000, writer.zone)
        if time.time_ns() - mtime < RACY_NS:
            mtime = 0
        data = None
        try:
            data = scan.vault.bytes(path)
            if data is None:  # gone since we looked: the next sync says so
                continue
            hash = digest(data)
            if was and was.hash == hash:
                writer.db.execute("update note set mtime = ?, size = ? where path = ?", (mtime, size, path))
                continue
            node = as_corrected(parse_node(data.decode("utf-8"), path), scan.vault.theirs(data))
            if node.updated and saved > node.updated and scan.vault.reworded(data):
                node = replace(node, updated=saved)  # a person's correction is as new as their save
        except (UnicodeDecodeError, BadNode, OutsideVault) as e:
            scan.bad[path] = (
                f"{path}.md: is not UTF-8; save it as UTF-8" if isinstance(e, ValueError) else str(e)
            )
            mtime = 0 if data is None else mtime  # nobody may read it: permissions come back without a save
            writer.db.execute("replace into bad values (?, ?, ?, ?)", (path, mtime, size, scan.bad[path]))
            if was and was.note is not None:
                drop_notes(writer, [was.note])
            continue
        if was and was.note is None:
            writer.db.execute("delete from bad where path = ?", (path,))
        row = was.note if was else None
        yield NoteFile(node, moved_from(writer, scan, node, hash) if row is None else row, mtime, size, hash)


def as_corrected(node: Node, theirs: Collection[str]) -> Node:
    """
    *node* with the first sentence of its text as its description, where a person corrected that sentence and left the
    description, which had said the same. The file stays as it is.
    """
    if node.origin not in ORIGINS_OF_OURS or BODY_PART not in theirs or "description" in theirs:
        return node
    first = next(iter(split_sentences(with_labels(node.body.strip()).partition("\n")[0])), "").strip()
    was, now = set(written_words(node.description)), set(written_words(first))
    if node.description in with_labels(node.body) or 2 * len(was & now) < max(len(was), len(now), 1):
        return node
    return replace(node, description=first)


def moved_from(writer: RowWriter, scan: VaultScan, node: Node, hash: str) -> int | None:
    """The row of the note that was elsewhere until now."""
    rows = []
    if node.id != node.path:
        rows = writer.db.execute("select id, path from note where node = ?", (node.id,)).fetchall()
    elif hash in scan.lost:
        rows = [(scan.known[scan.lost[hash]].note, scan.lost[hash])]
    for id, path in rows:
        if path not in scan.moved and path not in scan.found and file_stat(scan.vault, path) is None:
            scan.moved[path] = node.path
            return int(id)
    return None


def remove_gone(writer: RowWriter, scan: VaultScan) -> tuple[Gone, ...]:
    """Forget the files that are gone."""
    gone = {
        path: k.note for path, k in scan.known.items() if path not in scan.found and path not in scan.moved
    }
    writer.db.executemany("delete from bad where path = ?", [(path,) for path in gone])
    ids = [id for id in gone.values() if id is not None]
    cited: dict[int, list[str]] = {}
    for note, _, source in sorted(
        rows_of(writer.db, "select note, rowid, id from source where note in", ids)
    ):
        cited.setdefault(note, []).append(source)
    rows = rows_of(writer.db, "select path, node, id from note where id in", ids)
    removed = tuple(Gone(path, node, tuple(cited.get(id, ()))) for path, node, id in sorted(rows))
    drop_notes(writer, ids)
    return removed


def drop_notes(writer: RowWriter, ids: Sequence[int]) -> None:
    writer.take_out(ids)
    drop_vectors(writer.db, ids, gone=True)
