"""
Notes that are alike: repetitions are merged, what resembles a changed note is found for a model to compare.

One rule: a note that a person has touched keeps its words; at the most it is superseded by one that says the same.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain, zip_longest

from ..dates.days import event_span
from ..index.entries import Entry, Hit
from ..node.fields import PRIORITIES, TYPES
from ..node.markdown import wikilink
from ..plan.edits import ORIGIN_ORDER, split_history, trust_of
from ..text.english import common_stems
from ..text.words import stems_of, words_in
from .revise import merge_notes
from .snapshot import Snapshot, link_of
from .topics import normalized, statement_likeness

# Notes compared with each changed one, of so many hits. Among the three nearest, eight of ten contradictions put among
# the 184 notes of a LoCoMo conversation found each other with the static table, all ten with MiniLM.
SIMILAR_SHOWN, HITS = 4, 9
# What two notes have in common at the least: this share of what their words tell, or this score of a search by meaning.
ALIKE, CLOSE = 0.07, 0.1
ALIKE_THOUGH_LINKED = 0.3  # the same share, of two notes of which one leads to the other
TELLS_SUBJECT = math.log(10)  # a word that more than a tenth of the notes have tells of no subject
COUNTED = 2_000  # notes by which it is told how rare a word is
# When two notes are put to a person as one: this share of their words, or half of them and this score of a search for
# the one by the other. See bench/LOG.md.
REPEATS, HALF, NEAR = 0.75, 0.5, 0.6
VECTOR_BATCHES = 8  # of 256 that a night makes itself; more, after an import, is the daemon's to make


def merge_repeated(snapshot: Snapshot) -> list[str]:
    """Merge notes of one type whose texts are the same but for case, spaces and marks."""
    same: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for e in snapshot.now() if snapshot.changed else ():
        if e.type in TYPES:
            day = e.created if e.type == "episode" else None  # what happens every week is no repetition
            same[e.type, e.loop, e.event or day, normalized(e.description)].append(e.path)
    done = []
    for paths in same.values():
        if len(paths) < 2 or not any(p in snapshot.changed for p in paths):
            continue
        by_text: dict[str, list[str]] = defaultdict(list)
        for path in paths:
            by_text[normalized(split_history(snapshot.node(path).body)[0])].append(path)
        for several in by_text.values():
            done += merge_into_one(snapshot, several)
    return done


def merge_into_one(snapshot: Snapshot, paths: Sequence[str]) -> list[str]:
    """Merge *paths* into the most trusted of them; a person's own note stays, and two of theirs are theirs."""

    def rank(path: str) -> tuple[bool, int, dt.date, str]:
        node = snapshot.node(path)
        mine = node.pinned or snapshot.plan.draft(path).touched
        return not mine, -ORIGIN_ORDER.index(node.origin), node.created or dt.date.max, path

    keep, *rest = sorted(paths, key=rank)
    done = []
    for gone in rest:
        undone = {gone, keep} <= snapshot.frozen
        if undone or snapshot.node(gone).pinned or not snapshot.ours(gone):
            continue
        if trust_of(snapshot.node(gone).origin) > trust_of(snapshot.node(keep).origin):
            continue  # a person wrote in what a tool or the assistant said: their own word stays theirs
        merge_notes(snapshot.plan, keep, gone)
        done.append(
            f"Merged {link_of(snapshot.node(gone))} into {link_of(snapshot.node(keep))}: they said the same."
        )
    return done


class NotesAlike:
    """The active notes, and what each of them resembles."""

    def __init__(self, snapshot: Snapshot, now: dt.datetime) -> None:
        self.index, self.now = snapshot.plan.graph.index, now
        self.active = {e.path: e for e in snapshot.now() if e.type in TYPES}
        self.warm = False

    @cached_property
    def rarity(self) -> dict[str, float]:
        """Stem → how much it tells, going by how many of some of the notes have it."""
        some = list(self.active.values())[:: 1 + len(self.active) // COUNTED]
        counts = Counter(stem for e in some for stem in stems_of(statement_of(e)))
        return {stem: math.log((1 + len(some)) / n) for stem, n in counts.items()}

    def likeness(self, a: Entry, b: Entry) -> float:
        """Share of what their words tell that two statements have in common, from 0 to 1; a rare word tells more."""
        left, right = (stems_of(statement_of(e)).keys() for e in (a, b))
        if all(
            stem.isdigit() for stem in left & right
        ):  # a number alone is in both by chance: "Rent 2", "Maya 2"
            return 0.0
        return self.worth(left & right) / self.worth(left | right)

    def worth(self, stems: Iterable[str]) -> float:
        most = math.log(1 + min(len(self.active), COUNTED))
        return sum(self.rarity.get(stem, most) for stem in stems)

    def to(self, entry: Entry) -> dict[Entry, float]:
        """What *entry* resembles and how much, nearest first."""
        for _ in range(0 if self.warm else VECTOR_BATCHES):
            if not self.index.embed():
                break
        self.warm = True
        asked = dict.fromkeys((statement_of(entry, ". "), self.telling(entry)))
        search = partial(self.index.search, k=HITS, now=self.now, walk=False, quote=False)
        near: dict[Entry, float] = {}
        for hit in chain(*zip_longest(*map(search, asked))):
            other = hit and self.active.get(hit.entry.path)
            if other and other != entry and other not in near and self.may_be_one(entry, other, hit):
                near[other] = hit.score
        return dict(list(near.items())[:SIMILAR_SHOWN])

    def telling(self, entry: Entry) -> str:
        """The words of *entry* that tell of its subject: without common verbs, and the names that many notes have."""
        words = ((word, stems_of(word).keys()) for word in words_in(statement_of(entry)))
        told = [w for w, own in words if not own & common_stems() and self.worth(own) > TELLS_SUBJECT]
        return " ".join(told) or statement_of(entry)

    def may_be_one(self, entry: Entry, other: Entry, hit: Hit) -> bool:
        """Whether one of the two may repeat, replace or contradict the other. No tool's note and another's."""
        if (entry.origin == "tool") != (other.origin == "tool"):
            return False
        alike = self.likeness(entry, other)
        if alike < ALIKE and not ("close in meaning" in hit.why and hit.score >= CLOSE):
            return False
        # The Observer saw both when it let one lead to the other. Where each does, they contradict each other.
        told_apart = (entry.path in other.links) != (other.path in entry.links)
        if told_apart and alike < ALIKE_THOUGH_LINKED:
            return False
        return alike >= REPEATS or not are_two_happenings(entry, other)


def similar_notes(alike: NotesAlike, paths: Iterable[str]) -> dict[str, dict[str, float]]:
    """
    Each of *paths* → what it resembles and how much, nearest first; left out if it resembles nothing.

    What matters most comes first, happenings last, for the day's cap may come in between.
    """
    wanted = [alike.active[path] for path in paths if path in alike.active]
    wanted.sort(key=lambda e: (e.type == "episode", PRIORITIES.index(e.priority), e.path))
    found = {e.path: {other.path: score for other, score in alike.to(e).items()} for e in wanted}
    return {path: near for path, near in found.items() if near}


def are_two_happenings(a: Entry, b: Entry) -> bool:
    """Whether the notes tell of what happened on different days: then neither repeats or replaces the other."""
    if not a.type == b.type == "episode" or "open" in (a.loop, b.loop):
        return False
    one, other = event_span(a.event), event_span(b.event)
    return bool(one and other and (one[1] < other[0] or other[1] < one[0]))


def statement_of(entry: Entry, between: str = " ") -> str:
    return f"{entry.title}{between}{entry.description}"


def proposed_pairs(snapshot: Snapshot, near: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Pairs that look like repetitions, for a person to judge where no model does."""
    active = {e.path: e for e in snapshot.now()}
    pairs: dict[tuple[str, ...], float] = {}
    for path, others in near.items():
        for other, score in others.items():
            pair = tuple(sorted((path, other)))
            pairs[pair] = max(score, pairs.get(pair, 0.0))
    lines = []
    for (a, b), score in sorted(pairs.items()):
        if a in active and b in active and looks_repeated(active[a], active[b], score):
            lines.append(f"{wikilink(a, active[a].title)} and {wikilink(b, active[b].title)} look alike.")
    return lines


def looks_repeated(a: Entry, b: Entry, score: float) -> bool:
    """Whether they may say the same, of whatever type the Observer took them to be."""
    shared = statement_likeness(a.description, b.description)
    return a.event == b.event and (shared >= REPEATS or (shared >= HALF and score >= NEAR))
