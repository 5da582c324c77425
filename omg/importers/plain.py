"""
JSONL of role, content and timestamp, one message a line. A line without a time is reported and left out.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..errors import BadInput
from ..identity import identity_of_session
from .entries import JsonObject, ReadingProgress, Session, Sessions, json_objects, key_of, said_epoch_ms

ROLES = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "bot", "model", "agent"), "assistant"),
    **dict.fromkeys(("tool", "toolResult", "function"), "toolResult"),
}

UNSAID = ("system", "developer")


def read_plain(path: Path, since: int, reading: ReadingProgress) -> Sessions:
    """
    Lines of role, content, timestamp; also of speaker or name, session, id, tool_calls, tool_call_id.

    Lines that name no session are one of their file's own; two files may have the same name.
    """
    for session, said in itertools.groupby(plain_messages(path, reading), key=lambda pair: pair[0]):
        yield session, (entry for _, entry in said)


def plain_messages(path: Path, reading: ReadingProgress) -> Iterator[tuple[Session, JsonObject]]:
    """Each message as an entry, and the session it belongs to; what is none is reported."""
    alike: Counter[str] = Counter()
    place = hashlib.blake2b(str(path.resolve()).encode("utf-8", "replace"), digest_size=2).hexdigest()
    for number, line in json_objects(path, reading):
        role, at = ROLES.get(str(line.get("role"))), said_epoch_ms(line.get("timestamp"))
        if role is None or at is None or not isinstance(line.get("content"), str | list | None):
            if line.get("role") in UNSAID:
                reading.unsaid += 1
            else:
                reading.skipped.append(
                    f"{path}:{number}: needs a role, a content and a timestamp (ISO, s, ms)"
                )
            continue
        label = str(line.get("session") or path.stem)
        own = label if line.get("session") else f"{label}-{place}"
        key = label if label.startswith("agent:") else key_of(own)
        if identity_of_session(key) is None:
            reading.skipped.append(f"{path}:{number}: a session of nobody's memory")
            continue
        yield Session(key, label, key.split(":")[1]), plain_entry(line, role, at, alike)


def plain_entry(line: JsonObject, role: str, at: int, alike: Counter[str]) -> JsonObject:
    """A plain line as an entry. *alike* counts equal lines: each has its own id, the same every time."""
    speaker, content, id = line.get("speaker") or line.get("name"), line.get("content"), line.get("id")
    if id is None:
        what = json.dumps([line.get("session"), role, at, content], ensure_ascii=False, sort_keys=True)
        alike[what] += 1
        number = f"{what}{alike[what]}".encode("utf-8", "replace")
        id = "import-" + hashlib.blake2b(number, digest_size=12).hexdigest()
    else:
        # Every export begins with 1, and many call it m1: so who, where, when and what belong to the id.
        what = json.dumps([line.get("session"), role, at, content, id], ensure_ascii=False, sort_keys=True)
        id = f"{id}-{hashlib.blake2b(what.encode('utf-8', 'replace'), digest_size=6).hexdigest()}"
    message: JsonObject = {"role": role, "content": content or "", "timestamp": at}
    if role == "toolResult":
        message |= {"toolCallId": line.get("tool_call_id"), "toolName": line.get("name")}
    elif speaker:
        message["__openclaw"] = {"senderName": speaker}
    if isinstance(line.get("tool_calls"), list):
        parts = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
        message["content"] = [
            *parts,
            *(tool_call(call) for call in line["tool_calls"] if isinstance(call, dict)),
        ]
    return {"entryId": str(id), "createdAt": at, "message": message}


def message_entries(messages: Iterable[Mapping[str, Any]], session: str, now_ms: int) -> list[JsonObject]:
    """
    A program's messages as entries, in their order; instructions to a model are left out.

    One with an `id` is known by that, in its session; one with a timestamp alone by what was said when. One with
    neither is said now. Raises BadInput, naming the first that is no message, before any is taken.
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
        last = max(last, at)  # two that are said now and say the same are two
        entry = plain_entry({**given, "session": session}, ROLES[role], at, alike)
        if given.get("id") is not None:
            digest = hashlib.blake2b(session.encode("utf-8", "replace"), digest_size=6).hexdigest()
            entry["entryId"] = f"{given['id']}-{digest}"
        entries.append(entry)
    return entries


def tool_call(call: JsonObject) -> JsonObject:
    """A tool call as OpenAI writes it, as OpenClaw does."""
    made = call["function"] if isinstance(call.get("function"), dict) else call
    return {
        "type": "toolCall",
        "id": call.get("id"),
        "name": made.get("name"),
        "arguments": made.get("arguments"),
    }
