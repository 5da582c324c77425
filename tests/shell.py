"""
`omg …` in this very process, as a shell would have run it: exit code, stdout and stderr.

A process of its own costs .9 s of CPU before it does anything. What only a process shows (a full disk, a pipe that ends,
what starting costs) is tested with one.
"""

from __future__ import annotations

import io
import logging
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from omg.cli.app import main


@dataclass(frozen=True, slots=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


def omg_here(*args: str, typed: str = "", cwd: Path | None = None) -> Done:
    """What `omg` with *args* prints and returns. *typed*: its stdin; *cwd*: where it is run."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    root, mask, here = logging.getLogger(), os.umask(0o022), Path.cwd()
    os.umask(mask)
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = []  # so that `main` sets up its own, as in a process of its own
    try:
        os.chdir(cwd or here)
        with redirect_stdout(out), redirect_stderr(err):
            with patch.object(sys, "argv", ["omg", *args]), patch.object(sys, "stdin", io.StringIO(typed)):
                main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        os.chdir(here)
        os.umask(mask)
        root.handlers[:] = handlers
        root.setLevel(level)
    return Done(code, out.getvalue(), err.getvalue())
