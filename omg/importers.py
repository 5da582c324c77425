"""
Imports old conversations: reads their files, cuts them into drops, and takes these in through the spool.

The content of a file decides which reader it has:

    read_openclaw   a session transcript of OpenClaw, JSONL, also compressed with zstd
    read_database   the live database of an OpenClaw agent, read-only, beside a running gateway
    read_plain      JSONL of role, content and timestamp, one message a line

A line that cannot be read is reported in `ReadingProgress.skipped`; the others are read. Importing again adds nothing:
messages keep their ids, so a message that a hook captured, and that an export and the live database hold too, is taken
in once.
"""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import os
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .config import configured, configured_agents, default_home, own_memory
from .errors import BadInput, NotFound
from .graph.state import parsed_object, read_object, write_private
from .identity import Identity, identity_of_session, says_owner
from .inbox import agents_notes, line_messages, put_loose
from .message.drop import (
    ARGUMENT_CHARS,
    TOOL_CHARS,
    SaidMessage,
    content_of,
    is_own_prompt,
    read_drop,
    to_epoch_ms,
)
from .message.turn import Turn
from .text.tokens import count_tokens

if TYPE_CHECKING:
    from .config import Config
    from .worker.intake import Intake

ACCEPTED = (
    "OpenClaw session JSONL (also .zst), an OpenClaw agent database, JSONL of role, content and timestamp;"
    " text in UTF-8"
)
ZSTD = b"\x28\xb5\x2f\xfd"
SQLITE = b"SQLite format 3\0"

JsonObject = dict[str, Any]


@dataclass(slots=True)
class ReadingProgress:
    """How many bytes of the files are read, and what was skipped, as "file:line: why"."""

    total: int = 0
    done: int = 0
    skipped: list[str] = field(default_factory=list)
    unsaid: int = 0  # lines that instruct a model: nobody said them


@dataclass(frozen=True, slots=True)
class Session:
    """What all messages of a session share."""

    key: str
    id: str
    agent: str
    workspace: str = ""


# Read the entries of a session before asking for the next session.
Sessions = Iterator[tuple[Session, Iterable[JsonObject]]]

Reader = Callable[[Path, int, ReadingProgress], Sessions]  # a path, and from when on, in ms


def reader_for(path: Path) -> Reader:
    """The reader of *path*, by its content. Raises BadInput, naming what is accepted."""
    try:
        with path.open("rb") as file:
            if file.read(len(SQLITE)) == SQLITE:
                check_database(path)
                return read_database
        for _, line in numbered_lines(path):
            event = parsed_object(line) or {}
            if "role" in event and "content" in event:  # a plain line may have a type, too
                return read_plain
            if isinstance(event.get("type"), str):
                return read_openclaw
    except OSError as e:
        raise BadInput(f"{path}: {e.strerror or e}; what can be imported: {ACCEPTED}") from e
    raise BadInput(f"{path}: not a conversation; what can be imported: {ACCEPTED}")


def key_of(session: str, agent: str = "main") -> str:
    """The key of an imported *session* of the owner's. It is a thread of the main session, so it has the owner's memory."""
    return f"agent:{agent}:main:thread:import-{session.replace('%', '%25').replace(':', '%3A')}"


# --- lines of a file

NOT_TEXT = re.compile("[\udc80-\udcff]")
CONVERT = "is not UTF-8; convert the file, as with `iconv -f CP1252 -t UTF-8`, and import it again"


def numbered_lines(path: Path, reading: ReadingProgress | None = None) -> Iterator[tuple[int, str]]:
    """
    The lines of *path* with their numbers, decompressed; counts the bytes in *reading*. Raises BadInput for broken zstd.

    Bytes that are not text become lone surrogates, which `NOT_TEXT` finds.
    """
    before = reading.done if reading else 0
    with path.open("rb") as raw:
        start = raw.read(len(ZSTD))
        raw.seek(0)
        plain: Any = raw
        if start == ZSTD:
            import zstandard

            plain = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
        try:
            with io.TextIOWrapper(plain, "utf-8-sig", "surrogateescape") as text:
                for number, line in enumerate(text, 1):
                    if reading:
                        reading.done = before + raw.tell()
                    yield number, line
        except Exception as e:
            if type(e).__name__ != "ZstdError":  # zstandard is imported only where it is needed
                raise
            raise BadInput(f"{path}: broken zstd: {e}") from e
    if reading:
        reading.done = before + path.stat().st_size


def json_objects(path: Path, reading: ReadingProgress) -> Iterator[tuple[int, JsonObject]]:
    """The objects of a JSONL file with their line numbers; other lines are reported."""
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


# --- OpenClaw's session JSONL


def read_openclaw(path: Path, since: int, reading: ReadingProgress) -> Sessions:
    """One session: a `session` line, then messages among other events."""
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
    The session of a transcript; None if no person speaks in it.

    Some transcripts name their session key, or the `sessions.json` beside them does. Otherwise the session belongs to
    the owner if nobody else speaks in it, and else to nobody.
    """
    id, key, workspace = path.name.split(".")[0], "", ""
    agent = path.parent.parent.name if path.parent.parent.parent.name == "agents" else "main"
    senders: list[JsonObject] = []
    try:
        for _, line in numbered_lines(path):
            event = parsed_object(line) or {}
            if event.get("type") == "session":
                id, workspace = str(event.get("id") or id), str(event.get("cwd") or "")
                key = str(event.get("sessionKey") or "")
            elif (entry := entry_of(event, 0)) and (sender := sender_of(entry["message"])) is not None:
                senders.append(sender)
    except BadInput:
        pass  # only what stands before the damage is imported; whoever reads the entries names it
    key = key or stored_key(path.parent / "sessions.json", id)
    if not key:
        owned = all(says_owner(sender) or not sender.get("senderId") for sender in senders)
        key = key_of(id, agent) if owned else f"agent:{agent}:session:{id}"
    return Session(key, id, agent, workspace) if senders and identity_of_session(key) else None


def sender_of(message: JsonObject) -> JsonObject | None:
    """What a person's message says about its sender; None if it is no person's message."""
    try:
        said = SaidMessage.model_validate(message)
    except ValueError:
        return None
    return None if said.role != "user" or is_own_prompt(said) else said.meta


def stored_key(store: Path, id: str) -> str:
    """The session key of session *id* in an old `sessions.json`, or ""."""
    sessions = read_object(store).items()
    return next((k for k, v in sessions if isinstance(v, dict) and v.get("sessionId") == id), "")


# --- the live database of an OpenClaw agent

DATABASE_VERSION = 23  # PRAGMA user_version of an agent database of OpenClaw 2026.9
ROWS = 500  # read at a time: while a reader holds on, the gateway cannot fold its log into the database
DAY_LENGTH_MS = 86_400_000


def open_database(path: Path, timeout_s: float = 10) -> closing[sqlite3.Connection]:
    """*path*, read-only, to be used in `with`."""
    return closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=timeout_s))


def check_database(path: Path) -> None:
    """Raises BadInput unless *path* is an agent database of the version that OMG reads."""
    try:
        with open_database(path) as db:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.DatabaseError as e:
        raise BadInput(f"{path}: cannot be read as an OpenClaw database: {e}") from e
    if not {"transcript_events", "session_windows"} <= tables:
        raise BadInput(f"{path}: not an agent database of OpenClaw (it has no transcript_events)")
    if version != DATABASE_VERSION:
        raise BadInput(
            f"{path}: a database of version {version}; this OMG reads {DATABASE_VERSION}, of OpenClaw 2026.9. "
            "Update the older of the two. New conversations are remembered meanwhile"
        )


def read_database(path: Path, since: int, reading: ReadingProgress) -> Sessions:
    """Every session that belongs to somebody, oldest first."""
    before, size, agent = reading.done, path.stat().st_size, path.parent.parent.name
    with open_database(path) as db:
        windows = db.execute(
            "SELECT session_id, session_key FROM session_windows"
            " WHERE hook_external_content_source IS NULL ORDER BY created_at, session_id"
        ).fetchall()
        for n, (id, key) in enumerate(windows):
            reading.done = before + size * n // len(windows)
            if identity_of_session(key):
                yield Session(key, id, agent), stored_messages(db, id, path, since, reading)
    reading.done = before + size


def stored_messages(
    db: sqlite3.Connection, id: str, path: Path, since: int, reading: ReadingProgress
) -> Iterator[JsonObject]:
    """The messages of session *id*. A row is written after its message was said, so older rows are not read."""
    import zstandard

    packed = zstandard.ZstdDecompressor()
    after = -1
    while rows := db.execute(
        "SELECT seq, event_json, event_zstd, event_utf8_bytes FROM transcript_events"
        " WHERE session_id = ? AND seq > ? AND created_at >= ? ORDER BY seq LIMIT ?",
        (id, after, since - DAY_LENGTH_MS, ROWS),
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


# --- JSONL of role, content and timestamp; a program's messages

ROLES = {
    **dict.fromkeys(("user", "human"), "user"),
    **dict.fromkeys(("assistant", "ai", "bot", "model", "agent"), "assistant"),
    **dict.fromkeys(("tool", "toolResult", "function"), "toolResult"),
}
UNSAID = ("system", "developer")


def read_plain(path: Path, since: int, reading: ReadingProgress) -> Sessions:
    """
    Lines of role, content and timestamp; also of speaker or name, session, id, tool_calls and tool_call_id.

    Lines without a session share one that belongs to their file; two files may have the same name.
    """
    for session, said in itertools.groupby(plain_messages(path, reading), key=lambda pair: pair[0]):
        yield session, (entry for _, entry in said)


def plain_messages(path: Path, reading: ReadingProgress) -> Iterator[tuple[Session, JsonObject]]:
    """Each message as an entry with its session; other lines are reported."""
    alike: Counter[str] = Counter()
    place = digest(str(path.resolve()), 2)
    for number, line in json_objects(path, reading):
        if line.get("role") in UNSAID:
            reading.unsaid += 1
            continue
        role, at = ROLES.get(str(line.get("role"))), said_epoch_ms(line.get("timestamp"))
        if role is None or at is None or not isinstance(line.get("content"), str | list | None):
            reading.skipped.append(f"{path}:{number}: needs a role, a content and a timestamp (ISO, s, ms)")
            continue
        label = str(line.get("session") or path.stem)
        own = label if line.get("session") else f"{label}-{place}"
        key = label if label.startswith("agent:") else key_of(own)
        if identity_of_session(key) is None:
            reading.skipped.append(f"{path}:{number}: its session belongs to nobody's memory")
            continue
        yield Session(key, label, key.split(":")[1]), plain_entry(line, role, at, alike)


def plain_entry(line: Mapping[str, Any], role: str, at: int, alike: Counter[str]) -> JsonObject:
    """
    A plain line as an entry, whose id is the same at every import. *alike* counts equal lines, so that each has an id
    of its own.
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
    A program's messages as entries, in their order, without instructions to a model.

    A message with an `id` is known by it within its session; one with only a timestamp, by its text and time. One with
    neither was said now. Raises BadInput, naming the first that is no message, before any is taken.
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
        last = max(last, at)  # two equal messages that are said now stay two
        entry = plain_entry({**given, "session": session}, ROLES[role], at, alike)
        if given.get("id") is not None:
            entry["entryId"] = f"{given['id']}-{digest(session, 6)}"
        entries.append(entry)
    return entries


def digest(text: str, size: int) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=size).hexdigest()


def tool_call(call: JsonObject) -> JsonObject:
    """A tool call in OpenAI's form, in OpenClaw's."""
    made = call["function"] if isinstance(call.get("function"), dict) else call
    return {
        "type": "toolCall",
        "id": call.get("id"),
        "name": made.get("name"),
        "arguments": made.get("arguments"),
    }


def said_epoch_ms(value: object) -> int | None:
    """Milliseconds since the epoch, of ISO text or of a number of seconds or milliseconds; None otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return to_epoch_ms(value)
    if not 0 < number < 1e14:
        return None
    return round(number * 1000 if number < 1e11 else number)  # 1e11 ms is 1973, 1e11 s the year 5138


DROP_TOKENS = 4_000


@dataclass(frozen=True, slots=True)
class Drops:
    """The drops of some files, to be iterated once. `reading` says how much is read and what was skipped."""

    files: tuple[tuple[Path, Reader], ...]
    since_ms: int
    reading: ReadingProgress = field(default_factory=ReadingProgress)

    def __post_init__(self) -> None:
        self.reading.total = sum(path.stat().st_size for path, _ in self.files)

    def __iter__(self) -> Iterator[JsonObject]:
        for path, opened in self.files:
            for session, entries in opened(path, self.since_ms, self.reading):
                yield from drop_chunks(session, entries, self.since_ms)
        self.reading.done = self.reading.total


def read_drops(paths: Sequence[Path], since: datetime | None = None) -> Drops:
    """The drops of *paths*, in that order. Raises BadInput before the first drop if a file has no known form."""
    return Drops(tuple((path, reader_for(path)) for path in paths), _ms(since))


def openclaw_state_drops(state: Path, agent: str | None = None, since: datetime | None = None) -> Drops:
    """
    The drops of every session below an OpenClaw state folder, of all its agents or of *agent*: its live databases, its
    archives, and the JSONL of older versions.

    Raises BadInput if *state* is not a state folder or a database has an unknown version, NotFound if there is no such
    agent.
    """
    agents = sorted(path.name for path in state.glob("agents/*") if path.is_dir())
    if not agents:
        raise BadInput(f"{state}: no OpenClaw state folder (no agents/ in it); set OPENCLAW_STATE_DIR")
    if agent is not None and agent not in agents:
        raise NotFound(f"no agent {agent!r} in {state}; there are: {', '.join(agents)}")
    files: list[tuple[Path, Reader]] = []
    for name in [agent] if agent else agents:
        folder = state / "agents" / name
        database = folder / "agent" / "openclaw-agent.sqlite"
        if database.is_file():
            files.append((database, reader_for(database)))
        files += [
            (path, read_openclaw) for path in sorted(folder.glob("sessions/*.jsonl*")) if path.is_file()
        ]
    return Drops(tuple(files), _ms(since))


def openclaw_drops(config: Config, agent: str | None, since: datetime | None) -> Drops:
    """The same for the OpenClaw whose state folder contains the home, or else for the environment's."""
    state = config.home.parent
    if not (state / "agents").is_dir():
        state = default_home({**os.environ, "OMG_HOME": ""}).parent
    return openclaw_state_drops(state, agent, since)


def _ms(since: datetime | None) -> int:
    return round(since.timestamp() * 1000) if since else 0


def drop_chunks(session: Session, entries: Iterable[JsonObject], since_ms: int = 0) -> Iterator[JsonObject]:
    """
    *entries* in drops of about DROP_TOKENS.

    Cuts where a person begins to speak, if possible, and never between a tool call and its result.
    """
    batch: list[JsonObject] = []
    cost, speaks, waiting = 0, 0, set[str]()  # speaks: where in the batch a person last began
    for entry in entries:
        message = entry["message"]
        if said_ms(entry) < since_ms:
            continue
        more, user = estimated_tokens(message), message.get("role") == "user"
        if user:
            waiting.clear()  # a call that has no result yet will not get one
        while batch and cost + more > DROP_TOKENS and not waiting:
            at = speaks if speaks and not user else len(batch)
            yield make_drop(session, batch[:at])
            batch, speaks = batch[at:], 0
            cost = sum(estimated_tokens(e["message"]) for e in batch)
        if user:
            speaks = len(batch)
        waiting |= {call.id for call in content_of(message.get("content"))[1]}
        waiting.discard(str(message.get("toolCallId") or ""))
        batch.append(entry)
        cost += more
    if batch:
        yield make_drop(session, batch)


def estimated_tokens(message: JsonObject) -> int:
    """About how many tokens a message has after cleaning."""
    text, calls = content_of(message.get("content"))
    said = text[:TOOL_CHARS] if message.get("role") == "toolResult" else text
    return count_tokens(said) + count_tokens("".join(call.arguments[:ARGUMENT_CHARS] for call in calls))


def said_ms(entry: JsonObject) -> int:
    """When the message was said, in ms; 0 if unknown."""
    return to_epoch_ms(entry["message"].get("timestamp")) or to_epoch_ms(entry.get("createdAt")) or 0


def make_drop(session: Session, entries: list[JsonObject]) -> JsonObject:
    return {
        "v": 1,
        "reason": "import",
        "agentId": session.agent,
        "sessionKey": session.key,
        "sessionId": session.id,
        "workspaceDir": session.workspace,
        "entries": entries,
    }


def drop_name(drop: JsonObject) -> str:
    """The name of a drop's file. It is the same at every import; names sort by the time of the first message."""
    first, last = drop["entries"][0], drop["entries"][-1]
    what = json.dumps([drop["sessionKey"], first.get("entryId"), last.get("entryId")])
    return f"{said_ms(first):015d}-{digest(what, 12)}"


# --- take drops in


def import_drops(
    intake: Intake, drops: Drops, *, dry_run: bool = False, progress: Callable[[int], None] = lambda n: None
) -> JsonObject:
    """
    Take *drops* in. A drop without a new message changes nothing; with *dry_run* nothing is changed.

    *progress* is called with the bytes read since its last call. Returns the number of `messages`, of `new` ones and of
    `sessions`, what was `skipped`, and how many entries were `left_out`: instructions to a model, heartbeats, empty ones.
    """
    messages, new, reported, entries = 0, 0, 0, 0
    sessions: set[tuple[str, str]] = set()
    met: set[str] = set()  # ids that a dry run has counted
    for drop in drops:
        text = json.dumps(drop)
        turn = read_drop(text.encode(), intake.registry.config.identity.members)
        if off := intake.registry.config.switched_off(turn.agent):
            drops.reading.skipped.append(f"{turn.session}: OMG is switched off, {off}")
            continue
        fresh = unknown_ids(intake, turn) - met
        if dry_run:
            met |= fresh
        elif fresh:
            write_private(intake.spool / f"{drop_name(drop)}.json", text)
            intake.take_in()
        entries += len(drop["entries"])
        messages, new = messages + len(turn.messages), new + len(fresh)
        sessions.add((turn.session, turn.session_id))
        progress(drops.reading.done - reported)
        reported = drops.reading.done
    progress(drops.reading.total - reported)
    return {
        "messages": messages,
        "new": new,
        "sessions": len(sessions),
        "skipped": drops.reading.skipped,
        "left_out": drops.reading.unsaid + entries - messages,
    }


def import_agents_notes(
    intake: Intake, agent: str | None, since: date | None, *, dry_run: bool = False
) -> JsonObject:
    """
    Take the notes in the workspace of OpenClaw's *agent*, or of all its agents (MEMORY.md, memory/*.md), into the owner's
    graph; with *dry_run* only count. Returns the number of `files`, of `messages` and of `new` ones, and what was `skipped`.
    """
    registry, found = intake.registry, Counter(files=0, messages=0, new=0)
    skipped: list[str] = []
    configuration = configured(registry.folder)
    agents = configured_agents(configuration[0]) if configuration else []
    for name in agents if agent is None else [agent]:
        who, memory = registry.identity_of(f"agent:{name}:main"), own_memory(registry.folder, name)
        if who is None:
            continue  # OMG is switched off for it
        if memory is None:
            skipped.append(
                f"MEMORY.md and memory/ of {name}: imported only if the agent is configured and only its owner reaches it"
            )
            continue
        for file, path, day in agents_notes(memory, registry.zone):
            if since and day < since:
                continue
            try:
                said = line_messages(file, path, day, registry.zone)
            except (OSError, UnicodeDecodeError) as e:
                skipped.append(f"{file}: {e.strerror if isinstance(e, OSError) else 'it is not UTF-8'}")
                continue
            known = who in registry.identities()
            if dry_run:
                new = len(registry.graph(who).unseen(said) if known else said)
            else:
                new = put_loose(registry.graph(who), said) if said else 0
            found.update(files=1, messages=len(said), new=new)
    return {**found, "skipped": skipped}


def capture_entries(intake: Intake, who: Identity, session: str, entries: list[JsonObject]) -> int:
    """Take in a program's messages of *session*, which belongs to *who*. Returns how many were new."""
    new = 0
    for drop in drop_chunks(Session(session, session, who.agent), entries):
        text = json.dumps(drop)
        new += len(unknown_ids(intake, read_drop(text.encode(), intake.registry.config.identity.members)))
        write_private(intake.spool / f"{drop_name(drop)}.json", text)
    if entries:
        intake.take_in()
    return new


def unknown_ids(intake: Intake, turn: Turn) -> set[str]:
    """Ids of a turn's messages that its graph does not hold; none if the turn belongs to nobody."""
    who = intake.registry.whose(turn)
    if who is None:
        return set()
    if who not in intake.registry.identities():
        return {m.id for m in turn.messages}
    return {m.id for m in intake.registry.graph(who).unseen(turn.messages)}
