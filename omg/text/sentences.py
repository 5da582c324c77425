"""
The sentences of a text, and the marks of its lists.

A sentence ends at a line end, and at a Unicode sentence terminal that a space follows (in scripts without spaces,
at any). Clauses are split in rules/assertions.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import regex

LIST_MARK = regex.compile(r"[ \t]*(?:[-*+•–]|\d{1,3}[.)])[ \t]+(?:\[(?:[xX]|[^\w\[\]])\][ \t]+)?")
# Each branch begins at one character only, so that a run of spaces or marks costs no more than its length.
SENTENCE_END = regex.compile(
    r"(?<![\p{STerm}…])[\p{STerm}…]++[\p{Pe}\p{Pf}\p{Pi}\"'*_]*+(?P<space>\s++)"
    r"|[。！？｡]++(?![\p{Pe}\p{Pf}])(?P<space>\s*+)|\n(?P<space>\s*+)"
)
# Matched at the space: "Dr. Ito", an initial, "No. 3", "etc. and", "well… yes". "No. I moved" is two sentences.
NO_END = regex.compile(
    r"(?<=\b(?:e\.g|i\.e|vs|Dr|Mrs?|Ms|Prof|St|approx|ca|z\.B|bzw|Sra?|Mme|U\.S)\.|(?:^|\s)(?!I\.)\p{Lu}\.)"
    r"|(?<=\b(?:No|Nr|Jan|Feb|Aug|Sept?|Oct|Nov|Dec)\.)\s{1,9}(?=\d)"
    r"|(?<=\b(?:etc|[ap]\.m)\.|\.\.|…)\s{1,9}(?=[\p{Ll}\d])"
)
LETTER = regex.compile(r"\p{L}")


def without_list_mark(line: str) -> str:
    """*line* without a list mark at its beginning."""
    mark = LIST_MARK.match(line)
    return line[mark.end() :] if mark else line


def sentence_parts(text: str) -> list[str]:
    """*text* split before each sentence; joined, the parts give *text* again."""
    starts = [0, *sentence_starts(text), len(text)]
    return [text[a:b] for a, b in pairwise(starts) if a < b]


def split_sentences(text: str) -> list[str]:
    """The sentences of *text*, without the spaces around them."""
    return [part for part in map(str.strip, sentence_parts(text)) if part]


def sentence_spans(text: str) -> list[slice]:
    """Where the sentences of *text* are, without spaces around them and list marks before them."""
    spans, at = [], 0
    for part in sentence_parts(text):
        mark = LIST_MARK.match(part)
        start = mark.end() if mark else len(part) - len(part.lstrip())
        if said := part[start:].rstrip():
            spans.append(slice(at + start, at + start + len(said)))
        at += len(part)
    return spans


def text_pieces(text: str, most: int) -> list[slice]:
    """Where the sentences of *text* are, without gaps; a sentence longer than *most* characters is split."""
    spans = []
    for start, end in pairwise([0, *sentence_starts(text), len(text)]):
        while end - start > most:
            spans.append(slice(start, start + most))
            start += most
        if start < end:
            spans.append(slice(start, end))
    return spans


def sentence_starts(text: str) -> Iterator[int]:
    looked, lettered = 0, False
    for end in SENTENCE_END.finditer(text):
        lettered = lettered or LETTER.search(text, looked, end.start()) is not None
        looked = end.end()
        if "\n" not in end[0] and (not lettered or NO_END.match(text, end.start("space"))):
            continue  # without a letter, "1." is the mark of a list
        yield end.end()
        lettered = False
