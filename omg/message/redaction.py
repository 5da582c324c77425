"""
Take the secrets out of a text.

- keys by their form, private key blocks (forms.py)
- values by their name, such as `password: …` (passwords.py), or their place in a command or a file (placed.py)
- tables, recovery codes and wallets' words (lists.py), cards and IBANs (accounts.py)

Not a scanner of files, and no judge of prose: UUIDs, hashes, phone numbers and dates stay. A secret is sought in
the text as a reader sees it (`unmasked`), and only where it stands is the text changed. One rule: what was redacted
is never changed again, so that redact(redact(x)) == redact(x).
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import regex

from ..text.characters import UNSEEN
from .accounts import NUMBER_HINTS, account_numbers
from .forms import form_hints, formed_secrets, longest_word
from .hints import Hints
from .lists import LIST_HINTS, listed_secrets
from .names import SECRET_NAMES
from .passwords import named_secrets
from .placed import SECRET_PLACES, placed_secrets
from .printed import SHOWN_HINTS, result_of
from .told import SETUP_HINTS, TALK, told_secrets

Span = tuple[int, int, str]  # start, end, kind

ROUNDS = 12  # a text that needs more is made to keep us busy


def redact(text: str) -> tuple[str, int]:
    """*text* with every secret replaced by "[redacted: <kind>]", and how many there were."""
    if len(text) <= REDACTED_AT_ONCE:
        return _redact(text)
    pieces = [_redact(piece) for piece in _pieces(text)]
    return "".join(piece for piece, _ in pieces), sum(found for _, found in pieces)


# chars: an expression that reads holds the interpreter, and so whoever waits for memory
REDACTED_AT_ONCE = 40_000


def _pieces(text: str) -> Iterator[str]:
    """*text* in pieces that end with a line, else with a word."""
    at = 0
    while len(text) - at > REDACTED_AT_ONCE:
        end = max(text.rfind("\n", at, at + REDACTED_AT_ONCE), at)
        end = end if end > at else text.rfind(" ", at, at + REDACTED_AT_ONCE)
        end = end + 1 if end > at else at + REDACTED_AT_ONCE
        yield text[at:end]
        at = end
    yield text[at:]


def _redact(text: str) -> tuple[str, int]:
    total = 0
    for _ in range(ROUNDS):  # taking one out can uncover another
        text, found = _round(text)
        total += found
        if not found:
            break
    return text, total


# Letters that a reader sees as others, or not at all: blanks of all widths, full-width and mathematical letters,
# quotation marks, invisible characters.
MASKED = regex.compile(
    rf"(?P<unseen>{UNSEEN}+)|[\u00a0\u2000-\u200a\u202f\u205f\u3000‘-‟«»\uff01-\uff5e\U0001d400-\U0001d7ff]"
)

PLAIN_QUOTES = dict.fromkeys("‘’‚‛", "'") | dict.fromkeys("“”„‟«»", '"')


def unmasked(text: str) -> tuple[str, Sequence[int]]:
    """*text* in plain letters, and the place in *text* of each of its characters and of its end."""
    if not MASKED.search(text):
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


MARK = re.compile(r"\[redacted: [A-Za-z0-9 ]+\]")


@cache
def _hints() -> Hints:
    rules = {hint for rule in (*SECRET_PLACES, *TALK) for group in rule.hints for hint in group}
    return Hints(
        {
            *form_hints(),
            *SECRET_NAMES,
            *rules,
            *LIST_HINTS,
            *NUMBER_HINTS,
            *SHOWN_HINTS,
            *SETUP_HINTS,
            "hook",
            "cookie",
        }
    )


def _round(text: str) -> tuple[str, int]:
    """Take out what can be seen now, and how many that were."""
    seen, places = unmasked(text)
    lowered = seen.replace("İ", "I").lower()  # the one letter whose lower case is longer: places must agree
    longest = longest_word(seen)
    found = _hints().found_in(lowered)
    present = found.words
    spans = [*formed_secrets(seen, present, longest), *named_secrets(seen, lowered, present)]
    spans += [*account_numbers(seen, found), *placed_secrets(seen, present, longest)]
    spans += [*listed_secrets(seen, lowered, present), *told_secrets(seen, found)]
    spans += [wrapped for span in spans if (wrapped := continued(seen, span))]
    if not spans:
        return text, 0
    marks = [m.span() for m in MARK.finditer(seen)]
    parts, at, kept, count = [], 0, 0, 0  # `at` in what is seen, `kept` in *text*
    for start, end, kind in sorted(spans, key=lambda span: (span[0], -span[1])):
        if any(start < closed and opened < end for opened, closed in marks):
            continue
        if start >= at:
            parts += [text[kept : places[start]], f"[redacted: {kind}]"]
            count += 1
        if end > at:  # of one that overlaps the one before, the rest goes with it
            at, kept = end, places[end - 1] + 1
    return "".join(parts) + text[kept:], count


WRAPPED = re.compile(
    r"[\"']?[ \t]?[\\+.]?[ \t]?\n[> \t+]{0,40}[\"']?(?P<rest>[A-Za-z0-9+/=_-]{4,120})(?=[\"']?[ \t]?[\\+.;)]?\s*(?:\n|\Z))"
)
LINES = 60  # of a key that a mail or a terminal broke


def continued(text: str, span: Span) -> Span | None:
    """The lines below a key that stands at its line's end, as long as they look like more of it."""
    start, end, kind = span
    if end - start < 16 or kind in ("password", "cookie", "card number", "IBAN"):
        return None
    at, wide = end, 0
    for _ in range(LINES):
        m = WRAPPED.match(text, at)
        if not m:
            break
        rest = m["rest"]
        mixed = any(c.isdigit() for c in rest) or (
            not rest.islower() and not rest.isupper() and not rest.istitle()
        )
        if not mixed or len(rest) > max(wide, 120):
            break
        at, wide = m.end("rest"), len(rest)
        if wide < 12:  # the last one
            break
    return (end, at, kind) if at > end else None


# --- the result of a call


def redact_result(text: str, arguments: str) -> tuple[str, int]:
    """*text*, the result of a call with *arguments*, as `redact` has it, and without what a call such as `pass show` shows."""
    clean, count = redact(text)
    shown = result_of(arguments, clean)
    return (
        (f"{clean[: shown[0]]}[redacted: {shown[2]}]{clean[shown[1] :]}", count + 1)
        if shown
        else (clean, count)
    )


# --- the arguments of a call

DEEP = 12  # levels of a call's arguments; what lies below is redacted as the text it is


def redact_arguments(arguments: str) -> tuple[str, int]:
    """
    *arguments*, the JSON of a call, with the secrets of its values taken out before they are escaped, and how many.

    A value is read with the name it has: its key, or what a form calls the field beside it.
    """
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return redact(arguments)
    if not isinstance(value, dict | list):
        return redact(arguments)
    clean, found = _value_without(value, "", DEEP)
    return (json.dumps(clean, ensure_ascii=False, separators=(",", ":")), found) if found else (arguments, 0)


LABELS = (
    "label",
    "name",
    "key",
    "field",
    "placeholder",
    "selector",
    "ref",
    "id",
    "element",
    "target",
    "type",
    "title",
)


LOCKS = re.compile(r"lock|alarm|garage|gate\b|door|safe\b|keypad|tresor|schloss|tür", re.I)


def _value_without(value: Any, name: str, levels: int) -> tuple[Any, int]:
    if isinstance(value, str):
        clean, found = redact(value)
        if found or not name or len(value) > 4_000 or "\n" in value:
            return clean, found
        quoted = json.dumps(value, ensure_ascii=False)
        plain, found = redact(f"{name}: {value}" if '"' in value else f"{name}: {quoted}")
        return (f"[redacted: {MARK.search(plain)[0][11:]}", 1) if found else (value, 0)  # type: ignore[index]
    if isinstance(value, int) and not isinstance(value, bool) and name:
        plain, found = redact(f"{name}: {value}")
        return (f"[redacted: {MARK.search(plain)[0][11:]}", 1) if found else (value, 0)  # type: ignore[index]
    if not isinstance(value, dict | list):
        return value, 0
    if levels == 0:
        return redact(json.dumps(value, ensure_ascii=False))
    found = 0
    if isinstance(value, list):
        items: list[Any] = []
        pair = (
            len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], str) and len(value[0]) < 60
        )
        for item in value:
            called = value[0] if pair and items else name  # ["X-Auth-Token", "x"]
            clean, more = _value_without(item, called, levels - 1)
            items.append(clean)
            found += more
        return items, found
    labels = [value[k] for k in LABELS if isinstance(value.get(k), str) and len(value[k]) < 60]
    label = next((said for said in labels if any(name in said.lower() for name in SECRET_NAMES)), "")
    label = label or next(iter(labels), "")
    fields = {}
    for key, item in value.items():
        called = label if key in ("text", "value", "content", "input", "data") and label else key
        if key.lower().endswith("code") and LOCKS.search(f"{[*value, *value.values()]}"[:2_000]):
            called = "pin"
        key_clean, more = redact(key)
        clean, most = _value_without(item, called, levels - 1)
        fields[key_clean] = clean
        found += more + most
    return fields, found
