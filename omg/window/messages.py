"""
A message of the context as the law sees it: what it calls or answers, and what it costs.

Not here: turns (cut.py), and what was cut (context.py). One rule: what was cut is not counted again, for it has megabytes
where a transcript is never compacted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..message.drop import content_of
from ..message.turn import FRAME_TOKENS
from ..text.tokens import count_tokens
from .cut import Shown

OUTLINE_CHARS_A_TOKEN = 6  # with a text of 4 or 5: what was saved is rather thought less
# What else there is, such as a summary of the gateway's own, stays.
SPEAKERS = ("user", "assistant", "tool", "toolResult")


def shown_message(message: Mapping[str, Any]) -> Shown:
    return replace(uncounted(message), tokens=tokens_of(message))


def uncounted(message: Mapping[str, Any]) -> Shown:
    """What tells where turns end, without what it costs."""
    content = message.get("content") if message.get("role") in SPEAKERS else None
    calls = content_of(content)[1] if isinstance(content, list) else []
    made = tuple(call.id for call in calls if call.id)
    return Shown(str(message.get("role")), 0, made, str(message.get("toolCallId") or ""))


def tokens_of(message: Mapping[str, Any]) -> int:
    if message.get("role") not in SPEAKERS:
        return count_tokens(json.dumps(message, ensure_ascii=False))
    if isinstance(chars := message.get("chars"), int):  # only its outline: it was cut before
        return FRAME_TOKENS + chars // OUTLINE_CHARS_A_TOKEN
    content = message.get("content")
    text, calls = content_of(content if isinstance(content, str | list) else None)
    spoken = count_tokens(text) + sum(count_tokens(call.name + call.arguments) for call in calls)
    return FRAME_TOKENS + spoken
