"""
What a model is asked about at night: matters of a few notes each, and which of them are shown together.

A matter is two notes that may be on one thing, an open loop past its day, or a title that says too little. Not here:
which notes are alike (similar.py), and how it is asked (verdicts.py). One rule: a matter that a model has answered is
not brought up again until one of its notes reads otherwise.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ..dates.days import event_span
from ..index.entries import Entry
from ..node.fields import TYPES
from ..plan.edits import split_history, trust_of
from ..text.words import stems_of
from .similar import NotesAlike
from .snapshot import Snapshot

GROUP_NOTES = 6  # notes of a group: one subject, and what else is to be asked of it
NOTES_PER_CALL = 24  # each group is judged by itself, so that a small model does not mix them up
# An open loop is asked about once its day is past and something was said since; else when so many days are, for
# people tell of what they did, and the Observer is shown the loops of the last ten days.
LATE_DAYS, NEWS_SHOWN = 10, 3
SAYS_LITTLE = "note thing stuff info information update detail misc untitled new general topic item"
# Characters of a title; words of one that only repeats the statement's beginning.
LONG_TITLE, CUT_WORDS = 70, 6
OLD_WORDS = 0.5  # of a title's words that a note has which was restated; with fewer it may speak of what was


@dataclass(frozen=True, slots=True)
class Matter:
    """Something to ask. *paths*: both notes; the loop and what was said since; the note with that title."""

    kind: Literal["same", "overdue", "title"]
    paths: tuple[str, ...]

    @property
    def known_by(self) -> tuple[str, ...]:
        """The notes that make it what it is: what was said since a loop began is found one night and not another."""
        return tuple(sorted(self.paths)) if self.kind == "same" else self.paths[:1]

    @property
    def key(self) -> str:
        return "\n".join((self.kind, *self.known_by))


@dataclass(slots=True)
class Group:
    """Matters whose notes are shown together, and judged together."""

    matters: list[Matter] = field(default_factory=list)

    @property
    def paths(self) -> list[str]:
        return list(dict.fromkeys(p for m in self.matters for p in m.paths))

    def of(self, kind: str) -> list[str]:
        """The notes that a matter of *kind* is about, without what is shown beside them."""
        return [m.paths[0] for m in self.matters if m.kind == kind]


def digest_of(texts: Iterable[str]) -> str:
    """What is kept of a matter that was answered: a hash of each of its notes, as it was shown."""
    return " ".join(hashlib.sha256(text.encode()).hexdigest()[:10] for text in texts)


# --- what there is to ask


def pairs_alike(similar: Mapping[str, Iterable[str]]) -> list[Matter]:
    """Each two notes of which one changed and resembles the other, once."""
    pairs: dict[frozenset[str], tuple[str, str]] = {}
    for path, near in similar.items():
        for other in near:
            pairs.setdefault(frozenset((path, other)), (path, other))
    return [Matter("same", paths) for paths in pairs.values()]


def loops_past_their_day(snapshot: Snapshot) -> list[tuple[Entry, int]]:
    """Open loops whose day is over, and for how many days; the longest overdue first."""
    late = []
    for entry in snapshot.now():
        span = event_span(entry.event) if entry.loop == "open" and entry.type in TYPES else None
        if span is not None and span[1] < snapshot.plan.day and entry.path not in snapshot.frozen:
            late.append((entry, (snapshot.plan.day - span[1]).days))
    return sorted(late, key=lambda found: (-found[1], found[0].path))


def overdue(loop: Entry, days: int, alike: NotesAlike) -> Matter | None:
    """*loop*, whose day is *days* over, with what was said on it since; None while it may still be told of."""
    news = [n.path for n in alike.to(loop) if is_news(n, loop)][:NEWS_SHOWN]
    return Matter("overdue", (loop.path, *news)) if news or days >= LATE_DAYS else None


def is_news(note: Entry, of: Entry) -> bool:
    """Whether *note* may tell what became of the loop *of*: it was said later, and by nobody less trusted."""
    later = (note.updated or dt.date.min) > (of.updated or dt.date.max)
    return later and trust_of(note.origin) >= trust_of(of.origin)


def weak_titles(snapshot: Snapshot, paths: Iterable[str]) -> list[Matter]:
    """Those of *paths* whose title says too little and may be changed."""
    active = {e.path: e for e in snapshot.now() if e.type in TYPES and e.path.startswith("nodes/")}
    return [
        Matter("title", (p,))
        for p in sorted(paths)
        if p in active
        and (says_little(active[p]) or speaks_of_past(snapshot, active[p]))
        and not snapshot.plan.draft(p).touched
    ]


def says_little(entry: Entry) -> bool:
    """Whether a title names nothing, or is the beginning of the statement, cut off."""
    title = re.sub(r" \d+$", "", entry.title)
    if re.match(r"\d{4}-\d\d", title):  # a day's note is called after its day
        return False
    told = stems_of(title).keys() - stems_of(f"{SAYS_LITTLE} {' '.join(TYPES)}").keys()
    cut = len(title.split()) > CUT_WORDS and entry.description.startswith(title.rstrip(" .…"))
    return cut or len(title) > LONG_TITLE or all(any(c.isdigit() for c in word) for word in told)


def speaks_of_past(snapshot: Snapshot, entry: Entry) -> bool:
    """Whether the note said something else once, and its title seems to be about that."""
    told = stems_of(entry.title).keys()
    if len(told & stems_of(entry.description).keys()) >= OLD_WORDS * len(told):
        return False
    main, before = split_history(snapshot.node(entry.path).body)
    return bool(before) and len(told & stems_of(f"{entry.description} {main}").keys()) < OLD_WORDS * len(told)


# --- what is shown together


def by_trust(matters: Iterable[Matter], entries: Mapping[str, Entry]) -> dict[int, list[Matter]]:
    """*matters* by `trust_of` the least trusted of their notes, the most trusted first: no call shows two kinds."""
    found: dict[int, list[Matter]] = {2: [], 1: [], 0: []}
    for matter in matters:
        found[min(trust_of(entries[path].origin) for path in matter.paths)].append(matter)
    return found


def groups_of(matters: Sequence[Matter]) -> list[Group]:
    """*matters* in groups: those that share notes go together, as far as a group has room for all of them."""
    found: list[Group] = []
    places: dict[str, list[Group]] = {}  # path → the groups that show it
    for matter in matters:
        near = [g for path in matter.paths for g in places.get(path, ())]
        fits = [g for g in near if len({*g.paths, *matter.paths}) <= GROUP_NOTES]
        group = max(fits, key=lambda g: len({*g.paths} & {*matter.paths}), default=None)
        if group is None:
            found.append(group := Group())
        group.matters.append(matter)
        for path in matter.paths:
            if group not in places.setdefault(path, []):
                places[path].append(group)
    return found


def calls_of(groups: Sequence[Group]) -> list[list[Group]]:
    """*groups* in their order, as many to a call as it has room for."""
    calls: list[list[Group]] = []
    room = 0
    for group in groups:
        size = len(group.paths)
        if size > room:
            calls.append([])
            room = NOTES_PER_CALL
        calls[-1].append(group)
        room -= size
    return calls
