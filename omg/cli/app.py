"""
The app `omg` with all its commands, and `main`.

Each module registers its commands on the app. Nothing heavy is imported before a command needs it, so `omg --help` is quick.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import sys
from typing import Annotated

import typer
from typer import Option

from ..client import default_home
from ..errors import OmgError, error_text
from . import conversations, fleet, gateway, notes
from .terminal import app, opened_memory, warn

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


def print_overview() -> None:
    """Print what `omg` shows without a command."""
    from ..hosts.overview import overview_lines

    home = default_home()
    if not (home / "graphs").is_dir():
        return print("\n".join(overview_lines(None, home)))
    with opened_memory(vectors=False) as memory:
        print("\n".join(overview_lines(memory, home)))


def main() -> None:
    """The entry point: an OmgError becomes one line and exit code 1."""
    # Files hold keys and a person's words: only the person may read them, whatever the shell's umask is.
    os.umask(0o077)
    logging.basicConfig(level=logging.WARNING, format="omg: %(message)s")
    try:
        app()
    except BrokenPipeError:
        return
    except OmgError as e:
        warn(str(e))
    except OSError as e:  # a full disk, a file in the place of a folder: nothing was lost
        mend = f"; see that it may be used by you, or set OMG_HOME (now {default_home()})"
        warn(f"{e.filename}: {e.strerror}{mend}" if e.filename else str(e))
    except sqlite3.Error as e:
        warn(f"{error_text(e)}; see that {default_home()} has room and is yours")
    sys.exit(1)
