"""What `omg` alone prints: what is installed and where, what was learnt today, what waits, and three commands for now."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ..client import ask_daemon
from ..errors import OmgError, how_many
from ..memory import Memory
from .sessions import installed_hosts

LEARNT = 3  # notes of today that are named
BEGIN = (
    "omg demo               see it on a sample",
    "omg init [FOLDER]      make a vault",
    "omg install [CLIENT]   connect OpenClaw, or another assistant",
)


def overview_lines(memory: Memory | None, home: Path) -> Iterator[str]:
    """At most ten lines about *memory*, which is None if *home* has no memory yet."""
    if memory is None or not memory.registry.identities():
        yield f"No memory yet in {home}. Begin with:"
        yield from BEGIN
        return
    openclaw = ["OpenClaw"] * (home / "installed.json").exists()
    connected = ", ".join([*openclaw, *installed_hosts(home)]) or "no assistant; `omg install` connects one"
    yield f"home      {home}, daemon {daemon_state(home)}"
    yield f"connected {connected}"
    graph = memory.find() if len(memory.registry.identities()) == 1 else None
    graphs = [graph] if graph else list(memory.registry.graphs())
    notes = [e for g in graphs for e in g.index.entries() if e.path.startswith("nodes/")]
    today = memory.clock().astimezone(memory.registry.zone).date()
    new = [e for e in notes if today in (e.created, e.updated)]
    where = str(graph.vault.root) if graph else how_many(len(graphs), "vault")
    yield f"memory    {how_many(len(notes), 'note')} in {where}"
    yield f"today     {how_many(len(new), 'note')} new or changed" + ":" * bool(new)
    yield from (f"          {entry.title}" for entry in new[-LEARNT:])
    turns = sum(len(g.pending()) for g in graphs)
    yield f"waits     {how_many(turns, 'turn')} to be observed"
    yield f"next      {'omg observe · ' if turns else ''}omg list · omg search WORDS{'' if turns else ' · omg status'}"


def daemon_state(home: Path) -> str:
    try:
        found = ask_daemon(home, "/health", {}, timeout_s=2)
    except OmgError:
        return "does not answer (`omg doctor`)"
    return "up" if found else "not running (`omg up`)"
