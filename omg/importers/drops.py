"""
Cuts the sessions of a reader into drops, the files of the spool that the intake takes in.

A reader takes a path, and yields sessions with their messages. The messages have the form of OpenClaw's own
entries. Reading a file again gives the same message ids and the same names of drops.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from ..errors import BadInput, ConfigError, pip_install
from ..graph.state import parsed_object
from ..message.drop import ARGUMENT_CHARS, TOOL_CHARS, content_of, to_epoch_ms
from ..text.tokens import count_tokens

ZSTD = b"\x28\xb5\x2f\xfd"

JsonObject = dict[str, Any]


@dataclass(slots=True)
class ReadingProgress:
    """Counts the bytes read so far, and keeps what was skipped or left out, with the reasons."""

    total: int = 0
    before: int = 0  # bytes of the files that are read to their end
    here: int = 0  # bytes read of the current file
    skipped: list[str] = field(default_factory=list)  # what could not be read, as "file:line: why"
    # Texts that nobody said, by kind: reasoning, tools, ….
    left_out: Counter[str] = field(default_factory=Counter)
    # chat → time in ms of its newest copy; older copies are left out. `look_at` fills this in.
    newest: dict[str, int] = field(default_factory=dict)
    # (client, session, folder) → session key; None if the session belongs to nobody's memory
    place: Callable[[str, str, str], str | None] = lambda client, session, folder: key_of(
        session, client=client
    )

    @property
    def done(self) -> int:
        return self.before + self.here

    def is_newest(self, chat: str, changed_ms: int) -> bool:
        """Whether no newer copy of *chat* is known. Several copies of the same time all count as newest."""
        known = self.newest.get(chat, 0)
        self.newest[chat] = max(known, changed_ms)
        return changed_ms >= known


@dataclass(frozen=True, slots=True)
class Session:
    """The properties that all messages of a session share."""

    key: str
    id: str
    agent: str
    workspace: str = ""
    service: str = "a file"  # where the session took place: ChatGPT, Claude Code, …


# Read the entries of a session before asking for the next session.
Sessions = Iterator[tuple[Session, Iterable[JsonObject]]]
Reader = Callable[[Path, int, ReadingProgress], Sessions]  # (path, start time in ms, progress) → sessions


def digest(text: str, size: int) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=size).hexdigest()


def said_epoch_ms(value: object) -> int | None:
    """Convert ISO text, or a number of seconds or milliseconds, to ms since the epoch; None for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except ValueError:
        return to_epoch_ms(value)
    if not 0 < number < 1e14:
        return None
    return round(number * 1000 if number < 1e11 else number)  # 1e11 ms is 1973, 1e11 s the year 5138


def said_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def key_of(session: str, agent: str = "main", client: str = "import") -> str:
    """
    Make the session key of an imported *session* of the owner: a thread of the main session, which has the owner's
    memory.
    """
    return f"agent:{agent}:main:thread:{client}-{session.replace('%', '%25').replace(':', '%3A')}"


def entry_of_message(id: str, role: str, content: list[JsonObject], at_ms: object) -> JsonObject:
    message = {"role": role, "content": content, "timestamp": at_ms}
    return {"entryId": id, "createdAt": at_ms, "message": message}


def text_part(text: object) -> JsonObject:
    return {"type": "text", "text": text}


# --- lines of a file

NOT_TEXT = re.compile("[\udc80-\udcff]")
CONVERT = "is not UTF-8; convert the file, as with `iconv -f CP1252 -t UTF-8`, and import it again"


def zstd_decompressor(path: Path) -> Any:
    """
    Make a decompressor for zstd. Raises ConfigError if the package `zstandard` is missing; the error says how to
    install the package. *path*: the file that the error names.
    """
    try:
        import zstandard
    except ImportError as e:
        raise ConfigError(f"{path} is packed with zstd, which needs an extra: {pip_install('zstd')}") from e
    return zstandard.ZstdDecompressor()


def numbered_lines(path: Path, reading: ReadingProgress | None = None) -> Iterator[tuple[int, str]]:
    """
    Yield the lines of *path* with their numbers, decompressed, and count the bytes in *reading*. Raises BadInput for
    broken zstd, and ConfigError without the extra `zstd`.

    Bytes that are not UTF-8 become lone surrogates, which `NOT_TEXT` finds.
    """
    with path.open("rb") as raw:
        start = raw.read(len(ZSTD))
        raw.seek(0)
        plain: Any = raw
        if start == ZSTD:
            plain = zstd_decompressor(path).stream_reader(raw, read_across_frames=True)
        try:
            with io.TextIOWrapper(plain, "utf-8-sig", "surrogateescape") as text:
                for number, line in enumerate(text, 1):
                    if reading:
                        reading.here = raw.tell()
                    yield number, line
        except Exception as e:
            if type(e).__name__ != "ZstdError":  # zstandard is imported only where it is needed
                raise
            raise BadInput(f"{path}: broken zstd: {e}") from e


def json_objects(path: Path, reading: ReadingProgress) -> Iterator[tuple[int, JsonObject]]:
    """Yield the objects of a JSONL file with their line numbers. Other lines are reported in *reading*."""
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


DROP_TOKENS = 4_000


def size_of(path: Path) -> int:
    """The bytes of a file, or of the files in a folder; 0 if nothing is there."""
    return sum(f.stat().st_size for f in [path, *path.rglob("*")] if f.is_file())


@dataclass(frozen=True, slots=True)
class Drops:
    """The drops of some files, to be iterated once. `reading` tells how much was read, and what was skipped."""

    files: tuple[tuple[Path, Reader], ...]
    since_ms: int
    reading: ReadingProgress = field(default_factory=ReadingProgress)

    def __post_init__(self) -> None:
        self.reading.total = sum(size_of(path) for path, _ in self.files)

    def sessions(self) -> Sessions:
        """Yield the sessions of all files. Read the entries of a session before asking for the next session."""
        for path, opened in self.files:
            yield from opened(path, self.since_ms, self.reading)
            self.reading.before, self.reading.here = self.reading.before + size_of(path), 0

    def __iter__(self) -> Iterator[JsonObject]:
        for session, entries in self.sessions():
            yield from drop_chunks(session, entries, self.since_ms)


def since_ms_of(since: datetime | None) -> int:
    return round(since.timestamp() * 1000) if since else 0


def drop_chunks(session: Session, entries: Iterable[JsonObject], since_ms: int = 0) -> Iterator[JsonObject]:
    """
    Divide *entries* into drops of about DROP_TOKENS.

    Cuts where a person begins to speak, if possible, and never between a tool call and its result.
    """
    batch: list[JsonObject] = []
    # Speaks: the place in the batch where a person last began to speak.
    cost, speaks, waiting = 0, 0, set[str]()
    for entry in entries:
        message = entry["message"]
        if said_ms(entry) < since_ms:
            continue
        more, user = estimated_tokens(message), message.get("role") == "user"
        if user:
            waiting.clear()  # a call that has no result by now gets none later
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
    """Estimate how many tokens a message has after cleaning."""
    text, calls = content_of(message.get("content"))
    said = text[:TOOL_CHARS] if message.get("role") == "toolResult" else text
    return count_tokens(said) + count_tokens("".join(call.arguments[:ARGUMENT_CHARS] for call in calls))


def said_ms(entry: JsonObject) -> int:
    """The time of a message in ms; 0 if unknown."""
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
    """The name of a drop's file. It is the same at every import, and names sort by the time of the first message."""
    first, last = drop["entries"][0], drop["entries"][-1]
    what = json.dumps([drop["sessionKey"], first.get("entryId"), last.get("entryId")])
    return f"{said_ms(first):015d}-{digest(what, 12)}"
