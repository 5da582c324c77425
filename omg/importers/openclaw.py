"""Reads OpenClaw's session transcripts, its live databases, and the notes that its agents wrote themselves."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime, tzinfo
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..config import configured, configured_agents, default_home, own_memory
from ..dates.days import time_zone
from ..errors import BadInput, NotFound
from ..graph.state import parsed_object, read_object
from ..identity import identity_of_session, says_owner
from ..inbox import agents_notes, line_entries
from ..message.drop import SaidMessage, is_own_prompt
from .drops import (
    Drops,
    JsonObject,
    Reader,
    ReadingProgress,
    Session,
    Sessions,
    json_objects,
    key_of,
    numbered_lines,
    since_ms_of,
    zstd_decompressor,
)

if TYPE_CHECKING:
    from ..config import Config


def read_openclaw(path: Path, since: int, reading: ReadingProgress) -> Sessions:
    """Yield the one session of a transcript: a `session` line, then messages among other events."""
    session = session_of(path)
    if session is None:
        reading.skipped.append(f"{path}: no person speaks in it")
        return

    def entries() -> Iterator[JsonObject]:
        for number, event in json_objects(path, reading):
            if entry := entry_of(event, number):
                yield entry
            elif not isinstance(event.get("type"), str) or event["type"] == "message":
                reading.skipped.append(f"{path}:{number}: not an event of a transcript")

    yield session, entries()


def entry_of(event: JsonObject, seq: int) -> JsonObject | None:
    """Turn *event* into an entry, as the gateway's own reader does; None if the event is no message."""
    message = event.get("message")
    if event.get("type") != "message" or not isinstance(message, dict):
        return None
    return {
        "entryId": event.get("id"),
        "seq": seq,
        "createdAt": event.get("timestamp"),
        "idempotencyKey": message.get("idempotencyKey"),
        "message": message,
    }


def session_of(path: Path) -> Session | None:
    """
    The session of a transcript; None if no person speaks in it.

    The transcript names its session key, or `sessions.json` beside it does. Without a key, the session is the owner's
    if nobody else speaks in it. If somebody else speaks, the session has a memory of its own.
    """
    id, key, workspace = path.name.split(".")[0], "", ""
    agent = path.parent.parent.name if path.parent.parent.parent.name == "agents" else "main"
    senders: list[JsonObject] = []
    try:
        for _, line in numbered_lines(path):
            event = parsed_object(line) or {}
            if event.get("type") == "session":
                id, workspace = str(event.get("id") or id), str(event.get("cwd") or "")
                key = str(event.get("sessionKey") or "")
            elif (entry := entry_of(event, 0)) and (sender := sender_of(entry["message"])) is not None:
                senders.append(sender)
    except BadInput:
        pass  # only the text before the damage is imported; the reader of the entries reports the damage
    key = key or stored_key(path.parent / "sessions.json", id)
    if not key:
        owned = all(says_owner(sender) or not sender.get("senderId") for sender in senders)
        key = key_of(id, agent) if owned else f"agent:{agent}:session:{id}"
    return Session(key, id, agent, workspace, "OpenClaw") if senders and identity_of_session(key) else None


def sender_of(message: JsonObject) -> JsonObject | None:
    """What *message* says about its sender; None if no person sent it."""
    try:
        said = SaidMessage.model_validate(message)
    except ValueError:
        return None
    return None if said.role != "user" or is_own_prompt(said) else said.meta


def stored_key(store: Path, id: str) -> str:
    """The session key of session *id* in an old `sessions.json`, or ""."""
    sessions = read_object(store).items()
    return next((k for k, v in sessions if isinstance(v, dict) and v.get("sessionId") == id), "")


# --- the live database of an OpenClaw agent

DATABASE_VERSION = 23  # PRAGMA user_version of an agent database of OpenClaw 2026.9
ROWS = 500  # rows read at a time: during a read the gateway cannot move its log into the database
DAY_LENGTH_MS = 86_400_000


def open_database(path: Path, timeout_s: float = 10) -> closing[sqlite3.Connection]:
    """Open the database *path* read-only, for use in `with`."""
    return closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=timeout_s))


def check_database(path: Path) -> None:
    """Raise BadInput unless *path* is an agent database of the version that OMG reads."""
    try:
        with open_database(path) as db:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.DatabaseError as e:
        raise BadInput(f"{path}: cannot be read as an OpenClaw database: {e}") from e
    if not {"transcript_events", "session_windows"} <= tables:
        raise BadInput(f"{path}: not an agent database of OpenClaw (it has no transcript_events)")
    if version != DATABASE_VERSION:
        raise BadInput(
            f"{path}: this database has version {version}, but this OMG reads only version {DATABASE_VERSION}, of OpenClaw"
            " 2026.9. Update OpenClaw or OMG, whichever is older. Until then new conversations are still remembered"
        )


def read_database(path: Path, since: int, reading: ReadingProgress) -> Sessions:
    """Yield every session that belongs to somebody, oldest first."""
    agent = path.parent.parent.name
    with open_database(path) as db:
        windows = db.execute(
            "SELECT session_id, session_key FROM session_windows"
            " WHERE hook_external_content_source IS NULL ORDER BY created_at, session_id"
        ).fetchall()
        for n, (id, key) in enumerate(windows):
            reading.here = path.stat().st_size * n // len(windows)
            if identity_of_session(key):
                yield Session(key, id, agent, "", "OpenClaw"), stored_messages(db, id, path, since, reading)


def stored_messages(
    db: sqlite3.Connection, id: str, path: Path, since: int, reading: ReadingProgress
) -> Iterator[JsonObject]:
    """
    Yield the messages of session *id* in the database. Skips rows that were written more than a day before
    *since* (ms). A row that cannot be read is reported in `reading.skipped`.
    """
    packed, after = None, -1
    # A row is written after its message was said, so a row older than *since* holds no message to import.
    while rows := db.execute(
        "SELECT seq, event_json, event_zstd, event_utf8_bytes FROM transcript_events"
        " WHERE session_id = ? AND seq > ? AND created_at >= ? ORDER BY seq LIMIT ?",
        (id, after, since - DAY_LENGTH_MS, ROWS),
    ).fetchall():
        for seq, text, blob, size in rows:
            try:
                if not text:
                    packed = packed or zstd_decompressor(path)
                    text = packed.decompress(blob, max_output_size=size).decode()
                entry = entry_of(json.loads(text), seq)
            except Exception as e:
                # ZstdError by name: zstandard is imported only where it is needed
                if (
                    not isinstance(e, ValueError | TypeError | AttributeError)
                    and type(e).__name__ != "ZstdError"
                ):
                    raise
                reading.skipped.append(f"{path}: session {id}, row {seq}: {e}")
                continue
            if entry:
                yield entry
        after = rows[-1][0]


def openclaw_state_drops(state: Path, agent: str | None = None, since: datetime | None = None) -> Drops:
    """
    The drops of every session in an OpenClaw state folder, for all agents or for *agent*: from live databases,
    archives, and the JSONL of older versions.

    Raises BadInput if *state* is no state folder or a database has an unknown version, and NotFound if there is no
    such agent.
    """
    agents = sorted(path.name for path in state.glob("agents/*") if path.is_dir())
    if not agents:
        raise BadInput(f"{state}: no OpenClaw state folder (no agents/ in it); set OPENCLAW_STATE_DIR")
    if agent is not None and agent not in agents:
        raise NotFound(f"no agent {agent!r} in {state}; there are: {', '.join(agents)}")
    files: list[tuple[Path, Reader]] = []
    for name in [agent] if agent else agents:
        folder = state / "agents" / name
        database = folder / "agent" / "openclaw-agent.sqlite"
        if database.is_file():
            check_database(database)
            files.append((database, read_database))
        files += [
            (path, read_openclaw) for path in sorted(folder.glob("sessions/*.jsonl*")) if path.is_file()
        ]
    return Drops(tuple(files), since_ms_of(since))


def openclaw_drops(config: Config, agent: str | None, since: datetime | None) -> Drops:
    """
    Return the drops of an OpenClaw installation, including the notes that its agents wrote.

    The installation is found by its state folder: the parent of OMG's home, if this parent holds `agents/`.
    Otherwise the environment variables name the state folder, or it is ~/.openclaw.
    *agent*: only this agent; None for all agents.
    """
    state = config.home.parent
    if not (state / "agents").is_dir():
        state = default_home({**os.environ, "OMG_HOME": ""}).parent
    drops, notes = openclaw_state_drops(state, agent, since), list[tuple[Path, Reader]]()
    configuration = configured(config.home)
    agents = configured_agents(configuration[0]) if configuration else []
    for name in agents if agent is None else [agent]:
        if memory := own_memory(config.home, name):
            notes.append((memory, partial(read_agents_notes, agent=name, zone=time_zone(config.time.zone))))
        elif not config.switched_off(name):
            drops.reading.skipped.append(
                f"MEMORY.md and memory/ of {name}: not imported, because other people can reach this agent, or OpenClaw's"
                " configuration does not name it"
            )
    return replace(drops, files=(*drops.files, *notes))


def read_agents_notes(
    memory: Path, since: int, reading: ReadingProgress, *, agent: str, zone: tzinfo
) -> Sessions:
    """
    Yield one session with the agent's own notes, a message for each line.

    The notes are the .md files in *memory*, and MEMORY.md beside this folder. A message gets the day in the
    file's name, otherwise the day on which the file was saved. A file that cannot be read is reported in
    `reading.skipped`.
    """

    def entries() -> Iterator[JsonObject]:
        for file, path, day in agents_notes(memory, zone):
            try:
                yield from line_entries(file, path, day, zone)
            except (OSError, UnicodeDecodeError) as e:
                why = e.strerror if isinstance(e, OSError) else "it is not UTF-8"
                reading.skipped.append(f"{file}: {why}")

    yield Session(key_of("memory", agent), "memory", agent, "", "OpenClaw's notes"), entries()
