"""
Which parts of a person's message are *material*: text that they pass on rather than say.

Material is known by its form: code fences and blocks, block quotes, forwarded mails, pasted chats with times,
calendar files, comments, whole documents with a head of their own. Everything else is *spoken*, also words in
quotation marks, which half of all messages have. Only the form counts, in any language, never the meaning.

Linear: one pass over the lines, and patterns without nested repetition (tests/test_stalls.py).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise
from operator import itemgetter


@dataclass(frozen=True, slots=True)
class Span:
    """Characters *start* to *end* of a text. *kind*: "code", or "quote" for all other material."""

    start: int
    end: int
    kind: str


Lines = Sequence[str]

FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
# """ and ''' also stand within a line
TRIPLE = re.compile(r"\"{3}[^\"]{1,20000}\"{3}|'{3}[^']{1,20000}'{3}")
PICTURE = re.compile(r"!\[[^\[\]\n]{0,500}\]\([^()\n]{0,500}\)")
QUOTED = re.compile(r"\s{0,20}(?:[-*•–]\s{1,4}|\d{1,2}[.)]\s{1,4})?(?:[>＞»│┃▌▏❯]|&gt;)")
INDENTED = re.compile(r"(?: {4}|\t)\s*(?![-*•–+]\s|\d{1,3}[.)]\s)\S")
TAG_OPENS = re.compile(r"\s{0,20}<([A-Za-z][\w-]{0,60})(?:\s[^<>\n]{0,500})?>\s*$")
BEGIN = re.compile(r"BEGIN:(\w{1,30})\s*$")
HEAD_RULE = re.compile(r"---\s*$")

ADDRESS = re.compile(r"<[^<>\s@]{1,100}@[^<>\s@]{1,100}>|\[mailto:")
YEAR = re.compile(r"\b(?:19|20)\d\d\b|(?:19|20)\d\d年")
CLOCK = re.compile(r"\d{1,2}[:.h]\d\d(?!\d)|\d{1,2}[時时点시]")
# "From: Ann <ann@a.test>", in any language
HEADER = re.compile(r"[*\s]{0,6}[^\W\d_][\w .'’-]{0,24}\*{0,2}\s?[:：]\*{0,2}\s{0,8}\S")
DASHED = re.compile(r"\s{0,20}-{3,40}[^-\n]{3,80}-{3,40}\s*$")
LONGEST_HEADER = 400  # characters of a line of a mail's head

TIME = r"[\[(]?(?:[\d.,/-]{4,12},? )?\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?: ?[APap]\.?[Mm]\.?)?[\])]?"
# "[10:02] Ann: …", "10:02 <ann> …"
SAID_AT = re.compile(rf"\s{{0,9}}{TIME}[\s–-]{{1,4}}(?:<[\w.-]{{1,30}}>|[^\W\d_][\w .'’-]{{0,40}}?:)\s\S")
# "Ann: …"
SAID = re.compile(r"\s{0,3}([^\W\d_][\w.'’-]{0,30}(?: [^\W\d_][\w.'’-]{0,30})?): \S")
# "Ann, 9:41" and "Ann — today at 9:41", alone above what Ann wrote
SPEAKER = re.compile(
    rf"\s{{0,3}}[^\W\d_][^\n:?!]{{0,40}}?(?:[,\s]\s?|\s[—–-]\s)[^\n:?!\d]{{0,20}}{TIME}\s{{0,3}}$"
)
SUBTITLE = re.compile(r"\s{0,20}\d{1,2}:\d\d(?::\d\d)?[.,]\d{1,3} --> ")


@lru_cache(maxsize=512)
def material_in(text: str) -> tuple[Span, ...]:
    """The material in *text*, in order; spans do not overlap."""
    lines = text.split("\n")
    found = [""] * len(lines)  # of each line: its kind, "" for spoken
    for mark in (mark_fences, mark_blocks, mark_chat, mark_mail):
        mark(lines, found)
    spans, at = [], 0
    for kind, run in groupby(zip(found, lines, strict=True), key=itemgetter(0)):
        end = at + sum(len(line) + 1 for _, line in run)
        if kind:
            spans.append(Span(at, end - 1, kind))
        at = end
    spans += [Span(*m.span(), "quote") for pattern in (TRIPLE, PICTURE) for m in pattern.finditer(text)]
    spans += comments(text)
    return tuple(merged(sorted(spans, key=lambda s: (s.start, s.end))))


def comments(text: str) -> Iterator[Span]:
    """HTML comments. A pattern would read to the end of the text for each "<!--"."""
    end = 0
    while (start := text.find("<!--", end)) >= 0 and (end := text.find("-->", start)) >= 0:
        yield Span(start, end + 3, "quote")


def merged(spans: Sequence[Span]) -> Iterator[Span]:
    """*spans* in order, as one where they touch, or only a line's end is between them."""
    last: Span | None = None
    for span in spans:
        if last and span.start <= last.end + 1:
            last = Span(last.start, max(last.end, span.end), last.kind)
            continue
        if last:
            yield last
        last = span
    if last:
        yield last


def mark_fences(lines: Lines, found: list[str]) -> None:
    """Code between fences; a fence that nobody closes reaches to the end."""
    fence = ""
    if not any("```" in line or "~~~" in line for line in lines):
        return
    for n, line in enumerate(lines):
        m = FENCE.match(line)
        if fence:
            found[n] = "code"
            if m and m[1].startswith(fence) and not line.strip(" \t`~"):
                fence = ""
        elif m:
            found[n], fence = "code", m[1]


def mark_blocks(lines: Lines, found: list[str]) -> None:
    """Quoted lines, indented code, what stands between tags or BEGIN and END, and a document with a head."""
    if HEAD_RULE.match(lines[0]) and any(HEAD_RULE.match(line) for line in lines[1:40]):
        found[:] = ["quote"] * len(lines)
        return
    blank, code = True, False
    closes: Callable[[str], bool] | None = None
    ends = {line.strip() for line in lines if line.lstrip().startswith(("</", "END:"))}
    for n, line in enumerate(lines):
        if found[n]:
            continue
        if closes is not None:
            found[n] = "quote"
            closes = None if closes(line) else closes
            continue
        if not line or line.isspace():
            code, blank = False, True
            continue
        code, blank = line[0] in " \t" and bool(INDENTED.match(line)) and (code or blank), False
        if QUOTED.match(line):
            found[n] = "quote"
        elif (m := TAG_OPENS.match(line)) and f"</{m[1]}>" in ends:
            found[n], closes = "quote", closing(f"</{m[1]}>")
        elif (m := BEGIN.match(line)) and f"END:{m[1]}" in ends:
            found[n], closes = "quote", closing(f"END:{m[1]}")
        elif code:
            found[n] = "code"


def closing(end: str) -> Callable[[str], bool]:
    return lambda line: line.strip() == end


def mark_chat(lines: Lines, found: list[str]) -> None:
    """
    A pasted conversation: two lines or more that say who spoke and when, each with what was written under it; or lines
    of two people by turns.
    """
    left = [n for n, line in enumerate(lines) if line and not found[n] and len(line) <= 2_000]
    for pattern in (SAID_AT, SPEAKER, SUBTITLE):
        heads = [n for n in left if pattern.match(lines[n])]
        if len(heads) < 2:
            continue
        for head, following in pairwise([*heads, len(lines)]):
            for n in range(head, following):
                if not lines[n].strip():
                    break
                found[n] = found[n] or "quote"

    said = {n: m[1] for n in left if not found[n] and (m := SAID.match(lines[n]))}
    names = Counter(said.values())
    if len(said) >= 3 and 1 < len(names) < len(said):  # labels of a list do not come again
        for n in said:
            found[n] = "quote"


def mark_mail(lines: Lines, found: list[str]) -> None:
    """A mail that is answered or forwarded, from its head to the end of the message."""
    for n in range(len(lines)):
        if not found[n] and lines[n].strip() and begins_mail(lines, found, n):
            below = first_written(lines, n + 1)
            if below and found[below]:  # what follows is marked line by line, and the person may write below
                found[n] = "quote"
                continue
            dashed = DASHED.match(lines[n]) is not None
            for k in range(n, len(lines)):
                found[k] = found[k] or "quote"
                if (
                    dashed
                    and k > n
                    and DASHED.match(lines[k])
                    and not HEADER.match(lines[first_written(lines, k + 1)])
                ):
                    break  # "----- end -----": what follows is the person's again
            return


def first_written(lines: Lines, at: int) -> int:
    """The number of the first non-empty line of *at* and the line after it; 0 if both are empty."""
    return next((n for n in range(at, min(at + 2, len(lines))) if lines[n].strip()), 0)


def begins_mail(lines: Lines, found: Sequence[str], n: int) -> bool:
    """Whether line *n* is the head of a mail: "On … wrote:", a dashed line above a head, or a head."""
    line = lines[n]
    if len(line) > LONGEST_HEADER:
        return False
    # the line of a reply may be broken in two
    both = (
        line
        if line.rstrip().endswith((":", "："))
        else f"{line} {''.join(lines[n + 1 : n + 2])}"[:LONGEST_HEADER]
    )
    if both.rstrip().endswith((":", "：")) and (YEAR.search(both) or CLOCK.search(both)):
        below = first_written(lines, n + 1)
        if ADDRESS.search(both) or (below and found[below] == "quote"):
            return True
    if DASHED.match(line):
        below = first_written(lines, n + 1)
        return bool(below and HEADER.match(lines[below][:LONGEST_HEADER]))
    head = []
    for line in lines[n : n + 12]:
        if len(line) > LONGEST_HEADER or not HEADER.match(line):
            break
        head.append(line)
    if len(head) < 2:
        return False
    told = "\n".join(head)
    return bool(ADDRESS.search(told)) or (
        len(head) > 2 and any(YEAR.search(x) and CLOCK.search(x) for x in head)
    )
