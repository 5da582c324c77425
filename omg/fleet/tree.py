"""
The files of one graph as rows of Postgres: checked out into a folder, and committed in one transaction.

A commit compares the generation that was checked out with that of the row, which it locks. Where they differ somebody
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
DERIVED = re.compile(r"index\.db(-\w+)?|(.*\.)?lock|omg\.(sock|log.*)")  # by name, at the top of a folder
# What servers write without a new generation: what sessions were given, and which notes were of use.
SERVED = ("state.json", "uses.jsonl")
# Files of a home that no observing or answering reads: they are imported and exported, and not checked out.
UNREAD = r"^(events|installed\.json|cursors/|hosts/|plugins/|joined/|runs/|omg\.log)"
NOT_OURS = ("graphs", "spool", "runs", "hosts")  # folders of a checked-out home that are not its shared files

Look = tuple[int, int, int]


@dataclass(slots=True)
class Tree:
    """The files of the row *graph* of omg_graphs below *root*. *shared*: of the home itself, beside its graphs."""

    graph: int
    root: Path
    shared: bool = False
    generation: int = -1  # that is checked out; -1: none
    served: int = 0
    looks: dict[str, Look] = field(default_factory=dict)
    parts: dict[str, list[bytes]] = field(default_factory=dict)  # path → a hash of each part
    bases: dict[str, bytes] = field(
        default_factory=dict
    )  # what JSON that is merged was when it was checked out

    def files(self, everything: bool = False) -> Iterator[tuple[str, Path]]:
        """
        Path and file of all that belongs in rows: what is derived, temporary or a lock does not. Of a home's shared
        files those that a checkout may change; *everything*: all, and links too.
        """
        for folder, folders, names in os.walk(self.root):
            below = Path(folder).relative_to(self.root)
            if folder == str(self.root) and self.shared:
                left_out = ("graphs", "spool") if everything else NOT_OURS
                folders[:] = [name for name in folders if name not in left_out]
            for name in names:
                at_top = folder == str(self.root)
                if LEFTOVER.fullmatch(name) or TEMPORARY.fullmatch(name):
                    continue
                if at_top and (
                    DERIVED.fullmatch(name) or (self.shared and not everything and name.startswith("events"))
                ):
                    continue
                file = Path(folder, name)
                if everything or not file.is_symlink():
                    yield (below / name).as_posix(), file
        bad = self.root / "spool" / "bad"
        if self.shared and bad.is_dir():
            yield from ((f"spool/bad/{file.name}", file) for file in bad.iterdir())

    def changes(self) -> tuple[dict[str, bytes], list[str]]:
        """What was written and removed here since the checkout."""
        found, there = {}, set()
        for path, file in self.files():
            there.add(path)
            try:
                if self.looks.get(path) != look_of(file):
                    found[path] = file.read_bytes()
            except FileNotFoundError:
                there.discard(path)
        return found, [path for path in self.looks if path not in there]

    def written(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Those of *paths* that were written here since the checkout."""
        files = {path: below(self.root, path) for path in paths}
        return {
            path: file.read_bytes()
            for path, file in files.items()
            if file.exists() and self.looks.get(path) != look_of(file)
        }

    # --- rows to files

    def check_out(self, conn: Connection[Any], generation: int, served: int) -> bool:
        """Bring the folder up to the rows as *conn* sees them; whether a file was written or removed."""
        if self.generation == generation and self.served == served:
            return False
        unread, only = (UNREAD if self.shared else "^$"), list(SERVED)
        rows = conn.execute(
            "SELECT path, part, size, mtime_ns, CASE WHEN generation > %(since)s OR path = ANY(%(only)s)"
            " THEN bytes END FROM omg_files WHERE graph = %(graph)s AND path !~ %(unread)s"
            " AND (%(whole)s OR path = ANY(%(only)s)) ORDER BY path, part",
            {
                "graph": self.graph, "since": self.generation, "unread": unread, "only": only,
                "whole": self.generation != generation,
            },
        ).fetchall()  # fmt: skip
        changed = False
        by_path: dict[str, list[Any]] = {}
        for path, *row in rows:
            by_path.setdefault(path, []).append(row)
        if self.generation != generation:
            for path in self.looks.keys() - by_path.keys():
                below(self.root, path).unlink(missing_ok=True)
                self.drop(path)
                changed = True
        for path, stored in by_path.items():
            if any(row[3] is not None for row in stored):
                self._write(path, stored)
                changed = True
        self.generation, self.served = generation, served
        return changed

    def _write(self, path: str, stored: list[Any]) -> None:
        """Write the parts that came; the others stand there already."""
        file, hashes = below(self.root, path), self.parts.setdefault(path, [])
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        size, mtime_ns = stored[-1][1], stored[-1][2]
        with os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as f:
            for part, _, _, data in stored:
                if data is not None:
                    f.seek(part * PART_BYTES)
                    f.write(data)
                    hashes[part : part + 1] = [hash_of(data)]
            f.truncate(size)
        del hashes[len(stored) :]
        os.utime(file, ns=(mtime_ns, mtime_ns))
        self.note(path, file, b"".join(row[3] or b"" for row in stored))

    def note(self, path: str, file: Path, data: bytes) -> None:
        self.looks[path] = look_of(file)
        if path.endswith(".json") and (self.shared or path in SERVED):
            self.bases[path] = data

    def drop(self, path: str) -> None:
        for known in (self.looks, self.parts, self.bases):
            known.pop(path, None)

    # --- files to rows

    def commit(
        self,
        conn: Connection[Any],
        found: Mapping[str, bytes],
        removed: Iterable[str],
        *,
        erases: bool = False,
    ) -> tuple[int, int]:
        """
        Write *found* and delete *removed* as the next generation, in the transaction of *conn*. What servers kept
        meanwhile is merged, unless this *erases*: then it may quote what is to go.

        Returns what is checked out then, for `settle`: generation and served, -1 where what was merged is to be
        fetched. Raises Stale if the generation is not the one that was checked out.
        """
        generation, served = self.locked(conn)
        if generation != self.generation:
            raise Stale(
                f"graph {self.graph}: generation {generation} is newer than {self.generation}, checked out here"
            )
        if served != self.served and not erases:
            found = self.merged(conn, {path: found[path] for path in SERVED if path in found}) | {
                path: data for path, data in found.items() if path not in SERVED
            }
        self.write_rows(conn, found, removed, generation + 1)
        conn.execute(
            "UPDATE omg_graphs SET generation = generation + 1, erased = CASE WHEN %s THEN generation + 1 ELSE erased END"
            " WHERE id = %s",
            (erases, self.graph),
        )
        return generation + 1, served if served == self.served else -1

    def keep_served(self, conn: Connection[Any], found: Mapping[str, bytes]) -> tuple[int, int]:
        """Write what sessions were given; the generation stays. Raises Stale as `commit` does."""
        generation, served = self.locked(conn)
        if generation != self.generation:
            raise Stale(f"graph {self.graph} has changed since; what the session was given is not kept")
        self.write_rows(conn, self.merged(conn, found) if served != self.served else found, (), generation)
        conn.execute("UPDATE omg_graphs SET served = served + 1 WHERE id = %s", (self.graph,))
        return generation, served + 1 if served == self.served else -1

    def add_shared(
        self, conn: Connection[Any], found: Mapping[str, bytes], removed: Iterable[str]
    ) -> tuple[int, int]:
        """Write files of the home itself, merged with what other graphs' work wrote: it is fenced by the graph's commit."""
        generation, served = self.locked(conn)
        mine = found if generation == self.generation else self.merged(conn, found)
        self.write_rows(conn, mine, removed, generation + 1)
        conn.execute("UPDATE omg_graphs SET generation = generation + 1 WHERE id = %s", (self.graph,))
        return (generation + 1 if generation == self.generation else self.generation), served

    def settle(self, found: Mapping[str, bytes], removed: Iterable[str], at: tuple[int, int]) -> None:
        """Take what was committed for checked out; *at* is what the commit returned."""
        for path in removed:
            self.drop(path)
        for path, data in found.items():
            self.parts[path] = [hash_of(piece) for piece in pieces_of(data)]
            self.note(path, below(self.root, path), data)
        self.generation, self.served = at

    def locked(self, conn: Connection[Any]) -> tuple[int, int]:
        """Generation and served of the row, which nobody else changes until the transaction ends."""
        row = conn.execute(
            "SELECT generation, served FROM omg_graphs WHERE id = %s FOR UPDATE", (self.graph,)
        ).fetchone()
        if row is None:
            raise Stale(f"graph {self.graph} is there no more")
        return int(row[0]), int(row[1])

    def merged(self, conn: Connection[Any], found: Mapping[str, bytes]) -> dict[str, bytes]:
        rows = conn.execute(
            "SELECT path, string_agg(bytes, ''::bytea ORDER BY part) FROM omg_files"
            " WHERE graph = %s AND path = ANY(%s) GROUP BY path",
            (self.graph, [*found]),
        ).fetchall()
        theirs = dict(rows)
        return {path: self._merge(path, data, theirs.get(path)) for path, data in found.items()}

    def _merge(self, path: str, ours: bytes, theirs: bytes | None) -> bytes:
        if theirs is None or theirs == ours:
            return ours
        self.parts.pop(path, None)  # the rows are not those that were checked out
        if path.endswith(".jsonl"):
            size = self.looks[path][2] if path in self.looks else 0
            return theirs + ours[size:] if len(ours) >= size else ours
        try:
            base = json.loads(self.bases.get(path) or b"{}")
            return json.dumps(
                merge_values(base, json.loads(ours), json.loads(theirs)), ensure_ascii=False
            ).encode()
        except ValueError:
            return ours

    def write_rows(
        self, conn: Connection[Any], found: Mapping[str, bytes], removed: Iterable[str], generation: int
    ) -> None:
        """Upsert the parts that differ and delete what is no more."""
        rows: list[tuple[Any, ...]] = []
        cut: list[tuple[int, str, int]] = [(self.graph, path, 0) for path in removed]
        for path, data in found.items():
            file, known = below(self.root, path), self.parts.get(path)
            mtime_ns = file.stat().st_mtime_ns
            pieces = pieces_of(data)
            cut.append((self.graph, path, len(pieces)))
            for part, piece in enumerate(pieces):
                last = part == len(pieces) - 1  # it has the size and the time
                if last or known is None or known[part : part + 1] != [hash_of(piece)]:
                    rows.append((self.graph, path, part, generation, len(data), mtime_ns, piece))
        with conn.cursor() as cursor:
            cursor.executemany("DELETE FROM omg_files WHERE graph = %s AND path = %s AND part >= %s", cut)
            cursor.executemany(
                "INSERT INTO omg_files (graph, path, part, generation, size, mtime_ns, bytes) VALUES"
                " (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT (graph, path, part) DO UPDATE SET"
                " generation = EXCLUDED.generation, size = EXCLUDED.size, mtime_ns = EXCLUDED.mtime_ns,"
                " bytes = EXCLUDED.bytes",
                rows,
            )


def look_of(file: Path) -> Look:
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
