"""
A session and its entries, in the form that the gateway's own reader gives them; and whose session a file holds.

Not here: cleaning a message (message/drop.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..errors import BadInput
from ..identity import identity_of_session, says_owner
from ..message.drop import to_epoch_ms
from ..message.envelope import is_from_gateway
from .lines import JsonObject, ReadingProgress, numbered_lines, parsed_object


@dataclass(frozen=True, slots=True)
class Session:
    """What the messages of a session have in common."""

    key: str
    id: str
    agent: str
    workspace: str = ""


# The entries of one are to be taken before the next session is.
Sessions = Iterator[tuple[Session, Iterable[JsonObject]]]

Reader = Callable[[Path, int, ReadingProgress], Sessions]  # a path, and from when on, in ms


def entry_of(event: JsonObject, seq: int) -> JsonObject | None:
    """An event as the entry that the gateway's own reader makes of it; None if it is no message."""
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
    Whose transcript a file holds; None if no person speaks in it.

    A transcript does not name its session key; the store beside it may (`sessions.json`). Else it
    has one of its own: where all who speak are the owner, in their memory; where not, in one that nobody else has.
    """
    id, key, workspace = path.name.split(".")[0], "", ""
    agent = path.parent.parent.name if path.parent.parent.parent.name == "agents" else "main"
    people: list[JsonObject] = []
    try:
        for _, line in numbered_lines(path):
            event = parsed_object(line) or {}
            if event.get("type") == "session":
                id, workspace = str(event.get("id") or id), str(event.get("cwd") or "")
                key = str(event.get("sessionKey") or "")
            elif (entry := entry_of(event, 0)) and entry["message"].get("role") == "user":
                people += senders(entry["message"])
    except BadInput:
        return None
    key = key or stored_key(path.parent / "sessions.json", id)
    if not key:
        ours = all(says_owner(meta) or not meta.get("senderId") for meta in people)
        key = key_of(id, agent) if ours else f"agent:{agent}:session:{id}"
    return Session(key, id, agent, workspace) if people and identity_of_session(key) else None


def key_of(session: str, agent: str = "main") -> str:
    """The key of an imported *session* of the owner's: a lane of the main session, so that theirs is its memory."""
    return f"agent:{agent}:main:thread:import-{session.replace('%', '%25').replace(':', '%3A')}"


def senders(message: JsonObject) -> list[JsonObject]:
    """What a user's message says of its sender, in a list; an empty one if the gateway wrote it."""
    provenance, meta, content = message.get("provenance"), message.get("__openclaw"), message.get("content")
    text = content if isinstance(content, str) else ""
    if isinstance(content, list):
        text = next((str(part.get("text") or "") for part in content if isinstance(part, dict)), "")
    outside = not isinstance(provenance, dict) or provenance.get("kind") == "external_user"
    return [meta if isinstance(meta, dict) else {}] if outside and not is_from_gateway(text) else []


def stored_key(store: Path, id: str) -> str:
    """The session key of session *id* in an old `sessions.json`, or ""."""
    try:
        sessions = json.loads(store.read_text(encoding="utf-8"))
        return next((k for k, v in sessions.items() if isinstance(v, dict) and v.get("sessionId") == id), "")
    except (OSError, ValueError, AttributeError):
        return ""


def said_epoch_ms(value: object) -> int | None:
    """Milliseconds, of ISO text or of seconds or milliseconds since the epoch; None if it is none of them."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return to_epoch_ms(value)
    if not 0 < number < 1e14:
        return None
    return round(number * 1000 if number < 1e11 else number)  # 1e11 ms is 1973, 1e11 s the year 5138
