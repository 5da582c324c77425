"""
Drops out of conversation files: which files there are, and where a session is cut.

Not here: what a file looks like (transcripts.py), and taking the drops in (run.py).
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ..config.file import default_home
from ..errors import BadInput, NotFound
from ..message.drop import ARGUMENT_CHARS, TOOL_CHARS, to_epoch_ms
from ..text.tokens import count_tokens
from .database import check_database, read_database
from .entries import Reader, Session
from .lines import JsonObject, ReadingProgress
from .transcripts import read_openclaw, reader_for

if TYPE_CHECKING:
    from ..config.sections import Config


DROP_TOKENS = 4_000


@dataclass(frozen=True, slots=True)
class Drops:
    """Drops to come, to be iterated once. `reading` says how far they are and what had to be skipped."""

    files: tuple[tuple[Path, Reader], ...]
    since_ms: int
    reading: ReadingProgress = field(default_factory=ReadingProgress)

    def __post_init__(self) -> None:
        self.reading.total = sum(path.stat().st_size for path, _ in self.files)

    @property
    def total(self) -> int:
        return self.reading.total

    def __iter__(self) -> Iterator[JsonObject]:
        for path, opened in self.files:
            for session, entries in opened(path, self.since_ms, self.reading):
                yield from drop_chunks(session, entries, self.since_ms)
        self.reading.done = self.total


def read_drops(paths: Sequence[Path], since: datetime | None = None) -> Drops:
    """
    The drops of *paths*, one after the other. Raises BadInput before the first, naming what is accepted, if one is
    nothing known.
    """
    return Drops(tuple((path, reader_for(path)) for path in paths), _ms(since))


def openclaw_state_drops(state: Path, agent: str | None = None, since: datetime | None = None) -> Drops:
    """
    The drops of every session below an OpenClaw state folder, of all its agents or of one.

    Live databases, archives and JSONL of older versions. Raises BadInput if *state* is no such folder or a
    database of a version OMG does not know, NotFound if there is no such agent.
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
            check_database(database)
            files.append((database, read_database))
        files += [
            (path, read_openclaw) for path in sorted(folder.glob("sessions/*.jsonl*")) if path.is_file()
        ]
    return Drops(tuple(files), _ms(since))


def openclaw_drops(config: Config, agent: str | None, since: datetime | None) -> Drops:
    """The same, of the OpenClaw in whose state folder the home lies, else of the environment's."""
    state = config.home.parent
    if not (state / "agents").is_dir():
        state = default_home({**os.environ, "OMG_HOME": ""}).parent
    return openclaw_state_drops(state, agent, since)


def _ms(since: datetime | None) -> int:
    return round(since.timestamp() * 1000) if since else 0


def drop_chunks(session: Session, entries: Iterable[JsonObject], since_ms: int = 0) -> Iterator[JsonObject]:
    """
    *entries* in drops of about DROP_TOKENS.

    Cut where a person begins to speak, if possible; never between a call and its result.
    """
    batch: list[JsonObject] = []
    cost, speaks, waiting = 0, 0, set[str]()  # speaks: where in the batch a person last began
    for entry in entries:
        message = entry["message"]
        if said_ms(entry) < since_ms:
            continue
        more, user = estimated_tokens(message), message.get("role") == "user"
        if user:
            waiting.clear()  # whatever was called and not answered will not be any more
        while batch and cost + more > DROP_TOKENS and not waiting:
            at = speaks if speaks and not user else len(batch)
            yield make_drop(session, batch[:at])
            batch, speaks = batch[at:], 0
            cost = sum(estimated_tokens(e["message"]) for e in batch)
        if user:
            speaks = len(batch)
        waiting |= {str(part.get("id")) for part in tool_calls(message)}
        waiting.discard(str(message.get("toolCallId")))
        batch.append(entry)
        cost += more
    if batch:
        yield make_drop(session, batch)


def tool_calls(message: JsonObject) -> list[JsonObject]:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return [part for part in parts if isinstance(part, dict) and part.get("type") in ("toolCall", "tool_use")]


def estimated_tokens(message: JsonObject) -> int:
    """About what a message will cost once it is cleaned."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    text = "\n".join(str(part.get("text") or "") for part in parts if isinstance(part, dict))
    made = "".join(str(part.get("arguments"))[:ARGUMENT_CHARS] for part in tool_calls(message))
    return count_tokens(text[:TOOL_CHARS] if message.get("role") == "toolResult" else text) + count_tokens(
        made
    )


def said_ms(entry: JsonObject) -> int:
    """When, in ms; 0 if it does not say."""
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
    """A name for a drop's file: the same every time, and names sort as what was said."""
    first, last = drop["entries"][0], drop["entries"][-1]
    what = json.dumps([drop["sessionKey"], first.get("entryId"), last.get("entryId")])
    return f"{said_ms(first):015d}-{hashlib.blake2b(what.encode(), digest_size=12).hexdigest()}"
