"""
Turns and messages as JSON: a turn is a file of `pending/`, a message a line of the archive.

Not here: the files (graph/graph.py). One rule: what is written reads back equal, and what older versions wrote is
still read.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from ..errors import BadInput
from .turn import Call, Message, Turn


def turn_to_json(turn: Turn) -> str:
    """A pending file: the Turn's fields by name, one line."""
    fields = asdict(turn)
    for message in fields["messages"]:
        del message["spans"]  # whole messages are stored; they are parted anew where they are read
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def turn_from_json(text: str) -> Turn:
    """The inverse of `turn_to_json`. Raises BadInput."""
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
