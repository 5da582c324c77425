"""
The command `omg`: parse, call one function, print. `main` is its entry point.

    app              `main`: all commands, and errors as one line with exit code 1.
    base             What all commands share: the app, opening the home, printing.
    conversations    Commands: init, import, observe, search, inject, status, events, demo.
    reading          Commands that read notes: list, show and open.
    curate           Commands for a person's own edits: new, pin, link, merge, rename, undo, export, rebuild.
    gateway          Commands around OpenClaw and other assistants: the daemon, installing, the doctor, identities,
                     projects, MCP.
    fleet            Commands of a fleet: many machines on Postgres (docs/fleet.md).
"""

import sys


def main() -> None:
    """`omg hook` goes to its own runtime, on the standard library alone; all else to the commands."""
    if sys.argv[1:2] == ["hook"]:
        from ..hosts.hook import main as run
    else:
        from .app import main as run
    run()


__all__ = ["main"]
