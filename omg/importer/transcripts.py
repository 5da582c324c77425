"""
Conversations as they lie on disk: sessions of entries, as the gateway's own reader would hand them over.

- OpenClaw session JSONL, also archived, also zstd
- the live database of an OpenClaw agent, read-only, beside a running gateway
- JSONL of role, content, timestamp (and speaker, session, id)

What is made of them is importer.py's business, and their cleaning turn.py's. What a line does not tell is not
invented: one without a time is reported. Its one rule: nothing is left out silently.
"""

from __future__ import annotations

import codecs
import hashlib
import io
import json
import re
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import identity
from ..errors import BadInput
from ..turn import milliseconds
from ..turn.envelope import from_gateway

Json = dict[str, Any]

SCHEMA = 23  # PRAGMA user_version of an agent database of OpenClaw 2026.9
ROWS = 500  # read at a time: a reader that stays keeps the gateway from folding its log into the database
DAY_MS = 86_400_000
ZSTD = b"\x28\xb5\x2f\xfd"
SQLITE = b"SQLite format 3\0"
NOT_TEXT = re.compile("[\udc80-\udcff]")
CONVERT = "is not UTF-8; convert the file, as with `iconv -f CP1252 -t UTF-8`, and import it again"
ACCEPTED = (
    "OpenClaw session JSONL (also .zst), an OpenClaw agent database, JSONL of role, content and timestamp"
)


@dataclass(frozen=True, slots=True)
class Session:
    """What the messages of a session have in common."""

    key: str
    id: str
    agent: str
    workspace: str = ""


@dataclass(slots=True)
class Reading:
    """How far a reading is, in bytes of the files, and what it could not read, as "file:line: why"."""

    total: int = 0
    done: int = 0
    skipped: list[str] = field(default_factory=list)
    unsaid: int = 0  # lines that are instructions to a model, and nobody's words


Sessions = Iterator[tuple[Session, Iterable[Json]]]  # entries are to be taken before the next session is
Reader = Callable[[Path, int, Reading], Sessions]  # a path, and from when on, in ms


def reader(path: Path) -> Reader:
    """What reads *path*, judged by its content. Raises BadInput, naming what is accepted."""
    try:
        with path.open("rb") as file:
            if file.read(len(SQLITE)) == SQLITE:
                check(path)
                return read_database
        known = next((how for _, line in lines(path) if (how := reader_of(loaded(line) or {}))), None)
    except OSError as e:
        raise BadInput(f"{path}: {e.strerror or e}; what can be imported: {ACCEPTED}") from e
    if known:
        return known
    raise BadInput(f"{path}: not a conversation; what can be imported: {ACCEPTED}")


def reader_of(line: Json) -> Reader | None:
    """What reads a file that has this line; None if the line does not tell. Plain lines may have a type, too."""
    if "role" in line and "content" in line:
        return read_plain
    return read_openclaw if isinstance(line.get("type"), str) else None


def lines(path: Path, reading: Reading | None = None) -> Iterator[tuple[int, str]]:
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


def loaded(line: str) -> Json | None:
    """The object on a line, or None."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def objects(path: Path, reading: Reading) -> Iterator[tuple[int, Json]]:
    """The objects of a JSONL file; what is none is reported."""
    try:
        for number, line in lines(path, reading):
            if NOT_TEXT.search(line):
                reading.skipped.append(f"{path}:{number}: {CONVERT}")
            elif value := loaded(line):
                yield number, value
            elif line.strip():
                reading.skipped.append(f"{path}:{number}: no JSON object")
    except BadInput as e:
        reading.skipped.append(str(e))


# --- OpenClaw's JSONL


def read_openclaw(path: Path, since: int, reading: Reading) -> Sessions:
    """A transcript: a `session` line, then messages among other events."""
    session = session_of(path)
    if session is None:
        reading.done += path.stat().st_size
        reading.skipped.append(f"{path}: no person speaks in it")
        return

    def entries() -> Iterator[Json]:
        for number, event in objects(path, reading):
            if entry := entry_of(event, number):
                yield entry
            elif not isinstance(event.get("type"), str) or event["type"] == "message":
                reading.skipped.append(f"{path}:{number}: not an event of a transcript")

    yield session, entries()


def entry_of(event: Json, seq: int) -> Json | None:
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
    people: list[Json] = []
    try:
        for _, line in lines(path):
            event = loaded(line) or {}
            if event.get("type") == "session":
                id, workspace = str(event.get("id") or id), str(event.get("cwd") or "")
                key = str(event.get("sessionKey") or "")
            elif (entry := entry_of(event, 0)) and entry["message"].get("role") == "user":
                people += person(entry["message"])
    except BadInput:
        return None
    key = key or stored_key(path.parent / "sessions.json", id)
    if not key:
        ours = all(meta.get("senderIsOwner") is True or not meta.get("senderId") for meta in people)
        key = key_of(id, agent) if ours else f"agent:{agent}:session:{id}"
    return Session(key, id, agent, workspace) if people and identity.of(key) else None


def key_of(session: str, agent: str = "main") -> str:
    """The key of an imported *session* of the owner's: a lane of the main session, so that theirs is its memory."""
    return f"agent:{agent}:main:thread:import-{session.replace('%', '%25').replace(':', '%3A')}"


def person(message: Json) -> list[Json]:
    """What a user's message says of its sender, in a list; an empty one if the gateway wrote it."""
    provenance, meta, content = message.get("provenance"), message.get("__openclaw"), message.get("content")
    text = content if isinstance(content, str) else ""
    if isinstance(content, list):
        text = next((str(part.get("text") or "") for part in content if isinstance(part, dict)), "")
    outside = not isinstance(provenance, dict) or provenance.get("kind") == "external_user"
    return [meta if isinstance(meta, dict) else {}] if outside and not from_gateway(text) else []


def stored_key(store: Path, id: str) -> str:
    """The session key of session *id* in an old `sessions.json`, or ""."""
    try:
        sessions = json.loads(store.read_text(encoding="utf-8"))
        return next((k for k, v in sessions.items() if isinstance(v, dict) and v.get("sessionId") == id), "")
    except (OSError, ValueError, AttributeError):
        return ""


# --- plain JSONL

ROLES = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "bot", "model", "agent"), "assistant"),
    **dict.fromkeys(("tool", "toolResult", "function"), "toolResult"),
}
UNSAID = ("system", "developer")


def read_plain(path: Path, since: int, reading: Reading) -> Sessions:
    """
    Lines of role, content, timestamp; also of speaker or name, session, id, tool_calls, tool_call_id.

    Lines that name no session are one of their file's own; two files may have the same name.
    """
    alike: Counter[str] = Counter()
    place = hashlib.blake2b(str(path.resolve()).encode("utf-8", "replace"), digest_size=2).hexdigest()
    session, entries = Session("", "", ""), list[Json]()
    for number, line in objects(path, reading):
        role, at = ROLES.get(str(line.get("role"))), epoch_ms(line.get("timestamp"))
        if role is None or at is None or not isinstance(line.get("content"), str | list | None):
            if line.get("role") in UNSAID:
                reading.unsaid += 1
            else:
                reading.skipped.append(
                    f"{path}:{number}: needs a role, a content and a timestamp (ISO, s, ms)"
                )
            continue
        label = str(line.get("session") or path.stem)
        if entries and label != session.id:
            yield session, entries
            entries = []
        own = label if line.get("session") else f"{label}-{place}"
        key = label if label.startswith("agent:") else key_of(own)
        if identity.of(key) is None:
            reading.skipped.append(f"{path}:{number}: a session of nobody's memory")
            continue
        session = Session(key, label, key.split(":")[1])
        entries.append(plain_entry(line, role, at, path.stem, alike))
    yield session, entries


def plain_entry(line: Json, role: str, at: int, stem: str, alike: Counter[str]) -> Json:
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
    message: Json = {"role": role, "content": content or "", "timestamp": at}
    if role == "toolResult":
        message |= {"toolCallId": line.get("tool_call_id"), "toolName": line.get("name")}
    elif speaker:
        message["__openclaw"] = {"senderName": speaker}
    if isinstance(line.get("tool_calls"), list):
        parts = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
        message["content"] = [
            *parts,
            *(called(call) for call in line["tool_calls"] if isinstance(call, dict)),
        ]
    return {"entryId": str(id), "createdAt": at, "message": message}


def called(call: Json) -> Json:
    """A tool call as OpenAI writes it, as OpenClaw does."""
    made = call["function"] if isinstance(call.get("function"), dict) else call
    return {
        "type": "toolCall",
        "id": call.get("id"),
        "name": made.get("name"),
        "arguments": made.get("arguments"),
    }


def epoch_ms(value: object) -> int | None:
    """Milliseconds, of ISO text or of seconds or milliseconds since the epoch; None if it is none of them."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return milliseconds(value)
    if not 0 < number < 1e14:
        return None
    return round(number * 1000 if number < 1e11 else number)  # 1e11 ms is 1973, 1e11 s the year 5138


# --- the live database


@contextmanager
def database(path: Path) -> Iterator[sqlite3.Connection]:
    """*path*, read-only; where its log cannot be shared, as on a read-only disk, a copy of both."""
    with tempfile.TemporaryDirectory(prefix="omg-import-") as folder:
        try:
            db = connected(f"{path.absolute().as_uri()}?mode=ro")
        except sqlite3.OperationalError:
            for file in (path, path.with_name(path.name + "-wal")):
                if file.exists():
                    shutil.copy(file, folder)
            db = connected((Path(folder) / path.name).as_uri())
        with closing(db):
            yield db


def connected(uri: str) -> sqlite3.Connection:
    """A connection that has been tried: sqlite opens a file at its first statement."""
    db = sqlite3.connect(uri, uri=True, timeout=10)
    try:
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        db.close()
        raise
    return db


def check(path: Path) -> None:
    """Raises BadInput unless *path* is an agent database of the version OMG knows."""
    try:
        with database(path) as db:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.DatabaseError as e:
        raise BadInput(f"{path}: cannot be read as an OpenClaw database: {e}") from e
    if not {"transcript_events", "session_windows"} <= tables:
        raise BadInput(f"{path}: no agent database of OpenClaw's (it has no transcript_events)")
    if version != SCHEMA:
        raise BadInput(
            f"{path}: transcripts of version {version}; this OMG reads {SCHEMA}, that of OpenClaw 2026.9. "
            "Update the older of the two; what is said from now on is remembered without this"
        )


def read_database(path: Path, since: int, reading: Reading) -> Sessions:
    """Every session of an agent's database that is somebody's, oldest first."""
    before, size, agent = reading.done, path.stat().st_size, path.parent.parent.name
    with database(path) as db:
        windows = db.execute(
            "SELECT session_id, session_key FROM session_windows"
            " WHERE hook_external_content_source IS NULL ORDER BY created_at, session_id"
        ).fetchall()
        for n, (id, key) in enumerate(windows):
            reading.done = before + size * n // len(windows)
            if identity.of(key):
                yield Session(key, id, agent), stored(db, id, path, since, reading)
    reading.done = before + size


def stored(db: sqlite3.Connection, id: str, path: Path, since: int, reading: Reading) -> Iterator[Json]:
    """The messages of session *id*. A row is written after its message was said: older rows need no look."""
    import zstandard

    packed = zstandard.ZstdDecompressor()
    after = -1
    while rows := db.execute(
        "SELECT seq, event_json, event_zstd, event_utf8_bytes FROM transcript_events"
        " WHERE session_id = ? AND seq > ? AND created_at >= ? ORDER BY seq LIMIT ?",
        (id, after, since - DAY_MS, ROWS),
    ).fetchall():
        for seq, text, blob, size in rows:
            try:
                event = json.loads(text or packed.decompress(blob, max_output_size=size).decode())
                entry = entry_of(event, seq)
            except (ValueError, TypeError, AttributeError, zstandard.ZstdError) as e:
                reading.skipped.append(f"{path}: session {id}, row {seq}: {e}")
                continue
            if entry:
                yield entry
        after = rows[-1][0]
