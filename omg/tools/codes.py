"""One-use codes: a model asks to forget, and the user's next turn confirms it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..errors import BadInput

CODE_LIVES_S = 900  # a forget code; long enough to read what would go, short enough to be forgotten


@dataclass(frozen=True, slots=True)
class Issued:
    """What a forget code stands for, and where it was given: in whose graph, which run, after which message."""

    key: str
    run: str
    message: str  # entry id of the user's newest message then
    at: float  # monotonic seconds
    choice: str  # forget, alone or redact
    paths: tuple[str, ...]
    words: str = ""  # of a redaction


@dataclass(slots=True)
class Codes:
    """One-use codes that make a forget real, each for one identity and a later turn of its user."""

    issued: dict[str, Issued] = field(default_factory=dict)

    def issue(self, key: str, run: str, message: str, choice: str, paths: Sequence[str], words: str) -> str:
        now = time.monotonic()
        self.issued = {c: i for c, i in self.issued.items() if now - i.at < CODE_LIVES_S}
        code = secrets.token_hex(3)
        self.issued[code] = Issued(key, run, message, now, choice, tuple(paths), words)
        return code

    def redeem(self, code: str, key: str, run: str, message: str) -> Issued:
        """
        What *code* stands for. *run* and *message*: of the user's turn that it is used in, "" where it is none.

        Raises BadInput; a code tried too early stays good for the user's next turn.
        """
        known = self.issued.get(code)
        if known is None or known.key != key or time.monotonic() - known.at >= CODE_LIVES_S:
            raise BadInput("that code is unknown or has expired; ask again without a code for a new one")
        if not run or not message or run == known.run or message == known.message:
            raise BadInput(
                "the user has to answer first: show them what would go, and use the code in their next turn"
            )
        del self.issued[code]
        return known
