"""
Indexes and searches the statements of the archive's messages.

    add, remove          add and remove the statements of a message, as rows and in the full text
    find_statements      finds the statements that answer a question, by words and by meaning
    put_vectors          stores vectors, which are made in the background; SignMatrix searches these vectors
    put_searched         stores which messages hold a secret; a background task searches the messages for secrets

A statement is a sentence, a list item, or several short lines together. The bits of a statement's number give the
message's row, whether the assistant spoke, and the statement's place in the message. `head` is the heading above
the statement.
"""

from __future__ import annotations

import heapq
import sqlite3
import struct
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

import regex

from ..message.envelope import MEMORY_NOTES
from ..message.turn import Message, message_from_json
from ..secrets import rules_number
from ..text.characters import fold_text
from ..text.words import sentence_spans, split_span
from .store import STATEMENT_COLUMNS, meta_value, rows_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .search import Floats

PLACES = 20  # bits of a statement's number below its message's row
ASSISTANT = (
    1 << PLACES - 1
)  # the highest of these bits: the assistant spoke; the lower bits: the place in the message
LEAST_CHARS, MOST_CHARS = 80, 600  # of a statement: shorter lines are joined, longer ones are cut
POOL = 300  # most statements found by words, and as many by meaning
FOUND = 150  # most of these statements that are read
MEANING_SHARE = 0.5  # weight of the cosine above TYPICAL
TYPICAL = 0.4
POSTINGS = 6_000  # most rows that a question's words may match, at 2 µs each
POSTINGS_RARE = 1_000  # the same, for a search by the rarest words alone
# A heading, a bold line or a line with a colon at its end. The text below says little without such a line.
HEADING = regex.compile(r"(?P<level>#{1,6})\s|(?:\*\*|__)[^*_\n]+(?:\*\*|__):?$|.{1,200}[:：](?:\*\*|__)?$")
LEAD_LEVEL = 7  # below all headings


NO_HEAD = -1
PACKED = struct.Struct("3i")  # a Span in the table `spoken`


class Span(NamedTuple):
    """
    Start and end of a statement in its message. *head*: the place (0, 1, …) of the statement that is its
    heading, or NO_HEAD.
    """

    start: int
    end: int
    head: int


def spans_of(text: str) -> list[Span]:
    """Return the statements of *text*, in order."""
    found: list[Span] = []
    open: list[tuple[int, int]] = []  # level and place of the headings above
    heading = False
    for part in sentence_spans(text):
        for piece in split_span(text, part.start, part.stop, MOST_CHARS):
            start, end = piece.start, piece.stop
            m = HEADING.match(text, start, end)
            last = found[-1] if found else None
            short = m is None and last and not heading and end - last.start <= LEAST_CHARS
            if short and last and "\n\n" not in text[last.end : start]:
                found[-1] = last._replace(end=end)
                continue
            level = len(m["level"] or "") or LEAD_LEVEL if m else LEAD_LEVEL + 1
            while open and open[-1][0] >= level:
                open.pop()
            found.append(Span(start, end, open[-1][1] if open else NO_HEAD))
            if heading := m is not None:
                open.append((level, len(found) - 1))
    return found


def heads_of(spans: Sequence[Span], place: int) -> list[Span]:
    """Return the headings above the statement at *place*, the nearest first."""
    found = []
    while (head := spans[place].head) != NO_HEAD:
        place = head
        found.append(spans[place])
    return found


def is_silent(message: Message) -> bool:
    """
    Return whether searches leave *message* out. Left out are

    - a tool's text
    - an empty text
    - a text in MEMORY_NOTES; OMG writes such a text in place of a result of its own tools
    """
    return message.role == "tool" or not message.text.strip() or message.text.strip() in MEMORY_NOTES


def first_number(row: int, message: Message) -> int:
    """Return the number of the first statement in *message*. *row*: the row of *message* in the table `message`."""
    return row << PLACES | ASSISTANT * (message.role == "assistant")


def text_rows(row: int, message: Message, spans: Sequence[Span]) -> list[tuple[int, str, str]]:
    """
    Return `(number, sender and headings, text)` for each statement in *spans*, as the full-text table stores
    these.
    """
    text, sender, first = message.text, fold_text(message.sender), first_number(row, message)
    rows = []
    for place, span in enumerate(spans):
        above = [fold_text(text[h.start : h.end]) for h in heads_of(spans, place)]
        rows.append((first + place, " ".join([sender, *above]), fold_text(text[span.start : span.end])))
    return rows


def add(db: sqlite3.Connection, row: int, message: Message) -> None:
    """Add the statements of *message*, which is in *row*."""
    if is_silent(message) or not (spans := spans_of(message.text)):
        return
    packed = b"".join(PACKED.pack(*span) for span in spans)
    db.execute("insert into spoken values (?, 0, 0, ?)", (row, packed))
    columns = ", ".join(STATEMENT_COLUMNS)
    insert = f"insert into statement_fts (rowid, {columns}) values (?, ?, ?)"
    db.executemany(insert, text_rows(row, message, spans))
    db.execute("update meta set value = value + ? where key = 'statements'", (len(spans),))


def remove(db: sqlite3.Connection, row: int, message: Message) -> None:
    """Remove the statements of *message* from the index. *row*: the message's row."""
    if is_silent(message):
        return
    spans = spans_of(message.text)
    columns = ", ".join(STATEMENT_COLUMNS)
    # The full-text table stores no text; to delete a row, SQLite needs the row's text again.
    delete = f"insert into statement_fts (statement_fts, rowid, {columns}) values ('delete', ?, ?, ?)"
    db.executemany(delete, text_rows(row, message, spans))
    db.execute("delete from spoken where id = ?", (row,))
    own = (row << PLACES, (row + 1) << PLACES)
    db.execute("delete from statement_vector where id >= ? and id < ?", own)
    db.execute("update meta set value = value - ? where key = 'statements'", (len(spans),))
    db.execute(GONE)


# --- asking


class Found(NamedTuple):
    """
    A found statement: its number, its score by words, and its cosine with the question. A statement that has
    each word of the question once scores 1 by words.
    """

    id: int
    words: float
    cosine: float

    @property
    def row(self) -> int:
        """The row of the statement's message."""
        return self.id >> PLACES

    @property
    def by_assistant(self) -> bool:
        return bool(self.id & ASSISTANT)

    @property
    def place(self) -> int:
        return self.id & ASSISTANT - 1


def found_share(words: float, cosine: float) -> float:
    """Return the score of a search hit from its score by *words* and its *cosine*."""
    return min(words, 1.5) + MEANING_SHARE * max(0.0, cosine - TYPICAL)


def find_statements(
    db: sqlite3.Connection,
    match: str,
    whole: float,
    assistants: float,
    near: Callable[[Iterable[int], bool], Mapping[int, float]] | None,
) -> list[Found]:
    """
    Find the statements that have words of *match*, and statements close in meaning. The result is not sorted.

    Statements that are only close in meaning are sought if fewer than FOUND statements surely score higher by words.

    - *whole*: the bm25 score that counts as 1.
    - *assistants*: a factor for the assistant's statements while the best POOL by words are chosen; 0 leaves these
      statements out. The scores in the result are without the factor.
    - *near(numbers, nearest)*: returns number → cosine for the statements *numbers*. If *nearest* is true, the
      result has the statements nearest in meaning, too. None: no search by meaning.
    """
    words: dict[int, float] = {}
    surely = 0
    if match:
        weights = ", ".join(map(str, STATEMENT_COLUMNS.values()))
        own = "" if assistants else f"and not statement_fts.rowid & {ASSISTANT}"
        select = f"""select rowid, -bm25(statement_fts, {weights}) as score from statement_fts
            where statement_fts match ? {own} order by score desc limit {2 * POOL}"""
        scores = dict(db.execute(select, (match,)))
        weighed = {id: s * (assistants if id & ASSISTANT else 1) for id, s in scores.items()}
        words = {id: scores[id] / whole for id in heapq.nlargest(POOL, scores, key=weighed.__getitem__)}
        surely = sum(weighed[id] / whole > found_share(0, 1) for id in words)
    # If FOUND statements score higher by words than any can by meaning alone, the nearest are not needed.
    cosines = near(words, surely < FOUND) if near else {}
    ids = [*words, *(id for id in cosines if id not in words and (assistants or not id & ASSISTANT))]
    return [Found(id, words.get(id, 0.0), cosines.get(id, 0.0)) for id in ids]


def unpacked(spans: bytes) -> list[Span]:
    """Return the statements of a message from the column `spans` of the table `spoken`."""
    # A prompt unpacks six thousand. `Span._make`, which is written in Python, takes three times as long.
    return [*map(tuple.__new__, repeat(Span), PACKED.iter_unpack(spans))]


# --- messages without secrets, which need no second search when they are quoted


def unsearched(db: sqlite3.Connection, limit: int) -> list[tuple[int, str]]:
    """
    Return row and archive line of up to *limit* messages that the present rules have not searched for secrets.
    """
    select = """select id, line from message where id in (select id from spoken where rules < ?1
        union all select id from spoken where rules > ?1 limit ?2)"""
    return db.execute(select, (rules_number(), limit)).fetchall()


def put_searched(db: sqlite3.Connection, searched: Iterable[tuple[int, str]], found: Iterable[bool]) -> None:
    """
    Store which of the *searched* messages have a secret. Messages that were replaced meanwhile are skipped.
    """
    update = f"""update spoken set rules = {rules_number()}, clean = ?
        where id = ? and (select line from message where message.id = spoken.id) = ?"""
    db.executemany(update, ((not secret, *one) for one, secret in zip(searched, found, strict=True)))


# --- The statements' vectors: one byte for each number. The signs of the numbers, one bit each, are compared first.
#
# A vector has 256 numbers: 32 bytes of signs. The signs of 830,000 statements are 27 MB. To compare all takes
# 3 ms, because one row of the matrix has 64 signs of every statement; with a row for each statement, 38 ms.

SCALE = 127
ROWS_AT_ONCE = 4096
COMPARED_AT_ONCE = 1 << 15  # statements: 1 MB of signs, which stays in the processor's cache


GONE = "update meta set value = value + 1 where key = 'said_gone'"  # a matrix may hold removed vectors


def missing_vectors(db: sqlite3.Connection, limit: int) -> tuple[int, list[int], list[str]]:
    """
    Return how many removals of statements there were so far, then the numbers and texts of up to *limit*
    statements without a vector.
    """
    last = db.execute("select coalesce(max(id), -1) from statement_vector").fetchone()[0]
    texts: dict[int, str] = {}
    select = "select id, line, spans from spoken join message using (id) where id >= ? order by id"
    for row, line, packed in db.execute(select, (last >> PLACES,)):
        message, spans = message_from_json(line)[0], unpacked(packed)
        for number, span in enumerate(spans, first_number(row, message)):
            if number > last:
                parts = [span] if span.head == NO_HEAD else [spans[span.head], span]
                texts[number] = " ".join(message.text[part.start : part.end] for part in parts)
        if len(texts) >= limit:
            break
    return meta_value(db, "said_gone"), [*texts][:limit], [*texts.values()][:limit]


def put_vectors(db: sqlite3.Connection, gone: int, ids: Iterable[int], vectors: Floats) -> None:
    """
    Store *vectors* for the statements with the numbers *ids*.

    *gone*: the number of removals that `missing_vectors` returned. If a statement was removed since then, nothing is
    stored, because a new statement may have the number of the removed statement.
    """
    import numpy as np

    if meta_value(db, "said_gone") == gone:
        small = np.round(vectors * SCALE).astype(np.int8)
        rows = [(id, v.tobytes()) for id, v in zip(ids, small, strict=True)]
        db.executemany("replace into statement_vector values (?, ?)", rows)


def drop_vectors_of_others(db: sqlite3.Connection, embedder: str) -> None:
    """Remove the statements' vectors if another embedder than *embedder* made these."""
    if db.execute("select value from meta where key = 'said_embedder'").fetchone() != (embedder,):
        db.execute("delete from statement_vector")
        db.execute("replace into meta values ('said_embedder', ?)", (embedder,))
        db.execute(GONE)


class SignMatrix:
    """
    The signs of the numbers in all statements' vectors, a bit for each number. Several threads may use one
    matrix at once.
    """

    def __init__(self) -> None:
        self._following = threading.Lock()
        # the store's generation, removals, the last statement
        self._state: tuple[int, int, int] = (-1, -1, -1)
        # numbers of statements, and 64 signs of each in a row: a statement is a column
        self._matrix: tuple[NDArray[np.int64], NDArray[np.uint64]] | None = None

    def follow(self, db: sqlite3.Connection, generation: int) -> None:
        """Read the vectors added since the previous call; after a removal, read all again."""
        import numpy as np

        last = db.execute("select coalesce(max(id), -1) from statement_vector").fetchone()[0]
        state = (generation, meta_value(db, "said_gone"), last)
        if self._state == state:
            return
        with self._following:
            since = self._state[2] if self._state[:2] == state[:2] else -1
            parts = [self._matrix] if since >= 0 and self._matrix else []
            rows = db.execute("select id, data from statement_vector where id > ? order by id", (since,))
            while part := rows.fetchmany(ROWS_AT_ONCE):
                data = np.frombuffer(b"".join(data for _, data in part), np.int8).reshape(len(part), -1)
                signs = np.packbits(data > 0, axis=1).view(np.uint64)
                parts.append((np.array([id for id, _ in part]), signs.T))
            joined = [np.concatenate(arrays, axis=-1) for arrays in zip(*parts, strict=True)]
            self._matrix = (joined[0], np.ascontiguousarray(joined[1])) if joined else None
            self._state = state

    def near(
        self, db: sqlite3.Connection, vector: Floats, also: Iterable[int], nearest: bool
    ) -> dict[int, float]:
        """
        Return number → cosine with *vector*, for the statements whose numbers are in *also*.

        If *nearest* is true, the POOL (300) statements nearest to *vector* are included.
        """
        import numpy as np

        wanted = set(also)
        asked = np.frombuffer(np.packbits(vector > 0).tobytes(), np.uint64)
        if nearest and self._matrix and len(self._matrix[1]) == len(asked):
            ids, signs = self._matrix
            apart = np.zeros(len(ids), np.uint16)
            for at in range(0, len(ids), COMPARED_AT_ONCE):
                some = slice(at, at + COMPARED_AT_ONCE)
                for row, one in zip(signs, asked, strict=True):
                    apart[some] += np.bitwise_count(row[some] ^ one)
            # Counting is quicker than a partition, because the differences are small numbers.
            most = np.searchsorted(np.cumsum(np.bincount(apart)), POOL)
            close = np.flatnonzero(apart <= most)
            wanted.update(ids[close[np.argsort(apart[close], kind="stable")[:POOL]]].tolist())
        rows = rows_of(db, "select id, data from statement_vector where id in", wanted)
        if not rows:
            return {}
        matrix = np.frombuffer(b"".join(data for _, data in rows), np.int8).reshape(len(rows), -1)
        if matrix.shape[1] != len(vector):
            return {}
        floats = matrix.astype(np.float32)
        lengths = np.linalg.norm(floats, axis=1)
        cosines = np.einsum("ij,j->i", floats, vector) / np.where(lengths > 0, lengths, 1)
        return {id: float(cosine) for (id, _), cosine in zip(rows, cosines, strict=True)}
