"""Finds what a forgetting removes: notes, messages, words, and links to them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count

from ..errors import BadInput, BadNode, NotFound, OutsideVault
from ..graph.graph import Graph
from ..inbox import inbox_path
from ..index.store import rows_of
from ..journal import receipts_of
from ..message.statements import Statement, statements_of
from ..message.turn import Message
from ..node.markdown import BEGIN, END, HISTORY_HEADING, link_targets, slugify
from ..node.note import LOG_FOLDER, STANDARD, Node
from ..plan.corrections import corrected_by
from ..plan.edits import split_history
from ..plan.pages import persons_words
from ..text.characters import with_labels
from ..text.words import cut_text, told_words
from .places import (
    BLANK,
    Conversations,
    Holding,
    Talk,
    Trace,
    all_names,
    all_texts,
    beyond_reach,
    blanked,
    conversations_of,
    every_message,
    folded_words,
    former_paths,
    holding,
    holds_words,
    ids_in,
    led_to,
    names_it,
    notes_linking,
    our_trash,
    read_text,
    reflecting,
    slug_in_path,
)

SAYS_IT = 0.5  # share of a note's words that a message needs to count as a repetition
AGAIN, SHOWN_CHARS = 20, 200  # most messages that are compared with a note, and characters shown of each
FORMER = 3  # most former states of a note that are shown
LINK_TARGET = re.compile(r"(?<=\[\[)[^|\]\n]+")


@dataclass(frozen=True, slots=True)
class Selection:
    """
    What a forgetting removes: notes, messages, and everything else that mentions these notes and messages.

    With `redacts`, no note or message is removed: `paths` and `messages` name those that hold `text`, and only the
    words `text` are taken out. All tuples are sorted.
    """

    paths: tuple[str, ...]
    messages: tuple[str, ...]
    again: tuple[str, ...] = ()  # messages of removed notes that stay, and are observed again
    linking: tuple[str, ...] = ()  # notes that stay, but lose their links to removed notes
    left: tuple[str, ...] = ()  # pages where a person wrote the text outside our generated part
    names: tuple[str, ...] = ()  # ids and former paths of the notes
    sessions: tuple[str, ...] = ()  # sessions of the messages
    keys: tuple[str, ...] = ()  # sessions that are removed whole
    trash: tuple[str, ...] = ()  # our notes in the vault's .trash
    beyond: tuple[str, ...] = ()  # "path: why": files that OMG cannot, or may not, change
    # messages that stay in part: the id, the sentences that are left, because remaining notes hold them, and those removed
    cut: tuple[tuple[str, str, str], ...] = ()
    alone: tuple[str, ...] = ()  # notes that are removed without their messages
    text: str = ""  # the words that were searched
    redacts: bool = False  # only the text is replaced; nothing is removed
    renamed: tuple[tuple[str, str], ...] = ()  # (path or other name of a note, the same name without `text`)

    def __bool__(self) -> bool:
        return bool(self.paths or self.messages or self.trash)

    @property
    def trace(self) -> Trace:
        if self.redacts:
            return Trace(text=self.text)
        names, said = frozenset((*self.paths, *self.names)), frozenset(self.messages)
        return Trace(names, said, frozenset(self.sessions), self.text, frozenset(self.keys))


@dataclass(frozen=True, slots=True)
class Wanted:
    """
    What somebody asks to forget: the notes *paths*, or messages, or both.

    - *session*, *before_ms*, *held*: messages of this session, from before this time, with these words. A message has
      to meet each given condition.
    - *asked*: ids of the messages in which somebody asks for this. They are forgotten, too, even if OMG has not taken
      them in yet.
    - *alone*: remove the notes, but keep the messages that they were made from.
    """

    paths: Iterable[str] = ()
    session: str | None = None
    before_ms: int | None = None
    held: Holding | None = None
    asked: Iterable[str] = ()
    alone: bool = False

    @property
    def words(self) -> str:
        return self.held.words if self.held else ""

    def messages(self, graph: Graph) -> set[str]:
        """
        The ids of the messages that meet each given condition: they are in *session*, older than *before_ms*, and
        hold the words. Empty if no condition is given.
        """
        if self.session is None and self.before_ms is None and self.held is None:
            return set()
        return {
            m.id
            for of, m in (every_message(graph) if self.held is None else self.held.said)
            if self.session in (None, of) and (self.before_ms is None or m.timestamp < self.before_ms)
        }


def select(graph: Graph, wanted: Wanted) -> Selection:
    """
    Select what is removed together with the *wanted* notes and messages:

    - with a note: its former text, the reflections made from it and, unless *wanted* says `alone`, its messages;
    - with a message: every note that cites it;
    - a topic's map, if all its notes are removed.

    A message may support a removed note and also a note that stays. Then the message is only shortened: the sentences
    for the note that stays are kept.
    """
    talk, asked, left = conversations_of(graph), set(wanted.asked), list[str]()
    named = with_former_notes(graph, wanted.paths)
    cited = set() if wanted.alone else {id for p in named for id in sources_of(graph, p)}
    said = talk.around(asked | cited)
    parts = parted_messages(graph, said, cited - asked, named)
    taken = [(of, replace(m, text=parts[m.id].gone) if m.id in parts else m) for of, m in said]
    messages = with_answers(asked | cited, taken) - parts.keys()
    messages |= wanted.messages(graph)
    if wanted.held is not None:
        notes, left = notes_holding(graph, wanted.held)
        messages |= sources_without(graph, notes, messages)
        former, before = former_telling(graph, wanted.words, notes, messages, talk)
        named |= notes | former
        messages |= with_answers(before, talk.around(before))
    parts = {id: part for id, part in parts.items() if id not in messages}
    gone, former = notes_going(graph, wanted, named, messages, parts)
    again = set() if wanted.alone else {s.id for p in gone for s in graph.index.sources(p)}
    what = Selection(
        paths=tuple(sorted(gone)),
        messages=tuple(sorted(messages)),
        again=tuple(sorted(again - messages - parts.keys())),
        linking=tuple(p for p in notes_linking(graph, gone, former) if not is_generated(graph, p)),
        left=tuple(p for p in left if p not in gone),
        names=tuple(sorted((all_names(graph, gone) | former) - gone)),
        cut=tuple(sorted((id, part.left, part.gone) for id, part in parts.items())),
        sessions=tuple(sorted(talk.sessions(messages | parts.keys()))),
        keys=() if wanted.session is None else (wanted.session,),
        alone=tuple(sorted(named)) if wanted.alone else (),
        text=wanted.words,
    )
    what = replace(what, trash=tuple(our_trash(graph, what.trace)))
    return replace(what, beyond=beyond_reach(graph, what.trace, skip=what.trash))


def sources_without(graph: Graph, notes: Iterable[str], messages: Collection[str]) -> set[str]:
    """
    Return the ids of messages that say the words to forget in other words.

    *notes* and *messages* hold the words themselves. Suppose that a note in *notes* cites none of *messages*. Then the
    messages that the note cites say the same in other words, and are returned.
    """
    found = set[str]()
    for path in sorted(notes):
        told = {s.id for s in graph.index.sources(path)}
        if told.isdisjoint(found) and told.isdisjoint(messages):
            found |= told
    return found


def former_telling(
    graph: Graph, words: str, notes: set[str], messages: set[str], talk: Conversations
) -> tuple[set[str], set[str]]:
    """
    Return (paths, message ids) to forget as well, so that no outdated note counts again.

    For example, the note "Ada lives in Bruges" replaced the note "Ada lives in Ghent", and now all messages about
    Bruges are forgotten (*messages*). Without the note about Bruges, the note about Ghent would count again. So the
    result has:

    - the older note, and corrections that were proposed for the older note
    - the messages that the older note was made from
    - the messages that support only a former statement, in the section History of the newer note
    """
    touched = notes | set(graph.index.citing(sorted(messages)))
    replacing = {p for there in replaced_by(graph, touched).values() for p in there}
    touched = {p for p in touched if p in replacing or HISTORY_HEADING in note_text(graph, p)}
    sources = {s.id for p in touched for s in graph.index.sources(p)}
    texts = {m.id: m.text for _, m in talk.around(sources)}
    lost = {p for p in touched if is_lost(graph, p, messages, texts, words)}
    former = with_former_notes(graph, lost) - lost
    before = {s.id for p in former for s in graph.index.sources(p)}
    return former, before | {m for p in lost for m in messages_by_state(graph, p, texts)[1]}


def notes_going(
    graph: Graph, wanted: Wanted, named: set[str], messages: set[str], parts: Mapping[str, Part]
) -> tuple[set[str], set[str]]:
    """
    Return the paths of all notes to remove, and the former paths of notes without a file.

    Removed are:

    - the notes *named*, the notes that cite one of *messages*, and the inbox notes that gave one of *messages*
    - reflections on these notes
    - topic maps that lose all their notes, or whose name has the forgotten words

    *parts*: messages that are only removed in part. A note that the remaining part supports stays.
    """
    spared = {p for part in parts.values() for p in part.notes}
    citing = graph.index.citing(sorted({*messages, *parts}))
    gone = named | {p for p in citing if p.startswith("nodes/") and p not in spared}
    gone |= {p for m in messages if (p := inbox_path(m)) and graph.vault.bytes(p) is not None}
    former = former_paths(graph, messages)
    gone |= reflecting(graph, gone | former)
    gone |= {p for p in topic_maps(graph) if is_emptied(graph, p, gone) or names_it(p, wanted.words)}
    former |= {p for p in gone if graph.vault.bytes(p) is None}
    former -= {p for p in gone if graph.vault.wrote(p)}  # a note deleted by hand stays in written.jsonl
    return gone - former, former


def sources_of(graph: Graph, path: str) -> set[str]:
    """
    The ids of the messages that the note at *path* was made from. If the note's file is gone, the ids come from
    receipts.
    """
    if graph.vault.bytes(path) is not None:
        return {s.id for s in graph.index.sources(path)}
    changes = [c for receipt in receipts_of(graph) for c in receipt.changes if c.path == path]
    return {id for c in changes for id in ids_in(f"{c.before or ''}{c.after or ''}")}


# --- Divides a message that says more than what is forgotten: sentences of other notes stay, and so do these notes.


@dataclass(frozen=True, slots=True)
class Part:
    """
    A message of which only a part is removed: the removed text, the remaining text, and the notes that hold the
    remaining text.
    """

    gone: str
    left: str
    notes: frozenset[str]


def parted_messages(
    graph: Graph, said: Talk, cited: Collection[str], named: Collection[str]
) -> dict[str, Part]:
    """
    Find the messages of which only a part is removed. Returns message id → Part.

    - *named*: paths of the notes that are removed
    - *cited*: ids of the messages that these notes were made from

    A person's sentence stays if another note holds the sentence.
    """
    going = [words_of_note(graph, path) for path in named]
    found: dict[str, Part] = {}
    for m in (m for _, m in said if m.id in cited and m.role == "user"):
        citing = (p for p in graph.index.citing([m.id]) if p not in named and p.startswith("nodes/"))
        others = {path: words_of_note(graph, path) for path in citing}
        if others and (part := part_of_message(statements_of(m), others, going)):
            found[m.id] = part
    return found


def part_of_message(
    statements: Iterable[Statement], others: Mapping[str, frozenset[str]], going: Collection[frozenset[str]]
) -> Part | None:
    """
    Divide the statements of a message into removed and remaining ones.

    A statement remains if a note that stays has at least half of the statement's words, and more than each removed note
    has. Returns None unless some statements are removed, and some remain in a note without a removed statement.

    - *others*: for each note that stays, path → words of the note
    - *going*: for each removed note, the words of the note
    """
    left, goes, notes = list[str](), list[str](), set[str]()
    for text in (statement.text for statement in statements):
        told = told_words(text)
        shares = {path: len(told & words) / max(1, len(told)) for path, words in others.items()}
        most = max(shares.values())
        if most >= SAYS_IT and all(len(told & words) / max(1, len(told)) < most for words in going):
            left.append(text)
            notes |= {path for path, share in shares.items() if share == most}
        else:
            goes.append(text)
    # a note that holds removed text as well is removed
    notes = {path for path in notes if not any(is_told(text, others[path]) for text in goes)}
    return Part("\n".join(goes), "\n".join(left), frozenset(notes)) if left and notes and goes else None


def is_told(text: str, words: frozenset[str]) -> bool:
    """Whether *words* contain nearly all words of *text*."""
    told = told_words(text)
    return len(told) > 1 and len(told & words) > 0.8 * len(told)


def words_of_note(graph: Graph, path: str) -> frozenset[str]:
    node = readable_note(graph, path)
    return told_words(f"{node.title} {node.description} {node.full_body}") if node else frozenset()


# --- Finds a note's former text, which would otherwise come back as if it were true.


def with_former_notes(graph: Graph, paths: Iterable[str]) -> set[str]:
    """The notes at *paths*, the notes that these replaced, and the proposed corrections of all of them."""
    found, front = set[str](), set(paths)
    while front:
        found |= front
        front = replaced_by(graph, front).keys() - found
    return found


def replaced_by(graph: Graph, paths: Collection[str]) -> dict[str, set[str]]:
    """
    Find the notes that *paths* replaced, and the notes that propose to correct *paths*.

    Returns a mapping with two kinds of entries:
    - a replaced note → the notes in *paths* that replaced it
    - a proposed correction → the note in *paths* that it would correct
    """
    select = (
        "select distinct s.path from note d join link on dst = d.id join note s on s.id = src where d.path in"
    )
    found: dict[str, set[str]] = {}
    for (beside,) in graph.index.ask(rows_of, select, paths):
        text = note_text(graph, beside)
        if ("superseded_by" in text or "proposes" in text) and (node := readable_note(graph, beside)):
            corrects = corrected_by(node)
            targets = [node.superseded_by, corrects and corrects[0]]
            if there := led_to(graph, filter(None, targets)).intersection(paths):
                found[beside] = there
    return found


def note_text(graph: Graph, path: str) -> str:
    """The text of the note at *path*; "" if no note can be read there."""
    with suppress(BadNode, NotFound, OutsideVault):
        return graph.vault.text(path)
    return ""


def is_lost(graph: Graph, path: str, messages: set[str], texts: Mapping[str, str], words: str) -> bool:
    """
    Whether only *messages* support the present text of the note at *path*.

    A note without supporting messages is lost if its description holds *words*. *texts*: message id → text.
    """
    now, entry = messages_by_state(graph, path, texts)[0], graph.index.entry(path)
    return now <= messages and bool(now or (entry and holds_words(entry.description, words)))


def messages_by_state(graph: Graph, path: str, texts: Mapping[str, str]) -> tuple[set[str], set[str]]:
    """
    The ids of the messages that support the present text of the note at *path*, and of those that support only its
    History.

    Only the note's sources are looked at. *texts*: message id → text.
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
    """The lines under History in *node*, the last line first, without days and links."""
    return [with_labels(line.partition(": ")[2]) for line in reversed(split_history(node.body)[1])]


def told_before(graph: Graph, path: str) -> str:
    """The former text of the note at *path*, to show beside the note; "" if there is none."""
    node = readable_note(graph, path)
    states = [cut_text(state, SHOWN_CHARS) for state in former_states(node)] if node else []
    more = [f"and {len(states) - FORMER} more"] if len(states) > FORMER else []
    return " · ".join([*states[:FORMER], *more])


def readable_note(graph: Graph, path: str) -> Node | None:
    with suppress(BadNode, NotFound, OutsideVault):
        return graph.vault.read(path)
    return None


def with_answers(messages: set[str], said: Iterable[tuple[str, Message]]) -> set[str]:
    """
    Return *messages*, and the ids of replies that repeat a word from *messages*.

    *said*: pairs (session, message). A reply is a message or tool call of the assistant, or a tool's result. Replies
    count only up to the user's next message outside *messages*.
    """
    found = set(messages)
    answering: dict[str, frozenset[str]] = {}  # session → words of the removed messages
    for session, m in sorted(said, key=lambda s: s[1].timestamp):
        if m.role == "user":
            before = answering.get(session, frozenset()) if m.id in messages else frozenset()
            answering[session] = before | (told_words(m.text) if m.id in messages else frozenset())
        elif (words := answering.get(session)) and any(words & told_words(t) for t in all_texts(m)):
            found.add(m.id)
    return found


def said_again(graph: Graph, what: Selection, now: datetime) -> list[str]:
    """
    Return the texts of the person's messages that stay, although they repeat a removed note.

    *what*: what is removed. A message repeats a note if the message has all key words of the note. A key word stands
    both in the note's description and in a message that the note was made from.
    """
    found: dict[str, str] = {}
    for entry in filter(None, map(graph.index.entry, what.paths if not what.text else ())):
        own = graph.index.messages([s.id for s in graph.index.sources(entry.path)])
        told = told_words(entry.description) & frozenset().union(*(told_words(m.text) for m in own))
        for m, *_ in graph.index.search_raw(entry.description, AGAIN, now=now) if len(told) > 1 else ():
            if m.role == "user" and m.id not in what.messages and told <= told_words(m.text):
                found[m.id] = " ".join(m.text.split())[:SHOWN_CHARS]
    return [*found.values()]


def notes_holding(graph: Graph, held: Holding) -> tuple[set[str], list[str]]:
    """
    Return the paths of the notes that hold the words of *held*, and the paths of generated pages.

    The pages are those in which a person wrote the words outside of the part that OMG generates.
    """
    trace, notes, pages = Trace(text=held.words), set(), []
    for path, data in held.notes.items():
        said = read_text(data)
        if not trace.in_words(said):
            continue
        said = without_targets(graph, said)
        if not trace.in_words(said) and not names_it(path, held.words):
            continue
        if not is_generated(graph, path) and (
            path.startswith(("nodes/", "reflections/")) or not graph.vault.ours(data)
        ):
            notes.add(path)
        elif is_generated(graph, path) and trace.in_words(outside_block(said)):
            pages.append(path)
    return notes, pages


def without_targets(graph: Graph, text: str) -> str:
    """*text* without the targets of its links, which are no part of what a note says."""
    return LINK_TARGET.sub(lambda m: "" if graph.index.resolve(m[0]) else m[0], text)


def topic_maps(graph: Graph) -> list[str]:
    """The maps that the Reflector made for a topic and that no person has written in."""
    found = []
    for path in (e.path for e in graph.index.entries(type="moc") if e.path not in STANDARD):
        with suppress(BadNode, NotFound):
            text = graph.vault.text(path)
            if not persons_words(text, path) and "description" not in graph.vault.theirs(text.encode()):
                found.append(path)
    return found


def is_emptied(graph: Graph, topic: str, gone: set[str]) -> bool:
    listed = {e.path for e in graph.index.entries(moc=topic)}
    return bool(listed) and listed <= gone


def is_generated(graph: Graph, path: str) -> bool:
    """Whether OMG generates the page at *path*, or a part of the page."""
    entry = graph.index.entry(path)
    return path.startswith(LOG_FOLDER) or (entry is not None and entry.type in ("index", "now", "moc"))


def outside_block(page: str) -> str:
    before, _, rest = page.partition(BEGIN)
    return before + rest.partition(END)[2]


# --- Selects what a redaction changes. A note whose name holds the words is renamed, and links to it follow.


def select_words(graph: Graph, words: str, held: Holding | None = None) -> Selection:
    """
    Select what a redaction of *words* changes. *held*: `holding` of *words*, if the caller has it. Raises BadInput if
    BLANK itself contains *words*.
    """
    if not folded_words(words) or holds_words(BLANK, words):
        raise BadInput(f"{words!r} cannot be redacted; give other words")
    trace, held = Trace(text=words), held or holding(graph, words)
    notes = {path: data.decode("utf-8") for path, data in held.notes.items() if is_text(data)}
    unread = [graph.vault.file(path) for path in held.notes if path not in notes]
    trash = tuple(our_trash(graph, trace))
    return Selection(
        paths=tuple(sorted(notes)),
        messages=tuple(sorted({m.id for _, m in held.said})),
        renamed=tuple(sorted(new_names(graph, notes, words).items())),
        trash=trash,
        beyond=(
            # A key says whose memory it is, so it is removed with the session, never changed.
            *(
                f"{graph.folder}: a session's key has the words; `omg forget --session {key}` forgets what was said there"
                for key in held.keys
            ),
            *(f"{file}: the file is not UTF-8 text; remove the words yourself" for file in unread),
            *beyond_reach(graph, trace, skip=trash),
        ),
        text=words,
        redacts=True,
    )


def is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def new_names(graph: Graph, notes: Mapping[str, str], words: str) -> dict[str, str]:
    """Old name → new name, for each path, id and link target of the *notes* (path → text) that holds *words*."""
    found: dict[str, str] = {}
    for path in notes:
        if names_it(path, words):
            found[path] = free_path(graph, path_without(path, words), found.values())
    ids = {entry.id: new for path, new in found.items() if (entry := graph.index.entry(path))}
    for text in notes.values():
        for target in link_targets(text):
            if holds_words(target, words) and (there := graph.index.resolve(target)):
                found.setdefault(target, found.get(there, there))
    for id, new in ids.items():
        found.setdefault(id, f"omg/{new.removeprefix('nodes/')}")
    return found


def path_without(path: str, words: str) -> str:
    """*path* with *words* replaced in each of its parts."""
    names = []
    for name in path.split("/"):
        plain = blanked(name, words)
        if plain == name and (found := slug_in_path(name, words)):
            plain = f"{name[: found.start()]}forgotten{name[found.end() :]}"
        names.append(name if plain == name else slugify(plain))
    return "/".join(names)


def free_path(graph: Graph, path: str, taken: Collection[str]) -> str:
    names = (path if n == 1 else f"{path}-{n}" for n in count(1))
    return next(name for name in names if name not in taken and graph.vault.bytes(name) is None)
