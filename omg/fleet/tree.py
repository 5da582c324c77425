"""
The files of one graph as rows of Postgres: checked out into a folder, committed in one transaction.

A commit locks the graph's row and compares its generation with the one that was checked out. If they differ, somebody
else has committed since: it raises Stale and writes nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import BadInput, Stale
from ..graph.state import TEMPORARY
from ..vault.files import LEFTOVER

if TYPE_CHECKING:
    from psycopg import Connection

PART_BYTES = 65_536
# What servers write without a new generation: what sessions were given, and which notes were of use.
SERVED = ("state.json", "uses.jsonl")
# Paths that are in no rows, as the start of a regular expression: what is derived, locks, the socket, logs;
DERIVED = r"index\.db[^/]*$|([^/]*\.)?lock$|omg\.sock$|omg\.log[^/]*$"
# of a home also its graphs and its spool, less the drops that could not be read.
OF_HOME = DERIVED + r"|graphs/|spool/(?!bad/|$)"
# These are imported and exported, but no observing or answering reads them, so they are not checked out.
UNREAD = OF_HOME + r"|events|installed\.json$|cursors/|hosts/|plugins/|joined/|runs/"

Files = Mapping[str, bytes | None]  # path → what it holds now; None: it is gone


@dataclass(frozen=True, slots=True)
class Known:
    """A file as it was checked out or committed."""

    look: tuple[int, int, int]  # inode, mtime in ns, size
    parts: list[bytes]  # a hash of each
    base: bytes  # JSON that may have to be merged


@dataclass(slots=True)
class Tree:
    """The files of the row *graph* of omg_graphs below *root*. *shared*: those of the home itself, beside its graphs."""

    graph: int
    root: Path
    shared: bool = False
    revision: int = -1  # that is checked out; -1: none
    generation: int = -1
    known: dict[str, Known] = field(default_factory=dict)

    @property
    def left_out(self) -> str:
        return UNREAD if self.shared else DERIVED

    def changes(self, paths: Iterable[str] | None = None) -> dict[str, bytes | None]:
        """What was written and removed here since the checkout; of *paths* only, what was written."""
        found: dict[str, bytes | None] = dict.fromkeys(self.known if paths is None else ())
        for path in files_below(self.root, self.left_out) if paths is None else paths:
            try:
                look = look_of(file := below(self.root, path))
                found.pop(path, None)
                if path not in self.known or self.known[path].look != look:
                    found[path] = file.read_bytes()
            except FileNotFoundError:
                continue
        return found

    def check_out(self, conn: Connection[Any], revision: int, generation: int) -> bool:
        """Bring the folder up to the rows as *conn* sees them; whether it was behind."""
        if self.revision == revision:
            return False
        rows = conn.execute(
            "SELECT path, max(mtime_ns), string_agg(bytes, ''::bytea ORDER BY part) FILTER (WHERE fresh) FROM (SELECT *,"
            " max(revision) OVER (PARTITION BY path) > %s AS fresh FROM omg_files WHERE graph = %s AND path !~ %s) f"
            " GROUP BY path",
            (self.revision, self.graph, f"^({self.left_out})"),
        ).fetchall()
        for path in self.known.keys() - {path for path, _, _ in rows}:
            below(self.root, path).unlink(missing_ok=True)
            del self.known[path]
        for path, mtime_ns, data in rows:
            if data is not None:
                write_file(below(self.root, path), data, mtime_ns)
                self._know(path, data)
        self.revision, self.generation = revision, generation
        return True

    def commit(
        self, conn: Connection[Any], found: Files, *, advance: bool = False, erases: bool = False
    ) -> None:
        """
        Write *found* in the transaction of *conn*, as the next generation if *advance*. What others wrote meanwhile to
        the same JSON is merged, unless this *erases* in a graph: then theirs may quote what is to go.

        Raises Stale if the generation is not the one that was checked out; of a home's own files any is good, since
        they are fenced by the graph's commit.
        """
        row = conn.execute(
            "SELECT generation, revision FROM omg_graphs WHERE id = %s FOR UPDATE", (self.graph,)
        ).fetchone()
        if row is None or (row[0] != self.generation and not self.shared):
            raise Stale(f"graph {self.graph} was changed elsewhere since it was checked out here")
        generation, revision = row
        if behind := revision != self.revision:
            theirs = self._newer(conn, found)
            if self.shared or not erases:
                found = {**found, **{path: self._merged(path, found[path], theirs[path]) for path in theirs}}
            for path in theirs:
                self.known.pop(path, None)  # its rows are not those that were checked out
        self._write_rows(conn, found, revision + 1)
        conn.execute(
            "UPDATE omg_graphs SET revision = revision + 1, generation = generation + %s,"
            " erased = CASE WHEN %s THEN revision + 1 ELSE erased END WHERE id = %s",
            (int(advance), erases, self.graph),
        )
        self.generation = generation + advance
        if not behind:  # else the next checkout fetches what was merged
            self.revision = revision + 1
            for path, data in found.items():
                self.known.pop(path, None)
                if data is not None:
                    self._know(path, data)

    def _know(self, path: str, data: bytes) -> None:
        merges = path.endswith(".json") and (self.shared or path in SERVED)
        look = look_of(below(self.root, path))
        self.known[path] = Known(look, [hash_of(piece) for piece in pieces_of(data)], data if merges else b"")

    def _newer(self, conn: Connection[Any], paths: Iterable[str]) -> dict[str, bytes]:
        """Those of *paths* that others wrote since the checkout, as they are in the rows."""
        rows = conn.execute(
            "SELECT path, string_agg(bytes, ''::bytea ORDER BY part) FROM omg_files WHERE graph = %s"
            " AND path = ANY(%s) GROUP BY path HAVING max(revision) > %s",
            (self.graph, [*paths], self.revision),
        )
        return dict(rows.fetchall())

    def _merged(self, path: str, ours: bytes | None, theirs: bytes) -> bytes | None:
        known = self.known.get(path)
        if ours is None or ours == theirs:
            return ours
        if path.endswith(".jsonl"):
            size = known.look[2] if known else 0
            return theirs + ours[size:] if len(ours) >= size else ours
        try:
            base = json.loads(known.base if known else b"{}")
            return json.dumps(merge_values(base, json.loads(ours), json.loads(theirs))).encode()
        except ValueError:
            return ours

    def _write_rows(self, conn: Connection[Any], found: Files, revision: int) -> None:
        """Upsert the parts that differ and delete those that are gone."""
        rows, cut = [], []
        for path, data in found.items():
            pieces = [] if data is None else pieces_of(data)
            same = self.known[path].parts if path in self.known else []
            mtime_ns = below(self.root, path).stat().st_mtime_ns if pieces else 0
            cut.append((self.graph, path, len(pieces)))
            for part, piece in enumerate(pieces):
                if part == len(pieces) - 1 or same[part : part + 1] != [hash_of(piece)]:
                    rows.append((self.graph, path, part, revision, mtime_ns, piece))
        with conn.cursor() as cursor:
            cursor.executemany("DELETE FROM omg_files WHERE graph = %s AND path = %s AND part >= %s", cut)
            cursor.executemany(
                "INSERT INTO omg_files (graph, path, part, revision, mtime_ns, bytes) VALUES (%s, %s, %s, %s, %s, %s)"
                " ON CONFLICT (graph, path, part) DO UPDATE SET revision = EXCLUDED.revision,"
                " mtime_ns = EXCLUDED.mtime_ns, bytes = EXCLUDED.bytes",
                rows,
            )


def files_below(root: Path, left_out: str) -> Iterator[str]:
    """The paths of all that belongs in rows: no links, and no names that are not UTF-8."""
    out = re.compile(left_out)
    for folder, folders, names in os.walk(root):
        at = "" if folder == str(root) else Path(folder).relative_to(root).as_posix() + "/"
        folders[:] = [name for name in filter(is_utf8, folders) if not out.match(f"{at}{name}/")]
        for name in filter(is_utf8, names):
            kept = not (out.match(at + name) or LEFTOVER.fullmatch(name) or TEMPORARY.fullmatch(name))
            if kept and not Path(folder, name).is_symlink():
                yield at + name


def is_utf8(name: str) -> bool:
    """Whether Postgres can hold it: Python shows other bytes of a name as half characters."""
    return name.isascii() or not re.search("[\ud800-\udfff]", name)


def look_of(file: Path) -> tuple[int, int, int]:
    found = file.stat()
    return found.st_ino, found.st_mtime_ns, found.st_size


def hash_of(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def pieces_of(data: bytes) -> list[bytes]:
    return [data[i : i + PART_BYTES] for i in range(0, len(data), PART_BYTES)] or [b""]


def below(root: Path, path: str) -> Path:
    """The file of *path*, which may not lead out of *root*."""
    if path.startswith("/") or "\0" in path or ".." in path.split("/"):
        raise BadInput(f"{path!r}: a path of a graph stays below it")
    return root / path


def write_file(file: Path, data: bytes, mtime_ns: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file.write_bytes(data)
    file.chmod(0o600)
    os.utime(file, ns=(mtime_ns, mtime_ns))


def merge_values(base: Any, ours: Any, theirs: Any) -> Any:
    """What either side changed of *base*, value by value; ours where both did."""
    if not (isinstance(ours, dict) and isinstance(theirs, dict)):
        return theirs if ours == base else ours
    base = base if isinstance(base, dict) else {}
    absent = object()
    made = {}
    for key in {**theirs, **ours}:
        b, o, t = base.get(key, absent), ours.get(key, absent), theirs.get(key, absent)
        value = merge_values(b, o, t) if o is not absent and t is not absent else t if o is b or o == b else o
        if value is not absent:
            made[key] = value
    return made
