"""
What Obsidian leaves of a note, for tests: it parses the head and writes all of it anew when one property is edited.

As its documentation and the `yaml` package it is built on have it: keys in their order, lists and nested properties in
block form, quotes only where a plain scalar would read as something else, nothing at all for null, the body untouched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from omg.node.markdown import load_properties, split_head

OTHER = re.compile(
    r"~|null|true|false|[-+]?(?:\d+|0x[0-9a-f]+|0o[0-7]+|(?:\.\d+|\d+(?:\.\d*)?)(?:e[-+]?\d+)?)", re.I
)
PLAIN = re.compile(r"(?:[^\s\-?:,\[\]{}#&*!|>'\"%@`]|[-?:](?=\S))(?:.*\S)?")


def saved(text: str, edit: Mapping[str, Any] | None = None, eol: str = "\n") -> str:
    """*text* after the properties *edit* were entered in the properties view; None takes one out."""
    span, start = split_head(text)
    values = {**load_properties(text[span]), **(edit or {})}
    gone = {key for key, value in (edit or {}).items() if value is None}
    lines = [line for key, value in values.items() if key not in gone for line in entry(key, value, "")]
    whole = "---\n" + "".join(f"{line}\n" for line in lines) + "---\n" + text[start:]
    return whole.replace("\r\n", "\n").replace("\n", eol)


def entry(key: str, value: Any, indent: str) -> list[str]:
    if isinstance(value, dict) and value:
        return [f"{indent}{key}:", *(line for k, v in value.items() for line in entry(k, v, indent + "  "))]
    if isinstance(value, list) and value:
        return [f"{indent}{key}:", *(line for item in value for line in listed(item, indent + "  "))]
    return [f"{indent}{key}: {scalar(value)}".rstrip()]


def listed(item: Any, indent: str) -> list[str]:
    if isinstance(item, dict) and item:
        lines = [line for k, v in item.items() for line in entry(k, v, indent + "  ")]
        return [f"{indent}- {lines[0].strip()}", *lines[1:]]
    return [f"{indent}- {scalar(item)}"]


def scalar(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer():
            return str(int(value))
        case str() if PLAIN.fullmatch(value) and not OTHER.fullmatch(value):
            if ": " not in value and " #" not in value and not value.endswith(":") and "\n" not in value:
                return value
    return json.dumps(value, ensure_ascii=False)


def relinked(text: str, old: str, new: str) -> str:
    """*text* after the file at *old* was renamed to *new* in Obsidian, which updates links and keeps what they show."""
    return re.sub(rf"\[\[{re.escape(old)}(?=[|#\]])", lambda _: f"[[{new}", text)
