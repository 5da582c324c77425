"""
A question as the terms it is asked with: all that may tell one note from another, joined by OR, rarest first (scores.py).

Not here: how much a term weighs, which depends on how rare it is. A question in any script that has words in it has
terms, and no character in it is syntax.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from itertools import pairwise

import regex

from ..text.characters import UNSPACED_RUN, fold_text
from ..text.words import STOP, WORD_OR_RUN, words_in

# The FTS5 tokenizer that `fold_text` (text/characters.py) is made for. Marks (Mn, Mc) belong to their letters, or Hindi falls apart.
TOKENIZER = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"

# Of a date phrase that is resolved to days, what says nothing once it is.
CALENDAR = frozenset(
    """
    ago coming couple day days few fortnight last month months next night past previous quarter several this today
    tomorrow tonight week weekend weekends weeks year years yesterday
    """.split()
)

# What is asked for, of what the next words name: hardly anybody who said it said so.
ASKED_FOR = re.compile(r"\bthe (?:names?|numbers?|dates?|amounts?|kinds?|types?) of\b", re.I)

# Letters of scripts whose words end in cases that Porter, which is for English, does not know.
INFLECTED = regex.compile(r"(?!\p{Latin})\p{L}")


@dataclass(frozen=True, slots=True)
class Term:
    match: str  # an FTS5 expression: a quoted string, or a prefix
    shown: str  # as it was written


def terms_of(question: str, dates: tuple[str, ...] = ()) -> tuple[Term, ...]:
    """
    What to look for, in the order asked; *dates* are phrases in it whose days are known.

    A stop word is kept where it is written as a name ("Will") or stands in a compound ("to-do"); where there
    are none but stop words, all are kept, unless the question is about days.
    """
    text = unicodedata.normalize("NFKC", question).replace("’", "'")
    found: dict[str, Term] = {}
    for n, chunk in enumerate(ASKED_FOR.sub("the", text).split()):
        for term in terms_of_chunk(chunk, first=n == 0):
            found.setdefault(term.match.lower(), term)
    said = {word.lower() for phrase in dates for word in words_in(phrase)} & CALENDAR
    kept = [t for t in found.values() if t.shown.lower() not in said]
    if not kept and not dates:
        kept = [Term(quoted_terms(w), w) for w in dict.fromkeys(words_in(text))]
    return tuple(kept)


def terms_of_chunk(chunk: str, first: bool) -> list[Term]:
    """The terms of what stands between two spaces."""
    if re.search(r"n't\b", chunk, re.I):
        return []
    chunk = re.sub(r"'\w{1,2}\b", "", chunk)  # Caroline's, I'll
    parts = WORD_OR_RUN.findall(chunk)
    found = []
    for part in parts:
        if UNSPACED_RUN.match(part):
            found += unspaced_terms(part)
        elif not is_dropped(part, chunk, first):
            found.append(Term(match_form(fold_text(part)), part))
    if (
        len(parts) > 1 and "/" not in chunk and not UNSPACED_RUN.search(chunk)
    ):  # socket.io, 3.5, to-do: also as one
        found.append(Term(quoted_terms(fold_text(" ".join(parts))), chunk.strip(".,;:!?()\"'")))
    return found


def is_dropped(word: str, chunk: str, first: bool) -> bool:
    low = word.lower()
    if low in STOP:
        name = word[0].isupper() and not first and low not in ("i", "a") and not word.isupper()
        return not name
    # A letter alone is left over from something, unless it is a thing's name: C++, plan B.
    return (
        len(word) == 1
        and word.isascii()
        and not word.isdigit()
        and not (word.isupper() or "+" in chunk or "#" in chunk)
    )


def match_form(word: str) -> str:
    if INFLECTED.search(word) and len(word) >= 5:
        return f"{quoted_terms(word[: max(4, len(word) - 2)])}*"
    return quoted_terms(word)


def unspaced_terms(run: str) -> list[Term]:
    """Pairs of neighbouring characters; one that stands alone is a word."""
    if len(run) == 1:
        return [Term(quoted_terms(run), run)]
    return [Term(quoted_terms(f"{a} {b}"), a + b) for a, b in pairwise(run)]


def quoted_terms(words: str) -> str:
    return f'"{words}"'
