"""
The prose of a note, as an update changes it: sentences that are not there yet come in, others go out.

Pure. Not here: what becomes of a sentence that goes (drafts.py: it moves to the History). One rule: a text is compared
as it reads, whatever links, case and spaces it has; what is not touched keeps its bytes.
"""

from __future__ import annotations

import re

from ..text.links import WIKILINK, link_label
from ..text.sentences import sentence_parts

SHORTEST_CUT = 4  # characters: "no." stands in many sentences
PIECE = re.compile(rf"{WIKILINK.pattern}|(\s+)|(.)", re.S)
MARKS_AT_END = ".!?…。！？;, "
EMPTY_ITEM = re.compile(r"^[ \t]*[-*+][ \t]*(?:\n|\Z)", re.M)


def as_read(text: str) -> str:
    """*text* as it is compared: links as their labels, one space for several, in lower case."""
    return spans_as_read(text)[0].strip()


def spans_as_read(text: str) -> tuple[str, list[tuple[int, int]]]:
    """*text* as it is compared, and for each character of that where in *text* it comes from."""
    chars: list[str] = []
    spans: list[tuple[int, int]] = []
    for piece in PIECE.finditer(text):
        link, space, char = piece.groups()
        shown = link_label(link) if link is not None else " " if space else char
        chars.append(shown.lower())
        spans += [piece.span()] * len(chars[-1])
    return "".join(chars), spans


def place_of(part: str, text: str) -> slice | None:
    """Where *part* stands in *text*, with the marks that end it; no half words."""
    wanted = as_read(part).rstrip(MARKS_AT_END)
    if len(wanted) < SHORTEST_CUT:
        return None
    read, spans = spans_as_read(text)
    found = re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", read)
    if found is None:
        return None
    start, end = spans[found.start()][0], spans[found.end() - 1][1]
    while end < len(text) and text[end] in MARKS_AT_END[:-2]:
        end += 1
    return slice(start, end)


def without_part(text: str, part: str) -> tuple[str, str]:
    """*text* without *part*, and what went, on one line; "" if it does not stand there."""
    at = place_of(part, text)
    if at is None:
        return text, ""
    before, after = text[: at.start].rstrip(" \t"), text[at.stop :].lstrip(" \t")
    gap = " " if before and after and not before.endswith("\n") and not after.startswith("\n") else ""
    rest = EMPTY_ITEM.sub("", f"{before}{gap}{after}")
    return re.sub(r"\n{3,}", "\n\n", rest).strip(), " ".join(text[at].split())


def fresh_sentences(text: str, more: str) -> str:
    """Those sentences and lines of *more* that *text* does not hold yet. A part of a sentence is not one that it holds."""
    there = {as_compared(s) for line in text.splitlines() for s in (line, *sentence_parts(line))}
    lines = []
    for line in more.strip().splitlines():
        fresh = [s for s in sentence_parts(line) if as_compared(s) not in there]
        if fresh or not line.strip():
            lines.append("".join(fresh).rstrip())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def as_compared(sentence: str) -> str:
    """*sentence* as it reads, without the marks at its ends."""
    return as_read(sentence).strip(MARKS_AT_END + "-*+")


def with_sentences(text: str, more: str) -> str:
    """*text* with those sentences and lines of *more* that it does not hold yet."""
    added = fresh_sentences(text, more)
    if not added or not text:
        return text or added
    prose = "\n" not in text and "\n" not in added
    return f"{text} {added}" if prose else f"{text}\n\n{added}"
