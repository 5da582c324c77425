"""Takes the secrets out of a call's arguments and its result, and out of an answer that is nothing but the password asked for."""

from __future__ import annotations

import json
import re
from typing import Any

from .labels import find_labels
from .looks import is_stand_in, is_typed
from .redaction import MARK, redact

DEEP = 12  # levels of a call's arguments; what lies below is redacted as the text it is
FIELD_NAMES = "label name key field placeholder selector ref id element target type title".split()
VALUE_NAMES = ("text", "value", "content", "input", "data")
ONE_WORD = re.compile(r"\s{0,20}(?P<value>[^\s\"'`]{6,400})\s{0,20}")
SOURCE_FILE = re.compile(r".*\.\w{1,4}[\"'})]*")
ASKED_CHARS = 160  # at the end of a message, in which it asks


def redact_arguments(arguments: str) -> tuple[str, int]:
    """
    Return the JSON *arguments* of a call without the secrets in their values, and how many there were.

    A value is read with its name: its key, or what a form calls the field beside it. Arguments without a secret come back
    byte for byte.
    """
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return redact(arguments)
    if not isinstance(value, dict | list):
        return redact(arguments)
    clean, found = _without(value, "", DEEP)
    return (json.dumps(clean, ensure_ascii=False, separators=(",", ":")), found) if found else (arguments, 0)


def _without(value: Any, name: str, levels: int) -> tuple[Any, int]:
    """*value* of the name *name* without secrets, and how many it had."""
    if isinstance(value, dict | list) and levels == 0:
        return redact(json.dumps(value, ensure_ascii=False))
    if isinstance(value, list):
        pair = len(value) == 2 and isinstance(value[0], str) and len(value[0]) < 60  # ["X-Auth-Token", "x"]
        cleaned = [
            _without(item, value[0] if pair and n else name, levels - 1) for n, item in enumerate(value)
        ]
        return [item for item, _ in cleaned], sum(found for _, found in cleaned)
    if isinstance(value, dict):
        fields, total = {}, 0
        for key, item in value.items():
            clean, found = _without(item, _name_of(key, value), levels - 1)
            clean_key, more = redact(key)
            fields[clean_key], total = clean, total + found + more
        return fields, total
    if isinstance(value, str):
        clean, found = redact(value)
        if found or len(value) > 4_000 or "\n" in value:
            return clean, found
    if not name or not isinstance(value, str | int) or isinstance(value, bool):
        return value, 0
    quoted = json.dumps(value, ensure_ascii=False)
    clean, found = redact(f"{name}: {value}" if '"' in str(value) else f"{name}: {quoted}")
    return (MARK.search(clean)[0], 1) if found else (value, 0)  # type: ignore[index]


def _name_of(key: str, fields: dict[str, Any]) -> str:
    """What the field *key* is called: by itself, or by the field beside it that names it."""
    if key in VALUE_NAMES:
        names = [fields[k] for k in FIELD_NAMES if isinstance(fields.get(k), str) and len(fields[k]) < 60]
        return next((name for name in names if any(find_labels(name))), names[0] if names else key)
    if key.lower().endswith("code"):  # another field says what for: {"entity": "lock.front", "code": 4096}
        return f"{' '.join(v for v in fields.values() if isinstance(v, str))[:30]} {key}"
    return key


def redact_result(text: str, arguments: str) -> tuple[str, int]:
    """Return *text*, the result of a call with *arguments*, without secrets; of `pass show x` the one word that it prints."""
    clean, count = redact(text)
    m = ONE_WORD.fullmatch(clean)
    words = [word for word in arguments.split() if not SOURCE_FILE.fullmatch(word)]
    named = words if "/" in arguments else words[1:]  # not the `pass` of `pass ls`
    if count or not m or is_stand_in(m["value"]) or not any(any(find_labels(word)) for word in named):
        return clean, count
    return "[redacted: password]", 1


def answers_with(question: str, answer: str) -> str | None:
    """What *answer*, a whole message, gives away as one word where the message before it is *question*: "password", "code" or None."""
    asked = {kind for kind, _, _ in find_labels(question[-ASKED_CHARS:])}
    if "number" in asked and re.fullmatch(r"[#*]?\d{4,8}[#*]?", answer):
        return "code"
    return "password" if "password" in asked and " " not in answer and is_typed(answer) else None
