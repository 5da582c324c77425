"""Reads the transcripts of coding agents: Claude Code, Codex, OpenCode, Gemini CLI, Cursor CLI.

Only the words that the person typed, and the words and calls of the assistant, are read. Left out are results of
tools, and all that the client wrote in the person's name (summaries, commands, reminders, tasks for sub-agents, text
of hooks).

hosts/serve.py reads running sessions; `omg import` reads whole files (histories.py)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..graph.state import mapping_in, objects_in, parsed_object
from .drops import JsonObject, entry_of_message, said_epoch_ms, said_text, text_part
from .openclaw import open_database

ARGUMENT_CHARS = 300  # most characters of one argument of a tool call
LONGEST_LINE = 64_000_000

Parts = list[JsonObject]


@dataclass(frozen=True, slots=True)
class TranscriptRow:
    """
    A row of a transcript, from *start* to *end*. *entry*: None if nobody said the row. *cut*: the context was
    compacted here, so earlier text is no longer in it.
    """

    start: int
    end: int
    entry: JsonObject | None = None
    cut: bool = False

    @property
    def begins(self) -> bool:
        """Whether a turn begins here, with the person's words."""
        return self.entry is not None and self.entry["message"]["role"] == "user"


RowReader = Callable[[Path, str, int], Iterator[TranscriptRow]]  # (transcript, session, offset) → rows


def json_rows(path: Path, offset: int, holding: bytes = b"") -> Iterator[tuple[int, int, dict[str, Any]]]:
    """
    Yield the JSON lines of *path* from *offset* on, as (start, end, value). A line without the bytes *holding* is not
    parsed, and its value is {}. A last line that is still being written is left for later.
    """
    with path.open("rb") as file:
        file.seek(offset)
        while (line := file.readline(LONGEST_LINE)).endswith(b"\n"):
            end = offset + len(line)
            yield offset, end, (parsed_object(line) or {}) if holding in line else {}
            offset = end


def first_row(path: Path) -> dict[str, Any]:
    return next(json_rows(path, 0), (0, 0, {}))[2]


def entry_said(id: object, role: str, content: Parts, at: object) -> JsonObject | None:
    """Make an entry of a drop; None without an id or without content."""
    return entry_of_message(id, role, content, at) if isinstance(id, str) and id and content else None


def call_part(id: object, name: object, arguments: object) -> dict[str, Any]:
    """Make the part for a tool call: the tool, and the beginning of each argument."""
    given = arguments if isinstance(arguments, dict) else {"input": arguments}
    short = {k: v[:ARGUMENT_CHARS] if isinstance(v, str) else v for k, v in given.items()}
    if len(json.dumps(short)) > 4 * ARGUMENT_CHARS:
        short = {k: v for k, v in short.items() if isinstance(v, str)}
    return {"type": "tool_use", "id": id, "name": str(name).lower(), "input": short}


def parts_of(content: object) -> Parts:
    if isinstance(content, str):
        return [text_part(content)] if content else []
    return [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []


# --- Claude Code

# Sources of a prompt that a person wrote. Others are schedules, webhooks and other agents.
TYPED = ("typed", "sdk", "suggestion_accepted")
NOT_SAID = ("isSidechain", "isMeta", "isCompactSummary", "isApiErrorMessage")


def read_claude_code(path: Path, session: str, offset: int) -> Iterator[TranscriptRow]:
    for start, end, row in json_rows(path, offset):
        yield TranscriptRow(start, end, claude_code_entry(row))


def claude_code_entry(row: Mapping[str, Any]) -> JsonObject | None:
    message, kind = mapping_in(row, "message"), row.get("type")
    if any(row.get(mark) for mark in NOT_SAID) or message.get("model") == "<synthetic>":
        return None
    parts = parts_of(message.get("content"))
    if kind == "user":
        origin = mapping_in(row, "origin").get("kind")
        typed = origin == "human" or (origin is None and row.get("promptSource") in TYPED)
        if not typed or row.get("toolUseResult") is not None:
            return None
        said = [part for part in parts if part.get("type") in ("text", "image", "document")]
    elif kind == "assistant":
        said = [part for part in parts if part.get("type") == "text" and part.get("text")]
        calls = [part for part in parts if part.get("type") == "tool_use"]
        said += [call_part(call.get("id"), call.get("name"), call.get("input")) for call in calls]
    else:
        return None
    return entry_said(row.get("uuid"), str(kind), said, row.get("timestamp"))


# --- Codex


def read_codex(path: Path, session: str, offset: int) -> Iterator[TranscriptRow]:
    """
    The rows of a Codex transcript. Rows of sub-agents' threads, and of turns in which nobody typed, have no entry.
    """
    is_persons = mapping_in(first_row(path), "payload").get("thread_source") in (None, "user")
    rows: list[TranscriptRow] = []
    typed = turns_typed(path, offset)
    for start, end, row in json_rows(path, offset):
        if row.get("type") == "compacted":
            rows = without_summary(rows, mapping_in(row, "payload"))
        rows.append(TranscriptRow(start, end, codex_entry(row, session, typed) if is_persons else None))
    return iter(rows)


def turns_typed(path: Path, end: int) -> set[str]:
    """The ids of the turns that a person began before *end*. Their answers may come after *end*."""
    found: set[str] = set()
    for start, _, row in json_rows(path, 0, b'"user.text"'):
        if start >= end:
            break
        codex_entry(row, "", found)
    return found


def codex_entry(row: Mapping[str, Any], session: str, typed: set[str]) -> JsonObject | None:
    """
    The entry of a row of Codex. *typed*: ids of the turns that a person began. A row with a person's words adds its
    turn to *typed*.
    """
    payload = mapping_in(row, "payload")
    about = mapping_in(payload, "internal_chat_message_metadata_passthrough")
    turn, kinds = str(about.get("turn_id")), about.get("content_item_kinds")
    id, at = payload.get("id") or f"{session}:{row.get('ordinal')}", row.get("timestamp")
    parts = parts_of(payload.get("content"))
    if row.get("type") != "response_item":
        return None
    if payload.get("role") == "user" and isinstance(kinds, list) and "user.text" in kinds:
        typed.add(turn)
        pairs = zip(parts, kinds, strict=False)
        return entry_said(id, "user", [part for part, kind in pairs if str(kind).startswith("user.")], at)
    if turn not in typed:
        return None
    said: Parts = []
    if payload.get("type") == "message" and payload.get("role") == "assistant":
        said = [text_part(part.get("text")) for part in parts]
    elif payload.get("type") in ("function_call", "custom_tool_call"):
        given = payload.get("arguments", payload.get("input"))
        with suppress(ValueError):
            given = json.loads(given) if isinstance(given, str) else given
        said = [call_part(payload.get("call_id"), payload.get("name"), given)]
    return entry_said(id, "assistant", said, at)


def without_summary(rows: list[TranscriptRow], compacted: Mapping[str, Any]) -> list[TranscriptRow]:
    """
    Return *rows* without the summary that Codex wrote when it compacted the conversation.

    The assistant's last text in *rows* is the summary if *compacted*, the row about the compaction, ends with the same
    text. Otherwise all rows are returned unchanged.
    """
    history = compacted.get("replacement_history")
    last = history[-1] if isinstance(history, list) and history else ""
    parts = parts_of(last.get("content") if isinstance(last, dict) else last)
    ends = [str(compacted.get("message")), *(str(part.get("text")) for part in parts)]
    for n in range(len(rows) - 1, -1, -1):
        entry = rows[n].entry
        if entry is not None and entry["message"]["role"] == "assistant":
            texts = [part.get("text") for part in entry["message"]["content"] if part["type"] == "text"]
            summary = "\n".join(map(str, texts)).strip()
            if summary and any(end.strip().endswith(summary) for end in ends):
                return [*rows[:n], TranscriptRow(rows[n].start, rows[n].end), *rows[n + 1 :]]
            break
    return rows


# --- OpenCode: a database. The offset is the time at which a message was made.


def read_opencode(path: Path, session: str, offset: int) -> Iterator[TranscriptRow]:
    with open_database(path, 5) as db:
        if is_sub_agent(db, session):
            return
        messages = db.execute(
            "select id, time_created, data from message where session_id = ? and time_created >= ? order by time_created, id",
            (session, offset),
        ).fetchall()
        for id, at, data in messages:
            found = db.execute("select data from part where message_id = ? order by id", (id,)).fetchall()
            parts = [value for (part,) in found if (value := parsed_object(part))]
            cut = any(part.get("type") == "compaction" for part in parts)
            entry = None if cut else opencode_entry(str(id), parsed_object(data) or {}, parts)
            made = said_epoch_ms(at) or offset
            yield TranscriptRow(made, made, entry, cut)


def is_sub_agent(db: sqlite3.Connection, session: str) -> bool:
    found = db.execute("select parent_id from session where id = ?", (session,)).fetchone()
    return found is not None and found[0] is not None


def of_sub_agent(path: str, session: str) -> bool:
    """
    Return whether *session* belongs to a sub-agent. Returns False if the database *path* stays locked for 50 ms,
    or cannot be read.
    """
    with suppress(OSError, ValueError, sqlite3.Error), open_database(Path(path), 0.05) as db:
        return is_sub_agent(db, session)
    return False


def opencode_entry(id: str, message: Mapping[str, Any], parts: Parts) -> JsonObject | None:
    role, at = str(message.get("role")), mapping_in(message, "time").get("created")
    if (
        role not in ("user", "assistant")
        or message.get("summary") is True
        or message.get("mode") == "compaction"
    ):
        return None
    texts = [part for part in parts if part.get("type") == "text" and not part.get("synthetic")]
    said = [text_part(part["text"]) for part in texts if part.get("text")]
    calls = [part for part in parts if part.get("type") == "tool"]
    said += [call_part(c.get("callID"), c.get("tool"), mapping_in(c, "state").get("input")) for c in calls]
    return entry_said(id, role, said, at)


# --- Gemini CLI


def read_gemini(path: Path, session: str, offset: int) -> Iterator[TranscriptRow]:
    """
    The rows of a Gemini CLI transcript. A message is written again once its calls are known, so the last row of an id
    counts.
    """
    is_persons = first_row(path).get("kind") in (None, "main")
    rows: dict[object, TranscriptRow] = {}
    for start, end, row in json_rows(path, offset):
        id = said_text(row.get("id")) or start
        if id in rows:
            rows[start] = TranscriptRow(rows[id].start, rows[id].end)
            del rows[id]
        rows[id] = TranscriptRow(
            start, end, gemini_entry(row) if is_persons else None, is_cut(path, start, row)
        )
    return iter(sorted(rows.values(), key=lambda row: row.start))


def is_cut(path: Path, start: int, row: Mapping[str, Any]) -> bool:
    """
    Return whether the row at *start* replaces the conversation by a shorter conversation.

    True if the last message in the row has a new id. When a client only resumes a session, it writes the conversation
    again with the old ids: False.
    """
    messages = mapping_in(row, "$set").get("messages")
    if not isinstance(messages, list) or len(messages) < 2 or not isinstance(messages[-1], dict):
        return False
    with path.open("rb") as file:
        return str(messages[-1].get("id")).encode() not in file.read(start)


def gemini_entry(row: Mapping[str, Any]) -> JsonObject | None:
    id, at = row.get("id"), row.get("timestamp")
    if row.get("type") == "user":
        parts = parts_of(row.get("displayContent", row.get("content")))
        texts = [str(part["text"]) for part in parts if part.get("text")]
        return entry_said(id, "user", [text_part(t) for t in texts if not t.startswith("<hook_context>")], at)
    if row.get("type") == "gemini":
        said = [text_part(row["content"])] if row.get("content") else []
        calls = objects_in(row, "toolCalls")
        said += [call_part(call.get("id"), call.get("name"), call.get("args")) for call in calls]
        return entry_said(id, "assistant", said, at)
    return None
