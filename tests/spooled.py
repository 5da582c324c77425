"""Turns in the spool, as the gateway's hook leaves them there."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

NUMBERS = itertools.count()


def entry(id: str, text: Any, at_ms: int, role: str = "user", **more: Any) -> dict[str, Any]:
    """A message of a drop, with what *more* the gateway says of it."""
    return {"entryId": id, "message": {"role": role, "content": text, "timestamp": at_ms, **more}}


def hand_over(
    home: Path,
    *entries: dict[str, Any],
    session: str = "agent:main:main",
    reason: str = "turn",
    at_ms: int = 0,
    **more: Any,
) -> Path:
    """
    Leave *entries* as one drop in the spool of *home*, which is named by *at_ms* or else by its first message. *more*: what
    else the drop says. Returns its file.
    """
    at_ms, n = at_ms or entries[0]["message"]["timestamp"], next(NUMBERS)
    drop = {"v": 1, "reason": reason, "agentId": "main", "sessionKey": session, "entries": entries, **more}
    (home / "spool").mkdir(parents=True, exist_ok=True)
    unfinished = home / "spool" / f".{n}"
    unfinished.write_text(json.dumps(drop))
    return unfinished.replace(home / "spool" / f"{at_ms:015d}-{n}.json")
