"""
Titles of other notes that stand in a text → links.

Pure. Not here: which notes there are (drafts.py as a note is written, reflect/upkeep.py by night). One rule: a title is
linked where it stands whole, outside code, links and History, once; what a person wrote is left alone by the callers.
"""

from __future__ import annotations

import re

from ..node.markdown import wikilink, without_code

LINK = re.compile(r"\[\[[^\[\]\n]*\]\]|\[[^\[\]\n]*\]\([^()\n]*\)|https?://\S+")


def with_link_at(text: str, title: str, path: str) -> str | None:
    """*text* with its first mention of *title* leading to *path*; None if there is none."""
    if len(title) < 3:
        return None
    plain = LINK.sub(lambda m: "\0" * len(m[0]), without_code(text))
    found = re.search(rf"(?<![\w\[|]){re.escape(title)}(?![\w\]|])", plain, re.I)
    if found is None:
        return None
    start, end = found.span()
    return text[:start] + wikilink(path, text[start:end]) + text[end:]
