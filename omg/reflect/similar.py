"""
Notes that are alike: repetitions are merged, what resembles a changed note is found for a model to compare.

One rule: a note that a person has touched keeps its words; at the most it is superseded by one that says the same.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from ..index.entries import Entry
from ..node.fields import PRIORITIES, TYPES
from ..node.markdown import wikilink
from ..plan.edits import ORIGIN_ORDER, split_history
from .revise import merge_notes
from .snapshot import Snapshot, link_of
from .topics import normalized, resembles, statement_likeness

# Notes shown with each changed one. Of ten contradictions put among the 184 notes of a LoCoMo conversation, eight
# find each other so with the static table, and all ten with MiniLM.
SIMILAR_SHOWN = 3
# When two notes are proposed as one: this share of their words, or this score of a search for the one by the other.
# In the same conversation the two conditions name four pairs, and all four say the same in other words.
REPEATS, NEAR = 0.75, 0.6
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
        merge_notes(snapshot.plan, keep, gone)
        done.append(
            f"Merged {link_of(snapshot.node(gone))} into {link_of(snapshot.node(keep))}: they said the same."
        )
    return done


def similar_notes(snapshot: Snapshot, paths: Iterable[str], now: dt.datetime) -> dict[str, dict[str, float]]:
    """
    Each of *paths* → what it resembles and how much, nearest first; left out if it resembles nothing.

    What matters most comes first, happenings last, for the day's cap may come in between.
    """
    index = snapshot.plan.graph.index
    active = {e.path: e for e in snapshot.now() if e.type in TYPES}
    wanted = [active[path] for path in paths if path in active]
    wanted.sort(key=lambda e: (e.type == "episode", PRIORITIES.index(e.priority), e.path))
    for _ in range(VECTOR_BATCHES if wanted else 0):
        if not index.embed():
            break
    found = {}
    for entry in wanted:
        near = {}
        text = f"{entry.title}. {entry.description}"
        for hit in index.search(text, 3 * SIMILAR_SHOWN, now=now, walk=False):
            other = active.get(hit.entry.path)
            if other is None or other == entry:
                continue
            if "close in meaning" in hit.why or resembles(statement_of(entry), statement_of(other)):
                near[other.path] = hit.score
        if near:
            found[entry.path] = dict(list(near.items())[:SIMILAR_SHOWN])
    return found


def statement_of(entry: Entry) -> str:
    return f"{entry.title} {entry.description}"


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
    shared = statement_likeness(a.description, b.description)
    return a.type == b.type and a.event == b.event and (shared >= REPEATS or (shared > 0 and score >= NEAR))
