"""
JSON out of a model's reply, whatever surrounds it; of a truncated one, the items that are whole.

Not here: what the items mean (observe/reply.py, reflect/verdicts.py).
"""

from __future__ import annotations

import json
import re
from typing import Any

from ..errors import BadReply

TEXT, TEXTS = {"type": "string"}, {"type": "array", "items": {"type": "string"}}  # in a JSON schema


def object_schema(required: str, **properties: Any) -> dict[str, Any]:
    """The JSON schema of an object; *required* are names of properties, with spaces between."""
    return {"type": "object", "properties": properties, "required": required.split()}


def cut_out(text: str, key: str = "edits", mark: str = "op") -> dict[str, Any]:
    """
    The JSON object with *key* in *text*, whatever stands around it; of a truncated one, the items that are whole.

    *mark* is a key that every item of the list under *key* has.
    """
    try:
        return found_in(text, key, mark)
    except RecursionError as e:
        raise BadReply("the reply nests brackets without end; it was not used") from e


def one_of(value: Any, *words: str) -> str:
    """*value* as one of *words*, whatever its case. Raises ValueError."""
    if (word := str(value).strip().lower()) not in words:
        raise ValueError(f"op is none of {', '.join(words)}")
    return word


def found_in(text: str, key: str, mark: str) -> dict[str, Any]:
    decoder = json.JSONDecoder(strict=False)
    for start in (m.start() for m in re.finditer(r"\{", text)):
        try:
            value, _ = decoder.raw_decode(text, start)
        except ValueError:
            continue
        if isinstance(value, dict) and key in value:
            return value
        if isinstance(value, dict) and mark in value:
            break  # the outer object is broken: what follows are its items
    if bare := re.search(r"^\s*(?:```\w*\s*)?\[", text):  # some models answer with the bare list
        try:
            value, _ = decoder.raw_decode(text, bare.end() - 1)
            return {key: value}
        except ValueError:
            pass
    if f'"{key}"' not in text:
        raise BadReply(f"the reply holds no JSON object with `{key}`; it was not used")
    return {key: whole_items(text, decoder, key, mark)}


def whole_items(text: str, decoder: json.JSONDecoder, key: str, mark: str) -> list[Any]:
    items = []
    at = text.index(f'"{key}"')
    while (at := text.find("{", at)) >= 0:
        try:
            value, at = decoder.raw_decode(text, at)
            items.append(value)
        except ValueError:
            at += 1
    items = [v for v in items if isinstance(v, dict) and mark in v]
    if not items:
        raise BadReply("the reply broke off before its first item was whole; it was not used")
    return items
