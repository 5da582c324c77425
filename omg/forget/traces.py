"""
Where else something of what is forgotten stands, and how it is taken out there.

    links       other notes, whoever wrote them: a link to it becomes plain words, a line of history about it goes
    receipts    what they hold of it; the rest of a cycle can still be undone
    archive     its messages

Not here: graphs that were replaced or joined (copies.py), the rest of the home (homefiles.py), files of others
(beyond.py). One rule: what does not tell of it stays as it is, byte for byte; and every step may be repeated.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import BadInput, BadNode, NotFound
from ..graph.files import write_private
from ..graph.graph import Graph
from ..journal import Change, Outcome, apply_change, read_receipt, readable
from ..message.stored import message_from_json
from ..message.turn import Message
from ..node.maptable import LOG_FOLDER
from ..node.markdown import bare_target, link_targets
from ..node.note import amend_text, head_of, parse_node
from ..text.links import WIKILINK
from .words import blanked, holds_words

ID_IN_TEXT = re.compile(r"""\bid: *["']?([^"'\n,}]+)""")  # a note's own, and those of its sources
ANY_LINK = re.compile(rf"!?{WIKILINK.pattern}")
# What the Reflector has seen, and what a model answered about a batch that is still to be observed (observe/run.py)
SEEN = ("reflected.json", "reflected.open.json", "replies.json")


@dataclass(frozen=True, slots=True)
class Trace:
    """What is to go, as a text may speak of it. `names`: paths, present and former, and ids of notes."""

    names: frozenset[str]
    messages: frozenset[str]
    sessions: frozenset[str] = frozenset()  # that had one of the messages
    text: str = ""  # words, however they are written (words.py)
    keys: frozenset[str] = frozenset()  # of sessions that go whole: no file names them any more

    def in_note(self, text: str) -> bool:
        """Whether a note says it: cites the messages, links to the notes, or has the words."""
        named = {found.strip() for found in ID_IN_TEXT.findall(text)} | set(link_targets(text))
        return bool(named & (self.names | self.messages)) or self.in_words(text)

    def in_words(self, text: str) -> bool:
        return holds_words(text, self.text)

    def names_path(self, path: str) -> bool:
        return path in self.names or self.in_words(path)

    def in_message(self, m: Message) -> bool:
        return m.id in self.messages

    def in_line(self, line: str) -> bool:
        """Whether a line of a log, or a drop as it is, names it."""
        paths = {name for name in self.names if "/" in name}  # a title such as "API" may stand in any line
        ids = paths | self.messages | self.sessions | self.keys
        return any(i in line for i in ids) or self.in_words(line)


def message_holds(m: Message, words: str) -> bool:
    """Whether a message holds *words*: what it says, whose it is, and the tools that were called."""
    return any(holds_words(text, words) for text in (m.sender, m.sender_id, *all_texts(m)))


def all_texts(m: Message) -> list[str]:
    """What a message says, and the tools that were called, and with what."""
    texts = [m.text, m.tool, *(part for c in m.calls for part in (c.name, c.arguments))]
    return [text for text in texts if text]


# --- notes that go as well


def reflecting(graph: Graph, gone: Collection[str]) -> set[str]:
    """
    Reflections that were made of *gone*, and those made of them: by their links, and by `reflected_in`, for a
    model may have used what it did not name. Also those that a person has deleted since.
    """
    named = {
        p: led_to(graph, link_targets(graph.vault.bytes(p).decode("utf-8", errors="replace")))  # type: ignore[union-attr]
        for p in graph.vault.paths()
        if p.startswith("reflections/") and not p.startswith(LOG_FOLDER)
    }
    found: set[str] = set()
    front = set(gone)
    while front:
        into = {where for p in front for where in led_to(graph, reflected_in(graph, p))}
        front = (into | {p for p, there in named.items() if there & front}) - found - set(gone)
        found |= front
    return found


def led_to(graph: Graph, links: Iterable[str]) -> set[str]:
    return {graph.index.resolve(target) or target for target in links}


def reflected_in(graph: Graph, path: str) -> tuple[str, ...]:
    data = graph.vault.bytes(path)
    return () if data is None else went_into(data.decode("utf-8", errors="replace"), path)


def went_into(text: str, path: str) -> tuple[str, ...]:
    """The reflections that the note *text* went into."""
    try:
        return parse_node(text, path).reflected_in
    except BadNode:
        return ()


def former_paths(graph: Graph, messages: Collection[str]) -> set[str]:
    """
    Paths of notes that were made of *messages*, as receipts tell, and that are there no more.
    """
    found = set()
    for file in (graph.folder / "receipts").glob("*.json"):
        receipt = readable(graph, file)
        for change in receipt.changes if receipt else ():
            said = (change.before or "") + (change.after or "")
            if not {found.strip() for found in ID_IN_TEXT.findall(said)}.isdisjoint(messages):
                found.add(change.path)
    return {p for p in found if p.startswith("nodes/") and graph.vault.bytes(p) is None}


# --- notes that stay


def unlink_notes(graph: Graph, gone: Collection[str], trace: Trace) -> None:
    """Take what leads to *gone*, and what History says of it, out of all other notes. Before *gone* goes."""
    outcome = Outcome()
    for path in notes_linking(graph, gone, trace.names):
        data = graph.vault.bytes(path)
        if data is None:
            continue
        before = data.decode("utf-8", errors="replace")
        after = without_traces(graph, path, before, gone=frozenset(gone), trace=trace)
        if after != before and before.encode("utf-8") == data:
            apply_change(graph, Change(path, before, after, theirs=not graph.vault.ours(data)), outcome)


def notes_linking(graph: Graph, gone: Collection[str], former: Collection[str] = ()) -> list[str]:
    """Notes that stay and link to one of *gone*, or to where one of *former* was."""
    found = {p for g in gone for p in graph.index.backlinks(g)}
    found |= {p for p, target in graph.index.dangling() if former and target in former}
    return sorted(p for p in found - set(gone) if not p.startswith(LOG_FOLDER))


def without_traces(graph: Graph, path: str, text: str, *, gone: frozenset[str], trace: Trace) -> str:
    def leads_there(link: str) -> bool:
        try:
            target = bare_target(link)
        except ValueError:
            return False
        return target in gone or target in trace.names or graph.index.resolve(target) in gone

    def plain(found: re.Match[str]) -> str:
        if not leads_there(found[1]):
            return found[0]
        return found[1].partition("|")[2].strip() or "(forgotten)"

    try:
        node = parse_node(text, path)
        left = replace(
            node,
            links=tuple(t for t in node.links if not leads_there(t)),
            supersedes=tuple(t for t in node.supersedes if not leads_there(t)),
            contradicts=tuple(t for t in node.contradicts if not leads_there(t)),
            reflected_in=tuple(t for t in node.reflected_in if not leads_there(t)),
        )
        if node.superseded_by and leads_there(node.superseded_by):  # what replaced it was never said
            left = replace(left, superseded_by=None, status="active")
        was, now = head_of(node), head_of(left)
        text = amend_text(text, set={k: now.get(k) for k in was if was[k] != now.get(k)})
    except BadNode:
        pass
    begin, mark, rest = text.partition("\n---") if text.startswith("---") else ("", "", text)
    lines = [
        ANY_LINK.sub(plain, line)
        for line in rest.splitlines(keepends=True)
        if not (
            line.startswith("- ") and line[2:6].isdigit() and any(map(leads_there, ANY_LINK.findall(line)))
        )
    ]
    return begin + mark + "".join(lines)


def scrub_log_pages(graph: Graph, trace: Trace) -> None:
    """The lines of `reflections/log/` that tell of it."""
    for path in [p for p in graph.vault.paths() if p.startswith(LOG_FOLDER)]:
        text = graph.vault.text(path)
        kept = "".join(line for line in text.splitlines(keepends=True) if not trace.in_note(line))
        kept = blanked(kept, trace.text)  # over the end of a line
        if kept != text:
            apply_change(graph, Change(path, text, kept), Outcome())


# --- a graph's folder


def scrub_receipts(folder: Path, trace: Trace) -> None:
    """Drop from every receipt in *folder* the changes, hints and words that tell of it."""
    for file in sorted(folder.glob("*.json")):
        try:
            receipt = read_receipt(file)
        except BadInput:  # cannot be undone anyway
            if trace.in_line(file.read_text(encoding="utf-8", errors="replace")):
                file.unlink()
            continue
        kept = tuple(c for c in receipt.changes if not change_tells(c, trace))
        if trace.sessions:  # Now quotes their tasks
            kept = tuple(c for c in kept if c.path != "now")
        summary = tuple(
            line
            for line in receipt.summary
            if not trace.in_words(line) and not any(name in line for name in trace.names)
        )
        if len(kept) < len(receipt.changes) and all(c.rebase.block is not None for c in kept):
            summary = ()  # it was about that note, perhaps by its title
        hints = {s: h for s, h in receipt.hints.items() if s not in trace.sessions}
        scrubbed = replace(receipt, changes=kept, hints=hints, summary=summary)
        if scrubbed != receipt:
            write_private(file, scrubbed.dumps())


def change_tells(change: Change, trace: Trace) -> bool:
    said = (change.before, change.after, change.rebase.block, change.rebase.history, *words_in(change))
    return change.path in trace.names or any(trace.in_note(text) for text in said if text)


def words_in(change: Change) -> Iterator[str]:
    for value in change.rebase.set.values():
        yield from map(str, value if isinstance(value, list | tuple) else [value])


def archived_messages(folder: Path) -> Iterator[tuple[str, Message]]:
    """`(session, message)` of every line in the archive *folder*; one that a crash has torn was never promised."""
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8", errors="replace").split("\n"):
            with suppress(BadInput):
                message, session = message_from_json(line)
                yield session, message


def remove_archived(folder: Path, trace: Trace) -> None:
    """Take messages out of the archive."""
    for file in sorted(folder.glob("*.jsonl")):
        lines = file.read_text(encoding="utf-8", errors="replace").split("\n")
        kept = [line for line in lines if line_stays(line, trace)]
        if kept != lines[: len(kept)] or any(lines[len(kept) :]):
            write_private(file, "".join(line + "\n" for line in kept))


def line_stays(line: str, trace: Trace) -> bool:
    try:
        return not trace.in_message(message_from_json(line)[0])
    except BadInput:
        return False


# --- names


def all_names(graph: Graph, paths: Collection[str]) -> set[str]:
    """Every name that the notes at *paths* have or had."""
    found = set(paths)
    for path in paths:
        try:
            node = graph.vault.read(path)
        except (BadNode, NotFound):
            continue
        found |= {node.id, *node.aliases}
    return found
