"""One-use codes: a model asks to forget, and the user confirms it by writing the code."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..errors import BadInput

CODE_LIVES_S = 900  # a forget code; long enough to read what would go, short enough to be forgotten


@dataclass(frozen=True, slots=True)
class Issued:
    """What a forget code stands for. *key*: of the identity whose graph it is."""

    key: str
    at: float  # monotonic seconds
    choice: str  # forget, alone or redact
    paths: tuple[str, ...]
    words: str = ""  # of a redaction


@dataclass(slots=True)
class Codes:
    """One-use codes that make a forget real, each for one identity."""

    issued: dict[str, Issued] = field(default_factory=dict)

    def issue(self, key: str, choice: str, paths: Sequence[str], words: str) -> str:
        now = time.monotonic()
        self.issued = {c: i for c, i in self.issued.items() if now - i.at < CODE_LIVES_S}
        code = secrets.token_hex(3)
        self.issued[code] = Issued(key, now, choice, tuple(paths), words)
        return code

    def redeem(self, code: str, key: str, said: str) -> Issued:
        """
        What *code* stands for. *said*: the user's own words in the turn that it is used in, "" where no user speaks.

        Raises BadInput; a code that the user has not written stays good.
        """
        code = code.strip().lower()
        known = self.issued.get(code)
        if known is None or known.key != key or time.monotonic() - known.at >= CODE_LIVES_S:
            raise BadInput("that code is unknown or has expired; ask again without a code for a new one")
        if not re.search(rf"(?<![a-z0-9]){code}(?![a-z0-9])", said.lower()):
            raise BadInput(
                "the user has to write the code themselves: show them what would go, with its codes, and call again"
                " when their message has one"
            )
        del self.issued[code]
        return known
