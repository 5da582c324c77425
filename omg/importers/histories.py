"""
Reads the whole histories of coding agents for `omg import`, from files and databases.

Files of older versions are read, too. An imported session gets the same key that hooks give to the session. So
messages that a hook captured are not taken in again. If a client is still writing the last line, the next import
reads this line.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..graph.state import mapping_in, objects_in, parsed_object
from .drops import JsonObject, ReadingProgress, Session, Sessions, said_epoch_ms, text_part
from .openclaw import open_database
from .transcripts import (
    TranscriptRow,
    claude_code_entry,
    entry_said,
    first_row,
    gemini_entry,
    json_rows,
    parts_of,
    read_codex,
    read_gemini,
    read_opencode,
)

# Texts that older versions of Claude Code wrote in the user's name without a mark: commands, reminders, interruptions.
IN_USERS_PLACE = re.compile(
    r"\s*(?:<[a-z-]+>|\[Request interrupted|Caveat: |This session is being continued)"
)
NOT_A_PERSONS = "rows of tools, commands and sub-agents"


def placed(client: str, service: str, id: str, cwd: str, reading: ReadingProgress) -> Session | None:
    """
    Return the session *id* of *client*, with the session's key. If the session belongs to no person and no
    project, reports this in `reading.skipped` and returns None.
    """
    if key := reading.place(client, id, cwd):
        return Session(key, id, key.split(":")[1], cwd, service)
    reading.skipped.append(
        f"{service}, session {id}: this session belongs to no person and no project, so no memory takes it in"
    )
    return None


def said_in(rows: Iterable[TranscriptRow], reading: ReadingProgress) -> Iterator[JsonObject]:
    for row in rows:
        if row.entry is not None:
            yield row.entry
        elif row.end > row.start:
            reading.left_out[NOT_A_PERSONS] += 1
        reading.here = row.end


def read_claude_history(path: Path, since: int, reading: ReadingProgress) -> Sessions:
    """
    Yield the one session of a Claude Code file. Older versions did not mark what a person typed, so their rows are
    judged by their form.
    """
    id, cwd, marked = path.stem, "", False
    for _, _, row in json_rows(path, 0, b'"user"'):
        if row.get("type") == "user":
            id, cwd = str(row.get("sessionId") or id), cwd or str(row.get("cwd") or "")
            marked |= "promptSource" in row or "origin" in row
    if (session := placed("claude-code", "Claude Code", id, cwd, reading)) is None:
        return
    rows = json_rows(path, 0)
    read = (TranscriptRow(s, e, claude_code_entry(row if marked else with_source(row))) for s, e, row in rows)
    yield session, said_in(read, reading)


def with_source(row: dict[str, Any]) -> dict[str, Any]:
    """
    Return *row*, marked as typed if the user typed its text.

    Older versions of Claude Code lack the mark (`promptSource`). Text that Claude Code itself puts into a user's row,
    such as "[Request interrupted", does not count as typed.
    """
    parts = parts_of(mapping_in(row, "message").get("content"))
    texts = [str(part.get("text")) for part in parts if part.get("type") == "text"]
    typed = row.get("type") == "user" and texts and not any(IN_USERS_PLACE.match(text) for text in texts)
    return {**row, "promptSource": "typed"} if typed else row


def read_codex_history(path: Path, since: int, reading: ReadingProgress) -> Sessions:
    about = mapping_in(first_row(path), "payload")
    id, cwd = str(about.get("id") or path.stem), str(about.get("cwd") or "")
    if (session := placed("codex", "Codex", id, cwd, reading)) is None:
        return
    rows = read_codex(path, id, 0)
    marked = any(True for _, _, row in json_rows(path, 0, b'"content_item_kinds"') if row)
    yield session, said_in(rows if marked else older_codex(path, id), reading)


def older_codex(path: Path, session: str) -> Iterator[TranscriptRow]:
    """
    Yield the rows of a transcript that an older version of Codex wrote.

    Such a transcript does not mark what a person typed. So a message is taken only from a row with the event
    `user_message` or `agent_message`. For any other row, the entry is None.
    """
    for number, (start, end, row) in enumerate(json_rows(path, 0)):
        event, at = mapping_in(row, "payload"), row.get("timestamp")
        role = {"user_message": "user", "agent_message": "assistant"}.get(str(event.get("type")))
        text = event.get("message")
        said = row.get("type") == "event_msg" and role and isinstance(text, str) and text.strip()
        entry = entry_said(f"{session}:{number}", str(role), [text_part(str(text))], at) if said else None
        yield TranscriptRow(start, end, entry)


def read_gemini_history(path: Path, since: int, reading: ReadingProgress) -> Sessions:
    """Yield the one session of a file: JSON lines, or one JSON object with `messages`, as older versions wrote it."""
    whole = parsed_object(path.read_bytes()) if path.suffix == ".json" else None
    about = whole or first_row(path)
    id = str(about.get("sessionId") or path.stem)
    if path.suffix == ".json" and not isinstance(about.get("messages"), list):
        reading.skipped.append(f"{path}: not a conversation")
    elif (session := placed("gemini", "Gemini CLI", id, "", reading)) is None:
        return
    elif whole is None:
        yield session, said_in(read_gemini(path, id, 0), reading)
    else:
        rows = (TranscriptRow(0, 0, gemini_entry(m)) for m in objects_in(whole, "messages"))
        yield session, said_in(rows, reading)


CURSOR_SAID = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.S)
CURSOR_BLOCK = re.compile(r"<([a-z_]+)>.*?</\1>\s*", re.S)


def cursor_entry(id: str, role: str, content: object, at: object) -> JsonObject | None:
    """The entry of a Cursor message. The user's words are in <user_query>, beside text that Cursor adds."""
    text = "\n".join(str(p.get("text") or "") for p in parts_of(content) if p.get("type") in (None, "text"))
    if role == "user":
        text = "\n".join(CURSOR_SAID.findall(text)) or CURSOR_BLOCK.sub("", text)
    said = text.strip() if role in ("user", "assistant") else ""
    return entry_said(id, role, [text_part(said)] if said else [], at)


def read_cursor_history(path: Path, since: int, reading: ReadingProgress) -> Sessions:
    """
    Yield the one session of a file of Cursor's agent, in JSON lines. A line without a time gets the time of the file.
    """
    if session := placed("cursor", "Cursor", path.stem, "", reading):
        yield session, said_in(cursor_rows(path), reading)


def cursor_rows(path: Path) -> Iterator[TranscriptRow]:
    last: object = round(path.stat().st_mtime * 1000)
    for number, (start, end, row) in enumerate(json_rows(path, 0)):
        message = mapping_in(row, "message")
        role = str(row.get("role") or row.get("type") or message.get("role"))
        last = row.get("timestamp") or last
        entry = cursor_entry(f"cursor-{path.stem}-{number}", role, message.get("content"), last)
        yield TranscriptRow(start, end, entry)


# --- databases, read-only, also while their client runs


def read_opencode_store(path: Path, since: int, reading: ReadingProgress) -> Sessions:
    """Yield every session of a person. A fork has copies of messages under new ids; these copies are left out."""
    with open_database(path) as db:
        listed = db.execute(
            "SELECT id, directory, parent_id FROM session ORDER BY time_created, id"
        ).fetchall()
    seen: set[tuple[object, str, str]] = set()
    for n, (id, directory, parent) in enumerate(listed):
        reading.here = path.stat().st_size * n // len(listed)
        if parent is not None:
            reading.left_out["sessions of sub-agents"] += 1
        elif session := placed("opencode", "OpenCode", str(id), str(directory or ""), reading):
            yield session, opencode_messages(path, str(id), seen, reading)


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
    Yield the chat of a `store.db`: its JSON blobs, in the order of their rows. Messages have no time, so they get the
    time at which the chat was made (table `meta`), else the time of the file.
    """
    id = path.parent.name
    with open_database(path) as db:
        blobs = [
            bytes(b) if isinstance(b, bytes) else str(b).encode()
            for (b,) in db.execute("SELECT data FROM blobs ORDER BY rowid")
        ]
        made = made_ms(db) or round(path.stat().st_mtime * 1000)
    entries = []
    for n, blob in enumerate(blobs):
        value = (parsed_object(blob) or {}) if blob[:1] == b"{" else {}
        if entry := cursor_entry(f"cursor-{id}-{n}", str(value.get("role")), value.get("content"), made + n):
            entries.append(entry)
        elif value:
            reading.left_out[NOT_A_PERSONS] += 1
    if session := placed("cursor", "Cursor", id, "", reading):
        yield session, entries


def made_ms(db: sqlite3.Connection) -> int | None:
    """
    The time in ms at which the chat was made, from JSON in the table `meta`. In some versions the JSON is hexadecimal
    text.
    """
    for (value,) in db.execute("SELECT value FROM meta"):
        text: Any = value
        with suppress(ValueError, TypeError):
            text = bytes.fromhex(text)
        if made := said_epoch_ms((parsed_object(text) or {}).get("createdAt")):
            return made
    return None
