"""
A note's text without some words, and new names for notes whose own hold them.

Not here: which files, and in which order (redacting.py). One rule: text in, text out; the same text gives the same,
so that a receipt and its note stay alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import BadNode
from ..graph.graph import Graph
from ..node.markdown import bare_target, link_targets, slugify
from ..node.note import amend_text, head_of, parse_node
from ..node.properties import split_head
from ..text.links import WIKILINK
from .words import BLANK, blanked, holds_words, slug_in_path

NewNames = Mapping[str, str]

FIXED = ("type", "priority", "status", "created", "updated", "event", "origin", "appliesTo", "generation")


def new_names(graph: Graph, paths: Iterable[str], words: str) -> dict[str, str]:
    """Path, id and link target that hold *words* → what stands there instead."""
    found: dict[str, str] = {}
    for path in paths:
        if holds_words(path, words) or slug_in_path(path, words):
            found[path] = free_path(graph, path_without(path, words), found.values())
    ids = {graph.index.entry(path).id: new for path, new in found.items() if graph.index.entry(path)}  # type: ignore[union-attr]
    for path in paths:
        text = (graph.vault.bytes(path) or b"").decode("utf-8", errors="replace")
        for target in link_targets(text):
            there = graph.index.resolve(target)
            if there and holds_words(target, words):
                found.setdefault(target, found.get(there, there))
    for id, new in ids.items():
        found.setdefault(id, f"omg/{new.removeprefix('nodes/')}")
    return found


def path_without(path: str, words: str) -> str:
    """*path* with the words out of each of its names."""
    names = []
    for name in path.split("/"):
        plain = blanked(name, words)
        if plain == name and (found := slug_in_path(name, words)):
            plain = f"{name[: found.start()]}forgotten{name[found.end() :]}"
        names.append(name if plain == name else slugify(plain))
    return "/".join(names)


def free_path(graph: Graph, path: str, taken: Iterable[str]) -> str:
    found, n = path, 1
    while found in taken or graph.vault.bytes(found) is not None:
        n += 1
        found = f"{path}-{n}"
    return found


def redacted_note(text: str, path: str, words: str, names: NewNames) -> str:
    """*text* of a note without *words*: its links lead to the new names, its head stays one that can be read."""
    text = WIKILINK.sub(lambda found: redacted_link(found, words, names), text)
    if not holds_words(text, words):
        return text
    try:
        node = parse_node(text, path)
        was = head_of(node)
        now = {key: redacted_property(key, value, words, names) for key, value in was.items()}
        text = amend_text(text, set={key: now[key] for key in was if was[key] != now[key]})
        body = split_head(text)[1]
        return text[:body] + blanked(text[body:], words)
    except BadNode:
        return blanked(text, words)


def redacted_link(found: re.Match[str], words: str, names: NewNames) -> str:
    try:
        target = bare_target(found[1])
    except ValueError:
        return found[0]
    _, bar, label = found[1].partition("|")
    if target in names:
        return f"[[{names[target]}{bar}{blanked(label, words)}]]"
    if holds_words(target, words):  # it leads nowhere
        return blanked(label, words).strip() or BLANK
    return found[0]


def redacted_property(key: str, value: Any, words: str, names: NewNames) -> Any:
    if key in FIXED:
        return value
    if key == "sources":
        return [
            {**source, **({"id": blanked(source["id"], words)} if "id" in source else {})} for source in value
        ]
    if key in ("aliases", "tags"):
        kept = [name for name in value if not holds_words(str(name), words)]
        return kept or None
    return redacted_value(value, words, names)


def redacted_value(value: Any, words: str, names: NewNames) -> Any:
    """A value of a head, or any other that JSON can hold, without *words*."""
    if isinstance(value, str):
        if value in names:
            return names[value]
        return blanked(WIKILINK.sub(lambda found: redacted_link(found, words, names), value), words)
    if isinstance(value, list | tuple):
        return type(value)(redacted_value(v, words, names) for v in value)
    if isinstance(value, dict):
        return {redacted_value(k, words, names): redacted_value(v, words, names) for k, v in value.items()}
    return value
