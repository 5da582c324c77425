"""The live database of an OpenClaw agent, read-only, beside a running gateway."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from ..errors import BadInput
from ..identity import identity_of_session
from .entries import JsonObject, ReadingProgress, Session, Sessions, entry_of

DATABASE_VERSION = 23  # PRAGMA user_version of an agent database of OpenClaw 2026.9
ROWS = 500  # read at a time: a reader that stays keeps the gateway from folding its log into the database
DAY_LENGTH_MS = 86_400_000


@contextmanager
def open_database(path: Path) -> Iterator[sqlite3.Connection]:
    """*path*, read-only; where its log cannot be shared, as on a read-only disk, a copy of both."""
    with tempfile.TemporaryDirectory(prefix="omg-import-") as folder:
        try:
            db = connect_read_only(f"{path.absolute().as_uri()}?mode=ro")
        except sqlite3.OperationalError:
            for file in (path, path.with_name(path.name + "-wal")):
                if file.exists():
                    shutil.copy(file, folder)
            db = connect_read_only((Path(folder) / path.name).as_uri())
        with closing(db):
            yield db


def connect_read_only(uri: str) -> sqlite3.Connection:
    """A connection that has been tried: sqlite opens a file at its first statement."""
    db = sqlite3.connect(uri, uri=True, timeout=10)
    try:
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        db.close()
        raise
    return db


def check_database(path: Path) -> None:
    """Raises BadInput unless *path* is an agent database of the version OMG knows."""
    try:
        with open_database(path) as db:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.DatabaseError as e:
        raise BadInput(f"{path}: cannot be read as an OpenClaw database: {e}") from e
    if not {"transcript_events", "session_windows"} <= tables:
        raise BadInput(f"{path}: no agent database of OpenClaw's (it has no transcript_events)")
    if version != DATABASE_VERSION:
        raise BadInput(
            f"{path}: transcripts of version {version}; this OMG reads {DATABASE_VERSION}, that of OpenClaw 2026.9. "
            "Update the older of the two; what is said from now on is remembered without this"
        )


def read_database(path: Path, since: int, reading: ReadingProgress) -> Sessions:
    """Every session of an agent's database that is somebody's, oldest first."""
    before, size, agent = reading.done, path.stat().st_size, path.parent.parent.name
    with open_database(path) as db:
        windows = db.execute(
            "SELECT session_id, session_key FROM session_windows"
            " WHERE hook_external_content_source IS NULL ORDER BY created_at, session_id"
        ).fetchall()
        for n, (id, key) in enumerate(windows):
            reading.done = before + size * n // len(windows)
            if identity_of_session(key):
                yield Session(key, id, agent), stored_messages(db, id, path, since, reading)
    reading.done = before + size


def stored_messages(
    db: sqlite3.Connection, id: str, path: Path, since: int, reading: ReadingProgress
) -> Iterator[JsonObject]:
    """The messages of session *id*. A row is written after its message was said: older rows need no look."""
    import zstandard

    packed = zstandard.ZstdDecompressor()
    after = -1
    while rows := db.execute(
        "SELECT seq, event_json, event_zstd, event_utf8_bytes FROM transcript_events"
        " WHERE session_id = ? AND seq > ? AND created_at >= ? ORDER BY seq LIMIT ?",
        (id, after, since - DAY_LENGTH_MS, ROWS),
    ).fetchall():
        for seq, text, blob, size in rows:
            try:
                event = json.loads(text or packed.decompress(blob, max_output_size=size).decode())
                entry = entry_of(event, seq)
            except (ValueError, TypeError, AttributeError, zstandard.ZstdError) as e:
                reading.skipped.append(f"{path}: session {id}, row {seq}: {e}")
                continue
            if entry:
                yield entry
        after = rows[-1][0]
