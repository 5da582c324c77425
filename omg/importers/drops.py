"""
Cuts old conversations into drops and takes them in through the spool.

Importing again adds nothing. Messages keep their ids, so a message that a hook captured, and that an export and the
live database hold too, is taken in once.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from ..config import configured, configured_agents, default_home, own_memory
from ..errors import BadInput, NotFound
from ..graph.state import write_private
from ..identity import Identity
from ..inbox import agents_notes, line_messages, put_loose
from ..message.drop import ARGUMENT_CHARS, TOOL_CHARS, content_of, read_drop, to_epoch_ms
from ..message.turn import Turn
from ..text.tokens import count_tokens
from .readers import (
    JsonObject,
    Reader,
    ReadingProgress,
    Session,
    check_database,
    read_database,
    read_openclaw,
    reader_for,
)

if TYPE_CHECKING:
    from ..config import Config
    from ..worker.intake import Intake


DROP_TOKENS = 4_000


@dataclass(frozen=True, slots=True)
class Drops:
    """The drops of some files, to be iterated once. `reading` says how much is read and what was skipped."""

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
            check_database(database)
            files.append((database, read_database))
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
    made = "".join(call.arguments[:ARGUMENT_CHARS] for call in calls)
    return count_tokens(text[:TOOL_CHARS] if message.get("role") == "toolResult" else text) + count_tokens(
        made
    )


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
    return f"{said_ms(first):015d}-{hashlib.blake2b(what.encode(), digest_size=12).hexdigest()}"


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
    progress(drops.total - reported)
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
    registry, found = intake.registry, {"files": 0, "messages": 0, "new": 0}
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
            found = {
                "files": found["files"] + 1,
                "messages": found["messages"] + len(said),
                "new": found["new"] + new,
            }
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
