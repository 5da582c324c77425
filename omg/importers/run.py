"""
Take drops in through the spool, as if the gateway's plugin had written them.

One rule: importing again adds nothing. Messages keep the ids they have, so that what the hooks took in, an export
and the live database are one conversation.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from typing import TYPE_CHECKING

from ..config.agents import configured, configured_agents, own_memory
from ..graph.files import write_private
from ..identity import Identity
from ..inbox.notes import agents_notes, line_messages, put_loose
from ..message.drop import read_drop
from ..message.turn import Turn
from .drops import Drops, drop_chunks, drop_name
from .entries import Session
from .lines import JsonObject

if TYPE_CHECKING:
    from ..worker.intake import Intake


def import_drops(
    intake: Intake, drops: Drops, *, dry_run: bool = False, progress: Callable[[int], None] = lambda n: None
) -> JsonObject:
    """
    Take *drops* in; what holds nothing new leaves no trace, and with *dry_run* nothing does.

    *progress* is given the bytes read since it was last called. Returns the number of `messages`, of those
    that are `new`, of `sessions`, what was `skipped`, and how much was `left_out` as nobody's words: instructions
    to a model, heartbeats, what is empty.
    """
    messages, new, reported, entries = 0, 0, 0, 0
    sessions: set[tuple[str, str]] = set()
    met: set[str] = set()  # a dry run remembers nothing, so this must
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
    Take in what OpenClaw's *agent*, or each of them, has noted in its workspace (MEMORY.md, memory/*.md), into its
    owner's graph; with *dry_run* only count. Returns `files`, their `messages`, those that are `new`, and what was `skipped`.
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
                f"MEMORY.md and memory/ of {name}: taken in only of a configured agent that nobody but its owner reaches"
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
    """Take in what a program says was said in *session*, which is *who*'s; returns how many messages were new."""
    new = 0
    for drop in drop_chunks(Session(session, session, who.agent), entries):
        text = json.dumps(drop)
        new += len(unknown_ids(intake, read_drop(text.encode(), intake.registry.config.identity.members)))
        write_private(intake.spool / f"{drop_name(drop)}.json", text)
    if entries:
        intake.take_in()
    return new


def unknown_ids(intake: Intake, turn: Turn) -> set[str]:
    """Ids of a turn's messages that its graph does not hold; none if it is nobody's."""
    who = intake.registry.whose(turn)
    if who is None:
        return set()
    if who not in intake.registry.identities():
        return {m.id for m in turn.messages}
    return {m.id for m in intake.registry.graph(who).unseen(turn.messages)}
