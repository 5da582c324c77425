"""The command line. `main` is the entry point of the command `omg`."""

from .app import main

__all__ = ["main"]
