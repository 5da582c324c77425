"""
Takes the secrets out of a text.

A secret is looked for in the text as a reader sees it, and taken out of the text as it is written. What was redacted
is never changed again: `redact(redact(x)[0]) == (redact(x)[0], 0)`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

import regex

from ..text.characters import UNSEEN
from .credentials import placed_secrets
from .formats import Span, formatted_secrets
from .labels import labelled_secrets
from .numbers import account_numbers
from .tokens import random_tokens

ROUNDS = 12  # taking one secret out can uncover another; a text that needs more is made to keep us busy
AT_ONCE_CHARS = 40_000  # a regular expression holds the interpreter while it reads
MARK = re.compile(r"\[redacted: [A-Za-z0-9 ]+\]")

# Letters that a reader does not see, or sees as others: blanks of all widths, full-width and mathematical letters, quotes.
MASKED = regex.compile(
    rf"(?P<unseen>{UNSEEN}+)|[\u00a0\u2000-\u200a\u202f\u205f\u3000‘-‟«»\uff01-\uff5e\U0001d400-\U0001d7ff]"
)
PLAIN_QUOTES = dict.fromkeys("‘’‚‛", "'") | dict.fromkeys("“”„‟«»", '"')


def redact(text: str) -> tuple[str, int]:
    """Return *text* with every secret replaced by "[redacted: <kind>]", and how many there were."""
    pieces = [_redact(piece) for piece in _pieces(text)]
    return "".join(piece for piece, _ in pieces), sum(found for _, found in pieces)


def _pieces(text: str) -> Iterator[str]:
    """Cut *text* behind lines, else behind words."""
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
    """Return *text* in plain letters, and the place in *text* of each of its characters and of its end."""
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
    """Take out what can be seen now."""
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
    parts, at, kept, count = [], 0, 0, 0  # `at` in what is seen, `kept` in *text*
    for start, end, kind in sorted(spans, key=lambda span: (span[0], -span[1])):
        if any(start < closed and opened < end for opened, closed in marks):
            continue
        if start >= at:
            parts += [text[kept : places[start]], f"[redacted: {kind}]"]
            count += 1
        if end > at:  # one that overlaps the one before goes with it
            at, kept = end, places[end - 1] + 1
    return "".join(parts) + text[kept:], count


WRAPPED = re.compile(
    r"[\"']?[ \t]?[\\+.]?[ \t]?\n[> \t+]{0,40}[\"']?(?P<rest>[A-Za-z0-9+/=_-]{4,120})(?=[\"']?[ \t]?[\\+.;)]?\s*(?:\n|\Z))"
)


def wrapped(text: str, span: Span) -> Span | None:
    """The lines below a key that ends with its line, as long as they look like more of it."""
    start, end, kind = span
    at, wide = end, 0
    while end - start >= 20 and (m := WRAPPED.match(text, at)) and wide != 1:
        rest = m["rest"]
        if rest.isalpha() and (rest.islower() or rest.isupper() or rest.istitle()):
            break
        at, wide = m.end("rest"), 1 if len(rest) < 12 else 2  # a short one is the last
    return (end, at, kind) if at > end else None
