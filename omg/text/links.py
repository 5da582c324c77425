"""Wikilinks as a reader sees them. What a link leads to is read in node/markdown.py."""

from __future__ import annotations

import re

WIKILINK = re.compile(r"\[\[([^\[\]\n]*)\]\]")
CITED = re.compile(
    rf"\s{{0,9}}\((?:{WIKILINK.pattern}(?:, )?)+\)"
)  # the links behind a claim of a reflection


def link_label(link: str) -> str:
    """What a reader sees of `path/name|label`: the label, or the name."""
    _, bar, label = link.rpartition("|")
    return label if bar else link.rpartition("/")[2]


def with_labels(text: str) -> str:
    """*text* with the label of each link in its place."""
    return WIKILINK.sub(lambda link: link_label(link[1]), text) if "[[" in text else text


def without_citations(text: str) -> str:
    """*text* with labels, and without the links that stand in brackets behind a claim."""
    return with_labels(CITED.sub("", text))
