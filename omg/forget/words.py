"""
Finds words in a text, and replaces them.

They are found however they are written: upper or lower case, full-width, composed or not, with invisible characters in between,
over the end of a line or of a quoted one, with hyphens as in a file's name, or escaped as JSON has them. Accents count.

`blanked` takes out all that `holds_words` finds.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from ..node.markdown import slugify
from ..text.characters import without_unseen

BLANK = "(forgotten)"  # no brackets and no colon: it may stand in a link, in a head, and in JSON
SLUG_CHARS = 3
READINGS = 3  # a call's arguments are JSON, in a drop that is JSON, in a log that is JSON

# Hyphens join the words of a file's name. A quotation, wrapped, begins each line with ">".
WORD_GAP = re.compile(r"[\s\u2800]+(?:>[\s\u2800>]*)?|(?<=\w)[-_\u2010-\u2015\u2212]{1,3}(?=\w)")
ESCAPED = re.compile(
    r'\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[nrtbf"\\/])'
)
ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


class Folding(dict[int, str]):
    """For `str.translate`: what each character counts as, made when it is first met."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold())
        self[code] = without_unseen(plain)
        return self[code]


FOLDING = Folding()


def folded(text: str) -> str:
    return WORD_GAP.sub(" ", text.translate(FOLDING))


@lru_cache(maxsize=64)
def folded_words(words: str) -> str:
    """*words* as they are sought; "" if nothing of them can be seen."""
    return folded(words).strip()


def holds_words(text: str, words: str) -> bool:
    sought = folded_words(words)
    return bool(sought) and any(sought in folded(reading) for reading in readings(text))


def readings(text: str) -> Iterator[str]:
    """*text*, and what it says where it is taken for JSON, or for JSON in JSON."""
    yield text
    for _ in range(1, READINGS):
        if "\\" not in text:
            return
        text = ESCAPED.sub(unescape, text)
        yield text


def unescape(found: re.Match[str]) -> str:
    escaped = found[0]
    if escaped[1] != "u":
        return ESCAPES.get(escaped[1], escaped[1])
    units = b"".join(int(escaped[at : at + 4], 16).to_bytes(2, "big") for at in range(2, len(escaped), 6))
    return units.decode("utf-16-be", errors="replace")


def blanked(text: str, words: str) -> str:
    """*text* with BLANK wherever it holds *words*. Doing it twice is doing it once."""
    if not holds_words(text, words):
        return text
    parts, end = [], 0
    for start, stop in word_spans(text, words):
        parts += [text[end:start], BLANK]
        end = stop
    return "".join(parts) + text[end:]


def slug_in_path(path: str, words: str) -> re.Match[str] | None:
    """Where a path names *words* as a file's name has them: without accents and marks, hyphens between."""
    if sum(c.isalnum() for c in words) < SLUG_CHARS:
        return None  # "A." is a part of most names
    return re.search(rf"(?<![^/-]){re.escape(slugify(words))}(?![^/-])", path)


def word_spans(text: str, words: str) -> list[tuple[int, int]]:
    """Where *text* holds *words*, in order; what overlaps is one."""
    found: list[tuple[int, int]] = []
    chars, places = text, [(at, at + 1) for at in range(len(text))]
    for _ in range(READINGS):
        found += sought_spans(chars, places, folded_words(words))
        if "\\" not in chars:
            break
        chars, places = unescaped_places(chars, places)
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(found):
        while stop < len(text) and (unicodedata.combining(text[stop]) or not without_unseen(text[stop])):
            stop += 1  # an accent belongs to the letter before it
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(stop, merged[-1][1])
        else:
            merged.append((start, stop))
    return merged


Places = list[tuple[int, int]]


def unescaped_places(chars: str, places: Places) -> tuple[str, Places]:
    """*chars* as JSON says them, and where in the text each of them stands."""
    said, where, end = [], [], 0
    for found in ESCAPED.finditer(chars):
        said += [chars[end : found.start()], unescape(found)]
        where += places[end : found.start()]
        where += [(places[found.start()][0], places[found.end() - 1][1])] * len(said[-1])
        end = found.end()
    return "".join(said) + chars[end:], where + places[end:]


def sought_spans(chars: str, places: Places, sought: str) -> Iterator[tuple[int, int]]:
    plain, where = [], []
    for char, place in zip(chars, places, strict=True):
        said = FOLDING[ord(char)]
        plain.append(said)
        where += [place] * len(said)
    text, kept, end = "".join(plain), [], 0
    for found in WORD_GAP.finditer(text):
        kept += where[end : found.start()]
        kept.append((where[found.start()][0], where[found.end() - 1][1]))
        end = found.end()
    kept += where[end:]
    text = WORD_GAP.sub(" ", text)
    at = text.find(sought)
    while at >= 0:
        yield kept[at][0], kept[at + len(sought) - 1][1]
        at = text.find(sought, at + len(sought))
