"""
A note's rows: how a Node lies in the tables, and what in them depends on other notes.

    enter      notes become rows: names, links, sources, and the columns of their full text
    settle     links find their notes; what depends on that (linked titles, map, successor) follows
    rewindow   what was said around a note's messages has changed: so do the columns made of it

Not here: files (changes.py), and reading the tables. One rule: what it costs follows what changed, not how much
there is.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, tzinfo
from typing import Any

from ..dates.days import day_of_ms, day_words, event_span
from ..node.fields import Source
from ..node.maptable import LOG_FOLDER, map_listing
from ..node.markdown import uncommented
from ..node.note import Node
from ..text.characters import fold_text
from ..text.links import with_labels
from .archived import source_window
from .links import LINK, PROSE, SUCCESSOR, links_of_note, names_of_note, relink_rows
from .store import NOTE_COLUMNS, TABLES, rows_of
from .vectors import drop_vectors

NO_HITS = ("index", "now", "moc", "log")  # types that lead to notes and are no answer themselves
# table → the column that says whose a row is
ROWS_OF_NOTE = {"note": "id", "name": "note", "link": "src", "source": "note", "text": "id"}
NOTES_AT_ONCE = 500  # notes in memory at once
DAYS = 3  # of a note's, in words; a note of many days is found by the others' messages


@dataclass(frozen=True, slots=True)
class NoteFile:
    """A note as it was read. *note*: its row, if it has one."""

    node: Node
    note: int | None
    mtime: int
    size: int
    hash: str


@dataclass(frozen=True, slots=True)
class FormerNote:
    """What a note was for others, and for its vector."""

    path: str
    title: str
    text: tuple[str, ...] | None  # title, description, body; None: no hit


class RowWriter:
    """
    Changes to the tables in one transaction; ended by `settle` or `rewindow`.

    *out*: notes whose full-text row is taken out until it is made anew.
    """

    def __init__(self, db: sqlite3.Connection, zone: tzinfo) -> None:
        self.db, self.zone = db, zone
        self.out: set[int] = set()
        self.hits = 0  # more than there were
        self.entered: dict[int, str] = {}  # row → path
        self.leaves: set[str] = set()  # last parts of names that came or went
        self.relinked: set[int] = set()  # notes that link to one whose name changed

    # --- rows

    def enter(self, batch: Sequence[NoteFile]) -> None:
        """Write the rows of *batch*."""
        next = int(self.db.execute("select value from meta where key = 'next'").fetchone()[0])
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
        # Only what a vector is made of costs one: a new date or link does not.
        texts = {id: tuple(text[:3]) for id, *text in rows["text"]}
        drop_vectors(self.db, [id for id, text in texts.items() if id not in was or was[id].text != text])
        for id, path, _, _, title, *_ in rows["note"]:
            # What others show of it: where it is, and its title if a search may find it.
            shown = (path, title, id in texts)
            if id in was and (was[id].path, was[id].title, was[id].text is not None) != shown:
                linking = self.db.execute("select src from link where dst = ?", (id,))
                self.relinked.update(src for (src,) in linking)

    def take_out(self, ids: Sequence[int]) -> dict[int, FormerNote]:
        """Delete the rows of notes, but for their vectors; returns what they were."""
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
        """Let links find their notes, then what depends on that; the full text last."""
        if fresh:
            relink_rows(self.db)
        else:
            self.relinked |= relink_rows(self.db, leaves=self.leaves) | relink_rows(
                self.db, sources=self.entered
            )
        relinked = sorted(self.relinked | self.entered.keys())
        for at in range(0, len(relinked), NOTES_AT_ONCE):
            self.settle_some(relinked[at : at + NOTES_AT_ONCE])
        self.list_again()

    def settle_some(self, ids: Sequence[int]) -> None:
        """The map, the successor and the linked titles of notes."""
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
        """What is said around *messages* has changed: so has what the notes made of them are found by."""
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
        """Take notes out of the full text, before a column of theirs changes: fts5 must be told what it was."""
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
    return node.type not in NO_HITS and not node.path.startswith(LOG_FOLDER)


def note_row(id: int, file: NoteFile, zone: tzinfo) -> tuple[Any, ...]:
    """As TABLES["note"]. Map and successor are left to `settle`."""
    n = file.node
    said = days_of_note(n, zone)
    event = event_span(n.event)
    days = [
        day and day.toordinal() for day in (*(said[:1] + said[-1:] or (None, None)), *(event or (None, None)))
    ]
    dates = [day and day.isoformat() for day in (n.created, n.updated)]
    return (
        *(id, n.path, n.id, n.type, n.title, n.description, n.priority, n.status, n.pinned, n.standing),
        *(n.loop, n.event, *dates, n.origin, n.generation, None, json.dumps(n.tags), None, is_searchable(n)),
        *(*days, file.mtime, file.size, file.hash),
    )


def days_of_note(node: Node, zone: tzinfo) -> list[date]:
    """The days it was said on; for a note without sources, the day it was made."""
    said = sorted({day_of_ms(source.timestamp, zone) for source in node.sources})
    return said or ([node.created] if node.created else [])


def text_columns(node: Node, zone: tzinfo) -> tuple[str, str, str, str, str]:
    """Title, description, body, tags and, after the linked titles, dates: each thing once, as `fold_text` has it."""
    heading = node.title  # asked for once: without a heading it is sought among all aliases
    title, body = fold_text(heading), fold_text(plain_body(node.body, heading))
    description = fold_text(node.description)
    if description in body or description == title:
        description = ""
    event = event_span(node.event) or ()
    said = days_of_note(node, zone)
    dates = " ".join(day_words(day) for day in dict.fromkeys([*event, *said[:DAYS]]))
    names = (*node.tags, *(alias for alias in node.aliases if alias != heading))
    return title, description, body, fold_text(" ".join(names)), dates


TITLE_HEADING = re.compile(r"^# ++(.*\S)[ \t]*$", re.M)


def plain_body(body: str, title: str) -> str:
    """*body* as it reads: links as their labels, no comments, and no heading that is the title."""
    if "<!--" in body:
        body = uncommented(body)
    if "# " in body:
        body = TITLE_HEADING.sub(lambda h: "" if h[1] == title else h[0], body, count=1)
    return with_labels(body).strip()
