"""
The command `omg`: parse, call one function, print. `main` is its entry point.

    app             main: errors become one line and exit code 1
    base            what commands share: options, bars, printing
    conversations   init, import, observe, search, inject, status, events, demo
    reading         list, show and open: what stands in the notes
    curate          a person's own hand: new, pin, link, merge, rename, undo, export, rebuild
    forget          forgetting: the choices, and the one that was made
    daemon          started, stopped, done without
    gateway         commands of the daemon, installing, doctor, identities
    reflect, skill  the nightly job; the skill for agents without hooks
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
