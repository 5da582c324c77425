"""
Links that lead to a note by a former path are mended; low notes that nobody used for long go dormant, and come back.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict

from ..dates.days import event_span
from ..graph.graph import Graph
from ..graph.uses import Uses
from ..index.entries import Entry
from ..node.fields import TYPES
from .map_split import link_of
from .revise import relink_note
from .snapshot import Snapshot

# --- links


def mend_links(ground: Snapshot) -> list[str]:
    """Links in our files that lead to a note by a former path lead to its present one again."""
    astray: dict[str, dict[str, str]] = defaultdict(dict)
    for path, target, there in led_by_name(ground.plan.graph):
        if path not in ground.frozen:
            astray[path][target] = there
    done: dict[str, int] = defaultdict(int)
    for path, moved in sorted(astray.items()):
        if relink_note(ground.plan, path, moved):
            for there in set(moved.values()):
                done[there] += 1
    return [
        f"Mended the links to {link_of(ground.node(there))} in {n} note{'s' * (n > 1)}."
        for there, n in sorted(done.items())
    ]


def led_by_name(graph: Graph) -> list[tuple[str, str, str]]:
    """`(path, target, there)` of links whose target looks like a path, but leads only by an alias or an id."""
    found = graph.index.detours()
    for path, target in graph.index.dangling():
        # Where nobody saw the move happen: the id was made of the path the note had at its birth.
        there = (
            graph.index.resolve(f"omg/{target.removeprefix('nodes/')}")
            if target.startswith("nodes/")
            else None
        )
        if there is not None:
            found.append((path, target, there))
    return sorted(found)


# --- sleep


def mark_dormant(ground: Snapshot, uses: Uses, now: dt.datetime, days: int) -> tuple[list[str], list[str]]:
    """Lines for notes that went dormant, and for those that woke."""
    since = (now - dt.timedelta(days=days)).timestamp() * 1000
    today = ground.plan.day
    slept: list[str] = []
    woke: list[str] = []
    for entry in sorted(ground.entries.values(), key=lambda e: e.path):
        if entry.type not in TYPES or entry.priority != "low" or entry.path in ground.frozen:
            continue
        idle = not entry.pinned and entry.loop != "open" and not is_recent(entry, uses, since, today, days)
        idle = idle and not is_linked(ground, entry.path)
        if idle == (entry.status == "dormant") or not ground.ours(entry.path, "status"):
            continue
        node = ground.node(entry.path)
        if node.status != entry.status:  # merged or replaced in this very cycle
            continue
        ground.plan.amend(entry.path, status="dormant" if idle else "active")
        (slept if idle else woke).append(link_of(node))
    return slept, woke


def is_recent(entry: Entry, uses: Uses, since_ms: float, today: dt.date, days: int) -> bool:
    """Whether the note was said, recalled or due within *days*; a day to come counts."""
    if uses.last_ms(entry.id) >= since_ms:
        return True
    ends = event_span(entry.event)
    latest = max((d for d in (entry.created, entry.updated, ends and ends[1]) if d), default=dt.date.min)
    return (today - latest).days < days


def is_linked(ground: Snapshot, path: str) -> bool:
    """Whether an active note, not one that we generate, links to it."""
    back = ground.plan.graph.index.backlinks(path)
    return any(
        (e := ground.entries.get(b)) and e.status == "active" and e.type in (*TYPES, "note") for b in back
    )
