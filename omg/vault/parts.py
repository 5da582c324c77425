"""
A note as its parts, the properties and the body, each as a mark (a short hash) by which it is known again.

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
from ..node.fields import READERS
from ..node.note import Node, head_of, parse_node, render_node

BODY_PART = "body"
OWN_PART = "own"  # all properties that are none of ours
TARGET = re.compile(r"(?<=\[\[)[^\[\]|#\n\\]+")
Names = Callable[[str], Iterable[str]]  # all that the note answers to which a link leads to


def read_note(data: bytes) -> Node | None:
    """*data* as a note; None if it is none, or has no id by which it could be known again."""
    try:
        node = parse_node(data.decode("utf-8"), "")
    except (BadNode, UnicodeDecodeError):
        return None
    return node if node.id else None


def canonical(node: Node) -> bytes:
    return render_node(node).encode("utf-8")


def part_values(node: Node) -> dict[str, str]:
    """Part → what it says, as text. A known property whose value we cannot read is there as it stands."""
    found = head_of(node)
    own = {key: found.pop(key) for key in found.keys() - READERS.keys()}
    parts = {key: value_text(value) for key, value in found.items()}
    if own:
        parts[OWN_PART] = value_text(own)
    return {**parts, BODY_PART: node.full_body}


def value_text(value: Any) -> str:
    return json.dumps(whole_value(value), sort_keys=True, ensure_ascii=False)


def whole_value(value: Any) -> Any:
    """*value* as JavaScript has it: 1.0 is 1, and nothing is the empty text."""
    match value:
        case float() if value.is_integer():
            return int(value)
        case None:
            return ""
        case list():
            return [whole_value(item) for item in value]
        case dict():
            return {key: whole_value(item) for key, item in value.items()}
    return value


def part_marks(node: Node) -> dict[str, str]:
    return {part: mark_of(text) for part, text in part_values(node).items()}


def mark_of_id(node: Node) -> str:
    return mark_of(value_text(node.id))


def mark_of(text: str) -> str:
    """A hash of *text* without the targets of its links, then one of each of them."""
    return ",".join(
        [short_mark(TARGET.sub("", text)), *(short_mark(plain_target(t)) for t in TARGET.findall(text))]
    )


def changed_parts(node: Node, known: Mapping[str, str], names: Names) -> frozenset[str]:
    """The parts of *node* that are not as the marks *known* have them."""
    now = part_values(node)
    gone = known.keys() - now.keys()
    return frozenset(
        gone | {p for p, text in now.items() if p not in known or not is_same(text, known[p], names)}
    )


def is_same(text: str, known: str, names: Names) -> bool:
    if mark_of(text) == known:
        return True
    was, *targets = known.split(",")
    found = TARGET.findall(text)
    return (
        short_mark(TARGET.sub("", text)) == was
        and len(found) == len(targets)
        and all(
            short_mark(plain_target(now)) == then
            or any(short_mark(plain_target(name)) == then for name in names(now))
            for now, then in zip(found, targets, strict=True)
        )
    )


def plain_target(target: str) -> str:
    return target.strip().removesuffix(".md").casefold()


def short_mark(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=4).hexdigest()
