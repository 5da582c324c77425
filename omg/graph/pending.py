"""
One file of `pending/`: a turn that was taken in and is not yet observed.

Its name holds a hash of the session and the number of tokens, so that how much is waiting is known without reading any
file. Not here: putting it there and archiving it (graph.py).
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from ..errors import BadInput
from ..message.stored import turn_from_json
from ..message.turn import Turn

# Of a pending file, and of the drop it comes from.
PENDING = re.compile(r"\d{1,15}-[\w-]{1,120}\.[0-9a-f]{8}\.\d{1,12}\.json", re.ASCII)
PENDING_NAME = re.compile(r"(\d{1,15})-[\w-]{1,120}", re.ASCII)


def session_mark(session: str) -> str:
    """A short hash: files of one session share it."""
    return hashlib.sha256(session.encode()).hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class Pending:
    """One file of `pending/`: `<ms>-<uuid>.<hash of the session>.<tokens>.json`."""

    file: Path

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def tokens(self) -> int:
        return int(self.file.name.split(".")[2])

    @property
    def session(self) -> str:
        """Its `session_mark`."""
        return self.file.name.split(".")[1]

    @property
    def at_ms(self) -> int:
        return int(self.file.name.split("-", 1)[0])

    def turn(self) -> Turn:
        """As the file is now. Raises FileNotFoundError; BadInput, naming the file, for one that is damaged."""
        found = self.file.stat()
        return parsed_turn(self.file, (found.st_ino, found.st_mtime_ns, found.st_size))


@lru_cache(maxsize=32)  # from intake to archive a turn is asked for five times
def parsed_turn(file: Path, look: tuple[int, int, int]) -> Turn:
    """The turn in *file*, which is always replaced whole; *look* tells one version from another."""
    try:
        return turn_from_json(file.read_text(encoding="utf-8"))
    except (BadInput, UnicodeDecodeError) as e:
        raise BadInput(f"{file}: is damaged ({e}); move it away, and the other turns go on") from e
