"""
The notes' vectors: made in the background, stored as float16, searched as one matrix.

    missing_vectors, put_vectors    what `Index.embed` works off: notes without a vector of this embedder
    Matrix                          all vectors of one embedder; follows the store by its revision number

A vector counts only for the embedder that made it and the text it was made from. A note that changes loses its vector at once,
and until it has a new one it is found by words alone.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


TEXT_CHARS = 2_000  # of a note: more than MiniLM reads, and the static table only blurs with length
ROWS_AT_ONCE = 4096  # rows read at once while the matrix is filled: 4 MB
MEDIAN_SAMPLE = 4096  # similarities of which the median is taken: it moves by less than .002
FEW_VECTORS = 20  # notes; of fewer, a median may be the very note that is meant
# The most that the median of few is taken for: questions and observations of LoCoMo, of any number of notes from 8 on, have
# one of .19 to .22 with the static table, and of .26 with MiniLM.
MEDIAN_OF_FEW = 0.2
GONE = "gone"


def new_revision(db: sqlite3.Connection) -> int:
    """Set a new revision, so that every matrix in memory is reloaded."""
    db.execute("update meta set value = value + 1 where key = 'rev'")
    return int(db.execute("select value from meta where key = 'rev'").fetchone()[0])


def drop_vectors(db: sqlite3.Connection, notes: Iterable[int], gone: bool = False) -> None:
    """Remove the vectors of *notes*, which are new or have a new text."""
    rev = new_revision(db)
    db.executemany(
        "replace into vector values (?, ?, null, ?)", [(n, GONE if gone else "", rev) for n in notes]
    )


def missing_vectors(db: sqlite3.Connection, embedder: str, limit: int) -> list[tuple[int, str, str]]:
    """`(note, hash, text)` of notes that have no vector of *embedder*."""
    return db.execute(
        f"""
        select note, hash, substr(text.title || '. ' || text.description || ' ' || text.body, 1, {TEXT_CHARS})
        from (
            select note from vector where embedder < ?1 and embedder <> '{GONE}'
            union all select note from vector where embedder > ?1 and embedder <> '{GONE}' limit ?2
        ) join text on text.id = note join note on note.id = text.id
        """,
        (embedder, limit),
    ).fetchall()


def put_vectors(
    db: sqlite3.Connection, embedder: str, rows: Sequence[tuple[int, str, str]], vectors: Floats
) -> None:
    """Keep *vectors* of *rows*, less those of notes that have changed since they were read."""
    rev = new_revision(db)
    for (note, hash, _), vector in zip(rows, vectors.astype("float16"), strict=True):
        same = db.execute("select 1 from note where id = ? and hash = ?", (note, hash)).fetchone()
        if same:
            db.execute("replace into vector values (?, ?, ?, ?)", (note, embedder, vector.tobytes(), rev))


class Near(NamedTuple):
    """The notes nearest to a question: their rows, their cosines, and the median cosine of all notes."""

    cosines: dict[int, float]
    median: float


class Matrix:
    """All vectors as float32, one row a note; 100 MB for 100,000 notes of 256 numbers. Several threads may use it at once."""

    def __init__(self, embedder: str) -> None:
        self.embedder = embedder
        self._following = threading.Lock()
        self._state: tuple[int, int] = (-1, -1)  # the store's generation, the revision
        self._rows: dict[int, int] = {}  # note → row
        self._notes: NDArray[np.int64] | None = None
        self._matrix: Floats | None = None

    def follow(self, db: sqlite3.Connection, generation: int) -> None:
        """Take in what has changed since the last time."""
        rev = int(db.execute("select value from meta where key = 'rev'").fetchone()[0])
        if self._state == (generation, rev):
            return
        with self._following:
            if self._state[0] != generation:
                self._rows, self._notes, self._matrix, self._state = {}, None, None, (generation, -1)
            if self._state[1] < rev:
                self._read(db, self._state[1])
                self._state = (generation, rev)

    def _read(self, db: sqlite3.Connection, since: int) -> None:
        import numpy as np

        rows = db.execute("select note, embedder, data from vector where rev > ?", (since,))
        while part := rows.fetchmany(ROWS_AT_ONCE):
            for note, embedder, _ in part:
                if embedder != self.embedder and note in self._rows and self._matrix is not None:
                    self._matrix[self._rows[note]] = 0  # like nothing at all
            own = [(note, data) for note, embedder, data in part if embedder == self.embedder]
            if own:
                vectors = np.frombuffer(b"".join(data for _, data in own), np.float16).reshape(len(own), -1)
                self._place(db, [note for note, _ in own], vectors.astype(np.float32))

    def _place(self, db: sqlite3.Connection, notes: list[int], vectors: Floats) -> None:
        import numpy as np

        new = [note for note in notes if note not in self._rows]
        size, room = len(self._rows), 0 if self._matrix is None else len(self._matrix)
        if size + len(new) > room:
            total = int(db.execute("select count(*) from vector").fetchone()[0])
            grown = np.zeros((max(total, size + len(new)) * 9 // 8 + 64, vectors.shape[1]), np.float32)
            numbers = np.zeros(len(grown), np.int64)
            if self._matrix is not None and self._notes is not None:
                grown[:size], numbers[:size] = self._matrix[:size], self._notes[:size]
            self._matrix, self._notes = grown, numbers
        assert self._matrix is not None and self._notes is not None
        for n, note in enumerate(new, size):
            self._notes[n] = note
            self._rows[note] = n
        self._matrix[[self._rows[note] for note in notes]] = vectors

    def near(self, vector: Floats, n: int) -> Near | None:
        """The *n* nearest notes; None where there are no vectors."""
        import numpy as np

        size, matrix, notes = len(self._rows), self._matrix, self._notes
        if not size or matrix is None or notes is None or matrix.shape[1] != len(vector):
            return None
        # Not `@`: BLAS spins up threads for it, which on a busy machine made it 20 times slower (8 ms for .4).
        cosines = np.einsum("ij,j->i", matrix[:size], vector)
        n = min(n, size)
        best = np.argpartition(-cosines, n - 1)[:n]
        found = {int(notes[i]): float(cosines[i]) for i in best}
        median = float(np.median(cosines[:: max(1, size // MEDIAN_SAMPLE)]))
        at_random = min(median, MEDIAN_OF_FEW) if size < FEW_VECTORS else median
        return Near(found, at_random)
