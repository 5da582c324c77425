"""
A note as its parts, the properties and the body, each as a mark by which it is known again.

An editor may lay a head out anew (Obsidian does, whenever a property is edited): quotes, the form of lists, line
ends. The values stay, and so do their marks. A link's target is marked apart from the text around it, since a
rename in Obsidian rewrites the links of other notes.

Not here: which marks are ours (written.py). One rule: whatever is not plainly the same is a person's.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..errors import BadNode
from ..node import READERS, Node, head, parse, render

BODY = "body"
OWN = "own"  # all properties that are none of ours
TARGET = re.compile(r"(?<=\[\[)[^\[\]|#\n\\]+")
Names = Callable[[str], Iterable[str]]  # all that the note answers to which a link leads to


def read(data: bytes) -> Node | None:
    """*data* as a note; None if it is none, or has no id by which it could be known again."""
    try:
        node = parse(data.decode("utf-8"), "")
    except (BadNode, UnicodeDecodeError):
        return None
    return node if node.id else None


def canonical(node: Node) -> bytes:
    return render(node).encode("utf-8")


def values(node: Node) -> dict[str, str]:
    """Part → what it says, as text. A known property whose value we cannot read is there as it stands."""
    found = head(node)
    own = {key: found.pop(key) for key in found.keys() - READERS.keys()}
    parts = {key: as_text(value) for key, value in found.items()}
    if own:
        parts[OWN] = as_text(own)
    return {**parts, BODY: node.body}


def as_text(value: Any) -> str:
    return json.dumps(whole(value), sort_keys=True, ensure_ascii=False)


def whole(value: Any) -> Any:
    """*value* as JavaScript has it: 1.0 is 1, and nothing is the empty text."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case None:
            return ""
        case list():
            return [whole(item) for item in value]
        case dict():
            return {key: whole(item) for key, item in value.items()}
    return value


def marks(node: Node) -> dict[str, str]:
    return {part: mark(text) for part, text in values(node).items()}


def mark_of_id(node: Node) -> str:
    return mark(as_text(node.id))


def mark(text: str) -> str:
    """A hash of *text* without the targets of its links, then one of each of them."""
    return ",".join([short(TARGET.sub("", text)), *(short(plain(t)) for t in TARGET.findall(text))])


def changed(node: Node, known: Mapping[str, str], names: Names) -> frozenset[str]:
    """The parts of *node* that are not as the marks *known* have them."""
    now = values(node)
    gone = known.keys() - now.keys()
    return frozenset(
        gone | {p for p, text in now.items() if p not in known or not same(text, known[p], names)}
    )


def same(text: str, known: str, names: Names) -> bool:
    if mark(text) == known:
        return True
    was, *targets = known.split(",")
    found = TARGET.findall(text)
    return (
        short(TARGET.sub("", text)) == was
        and len(found) == len(targets)
        and all(
            short(plain(now)) == then or any(short(plain(name)) == then for name in names(now))
            for now, then in zip(found, targets, strict=True)
        )
    )


def plain(target: str) -> str:
    return target.strip().removesuffix(".md").casefold()


def short(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=4).hexdigest()
