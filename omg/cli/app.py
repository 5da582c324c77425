"""
`main`: all commands, and errors as one line with exit code 1.

Nothing here decides anything, and nothing heavy is imported before a command needs it: `omg --help` costs a moment.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import sys

from ..config import default_home
from ..errors import OmgError
from . import conversations as _conversations  # noqa: F401  # these register their commands
from . import curate as _curate  # noqa: F401
from . import fleet as _fleet  # noqa: F401
from . import gateway as _gateway  # noqa: F401
from . import reading as _reading  # noqa: F401
from .base import app


def main() -> None:
    """The entry point: an OmgError becomes one line and exit code 1."""
    # keys and a person's words: what is made from here on is theirs alone, whatever the shell says
    os.umask(0o077)
    logging.basicConfig(level=logging.WARNING, format="omg: %(message)s")
    try:
        app()
    except OmgError as e:
        print(f"omg: {e}", file=sys.stderr)
        sys.exit(1)
    except BrokenPipeError:
        sys.exit(0)
    except OSError as e:  # a full disk, a file in the place of a folder: nothing was lost
        mend = f"; see that it may be used by you, or set OMG_HOME (now {default_home()})"
        print(f"omg: {e.filename}: {e.strerror}{mend}" if e.filename else f"omg: {e}", file=sys.stderr)
        sys.exit(1)
    except sqlite3.Error as e:
        where = default_home()
        print(
            f"omg: the index could not be used ({e}); see that {where} has room and is yours", file=sys.stderr
        )
        sys.exit(1)
