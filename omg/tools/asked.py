"""
What a gateway sends with a question, read as far as it makes sense.

Not here: what is answered (tools.py). One rule: whatever is in there, reading it raises nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def mapping_in(body: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = body.get(key)
    return dict(value) if isinstance(value, Mapping) else {}


def link_target(value: object) -> str:
    """The note that a model or a person means: they write the name alone, or the whole [[link|label]]."""
    return str(value or "").strip().removeprefix("[[").removesuffix("]]").split("|")[0].strip()


def said_by_user(message: Mapping[str, Any]) -> bool:
    """Whether a person wrote this message of the transcript, and not the gateway in their place."""
    return bool(message.get("id")) and mapping_in(message, "provenance").get("kind") in (
        None,
        "",
        "external_user",
    )
