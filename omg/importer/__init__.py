"""
Old conversations, as drops like the gateway's.

- `read`, `read_all`  files · `openclaw`  every session of an OpenClaw state folder
- `import_drops`      takes them in, through the spool, as if the gateway had dropped them

What files look like, transcripts.py knows. Its one rule: importing again adds nothing. Messages keep the ids
they have, so that what the hooks took in, an export and the live database are one conversation.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from .. import tokens
from ..config import home_of
from ..errors import BadInput, NotFound
from ..turn import ARGUMENT_CHARS, TOOL_CHARS, Turn, milliseconds, read_drop
from .transcripts import Json, Reader, Reading, Session, check, read_database, read_openclaw, reader

if TYPE_CHECKING:
    from ..config import Config
    from ..home import Home

DROP_TOKENS = 4_000


@dataclass(frozen=True, slots=True)
class Drops:
    """Drops to come, to be iterated once. `reading` says how far they are and what had to be skipped."""

    files: tuple[tuple[Path, Reader], ...]
    since_ms: int
    reading: Reading = field(default_factory=Reading)

    def __post_init__(self) -> None:
        self.reading.total = sum(path.stat().st_size for path, _ in self.files)

    @property
    def total(self) -> int:
        return self.reading.total

    def __iter__(self) -> Iterator[Json]:
        for path, opened in self.files:
            for session, entries in opened(path, self.since_ms, self.reading):
                yield from chunks(session, entries, self.since_ms)
        self.reading.done = self.total


def read(path: Path, since: datetime | None = None) -> Drops:
    """The drops of one file. Raises BadInput, naming what is accepted, if it is nothing known."""
    return read_all([path], since)


def read_all(paths: Sequence[Path], since: datetime | None = None) -> Drops:
    """The drops of *paths*, one after the other. Raises BadInput before the first if one is nothing known."""
    return Drops(tuple((path, reader(path)) for path in paths), _ms(since))


def openclaw(state: Path, agent: str | None = None, since: datetime | None = None) -> Drops:
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
            check(database)
            files.append((database, read_database))
        files += [
            (path, read_openclaw) for path in sorted(folder.glob("sessions/*.jsonl*")) if path.is_file()
        ]
    return Drops(tuple(files), _ms(since))


def openclaw_drops(config: Config, agent: str | None = None, since: datetime | None = None) -> Drops:
    """The same, of the OpenClaw in whose state folder the home lies, else of the environment's."""
    state = config.home.parent
    if not (state / "agents").is_dir():
        state = home_of({**os.environ, "OMG_HOME": ""}).parent
    return openclaw(state, agent, since)


def _ms(since: datetime | None) -> int:
    return round(since.timestamp() * 1000) if since else 0


def chunks(session: Session, entries: Iterable[Json], since_ms: int = 0) -> Iterator[Json]:
    """
    *entries* in drops of about DROP_TOKENS.

    Cut where a person begins to speak, if possible; never between a call and its result.
    """
    batch: list[Json] = []
    cost, speaks, waiting = 0, 0, set[str]()  # speaks: where in the batch a person last began
    for entry in entries:
        message = entry["message"]
        if said_at(entry) < since_ms:
            continue
        more, user = price(message), message.get("role") == "user"
        if user:
            waiting.clear()  # whatever was called and not answered will not be any more
        while batch and cost + more > DROP_TOKENS and not waiting:
            at = speaks if speaks and not user else len(batch)
            yield drop(session, batch[:at])
            batch, speaks = batch[at:], 0
            cost = sum(price(e["message"]) for e in batch)
        if user:
            speaks = len(batch)
        waiting |= {str(part.get("id")) for part in calls(message)}
        waiting.discard(str(message.get("toolCallId")))
        batch.append(entry)
        cost += more
    if batch:
        yield drop(session, batch)


def calls(message: Json) -> list[Json]:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    return [part for part in parts if isinstance(part, dict) and part.get("type") in ("toolCall", "tool_use")]


def price(message: Json) -> int:
    """About what a message will cost once it is cleaned."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    text = "\n".join(str(part.get("text") or "") for part in parts if isinstance(part, dict))
    made = "".join(str(part.get("arguments"))[:ARGUMENT_CHARS] for part in calls(message))
    return tokens.count(text[:TOOL_CHARS] if message.get("role") == "toolResult" else text) + tokens.count(
        made
    )


def said_at(entry: Json) -> int:
    """When, in ms; 0 if it does not say."""
    return milliseconds(entry["message"].get("timestamp")) or milliseconds(entry.get("createdAt")) or 0


def drop(session: Session, entries: list[Json]) -> Json:
    return {
        "v": 1,
        "reason": "import",
        "agentId": session.agent,
        "sessionKey": session.key,
        "sessionId": session.id,
        "workspaceDir": session.workspace,
        "entries": entries,
    }


def name_of(drop: Json) -> str:
    """A name for a drop's file: the same every time, and names sort as what was said."""
    first, last = drop["entries"][0], drop["entries"][-1]
    what = json.dumps([drop["sessionKey"], first.get("entryId"), last.get("entryId")])
    return f"{said_at(first):015d}-{hashlib.blake2b(what.encode(), digest_size=12).hexdigest()}"


def import_drops(
    home: Home, drops: Drops, *, dry_run: bool = False, progress: Callable[[int], None] = lambda n: None
) -> Json:
    """
    Take *drops* in; what holds nothing new leaves no trace, and with *dry_run* nothing does.

    *progress* is told the bytes behind us since it was last told. Returns the number of `messages`, of those
    that are `new`, of `sessions`, what was `skipped`, and how much was `left_out` as nobody's words: instructions
    to a model, heartbeats, what is empty.
    """
    messages, new, told, entries = 0, 0, 0, 0
    sessions: set[tuple[str, str]] = set()
    met: set[str] = set()  # a dry run remembers nothing, so this must
    for drop in drops:
        data = json.dumps(drop).encode()
        turn = read_drop(data, home.config.identity.members)
        fresh = unknown(home, turn) - met
        if dry_run:
            met |= fresh
        elif fresh:
            spool(home.folder / "spool", name_of(drop), data)
            home.take_in()
        entries += len(drop["entries"])
        messages, new = messages + len(turn.messages), new + len(fresh)
        sessions.add((turn.session, turn.session_id))
        progress(drops.reading.done - told)
        told = drops.reading.done
    progress(drops.total - told)
    return {
        "messages": messages,
        "new": new,
        "sessions": len(sessions),
        "skipped": drops.reading.skipped,
        "left_out": drops.reading.unsaid + entries - messages,
    }


def unknown(home: Home, turn: Turn) -> set[str]:
    """Ids of a turn's messages that its graph does not hold; none if it is nobody's."""
    who = home.whose(turn)
    if who is None:
        return set()
    if who not in home.identities():
        return {m.id for m in turn.messages}
    return {m.id for m in home.graph(who).unseen(turn.messages)}


def spool(folder: Path, name: str, data: bytes) -> None:
    """Put a drop into the spool as the hooks do: whole or not at all, and for its owner's eyes."""
    temporary = folder / f".{name}.{secrets.token_hex(4)}"  # two imports of one file may run at once
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / f"{name}.json")
