"""
A message without what its sender only passes on: code, forwarded mails, quotations, reported speech, and what is
handed over to be translated, summarised or corrected.

How such things are introduced stands in words/quoted.toml. Not here: lines that a program wrote (sentences.py).
One rule: in doubt it is another's; what someone pastes must never become what they believe.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from ..node.markdown import uncommented
from .cues import language

FENCE = re.compile(
    r"(?P<fence>`{3,}|~{3,}).*?(?:(?P=fence)|\Z)|<([\w-]{1,60}+)[^<>\n]{0,500}>[^\S\n]{0,9}\n.{0,2000}?</\2>",
    re.DOTALL,
)
QUOTED_CHARS_LOOKED_THROUGH = 100_000  # characters that are looked through; nobody types as many
CHARS_AT_ONCE = (
    2_000  # characters that one call looks through: the interpreter is held as long, 5 ms at the worst
)
LONGEST_CUE = 400  # characters; no pattern that is looked for in steps needs more, but the rest of a line
NEAR_QUOTE = 200  # characters around a quotation in which its speaker is named
APOSTROPHES = str.maketrans("’‘", "''")
QUOTED_LINE = re.compile(r"\s*(?:[-*•–]\s+|\d{1,2}[.)]\s+)?(?:[>＞»│┃▌▏❯]|&gt;)")
INDENTED = re.compile(r"(?: {4,}+|\t)(?!\s*+(?:[-*•–]|\d{1,2}[.)])\s)")
SPAN = re.compile(
    r"“[^“”]{0,2000}”|„[^“”„]{0,2000}[“”]|«[^«»]{0,2000}»|「[^「」]{0,2000}」|『[^『』]{0,2000}』|`[^`\n]{0,2000}`"
    r"|(?<![\w\"])\"(?=\S)[^\"]{0,2000}\"(?!\w)"
    r"|(?<![\w'])'(?=\S)(?:[^'\n]|(?<=\w)'(?=\w)){0,500}'(?!\w)"
)
SEVERAL = re.compile(r"[.!?…]\s+\S|[。！？]\S|\n")  # sentences: one would stand as the sender's own
ROLE = re.compile(
    r"\s*+(?:\[?[\d:.,/APMapm-][\d:., /APMapm-]{3,19}\]?[\s-]*+)?(?P<name>[A-Z][\w.-]{0,60}(?: [A-Z][\w.-]{0,60})?)(?: ?\([^)\n]{0,120}\))?: \S"
)


def own_words(text: str) -> str:
    """*text* without the words of others; an ellipsis in quotation marks stands where a quotation stood."""
    if len(text) > QUOTED_CHARS_LOOKED_THROUGH:
        text = f"{text[: QUOTED_CHARS_LOOKED_THROUGH // 2]}\n{text[-QUOTED_CHARS_LOOKED_THROUGH // 2 :]}"
    text = FENCE.sub("\n", uncommented(text, "\n")).translate(APOSTROPHES)
    # Only a newline ends a line: whatever else `splitlines` knows would end a quotation too early.
    text = without_quotes("\n".join(lines_written(text.split("\n"))))
    patterns = language("quoted").patterns
    if above := list(found_in_steps(patterns["above"], text)):
        text = text[text.rfind("\n", 0, above[-1].end()) + 1 :]
    if handed := next(found_in_steps(patterns["handed"], text), None):
        text = text[: handed.end()]
    kept, at = [], 0
    for reported in found_in_steps(patterns["reported"], text):
        kept.append(text[at : reported.start()])
        at = end_of_line(text, reported.end())
    return "".join(kept) + text[at:]


def found_in_steps(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """As `finditer`, where a match is no longer than LONGEST_CUE; between two steps others have the interpreter."""
    at = 0
    while at < len(text):
        until = at + CHARS_AT_ONCE
        m = pattern.search(text, at, until + LONGEST_CUE)
        if m and m.start() < until:
            yield m
            at = max(m.end(), at + 1)
        else:
            at = until


def end_of_line(text: str, at: int) -> int:
    """Where the line that goes on at *at* ends."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def lines_written(lines: Sequence[str]) -> Iterator[str]:
    """*lines* up to a mail that is passed on, those of others empty."""
    others = chat_lines(lines)
    code, blank = False, True
    for n, line in enumerate(lines):
        if forwarded_from(lines, n):
            return
        code = bool(INDENTED.match(line)) and (code or blank)
        blank = not line.strip()
        yield "" if code or n in others or QUOTED_LINE.match(line) else line


def forwarded_from(lines: Sequence[str], n: int) -> bool:
    """Whether with line *n* a mail begins that goes to the end of the message."""
    patterns = language("quoted").patterns
    line, behind = lines[n], [x for x in lines[n + 1 : n + 5] if x.strip()]
    if patterns["forwarded"].match(line):
        return True
    if any(patterns["wrote"].match(" ".join((line, *behind[:more]))) for more in (0, 1)):
        return not any(
            QUOTED_LINE.match(x) for x in behind[:2]
        )  # those are parted from what stands between them
    if not patterns["header"].match(line):
        return False
    head = [line, *(x for x in behind[:3] if patterns["header"].match(x))]
    return len(head) > 1 and any(patterns["subject"].match(x) for x in head)


def chat_lines(lines: Sequence[str]) -> set[int]:
    """The lines of a pasted conversation: three or more that begin with a name, one of them again."""
    found = {n: m["name"] for n, line in enumerate(lines) if (m := ROLE.match(line))}
    again = max(Counter(found.values()).values(), default=0)
    return set(found) if len(found) >= 3 and again >= 2 else set()


def without_quotes(text: str) -> str:
    return SPAN.sub(lambda m: '"…"' if is_anothers(m) else m[0], text)


def is_anothers(m: re.Match[str]) -> bool:
    """Whether what stands in quotation marks is a statement in the first person, and no title or nickname."""
    patterns, text = language("quoted").patterns, m.string
    if not patterns["first"].search(m[0]):
        return False
    before = text[max(0, m.start() - NEAR_QUOTE) : m.start()].rpartition("\n")[2]
    behind = text[m.end() : m.end() + NEAR_QUOTE].partition("\n")[0]
    alone = not before.strip(" \t-*•–") and not behind.strip(" \t.,!?;")
    return bool(
        alone or SEVERAL.search(m[0]) or patterns["told"].search(before) or patterns["teller"].match(behind)
    )
