"""Which reader a file has, judged by its content; and the reader of OpenClaw's session JSONL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..errors import BadInput
from .database import check_database, read_database
from .entries import (
    SQLITE,
    JsonObject,
    Reader,
    ReadingProgress,
    Sessions,
    entry_of,
    json_objects,
    numbered_lines,
    parsed_object,
    session_of,
)
from .plain import read_plain

ACCEPTED = (
    "OpenClaw session JSONL (also .zst), an OpenClaw agent database, JSONL of role, content and timestamp"
)


def reader_for(path: Path) -> Reader:
    """What reads *path*, judged by its content. Raises BadInput, naming what is accepted."""
    try:
        with path.open("rb") as file:
            if file.read(len(SQLITE)) == SQLITE:
                check_database(path)
                return read_database
        known = next(
            (how for _, line in numbered_lines(path) if (how := reader_of_line(parsed_object(line) or {}))),
            None,
        )
    except OSError as e:
        raise BadInput(f"{path}: {e.strerror or e}; what can be imported: {ACCEPTED}") from e
    if known:
        return known
    raise BadInput(f"{path}: not a conversation; what can be imported: {ACCEPTED}")


def reader_of_line(line: JsonObject) -> Reader | None:
    """What reads a file that has this line; None if the line does not tell. Plain lines may have a type, too."""
    if "role" in line and "content" in line:
        return read_plain
    return read_openclaw if isinstance(line.get("type"), str) else None


# --- OpenClaw's JSONL


def read_openclaw(path: Path, since: int, reading: ReadingProgress) -> Sessions:
    """A transcript: a `session` line, then messages among other events."""
    session = session_of(path)
    if session is None:
        reading.done += path.stat().st_size
        reading.skipped.append(f"{path}: no person speaks in it")
        return

    def entries() -> Iterator[JsonObject]:
        for number, event in json_objects(path, reading):
            if entry := entry_of(event, number):
                yield entry
            elif not isinstance(event.get("type"), str) or event["type"] == "message":
                reading.skipped.append(f"{path}:{number}: not an event of a transcript")

    yield session, entries()
