"""
Indexes the archive's messages: who said what, and which messages were said just before and after.

    take_in          adds the new lines of archive/*.jsonl, by byte offset
    source_window    returns the messages that a note was made from, and the messages around; indexed with the note,
                     so that a search for words of these messages finds the note
    raise_for_days   raises the scores of statements said on the days that a question asks for

graph/graph.py writes the archive's files; the index only copies them. A file that only grew is read from its old
end. Any other changed file is read again from its start.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Sequence
from datetime import date, datetime, time, timedelta, tzinfo
from pathlib import Path
from typing import NamedTuple

from ..dates.rules import When
from ..errors import BadInput
from ..message.turn import Message, message_from_json
from ..node.note import Source
from ..secrets import rules_number
from ..text.characters import fold_text
from .statements import Found, Span, unpacked
from .statements import add as add_statements
from .statements import remove as remove_statements
from .store import rows_of

SAID_CHARS = 1_000  # characters indexed of a message that a note was made from
NEAR_CHARS = 500  # characters indexed of each neighbouring message: enough to show the subject
SOURCES = 12  # most messages of a note that are indexed, the latest; a note updated for years has hundreds
APART_MS = 6 * 3_600_000  # messages further apart belong to different talks, even in one session
RAISED_FOR_DAY = (
    1.75  # factor for a statement said on a day that is asked for; search.py raises notes as much
)
TAIL_BYTES = 64  # last bytes read of a file; if unchanged, lines were only added
SPOKEN = "trim(coalesce(json_extract(line, '$.sender'), '') || ' ' || json_extract(line, '$.text'))"


def take_in(db: sqlite3.Connection, folder: Path, zone: tzinfo) -> tuple[int, set[str]]:
    """
    Read the new messages of the archive's files into the database.

    Returns how many messages are new, and a set of message ids. The set has all added and removed messages, and the
    messages next to them in the conversation. A file that changed other than at its end is read again from the
    beginning.
    """
    known = {
        name: (offset, tail) for name, offset, tail in db.execute("select file, offset, tail from archive")
    }
    files = {file.name: file for file in sorted(folder.glob("*.jsonl"))}
    changed: set[str] = set()
    fresh: list[int] = []
    for name in known.keys() - files.keys():
        changed |= drop_file(db, name, zone)
    for name, file in files.items():
        offset, tail = known.get(name, (0, b""))
        if not is_continued(file, offset, tail):
            changed |= drop_file(db, name, zone)
            offset, tail = 0, b""
        if file.stat().st_size > offset:
            lines, offset, tail = whole_lines(file, offset, tail)
            fresh += insert_messages(db, name, lines)
            db.execute("replace into archive values (?, ?, ?)", (name, offset, tail))
    return len(fresh), changed | message_ids(db, with_neighbours(db, fresh))


def is_continued(file: Path, offset: int, tail: bytes) -> bool:
    """Return whether *file* still has the bytes *tail* just before *offset*. If so, lines were only added."""
    with file.open("rb") as f:
        f.seek(offset - len(tail))
        return f.read(len(tail)) == tail


def whole_lines(file: Path, offset: int, tail: bytes) -> tuple[list[str], int, bytes]:
    """
    Return the complete lines from *offset* on, the new offset, and the last TAIL_BYTES before the new offset.
    """
    with file.open("rb") as f:
        f.seek(offset)
        data = f.read()
    data = data[: data.rfind(b"\n") + 1]
    lines = [line.decode("utf-8", "replace") for line in data.split(b"\n") if line]
    return lines, offset + len(data), (tail + data[-TAIL_BYTES:])[-TAIL_BYTES:]


def insert_messages(db: sqlite3.Connection, file: str, lines: Iterable[str]) -> list[int]:
    fresh = []
    for line in lines:
        try:
            message, session = message_from_json(line)
        except BadInput:
            continue  # a line that a crash cut off: nobody was told that it was written
        talk = message.role != "tool" and bool(message.text.strip())
        row = (message.id, message.key, session, message.timestamp, message.role, talk, file, line)
        columns = "mid, key, session, timestamp, role, talk, file, line"
        done = db.execute(f"insert or ignore into message ({columns}) values (?, ?, ?, ?, ?, ?, ?, ?)", row)
        if done.rowcount > 0 and done.lastrowid:
            fresh.append(done.lastrowid)
            add_statements(db, done.lastrowid, message)
    return fresh


def drop_file(db: sqlite3.Connection, name: str, zone: tzinfo) -> set[str]:
    db.execute("delete from archive where file = ?", (name,))
    return remove_messages(
        db, [i for (i,) in db.execute("select id from message where file = ?", (name,))], zone
    )


def remove_messages(db: sqlite3.Connection, ids: Sequence[int], zone: tzinfo) -> set[str]:
    """Remove messages from the index. Return their ids and the ids of their neighbours."""
    affected = with_neighbours(db, ids)
    touched = message_ids(db, affected)
    for id, line in rows_of(db, "select id, line from message where id in", ids):
        remove_statements(db, id, message_from_json(line)[0])
    db.executemany("delete from message where id = ?", [(i,) for i in ids])
    return touched


# --- neighbours


def rows_beside(
    db: sqlite3.Connection, id: int, n: int = 2, apart_ms: int = APART_MS
) -> tuple[list[int], list[int]]:
    """
    Return the rows of up to *n* messages before the message in row *id*, and of up to *n* after it.

    Both lists begin with the nearest message. They leave out tools' messages, and messages of other sessions or
    more than *apart_ms* away.
    """
    session, at = db.execute("select session, timestamp from message where id = ?", (id,)).fetchone()
    where = "select id from message where session = ? and talk = 1 and (timestamp, id)"
    before = db.execute(
        f"{where} < (?, ?) and timestamp >= ? order by timestamp desc, id desc limit ?",
        (session, at, id, at - apart_ms, n),
    )
    after = db.execute(
        f"{where} > (?, ?) and timestamp <= ? order by timestamp, id limit ?",
        (session, at, id, at + apart_ms, n),
    )
    return [i for (i,) in before], [i for (i,) in after]


def with_neighbours(db: sqlite3.Connection, ids: Iterable[int]) -> set[int]:
    found = set(ids)
    for id in list(found):
        before, after = rows_beside(db, id)
        found.update(before, after)
    return found


def message_ids(db: sqlite3.Connection, ids: Iterable[int]) -> set[str]:
    return {mid for (mid,) in rows_of(db, "select mid from message where id in", ids)}


def words_of(db: sqlite3.Connection, ids: Sequence[int], chars: int) -> str:
    """
    Return the messages in rows *ids* as text, one message a line. A line has the sender and the message's words.
    Each line is cut to *chars* characters. Unknown rows are skipped.
    """
    rows = dict(rows_of(db, f"select id, substr({SPOKEN}, 1, {chars}) from message where id in", ids))
    return "\n".join(rows[i] for i in ids if i in rows)


def neighbour_rings(db: sqlite3.Connection, ids: Sequence[int]) -> tuple[list[int], list[int]]:
    """
    Return the rows right beside the messages in rows *ids*, and the rows two messages away. No row occurs twice
    or is one of *ids*.
    """
    found: tuple[list[int], list[int]] = ([], [])
    for id in ids:
        for side in rows_beside(db, id):
            for ring, other in zip(found, side, strict=False):
                ring.append(other)
    near = [i for i in dict.fromkeys(found[0]) if i not in ids]
    return near, [i for i in dict.fromkeys(found[1]) if i not in ids and i not in near]


def source_window(db: sqlite3.Connection, sources: Sequence[Source], body: str) -> tuple[str, str, str]:
    """
    Return three folded texts (`fold_text`): the messages of *sources*, their neighbours, and the messages two
    away.

    *body* is the folded text of the note. A source that *body* quotes whole is left out.
    """
    cited = []
    for source in sorted(sources, key=lambda s: s.timestamp)[-SOURCES:]:
        where = (source.id, source.session)
        cited += [i for (i,) in db.execute("select id from message where mid = ? and session = ?", where)]
    if not cited:
        return "", "", ""
    near, far = neighbour_rings(db, cited)
    texts = rows_of(db, "select id, json_extract(line, '$.text') from message where id in", cited)
    # A quoted message would only make the note longer, which lost .017 of r@5 on LoCoMo.
    other = [id for id, text in texts if fold_text(text) not in body]
    return (
        fold_text(words_of(db, other, SAID_CHARS)),
        fold_text(words_of(db, near, NEAR_CHARS)),
        fold_text(words_of(db, far, NEAR_CHARS)),
    )


# --- asking

FoundMessage = tuple[Message, str, float]  # message, session, and score for the question


def day_start_ms(day: date, zone: tzinfo) -> int:
    return round(datetime.combine(day, time(), zone).timestamp() * 1000)


def raise_for_days(
    db: sqlite3.Connection, found: list[Found], days: Iterable[When], zone: tzinfo
) -> list[Found]:
    """Return *found*, with higher scores for statements that were said on one of *days*."""
    between = [(day_start_ms(d.start, zone), day_start_ms(d.end + timedelta(1), zone)) for d in days]
    said = said_at(db, {f.row for f in found})
    raised = {
        row for row, (_, _, at_ms) in said.items() if any(since <= at_ms < until for since, until in between)
    }
    return [f._replace(words=f.words * RAISED_FOR_DAY) if f.row in raised else f for f in found]


def said_at(db: sqlite3.Connection, rows: Collection[int]) -> dict[int, tuple[str, str, int]]:
    """Return row → `(message's id, session, time in ms)` for the messages in *rows*."""
    found = rows_of(db, "select id, mid, session, timestamp from message where id in", rows)
    return {row: (mid, session, at_ms) for row, mid, session, at_ms in found}


def said_within(db: sqlite3.Connection, days: Iterable[When], zone: tzinfo, k: int) -> list[int]:
    """Return the rows of up to *k* messages that were said on *days*. The spans in *days* keep their order. Within a
    span, the latest message comes first."""
    select = "select id from message where talk = 1 and timestamp >= ? and timestamp < ? order by timestamp desc limit ?"
    between = [(day_start_ms(d.start, zone), day_start_ms(d.end + timedelta(1), zone)) for d in days]
    return [row for since, until in between for (row,) in db.execute(select, (since, until, k))][:k]


# A message, its session, its statements, and whether the present rules searched it and found no secret.
Read = tuple[Message, str, list[Span], bool]


def read_rows(db: sqlite3.Connection, rows: Iterable[int]) -> dict[int, Read]:
    """Return row → message, for the messages in *rows* that have statements; in the order of *rows*."""
    select = f"""select id, line, spans, clean and rules = {rules_number()} from spoken join message using (id)
        where id in"""
    read = {
        row: (*message_from_json(line), unpacked(spans), bool(clean))
        for row, line, spans, clean in rows_of(db, select, rows)
    }
    return {row: read[row] for row in rows if row in read}


def messages_by_id(db: sqlite3.Connection, ids: Iterable[str]) -> list[Message]:
    """Return the messages with these *ids*, oldest first. Unknown ids are skipped."""
    rows = rows_of(db, "select timestamp, id, line from message where mid in", dict.fromkeys(ids))
    return [message_from_json(line)[0] for _, _, line in sorted(rows)]


def messages_around(db: sqlite3.Connection, mid: str, n: int) -> list[Message]:
    """
    Return the message *mid* with up to *n* messages before and after, oldest first; empty if there is no such
    message.
    """
    row = db.execute("select id from message where mid = ? order by id limit 1", (mid,)).fetchone()
    if row is None:
        return []
    before, after = rows_beside(db, row[0], n, apart_ms=10**15)
    rows = dict(rows_of(db, "select id, line from message where id in", [*before, row[0], *after]))
    return [message_from_json(rows[i])[0] for i in (*reversed(before), row[0], *after)]


def last_messages(db: sqlite3.Connection, session: str, ms: int, n: int) -> list[Message]:
    """Return the last *n* messages of *session* before the time *ms*, oldest first."""
    found = "select line from message where session = ? and timestamp < ? order by timestamp desc, id desc limit ?"
    return [
        message_from_json(line)[0] for (line,) in reversed(db.execute(found, (session, ms, n)).fetchall())
    ]


def latest_by_note(db: sqlite3.Connection, paths: Iterable[str], n: int) -> list[tuple[str, str, int]]:
    """
    Return `(path of the note, id and row of the message)` for the *n* latest source messages of each note in
    *paths*.
    """
    select = """select source.timestamp, path, source.id, source.session, message.id from source
        join note on note.id = source.note
        left join message on mid = source.id and message.session = source.session where path in"""
    sources: dict[str, list[tuple[str, str, int]]] = {}
    for _, path, mid, _, row in sorted(rows_of(db, select, paths)):
        sources.setdefault(path, []).append((path, mid, row))
    return [source for found in sources.values() for source in found[-n:] if source[2] is not None]


def neighbours_by_id(db: sqlite3.Connection, ids: Iterable[str]) -> list[tuple[str, str, int]]:
    """Return `(id, neighbour's id, neighbour's row)` for the messages right before and after each of *ids*."""
    found = dict(rows_of(db, "select mid, id from message where mid in", ids))
    beside = [(mid, id) for mid, row in found.items() for side in rows_beside(db, row, 1) for id in side]
    mids = dict(rows_of(db, "select id, mid from message where id in", {id for _, id in beside}))
    return [(mid, mids[id], id) for mid, id in beside]


class MadeNote(NamedTuple):
    """A note that was made from a message."""

    path: str
    id: str
    status: str
    hash: str
    row: int


def notes_by_source(db: sqlite3.Connection, ids: Iterable[str]) -> dict[str, list[MadeNote]]:
    """Return message's id → the notes made from the message."""
    select = """select source.id, path, node, status, hash, note.id from source join note on note.id = source.note
        where source.id in"""
    found: dict[str, list[MadeNote]] = {}
    for mid, *note in rows_of(db, select, dict.fromkeys(ids)):
        found.setdefault(mid, []).append(MadeNote(*note))
    return found


def paths_that_hold(db: sqlite3.Connection, paths: Iterable[str]) -> set[str]:
    """Return those of *paths* whose note was not superseded by another."""
    select = "select path from note where status <> 'superseded' and path in"
    return {path for (path,) in rows_of(db, select, paths)}


def known_keys(db: sqlite3.Connection, keys: Iterable[str]) -> set[str]:
    """Return those of *keys* that are in the archive. A key is the id of a message, or its `Message.key`."""
    listed = list(keys)
    found = {mid for (mid,) in rows_of(db, "select mid from message where mid in", listed)}
    return found | {key for (key,) in rows_of(db, "select key from message where key in", listed)}
