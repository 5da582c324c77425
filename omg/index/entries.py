"""
Entry, a note as the index lists it, and Hit, a note that was found.

Over the tables `note`, `link` and `source` of the store. Not here: finding by words (search.py), and a note's
body, which only the vault has. One rule: a list is sorted by path, so that what is generated from it does
not depend on when the index was made.
"""

from __future__ import annotations

import datetime as dt
import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .links import CONTRADICTION, LINK, PROSE, short_names
from .store import rows_of


@dataclass(frozen=True, slots=True)
class Entry:
    path: str
    id: str
    type: str
    title: str
    description: str
    priority: str
    status: str
    pinned: bool
    loop: str | None
    event: str | None
    created: dt.date | None
    updated: dt.date | None
    origin: str | None
    generation: int
    superseded_by: str | None
    links: tuple[str, ...]  # paths of the notes it links to, those in its head first
    tags: tuple[str, ...]
    mtime: int  # ns
    standing: bool = False  # an instruction for every conversation
    contradicts: tuple[str, ...] = ()  # active notes of which one names the other so
    short: str = ""  # the shortest beginning of its name that no other note has; "": none, or not looked up

    @property
    def handle(self) -> str:
        """The shortest text by which omg_open finds it."""
        return self.short or self.path


# Of a hit's score. On LoCoMo nine in ten of the right notes score above .25, with words alone; of questions about
# other people's talks the best hit stays below .22 in every second case.
WEAK_BELOW = 0.2


@dataclass(frozen=True, slots=True)
class Hit:
    entry: Entry
    score: float  # of 1: how much of what was asked the note answers to; for the order of hits of one or several searches
    why: str
    cosine: float | None = None  # of its vector with the question's; None: there is none, or many are nearer

    @property
    def weak(self) -> bool:
        """Whether it hardly answers what was asked: it is there because nothing else is."""
        return self.score < WEAK_BELOW


COLUMNS = """id, path, node, type, title, description, priority, status, pinned, loop, event, created, updated,
    origin, generation, superseded_by, tags, mtime, standing"""

MANY = 500  # notes; above it one pass over all links is quicker than looking up each note's


def entries_where(db: sqlite3.Connection, where: str, values: Iterable[object]) -> dict[int, Entry]:
    """The notes for which *where* holds, by row, in the order of their paths."""
    rows = db.execute(f"select {COLUMNS} from note {where} order by path", tuple(values)).fetchall()
    select = (
        f"select link.rowid, src, path from link join note on note.id = dst where kind in ({PROSE}, {LINK})"
    )
    found = (
        db.execute(select)
        if len(rows) > MANY
        else rows_of(db, f"{select} and src in", [row[0] for row in rows])
    )
    links: dict[int, dict[str, None]] = {}
    for _, src, path in sorted(found):
        links.setdefault(src, {})[path] = None
    against = contradictions(db) if rows else {}
    short = short_names(db, [(row[0], row[1]) for row in rows]) if len(rows) <= MANY else {}
    return {
        id: entry_of_row((id, *row), tuple(links.get(id, ())), against.get(id, ()), short.get(id, ""))
        for id, *row in rows
    }


def contradictions(db: sqlite3.Connection) -> dict[int, tuple[str, ...]]:
    """
    Note → the paths of the active notes that contradict it, whichever of the two says so. What the assistant or a tool
    said puts no person's note in doubt.
    """
    found: dict[int, set[str]] = {}
    select = f"""
        select one.id, one.origin, other.path, other.origin, other.status from
        (select src as a, dst as b from link indexed by idx_link_contradiction where kind = {CONTRADICTION}
        union select dst, src from link indexed by idx_link_contradiction where kind = {CONTRADICTION})
        join note one on one.id = a join note other on other.id = b
        """
    for id, origin, path, by, status in db.execute(select):
        if status == "active" and (by not in ("tool", "assistant") or origin in ("tool", "assistant")):
            found.setdefault(id, set()).add(path)
    return {id: tuple(sorted(paths)) for id, paths in found.items()}


def entry_of_row(
    row: tuple[Any, ...], links: tuple[str, ...], contradicts: tuple[str, ...], short: str
) -> Entry:
    _, path, id, type, title, description, priority, status, pinned, loop, event, created, updated, *rest = (
        row
    )
    origin, generation, superseded_by, tags, mtime, standing = rest
    return Entry(
        path=path,
        id=id,
        type=type,
        title=title,
        description=description,
        priority=priority,
        status=status,
        pinned=bool(pinned),
        loop=loop,
        event=event,
        created=created and dt.date.fromisoformat(created),
        updated=updated and dt.date.fromisoformat(updated),
        origin=origin,
        generation=generation,
        superseded_by=superseded_by,
        links=links,
        tags=tuple(json.loads(tags)),
        mtime=mtime,
        standing=bool(standing),
        contradicts=contradicts,
        short=short,
    )
