"""What is to go, as a text may speak of it; and which other notes do."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass

from ..errors import BadNode, NotFound
from ..graph.graph import Graph
from ..journal import readable
from ..message.turn import Message
from ..node.maptable import LOG_FOLDER
from ..node.markdown import link_targets
from ..node.note import parse_node
from .words import holds_words

ID_IN_TEXT = re.compile(r"""\bid: *["']?([^"'\n,}]+)""")  # a note's own, and those of its sources


@dataclass(frozen=True, slots=True)
class Trace:
    """What is to go. `names`: paths, present and former, and ids of notes."""

    names: frozenset[str] = frozenset()
    messages: frozenset[str] = frozenset()
    sessions: frozenset[str] = frozenset()  # that had one of the messages
    text: str = ""  # words, however they are written (words.py)
    keys: frozenset[str] = frozenset()  # of sessions that go whole: no file names them any more

    def in_note(self, text: str) -> bool:
        """Whether a note says it: cites the messages, links to the notes, or has the words."""
        named = ids_in(text) | set(link_targets(text))
        return bool(named & (self.names | self.messages)) or self.in_words(text)

    def in_words(self, text: str) -> bool:
        return holds_words(text, self.text)

    def names_path(self, path: str) -> bool:
        return path in self.names or self.in_words(path)

    @property
    def paths(self) -> frozenset[str]:
        """The names that no other text has by chance: a title such as "API" may stand in any line."""
        return frozenset(name for name in self.names if "/" in name)

    def in_line(self, line: str) -> bool:
        """Whether a line of a log, or a drop as it is, names it."""
        ids = self.paths | self.messages | self.sessions | self.keys
        return any(i in line for i in ids) or self.in_words(line)


def ids_in(text: str) -> set[str]:
    return {found.strip() for found in ID_IN_TEXT.findall(text)}


def message_holds(m: Message, words: str) -> bool:
    """Whether a message holds *words*: what it says, whose it is, and the tools that were called."""
    return any(holds_words(text, words) for text in (m.sender, m.sender_id, *all_texts(m)))


def all_texts(m: Message) -> list[str]:
    """What a message says, and the tools that were called, and with what."""
    texts = [m.text, m.tool, *(part for c in m.calls for part in (c.name, c.arguments))]
    return [text for text in texts if text]


def read_text(data: bytes | None) -> str:
    """The text of a note; of one that is not there, "". What is no UTF-8 is replaced."""
    return (data or b"").decode("utf-8", errors="replace")


# --- notes


def reflecting(graph: Graph, gone: Collection[str]) -> set[str]:
    """
    Reflections that were made of *gone*, and those made of them: by their links, and by `reflected_in`, for a
    model may have used what it did not name. Also those that a person has deleted since.
    """
    named = {
        p: led_to(graph, link_targets(read_text(graph.vault.bytes(p))))
        for p in graph.vault.paths()
        if p.startswith("reflections/") and not p.startswith(LOG_FOLDER)
    }
    found: set[str] = set()
    front = set(gone)
    while front:
        texts = {p: read_text(graph.vault.bytes(p)) for p in front}
        into = {where for p, text in texts.items() for where in led_to(graph, went_into(text, p))}
        front = (into | {p for p, there in named.items() if there & front}) - found - set(gone)
        found |= front
    return found


def led_to(graph: Graph, links: Iterable[str]) -> set[str]:
    return {graph.index.resolve(target) or target for target in links}


def went_into(text: str, path: str) -> tuple[str, ...]:
    """The reflections that the note *text* went into."""
    try:
        return parse_node(text, path).reflected_in
    except BadNode:
        return ()


def former_paths(graph: Graph, messages: Collection[str]) -> set[str]:
    """Paths of notes that were made of *messages*, as receipts tell, and that are there no more."""
    receipts = [readable(graph, file) for file in (graph.folder / "receipts").glob("*.json")]
    changes = [change for receipt in receipts if receipt for change in receipt.changes]
    found = {c.path for c in changes if not ids_in(f"{c.before or ''}{c.after or ''}").isdisjoint(messages)}
    return {p for p in found if p.startswith("nodes/") and graph.vault.bytes(p) is None}


def notes_linking(graph: Graph, gone: Collection[str], former: Collection[str] = ()) -> list[str]:
    """Notes that stay and link to one of *gone*, or to where one of *former* was."""
    found = {p for g in gone for p in graph.index.backlinks(g)}
    found |= {p for p, target in graph.index.dangling() if former and target in former}
    return sorted(p for p in found - set(gone) if not p.startswith(LOG_FOLDER))


def all_names(graph: Graph, paths: Collection[str]) -> set[str]:
    """Every name that the notes at *paths* have or had."""
    found = set(paths)
    for path in paths:
        with suppress(BadNode, NotFound):
            node = graph.vault.read(path)
            found |= {node.id, *node.aliases}
    return found
