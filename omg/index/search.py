"""
A question → hits, best first, each with why it was found: scores.py, then walk.py.

Not here: making the tables (index.py), and vectors (vectors.py). One rule: milliseconds; no model, no network, and no
look at all notes but for one product of matrix and vector.
"""

from __future__ import annotations

import datetime as dt
import heapq
import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..text.characters import unfolded
from .entries import Hit, entries_where
from .scores import (
    Candidate,
    ParsedQuery,
    Pool,
    Rarity,
    fused_scores,
    notes_by_days,
    notes_by_words,
    weigh_pool,
)
from .store import NOTE_COLUMNS
from .walk import ranked_ids, walked_order

if TYPE_CHECKING:
    from .vectors import Near


WEIGHED = 5  # candidates for each hit; what is weighed decides near ties, and moves none from further below


def hits_of(
    db: sqlite3.Connection, order: Sequence[int], pool: Pool, words: Mapping[int, list[str]], sure: float
) -> list[Hit]:
    found = entries_where(db, f"where id in ({','.join('?' * len(order))})", order)
    told, score = [], 1.0
    for id in order:
        score = min(score, pool[id].score * sure)  # of a linked note: no more than what stands before it
        why = "; ".join(dict.fromkeys([*words.get(id, ()), *pool[id].why]))
        told.append(Hit(found[id], round(score, 4), why, pool[id].cosine))
    return told


MATCH_MARK = re.compile("\x02([^\x02\x03]*)\x03")

PLACES = {
    **dict.fromkeys(("title", "description", "body", "tags"), "says {}"),
    **dict.fromkeys(("said", "near", "far"), "{} in the talk it comes from"),
    "linked": "links to {}",
    "dates": "dated {}",
}


def matching_words(db: sqlite3.Connection, ids: Sequence[int], question: ParsedQuery) -> dict[int, list[str]]:
    """Which words of the question each note has, and where."""
    if not question.terms or not ids:
        return {}
    columns = ", ".join(f"highlight(note_fts, {n}, char(2), char(3))" for n in range(len(NOTE_COLUMNS)))
    found: dict[int, list[str]] = {}
    select = f"select rowid, {columns} from note_fts where note_fts match ? and rowid = ?"
    for id in ids:
        for _, *texts in db.execute(select, (question.match, id)):
            seen: dict[str, dict[str, str]] = {}
            known: set[str] = set()
            for column, text in zip(NOTE_COLUMNS, texts, strict=True):
                for word in MATCH_MARK.findall(text or ""):
                    if word.lower() not in known:
                        known.add(word.lower())
                        seen.setdefault(PLACES[column], {})[word.lower()] = word
            found[id] = [
                place.format(", ".join(f"“{unfolded(w)}”" for w in words.values()))
                for place, words in seen.items()
            ]
    return found


def find_notes(
    db: sqlite3.Connection,
    question: ParsedQuery,
    k: int,
    *,
    now: dt.datetime,
    rarity: Rarity,
    near: Callable[[str], Near | None] | None,
    walk: bool,
    uses: Mapping[str, int],
    quote: bool,
) -> list[Hit]:
    """
    The *k* notes that answer *question* best. *near*: what is close to a text in meaning, or None. *quote*: say which
    words were found and where, which takes a fifth of the time.
    """
    chosen, whole = rarity.choose(db, question.terms)
    question = replace(question, terms=chosen)
    words = notes_by_words(db, question.match) if chosen else {}
    only_days = question.days and not question.terms  # then "yesterday" is a day, not a word with a meaning
    close = near(question.text) if near and question.text.strip() and not only_days else None
    pool, sure = fused_scores(words, close, whole)
    if not question.days:  # these may raise, or ask for, any of them
        pool = {id: pool[id] for id in heapq.nlargest(WEIGHED * k, pool, key=lambda id: pool[id].score)}
    for id in notes_by_days(db, question.days):
        pool.setdefault(id, Candidate())
    weigh_pool(db, pool, question, now, uses)
    order = walked_order(db, pool, k) if walk else ranked_ids(pool)
    order = order[:k]
    said = matching_words(db, order, question) if quote else {id: ["found by its words"] for id in words}
    return hits_of(db, order, pool, said, sure)
