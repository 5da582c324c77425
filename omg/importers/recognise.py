"""
Recognises by its content what a path holds, and chooses the reader.

    a zip, a folder with JSON in it, JSON   an export of ChatGPT, Claude.ai or Gemini (exports.py), or of OMG
    SQLite                                  OpenClaw, OpenCode, Cursor CLI
    JSONL                                   Claude Code, Codex, Gemini CLI, Cursor CLI, OpenClaw (also .zst), plain lines
    markdown                                the memory that an assistant wrote (memories.py)
    a folder of any of these                each of its files
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path, PurePath

from ..errors import BadInput
from ..graph.state import parsed_object
from . import chatgpt, claude, gemini
from .drops import Drops, JsonObject, Reader, ReadingProgress, Sessions, numbered_lines, since_ms_of
from .exports import ZIP, Chat, ItemReading, Member, first_items, is_export, members_of, of_file, services_in
from .histories import (
    read_claude_history,
    read_codex_history,
    read_cursor_history,
    read_cursor_store,
    read_gemini_history,
    read_opencode_store,
)
from .memories import read_memory
from .openclaw import check_database, open_database, read_database, read_openclaw
from .plain import read_plain

ACCEPTED = (
    "exports of ChatGPT, Claude.ai and Gemini (zip, folder or JSON); histories of Claude Code, Codex, OpenCode, Gemini"
    " CLI, Cursor CLI and OpenClaw; markdown memories; JSONL of role, content and timestamp; text in UTF-8"
)
SQLITE = b"SQLite format 3\0"
# The files of a folder that are looked at.
READ_SUFFIXES = (".jsonl", ".zst", ".json", ".db", ".sqlite", ".md", ".zip")


READERS: dict[str, Callable[[list[Member], ItemReading], Iterator[Chat]]] = {
    chatgpt.SERVICE: chatgpt.read_chats,
    claude.SERVICE: claude.read_chats,
    gemini.SERVICE: gemini.read_activity,
}


def read_export(path: Path, since: int, reading: ReadingProgress) -> Sessions:
    """
    Yield every chat of the export at *path*. Raises BadInput if *path* is no export, or holds exports of two
    services.
    """
    with members_of(path) as members:
        services = services_in(members)
        if len(services) > 1:
            raise BadInput(
                f"{path}: holds exports of {' and '.join(sorted(services))}; unpack it, and import each by itself"
            )
        if not services:
            raise BadInput(f"{path}: {why_none(members)}")
        (service,) = services
        if path.is_dir():
            zips = [m.name for m in members if m.name.lower().endswith(".zip")]
            reading.skipped += [
                f"{path / name}: not read, because it lies inside an export; import it by itself"
                for name in zips
            ]
        if designs := sum("design_chats/" in m.name for m in members):
            reading.left_out["design chats"] += designs
        yield from READERS[service](services[service], ItemReading(path, reading))


def why_none(members: list[Member]) -> str:
    names = [m.name for m in members]
    if any(name.lower().endswith("activity.html") for name in names):
        return "Takeout's activity as HTML; in takeout.google.com choose My Activity, its format JSON, and export again"
    if any(name.lower().endswith("chat.html") for name in names):
        return "has chat.html but no conversations.json; download the whole export again"
    if any(PurePath(name).name == "omg-export.json" for name in names):
        return "an export of OMG, packed; unpack it, and import the folder"
    return "no export of ChatGPT, Claude.ai or Gemini: no file in it holds their chats"


def is_cursors(row: JsonObject) -> bool:
    return any(row.get(key) in ("user", "assistant") for key in ("role", "type"))


# (test, reader): the first line of a JSONL file that passes a test decides the reader. The order matters, because a plain
# line may have a type, too.
LINES: tuple[tuple[Callable[[JsonObject], bool], Reader], ...] = (
    (lambda e: "role" in e and "content" in e, read_plain),
    (lambda e: isinstance(e.get("payload"), dict), read_codex_history),
    (lambda e: "projectHash" in e, read_gemini_history),
    (lambda e: "sessionId" in e and "type" in e, read_claude_history),
    (lambda e: isinstance(e.get("message"), dict) and is_cursors(e), read_cursor_history),
    (lambda e: isinstance(e.get("type"), str), read_openclaw),
)


def readers_for(path: Path) -> list[tuple[Path, Reader]]:
    """The files that *path* holds, each with its reader. Raises BadInput, which names the accepted forms."""
    if not path.is_dir():
        return [(path, reader_for(path))]
    if is_export(path):
        return [(path, read_export)]
    found: list[tuple[Path, Reader]] = []
    for file in sorted(path.rglob("*")):
        if file.suffix in READ_SUFFIXES and file.is_file() and not file.is_symlink():
            try:
                found.append((file, reader_for(file)))
            except BadInput as e:
                found.append((file, unread(str(e))))
    if all(reader.__name__ == UNREAD for _, reader in found):
        raise BadInput(f"{path}: no conversation in this folder; what can be imported: {ACCEPTED}")
    return found


def reader_for(path: Path) -> Reader:
    """The reader of the file *path*, by its content. Raises BadInput, which names the accepted forms."""
    try:
        with path.open("rb") as file:
            start = file.read(len(SQLITE))
        if start == SQLITE:
            return database_reader(path)
        if start.startswith(ZIP):
            return read_export
        if path.suffix == ".md":
            return read_memory
        if start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[") or path.suffix == ".json":
            if is_export(path):
                return read_export
            if any(isinstance(i.get("messages"), list) for i in first_items(of_file(path, path.name))):
                return read_gemini_history
        for _, line in numbered_lines(path):
            event = parsed_object(line) or {}
            for has, reader in LINES:
                if has(event):
                    return reader
    except OSError as e:
        raise BadInput(f"{path}: {e.strerror or e}; what can be imported: {ACCEPTED}") from e
    raise BadInput(f"{path}: not a conversation; what can be imported: {ACCEPTED}")


def database_reader(path: Path) -> Reader:
    """The reader of a SQLite file, by its tables. Raises BadInput."""
    try:
        with open_database(path) as db:
            tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.DatabaseError as e:
        raise BadInput(f"{path}: cannot be read as a database: {e}") from e
    if {"session", "message", "part"} <= tables:
        return read_opencode_store
    if {"blobs", "meta"} <= tables:
        return read_cursor_store
    check_database(path)
    return read_database


UNREAD = "nothing_of"


def unread(why: str) -> Reader:
    def nothing_of(path: Path, since: int, reading: ReadingProgress) -> Sessions:
        reading.skipped.append(why)
        yield from ()

    return nothing_of


def read_drops(paths: Sequence[Path], since: datetime | None = None) -> Drops:
    """The drops of *paths*, in that order. Raises BadInput before the first drop if a file has an unknown form."""
    files = (pair for path in paths for pair in readers_for(path))
    return Drops(tuple(files), since_ms_of(since))


def found_here(home: Path) -> Iterator[tuple[str, Path]]:
    """Yield the histories below the person's *home*: a title, and the folder or file to import."""
    for title, pattern in PLACES:
        for path in sorted(home.glob(pattern)):
            if path.is_file() or any(path.iterdir()):
                yield title, path


PLACES = (
    ("Claude Code", ".claude/projects"),
    ("Claude Cowork", "Library/Application Support/Claude/local-agent-mode-sessions"),
    ("Codex", ".codex/sessions"),
    ("Codex, archived", ".codex/archived_sessions"),
    ("OpenCode", ".local/share/opencode/opencode.db"),
    ("Gemini CLI", ".gemini/tmp"),
    ("Cursor CLI", ".cursor/chats"),
    ("Cursor agents", ".cursor/projects"),
    ("basic-memory", "basic-memory"),
    ("Hermes", ".hermes/memories"),
    ("a ChatGPT, Claude or Takeout export", "Downloads/*.zip"),
)
