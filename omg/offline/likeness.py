"""
What two statements have in common: the stems of the words that say something.

Rough: it only has to tell whether two short sentences may be about one thing; drafts.py asks more before it changes
anything. Not the search index's stemming, which SQLite does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache

from ..text.characters import UNSPACED_RUN
from .cues import TOKEN, bases, irregular, listed, read_words

PLAIN_VERB = 0.4  # what a common verb counts in a likeness; a name or a noun counts 1
PARTIES = frozenset(("user", "other", "assistant"))  # whom every other note is about
ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d")
ENDINGS = (("ies", "y"), ("ied", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""))


@lru_cache(maxsize=4096)
def content_stems(text: str) -> frozenset[str]:
    """The stems of the words that say something, dates aside; of scripts without spaces, pairs of characters."""
    return frozenset(_stems(ISO_DATE.sub("", text))) - PARTIES


def _stems(text: str) -> Iterator[str]:
    stop = listed("stop")
    for m in TOKEN.finditer(text):
        if runs := UNSPACED_RUN.findall(m[0]):
            yield from (run[i : i + 2] for run in runs for i in range(max(len(run) - 1, 1)))
        elif m[0].lower() not in stop and (root := stem_of(m[0])) not in stop:
            yield root


def stem_of(word: str) -> str:
    word = word.lower().removesuffix("'s").strip("'")
    word = irregular().get(word, word)
    for end, put in ENDINGS:
        if word.endswith(end) and len(word) - len(end) >= 3 and not word.endswith("ss"):
            word = word[: -len(end)] + put
            break
    if len(word) <= 4:
        return word
    return word[:-1] if word[-1] == word[-2] else word.removesuffix("e")


@cache
def common_stems() -> frozenset[str]:
    """The stems of common verbs."""
    return frozenset(map(stem_of, bases()))


def stem_overlap(a: frozenset[str], b: frozenset[str]) -> float:
    """How much of the lighter of two sets of stems is in the other, 0 to 1; a single word in common is chance."""
    shared = a & b
    if not shared or len(shared) < min(2, len(a), len(b)):
        return 0.0
    return stem_weight(shared) / min(stem_weight(a), stem_weight(b))


def stem_weight(stems: frozenset[str]) -> float:
    return sum(PLAIN_VERB if word in common_stems() else 1.0 for word in stems)


def themes(text: str) -> list[str]:
    """General words for what *text* is about, such as "health": the two that most of its words stand for."""
    words = {m[0].lower() for m in TOKEN.finditer(text)}
    hits = {
        theme: len(words.intersection(list_.split())) for theme, list_ in read_words("en")["themes"].items()
    }
    return [theme for theme in sorted(hits, key=lambda t: -hits[t]) if hits[theme]][:2]
