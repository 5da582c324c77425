"""
Links names and titles of other notes that occur in a text.

Linked are:
- the title of a note, if two or more of its words carry meaning
- two or more neighbouring words of a title that carry meaning: "pottery workshop" of "Kids to pottery workshop"
- a single proper name: always capitalised, also within a sentence, and never after an article
- the one-word title of a project, after a word such as "the" or "my": "the site" for the project Site

A name in many notes, such as the vault owner's, is not linked. Names are found as whole words, outside code, links and
addresses. Each note is linked once.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from ..dates.rules import MONTHS, WEEKDAYS
from ..index.store import Entry
from ..journal import Rebase
from ..node.markdown import wikilink, without_code
from ..node.note import TYPES
from ..text.words import STOP, WORD, singular_form
from .edits import split_history, with_history_lines

if TYPE_CHECKING:
    from .drafts import Plan

LINKS_OF_A_NOTE = 6  # most names that are linked in one note; a note with more is a list of names
COMMON_SHARE, COMMON = 0.1, 5  # a name in more notes than this share, and than COMMON, is the vault owner's
HOMES = 2  # most notes that share a linked name; a single word in more titles is not linked
# Words before a name that introduce the person: "the user's editor at Möwe is Katrin".
INTRODUCED_WORDS = 5
BEFORE_CHARS = (
    80  # characters before a name that are searched for an introduction; without a limit, a long text is slow
)
NAME_LETTERS = 3  # least letters of a name, and of a title's meaningful words
LINKED = re.compile(r"\[\[[^\[\]\n]*\]\]|\[[^\[\]\n]*\]\([^()\n]*\)|\b\w{1,20}://\S+")
SENTENCE_START = re.compile(r"(?:\A|[.!?:;…\"“”„«»(\n•-])\s{0,9}\Z")
PART_OF_ADDRESS = re.compile(r"[./@_#\\-](?=[^\W_])")
# Words before a name that a note introduces: "is Katrin", "a dog called Pepper", "the user's sister Jule".
INTRODUCES = re.compile(
    r"(?:\b(?:is|are|was|called|named|ist|heißt)|(?:['’]s|\b(?:my|their|his|her|our|mein\w*|ihr\w*)) [a-zß-ÿ]\w+)$"
)
DOING = re.compile(r"\b\w{1,60}ing\b")  # words like "working hard" stand in many texts
# words before the name of the vault's owner
OWN_NAME = re.compile(r"\b(?:name is|name:|nombre es|nom est|heiße|name ist) (?:\w+ )?\Z", re.I)
POSSESSED_BY = re.compile(r"\b\w{1,60}['’]s\b")  # "Gina's job" is not about Gina
ARTICLES = frozenset(
    "a an the my your his her its our their some any each every "
    "der die das den dem des ein eine einen einem einer mein meine meinen dein seine ihre unser "
    "le la les un une des mon ma mes el los las una mi il lo gli i o os as um uma".split()
)
DAYS_AND_MONTHS = frozenset(name.lower() for name in (*WEEKDAYS, *MONTHS))


INDEFINITE = frozenset("a an some any each every ein eine einen einem einer le un une des una mi o".split())
# Words that add nothing to a neighbouring word.
SLIGHT = frozenset(
    """
    new old good great best better big little long high hard easy last next first second third own real true tough
    special different favorite strong unique positive whole right nice cool amazing awesome time thing way people day week year
    moment part user lot bit mit für und oder von zum zur bei auf aus nach vor über ohne gegen durch pour avec dans sur
    sans chez par con para por sin sobre entre
    """.split()
)
DULL = STOP | ARTICLES | SLIGHT | DAYS_AND_MONTHS
PHRASE_WORDS = 4  # the most words of a title that are searched together
BREAK = re.compile(r"[.!?;:…\0]\s|[\n\0]")  # signs between words that cannot stand within a name


@dataclass(frozen=True, slots=True)
class Name:
    """A name or title that texts may mention, and the path of the note that it means."""

    words: tuple[str, ...]  # in lower case; words of a title are in the singular
    path: str
    # A single word is a name if it is capitalised ("proper") or follows "the" ("definite").
    kind: Literal["title", "proper", "definite"] = "title"
    told: frozenset[str] = frozenset()  # for a proper name: the words of the note


class MentionedNames:
    """The names that texts may mention. If a name may mean several notes, the likeliest comes first."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        notes = [e for e in entries if e.type in TYPES and e.status == "active" and e.origin != "tool"]
        self.whose = people_told_of(notes)
        self.by_start: dict[tuple[str, ...], list[Name]] = defaultdict(list)  # by the first two words
        for name in (*names_of_titles(notes), *proper_names(notes)):
            self.by_start[name.words[:2]].append(name)
        for names in self.by_start.values():
            names.sort(key=lambda n: -len(n.words))

    def found_in(self, text: str, own: str = "") -> Iterator[tuple[slice, str]]:
        """
        Yield the place of each mention in *text*, and the path of the mentioned note, in reading order. Leaves
        out the note at *own*, which has *text*.
        """
        plain = LINKED.sub(lambda m: "\0" * len(m[0]), without_code(text))
        words = list(WORD.finditer(plain))
        seen: set[str] = set()
        at = 0
        while at < len(words):
            first, second = (
                singular_form(w[0].lower()) for w in (*words[at : at + 2], *words[at : at + 1])[:2]
            )
            names = (*self.by_start.get((first, second), ()), *self.by_start.get((words[at][0].lower(),), ()))
            may = (n for n in names if n.path != own and stands_at(n, plain, words, at))
            found = next((n for n in may if not self.is_of_another(n, own, plain[words[at].start() :])), None)
            size = len(found.words) if found else 1
            start, end = words[at].start(), words[at + size - 1].end()
            if found and found.path not in seen and is_free(plain, start, end):
                seen.add(found.path)
                yield slice(start, end), found.path
            at += size

    def is_of_another(self, name: Name, own: str, text: str) -> bool:
        """
        Return whether a mention of *name* is about somebody else's thing.

        Example: "road trip" in a note about Ann, if the note "Road trip" is about Ben. *own*: path of the note with the
        mention. *text*: this note's text from the mention on. Both must hold:

        - the mention is a note's title, but written in lower case
        - the two notes are known to be about different people
        """
        people = self.whose.get(own), self.whose.get(name.path)
        return name.kind == "title" and text[0].islower() and None not in people and people[0] != people[1]


def people_told_of(notes: Iterable[Entry]) -> dict[str, str]:
    """
    Return path → the person whom the note at this path is about.

    A capitalised word counts as such a person if it begins the descriptions of many notes.
    """
    texts = {e.path: [w for w in WORD.findall(e.description) if w[0].isupper()] for e in notes}
    begin = Counter(words[0] for words in texts.values() if words and words[0].lower() not in DULL)
    common = max(COMMON, COMMON_SHARE * len(texts))
    told = {path: next((w for w in words if begin[w] > common), "") for path, words in texts.items()}
    return {path: who for path, who in told.items() if who}


def names_of_titles(notes: Iterable[Entry]) -> Iterator[Name]:
    """
    Find the names by which a text may mention one of *notes*.

    - A project's title is a name if the title is a single word.
    - Any title, or part of a title, is a name if it has at least two meaningful words. If several titles have the
      name, it is yielded for the HOMES shortest titles, the shortest first.
    """
    homes: dict[tuple[str, ...], list[tuple[int, Entry]]] = defaultdict(list)
    for entry in notes:
        if entry.type == "project" and WORD.fullmatch(entry.title):
            yield Name((entry.title.lower(),), entry.path, "definite")
        title = tuple(singular_form(w.lower()) for w in WORD.findall(entry.title))
        whole = sum(len(w) >= NAME_LETTERS and w not in DULL for w in title) > 1
        phrases = {title} if whole and not DOING.match(entry.title) else set()
        if not entry.standing:  # "Always include" is not a name
            phrases |= set(phrases_in(entry.title))
        for phrase in phrases:
            homes[phrase].append((len(title) - len(phrase), entry))
    for phrase, found in homes.items():
        found.sort(key=lambda f: (f[0], TYPES.index(f[1].type), str(f[1].created), f[1].path))
        yield from (Name(phrase, entry.path) for _, entry in found[:HOMES])


def phrases_in(title: str) -> Iterator[tuple[str, ...]]:
    """Yield runs of two or more neighbouring meaningful words in *title*."""
    runs: list[list[str]] = [[]]
    end = 0
    for m in WORD.finditer(title):
        word = singular_form(m[0].lower())
        telling = len(word) >= NAME_LETTERS and not m[0].isdigit() and not {word, m[0].lower()} & DULL
        if not telling or title[end : m.start()] != " " or DOING.fullmatch(m[0]):
            runs.append([])
        if telling and not DOING.fullmatch(m[0]):
            runs[-1].append(word)
        end = m.end()
    for run in runs:
        for size in range(2, min(len(run), PHRASE_WORDS) + 1):
            yield from (tuple(run[n : n + size]) for n in range(len(run) - size + 1))


def proper_names(notes: list[Entry]) -> list[Name]:
    """Return single words that are names, each with the note that is about this name."""
    small: set[str] = set()
    within: set[str] = set()  # capitalised within a sentence
    large: dict[str, set[str]] = defaultdict(set)  # name → the notes that mention it
    introduced: dict[str, list[Entry]] = defaultdict(list)
    for entry in notes:
        text = entry.description
        for m in WORD.finditer(text):
            word, before = m[0].lower(), text[max(0, m.start() - BEFORE_CHARS) : m.start()]
            last = WORD.findall(before)[-INTRODUCED_WORDS:]
            if (
                not m[0][0].isupper()
                or OWN_NAME.search(before)
                or (last and last[-1].lower() in ARTICLES and before.endswith(" "))
            ):
                small.add(word)
            elif len(word) >= NAME_LETTERS and word not in DAYS_AND_MONTHS:
                large[word].add(entry.path)
                within |= set() if SENTENCE_START.search(before) else {word}
                title = set(WORD.findall(entry.title.lower())) - DULL
                as_titled = not title.isdisjoint(w.lower() for w in last)  # "sister Jule" in Sister
                if (
                    as_titled
                    and INTRODUCES.search(before.rstrip())
                    and not POSSESSED_BY.match(text, m.start())
                ):
                    introduced[word].append(entry)
    named: dict[str, list[Entry]] = defaultdict(list)
    for entry in notes:
        for word in {w.lower() for w in WORD.findall(POSSESSED_BY.sub("", entry.title))}:
            named[word].append(entry)
    common = max(COMMON, COMMON_SHARE * len(notes))
    return [
        Name(
            (word,), home.path, "proper", frozenset(WORD.findall(f"{home.title} {home.description}".lower()))
        )
        for word, paths in large.items()
        if word in within - small and len(paths) <= common
        if (home := home_of(word, named[word], introduced[word])) is not None
    ]


def home_of(word: str, titled: list[Entry], introduced: list[Entry]) -> Entry | None:
    exact = [e for e in titled if e.title.lower() == word]
    best = exact or introduced or (titled if len(titled) <= HOMES else [])
    return min(best, key=lambda e: (TYPES.index(e.type), str(e.created), e.path), default=None)


def stands_at(name: Name, text: str, words: list[re.Match[str]], at: int) -> bool:
    there = words[at : at + len(name.words)]
    if name.kind == "title":
        same = tuple(singular_form(w[0].lower()) for w in there) == name.words
        return same and not any(BREAK.search(text[a.end() : b.start()]) for a, b in pairwise(there))
    if there[0][0].lower() != name.words[0]:
        return False
    if name.kind == "proper":
        return there[0][0][0].isupper() and name.told.issuperset(longer_name(text, words, at))
    before = words[at - 1]  # for the first word, this is the last word: then no space stands between
    return before[0].lower() in ARTICLES - INDEFINITE and text[before.end() : there[0].start()].isspace()


def longer_name(text: str, words: list[re.Match[str]], at: int) -> Iterator[str]:
    """
    Yield the capitalised words that form one name with the word at *at*: "Bold" for "Street" in "Bold Street".
    """
    for left, right in pairwise(words[max(0, at - 1) : at + 2]):
        other = left if right is words[at] else right
        before = text[max(0, other.start() - BEFORE_CHARS) : other.start()]
        if (
            other[0][0].isupper()
            and text[left.end() : right.start()] == " "
            and not SENTENCE_START.search(before)
        ):
            yield other[0].lower()


def is_free(text: str, start: int, end: int) -> bool:
    """Return whether the text from *start* to *end* is outside addresses, file names and compound words."""
    return not PART_OF_ADDRESS.match(text, end) and text[max(0, start - 1) : start] not in (*"./@_#\\-",)


def link_names(plan: Plan, paths: Iterable[str], known: Iterable[Entry]) -> list[str]:
    """
    Link the notes at *paths* to other notes that they name. Return the changed paths.

    The other notes are those in *known* and the drafts. A name in the text becomes a link there; for a name only in the
    description, the link goes to the property `links`. A note whose text a person edited is left out.
    """
    drafted = plan.drafted()
    names = plan.maps.names = MentionedNames(
        [*(e for e in known if e.path not in drafted), *drafted.values()]
    )
    changed = []
    for path in paths:
        draft = plan.draft(path)
        node = draft.node
        if node.type not in TYPES or node.status != "active" or not draft.ours:
            continue
        head = {link: plan.graph.index.resolve(link) or link for link in node.links}
        prose = {plan.graph.index.resolve(link) or link for link in node.wikilinks}
        there = {link for link in {*head.values(), *prose} if link.startswith("nodes/")}
        main, lines = split_history(node.body)
        main, linked = with_mentions(main, names, {path, *prose}, LINKS_OF_A_NOTE - len(prose), own=path)
        said = [p for _, p in names.found_in(node.description, path) if p not in {*there, *linked}]
        said = said[: max(0, LINKS_OF_A_NOTE - len(there.union(linked)))]
        if linked or said:
            body = with_history_lines(main, lines)
            kept = [link for link in node.links if head[link] not in linked]  # the text has the link now
            plan.rewrite(draft, replace(node, body=body, links=(*kept, *said)), Rebase())
            changed.append(path)
    return changed


def with_mentions(
    text: str, names: MentionedNames, but: Iterable[str], room: int = LINKS_OF_A_NOTE, own: str = ""
) -> tuple[str, list[str]]:
    """
    Return *text* with links to the notes that it mentions, and the paths of these notes.

    At most *room* notes are linked. The notes in *but* are never linked.
    """
    linked, skip = [], set(but)
    found = [(at, path) for at, path in names.found_in(text, own) if path not in skip][: max(0, room)]
    for at, path in reversed(found):
        text = text[: at.start] + wikilink(path, text[at]) + text[at.stop :]
        linked.append(path)
    return text, linked[::-1]


def with_link_at(text: str, title: str, path: str) -> str | None:
    """
    Return *text* with its first mention of *title* linked to *path*; None if *text* does not mention *title*.
    """
    if len(title) < NAME_LETTERS:
        return None
    plain = LINKED.sub(lambda m: "\0" * len(m[0]), without_code(text))
    mentions = re.finditer(rf"(?<![\w\[|]){re.escape(title)}(?![\w\]|])", plain, re.I)
    word = WORD.fullmatch(title)  # "name" is not "Name"
    found = next((m for m in mentions if not word or m[0][0].isupper() == title[0].isupper()), None)
    if found is None:
        return None
    start, end = found.span()
    return text[:start] + wikilink(path, text[start:end]) + text[end:]
