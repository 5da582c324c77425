"""
The app `omg` with all its commands, and `main`.

Each module registers its commands on the app. Nothing heavy is imported before a command needs it, so `omg --help` is quick.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from ..client import ask_daemon, default_home
from ..errors import OmgError, error_text, how_many
from . import conversations, fleet, gateway, notes
from .terminal import app, opened_memory, warn

if TYPE_CHECKING:
    from ..memory import Memory

__all__ = ["app", "conversations", "fleet", "gateway", "main", "notes"]


def print_version(wanted: bool) -> None:
    if wanted:
        import importlib.metadata

        print(f"omg {importlib.metadata.version('omg-memory')}")
        raise typer.Exit


@app.callback()
def every_command(
    asked: typer.Context,
    version: Annotated[
        bool, Option("--version", callback=print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Observational Memory Graph: a memory for agents that you can open, read and correct."""
    if asked.invoked_subcommand is None:
        print_overview()


# --- What `omg` alone prints: what is installed and where, what was learnt today, what waits, and three commands for now.


LEARNT = 3  # at most so many of today's notes are named
BEGIN = """No memory yet in {home}. Begin with:
omg demo               see it on a sample
omg init [FOLDER]      make a vault
omg install [CLIENT]   connect OpenClaw, or another assistant"""


def print_overview() -> None:
    """Print what `omg` shows without a command."""
    home = default_home()
    if (home / "graphs").is_dir():
        with opened_memory(vectors=False) as memory:
            if memory.registry.identities():
                return print("\n".join(overview_lines(memory)))
    print(BEGIN.format(home=home))


def overview_lines(memory: Memory) -> Iterator[str]:
    """Return an overview of *memory*, at most ten lines."""
    from ..hosts.sessions import installed_hosts

    home = memory.folder
    openclaw = ["OpenClaw"] * (home / "installed.json").exists()
    connected = ", ".join([*openclaw, *installed_hosts(home)]) or "no assistant; `omg install` connects one"
    yield f"home      {home}, daemon {daemon_state(home)}"
    yield f"connected {connected}"
    graphs = list(memory.registry.graphs())
    notes = [e for g in graphs for e in g.index.entries() if e.path.startswith("nodes/")]
    today = memory.clock().astimezone(memory.registry.zone).date()
    new = [e for e in notes if today in (e.created, e.updated)]
    where = graphs[0].vault.root if len(graphs) == 1 else how_many(len(graphs), "vault")
    yield f"memory    {how_many(len(notes), 'note')} in {where}"
    yield f"today     {how_many(len(new), 'note')} new or changed" + ":" * bool(new)
    yield from (f"          {entry.title}" for entry in new[-LEARNT:])
    turns = sum(len(g.pending()) for g in graphs)
    yield f"waiting   {how_many(turns, 'turn')} not observed yet"
    begin = [] if notes else ["omg import --found", "omg new fact TITLE --text TEXT"]
    if turns:
        begin = ["omg observe"]
    yield "next      " + " · ".join([*begin, "omg list", "omg search WORDS", "omg ui"][:3])


def daemon_state(home: Path) -> str:
    try:
        found = ask_daemon(home, "/health", {}, timeout_s=2)
    except OmgError:
        return "does not answer (`omg doctor`)"
    return "up" if found else "not running (`omg up`)"


def main() -> None:
    """Run the command line. Print an expected error in one line on stderr, and exit with code 1."""
    # Files hold keys and a person's words: only the person may read them, whatever the shell's umask is.
    os.umask(0o077)
    logging.basicConfig(level=logging.WARNING, format="omg: %(message)s")
    try:
        app()
    except BrokenPipeError:
        return
    except OmgError as e:
        warn(str(e))
    except OSError as e:  # a full disk, or a file where a folder belongs: nothing was lost
        mend = f"; make sure that you may use it, or set OMG_HOME (now {default_home()})"
        warn(f"{e.filename}: {e.strerror}{mend}" if e.filename else str(e))
    except sqlite3.Error as e:
        warn(f"{error_text(e)}; make sure that {default_home()} is yours and the disk is not full")
    sys.exit(1)
