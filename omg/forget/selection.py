"""Finds what a forgetting removes: notes, messages, words, and links to them."""

from __future__ import annotations

import re
import secrets
import shutil
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from ..config import shipped_folder
from ..errors import BadNode, NotFound
from ..graph.graph import GRAPH_MARK, REMOVED_GRAPH, Graph, kept_tombstones, marked_identity, write_mark
from ..graph.state import write_private
from ..inbox import inbox_path
from ..journal import receipts_of
from ..message.statements import Statement, statements_of
from ..message.turn import Message
from ..node.markdown import BEGIN, END
from ..node.note import LOG_FOLDER, STANDARD, Node, page_title, parse_node
from ..plan.corrections import corrected_by
from ..plan.edits import split_history
from ..plan.pages import persons_words
from ..text.characters import with_labels
from ..text.words import cut_text, told_words
from ..vault.files import LEFTOVER
from .places import (
    Trace,
    all_names,
    all_texts,
    archived_messages,
    beyond_reach,
    every_message,
    former_paths,
    holds_words,
    ids_in,
    led_to,
    message_holds,
    notes_linking,
    our_trash,
    read_text,
    reflecting,
    slug_in_path,
)

# --- Removes the graph of a session that was forgotten whole, if nothing else is in it.
#
# Its identity.json and its folder's name hold the session's key. What keeps the session from coming back stays, under a
# hash (graph/graph.py). A graph that holds anything of a person's, or of another session, stays.


def is_bare(graph: Graph, trace: Trace) -> bool:
    if graph.identity.key not in trace.keys or not graph.vault.root.is_relative_to(graph.folder):
        return False
    if graph.pending() or any(archived_messages(graph.folder / "archive")):
        return False
    if any(
        (graph.folder / name).is_dir() and any((graph.folder / name).iterdir())
        for name in ("damaged", "replaced")
    ):
        return False
    undone = (c.path for receipt in receipts_of(graph) for c in receipt.changes)
    return not any(path.startswith("nodes/") for path in undone) and not has_persons_files(graph)


def has_persons_files(graph: Graph) -> bool:
    """Whether there is more in the vault than the template and what we generate."""
    root, template = graph.vault.root, shipped_folder("vault_template")
    pages = {f"{path}.md": path for path in graph.vault.paths()}
    for file in (f for f in root.rglob("*") if f.is_symlink() or f.is_file()):
        below = file.relative_to(root)
        if below.parts[0] == ".obsidian" or LEFTOVER.fullmatch(file.name):
            continue
        if (laid := template / below).is_file() and laid.read_bytes() == file.read_bytes():
            continue
        path = pages.get(below.as_posix())
        made = path in ("index", "now") or (path or "").startswith(("mocs/", LOG_FOLDER))
        if path is None or not made or not graph.vault.ours(graph.vault.bytes(path) or b""):
            return True
    return False


def remove_graph(graph: Graph) -> None:
    """Remove the graph with its lock, which the caller holds. Whoever waits for the lock then finds no graph and
    asks again."""
    tombstones, kept = graph.tombstones.file, kept_tombstones(graph.folder)
    if tombstones.exists():
        kept.parent.mkdir(exist_ok=True, mode=0o700)
        write_private(kept, tombstones.read_text(encoding="utf-8", errors="replace"))
    gone = graph.folder.with_name(f"{REMOVED_GRAPH}{secrets.token_hex(4)}")
    graph.folder.rename(gone)
    remove_remains(gone)


def remove_remains(gone: Path) -> None:
    """Remove the folder of a graph that is forgotten whole. Turns that came in meanwhile start a new one."""
    for turn in sorted((gone / "pending").glob("*.json")):
        who = marked_identity(gone / GRAPH_MARK)
        begun = gone.with_name(who.folder)
        (begun / "pending").mkdir(parents=True, exist_ok=True, mode=0o700)
        write_mark(begun, who)
        with suppress(FileNotFoundError):  # another process is at it, too
            turn.rename(begun / "pending" / turn.name)
    shutil.rmtree(gone, ignore_errors=True)  # what is left, the next start removes


SAYS_IT = 0.5  # of the words of a note's state: a message that has as many says it
AGAIN, SHOWN_CHARS = 20, 200  # messages that are looked at for what a note says, and what is shown of each
FORMER = 3  # former states of a note that are shown
LINK_TARGET = re.compile(r"(?<=\[\[)[^|\]\n]+")


@dataclass(frozen=True, slots=True)
class Selection:
    """
    What a forgetting removes: paths, message ids, and everything else that tells of them; or what a redaction (`redacts`)
    changes: paths and messages that hold `text`. All sorted.
    """

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
    # message that stays in part → what is left of it: the sentences of notes that stay
    cut: tuple[tuple[str, str], ...] = ()
    alone: tuple[str, ...] = ()  # notes that go without their messages, and do not come back from them
    text: str = ""  # what was looked for
    redacts: bool = False  # the text alone is replaced, and nothing goes
    renamed: tuple[tuple[str, str], ...] = ()  # path, or other name of a note → the one without the text

    def __bool__(self) -> bool:
        return bool(self.paths or self.messages or self.trash)

    @property
    def trace(self) -> Trace:
        if self.redacts:
            return Trace(text=self.text)
        names, said = frozenset((*self.paths, *self.names)), frozenset(self.messages)
        return Trace(names, said, frozenset(self.sessions), self.text, frozenset(self.keys))


def select(
    graph: Graph,
    *,
    paths: Iterable[str] = (),
    session: str | None = None,
    before_ms: int | None = None,
    matching: str | None = None,
    asked: Iterable[str] = (),
    alone: bool = False,
) -> Selection:
    """
    What is removed together with these notes and messages. *asked*: the messages that asked for it; one that is not taken
    in yet never will be.

    With a note go the reflections made of it, what it said before, and its messages unless it goes *alone*; with a message,
    every note that cites it; with all notes on a topic's map, the map. Of a message that is cited, the sentences of other
    notes stay, and these notes.
    """
    named = with_former_notes(graph, paths)
    said = every_message(graph)
    cited = set() if alone else {id for p in named for id in sources_of(graph, p)}
    parts = parted_messages(graph, said, cited - {*asked}, named)
    taken = [(of, replace(m, text=parts[m.id].gone) if m.id in parts else m) for of, m in said]
    messages = with_answers({*asked, *cited}, taken) - parts.keys()
    if session is not None or before_ms is not None or matching is not None:
        messages |= {
            m.id
            for of, m in said
            if session in (None, of)
            and (before_ms is None or m.timestamp < before_ms)
            and (matching is None or message_holds(m, matching))
        }
    left: list[str] = []
    if matching is not None:
        found, left = notes_holding(graph, matching)
        for path in found:
            told = {s.id for s in graph.index.sources(path)}
            if not told & messages:  # put in other words, and no message could be told by it
                messages |= told
        texts = {m.id: m.text for _, m in said}
        touched = found | set(graph.index.citing(sorted(messages)))
        lost = {p for p in touched if is_lost(graph, p, messages, texts, matching)}
        former_notes = with_former_notes(graph, lost) - lost
        before = {s.id for p in former_notes for s in graph.index.sources(p)}
        before |= {m for p in lost for m in messages_by_state(graph, p, texts)[1]}
        messages |= with_answers(before, said)
        named |= found | former_notes
    parts = {id: part for id, part in parts.items() if id not in messages}
    spared = {p for part in parts.values() for p in part.notes}
    citing = graph.index.citing(sorted({*messages, *parts}))
    gone = named | {p for p in citing if p.startswith("nodes/") and p not in spared}
    gone |= {p for m in messages if (p := inbox_path(m)) and graph.vault.bytes(p) is not None}
    former = former_paths(graph, messages)
    gone |= reflecting(graph, gone | former)
    gone |= {p for p in topic_maps(graph) if is_emptied(graph, p, gone) or names_it(p, matching)}
    former |= {p for p in gone if graph.vault.bytes(p) is None}
    former -= {p for p in gone if graph.vault.wrote(p)}  # deleted by hand: written.jsonl names it
    gone -= former
    again = set() if alone else {s.id for p in gone for s in graph.index.sources(p)} - messages - parts.keys()
    what = Selection(
        paths=tuple(sorted(gone)),
        messages=tuple(sorted(messages)),
        again=tuple(sorted(again)),
        linking=tuple(p for p in notes_linking(graph, gone, former) if not is_generated(graph, p)),
        left=tuple(p for p in left if p not in gone),
        names=tuple(sorted((all_names(graph, gone) | former) - gone)),
        cut=tuple(sorted((id, part.left) for id, part in parts.items())),
        sessions=tuple(sorted({s for s, m in said if m.id in messages or m.id in parts})),
        keys=() if session is None else (session,),
        alone=tuple(sorted(named)) if alone else (),
        text=matching or "",
    )
    what = replace(what, trash=tuple(our_trash(graph, what.trace)))
    return replace(what, beyond=beyond_reach(graph, what.trace, skip=what.trash))


def sources_of(graph: Graph, path: str) -> set[str]:
    """The ids of the messages that the note at *path* was made of; of one whose file is gone, as receipts have it."""
    if graph.vault.bytes(path) is not None:
        return {s.id for s in graph.index.sources(path)}
    changes = [c for receipt in receipts_of(graph) for c in receipt.changes if c.path == path]
    return {id for c in changes for id in ids_in(f"{c.before or ''}{c.after or ''}")}


# --- A message that says more than what goes: the sentences of other notes stay, and these notes.


@dataclass(frozen=True, slots=True)
class Part:
    """Of a message: the text that goes, the text that is left, and the notes that say what is left."""

    gone: str
    left: str
    notes: frozenset[str]


def parted_messages(
    graph: Graph, said: Iterable[tuple[str, Message]], cited: Collection[str], named: Collection[str]
) -> dict[str, Part]:
    """Of each *cited* message of a person that other notes than the *named* ones have sentences of: what goes and what is left."""
    found: dict[str, Part] = {}
    going = [words_of_note(graph, path) for path in named]
    for m in (m for _, m in said if m.id in cited and m.role == "user"):
        others = {p: words_of_note(graph, p) for p in graph.index.citing([m.id]) if p not in named}
        others = {p: words for p, words in others.items() if p.startswith("nodes/")}
        left, notes = list[Statement](), set[str]()
        every = statements_of(m)
        for statement in every if others else ():
            told = told_words(statement.text)
            shares = {p: len(told & words) / max(1, len(told)) for p, words in others.items()}
            meant = max((len(told & words) / max(1, len(told)) for words in going), default=0)
            if max(shares.values()) >= SAYS_IT and max(shares.values()) > meant:
                left.append(statement)
                notes |= {p for p, share in shares.items() if share == max(shares.values())}
        goes = [s.text for s in every if s not in left]
        # a note that also says what goes, goes with it
        notes = {p for p in notes if not any(is_told(text, others[p]) for text in goes)}
        if left and notes and goes:
            kept = "\n".join(s.text for s in left)
            found[m.id] = Part("\n".join(goes), kept, frozenset(notes))
    return found


def is_told(text: str, words: frozenset[str]) -> bool:
    """Whether *words* tell nearly all of what *text* says."""
    told = told_words(text)
    return len(told) > 1 and len(told & words) > 0.8 * len(told)


def words_of_note(graph: Graph, path: str) -> frozenset[str]:
    node = readable_note(graph, path)
    return told_words(f"{node.title} {node.description} {node.full_body}") if node else frozenset()


# --- What a note said before: it is the same fact, and would come back as if it held.


def with_former_notes(graph: Graph, paths: Iterable[str]) -> set[str]:
    """The notes at *paths*, those that they took the place of, and what was proposed to stand in their place."""
    found, front = set[str](), set(paths)
    while front:
        found |= front
        beside = {p for path in front for p in graph.index.backlinks(path)} - found
        front = {
            p for p in beside if (node := readable_note(graph, p)) and leads_to_one_of(graph, node, front)
        }
    return found


def leads_to_one_of(graph: Graph, node: Node, paths: set[str]) -> bool:
    """Whether one of *paths* took the place of *node*, or *node* proposes a correction of it."""
    corrects = corrected_by(node)
    targets = [node.superseded_by, corrects and corrects[0]]
    return not paths.isdisjoint(led_to(graph, filter(None, targets)))


def is_lost(graph: Graph, path: str, messages: Collection[str], texts: Mapping[str, str], words: str) -> bool:
    """Whether without *messages*, which hold *words*, nothing says what the note at *path* says now."""
    now, entry = messages_by_state(graph, path, texts)[0], graph.index.entry(path)
    return now <= set(messages) and bool(now or (entry and holds_words(entry.description, words)))


def messages_by_state(graph: Graph, path: str, texts: Mapping[str, str]) -> tuple[set[str], set[str]]:
    """
    The sources of the note at *path* that say what it says now, and those that say what its History has instead. *texts*: of
    all messages, by id.
    """
    node, now, before = readable_note(graph, path), set[str](), set[str]()
    if node is None:
        return now, before
    told = told_words(node.description)
    states = [told, *(words for words in map(told_words, former_states(node)) if not words <= told)]
    for id in {s.id for s in graph.index.sources(path)} & texts.keys():
        words = told_words(texts[id])
        shares = [len(state & words) / max(1, len(state)) for state in states]
        if max(shares) >= SAYS_IT:
            (now if shares[0] == max(shares) else before).add(id)
    return now, before


def former_states(node: Node) -> list[str]:
    """The lines of the History of *node*, the last first, without their days and links."""
    return [with_labels(line.partition(": ")[2]) for line in reversed(split_history(node.body)[1])]


def told_before(graph: Graph, path: str) -> str:
    """What the note at *path* said before, to be shown with it; "" for nothing."""
    node = readable_note(graph, path)
    states = [cut_text(state, SHOWN_CHARS) for state in former_states(node)] if node else []
    more = [f"and {len(states) - FORMER} more"] if len(states) > FORMER else []
    return " · ".join([*states[:FORMER], *more])


def readable_note(graph: Graph, path: str) -> Node | None:
    with suppress(BadNode, NotFound):
        return graph.vault.read(path)
    return None


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


def said_again(graph: Graph, what: Selection, now: datetime) -> list[str]:
    """The texts of a person's messages that stay and say what a note of *what* does, in the words that it was made from."""
    found: dict[str, str] = {}
    for entry in filter(None, map(graph.index.entry, what.paths if not what.text else ())):
        own = graph.index.messages([s.id for s in graph.index.sources(entry.path)])
        told = told_words(entry.description) & frozenset().union(*(told_words(m.text) for m in own))
        for m, *_ in graph.index.search_raw(entry.description, AGAIN, now=now) if len(told) > 1 else ():
            if m.role == "user" and m.id not in what.messages and told <= told_words(m.text):
                found[m.id] = " ".join(m.text.split())[:SHOWN_CHARS]
    return [*found.values()]


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
