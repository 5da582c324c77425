"""Reads the memory that another assistant keeps as markdown: MEMORY.md, USER.md, memory/*.md, notes of basic-memory.

Each line is a claim of that assistant. Its day comes from the file's name, else from `modified`, `updated` or
`created`, else from the last save. Headings, and lines that only link to notes, are left out."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import frontmatter

from ..errors import BadNode
from ..inbox import SAYS_NOTHING, day_named
from ..node.markdown import load_properties
from .drops import ReadingProgress, Sessions
from .exports import claims

DAY = re.compile(r"\d{4}-\d\d-\d\d")
# Lines that only link: "- relates_to [[Other]]" of basic-memory, "- [Topics](topics.md)" of an index
RELATION = re.compile(r"\s*[-*]\s+(?:[\w -]*\[\[[^\]]*\]\]\s*(?:\([^)]*\))?|\[[^\]]*\]\([^)\s]*\))\s*$")
CATEGORY = re.compile(r"(\s*[-*]\s+)\[[\w -]{2,}\]\s+")  # "- [tech] …", of basic-memory


class Head(frontmatter.YAMLHandler):  # type: ignore[misc]  # python-frontmatter has no types
    """
    Reads the YAML head of a note, between two lines of `---`. The head is parsed like the heads of OMG's own
    notes (`load_properties`). This avoids PyYAML's parser in C, which kills the process on a head of 100,000
    brackets.
    """

    FM_BOUNDARY = re.compile(r"^---[ \t]*$", re.M)

    def load(self, fm: str, **kwargs: object) -> Any:
        return load_properties(fm)


def read_memory(path: Path, since: int, reading: ReadingProgress) -> Sessions:
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        reading.skipped.append(f"{path}: is not UTF-8; convert the file, as with `iconv -f CP1252 -t UTF-8`")
        return
    properties, body, head = dict[str, object](), text, Head()
    with suppress(BadNode):  # properties that cannot be read count as text
        if head.detect(text):  # else two lines of hyphens further below would count as a head
            properties, body = frontmatter.parse(text, handler=head)
    noon = datetime.combine(day_of(path, properties), time(12), UTC)
    at_ms = round(noon.timestamp() * 1000)
    said: dict[str, int] = {}
    for line in body.splitlines():
        if line.strip() and not SAYS_NOTHING.match(line.strip()) and not RELATION.match(line):
            said[CATEGORY.sub(r"\1", line)] = at_ms
    yield from claims("Memory", said, f"{path.parent.name}-{path.stem}")


def day_of(path: Path, properties: dict[str, object]) -> date:
    named = [
        DAY.match(path.stem),
        *(DAY.match(str(properties.get(key))) for key in ("modified", "updated", "created")),
    ]
    for found in named:
        if found and (day := day_named(found[0])):
            return day
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).date()
