"""
A client's transcript, from an offset on, as entries of a drop: what the person typed, and what the assistant said and
called.

What tools returned is left out: it is long, and nobody's words. So is everything that the client wrote in the person's
place: summaries, commands, reminders, sub-agents, what hooks added. A row of a kind that is not known is no message.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .declared import CLAUDE_CODE

ARGUMENT_CHARS = 300  # of one argument of a call: the name and the target say what was done
LONGEST_LINE = 64_000_000

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """A row from *start* to *end* in the transcript; *entry* None: nobody's words. *begins*: the person's own."""

    start: int
    end: int
    entry: Entry | None = None

    @property
    def begins(self) -> bool:
        return self.entry is not None and self.entry["message"]["role"] == "user"


Reader = Callable[[Path, str, int], Iterator[Row]]  # the transcript, the session, where to begin


def json_rows(path: Path, offset: int) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """The JSON lines of *path* from *offset* on; a last line that is still being written is left."""
    with path.open("rb") as file:
        file.seek(offset)
        while (line := file.readline(LONGEST_LINE)).endswith(b"\n"):
            end = offset + len(line)
            try:
                value = json.loads(line)
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


READERS: dict[str, Reader] = {CLAUDE_CODE.name: read_claude_code}
