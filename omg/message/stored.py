"""
What was said between two ends of the agent, cleaned.

- `read_drop` a spool file (of hooks/index.js or importer.py) → a Turn: the one place that parses drops
- `clean`     the gateway's entries → Messages: no injection, no wrappers, no turns of its own, no secrets
- `pieces`    safe cuts: a tool call stays with its result; `halves` where a piece was too much
- `to_json/from_json` for a pending turn, `message_to_json/message_from_json` for a line of the archive

No I/O and no opinion about what is worth remembering. Its one rule: a secret is out of a text before anything
else is made of it.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from ..errors import BadInput
from .turn import Call, Message, Turn

# --- on disk


def turn_to_json(turn: Turn) -> str:
    """A pending file: the Turn's fields by name, one line."""
    return json.dumps(asdict(turn), ensure_ascii=False, separators=(",", ":"))


def turn_from_json(text: str) -> Turn:
    """The inverse of `to_json`. Raises BadInput."""
    try:
        fields = json.loads(text)
        return Turn(**{**fields, "messages": tuple(_stored(m) for m in fields["messages"])})
    except (ValueError, TypeError, KeyError) as e:
        raise BadInput(f"not a stored turn: {e}") from e


def message_to_json(message: Message, session: str) -> str:
    """A line of the archive: the Message's fields that are set, and `session`, the sessionKey."""
    fields = {k: v for k, v in asdict(message).items() if v or v is False or k in ("text", "timestamp")}
    return json.dumps({"session": session, **fields}, ensure_ascii=False, separators=(",", ":"))


def message_from_json(line: str) -> tuple[Message, str]:
    """The message of a line of the archive, and its session. Raises BadInput."""
    try:
        fields = json.loads(line)
        return _stored({k: v for k, v in fields.items() if k != "session"}), fields["session"]
    except (ValueError, TypeError, KeyError, AttributeError) as e:
        raise BadInput(f"not a line of the archive: {e}") from e


def _stored(fields: dict[str, Any]) -> Message:
    return Message(**{**fields, "calls": tuple(Call(**call) for call in fields.get("calls", ()))})
