"""
Writes a note's rows in the index, and updates the columns that depend on other notes.

    enter      writes the rows of notes: names, links, sources, and the columns of the full text
    settle     finds the note of each link, then sets maps, successors and linked titles
    rewindow   updates the columns that hold a note's messages and their neighbours, after a neighbour changed

The cost grows with the number of changed notes, not with the size of the vault.
"""

from __future__ import annotations

import json
import sqlite3
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, tzinfo
from typing import Any

from ..dates.days import day_of_ms, day_words, event_span
from ..errors import BadNode, OutsideVault
from ..node.markdown import H1, uncommented
from ..node.note import LOG_FOLDER, Node, Source, map_listing
from ..text.characters import fold_text, with_labels
from ..vault.files import digest
from ..vault.vault import Vault, copy_of_another
from .archived import source_window
from .links import LINK, PROSE, SUCCESSOR, links_of_note, names_of_note, relink_rows
from .search import drop_vectors
from .store import NOTE_COLUMNS, TABLES, meta_value, rows_of

NO_HITS = ("index", "now", "moc", "log")  # types of pages that a search never returns
# table → the column with the row of the note
ROWS_OF_NOTE = {"note": "id", "name": "note", "link": "src", "source": "note", "text": "id"}
NOTES_AT_ONCE = 500  # notes in memory at once
DAYS = 3  # most days of a note that are indexed as words; by other days, a search finds the note's messages


@dataclass(frozen=True, slots=True)
class NoteFile:
    """A note as read from its file. *note*: the note's row; None if the note is new."""

    node: Node
    note: int | None
    mtime: int
    size: int
    hash: str


@dataclass(frozen=True, slots=True)
class FormerNote:
    """
    Holds the values of a note before a change. RowWriter compares former and new values, and updates what depends
    on them: the note's vector, and the rows of notes that link to the note.
    """

    path: str
    title: str
    text: tuple[str, ...] | None  # title, description, body; None: searches leave the note out


class RowWriter:
    """
    Changes the tables in one transaction, which ends with `settle` or `rewindow`.

    *out*: notes whose full-text row is removed and not yet written again.
    """

    def __init__(self, db: sqlite3.Connection, zone: tzinfo) -> None:
        self.db, self.zone = db, zone
        self.out: set[int] = set()
        self.hits = 0  # change of the number of notes that searches can find
        self.entered: dict[int, str] = {}  # row → path
        self.leaves: set[str] = set()  # last parts of names that were added or removed
        self.relinked: set[int] = set()  # notes that link to a note whose name changed

    # --- rows

    def enter(self, batch: Sequence[NoteFile]) -> None:
        """Write the rows of the notes in *batch*."""
        next = meta_value(self.db, "next")
        rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in ROWS_OF_NOTE}
        was = self.take_out([file.note for file in batch if file.note is not None])
        for file in batch:
            node, id = file.node, file.note
            if id is None:
                id, next = next, next + 1
            self.entered[id] = node.path
            rows["note"].append(note_row(id, file, self.zone))
            rows["name"] += [(id, *name) for name in names_of_note(node)]
            rows["link"] += [(id, None, *link) for link in links_of_note(node)]
            rows["source"] += [(id, s.session, s.id, s.kind, s.timestamp) for s in node.sources if s.id]
            if is_searchable(node):
                text = text_columns(node, self.zone)
                rows["text"].append((id, *text, "", *source_window(self.db, node.sources, text[2])))
        self.db.execute("update meta set value = ? where key = 'next'", (next,))
        for table, listed in rows.items():
            marks = ", ".join("?" * len(TABLES[table]))
            self.db.executemany(f"insert into {table} values ({marks})", listed)
        self.leaves.update(name for _, name, _, _ in rows["name"])
        self.out.update(row[0] for row in rows["text"])
        self.hits += len(rows["text"])
        # A note needs a new vector only if its texts changed, not for a new date or link.
        texts = {id: tuple(text[:3]) for id, *text in rows["text"]}
        drop_vectors(self.db, [id for id, text in texts.items() if id not in was or was[id].text != text])
        for id, path, _, _, title, *_ in rows["note"]:
            # Other notes show the note's path, and its title if a search may find the note.
            shown = (path, title, id in texts)
            if id in was and (was[id].path, was[id].title, was[id].text is not None) != shown:
                linking = self.db.execute("select src from link where dst = ?", (id,))
                self.relinked.update(src for (src,) in linking)

    def take_out(self, ids: Sequence[int]) -> dict[int, FormerNote]:
        """Delete the rows of the notes *ids*, except their vectors. Return row → the note's former values."""
        if not ids:
            return {}
        select = "select note.id, path, note.title, text.title, text.description, body from note left join text using (id)"
        was = {
            id: FormerNote(path, title, None if text[0] is None else tuple(text))
            for id, path, title, *text in rows_of(self.db, f"{select} where note.id in", ids)
        }
        self.unlist(id for id, w in was.items() if w.text is not None)
        self.out.difference_update(ids)
        self.hits -= sum(w.text is not None for w in was.values())
        self.leaves.update(name for (name,) in rows_of(self.db, "select leaf from name where note in", ids))
        for table, key in ROWS_OF_NOTE.items():
            self.db.executemany(f"delete from {table} where {key} = ?", [(id,) for id in ids])
        return was

    # --- what depends on others

    def settle(self, fresh: bool) -> None:
        """
        Find the notes that links lead to. Then set maps, successors and linked titles, and update the full
        text. *fresh*: all links are new.
        """
        if fresh:
            relink_rows(self.db)
        else:
            self.relinked |= relink_rows(self.db, "leaf", self.leaves)
            self.relinked |= relink_rows(self.db, "src", self.entered)
        relinked = sorted(self.relinked | self.entered.keys())
        for at in range(0, len(relinked), NOTES_AT_ONCE):
            self.settle_some(relinked[at : at + NOTES_AT_ONCE])
        self.list_again()

    def settle_some(self, ids: Sequence[int]) -> None:
        """Set the map, the successor and the linked titles of the notes *ids*."""
        select = """select src, link.rowid, target, link.kind, path, title, hit
            from link left join note on note.id = dst where src in"""
        links: dict[int, list[tuple[Any, ...]]] = {id: [] for id in ids}
        for src, *link in sorted(rows_of(self.db, select, ids)):
            links[src].append(tuple(link[1:]))
        select = "select note.id, path, type, home, superseded_by, linked from note left join text using (id) where note.id in"
        heads, titles = [], []
        for id, path, type, *before in rows_of(self.db, select, ids):
            plain = [link for link in links[id] if link[1] in (LINK, PROSE)]
            home = map_listing(path, type, (there or target for target, _, there, _, _ in plain))
            successor = next(
                (there or target for target, kind, there, _, _ in links[id] if kind == SUCCESSOR), None
            )
            if [home, successor] != before[:2]:
                heads.append((home, successor, id))
            linked = "\n".join(fold_text(title) for _, _, _, title, hit in plain if hit)
            if before[2] is not None and linked != before[2]:
                titles.append((linked, id))
        self.db.executemany("update note set home = ?, superseded_by = ? where id = ?", heads)
        self.unlist(id for _, id in titles)
        self.db.executemany("update text set linked = ? where id = ?", titles)

    def rewindow(self, messages: Collection[str]) -> None:
        """
        Update the search texts of the notes that were made from *messages*.

        A note is also found by words of its messages, and of the messages said just before and after. Call this
        with messages that were added or removed, and with the messages next to these.
        """
        for (note,) in set(rows_of(self.db, "select note from source where id in", messages)):
            cited = self.db.execute(
                "select session, id, timestamp from source where note = ?", (note,)
            ).fetchall()
            row = self.db.execute("select said, near, far, body from text where id = ?", (note,)).fetchone()
            if row is None:
                continue
            now = source_window(self.db, [Source(*source) for source in cited], row[3])
            if row[:3] != now:
                self.unlist([note])
                self.db.execute("update text set said = ?, near = ?, far = ? where id = ?", (*now, note))
        self.list_again()

    # --- full text

    def unlist(self, ids: Iterable[int]) -> None:
        """
        Remove notes from the full text before one of their columns changes. To delete a row, fts5 needs the
        row's former values.
        """
        still = [id for id in ids if id not in self.out]
        columns = ", ".join(NOTE_COLUMNS)
        delete = f"insert into note_fts (note_fts, rowid, {columns}) select 'delete', id, {columns} from text where id = ?"
        self.db.executemany(delete, [(id,) for id in still])
        self.out.update(still)

    def list_again(self) -> None:
        columns = ", ".join(NOTE_COLUMNS)
        insert = f"insert into note_fts (rowid, {columns}) select id, {columns} from text where id in"
        rows_of(self.db, insert, sorted(self.out))
        self.db.execute("update meta set value = value + ? where key = 'hits'", (self.hits,))
        self.out.clear()
        self.hits = 0


# --- a note's columns


def is_searchable(node: Node) -> bool:
    return node.type not in NO_HITS and node.status != "archived" and not node.path.startswith(LOG_FOLDER)


def note_row(id: int, file: NoteFile, zone: tzinfo) -> tuple[Any, ...]:
    """Return the note's row for the table `note`, still without map and successor, which `settle` sets."""
    n = file.node
    said = days_of_note(n, zone)
    event = event_span(n.event)
    days = [
        day and day.toordinal() for day in (*(said[:1] + said[-1:] or (None, None)), *(event or (None, None)))
    ]
    dates = [day and day.isoformat() for day in (n.created, n.updated)]
    return (
        *(id, n.path, n.id, n.type, n.title, n.description, n.priority, n.status, n.pinned, n.standing),
        *(n.loop, n.event, *dates, n.origin, None, json.dumps(n.tags), None, is_searchable(n)),
        *(*days, file.mtime, file.size, file.hash),
    )


def days_of_note(node: Node, zone: tzinfo) -> list[date]:
    """
    Return the days of the messages that *node* was made from; without messages, the day the note was created.
    """
    said = sorted({day_of_ms(source.timestamp, zone) for source in node.sources})
    return said or ([node.created] if node.created else [])


def text_columns(node: Node, zone: tzinfo) -> tuple[str, str, str, str, str]:
    """
    Return a note's texts for the full-text search: (title, description, body, tags, dates).

    All texts are folded (`fold_text`). *tags* also has the note's aliases, except an alias that equals the title. A
    description that repeats the title or a part of the body becomes "".
    """
    heading = node.title  # read once: a note without a heading searches its aliases for a title
    title, body = fold_text(heading), fold_text(plain_body(node.body, heading))
    description = fold_text(node.description)
    if description in body or description == title:
        description = ""
    event = event_span(node.event) or ()
    said = days_of_note(node, zone)
    dates = " ".join(day_words(day) for day in dict.fromkeys([*event, *said[:DAYS]]))
    names = (*node.tags, *(alias for alias in node.aliases if alias != heading))
    return title, description, body, fold_text(" ".join(names)), dates


def plain_body(body: str, title: str) -> str:
    """*body* as plain text: links as labels, no comments, no heading that repeats the title."""
    if "<!--" in body:
        body = uncommented(body)
    if "# " in body:
        body = H1.sub(lambda h: "" if h[1] == title else h[0], body, count=1)
    return with_labels(body).strip()


# --- Updates the tables from a vault's files: finds notes that are new, changed, moved, gone or unreadable.
#
# A file is read again if its (mtime, size) changed, and entered again if its hash changed. A note counts as
# moved if its file is gone and its id, or else its bytes, are found at another path. A note counts as removed
# only after two scans of the whole vault found the same files; until then the note's row stays.
#
# A file that cannot be read as a note affects no other note.


# A file saved twice within one tick of the clock keeps its mtime, so a recent file is read again next time.
RACY_NS = 50_000_000
LOOKS = 5  # most scans of a vault whose files are being renamed, for example by a sync service


@dataclass(frozen=True, slots=True)
class Gone:
    """A note whose file is gone."""

    path: str
    id: str
    sources: tuple[str, ...]  # ids of its messages


@dataclass(frozen=True, slots=True)
class Synced:
    """What a sync found."""

    changed: tuple[str, ...] = ()  # paths that are new or have new bytes; also the new paths of moved notes
    removed: tuple[Gone, ...] = ()  # without moved notes
    moved: tuple[tuple[str, str], ...] = ()  # from, to
    bad: dict[str, str] = field(
        default_factory=dict
    )  # path → what to mend, for the unreadable files among those read now


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file as last seen. *note*: the row of its note; None if the file could not be read as a note."""

    note: int | None
    mtime: int
    size: int
    hash: str


@dataclass(slots=True)
class VaultScan:
    """The files that one sync finds in the vault, and the files that the index knows from former syncs."""

    vault: Vault
    found: Mapping[str, tuple[int, int]]  # path → mtime, size
    known: Mapping[str, KnownFile]
    lost: dict[str, str]  # hash → path, of the notes whose files are gone
    settled: bool  # whether the last scans found the same files
    moved: dict[str, str] = field(default_factory=dict)
    bad: dict[str, str] = field(default_factory=dict)

    @property
    def stale(self) -> list[str]:
        return [
            p for p, at in self.found.items() if (k := self.known.get(p)) is None or (k.mtime, k.size) != at
        ]


def sync_tables(writer: RowWriter, vault: Vault, paths: Iterable[str] | None) -> Synced:
    """Update the tables from all notes of *vault*, or only from the notes at *paths*."""
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
        found, settled, looks = files_of(vault), True, 1
        while known.keys() - found.keys() and looks < LOOKS:
            before, found, looks = found.keys(), files_of(vault), looks + 1
            if settled := found.keys() == before:
                break
    else:
        listed = list(dict.fromkeys(paths))
        found = {path: times for path in listed if (times := file_stat(vault, path))}
        rows = [row for table in (good, bad) for row in rows_of(db, f"{table} where path in", listed)]
        # A missing note that OMG wrote may have been renamed: only a scan of the whole vault shows this.
        known = {path: KnownFile(*rest) for path, *rest in rows if path in found or not vault.wrote(path)}
        settled = True
    lost = {k.hash: path for path, k in known.items() if path not in found and k.hash}
    return VaultScan(vault, found, known, lost, settled)


def files_of(vault: Vault) -> dict[str, tuple[int, int]]:
    return {path: (mtime, size) for path, mtime, size in vault.scan()}


def file_stat(vault: Vault, path: str) -> tuple[int, int] | None:
    """Return mtime (ns) and size (bytes) of the note at *path*; None if there is no note."""
    if copy_of_another(path.rpartition("/")[2]):
        return None
    try:
        found = vault.file(path).lstat()
    except (OutsideVault, OSError):
        return None
    return (found.st_mtime_ns, found.st_size) if stat.S_ISREG(found.st_mode) else None


def read_notes(writer: RowWriter, scan: VaultScan, paths: Sequence[str]) -> Iterator[NoteFile]:
    """
    Yield the notes at *paths* whose bytes changed. Files that cannot be read as notes are recorded as bad.
    """
    for path in paths:
        was, (mtime, size) = scan.known.get(path), scan.found[path]
        saved = day_of_ms(mtime // 1_000_000, writer.zone)
        if time.time_ns() - mtime < RACY_NS:
            mtime = 0
        data = None
        try:
            data = scan.vault.bytes(path)
            if data is None:  # removed or renamed since the scan: left to the next sync
                scan.settled = False
                continue
            hash = digest(data)
            if was and was.hash == hash:
                writer.db.execute("update note set mtime = ?, size = ? where path = ?", (mtime, size, path))
                continue
            node = scan.vault.parse(data.decode("utf-8"), path)
            if node.updated and saved > node.updated and scan.vault.reworded(data):
                node = replace(node, updated=saved)  # a person's correction dates from the day of the save
        except (UnicodeDecodeError, BadNode, OutsideVault) as e:
            utf8 = not isinstance(e, UnicodeDecodeError)
            why = str(e).removeprefix(f"{path}.md: ")  # the path is shown beside the reason
            scan.bad[path] = why if utf8 else "is not UTF-8; save it as UTF-8"
            if data is None:  # to be read again: permissions can change without the file
                mtime = 0
            writer.db.execute("replace into bad values (?, ?, ?, ?)", (path, mtime, size, scan.bad[path]))
            if was and was.note is not None:
                drop_notes(writer, [was.note])
            continue
        if was and was.note is None:
            writer.db.execute("delete from bad where path = ?", (path,))
        row = was.note if was else None
        yield NoteFile(node, moved_from(writer, scan, node, hash) if row is None else row, mtime, size, hash)


def moved_from(writer: RowWriter, scan: VaultScan, node: Node, hash: str) -> int | None:
    """Return the row that *node* had under a former path; None if the note did not move."""
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
    """
    Remove the rows of notes whose files are gone, and return those notes. While files are being renamed, remove
    nothing.
    """
    if not scan.settled:
        return ()
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
