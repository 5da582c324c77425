"""
Redacts the secrets in a text, and in the arguments and results of tool calls.

Invisible characters do not hide a secret: the text is searched as a reader sees it. Redacting twice changes nothing
more: `redact(redact(x)[0]) == (redact(x)[0], 0)`.
"""

from __future__ import annotations

import json
import re
import unicodedata
import zlib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import regex

from ..text import characters
from ..text import words as text_words
from ..text.characters import UNSEEN
from .labels import find_labels, labelled_secrets, placed_secrets
from .tokens import Span, account_numbers, formatted_secrets, is_stand_in, is_typed, random_tokens

ROUNDS = 12  # redacting one secret can uncover another; only a text made as an attack needs more rounds
AT_ONCE_CHARS = 40_000  # characters searched at once: a regular expression blocks all threads while it runs
MARK = re.compile(r"\[redacted: [A-Za-z0-9 ]+\]")

# Letters that a reader does not see, or sees as others: blanks of all widths, full-width and mathematical letters, quotes.
MASKED = regex.compile(
    rf"(?P<unseen>{UNSEEN}+)|[\u00a0\u2000-\u200a\u202f\u205f\u3000‘-‟«»\uff01-\uff5e\U0001d400-\U0001d7ff]"
)
PLAIN_QUOTES = dict.fromkeys("‘’‚‛", "'") | dict.fromkeys("“”„‟«»", '"')


@cache
def rules_number() -> int:
    """
    Return a number that changes with the rules for secrets.

    After a change, stored texts are searched for secrets again. The number is a checksum of this package's code, of two
    modules in `text`, and of three libraries' versions.
    """
    code = [*sorted(Path(__file__).parent.glob("*.py")), Path(characters.__file__), Path(text_words.__file__)]
    packages = ("kingfisher-secret-scanner", "mnemonic", "python-stdnum")
    return zlib.crc32(repr([*map(version, packages), *map(Path.read_bytes, code)]).encode())


def redact(text: str) -> tuple[str, int]:
    """Return *text* with every secret replaced by "[redacted: <kind>]", and the number of secrets."""
    pieces = [_redact(piece) for piece in _pieces(text)]
    return "".join(piece for piece, _ in pieces), sum(found for _, found in pieces)


def _pieces(text: str) -> Iterator[str]:
    """Cut *text* into pieces of at most AT_ONCE_CHARS: after a line if possible, else after a word."""
    at = 0
    while len(text) - at > AT_ONCE_CHARS:
        end = max(text.rfind("\n", at, at + AT_ONCE_CHARS), at)
        end = end if end > at else text.rfind(" ", at, at + AT_ONCE_CHARS)
        end = end + 1 if end > at else at + AT_ONCE_CHARS
        yield text[at:end]
        at = end
    yield text[at:]


def _redact(text: str) -> tuple[str, int]:
    total = 0
    for _ in range(ROUNDS):
        text, found = _round(text)
        total += found
        if not found:
            break
    return text, total


def unmasked(text: str) -> tuple[str, Sequence[int]]:
    """
    Return *text* in plain letters, and for each plain character its place in *text*. The last number is the
    length of *text*.
    """
    if text.isascii() or not MASKED.search(text):
        return text, range(len(text) + 1)
    plain: list[str] = []
    places: list[int] = []
    at = 0
    for m in MASKED.finditer(text):
        plain.append(text[at : m.start()])
        places += range(at, m.start())
        if not m["unseen"]:
            plain.append(PLAIN_QUOTES.get(m[0]) or unicodedata.normalize("NFKC", m[0]))
            places.append(m.start())
        at = m.end()
    return "".join(plain) + text[at:], [*places, *range(at, len(text) + 1)]


def _round(text: str) -> tuple[str, int]:
    """Redact all secrets that are visible in *text*, in one pass. Return the text and the number of secrets."""
    seen, places = unmasked(text)
    spans = [
        span
        for find in (formatted_secrets, labelled_secrets, placed_secrets, random_tokens, account_numbers)
        for span in find(seen)
    ]
    spans += [rest for span in spans if (rest := wrapped(seen, span))]
    if not spans:
        return text, 0
    marks = [m.span() for m in MARK.finditer(seen)]
    parts, at, kept, count = [], 0, 0, 0  # `at` is a place in `seen`, `kept` a place in *text*
    for start, end, kind in sorted(spans, key=lambda span: (span[0], -span[1])):
        if any(start < closed and opened < end for opened, closed in marks):
            continue
        if start >= at:
            parts += [text[kept : places[start]], f"[redacted: {kind}]"]
            count += 1
        if end > at:  # a span that overlaps the span before is removed, too
            at, kept = end, places[end - 1] + 1
    return "".join(parts) + text[kept:], count


WRAPPED = re.compile(
    r"[\"']?[ \t]?[\\+.]?[ \t]?\n[> \t+]{0,40}[\"']?(?P<rest>[A-Za-z0-9+/=_-]{4,120})(?=[\"']?[ \t]?[\\+.;)]?\s*(?:\n|\Z))"
)


def wrapped(text: str, span: Span) -> Span | None:
    """
    Return the rest of a key that continues on the next lines: the lines below *span* that look like parts of a
    key. None if the key does not continue.
    """
    start, end, kind = span
    at, wide = end, 0
    while end - start >= 20 and (m := WRAPPED.match(text, at)) and wide != 1:
        rest = m["rest"]
        if rest.isalpha() and (rest.islower() or rest.isupper() or rest.istitle()):
            break
        at, wide = m.end("rest"), 1 if len(rest) < 12 else 2  # a short line is the last
    return (end, at, kind) if at > end else None


# --- Redacts the arguments and the result of a call, and an answer that is only the requested password.


DEEP = 12  # levels of nested arguments; deeper values are redacted as text
FIELD_NAMES = "label name key field placeholder selector ref id element target type title".split()
VALUE_NAMES = ("text", "value", "content", "input", "data")
ONE_WORD = re.compile(r"\s{0,20}(?P<value>[^\s\"'`]{6,400})\s{0,20}")
SOURCE_FILE = re.compile(r".*\.\w{1,4}[\"'})]*")
ASKED_CHARS = 160  # characters at the end of a message that may ask for a secret


def redact_arguments(arguments: str) -> tuple[str, int]:
    """
    Return the JSON *arguments* of a call without the secrets in their values, and the number of secrets.

    A value's name helps to recognise a secret. The name is the value's key, or the text of a field beside it,
    as in forms. Arguments without a secret come back byte for byte.
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
    """
    Return *value* without secrets, and the number of secrets. *name*: the name of *value*. *levels*: how deep lists
    and objects are searched; a list or object that is nested deeper is redacted as JSON text.
    """
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
    """Return the name of the field *key*: the text of a field beside it such as "label", or *key* itself."""
    if key in VALUE_NAMES:
        names = [fields[k] for k in FIELD_NAMES if isinstance(fields.get(k), str) and len(fields[k]) < 60]
        return next((name for name in names if any(find_labels(name))), names[0] if names else key)
    if key.lower().endswith("code"):  # another field says what for: {"entity": "lock.front", "code": 4096}
        return f"{' '.join(v for v in fields.values() if isinstance(v, str))[:30]} {key}"
    return key


def redact_result(text: str, arguments: str) -> tuple[str, int]:
    """
    Return *text*, the result of a call with *arguments*, without secrets, and the number of secrets. A single
    word is a secret if *arguments* name a password, as in `pass show x`.
    """
    clean, count = redact(text)
    m = ONE_WORD.fullmatch(clean)
    words = [word for word in arguments.split() if not SOURCE_FILE.fullmatch(word)]
    named = words if "/" in arguments else words[1:]  # not the `pass` of `pass ls`
    if count or not m or is_stand_in(m["value"]) or not any(any(find_labels(word)) for word in named):
        return clean, count
    return "[redacted: password]", 1


def answers_with(question: str, answer: str) -> str | None:
    """
    Return the kind of secret that *answer* gives in reply to *question*.

    Returns "password", "code", or None if *answer* is no secret. *question* and *answer* are whole messages.
    """
    asked = {kind for kind, _, _ in find_labels(question[-ASKED_CHARS:])}
    if "number" in asked and re.fullmatch(r"[#*]?\d{4,8}[#*]?", answer):
        return "code"
    return "password" if "password" in asked and " " not in answer and is_typed(answer) else None
