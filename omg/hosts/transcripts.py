"""
Reads a client's transcript from an offset on, as entries of a drop.

What tools returned is left out: it is long, and nobody's words. So is everything that the client wrote in the person's
place: summaries, commands, reminders, sub-agents, what hooks added. A row of a kind that is not known is no message.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .declared import CLAUDE_CODE, CODEX, GEMINI, OPENCODE

ARGUMENT_CHARS = 300  # of one argument of a call: the name and the target say what was done
LONGEST_LINE = 64_000_000

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """
    A row from *start* to *end* in the transcript; *entry* None: nobody's words. *begins*: the person's own. *cut*: the
    context was compacted here, and what was given before is no more in it.
    """

    start: int
    end: int
    entry: Entry | None = None
    cut: bool = False

    @property
    def begins(self) -> bool:
        return self.entry is not None and self.entry["message"]["role"] == "user"


Reader = Callable[[Path, str, int], Iterator[Row]]  # the transcript, the session, where to begin


def json_rows(path: Path, offset: int, holding: bytes = b"") -> Iterator[tuple[int, int, dict[str, Any]]]:
    """
    The JSON lines of *path* from *offset* on, empty where they are not *holding* those bytes. A last line that is
    still being written is left.
    """
    with path.open("rb") as file:
        file.seek(offset)
        while (line := file.readline(LONGEST_LINE)).endswith(b"\n"):
            end = offset + len(line)
            try:
                value = json.loads(line) if holding in line else None
            except (ValueError, RecursionError):
                value = None
            yield offset, end, value if isinstance(value, dict) else {}
            offset = end


def entry_said(id: object, role: str, content: object, at: object) -> Entry | None:
    """An entry of a drop; None without an id, or without anything said or called."""
    if not isinstance(id, str) or not id or not content:
        return None
    return {"entryId": id, "createdAt": at, "message": {"role": role, "content": content, "timestamp": at}}


def text_part(text: object) -> dict[str, Any]:
    return {"type": "text", "text": text}


def call_part(id: object, name: object, arguments: object) -> dict[str, Any]:
    """A tool call: which tool, and the beginning of each argument."""
    given = arguments if isinstance(arguments, dict) else {"input": arguments}
    short = {k: v[:ARGUMENT_CHARS] if isinstance(v, str) else v for k, v in given.items()}
    if len(json.dumps(short)) > 4 * ARGUMENT_CHARS:
        short = {k: v for k, v in short.items() if isinstance(v, str)}
    return {"type": "tool_use", "id": id, "name": str(name).lower(), "input": short}


def parts_of(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        return [text_part(content)] if content else []
    return [part for part in content or [] if isinstance(part, dict)]


# --- Claude Code

# A prompt's source where a person wrote it; others are schedules, webhooks, other agents.
TYPED = ("typed", "sdk", "suggestion_accepted")


def read_claude_code(path: Path, session: str, offset: int) -> Iterator[Row]:
    for start, end, row in json_rows(path, offset):
        yield Row(start, end, claude_code_entry(row))


def claude_code_entry(row: Mapping[str, Any]) -> Entry | None:
    message = row.get("message")
    if not isinstance(message, dict) or any(
        row.get(mark) for mark in ("isSidechain", "isMeta", "isCompactSummary")
    ):
        return None
    parts = parts_of(message)
    if row.get("type") == "user":
        origin = row.get("origin")
        kind = origin.get("kind") if isinstance(origin, dict) else None
        typed = kind == "human" or (kind is None and row.get("promptSource") in TYPED)
        if not typed or row.get("toolUseResult") is not None:
            return None
        said = [part for part in parts if part.get("type") in ("text", "image", "document")]
        return entry_said(row.get("uuid"), "user", said, row.get("timestamp"))
    if (
        row.get("type") != "assistant"
        or message.get("model") == "<synthetic>"
        or row.get("isApiErrorMessage")
    ):
        return None
    said = [part for part in parts if part.get("type") == "text" and part.get("text")]
    said += [
        call_part(part.get("id"), part.get("name"), part.get("input"))
        for part in parts
        if part.get("type") == "tool_use"
    ]
    return entry_said(row.get("uuid"), "assistant", said, row.get("timestamp"))


# --- Codex


def read_codex(path: Path, session: str, offset: int) -> Iterator[Row]:
    """A turn in which nobody typed is the client's own, and so is a thread of a sub-agent."""
    first = next(json_rows(path, 0), (0, 0, {}))[2]
    persons = payload_of(first).get("thread_source") in (None, "user")
    rows: list[Row] = []
    typed = turns_typed(path, offset)
    for start, end, row in json_rows(path, offset):
        if row.get("type") == "compacted":
            rows = without_summary(rows, json.dumps(payload_of(row)))
        rows.append(Row(start, end, codex_entry(row, session, typed) if persons else None))
    return iter(rows)


def turns_typed(path: Path, end: int) -> set[str]:
    """Turns that a person began before *end*: an answer may be read later than its question."""
    found: set[str] = set()
    for start, _, row in json_rows(path, 0, b'"user.text"'):
        if start >= end:
            break
        codex_entry(row, "", found)
    return found


def payload_of(row: Mapping[str, Any]) -> dict[str, Any]:
    payload = row.get("payload")
    return payload if isinstance(payload, dict) else {}


def codex_entry(row: Mapping[str, Any], session: str, typed: set[str]) -> Entry | None:
    payload = payload_of(row)
    about = payload.get("internal_chat_message_metadata_passthrough")
    about = about if isinstance(about, dict) else {}
    turn, kinds = str(about.get("turn_id")), about.get("content_item_kinds") or []
    id, at = payload.get("id") or f"{session}:{row.get('ordinal')}", row.get("timestamp")
    if row.get("type") != "response_item":
        return None
    if payload.get("role") == "user" and "user.text" in kinds:
        typed.add(turn)
        parts = zip(parts_of(payload), kinds, strict=False)
        return entry_said(id, "user", [part for part, kind in parts if str(kind).startswith("user.")], at)
    if turn not in typed:
        return None
    if payload.get("type") == "message" and payload.get("role") == "assistant":
        return entry_said(id, "assistant", [text_part(part.get("text")) for part in parts_of(payload)], at)
    if payload.get("type") in ("function_call", "custom_tool_call"):
        given = payload.get("arguments", payload.get("input"))
        with suppress(ValueError):
            given = json.loads(given) if isinstance(given, str) else given
        return entry_said(
            id, "assistant", [call_part(payload.get("call_id"), payload.get("name"), given)], at
        )
    return None


def without_summary(rows: list[Row], compacted: str) -> list[Row]:
    """*rows* without the last thing that the assistant said, if the compaction is made of it."""
    for n in range(len(rows) - 1, -1, -1):
        entry = rows[n].entry
        if entry is not None and entry["message"]["role"] == "assistant":
            texts = [part.get("text") for part in entry["message"]["content"] if part["type"] == "text"]
            if texts and all(text and json.dumps(text)[1:-1] in compacted for text in texts):
                return [*rows[:n], Row(rows[n].start, rows[n].end), *rows[n + 1 :]]
            break
    return rows


# --- OpenCode: a database; a place in it is the time at which a message was made


def read_opencode(path: Path, session: str, offset: int) -> Iterator[Row]:
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5)) as db:
        if is_sub_agent(db, session):
            return
        messages = db.execute(
            "select id, time_created, data from message where session_id = ? and time_created >= ? order by time_created, id",
            (session, offset),
        ).fetchall()
        for id, at, data in messages:
            parts = db.execute("select data from part where message_id = ? order by id", (id,)).fetchall()
            said = [json.loads(part) for (part,) in parts]
            cut = any(part.get("type") == "compaction" for part in said)
            yield Row(int(at), int(at), opencode_entry(str(id), json.loads(data), said), cut)


def is_sub_agent(db: sqlite3.Connection, session: str) -> bool:
    found = db.execute("select parent_id from session where id = ?", (session,)).fetchone()
    return found is not None and found[0] is not None


def of_sub_agent(path: str, session: str) -> bool:
    """The same, for who does not know whether the database is there."""
    with (
        suppress(OSError, ValueError, sqlite3.Error),
        closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True, timeout=0.05)) as db,
    ):
        return is_sub_agent(db, session)
    return False


def opencode_entry(id: str, message: Mapping[str, Any], parts: list[dict[str, Any]]) -> Entry | None:
    kinds = {part.get("type") for part in parts}
    if message.get("summary") is True or message.get("mode") == "compaction" or "compaction" in kinds:
        return None
    said = [
        text_part(p.get("text"))
        for p in parts
        if p.get("type") == "text" and p.get("text") and not p.get("synthetic")
    ]
    said += [
        call_part(p.get("callID"), p.get("tool"), (p.get("state") or {}).get("input"))
        for p in parts
        if p.get("type") == "tool"
    ]
    role = str(message.get("role"))
    return (
        entry_said(id, role, said, (message.get("time") or {}).get("created"))
        if role in ("user", "assistant")
        else None
    )


# --- Gemini CLI


def read_gemini(path: Path, session: str, offset: int) -> Iterator[Row]:
    """A message is written again when its calls are known: the last of the same id holds."""
    first = next(json_rows(path, 0), (0, 0, {}))[2]
    persons = first.get("kind") in (None, "main")
    rows: dict[object, Row] = {}
    for start, end, row in json_rows(path, offset):
        id = row.get("id") or start
        if id in rows:
            rows[start] = Row(rows[id].start, rows[id].end)
            del rows[id]
        rows[id] = Row(start, end, gemini_entry(row) if persons else None, is_cut(path, start, row))
    return iter(sorted(rows.values(), key=lambda row: row.start))


def is_cut(path: Path, start: int, row: Mapping[str, Any]) -> bool:
    """
    Whether the row at *start* puts a shorter history in place of the one before: its messages have new ids. A start
    or a resume writes the history down too, with the ids that it had.
    """
    changed = row.get("$set")
    messages = changed.get("messages") if isinstance(changed, dict) else None
    if not isinstance(messages, list) or len(messages) < 2 or not isinstance(messages[-1], dict):
        return False
    with path.open("rb") as file:
        return str(messages[-1].get("id")).encode() not in file.read(start)


def gemini_entry(row: Mapping[str, Any]) -> Entry | None:
    id, at = row.get("id"), row.get("timestamp")
    if row.get("type") == "user":
        shown = row.get("displayContent", row.get("content"))
        texts = [str(part["text"]) for part in parts_of({"content": shown}) if part.get("text")]
        return entry_said(id, "user", [text_part(t) for t in texts if not t.startswith("<hook_context>")], at)
    if row.get("type") == "gemini":
        said = [text_part(row["content"])] if row.get("content") else []
        calls = [call for call in row.get("toolCalls") or [] if isinstance(call, dict)]
        said += [call_part(call.get("id"), call.get("name"), call.get("args")) for call in calls]
        return entry_said(id, "assistant", said, at)
    return None


READERS: dict[str, Reader] = {
    CLAUDE_CODE.name: read_claude_code,
    CODEX.name: read_codex,
    OPENCODE.name: read_opencode,
    GEMINI.name: read_gemini,
}
