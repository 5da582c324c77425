"""What the readers of exports share: the items of their files, branches, and entries of messages."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import BadInput
from ..inbox import PREFIX
from ..message.envelope import cut_middle
from ..text.words import without_list_mark
from .archives import Member, items_of
from .drops import JsonObject, ReadingProgress, Session, key_of

MATERIAL_CHARS = 4_000  # of an attachment, as of a tool's result

Chat = tuple[Session, list[JsonObject]]  # a session with its messages as entries


@dataclass(frozen=True, slots=True)
class ItemReading:
    """Reads the items of an export's members and reports what cannot be read."""

    path: Path
    reading: ReadingProgress

    def items(self, member: Member) -> Iterator[JsonObject]:
        """The JSON objects in *member*, until its end or its damage."""
        before, read = self.reading.done, 0

        def advance(n: int) -> None:
            nonlocal read
            read += n
            self.reading.done = before + member.packed * min(read, member.size) // max(member.size, 1)

        try:
            for item in items_of(member, advance):
                if isinstance(item, dict):
                    yield item
                else:
                    self.skip(f"{member.name}: an item that is no JSON object")
        except BadInput as e:
            self.skip(str(e))

    def skip(self, why: str) -> None:
        self.reading.skipped.append(f"{self.path}: {why}")

    def leave_out(self, what: str, count: int = 1) -> None:
        if count:
            self.reading.left_out[what] += count


def session_of_chat(service: str, id: str) -> Session:
    label = f"{service.partition('.')[0].lower()}-{id}"
    return Session(key_of(label), label, "main", "", service)


def entry_of_message(id: str, role: str, content: list[JsonObject], at_ms: object) -> JsonObject:
    message = {"role": role, "content": content, "timestamp": at_ms}
    return {"entryId": id, "createdAt": at_ms, "message": message}


def text_part(text: object) -> JsonObject:
    return {"type": "text", "text": text}


def quoted(name: str, text: str) -> JsonObject:
    """The text of an attachment, as a quotation: it is not the user's own words."""
    lines = cut_middle(text.strip(), MATERIAL_CHARS).splitlines()
    return text_part("\n".join(["", f"[file: {name}]", *(f"> {line}" for line in lines)]))


def claims(service: str, lines: Mapping[str, int], what: str = "memory") -> Iterator[Chat]:
    """
    The memory of *service* as claims of that assistant: a session with a message for each line. *lines*: text → its
    time in ms.
    """
    entries = []
    for n, (line, at_ms) in enumerate(lines.items()):
        if text := without_list_mark(line.strip()):
            mark = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]
            entry = entry_of_message(
                f"{PREFIX}{service} {what}:{mark}", "assistant", [text_part(text)], at_ms + n
            )
            entry["message"]["idempotencyKey"] = f"{PREFIX}{service}:{mark}"
            entries.append(entry)
    if entries:
        yield session_of_chat(service, what), entries


def path_to(leaf: object, parents: Mapping[str, object]) -> list[str]:
    """The ids from the root to *leaf*; *parents*: id → the id of its parent. A cycle ends it."""
    found: dict[str, None] = {}
    while isinstance(leaf, str) and leaf in parents and leaf not in found:
        found[leaf] = None
        leaf = parents[leaf]
    return [*reversed(found)]


def newest_leaf(parents: Mapping[str, object], at: Mapping[str, float]) -> str | None:
    """The latest of the ids that are nobody's parent; the latest of all if every id is a parent, as in a cycle."""
    above = set(map(str, parents.values()))
    leaves = [id for id in parents if id not in above] or list(parents)
    return max(leaves, key=lambda id: at.get(id, 0), default=None)


def said_text(value: Any) -> str:
    return value if isinstance(value, str) else ""
