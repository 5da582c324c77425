"""
Finds the notes that answer a question, best first, each with its reason; keeps the notes' vectors.

A search takes milliseconds: no language model, no network, and no scan of all notes except one matrix product.
"""

from __future__ import annotations

import datetime as dt
import heapq
import math
import re
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from ..dates.days import days_asked
from ..dates.rules import When
from ..text.characters import unfolded
from .links import LINK, PROSE
from .store import NOTE_COLUMNS, Hit, Term, entries_where, meta_value, rows_of, terms_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


# --- How well a note answers a question: the candidates, and what each is worth.
#
#     words      bm25 over the columns of store.NOTE_COLUMNS, the question's terms joined by OR
#     meaning    cosine with the notes' vectors, if there are any; added by weight, since ranks alone lose the gap
#     days       "last week", "in May 2023": notes about those days, or said on them, are raised
#     weights    status, priority, freshness and use decide near ties
#
# bench/LOG.md tells what was tried. Each constant has its measurement or its reason beside it.


# candidates by words, and as many by meaning; half as many lost .006 of r@10 on LoCoMo (static table)
POOL = 200
POSTINGS = 10_000  # most rows that a question's words may match, at 1 µs each; rarest words first
ASKED_CHARS = 2_000  # characters of a question that are read
DATED_CHARS = 500  # characters; a longer text is a whole message, and hardly asks for the dates in it
WORDS_SHARE = 0.7  # weight of the words' score; meaning has the rest
RAISED_BY_DAY = 0.75  # added share of the score for a note of the days asked for
UNSURE_BELOW = 0.05  # least confidence of a hit, even if it has only a word that every note has
DATED_LEAST = 0.2  # lowest score of a note of the days asked for
SUPERSEDED, DORMANT = 0.5, 0.9
REPLACES = "replaces a note that was found"
PRIORITY = {"high": 1.04, "medium": 1.0, "low": 0.96}
FRESH, FRESH_DAYS = 0.03, 60  # largest added share, and its e-folding time
USED = 0.02


@dataclass(slots=True)
class Candidate:
    score: float = 0.0  # from 0 to 1, the best
    status: str = "active"
    path: str = ""  # sorts notes of equal score
    why: list[str] = field(default_factory=list)
    cosine: float | None = None  # with the question; None: the note is not among the nearest


Pool = dict[int, Candidate]


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    text: str
    terms: tuple[Term, ...]
    days: tuple[When, ...]

    @property
    def match(self) -> str:
        return " OR ".join(term.match for term in self.terms)


def parse_query(text: str, today: dt.date) -> ParsedQuery:
    """Return the terms of a question, and the days it asks for. *today* is the day in the graph's time zone."""
    text = text[:ASKED_CHARS]
    days = tuple(days_asked(text, today)) if len(text) <= DATED_CHARS else ()
    return ParsedQuery(text, terms_of(text, tuple(when.phrase for when in days)), days)


class Rarity:
    """
    Counts the rows of *table* that match a term, and caches the counts.

    *all_rows*: the key in the table `meta` that holds the number of rows. *postings*: the maximum number of rows
    that the terms of one question may match together.
    """

    def __init__(self, table: str, all_rows: str, postings: int) -> None:
        self._table, self._all_rows, self._postings = table, all_rows, postings
        self._rows = -1
        self._fits: dict[str, int] = {}

    def has(self, word: str) -> bool:
        """
        Return whether any row has *word*. Only words of earlier searches can be found, because each search caches
        its counts. For any other word the result is False.
        """
        return bool(self._fits.get(f'"{word}"'))

    def choose(
        self, db: sqlite3.Connection, found: Sequence[Term], fewer: int = 0
    ) -> tuple[tuple[Term, ...], float]:
        """
        Return the terms to search for, rarest first, and the score of a row that has each term of *found* once.

        The terms together match at most `postings` rows, or at most *fewer* rows if *fewer* is given.
        """
        postings, many = fewer or self._postings, self._postings + 1
        all_rows = meta_value(db, self._all_rows)
        if abs(all_rows - self._rows) > 0.05 * all_rows or len(self._fits) > 20_000:
            self._rows, self._fits = all_rows, {}
        # Another thread may reset the counts meanwhile; this question keeps the present counts.
        known = self._fits
        for term in found:
            if not known.get(term.match):  # a zero is counted again: a row may have the term by now
                known[term.match] = self._count(db, term, many)
        if not any(0 < known[term.match] < many for term in found):  # all are common: which term is rarest?
            known |= {t.match: self._count(db, t) for t in found if known[t.match] == many}
        kept: list[Term] = []
        rows, whole = 0, 0.0
        for term in sorted(found, key=lambda t: known[t.match]):
            # After a forgetting, a cached count may exceed the number of rows.
            fits = min(known[term.match], all_rows)
            rows += fits
            if kept and (rows > postings or fits > max(1_000, all_rows / 2)):
                break  # fts5 gives almost no weight to a word of more than half of the rows
            if fits:
                kept.append(term)
            # fts5's own weight. A term that no row has counts too, because the question asks for it.
            whole += max(1e-6, math.log((all_rows - fits + 0.5) / (fits + 0.5)))
        return tuple(kept), whole

    def _count(self, db: sqlite3.Connection, term: Term, most: int = -1) -> int:
        some = f"select 1 from {self._table} where {self._table} match ? limit ?"
        return int(db.execute(f"select count(*) from ({some})", (term.match, most)).fetchone()[0])


def notes_by_words(db: sqlite3.Connection, match: str) -> dict[int, float]:
    """Return row → bm25 for the POOL notes that match best."""
    weights = ", ".join(map(str, NOTE_COLUMNS.values()))
    score = f"-bm25(note_fts, {weights}) as score"
    select = f"select rowid, {score} from note_fts where note_fts match ? order by score desc limit {POOL}"
    return dict(db.execute(select, (match,)))


def exact_first(db: sqlite3.Connection, order: Sequence[int], pool: Pool, terms: Sequence[Term]) -> list[int]:
    """
    Return *order* with these notes first: notes that have all of *terms*, and successors of notes that were
    found.
    """
    match = f"{{title description body tags}} : ({' AND '.join(term.match for term in terms)})"
    says = {id for (id,) in db.execute("select rowid from note_fts where note_fts match ?", (match,))}
    stands = {
        id for id in order if (id in says and pool[id].status != "superseded") or REPLACES in pool[id].why
    }
    return sorted(order, key=lambda id: id not in stands)


def notes_by_days(db: sqlite3.Connection, days: Iterable[When]) -> list[int]:
    """
    Return the rows of notes that are about one of *days*, or were said on one of *days*, the latest first.
    """
    found = []
    for when in days:
        start, end = when.start.toordinal(), when.end.toordinal()
        for since, until in (("event_from", "event_to"), ("said_from", "said_to")):
            # Without the lower bound, every note is read. A note whose days began over a year before is found
            # only by its words.
            rows = db.execute(
                f"select id from note where hit and {since} between ? and ? and {until} >= ? order by {since} desc limit 50",
                (start - 366, end, start),
            )
            found += [id for (id,) in rows]
    return list(dict.fromkeys(found))


def fused_scores(words: Mapping[int, float], near: Near | None, whole: float) -> tuple[Pool, float]:
    """
    Combine scores by words with closeness in meaning. Return (candidates, confidence).

    - *words*: note id → score by words. Each score is divided by the best of these scores.
    - *near*: the cosines; None without vectors. Closeness is 1 for the best cosine, and 0 for the median.
    - *whole*: the score by words that a note gets if each word of the question stands in the note once.

    A candidate's score is the weighted sum of both. The confidence (0 to 1) says how surely the best candidate answers
    the question. It is 1 if the best score by words reaches *whole*, or if a cosine is 1.
    """
    top = max(words.values(), default=0.0)
    share = WORDS_SHARE if near else 1.0
    pool = {id: Candidate(share * score / top) for id, score in words.items()} if top else {}
    sure = min(1.0, max(UNSURE_BELOW, top / whole)) if top else 0.0
    if near:
        best = max(near.cosines.values())
        sure = max(sure, best)
        for id, cosine in near.cosines.items():
            if id in pool:
                pool[id].cosine = cosine
            if cosine > near.median:
                closeness = (cosine - near.median) / (best - near.median)
                pool.setdefault(id, Candidate(cosine=cosine)).score += (1 - share if top else 1.0) * closeness
                if closeness > 0.5 and cosine > 0.3:
                    pool[id].why.append("close in meaning")
    return pool, sure or UNSURE_BELOW


def weigh_pool(
    db: sqlite3.Connection,
    pool: Pool,
    question: ParsedQuery,
    now: dt.datetime,
    uses: Mapping[str, tuple[int, int]],
) -> None:
    """
    Change the scores in *pool*: raise notes of the days asked for, and successors of found notes.

    Priority, freshness and use decide between equal notes. Notes that no longer exist leave *pool*. *uses*:
    note's id → (number of uses, time of the latest use in ms).
    """
    today = now.date().toordinal()
    columns = "id, path, node, status, priority, said_from, said_to, event_from, event_to"
    rows = {row[0]: row[1:] for row in rows_of(db, f"select {columns} from note where hit and id in", pool)}
    for id in pool.keys() - rows.keys():
        del pool[id]
    for id in [id for id, row in rows.items() if row[2] == "superseded"]:
        if (new := final_successor(db, id)) is not None:
            old, successor = pool[id], pool.setdefault(new, Candidate())
            if successor.score <= old.score:
                successor.score = old.score
                successor.why.append(REPLACES)
    fresh = rows_of(db, f"select {columns} from note where hit and id in", pool.keys() - rows.keys())
    for id, path, node, status, priority, *days in [*((id, *row) for id, row in rows.items()), *fresh]:
        candidate = pool[id]
        candidate.path, candidate.status = path, status
        if phrase := phrase_within(days, question.days):
            candidate.score = max(candidate.score * (1 + RAISED_BY_DAY), DATED_LEAST)
            candidate.why.append(f"of {phrase}")
        age = max(0, today - (days[1] or today))
        candidate.score *= PRIORITY.get(priority, 1.0) * (1 + FRESH * math.exp(-age / FRESH_DAYS))
        candidate.score *= 1 + USED * min(3.0, math.log1p(uses.get(node, (0, 0))[0]))
        candidate.score *= {"superseded": SUPERSEDED, "dormant": DORMANT}.get(status, 1.0)
        candidate.why += ["superseded"] * (status == "superseded")


def phrase_within(days: Sequence[int | None], asked: Iterable[When]) -> str | None:
    """
    Return the phrase of the question that names one of a note's days; None if no phrase does.

    *asked*: the question's phrases for days, such as "last week"; the first phrase that fits is returned. *days*:
    four day numbers: the first and last day on which the note was said, and the first and last day of the event.
    """
    for when in asked:
        first, last = when.start.toordinal(), when.end.toordinal()
        if any(since and until and since <= last and until >= first for since, until in (days[:2], days[2:])):
            return when.phrase.strip()
    return None


def final_successor(db: sqlite3.Connection, id: int) -> int | None:
    """
    Return the row of the last note in the chain of notes that replaced *id*; None if *id* was not replaced.
    """
    chain = [id]
    while len(chain) < 20:
        row = db.execute(
            "select n.id from note o join note n on n.path = o.superseded_by where o.id = ? and n.hit",
            (chain[-1],),
        ).fetchone()
        if row is None or row[0] in chain:
            break
        chain.append(row[0])
    return chain[-1] if len(chain) > 1 else None


# --- Follows links from the best notes to other notes. A linked note needs to match the question, too.
#
# A fixed share of the hits is always found by the question alone.


ENTRY_POINTS = 5  # best notes whose links are followed; links of further notes lead to unrelated notes
OWN_SHARE = 0.5  # share of the hits that the question alone finds, without links
STEP = 0.4  # a link from the best note adds this share of the linked note's own score
UNASKED = 0.05  # a linked note's own score counts for at least this share of the best score
FANNED = 60  # most links of one note that are followed


def walked_order(db: sqlite3.Connection, pool: Pool, k: int, exact: Sequence[Term] = ()) -> list[int]:
    """
    Return the notes in *pool*, best first, after raising notes that are linked with the best notes.

    - A linked note that is missing in *pool* is added.
    - The first OWN_SHARE of *k* notes keep their places.
    - A linked note gets a higher score. The gain grows with its own score, and with the scores of the best notes that
      are linked with it.
    - A superseded note is not raised.
    - *exact*: notes that have all of these terms come first.
    """
    order = ranked_ids(pool)
    if not order:
        return []
    own, top = order[: math.ceil(OWN_SHARE * k)], pool[order[0]].score
    first = order[:ENTRY_POINTS]
    titles = dict(rows_of(db, "select id, title from note where id in", first))
    steps: dict[int, list[tuple[float, str]]] = {}
    for entry in first:
        worth = (pool[entry].score / top) ** 2
        for other in linked_notes(db, entry):
            steps.setdefault(other, []).append((worth, f"linked with “{titles[entry]}”"))
    led_to = rows_of(db, "select id, path, status from note where id in", steps.keys() - pool.keys())
    pool |= {id: Candidate(path=path, status=status) for id, path, status in led_to}
    for id in steps.keys() - set(own):
        candidate = pool[id]
        if candidate.status != "superseded":
            candidate.score += STEP * sum(worth for worth, _ in steps[id]) * (candidate.score + UNASKED * top)
            candidate.why.append(max(steps[id])[1])
    chosen = set(own)
    order = own + [id for id in ranked_ids(pool) if id not in chosen]
    return exact_first(db, order, pool, exact) if exact else order


def ranked_ids(pool: Pool) -> list[int]:
    return sorted(pool, key=lambda id: (-pool[id].score, pool[id].path, id))


def linked_notes(db: sqlite3.Connection, entry: int) -> set[int]:
    """Return the rows of the notes that *entry* links to, and of the notes that link to *entry*."""
    both = f"kind in ({PROSE}, {LINK})"
    rows = db.execute(
        f"""
        select * from (select dst as other from link where src = ?1 and dst is not null and {both} limit {FANNED})
        union select * from (select src from link where dst = ?1 and {both} limit {FANNED})
        """,
        (entry,),
    )
    linked = rows_of(db, "select id from note where hit and id in", [id for (id,) in rows])
    return {id for (id,) in linked} - {entry}


WEIGHED = (
    5  # candidates that are weighed for each hit; weights only decide near ties, so more would change nothing
)


def hits_of(
    db: sqlite3.Connection, order: Sequence[int], pool: Pool, words: Mapping[int, list[str]], sure: float
) -> list[Hit]:
    found = entries_where(db, f"where id in ({','.join('?' * len(order))})", order)
    told, score = [], 1.0
    for id in order:
        score = min(score, pool[id].score * sure)  # a linked note scores no more than the hit before it
        why = "; ".join(dict.fromkeys([*words.get(id, ()), *pool[id].why]))
        told.append(Hit(found[id], round(score, 4), why, pool[id].cosine))
    return told


MATCH_MARK = re.compile("\x02([^\x02\x03]*)\x03")

PLACES = {
    **dict.fromkeys(("title", "description", "body", "tags"), "says {}"),
    **dict.fromkeys(("said", "near", "far"), "comes from a conversation that mentions {}"),
    "linked": "links to {}",
    "dates": "dated {}",
}


def matching_words(db: sqlite3.Connection, ids: Sequence[int], question: ParsedQuery) -> dict[int, list[str]]:
    """
    Tell for each note where the words of *question* were found. *ids*: the notes' rows.

    Returns row → phrases, for example ‘says “cat”’ and ‘links to “Porto”’.
    """
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


class How(NamedTuple):
    """
    How notes are searched.

    - *walk*: follow links from the best hits
    - *quote*: name the matching words in `why`, and put notes with all words of the question first. This takes a fifth
      of a search's time.
    - *vectors*: search by meaning as well as by words
    """

    walk: bool = True
    quote: bool = True
    vectors: bool = True


BY_HAND, FOR_PROMPT, ALONE = How(), How(quote=False), How(walk=False, quote=False)


class Candidates(NamedTuple):
    """
    The notes that may answer *question*, and the confidence of the best. *question* has only the terms that
    were searched. *by_words*: rows found by words.
    """

    question: ParsedQuery
    pool: Pool
    by_words: Collection[int]
    sure: float


def find_candidates(
    db: sqlite3.Connection,
    question: ParsedQuery,
    k: int,
    rarity: Rarity,
    near: Callable[[str], Near | None] | None,
) -> Candidates:
    """
    Return the candidates for *k* hits. *near* finds the notes nearest to a text in meaning; None: search by
    words only.
    """
    chosen, whole = rarity.choose(db, question.terms)
    question = replace(question, terms=chosen)
    words = notes_by_words(db, question.match) if chosen else {}
    only_days = question.days and not question.terms  # then "yesterday" is a day, not a word with a meaning
    close = near(question.text) if near and question.text.strip() and not only_days else None
    pool, sure = fused_scores(words, close, whole)
    if not question.days:  # days may raise any candidate
        pool = {id: pool[id] for id in heapq.nlargest(WEIGHED * k, pool, key=lambda id: pool[id].score)}
    for id in notes_by_days(db, question.days):
        pool.setdefault(id, Candidate())
    return Candidates(question, pool, words.keys(), sure)


def best_hits(db: sqlite3.Connection, found: Candidates, k: int, how: How) -> list[Hit]:
    """Return the *k* best of *found*. Call `weigh_pool` first."""
    question, pool = found.question, found.pool
    exact = question.terms if how.quote and not question.days else ()
    order = (walked_order(db, pool, k, exact) if how.walk else ranked_ids(pool))[:k]
    if how.quote:
        said = matching_words(db, order, question)
    else:
        said = {id: ["found by words"] for id in found.by_words}
    return hits_of(db, order, pool, said, found.sure)


# --- The notes' vectors: made in the background, stored as float16, searched as one matrix.
#
#     missing_vectors, put_vectors    notes without a vector of this embedder, and the vectors made for them
#     Matrix                          all vectors of one embedder; reads what changed since a revision number
#
# A vector is valid for one embedder and one text. A changed note loses its vector at once, and is found by
# words alone until a new vector is made.


TEXT_CHARS = 2_000  # of a note: MiniLM reads fewer, and a longer text only blurs the static table's vector
ROWS_AT_ONCE = 4096  # rows read at once while the matrix is filled: 4 MB
MEDIAN_SAMPLE = 4096  # cosines that the median is taken of; the median of all differs by less than .002
FEW_VECTORS = 20  # notes; with fewer, the median may be the cosine of the note that is asked for
# Upper limit of the median of few notes. On LoCoMo, from 8 notes on, the median cosine of questions and
# observations is .19 to .22 with the static table, and .26 with MiniLM.
MEDIAN_OF_FEW = 0.2
GONE = "gone"


def new_revision(db: sqlite3.Connection) -> int:
    """Set and return a new revision number, so that each `Matrix` in memory reads what changed."""
    db.execute("update meta set value = value + 1 where key = 'rev'")
    return meta_value(db, "rev")


def drop_vectors(db: sqlite3.Connection, notes: Iterable[int], gone: bool = False) -> None:
    """
    Remove the vectors of *notes*, whose texts are new or changed; new vectors are made later. *gone*: the notes
    were deleted, so no new vectors are made.
    """
    rev = new_revision(db)
    db.executemany(
        "replace into vector values (?, ?, null, ?)", [(n, GONE if gone else "", rev) for n in notes]
    )


def missing_vectors(db: sqlite3.Connection, embedder: str, limit: int) -> list[tuple[int, str, str]]:
    """Return `(row, hash, text)` of up to *limit* notes that have no vector of *embedder*."""
    return db.execute(
        f"""
        select note, hash, substr(text.title || '. ' || text.description || ' ' || text.body, 1, {TEXT_CHARS})
        from (
            select note from vector where embedder < ?1 and embedder <> '{GONE}'
            union all select note from vector where embedder > ?1 and embedder <> '{GONE}' limit ?2
        ) join text on text.id = note join note on note.id = text.id
        """,
        (embedder, limit),
    ).fetchall()


def put_vectors(
    db: sqlite3.Connection, embedder: str, rows: Sequence[tuple[int, str, str]], vectors: Floats
) -> None:
    """Store the *vectors* of the notes in *rows*, except notes that changed after *rows* were read."""
    rev = new_revision(db)
    for (note, hash, _), vector in zip(rows, vectors.astype("float16"), strict=True):
        same = db.execute("select 1 from note where id = ? and hash = ?", (note, hash)).fetchone()
        if same:
            db.execute("replace into vector values (?, ?, ?, ?)", (note, embedder, vector.tobytes(), rev))


class Near(NamedTuple):
    """The notes nearest to a question, as row → cosine, and the median cosine of all notes."""

    cosines: dict[int, float]
    median: float


class Matrix:
    """
    The vectors of all notes as float32, a row for each note: 100 MB for 100,000 notes of 256 numbers. Several
    threads may use one matrix at once.
    """

    def __init__(self, embedder: str) -> None:
        self.embedder = embedder
        self._following = threading.Lock()
        self._state: tuple[int, int] = (-1, -1)  # the store's generation, the revision
        self._rows: dict[int, int] = {}  # note → row
        self._notes: NDArray[np.int64] | None = None
        self._matrix: Floats | None = None

    def follow(self, db: sqlite3.Connection, generation: int) -> None:
        """Read the vectors that changed since the previous call."""
        rev = meta_value(db, "rev")
        if self._state == (generation, rev):
            return
        with self._following:
            if self._state[0] != generation:
                self._rows, self._notes, self._matrix, self._state = {}, None, None, (generation, -1)
            if self._state[1] < rev:
                self._read(db, self._state[1])
                self._state = (generation, rev)

    def _read(self, db: sqlite3.Connection, since: int) -> None:
        import numpy as np

        rows = db.execute("select note, embedder, data from vector where rev > ?", (since,))
        while part := rows.fetchmany(ROWS_AT_ONCE):
            for note, embedder, _ in part:
                if embedder != self.embedder and note in self._rows and self._matrix is not None:
                    self._matrix[self._rows[note]] = 0  # similar to nothing
            own = [(note, data) for note, embedder, data in part if embedder == self.embedder]
            if own:
                vectors = np.frombuffer(b"".join(data for _, data in own), np.float16).reshape(len(own), -1)
                self._place(db, [note for note, _ in own], vectors.astype(np.float32))

    def _place(self, db: sqlite3.Connection, notes: list[int], vectors: Floats) -> None:
        import numpy as np

        new = [note for note in notes if note not in self._rows]
        size, room = len(self._rows), 0 if self._matrix is None else len(self._matrix)
        if size + len(new) > room:
            total = int(db.execute("select count(*) from vector").fetchone()[0])
            grown = np.zeros((max(total, size + len(new)) * 9 // 8 + 64, vectors.shape[1]), np.float32)
            numbers = np.zeros(len(grown), np.int64)
            if self._matrix is not None and self._notes is not None:
                grown[:size], numbers[:size] = self._matrix[:size], self._notes[:size]
            self._matrix, self._notes = grown, numbers
        assert self._matrix is not None and self._notes is not None
        for n, note in enumerate(new, size):
            self._notes[n] = note
            self._rows[note] = n
        self._matrix[[self._rows[note] for note in notes]] = vectors

    def near(self, vector: Floats, n: int) -> Near | None:
        """Return the *n* notes nearest to *vector*; None if there are no vectors."""
        import numpy as np

        size, matrix, notes = len(self._rows), self._matrix, self._notes
        if not size or matrix is None or notes is None or matrix.shape[1] != len(vector):
            return None
        # Not `@`: for a product, BLAS starts threads, and on a busy machine took 20 times as long (8 ms, not .4).
        cosines = np.einsum("ij,j->i", matrix[:size], vector)
        n = min(n, size)
        best = np.argpartition(-cosines, n - 1)[:n]
        found = {int(notes[i]): float(cosines[i]) for i in best}
        median = float(np.median(cosines[:: max(1, size // MEDIAN_SAMPLE)]))
        at_random = min(median, MEDIAN_OF_FEW) if size < FEW_VECTORS else median
        return Near(found, at_random)
