"""
What stands around the notes and is not ours to change: named, with its path, each time.

    in the vault   canvases, text files, .trash, what other programs keep in hidden folders: files of a person's own
    around it      git histories, copies that a sync service makes
    beside it      the gateway's transcripts and its memory files; OMG's own configuration

Our own notes in .trash are taken away (`our_trash`). Nothing here writes.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from pathlib import Path

from ..config.agents import configured, configured_agents, workspace_of
from ..errors import BadNode
from ..graph.graph import Graph
from ..node.note import parse_node
from ..vault.files import LEFTOVER
from .traces import Trace

LOOKED_THROUGH = 5_000_000  # bytes; a larger file is no text that somebody wrote
TRASH = ".trash"  # where Obsidian puts what a person deletes

# What sync services keep in a folder that they copy; and folders that are copied whole.
SYNC_MARKS = ".stfolder .stignore .stversions .dropbox .sync .nextcloudsync.log .owncloudsync.log".split()
SYNC_FOLDERS = (
    "Dropbox",
    "Nextcloud",
    "ownCloud",
    "OneDrive",
    "Google Drive",
    "Mobile Documents",
    "iCloud Drive",
)


def our_trash(graph: Graph, trace: Trace) -> Iterator[str]:
    """Notes in .trash that OMG wrote and that tell of it: from the vault down, with their extension."""
    for file in sorted((graph.vault.root / TRASH).rglob("*.md")):
        data = contents(file)
        if data is None or not (tells(trace, data) or cites(trace, data)):
            continue
        if graph.vault.ours(data) or cites(trace, data):
            yield file.relative_to(graph.vault.root).as_posix()


def cites(trace: Trace, data: bytes) -> bool:
    """Whether it is a note that was made of the messages."""
    try:
        sources = parse_node(data.decode("utf-8", errors="replace"), TRASH).sources
    except BadNode:
        return False
    return any(s.id in trace.messages for s in sources if s.id)


def beyond_reach(graph: Graph, trace: Trace, skip: Collection[str]) -> tuple[str, ...]:
    """`path: why`, for each place that may go on holding it."""
    root, home = graph.vault.root.absolute(), graph.folder.parents[1].absolute()
    found = [
        f"{file}: a file of your own, or of another program; take it out there yourself"
        for file in files_around(graph, skip)
        if in_file(trace, file)
    ]
    for folder in sorted({git for place in (root, home) if (git := history_of(place))}):
        found.append(f"{folder}: the history of git keeps what was committed")
    for place in sorted({sync for place in (root, home) if (sync := synced_by(place))}):
        found.append(f"{place}: copies on other devices, and older versions there, are the sync service's")
    found += gateway_files(graph, home, trace)
    if in_file(trace, home / "omg.toml"):
        found.append(f"{home / 'omg.toml'}: your configuration names it")
    return tuple(found)


def files_around(graph: Graph, skip: Collection[str]) -> Iterator[Path]:
    """Files of the vault that are no notes, in hidden folders as well."""
    notes = {f"{p}.md" for p in (*graph.vault.paths(), *graph.vault.conflicts())}
    for folder, names, files in os.walk(graph.vault.root):
        names[:] = sorted(name for name in names if name != ".git")
        for file in (Path(folder, name) for name in sorted(files)):
            below = file.relative_to(graph.vault.root).as_posix()
            if below not in notes and below not in skip and not LEFTOVER.fullmatch(file.name):
                yield file


def in_file(trace: Trace, file: Path) -> bool:
    data = contents(file)
    return data is not None and (tells(trace, data) or trace.in_words(file.name))


def tells(trace: Trace, data: bytes) -> bool:
    text = data.decode("utf-8", errors="replace")
    named = (*(n for n in trace.names if "/" in n), *trace.keys)
    return trace.in_words(text) or any(name in text for name in named)


def contents(file: Path) -> bytes | None:
    try:
        if file.is_symlink() or not file.is_file() or file.stat().st_size > LOOKED_THROUGH:
            return None
        return file.read_bytes()
    except OSError:
        return None


def history_of(place: Path) -> Path | None:
    return next((p / ".git" for p in (place, *place.parents) if (p / ".git").exists()), None)


def synced_by(place: Path) -> Path | None:
    for folder in (place, *place.parents):
        if any((folder / mark).exists() for mark in SYNC_MARKS) or folder.name.startswith(SYNC_FOLDERS):
            return folder
    return None


def gateway_files(graph: Graph, home: Path, trace: Trace) -> Iterator[str]:
    """Of the OpenClaw that the home belongs to."""
    config, state = configured(home) or ({}, home.parent)
    agent = graph.identity.agent or "main"
    if (folder := state / "agents" / agent).is_dir():
        yield f"{folder}: the gateway's own transcripts; it deletes a session with its own commands"
    if agent not in configured_agents(config):
        return
    workspace, vault = workspace_of(config, agent, state), graph.vault.root
    for file in sorted((*workspace.glob("*.md"), *(workspace / "memory").rglob("*.md"))):
        if not file.is_relative_to(vault) and in_file(trace, file):
            yield f"{file}: a memory file of the agent's workspace"
