"""
A session and its entries, in the form that the gateway's own reader gives them; whose session a file holds; its lines.

Not here: cleaning a message (message/drop.py).
"""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import BadInput
from ..identity import identity_of_session, says_owner
from ..message.drop import to_epoch_ms
from ..message.envelope import is_from_gateway

# --- numbered lines of a file, compressed or not

JsonObject = dict[str, Any]
ZSTD = b"\x28\xb5\x2f\xfd"
SQLITE = b"SQLite format 3\0"
NOT_TEXT = re.compile("[\udc80-\udcff]")
CONVERT = "is not UTF-8; convert the file, as with `iconv -f CP1252 -t UTF-8`, and import it again"


@dataclass(slots=True)
class ReadingProgress:
    """How far a reading is, in bytes of the files, and what it could not read, as "file:line: why"."""

    total: int = 0
    done: int = 0
    skipped: list[str] = field(default_factory=list)
    unsaid: int = 0  # lines that are instructions to a model, and nobody's words


def numbered_lines(path: Path, reading: ReadingProgress | None = None) -> Iterator[tuple[int, str]]:
    """
    Numbered lines, out of zstd if need be, while *reading* counts. Raises BadInput for broken zstd.

    Bytes that are no text come as the lower surrogates that `NOT_TEXT` finds.
    """
    before = reading.done if reading else 0
    with path.open("rb") as raw:
        start = raw.read(len(ZSTD))
        packed = start == ZSTD
        raw.seek(0)
        plain: Any = raw
        if packed:
            import zstandard

            plain = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
        try:
            with io.TextIOWrapper(plain, encoding_of(start), "surrogateescape") as text:
                for number, line in enumerate(text, 1):
                    if reading:
                        reading.done = before + raw.tell()
                    yield number, line
        except UnicodeDecodeError as e:  # of UTF-16, cut off in the middle of a character
            raise BadInput(f"{path}: is damaged: {e}") from e
        except Exception as e:
            if type(e).__name__ != "ZstdError":  # zstandard is imported only where it is needed
                raise
            raise BadInput(f"{path}: broken zstd: {e}") from e
    if reading:
        reading.done = before + path.stat().st_size


def encoding_of(start: bytes) -> str:
    """How a file that begins like this is encoded; Windows writes UTF-16, with its mark or without."""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" in start:
        return "utf-16-le" if start[1:2] == b"\0" else "utf-16-be"
    return "utf-8-sig"


def parsed_object(line: str) -> JsonObject | None:
    """The object on a line, or None."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def json_objects(path: Path, reading: ReadingProgress) -> Iterator[tuple[int, JsonObject]]:
    """The objects of a JSONL file; what is none is reported."""
    try:
        for number, line in numbered_lines(path, reading):
            if NOT_TEXT.search(line):
                reading.skipped.append(f"{path}:{number}: {CONVERT}")
            elif value := parsed_object(line):
                yield number, value
            elif line.strip():
                reading.skipped.append(f"{path}:{number}: no JSON object")
    except BadInput as e:
        reading.skipped.append(str(e))


# --- sessions


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
