"""
The command `omg`: parse, call one function, print. `main` is its entry point.

    terminal         What the commands share: the app that they are registered on, opening the home, printing,
                     progress.
    conversations    Commands: import, observe, search, inject, status, events, demo.
    gateway          Commands around the home, OpenClaw and other assistants: init, the daemon, installing, the
                     doctor, identities, projects, MCP.
    fleet            Commands of a fleet: many machines on Postgres (docs/fleet.md).
    notes            Commands on notes: list, show, open, new, pin, link, merge, rename, supersede, forget, undo,
                     history, export, rebuild, reflect, ui.
    app              The app `omg` with all its commands, and `main`.
"""

import sys


def main() -> None:
    """Run `omg hook` with the standard library alone, and every other command through the app."""
    if sys.argv[1:2] == ["hook"]:
        from ..hosts.hook import main as run
    else:
        from .app import main as run
    run()


__all__ = ["main"]
