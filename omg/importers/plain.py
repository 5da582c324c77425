"""Reads JSONL of role, content and timestamp, one message a line; also a program's messages, which have the same
form."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..errors import BadInput
from ..identity import identity_of_session
from .drops import JsonObject, ReadingProgress, Session, Sessions, digest, json_objects, key_of, said_epoch_ms

ROLES = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "bot", "model", "agent"), "assistant"),
    **dict.fromkeys(("tool", "toolResult", "function"), "toolResult"),
}
UNSAID = ("system", "developer")
TO_A_MODEL = "instructions to a model"


def read_plain(path: Path, since: int, reading: ReadingProgress) -> Sessions:
    """
    Yield the sessions of lines with role, content and timestamp, and optionally speaker or name, session, id,
    tool_calls and tool_call_id.

    Lines without a session form one session of their file. Files of the same name give different sessions.
    """
    for session, said in itertools.groupby(plain_messages(path, reading), key=lambda pair: pair[0]):
        yield session, (entry for _, entry in said)


def plain_messages(path: Path, reading: ReadingProgress) -> Iterator[tuple[Session, JsonObject]]:
    """Yield each message as an entry, with its session. Lines that are no message are reported in *reading*."""
    alike: Counter[str] = Counter()
    place = digest(str(path.resolve()), 2)
    for number, line in json_objects(path, reading):
        if line.get("role") in UNSAID:
            reading.left_out[TO_A_MODEL] += 1
            continue
        role, at = ROLES.get(str(line.get("role"))), said_epoch_ms(line.get("timestamp"))
        if role is None or at is None or not isinstance(line.get("content"), str | list | None):
            reading.skipped.append(f"{path}:{number}: needs a role, a content and a timestamp (ISO, s, ms)")
            continue
        label = str(line.get("session") or path.stem)
        own = label if line.get("session") else f"{label}-{place}"
        key = label if label.startswith("agent:") else key_of(own)
        if identity_of_session(key) is None:
            reading.skipped.append(
                f"{path}:{number}: this session belongs to no person and no project, so no memory takes it in"
            )
            continue
        yield Session(key, label, key.split(":")[1]), plain_entry(line, role, at, alike)


def plain_entry(line: Mapping[str, Any], role: str, at: int, alike: Counter[str]) -> JsonObject:
    """
    Turn a plain line into an entry whose id is the same at every import. *alike* counts equal lines, so that each of
    them has its own id.
    """
    speaker, content, id = line.get("speaker") or line.get("name"), line.get("content"), line.get("id")
    what = [line.get("session"), role, at, content]
    if id is None:
        text = json.dumps(what, ensure_ascii=False, sort_keys=True)
        alike[text] += 1
        id = f"import-{digest(f'{text}{alike[text]}', 12)}"
    else:
        # Many exports number their messages from 1, so the id alone does not tell two messages apart.
        id = f"{id}-{digest(json.dumps([*what, id], ensure_ascii=False, sort_keys=True), 6)}"
    message: JsonObject = {"role": role, "content": content or "", "timestamp": at}
    if role == "toolResult":
        message |= {"toolCallId": line.get("tool_call_id"), "toolName": line.get("name")}
    elif speaker:
        message["__openclaw"] = {"senderName": speaker}
    if isinstance(line.get("tool_calls"), list):
        parts = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
        calls = [tool_call(call) for call in line["tool_calls"] if isinstance(call, dict)]
        message["content"] = [*parts, *calls]
    return {"entryId": id, "createdAt": at, "message": message}


def message_entries(messages: Iterable[Mapping[str, Any]], session: str, now_ms: int) -> list[JsonObject]:
    """
    Turn a program's messages into entries, in the same order. Instructions to a model (system messages) are left
    out.

    - A message with an `id` is recognised later by this `id` within the session.
    - Any other message is recognised by its text and time.
    - A message without a timestamp counts as said now.

    Raises BadInput if any message is malformed; the error says which.
    """
    alike: Counter[str] = Counter()
    entries, last = list[JsonObject](), 0
    for number, given in enumerate(messages):
        role, content, when = str(given.get("role")), given.get("content"), given.get("timestamp")
        if role in UNSAID:
            continue
        if isinstance(when, datetime):
            when = (when if when.tzinfo else when.replace(tzinfo=UTC)).isoformat()
        at = max(now_ms, last + 1) if when is None else said_epoch_ms(when)
        if role not in ROLES or not isinstance(content, str | list | None) or at is None:
            raise BadInput(
                f"message {number}: needs a `role` ({', '.join(ROLES)}), a `content` (text, or a list of parts) and, "
                "if it has one, a `timestamp` (ISO, seconds or milliseconds); none of the messages was taken"
            )
        last = max(last, at)  # two equal messages without a timestamp stay two messages
        entry = plain_entry({**given, "session": session}, ROLES[role], at, alike)
        if given.get("id") is not None:
            entry["entryId"] = f"{given['id']}-{digest(session, 6)}"
        entries.append(entry)
    return entries


def tool_call(call: JsonObject) -> JsonObject:
    """Turn a tool call from OpenAI's form into OpenClaw's."""
    made = call["function"] if isinstance(call.get("function"), dict) else call
    return {
        "type": "toolCall",
        "id": call.get("id"),
        "name": made.get("name"),
        "arguments": made.get("arguments"),
    }
