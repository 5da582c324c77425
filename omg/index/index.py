"""
Index: answers questions about the notes and messages of one graph without opening their files.

    sync, archive, embed    update the notes, the messages and the vectors
    search, search_raw      search the notes (search.py); search the messages (archived.py)
    entry, resolve, names…  look up a note, or the note that a link leads to

Any number of threads may read while one thread writes. The index can be rebuilt at any time: a process that
finds the file damaged, locked, deleted or of another version replaces the file, with one line in the log.
"""

from __future__ import annotations

import functools
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from ..embed import question_vector
from ..errors import ModelUnavailable
from ..message.turn import Message, message_from_json
from ..node.markdown import slugify
from ..node.note import Source
from ..secrets import redact
from ..vault.vault import Vault
from . import archived, statements
from .links import ALIAS, LINK, PROSE, begun_rows, fitting_notes, resolve_row
from .rows import RowWriter, Synced, sync_tables
from .search import (
    BY_HAND,
    POOL,
    POSTINGS,
    How,
    Matrix,
    Near,
    ParsedQuery,
    Rarity,
    best_hits,
    find_candidates,
    missing_vectors,
    parse_query,
    put_vectors,
    weigh_pool,
)
from .statements import SignMatrix
from .store import (
    DAMAGED,
    Entry,
    Hit,
    Store,
    entries_where,
    is_unusable,
    meta_value,
    reason_unusable,
    rows_of,
)

if TYPE_CHECKING:
    from ..embed import Embedder

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

# --- Prompts go first, because all threads share one interpreter. A background thread that wants to use an
# index waits while a prompt is being answered.


BACKGROUND = "background"  # the name of a background thread
LONGEST_WAIT_S = 0.1  # after a wait, a thread runs for half that time or more, even if prompts never end


class PromptsFirst:
    """Makes background threads wait while this process answers prompts."""

    def __init__(self) -> None:
        self._answering, self._ended = 0, threading.Condition()
        self._own = threading.local()  # `until`: when this thread may wait again

    @contextmanager
    def answering(self) -> Iterator[None]:
        with self._ended:
            self._answering += 1
        try:
            yield
        finally:
            with self._ended:
                self._answering -= 1
                self._ended.notify_all()

    def give_way(self) -> None:
        """In a background thread, wait until no prompt is being answered."""
        if not self._answering or threading.current_thread().name != BACKGROUND:
            return
        began = time.monotonic()
        if began < getattr(self._own, "until", 0.0):
            return
        with self._ended:
            self._ended.wait_for(lambda: not self._answering, LONGEST_WAIT_S)
        ended = time.monotonic()
        self._own.until = ended + (ended - began) / 2


prompts_first = PromptsFirst()


LINKING = "id in (select src from link join note d on d.id = dst where d.path = ?)"


def retry_on_new_file(method: Callable[Concatenate[Index, P], T]) -> Callable[Concatenate[Index, P], T]:
    """Wrap *method*: if the index file turns out to be unusable, replace the file and call *method* again."""

    @functools.wraps(method)
    def call(self: Index, /, *args: P.args, **kwargs: P.kwargs) -> T:
        prompts_first.give_way()
        generation = self._ready()
        try:
            return method(self, *args, **kwargs)
        except sqlite3.DatabaseError as e:
            if not is_unusable(e):
                raise
            self._store.replace(reason_unusable(e), generation)
        self._ready()
        return method(self, *args, **kwargs)

    return call


class Index:
    """
    The index of one graph's notes and messages, in the SQLite file *file*.

    *zone*: the time zone of the notes' days. *patience_s*: how many seconds to wait for another process's lock.
    """

    def __init__(
        self, file: Path, embedder: Embedder | None = None, zone: tzinfo = UTC, patience_s: float = 10.0
    ) -> None:
        self.file, self.embedder, self.zone = file, embedder, zone
        self._store = Store(file, patience_s)
        self._generation = self._store.generation
        self._vault: Vault | None = None
        # The archive's folder. A new index file is filled from this folder before the first question.
        self.said_in: Path | None = None
        self._filling = threading.RLock()
        self._rarity = Rarity("note_fts", "hits", POSTINGS)
        self._said = Rarity("statement_fts", "statements", statements.POSTINGS)
        self._matrix = Matrix(embedder.id) if embedder else None
        self._signs = SignMatrix()
        self._warm = False  # whether the embedder answers at once; a search never loads a model

    def close(self) -> None:
        self._store.close()

    # --- keeping up

    @retry_on_new_file
    def sync(self, vault: Vault, paths: Collection[str] | None = None) -> Synced:
        """
        Update the index from all files of *vault*, or only from the files at *paths*, in one transaction.

        If the vault cannot be reached, raises NotFound and changes nothing.
        """
        self._vault = vault
        with self._store.write() as db:
            filled = meta_value(db, "filled")
            synced = sync_tables(RowWriter(db, self.zone), vault, paths if filled else None)
            if not filled:
                db.execute("update meta set value = 1 where key = 'filled'")
        if not filled:
            why, notes = self._store.born, len(synced.changed)
            if why.startswith(DAMAGED):  # a command shows warnings on stderr
                log.warning("index %s made again from %d notes: %s; nothing is lost", self.file, notes, why)
            else:
                log.info("index %s made from %d notes: %s", self.file, notes, why)
        return synced

    def damage(self) -> tuple[datetime, str] | None:
        """
        Return the time and the error of the latest replacement of a damaged index file.

        Returns None if no damaged file was replaced.
        """
        for (told,) in self._rows("select value from meta where key = 'damage'"):
            at, _, why = told.partition(" ")
            return datetime.fromisoformat(at), why
        return None

    def filled(self) -> bool:
        """Return whether the notes were ever read into the present file."""
        return bool(self.ask(meta_value, "filled"))

    @retry_on_new_file
    def archive(self, folder: Path) -> int:
        """Add the new messages of the archive in *folder*. Return the number of new messages."""
        self.said_in = folder
        with self._store.write() as db:
            count, changed = archived.take_in(db, folder, self.zone)
            RowWriter(db, self.zone).rewindow(changed)
        return count

    def rebuild(self, vault: Vault, archive: Path) -> Synced:
        """Make the index again in a new file, so that no byte of removed text stays."""
        with self._filling:
            self._vault, self.said_in = None, archive
            self._store.replace("asked for")
            self._generation = self._store.generation
            self.archive(archive)
            return self.sync(vault)

    def embed(self, limit: int = 256) -> int:
        """
        Make up to *limit* missing vectors, for notes before statements. Return the number of vectors made: 0 if
        none is missing, or no embedding model works.
        """
        if self.embedder is None:
            return 0
        try:
            if not self._warm:
                self._write(statements.drop_vectors_of_others, self.embedder.id)
            if rows := self.ask(missing_vectors, self.embedder.id, limit):
                made = self.embedder([text for _, _, text in rows])
                self._write(put_vectors, self.embedder.id, rows, made)
                self._warm = True
                return len(rows)
            gone, ids, texts = self.ask(statements.missing_vectors, limit)
            made = self.embedder(texts or ["warm"])
        except ModelUnavailable as e:
            log.warning("could not make vectors; searches use words only: %s", e)
            return 0
        if ids:
            self._write(statements.put_vectors, gone, ids, made)
        else:
            assert self._matrix is not None
            self.ask(self._matrix.follow, self._generation)  # so that the first search need not
            self.ask(self._signs.follow, self._generation)
        self._warm = True
        return len(ids)

    def look_for_secrets(self, limit: int = 256) -> int:
        """
        Search up to *limit* messages for secrets, if the present rules have not searched these messages yet.
        Return the number searched. A message known to hold no secret is later quoted without another search.
        """
        searched = self.ask(statements.unsearched, limit)
        if searched:
            found = [redact(message_from_json(line)[0].text)[1] > 0 for _, line in searched]
            self._write(statements.put_searched, searched, found)
        return len(searched)

    # --- searching

    @retry_on_new_file
    def search(
        self,
        query: str | ParsedQuery,
        k: int = 10,
        *,
        now: datetime,
        uses: Mapping[str, tuple[int, int]] = {},
        how: How = BY_HAND,
    ) -> list[Hit]:
        """
        Return the *k* notes that answer *query* best, best first.

        *now*: the time that "last week" and a note's freshness refer to. *uses*: note's id → (number of uses,
        time of the latest use in ms). Vectors are used only after `embed` has loaded the model; a search never
        loads the model.
        """
        with self._store.read() as db:
            near = functools.partial(self._near, db) if how.vectors and self._warm else None
            local = now.astimezone(self.zone)
            asked = parse_query(query, local.date()) if isinstance(query, str) else query
            found = find_candidates(db, asked, k, self._rarity, near)
            weigh_pool(db, found.pool, asked, local, uses)
            return best_hits(db, found, k, how)

    @retry_on_new_file
    def find_said(
        self, query: str | ParsedQuery, *, now: datetime, assistants: float = 1.0, quick: bool = False
    ) -> list[statements.Found]:
        """
        Return the archived statements that answer *query*, unsorted.

        *now*: the time that "last week" refers to. *assistants*: factor for the scores of the assistant's
        statements; 0 leaves these out. *quick*: search only by the rarest words of *query*.
        """
        asked = parse_query(query, now.astimezone(self.zone).date()) if isinstance(query, str) else query
        by_meaning = self._warm and bool(asked.terms) and not quick
        with self._store.read() as db:
            near = functools.partial(self._near_said, db, asked.text) if by_meaning else None
            terms, whole = self._said.choose(db, asked.terms, statements.POSTINGS_RARE if quick else 0)
            match = replace(asked, terms=terms).match
            found = statements.find_statements(db, match, whole, assistants, near)
            return archived.raise_for_days(db, found, asked.days, self.zone) if asked.days else found

    def search_raw(
        self, query: str | ParsedQuery, k: int = 10, *, now: datetime
    ) -> list[archived.FoundMessage]:
        """
        Return the *k* messages that answer *query* best, each with its session and score (about 0 to 1). If
        *query* only asks for days, return the latest messages of those days.
        """
        asked = parse_query(query, now.astimezone(self.zone).date()) if isinstance(query, str) else query
        if not asked.terms:
            rows = self.ask(archived.said_within, asked.days, self.zone, k)
            return [(*said[:2], 0.0) for said in self.ask(archived.read_rows, rows).values()]
        found: dict[int, float] = {}
        for f in sorted(self.find_said(asked, now=now), key=lambda f: -f.words):
            if f.words and len(found) < k:
                found.setdefault(f.row, f.words)
        said = self.ask(archived.read_rows, found)
        return [(*said[row][:2], round(words, 4)) for row, words in found.items() if row in said]

    @property
    def by_meaning(self) -> bool:
        """Whether searches use vectors as well as words."""
        return self._warm

    def knows(self, word: str) -> bool:
        """
        Return whether a note or a message has *word*.

        Only words of earlier searches can be found, because each search caches its counts. For any other word the
        result is False.
        """
        return any(rarity.has(word) for rarity in (self._rarity, self._said))

    # --- looking up

    def entry(self, name: str) -> Entry | None:
        """Return the note whose path or id is *name*; None if there is no such note."""
        found = self.ask(entries_where, "where path = ?", [name]) or self.ask(
            entries_where, "where node = ?", [name]
        )
        return next(iter(found.values()), None)

    def entries(
        self,
        *,
        status: str | None = "active",
        moc: str | None = None,
        links_to: str | None = None,
        first: int | None = None,
        **columns: str | bool,
    ) -> list[Entry]:
        """
        Return the notes that meet all conditions, sorted by path.

        - *status*: None for any status.
        - *moc*: only notes that the map at this path lists.
        - *links_to*: only notes that link to this path.
        - *first*: at most this number of notes: notes of the highest priority, among equals the newest.
        - *columns*: values of other columns of the table `note`.
        """
        wanted: dict[str, object] = {"status = ?": status, "home = ?": moc, LINKING: links_to}
        wanted |= {f"{column} = ?": value for column, value in columns.items()}
        given = {condition: value for condition, value in wanted.items() if value is not None}
        where = f"where {' and '.join(given)}" if given else ""
        values: list[object] = [*given.values()]
        if first is not None:
            order = "instr('high,medium,low', priority), coalesce(event_from, said_from) desc, path"
            where = f"where id in (select id from note {where} order by {order} limit ?)"
            values.append(first)
        return [*self.ask(entries_where, where, values).values()]

    def maps(self) -> dict[str, str]:
        """Path → title of every map."""
        return dict(
            self._rows("select path, title from note where path >= 'mocs/' and path < 'mocs0' order by path")
        )

    def newest_day(self, types: Collection[str], but: Collection[str]) -> date | None:
        """
        Return the day of the latest change among active notes of *types*, except notes at the paths *but*; None
        if there are no such notes.
        """
        select = """select coalesce(updated, created) as day, type, path from note
            where status = 'active' and day is not null order by day desc"""

        def newest(db: sqlite3.Connection) -> str | None:  # stops at the first row that fits
            rows = db.execute(select)
            return next((day for day, type, path in rows if type in types and path not in but), None)

        day = self.ask(newest)
        return date.fromisoformat(day) if day else None

    def moc_counts(self) -> dict[str, int]:
        """Return path of a map → the number of active notes that the map lists."""
        select = """select home, count(*) from note
            where home <> '' and status = 'active' and type <> 'moc' group by home order by home"""
        return dict(self._rows(select))

    def project_counts(self, types: Collection[str]) -> dict[str, int]:
        """
        Return path of a project → the number of active notes on the project's map: the project's note, and the
        notes of *types* that link to that note.
        """
        select = f"""select d.path, 1 + count(distinct s.id) from link join note d on d.id = dst join note s on s.id = src
            where d.type = 'project' and d.status = 'active' and s.status = 'active' and kind in ({PROSE}, {LINK})
            and s.id <> d.id and s.type in ({",".join("?" * len(types))}) group by d.path"""
        return dict(self._rows(select, *types))

    def resolve(self, link: str) -> str | None:
        """
        Return the path of the note that *link* leads to; None if no note or several fit.

        *link* is a path, an id, an alias or the end of a path, in upper or lower case.
        """
        return self._path_of(self.ask(resolve_row, link))

    def _path_of(self, note: int | None) -> str | None:
        return next((path for (path,) in self._rows("select path from note where id = ?", note)), None)

    @retry_on_new_file
    def find(self, name: str) -> str | None:
        """
        Return the path of the note that *name* means; None if no note or several fit.

        *name* is a link as for `resolve`, a title, a map's name without "moc-", or the beginning of a note's
        name.
        """
        with self._store.read() as db:
            ids = [resolve_row(db, text) for text in (name, slugify(name), f"moc-{name}")]
            begun = begun_rows(db, name) if name else set()
        only = begun.pop() if len(begun) == 1 else None
        return self._path_of(next((id for id in ids if id is not None), only))

    def names(self, link: str) -> list[str]:
        """
        Return every name of the note that *link* leads to: its path, id and aliases. The names have the form that
        `name_key` returns. Empty if *link* leads to no note.
        """
        rows = self._rows("select full from name where note = ?", self.ask(resolve_row, link))
        return [full for (full,) in rows]

    def ambiguous(self, link: str) -> list[str]:
        """Return the paths of the notes that *link* fits equally well; empty unless there are several."""
        fits = [path for _, path, _ in self.ask(fitting_notes, link)]
        return fits if len(fits) > 1 else []

    def dangling(self) -> list[tuple[str, str]]:
        """
        Return `(path of the note, target of the link)` for each link that leads to no note or fits several.
        """
        return self._rows(
            "select distinct path, target from link join note on note.id = src where dst is null order by 1, 2"
        )

    def backlinks(self, path: str) -> list[str]:
        """Return the paths of the notes that link to *path*."""
        select = """select distinct s.path from note d join link on dst = d.id join note s on s.id = src
            where d.path = ? and s.id <> d.id order by 1"""
        return [p for (p,) in self._rows(select, path)]

    def sources(self, path: str) -> list[Source]:
        """Return the messages that the note at *path* was made from."""
        select = """select session, source.id, timestamp, kind from source join note on note.id = note
            where path = ? order by source.rowid"""
        return [Source(*row) for row in self._rows(select, path)]

    def times_said(self) -> list[tuple[str, int]]:
        """Return `(path of the note, time in ms)` for each source message of each note."""
        return self._rows("select path, timestamp from source join note on note.id = note")

    def citing(self, ids: Collection[str]) -> list[str]:
        """Return the paths of the notes made from at least one of the messages *ids*."""
        select = "select path from source join note on note.id = note where source.id in"
        return sorted({path for (path,) in self.ask(rows_of, select, ids)})

    def notes_by_source(self, ids: Collection[str]) -> dict[str, list[archived.MadeNote]]:
        """Return message's id → the notes made from the message, for those of *ids* that have notes."""
        return self.ask(archived.notes_by_source, ids)

    def seen(self, keys: Collection[str]) -> set[str]:
        """
        Return those of *keys* that are in the archive. A key is the id of a message, or its `Message.key`.
        """
        return self.ask(archived.known_keys, keys)

    def messages(self, ids: Collection[str]) -> list[Message]:
        """Return the archived messages with these *ids*, oldest first. Unknown ids are skipped."""
        return self.ask(archived.messages_by_id, ids)

    def around(self, id: str, n: int = 2) -> list[Message]:
        """
        Return the message *id* with up to *n* messages before and after from the same session, oldest first;
        empty if the archive has no such message.
        """
        return self.ask(archived.messages_around, id, n)

    @retry_on_new_file
    def ask(
        self, question: Callable[Concatenate[sqlite3.Connection, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call `question(db, *args, **kwargs)`, where *db* is a read connection. Return the result."""
        with self._store.read() as db:
            return question(db, *args, **kwargs)

    def _rows(self, select: str, *values: object) -> list[Any]:
        return self.ask(lambda db: db.execute(select, values).fetchall())

    def said_since(self, session: str, since_ms: int) -> list[tuple[str, int, str]]:
        """
        Return role, time (ms) and id of the archived messages of *session* since *since_ms*, oldest first.
        """
        select = """select json_extract(line, '$.role'), timestamp, mid from message
            where session = ? and talk in (0, 1) and timestamp >= ? order by timestamp, id"""
        return self._rows(select, session, since_ms)

    def homes(self) -> dict[str, str]:
        """Return path of a note → path of the map that lists the note, for active notes."""
        return dict(
            self._rows("select path, home from note where status = 'active' and home <> '' order by path")
        )

    def hashes(self) -> dict[str, str]:
        """Return path → `files.digest` of the note's bytes."""
        return dict(self._rows("select path, hash from note order by path"))

    def detours(self) -> list[tuple[str, str, str]]:
        """
        Return the links that use a note's former path. Each is `(path of the linking note, target as written,
        target's present path)`. A renamed note keeps its former path as an alias.
        """
        select = f"""select distinct s.path, target, d.path from name join link using (leaf, full)
            join note d on d.id = link.dst join note s on s.id = src
            where name.rank = {ALIAS} and name.note = link.dst and full like '%/%' order by 1, 2"""
        return self._rows(select)

    def bad(self) -> dict[str, str]:
        """Return path → what the user must mend, for the files that cannot be read as notes."""
        return dict(self._rows("select path, reason from bad order by path"))

    def _ready(self) -> int:
        """
        Open the index file, and first fill the file if it is new. Return the file's generation, a number that
        grows each time the file is replaced.
        """
        generation = self._store.look()
        if generation != self._generation:
            with self._filling:
                if generation != self._generation:
                    self._generation = generation
                    self._refill()
        return generation

    def _refill(self) -> None:
        with self._store.read() as db:
            if meta_value(db, "filled"):
                return  # another process filled it
        if self.said_in is not None:
            self.archive(self.said_in)
        if self._vault is not None:
            self.sync(self._vault)

    @retry_on_new_file
    def _write(self, change: Callable[..., None], /, *args: object) -> None:
        with self._store.write() as db:
            change(db, *args)

    def _near_said(
        self, db: sqlite3.Connection, text: str, also: Iterable[int], nearest: bool
    ) -> Mapping[int, float]:
        assert self.embedder is not None
        self._signs.follow(db, self._generation)
        try:
            return self._signs.near(db, question_vector(self.embedder, text), also, nearest)
        except ModelUnavailable:
            return {}

    def _near(self, db: sqlite3.Connection, text: str) -> Near | None:
        assert self.embedder is not None and self._matrix is not None
        self._matrix.follow(db, self._generation)
        try:
            return self._matrix.near(question_vector(self.embedder, text), POOL)
        except ModelUnavailable:
            return None
