"""
Links that lead to a note by a former path are mended, mentions of notes linked; low notes that nobody used for long go
dormant, and come back.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict

from ..dates.days import event_span
from ..graph.graph import Graph
from ..graph.uses import Uses
from ..index.entries import Entry
from ..node.fields import TYPES
from ..plan.mentions import MentionedNames, link_names
from ..plural import how_many
from .revise import relink_note
from .snapshot import Snapshot, link_of

READ_WHOLE = 1_000  # notes of a vault whose bodies are all read for mentions

# --- links


def mend_links(snapshot: Snapshot) -> list[str]:
    """Links in our files that lead to a note by a former path lead to its present one again."""
    astray: dict[str, dict[str, str]] = defaultdict(dict)
    for path, target, there in detoured_links(snapshot.plan.graph):
        if path not in snapshot.frozen:
            astray[path][target] = there
    done: dict[str, int] = defaultdict(int)
    for path, moved in sorted(astray.items()):
        if relink_note(snapshot.plan, path, moved):
            for there in set(moved.values()):
                done[there] += 1
    return [
        f"Mended the links to {link_of(snapshot.node(there))} in {how_many(n, 'note')}."
        for there, n in sorted(done.items())
    ]


def link_mentions_by_night(snapshot: Snapshot) -> list[str]:
    """Notes of ours get links to what they mention: what was noted after them, too. Returns their paths."""
    active = [e for e in snapshot.now() if e.type in TYPES]
    wanted = [e for e in active if e.path not in snapshot.frozen and e.path in snapshot.entries]
    if len(active) > READ_WHOLE:  # of a large vault only those files are opened that have something to link
        names = MentionedNames(active)
        wanted = [
            e for e in wanted if {p for _, p in names.found_in(e.description, e.path)} - {e.path, *e.links}
        ]
    return link_names(snapshot.plan, [e.path for e in wanted], active)


def linked_lines(paths: list[str]) -> list[str]:
    return [f"Linked {how_many(len(paths), 'note')} to what they mention."] * bool(paths)


def detoured_links(graph: Graph) -> list[tuple[str, str, str]]:
    """`(path, target, there)` of links whose target looks like a path, but leads only by an alias or an id."""
    found = graph.index.detours()
    for path, target in graph.index.dangling():
        # Where nobody saw the move happen: the id was made of the path the note had at its birth.
        name = target.removeprefix("nodes/")
        if name != target and (there := graph.index.resolve(f"omg/{name}")) is not None:
            found.append((path, target, there))
    return sorted(found)


# --- dormant notes


def mark_dormant(snapshot: Snapshot, now: dt.datetime, days: int) -> tuple[list[str], list[str]]:
    """Lines for notes that went dormant, and for those that came back."""
    since = (now - dt.timedelta(days=days)).timestamp() * 1000
    today, uses = snapshot.plan.day, snapshot.plan.graph.uses
    dormant: list[str] = []
    woken: list[str] = []
    for entry in sorted(snapshot.entries.values(), key=lambda e: e.path):
        if entry.type not in TYPES or entry.priority != "low" or entry.path in snapshot.frozen:
            continue
        idle = (
            not entry.pinned
            and not entry.standing
            and entry.loop != "open"
            and not is_recent(entry, uses, since_ms=since, today=today, days=days)
        )
        idle = idle and not is_linked(snapshot, entry.path)
        if idle == (entry.status == "dormant") or not snapshot.ours(entry.path, "status"):
            continue
        node = snapshot.node(entry.path)
        if node.status != entry.status:  # merged or replaced in this very cycle
            continue
        snapshot.plan.amend(entry.path, status="dormant" if idle else "active")
        (dormant if idle else woken).append(link_of(node))
    return dormant, woken


def is_recent(entry: Entry, uses: Uses, *, since_ms: float, today: dt.date, days: int) -> bool:
    """Whether the note was said, recalled or due within *days*; a day to come counts."""
    if uses.last_ms(entry.id) >= since_ms:
        return True
    ends = event_span(entry.event)
    latest = max((d for d in (entry.created, entry.updated, ends and ends[1]) if d), default=dt.date.min)
    return (today - latest).days < days


def is_linked(snapshot: Snapshot, path: str) -> bool:
    """Whether an active note, not one that we generate, links to it."""
    back = snapshot.plan.graph.index.backlinks(path)
    return any(
        (e := snapshot.entries.get(b)) and e.status == "active" and e.type in (*TYPES, "note") for b in back
    )
