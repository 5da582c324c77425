"""
The body of a note, as text: links, the generated block, the history, and names made of titles.

Not here: the head (properties.py), and what a note is (note.py). One rule: whoever adds to a text changes no other
byte of it, line ends included.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from urllib.parse import quote

from ..errors import BadNode
from ..text.links import WIKILINK
from .properties import line_end, split_head, with_unix_ends

HISTORY_HEADING = "## History"
BEGIN, END = "<!-- omg:begin -->", "<!-- omg:end -->"
DESCRIPTION_CHARS = 200  # of a description taken from a body

# Fenced blocks (one left open lasts to the end), and `spans`, which end with their paragraph.
CODE_PATTERN = re.compile(
    r"^[ \t>]*(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})[^\n]*(?:.*?^[ \t>]*(?P=fence)[`~]*[ \t]*$|.*)"
    r"|(?<!`)(?P<ticks>`+)(?!`)(?:(?!\n[ \t]*\n).){1,2000}?(?<!`)(?P=ticks)(?!`)",
    re.M | re.S,
)


def link_targets(text: str) -> tuple[str, ...]:
    """Bare targets of the wikilinks in *text*, outside code, in reading order, each once."""
    if "[[" not in text:
        return ()
    found = []
    for inner in WIKILINK.findall(without_code(text)):
        try:
            found.append(bare_target(inner))
        except ValueError:  # [[#a heading of this very note]]
            continue
    return tuple(dict.fromkeys(found))


def without_code(text: str) -> str:
    """*text* with code blanked out; every other character keeps its place."""
    if "`" not in text and "~~~" not in text:
        return text
    return CODE_PATTERN.sub(lambda code: re.sub(r"[^\n]", " ", code[0]), text)


def bare_target(link: str) -> str:
    """The target of `target#heading|label`, with brackets or without. Raises ValueError if there is none."""
    if link.startswith("[[") and link.endswith("]]"):
        link = link[2:-2]
    target = re.split(r"\\?\||#", link, maxsplit=1)[0]  # tables need the pipe escaped
    target = re.sub(r"(?:\s{0,9}\.md){1,9}\Z", "", target.strip()).strip()
    if not target or re.search(r"[\[\]\r\n]", target):
        raise ValueError(link)
    return target


def brackets(target: str) -> str:
    return f"[[{target}]]"


UNLINKABLE = re.compile(r"[\[\]|#^]")  # in a wikilink these end the name


def wikilink(path: str, label: str | None = None) -> str:
    """
    `[[path|label]]`; what a label cannot hold becomes a space.

    With a label, for prose: a path that no wikilink can hold gives `[label](path.md)`, which Obsidian follows.
    """
    label = " ".join(re.sub(r"[\[\]|\\]", " ", label or "").split())
    if label and UNLINKABLE.search(path):
        return f"[{label}]({quote(path)}.md)"
    return f"[[{path}|{label}]]" if label else f"[[{path}]]"


# Names that Windows keeps for itself, whatever their extension.
DEVICES = re.compile(r"con|prn|aux|nul|(?:com|lpt)[0-9]")


SLUG_CHARS = 50


def slugify(title: str) -> str:
    """
    A file name for *title*: lower case, at most 50 letters, digits and hyphens. Never empty, never a path.

    It ends with a whole word, unless its first word alone is longer. Latin letters lose their accents; other scripts are kept as they are, composed (NFC).
    """
    kept: list[str] = []
    for char in unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", title).lower()):
        if char.isalnum():
            kept.append(char)
        elif unicodedata.category(char).startswith("M"):  # an accent or vowel sign belongs to its letter
            if kept and kept[-1] != "-" and not kept[-1].isascii():
                kept.append(char)
        elif kept and kept[-1] != "-":
            kept.append("-")
    slug = unicodedata.normalize("NFC", "".join(kept))
    if len(slug) > SLUG_CHARS:
        slug = slug[: SLUG_CHARS + 1].rpartition("-")[0] or slug[:SLUG_CHARS]
    slug = slug.strip("-") or "note"
    return f"{slug}-note" if DEVICES.fullmatch(slug) else slug


# --- parts of a body

MARKS = re.compile(r"[ \t]*+(?:[#>*+-]++[ \t]++)*+")  # of headings, quotations and items
H1 = re.compile(r"^# ++(.*\S)[ \t]*$", re.M)


def first_text_line(body: str) -> str:
    """What a note without a description is about: its first line of text, without marks, clipped."""
    lines = (line[m.end() :] for line in body.split("\n") if (m := MARKS.match(line)))
    found = (line for line in lines if not line.startswith("<!--") and re.search(r"\w", line))
    text = " ".join(next(found, "").split())
    if len(text) <= DESCRIPTION_CHARS:
        return text
    text = text[: DESCRIPTION_CHARS - 1]
    return (text.rpartition(" ")[0] or text) + "…"


HEADING_LINE = re.compile(r"^(#{1,6})[ \t]+(\S.*?)[ \t]*#*[ \t]*$", re.M)


@dataclass(frozen=True, slots=True)
class Section:
    """A heading of a text, and the part that is its own and of the headings below it."""

    heading: str
    level: int
    start: int
    end: int


def sections_of(text: str) -> list[Section]:
    """Every section of *text*, in reading order; a `#` in code is no heading."""
    found = [(m, len(m[1])) for m in HEADING_LINE.finditer(without_code(text))]
    return [
        Section(
            text[m.start(2) : m.end(2)],
            level,
            m.start(),
            next((other.start() for other, of in found[n + 1 :] if of <= level), len(text)),
        )
        for n, (m, level) in enumerate(found)
    ]


def generated_block(text: str) -> str | None:
    """The lines between the markers, joined by LF; None if there is not exactly one pair of them."""
    span = between_markers(text)
    return None if span is None else with_unix_ends(text[span]).strip("\n")


def with_generated_block(text: str, inner: str) -> str:
    """*text* with *inner* between the markers. Raises BadNode if there is not exactly one pair of them."""
    span = between_markers(text)
    if span is None:
        raise BadNode(f"the file needs one line {BEGIN} and, below it, one line {END}")
    # a description must not end the block
    inner = with_unix_ends(inner).strip("\n").replace("<!-- omg:", "<!-- omg :")
    lines = f"\n{inner}\n" if inner else "\n"
    return text[: span.start] + lines.replace("\n", line_end(text)) + text[span.stop :]


def uncommented(text: str, instead: str = " ") -> str:
    """*text* with *instead* of each comment; one that is not closed stays."""
    kept, at = [], 0
    while (start := text.find("<!--", at)) >= 0 and (end := text.find("-->", start + 4)) >= 0:
        kept.append(text[at:start])
        at = end + 3
    return instead.join([*kept, text[at:]])


def between_markers(text: str) -> slice | None:
    start, stop = text.find(BEGIN) + len(BEGIN), text.find(END)
    paired = text.count(BEGIN) == text.count(END) == 1 and start <= stop
    return slice(start, stop) if paired else None


HISTORY_LINE = re.compile(rf"^{HISTORY_HEADING}[ \t]*$", re.M)
NEXT = re.compile(r"^(?:#{1,2} |<!-- omg:)", re.M)  # what ends the section
LINE_END = re.compile(r"[\r\n]|\Z")


def with_history_line(text: str, line: str) -> str:
    """*text* with *line* as the last item of its History, which is made at the end if there is none."""
    eol = line_end(text)
    begin, end = split_head(text)[1], len(text)
    prose = without_code(text[begin:].replace("\r", " "))  # blanks, so that all else keeps its place
    headings = list(HISTORY_LINE.finditer(prose))
    if headings:
        last = headings[-1].start() + len(HISTORY_HEADING)
        following = NEXT.search(prose, last)
        end = begin + following.start() if following else end
        begin += last
    place = LINE_END.search(text, begin + len(text[begin:end].rstrip()))
    above = text[: place.start()] if place else text
    if headings:
        gap = eol
    else:
        gap = "" if above in ("", "\ufeff") else eol if above.endswith("\n") else eol * 2
        gap += HISTORY_HEADING + eol
    below = text[len(above) :] or (eol if above.endswith("\n") else "")
    return above + gap + (line if line.startswith("- ") else f"- {line}") + below
