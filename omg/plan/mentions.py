"""
MentionedNames and titles of other notes that stand in a text → links.

A title of two words or more is looked for as it is. A single word only where it is a name: written large within
sentences, never small, with no article before it; then it leads to the note by that title, or to the one that says who
or what it is. A name that stands everywhere, its owner's, leads nowhere.

Pure. Not here: which texts are ours to change (drafts.py as a note is written, reflect/upkeep.py by night). One rule: a
text is linked where a name stands whole, outside code, links and addresses, and once for each note.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..dates.spans import MONTHS, WEEKDAYS
from ..index.entries import Entry
from ..journal import Rebase
from ..node.fields import TYPES
from ..node.markdown import wikilink, without_code
from .edits import split_history, with_history_lines

if TYPE_CHECKING:
    from .drafts import Plan

LINKS_OF_A_NOTE = 6  # names linked in one note; beyond it is a list of names
COMMON_SHARE, COMMON = 0.1, 5  # a name in more of all notes than this is whose vault it is
HOMES = 2  # notes that have a name in their title; with more, none of them is what is meant
BEFORE_CHARS = 80  # before a name, in which it is introduced; all of a long text would be read for each name
NAME_LETTERS = 3  # letters of a name, and of each of the two words that a title needs
NAME_WORD = re.compile(r"[^\W_]+")
LINKED = re.compile(r"\[\[[^\[\]\n]*\]\]|\[[^\[\]\n]*\]\([^()\n]*\)|\b\w{1,20}://\S+")
SENTENCE_START = re.compile(r"(?:\A|[.!?:;…\"“”„«»(\n•-])\s{0,9}\Z")
PART_OF_ADDRESS = re.compile(r"[./@_#\\-](?=[^\W_])")
# Before a name that a note says something of: "is Katrin", "a dog called Pepper", "the user's sister Jule".
INTRODUCES = re.compile(
    r"(?:\b(?:is|are|was|called|named|ist|heißt)|(?:['’]s|\b(?:my|their|his|her|our|mein\w*|ihr\w*)) [a-zß-ÿ]\w+)$"
)
DOING = re.compile(r"\b\w{1,60}ing\b")  # "working hard" stands in many a text
OWN_NAME = re.compile(
    r"\b(?:name is|name:|nombre es|nom est|heiße|name ist) (?:\w+ )?\Z", re.I
)  # whose vault it is
POSSESSED_BY = re.compile(r"\b\w{1,60}['’]s\b")  # "Gina's job" is not about Gina
ARTICLES = frozenset(
    "a an the my your his her its our their some any each every "
    "der die das den dem des ein eine einen einem einer mein meine meinen dein seine ihre unser "
    "le la les un une des mon ma mes el los las una mi il lo gli i o os as um uma".split()
)
DAYS_AND_MONTHS = frozenset(name.lower() for name in (*WEEKDAYS, *MONTHS))


@dataclass(frozen=True, slots=True)
class Name:
    words: tuple[str, ...]  # in lower case
    path: str
    proper: bool  # a single word that counts only where it is written large


class MentionedNames:
    """What the texts of *entries* may mention, each name with the note it leads to."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        notes = [e for e in entries if e.type in TYPES and e.status == "active" and e.origin != "tool"]
        self.by_word: dict[str, list[Name]] = defaultdict(list)
        for words, path in titles_of(notes):
            self.by_word[words[0]].append(Name(words, path, False))
        for word, path in proper_names(notes).items():
            self.by_word[word].append(Name((word,), path, True))
        for names in self.by_word.values():
            names.sort(key=lambda n: -len(n.words))

    def found_in(self, text: str) -> Iterator[tuple[slice, str]]:
        """Where in *text* which note is mentioned, in reading order, each note once."""
        plain = LINKED.sub(lambda m: "\0" * len(m[0]), without_code(text))
        words = list(NAME_WORD.finditer(plain))
        seen: set[str] = set()
        at = 0
        while at < len(words):
            found = next(
                (n for n in self.by_word.get(words[at][0].lower(), ()) if stands_at(n, words, at)), None
            )
            size = len(found.words) if found else 1
            start, end = words[at].start(), words[at + size - 1].end()
            if found and found.path not in seen and is_free(plain, start, end):
                seen.add(found.path)
                yield slice(start, end), found.path
            at += size


def titles_of(notes: Iterable[Entry]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Titles of two words or more, of notes that alone have them."""
    by_title: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for entry in notes:
        if not DOING.match(entry.title):
            by_title[tuple(w.lower() for w in NAME_WORD.findall(entry.title))].append(entry.path)
    for words, paths in by_title.items():
        if len(paths) == 1 and sum(len(w) >= NAME_LETTERS and w not in ARTICLES for w in words) > 1:
            yield words, paths[0]


def proper_names(notes: list[Entry]) -> dict[str, str]:
    """Name, in lower case → the note that is about it."""
    small: set[str] = set()
    within: set[str] = set()  # written large within a sentence
    large: dict[str, set[str]] = defaultdict(set)  # name → the notes that mention it
    introduced: dict[str, list[Entry]] = defaultdict(list)
    for entry in notes:
        text = entry.description
        for m in NAME_WORD.finditer(text):
            word, before = m[0].lower(), text[max(0, m.start() - BEFORE_CHARS) : m.start()]
            last = NAME_WORD.findall(before[-20:])
            if (
                not m[0][0].isupper()
                or OWN_NAME.search(before)
                or (last and last[-1].lower() in ARTICLES and before.endswith(" "))
            ):
                small.add(word)
            elif len(word) >= NAME_LETTERS and word not in DAYS_AND_MONTHS:
                large[word].add(entry.path)
                within |= set() if SENTENCE_START.search(before) else {word}
                if INTRODUCES.search(before.rstrip()):
                    introduced[word].append(entry)
    named: dict[str, list[Entry]] = defaultdict(list)
    for entry in notes:
        for word in {w.lower() for w in NAME_WORD.findall(POSSESSED_BY.sub("", entry.title))}:
            named[word].append(entry)
    common = max(COMMON, COMMON_SHARE * len(notes))
    return {
        word: home.path
        for word, paths in large.items()
        if word in within - small and len(paths) <= common
        if (home := home_of(word, named[word], introduced[word])) is not None
    }


def home_of(word: str, titled: list[Entry], introduced: list[Entry]) -> Entry | None:
    exact = [e for e in titled if e.title.lower() == word]
    best = exact or introduced or (titled if len(titled) <= HOMES else [])
    return min(best, key=lambda e: (TYPES.index(e.type), str(e.created), e.path), default=None)


def stands_at(name: Name, words: list[re.Match[str]], at: int) -> bool:
    there = words[at : at + len(name.words)]
    return tuple(w[0].lower() for w in there) == name.words and (not name.proper or there[0][0][0].isupper())


def is_free(text: str, start: int, end: int) -> bool:
    """Whether what stands there is no part of an address, a file's name or a compound."""
    return not PART_OF_ADDRESS.match(text, end) and not re.search(
        r"[./@_#\\-]\Z", text[max(0, start - 1) : start]
    )


def link_names(plan: Plan, paths: Iterable[str], known: Iterable[Entry]) -> list[str]:
    """
    Link what the notes at *paths* mention of those that are *known* or drafted, where their words are ours; returns
    which were changed. One that stands in the description alone is linked in the head.
    """
    drafted = plan.drafted()
    names = MentionedNames([*(e for e in known if e.path not in drafted), *drafted.values()])
    changed = []
    for path in paths:
        draft = plan.draft(path)
        node = draft.node
        if node.type not in TYPES or node.status != "active" or not draft.ours:
            continue
        there = {plan.graph.index.resolve(link) or link for link in (*node.links, *node.wikilinks)}
        room = LINKS_OF_A_NOTE - sum(link.startswith("nodes/") for link in there)
        main, lines = split_history(node.body)
        main, linked = with_mentions(main, names, {path, *there}, room)
        said = [p for _, p in names.found_in(node.description) if p not in {path, *there, *linked}]
        said = said[: max(0, room - len(linked))]
        if linked or said:
            body = with_history_lines(main, lines)
            plan.rewrite(draft, replace(node, body=body, links=(*node.links, *said)), Rebase())
            changed.append(path)
    return changed


def with_mentions(
    text: str, names: MentionedNames, but: Iterable[str], room: int = LINKS_OF_A_NOTE
) -> tuple[str, list[str]]:
    """*text* with up to *room* of the notes that it mentions linked, those of *but* aside; and which they are."""
    linked, skip = [], set(but)
    found = [(at, path) for at, path in names.found_in(text) if path not in skip][: max(0, room)]
    for at, path in reversed(found):
        text = text[: at.start] + wikilink(path, text[at]) + text[at.stop :]
        linked.append(path)
    return text, linked[::-1]


def with_link_at(text: str, title: str, path: str) -> str | None:
    """*text* with its first mention of *title* leading to *path*; None if there is none."""
    if len(title) < NAME_LETTERS:
        return None
    plain = LINKED.sub(lambda m: "\0" * len(m[0]), without_code(text))
    mentions = re.finditer(rf"(?<![\w\[|]){re.escape(title)}(?![\w\]|])", plain, re.I)
    word = NAME_WORD.fullmatch(title)  # "name" is not "Name"
    found = next((m for m in mentions if not word or m[0][0].isupper() == title[0].isupper()), None)
    if found is None:
        return None
    start, end = found.span()
    return text[:start] + wikilink(path, text[start:end]) + text[end:]
