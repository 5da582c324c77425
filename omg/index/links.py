"""
Finds the note that a link leads to: by path, id, alias, or the end of a path.

The first rule that fits decides. If two notes fit equally well, the link leads to neither.

    0 path    1 id    2 alias    3 the end of a path, after a "/": mostly a file's name
    4 the end of an id or of a former path: mostly the file's name before the note was renamed
    5 a path, an id or a former path with more folders in front. Obsidian writes such links if the person opens a
      folder above the vault.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Iterator
from os.path import commonprefix

from ..node.note import Node

SHORTEST_NAME = 8  # characters of a shortened name: fewer tell a reader nothing
PATH, ID, ALIAS = range(3)
PROSE, LINK, SUCCESSOR, PREDECESSOR, REFLECTION, CONTRADICTION = range(6)


def name_key(target: str) -> str:
    """
    Return *target* in the form that is compared: lower case, accents in one form, without `./` or `../` at the
    beginning and `.md` at the end.
    """
    if not target.isascii():
        target = unicodedata.normalize("NFC", target)
    target = target.strip().casefold().removesuffix(".md")
    return re.sub(r"^(?:\.{0,2}/)+", "", target) if target.startswith((".", "/")) else target


def last_name(full: str) -> str:
    return full.rpartition("/")[2]


def names_of_note(node: Node) -> list[tuple[str, str, int]]:
    """
    Return `(leaf, full, rank)` for every name of *node*. The leaf is the part after the last "/"; the rank is
    PATH, ID or ALIAS.
    """
    found = {name_key(node.path): PATH}
    # Links to maps in the form of an early version still work: [[omg/moc-preferences]].
    map_ids = (f"omg/{last_name(node.path)}",) if node.path.startswith("mocs/") else ()
    for name, rank in ((node.id, ID), *((alias, ALIAS) for alias in (*node.aliases, *map_ids))):
        found.setdefault(name_key(name), rank)
    return [(last_name(full), full, rank) for full, rank in found.items() if full]


def links_of_note(node: Node) -> list[tuple[str, str, str, int]]:
    """
    Return `(target, full, leaf, kind)` for each link of *node*.

    *target* is the link as written; *full* and *leaf* are as in `names_of_note`. If the frontmatter and the text
    link to the same target, only the link in the text is returned.
    """
    found: dict[tuple[str, bool], tuple[str, str, str, int]] = {}
    successor = (node.superseded_by,) if node.superseded_by else ()
    kinds = ((LINK, node.links), (PROSE, node.wikilinks), (CONTRADICTION, node.contradicts))
    rest = ((SUCCESSOR, successor), (PREDECESSOR, node.supersedes), (REFLECTION, node.reflected_in))
    for kind, targets in (*kinds, *rest):
        for target in targets:
            if full := name_key(target):
                found[full, kind <= LINK] = (target, full, last_name(full), kind)
    return list(found.values())


def fitting_notes(db: sqlite3.Connection, target: str) -> list[tuple[int, str, int]]:
    """
    Return `(row, path, rank)` of the notes that fit *target* best: no note, one, or several that fit equally
    well.
    """
    full = name_key(target)
    rows = db.execute(
        """
        select note, path, min(case when full = ?1 then rank when rank = 0 then 3 else 4 end) as fits
        from name join note on note.id = note
        where leaf = ?2 and (full = ?1 or substr(full, -length(?1) - 1) = '/' || ?1)
        group by note order by fits, path
        """,
        (full, last_name(full)),
    ).fetchall()
    if not rows and "/" in full:
        rows = from_above(db, full)
    return [row for row in rows if row[2] == rows[0][2]]


def from_above(db: sqlite3.Connection, full: str) -> list[tuple[int, str, int]]:
    """
    Find the note whose path, id or former path is the end of *full*, after a "/".

    For example, "vault/nodes/heron" finds the note with the path "nodes/heron". If several notes fit, the longest name
    wins. A name without a folder never fits, because several notes may have the name.

    Returns `[(row, path, 5)]`, or [] if no note fits. 5 is the rank of the match, as in `fitting_notes`.
    """
    return db.execute(
        """
        select note, path, 5 from name join note on note.id = note
        where leaf = ?2 and full like '%/%' and substr(?1, -length(full) - 1) = '/' || full
        order by length(full) desc, rank, path limit 1
        """,
        (full, last_name(full)),
    ).fetchall()


def told_by(db: sqlite3.Connection, pages: Iterable[str]) -> set[str]:
    """
    Return the paths of the notes that *pages* summarise. *pages* are on weeks or months; a month's page also
    summarises pages on weeks.
    """
    pages = list(pages)
    rows = db.execute(
        f"""
        with recursive told(id) as (
            select id from note where path in ({",".join("?" * len(pages))})
            union select src from link join told on dst = told.id where kind = {REFLECTION}
        )
        select path from note join told using (id)
        """,
        pages,
    )
    return {path for (path,) in rows} - set(pages)


def short_names(db: sqlite3.Connection, notes: Iterable[tuple[int, str]]) -> dict[int, str]:
    """
    Return the shortest unique name of each note, as row of the note → name.

    A name is the beginning of the note's file name, in whole words: "ines-kiln" for "ines-kiln-repair". The file names,
    ids and aliases of all other notes begin differently; their folders are not compared. A note without a unique name
    is missing from the result.
    """
    before = "select max(leaf) from name where leaf < ? and note <> ?"
    after = "select min(leaf) from name where leaf >= ? and note <> ?"
    found = {}
    for note, path in notes:
        name, leaf = last_name(path), last_name(name_key(path))
        near = [db.execute(select, (leaf, note)).fetchone()[0] or "" for select in (before, after)]
        shared = max(len(commonprefix((leaf, other))) for other in near)  # noqa: RUF071  in characters
        cut = leaf.find("-", max(shared + 1, SHORTEST_NAME))
        if leaf not in near and len(leaf) == len(name):
            found[note] = name if cut < 0 else name[:cut]
    return found


def begun_rows(db: sqlite3.Connection, begun: str) -> set[int]:
    """Return the rows of the notes with a file name or alias that begins with the whole words *begun*."""
    leaf = name_key(begun)
    rows = db.execute("select note from name where leaf >= ? and leaf < ?", (f"{leaf}-", f"{leaf}."))
    return {note for (note,) in rows}


def resolve_row(db: sqlite3.Connection, target: str) -> int | None:
    """Return the row of the note that *target* means; None if no note or several fit."""
    fits = fitting_notes(db, target)
    # A copied file has the id of its original. A link by this id always leads to the same file of the two.
    return fits[0][0] if len(fits) == 1 or (fits and fits[0][2] == ID) else None


def relink_rows(db: sqlite3.Connection, column: str = "", values: Iterable[str | int] = ()) -> set[int]:
    """
    Update which note each link leads to. Return the rows of notes with a changed link.

    Looks at the links with one of *values* in *column* ("leaf" or "src"); without a column, at all links.
    """
    moved: set[int] = set()
    meant: dict[str, int | None] = {}
    for rows in chosen_links(db, column, values):
        changed = []
        for row, src, dst, full in rows:
            if full not in meant:
                meant[full] = resolve_row(db, full)
            if meant[full] != dst:
                changed.append((meant[full], row))
                moved.add(src)
        db.executemany("update link set dst = ? where rowid = ?", changed)
    return moved


def chosen_links(
    db: sqlite3.Connection, column: str, values: Iterable[str | int]
) -> Iterator[list[tuple[int, int, int | None, str]]]:
    columns = "select rowid, src, dst, full from link where"
    for value in values:
        yield db.execute(f"{columns} {column} = ?", (value,)).fetchall()
    last = 0
    while not column and (
        rows := db.execute(f"{columns} rowid > ? order by rowid limit 10000", (last,)).fetchall()
    ):
        yield rows
        last = rows[-1][0]
