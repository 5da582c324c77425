"""
Index: everything that is asked of a graph without opening its files.

    sync, archive, embed    keep up with the notes, with what was said, and with the vectors
    search, search_raw      notes (search.py); messages, if no note has the answer (archived.py)
    entry, resolve, names…  what a note is, where a link leads, who links here

Any number of threads may read while one writes. The index can be rebuilt at any time: a process that finds
the file damaged, locked, deleted or of another version replaces the file, with one line in the log.
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

# --- Prompts go first. They share the interpreter with background threads, so a background thread waits
# before it uses an index while a prompt is answered.


BACKGROUND = "background"  # the name of a background thread
LONGEST_WAIT_S = 0.1  # then the thread runs for at least half as long, so that endless prompts do not stop it


class PromptsFirst:
    """The prompts that are answered in this process."""

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
    """Call the method again, on a new file, if the present file turns out to be unusable."""

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
    """*zone*: the time zone of the notes' days. *patience_s*: how long to wait for another process's lock."""

    def __init__(
        self, file: Path, embedder: Embedder | None = None, zone: tzinfo = UTC, patience_s: float = 10.0
    ) -> None:
        self.file, self.embedder, self.zone = file, embedder, zone
        self._store = Store(file, patience_s)
        self._generation = self._store.generation
        self._vault: Vault | None = None
        # The archive's folder. A new file is filled from it before the first question.
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
        Bring the index up to the files of *vault*: all of them, or *paths* alone. One transaction.

        Raises NotFound if the vault cannot be reached, and changes nothing then.
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
        """When a damaged file was replaced by the present one, and what was wrong with it; None if none was."""
        for (told,) in self._rows("select value from meta where key = 'damage'"):
            at, _, why = told.partition(" ")
            return datetime.fromisoformat(at), why
        return None

    def filled(self) -> bool:
        """Whether the notes were ever read into this file."""
        return bool(self.ask(meta_value, "filled"))

    @retry_on_new_file
    def archive(self, folder: Path) -> int:
        """Take in what was added to the archive's files; returns how many messages that were."""
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
        Make up to *limit* of the missing vectors, the notes' first. Returns how many; 0 if none is missing or no model
        works.
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
            log.warning("no vectors: %s", e)
            return 0
        if ids:
            self._write(statements.put_vectors, gone, ids, made)
        else:
            assert self._matrix is not None
            self.ask(self._matrix.follow, self._generation)  # else the first search has to
            self.ask(self._signs.follow, self._generation)
        self._warm = True
        return len(ids)

    def look_for_secrets(self, limit: int = 256) -> int:
        """
        Search up to *limit* messages for secrets, if today's rules have not. Returns how many. What is known to hold
        none is quoted without a search.
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
        The *k* notes that answer *query* best, best first.

        *now*: the time that "last week" and a note's freshness refer to. *uses*: note id → how often the note
        was useful, and when last. Vectors are used only after `embed` has loaded the model; a search never
        loads it.
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
        The statements that answer *query*, in no order; *now*: the time that "last week" refers to; *assistants*: the
        factor for what the assistant said, 0 for none of it; *quick*: by its rarest words alone.
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
        """The messages of the best statements, each with its session and score (about 0 to 1). For a question
        without words, the latest messages."""
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
        """Whether searches use vectors as well."""
        return self._warm

    def knows(self, word: str) -> bool:
        """Whether a note or a message has *word*, which a search has just looked for."""
        return any(rarity.has(word) for rarity in (self._rarity, self._said))

    # --- looking up

    def entry(self, name: str) -> Entry | None:
        """The note of this path, or of this id."""
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
        Notes by path. *status*: None for any. *moc*: only those that this map lists. *links_to*: only those that link to this
        path. *first*: at most so many, by priority, then the newest. *columns*: values of other columns of the table `note`.
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
        """The day of the latest change among active notes of *types*, except those at the paths *but*."""
        select = """select coalesce(updated, created) as day, type, path from note
            where status = 'active' and day is not null order by day desc"""

        def newest(db: sqlite3.Connection) -> str | None:  # reads no further than the first that fits
            rows = db.execute(select)
            return next((day for day, type, path in rows if type in types and path not in but), None)

        day = self.ask(newest)
        return date.fromisoformat(day) if day else None

    def moc_counts(self) -> dict[str, int]:
        """Map → how many active notes it lists."""
        select = """select home, count(*) from note
            where home <> '' and status = 'active' and type <> 'moc' group by home order by home"""
        return dict(self._rows(select))

    def project_counts(self, types: Collection[str]) -> dict[str, int]:
        """Project → how many active notes its map lists: the project's own,
        and those of *types* that link to it."""
        select = f"""select d.path, 1 + count(distinct s.id) from link join note d on d.id = dst join note s on s.id = src
            where d.type = 'project' and d.status = 'active' and s.status = 'active' and kind in ({PROSE}, {LINK})
            and s.id <> d.id and s.type in ({",".join("?" * len(types))}) group by d.path"""
        return dict(self._rows(select, *types))

    def resolve(self, link: str) -> str | None:
        """The path that *link* leads to: a path, an id, an alias or the only fitting end of a path, in any case."""
        return self._path_of(self.ask(resolve_row, link))

    def _path_of(self, note: int | None) -> str | None:
        return next((path for (path,) in self._rows("select path from note where id = ?", note)), None)

    @retry_on_new_file
    def find(self, name: str) -> str | None:
        """The path that *name* leads to: a link as for `resolve`, a title, a map without "moc-", or the
        beginning of one note's name."""
        with self._store.read() as db:
            ids = [resolve_row(db, text) for text in (name, slugify(name), f"moc-{name}")]
            begun = begun_rows(db, name) if name else set()
        only = begun.pop() if len(begun) == 1 else None
        return self._path_of(next((id for id in ids if id is not None), only))

    def names(self, link: str) -> list[str]:
        """Path, id and aliases of the note that *link* leads to, folded for comparison."""
        rows = self._rows("select full from name where note = ?", self.ask(resolve_row, link))
        return [full for (full,) in rows]

    def ambiguous(self, link: str) -> list[str]:
        """The paths that *link* fits equally well, if there are several."""
        fits = [path for _, path, _ in self.ask(fitting_notes, link)]
        return fits if len(fits) > 1 else []

    def dangling(self) -> list[tuple[str, str]]:
        """`(path, target)` of the links that lead nowhere, or to several notes at once."""
        return self._rows(
            "select distinct path, target from link join note on note.id = src where dst is null order by 1, 2"
        )

    def backlinks(self, path: str) -> list[str]:
        """Paths of the notes that link to *path*."""
        select = """select distinct s.path from note d join link on dst = d.id join note s on s.id = src
            where d.path = ? and s.id <> d.id order by 1"""
        return [p for (p,) in self._rows(select, path)]

    def sources(self, path: str) -> list[Source]:
        """The messages that the note was made from."""
        select = """select session, source.id, timestamp, kind from source join note on note.id = note
            where path = ? order by source.rowid"""
        return [Source(*row) for row in self._rows(select, path)]

    def times_said(self) -> list[tuple[str, int]]:
        """Each note with the time of each of its sources, in ms."""
        return self._rows("select path, timestamp from source join note on note.id = note")

    def citing(self, ids: Collection[str]) -> list[str]:
        """Paths of the notes made from one of these messages."""
        select = "select path from source join note on note.id = note where source.id in"
        return sorted({path for (path,) in self.ask(rows_of, select, ids)})

    def notes_by_source(self, ids: Collection[str]) -> dict[str, list[archived.MadeNote]]:
        """Message → the notes made from it, for those of *ids* that are a note's source."""
        return self.ask(archived.notes_by_source, ids)

    def seen(self, keys: Collection[str]) -> set[str]:
        """Which of *keys*, ids or keys of messages, are in the archive."""
        return self.ask(archived.known_keys, keys)

    def messages(self, ids: Collection[str]) -> list[Message]:
        """Those of *ids* that are in the archive, in the order they were said."""
        return self.ask(archived.messages_by_id, ids)

    def around(self, id: str, n: int = 2) -> list[Message]:
        """The message *id* with the *n* before and after it in its session;
        empty if the archive does not have it."""
        return self.ask(archived.messages_around, id, n)

    @retry_on_new_file
    def ask(
        self, question: Callable[Concatenate[sqlite3.Connection, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """The answer of *question*, a function of a connection."""
        with self._store.read() as db:
            return question(db, *args, **kwargs)

    def _rows(self, select: str, *values: object) -> list[Any]:
        return self.ask(lambda db: db.execute(select, values).fetchall())

    def said_since(self, session: str, since_ms: int) -> list[tuple[str, int, str]]:
        """Role, time and id of the archived messages of *session* since *since_ms*, oldest first."""
        select = """select json_extract(line, '$.role'), timestamp, mid from message
            where session = ? and talk in (0, 1) and timestamp >= ? order by timestamp, id"""
        return self._rows(select, session, since_ms)

    def homes(self) -> dict[str, str]:
        """Path → the map that lists the note, for all active notes that a map lists."""
        return dict(
            self._rows("select path, home from note where status = 'active' and home <> '' order by path")
        )

    def hashes(self) -> dict[str, str]:
        """Path → hash of the note's bytes, as `files.digest` has it."""
        return dict(self._rows("select path, hash from note order by path"))

    def detours(self) -> list[tuple[str, str, str]]:
        """`(path, target, present path)` of the links that lead to a note by its former path,
        which is an alias."""
        select = f"""select distinct s.path, target, d.path from name join link using (leaf, full)
            join note d on d.id = link.dst join note s on s.id = src
            where name.rank = {ALIAS} and name.note = link.dst and full like '%/%' order by 1, 2"""
        return self._rows(select)

    def bad(self) -> dict[str, str]:
        """Path → what to mend, of the files that cannot be read as notes."""
        return dict(self._rows("select path, reason from bad order by path"))

    def _ready(self) -> int:
        """Check that the file is still there, and fill a new one. Returns its generation."""
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
