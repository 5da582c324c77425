"""The databases of OpenCode and Cursor CLI, read-only, also while their client runs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..graph.state import parsed_object
from .chats import text_part
from .drops import JsonObject, ReadingProgress, Sessions
from .histories import cursor_text, placed
from .openclaw import open_database
from .transcripts import entry_said, read_opencode


def read_opencode_store(path: Path, since: int, reading: ReadingProgress) -> Sessions:
    """Every session of a person's. A fork has copies of messages under new ids; each is taken once."""
    before, size = reading.done, path.stat().st_size
    with open_database(path) as db:
        listed = db.execute(
            "SELECT id, directory, parent_id FROM session ORDER BY time_created, id"
        ).fetchall()
    seen: set[tuple[object, str, str]] = set()
    for n, (id, directory, parent) in enumerate(listed):
        reading.done = before + size * n // len(listed)
        if parent is not None:
            reading.left_out["sessions of sub-agents"] += 1
        elif session := placed("opencode", "OpenCode", str(id), str(directory or ""), reading):
            yield session, opencode_messages(path, str(id), seen, reading)
    reading.done = before + size


def opencode_messages(
    path: Path, id: str, seen: set[tuple[object, str, str]], reading: ReadingProgress
) -> Iterator[JsonObject]:
    for row in read_opencode(path, id, 0):
        if row.entry is None:
            continue
        message = row.entry["message"]
        what = (row.entry["createdAt"], message["role"], json.dumps(message["content"], sort_keys=True))
        if what in seen:
            reading.left_out["copies in a fork"] += 1
            continue
        seen.add(what)
        yield row.entry


def read_cursor_store(path: Path, since: int, reading: ReadingProgress) -> Sessions:
    """
    The chat of a `store.db`: blobs of JSON in the order of their rows; other blobs are Cursor's own. They have no
    times, so they get the time at which the chat was made (from `meta`), else the file's time.
    """
    before, size, id = reading.done, path.stat().st_size, path.parent.name
    with open_database(path) as db:
        blobs = [
            bytes(b) if isinstance(b, bytes) else str(b).encode()
            for (b,) in db.execute("SELECT data FROM blobs ORDER BY rowid")
        ]
        made = made_ms(db) or round(path.stat().st_mtime * 1000)
    entries = []
    for n, blob in enumerate(blobs):
        value = (parsed_object(blob) or {}) if blob[:1] == b"{" else {}
        role = str(value.get("role"))
        text = cursor_text(role, value.get("content")) if role in ("user", "assistant") else ""
        if entry := entry_said(f"cursor-{id}-{n}", role, [text_part(text)] if text else [], made + n):
            entries.append(entry)
        elif value:
            reading.left_out["rows of tools, commands and sub-agents"] += 1
    if session := placed("cursor", "Cursor", id, "", reading):
        yield session, entries
    reading.done = before + size


def made_ms(db: sqlite3.Connection) -> int | None:
    """When the chat was made, by `meta`: JSON, in some versions as hexadecimal text."""
    for (value,) in db.execute("SELECT value FROM meta"):
        text: Any = value
        with suppress(ValueError, TypeError):
            text = bytes.fromhex(text)
        found = parsed_object(text) if isinstance(text, str | bytes) else None
        if found and isinstance(found.get("createdAt"), int | float):
            return int(found["createdAt"])
    return None
