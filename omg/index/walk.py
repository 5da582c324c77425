"""
From the best notes to what they link to, or stands beside them on a small map, as far as the question is about it.

Not here: the candidates and their scores (scores.py). One rule: a fixed share of the hits stays the question's own,
whatever is linked.
"""

from __future__ import annotations

import math
import sqlite3

from .links import LINK, PROSE
from .scores import Candidate, Pool
from .store import rows_of

ENTRY_POINTS = 5  # from which links are followed; from more, what is linked to is anything
OWN_SHARE = 0.5  # share of the hits that are the question's own, whatever is linked
STEP = 0.4  # what a link from the best note adds to the linked note, as a share of what that has of itself
UNASKED = 0.05  # of the best: what a linked note has of itself at the least
MAP_STEP = 0.25  # of a link's worth has what stands on the same small map
MAP_SIZE = 40  # above it a map says nothing: everything is on it
FANNED = 60  # links of one note that are followed


def walked_order(db: sqlite3.Connection, pool: Pool, k: int) -> list[int]:
    """
    The order of the notes once links have been followed from the best of them.

    The first OWN_SHARE of *k* stay as they are. After them a linked note may pass one that only has the words: by as
    much as the entry point is sure, the link says, and the note itself has of the question. A note all of whose
    messages a better one has too is one step from it, and leaves its place to others.
    """
    order = ranked_ids(pool)
    if not order:
        return []
    own, top = order[: math.ceil(OWN_SHARE * k)], pool[order[0]].score
    first = order[:ENTRY_POINTS]
    titles = dict(rows_of(db, "select id, title from note where id in", first))
    steps: dict[int, list[tuple[float, str]]] = {}
    for entry in first:
        sure = (pool[entry].score / top) ** 2
        for other, (worth, how) in linked_notes(db, entry).items():
            steps.setdefault(other, []).append((sure * worth, f"{how} “{titles[entry]}”"))
    led_to = rows_of(db, "select id, path, status from note where id in", steps.keys() - pool.keys())
    pool |= {id: Candidate(path=path, status=status) for id, path, status in led_to}
    for id in steps.keys() - set(own):
        candidate = pool[id]
        if candidate.status != "superseded":
            candidate.score += STEP * sum(worth for worth, _ in steps[id]) * (candidate.score + UNASKED * top)
            candidate.why.append(max(steps[id])[1])
    chosen = set(own)
    return telling_first(db, own + [id for id in ranked_ids(pool) if id not in chosen], k)


def ranked_ids(pool: Pool) -> list[int]:
    return sorted(pool, key=lambda id: (-pool[id].score, pool[id].path, id))


def telling_first(db: sqlite3.Connection, order: list[int], k: int) -> list[int]:
    """*order*, with those that tell of no message that the ones before them do not tell of put after the others."""
    looked, rest = order[: 4 * k], order[4 * k :]
    cited: dict[int, set[tuple[str, str]]] = {}
    for note, *source in rows_of(db, "select note, session, id from source where note in", looked):
        cited.setdefault(note, set()).add(tuple(source))
    told: set[tuple[str, str]] = set()
    new: list[int] = []
    old: list[int] = []
    for id in looked:
        said = cited.get(id, set())
        (old if said and said <= told else new).append(id)
        told |= said
    return new + old + rest


def linked_notes(db: sqlite3.Connection, entry: int) -> dict[int, tuple[float, str]]:
    """The notes one step from *entry*: what each step is worth, and what it is."""
    both = f"kind in ({PROSE}, {LINK})"
    rows = db.execute(
        f"""
        select * from (select dst as other from link where src = ?1 and dst is not null and {both} limit {FANNED})
        union select * from (select src from link where dst = ?1 and {both} limit {FANNED})
        """,
        (entry,),
    )
    found: dict[int, tuple[float, str]] = {}
    for other, type, hit in rows_of(db, "select id, type, hit from note where id in", [id for (id,) in rows]):
        if hit:
            found[other] = (1.0, "linked with")
        elif type == "moc":
            for member in notes_on_map(db, other):
                found.setdefault(member, (MAP_STEP, "on a map with"))
    found.pop(entry, None)
    return found


def notes_on_map(db: sqlite3.Connection, moc: int) -> list[int]:
    rows = db.execute(
        "select distinct dst from link join note on note.id = dst where src = ? and hit limit ?",
        (moc, MAP_SIZE + 1),
    ).fetchall()
    return [id for (id,) in rows] if len(rows) <= MAP_SIZE else []
