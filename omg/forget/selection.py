"""Finds what goes when a note, a conversation or a text is forgotten, and what stays without its links."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from ..errors import BadNode, NotFound
from ..graph.graph import Graph
from ..inbox import inbox_path
from ..message.turn import Message
from ..node.maptable import LOG_FOLDER, STANDARD, page_title
from ..node.markdown import BEGIN, END
from ..node.note import parse_node
from ..plan.pages import persons_words
from ..text.words import told_words
from .beyond import beyond_reach, our_trash
from .places import every_message
from .traces import (
    Trace,
    all_names,
    all_texts,
    former_paths,
    message_holds,
    notes_linking,
    read_text,
    reflecting,
)
from .words import holds_words, slug_in_path

LINK_TARGET = re.compile(r"(?<=\[\[)[^|\]\n]+")


@dataclass(frozen=True, slots=True)
class Selection:
    """Everything sorted. Paths and message ids go, and with them whatever else tells of them."""

    paths: tuple[str, ...]
    messages: tuple[str, ...]
    again: tuple[str, ...] = ()  # messages that stay, of notes that go: they are observed anew
    linking: tuple[str, ...] = ()  # notes that stay, without their links to those that go
    left: tuple[str, ...] = ()  # pages where a person wrote the text beside what we generate: theirs to mend
    names: tuple[str, ...] = ()  # ids and former paths of the notes
    sessions: tuple[str, ...] = ()  # of the messages
    keys: tuple[str, ...] = ()  # sessions that go whole
    trash: tuple[str, ...] = ()  # our notes in the vault's .trash
    beyond: tuple[str, ...] = ()  # "path: why": what OMG cannot, or may not, take it out of
    alone: tuple[str, ...] = ()  # notes that go without their messages, and do not come back from them
    text: str = ""  # what was looked for

    def __bool__(self) -> bool:
        return bool(self.paths or self.messages)

    @property
    def trace(self) -> Trace:
        names, said = frozenset((*self.paths, *self.names)), frozenset(self.messages)
        return Trace(names, said, frozenset(self.sessions), self.text, frozenset(self.keys))


def select(
    graph: Graph,
    *,
    paths: Iterable[str] = (),
    session: str | None = None,
    before_ms: int | None = None,
    matching: str | None = None,
) -> Selection:
    """
    What goes with these notes and messages.

    With a note go its messages and the reflections made of it; with a message, every note that cites it; with all notes
    on a topic's map, the map.
    """
    named = set(paths)
    said = every_message(graph)
    messages = with_answers({s.id for p in named for s in graph.index.sources(p)}, said)
    if session is not None or before_ms is not None or matching is not None:
        wanted = partial(message_fits, of=session, before_ms=before_ms, matching=matching)
        messages |= {m.id for s, m in said if wanted(m, s)}
    left: list[str] = []
    if matching is not None:
        found, left = notes_holding(graph, matching)
        for path in found:
            cited = {s.id for s in graph.index.sources(path)}
            if not cited & messages:  # put in other words, and no message could be told by it
                messages |= cited
        named |= found
    gone = named | {p for p in graph.index.citing(sorted(messages)) if p.startswith("nodes/")}
    gone |= {p for m in messages if (p := inbox_path(m)) and graph.vault.bytes(p) is not None}
    former = former_paths(graph, messages)
    gone |= reflecting(graph, gone | former)
    gone |= {p for p in topic_maps(graph) if is_emptied(graph, p, gone) or names_it(p, matching)}
    former |= {p for p in gone if graph.vault.bytes(p) is None}
    gone -= former
    again = {s.id for p in gone for s in graph.index.sources(p)} - messages
    what = Selection(
        paths=tuple(sorted(gone)),
        messages=tuple(sorted(messages)),
        again=tuple(sorted(again)),
        linking=tuple(p for p in notes_linking(graph, gone, former) if not is_generated(graph, p)),
        left=tuple(p for p in left if p not in gone),
        names=tuple(sorted((all_names(graph, gone) | former) - gone)),
        sessions=tuple(sorted({s for s, m in said if m.id in messages})),
        keys=() if session is None else (session,),
        text=matching or "",
    )
    return with_surroundings(graph, what)


def select_alone(graph: Graph, paths: Iterable[str]) -> Selection:
    """These notes and the reflections made of them; the messages they came from stay."""
    alone = set(paths)
    gone = alone | reflecting(graph, alone)
    what = Selection(
        paths=tuple(sorted(gone)),
        messages=(),
        linking=tuple(p for p in notes_linking(graph, gone) if not is_generated(graph, p)),
        names=tuple(sorted(all_names(graph, gone) - gone)),
        alone=tuple(sorted(alone)),
    )
    return with_surroundings(graph, what)


def with_answers(messages: set[str], said: Iterable[tuple[str, Message]]) -> set[str]:
    """*messages*, and the assistant's answers, calls and results after them that repeat their words."""
    found = set(messages)
    answering: dict[str, frozenset[str]] = {}  # session → the words of those it is answering
    for session, m in sorted(said, key=lambda s: s[1].timestamp):
        if m.role == "user":
            before = answering.get(session, frozenset()) if m.id in messages else frozenset()
            answering[session] = before | (told_words(m.text) if m.id in messages else frozenset())
        elif (words := answering.get(session)) and any(words & told_words(t) for t in all_texts(m)):
            found.add(m.id)
    return found


def with_surroundings(graph: Graph, what: Selection) -> Selection:
    """*what*, and where else in the vault and around it there is something of it."""
    what = replace(what, trash=tuple(our_trash(graph, what.trace)))
    return replace(what, beyond=beyond_reach(graph, what.trace, skip=what.trash))


def notes_holding(graph: Graph, text: str) -> tuple[set[str], list[str]]:
    """The notes that hold *text*; and the generated pages that do outside of their generated part."""
    trace, notes, pages = Trace(text=text), set(), []
    for path in (*graph.vault.paths(), *graph.vault.conflicts()):
        data = graph.vault.bytes(path)
        said = read_text(data)
        if data is None or not trace.in_words(said):
            continue
        said = without_targets(graph, said)
        if not trace.in_words(said) and not names_it(path, text):
            continue
        if not is_generated(graph, path) and (
            path.startswith(("nodes/", "reflections/")) or not graph.vault.ours(data)
        ):
            notes.add(path)
        elif is_generated(graph, path) and trace.in_words(outside_block(said)):
            pages.append(path)
    return notes, pages


def without_targets(graph: Graph, text: str) -> str:
    """*text* without its links' targets: a note does not say what it links to, or which map it is on."""
    return LINK_TARGET.sub(lambda m: "" if graph.index.resolve(m[0]) else m[0], text)


def topic_maps(graph: Graph) -> list[str]:
    """The maps that the Reflector split off and on which no person has written."""
    found = []
    for path in (e.path for e in graph.index.entries(type="moc") if e.path not in STANDARD):
        with suppress(BadNode, NotFound):
            text = graph.vault.text(path)
            if not persons_words(text, path) and parse_node(text, path).description == page_title(path)[1]:
                found.append(path)
    return found


def is_emptied(graph: Graph, topic: str, gone: set[str]) -> bool:
    listed = {e.path for e in graph.index.entries(moc=topic)}
    return bool(listed) and listed <= gone


def names_it(path: str, text: str | None) -> bool:
    return text is not None and (slug_in_path(path, text) is not None or holds_words(path, text))


def is_generated(graph: Graph, path: str) -> bool:
    """Whether the page at *path* is one that we generate, at least in part."""
    entry = graph.index.entry(path)
    return path.startswith(LOG_FOLDER) or (entry is not None and entry.type in ("index", "now", "moc"))


def outside_block(page: str) -> str:
    before, _, rest = page.partition(BEGIN)
    return before + rest.partition(END)[2]


def message_fits(
    m: Message, session: str, *, of: str | None, before_ms: int | None, matching: str | None
) -> bool:
    return (
        (of is None or session == of)
        and (before_ms is None or m.timestamp < before_ms)
        and (matching is None or message_holds(m, matching))
    )
