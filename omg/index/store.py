"""
The SQLite file: tables, connections, damage; the terms of a text.

Readers never wait for the writer (WAL); each reader takes a connection from a pool. A file that is damaged, of
another version, or locked for too long is not repaired: `replace` starts an empty file, and index.py fills the
new file from the vault and the archive. On a full disk, the present file stays and is only read.
"""

from __future__ import annotations

import datetime as dt
import errno
import fcntl
import json
import os
import queue
import re
import sqlite3
import threading
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import regex

from ..node.note import PRIORITIES, map_listing, map_of_type
from ..text.characters import UNSPACED_RUN, fold_text
from ..text.words import STOP, WORD_OR_RUN, words_in
from .links import CONTRADICTION, LINK, PROSE, short_names

# --- Turns a question into terms: words that may distinguish one note from another. search.py joins the terms
# by OR, rarest first, and weighs each term by its rarity.
#
# Any question with words has terms, in any script. No character of a question is read as FTS5 syntax.


# The FTS5 tokenizer that `fold_text` (text/characters.py) is made for. Combining marks (Mn, Mc) count as letters; otherwise words in Hindi are split.
TOKENIZER = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"

# Words of a date phrase that say nothing more once the phrase is resolved to days.
CALENDAR = frozenset(
    """
    ago coming couple day days few fortnight last month months next night past previous quarter several this today
    tomorrow tonight week weekend weekends weeks year years yesterday
    """.split()
)

# "the name of the cat": a message that tells the name hardly has the word "name". Such words are not searched.
ASKED_FOR = re.compile(r"\bthe (?:names?|numbers?|dates?|amounts?|kinds?|types?) of\b", re.I)

# Letters of scripts whose words end in cases that Porter, which is for English, does not know.
INFLECTED = regex.compile(r"(?!\p{Latin})\p{L}")


@dataclass(frozen=True, slots=True)
class Term:
    match: str  # an FTS5 expression: a quoted string, or a prefix
    shown: str  # as it was written


def terms_of(question: str, dates: tuple[str, ...] = ()) -> tuple[Term, ...]:
    """
    Return the terms of *question* in their order. *dates* are phrases in *question* that were resolved to days.

    A stop word is kept if it is written as a name ("Will") or is part of a compound ("to-do"). A question of
    stop words alone keeps all of them, unless it is about days.
    """
    text = unicodedata.normalize("NFKC", question).replace("’", "'")
    found: dict[str, Term] = {}
    for n, chunk in enumerate(ASKED_FOR.sub("the", text).split()):
        for term in terms_of_chunk(chunk, first=n == 0):
            found.setdefault(term.match.lower(), term)
    said = {word.lower() for phrase in dates for word in words_in(phrase)} & CALENDAR
    kept = [t for t in found.values() if t.shown.lower() not in said]
    if not kept and not dates:
        kept = [Term(quoted_terms(w), w) for w in dict.fromkeys(words_in(text))]
    return tuple(kept)


def terms_of_chunk(chunk: str, first: bool) -> list[Term]:
    """Return the terms of *chunk*, a piece of the question without spaces."""
    if re.search(r"n't\b", chunk, re.I):
        return []
    chunk = re.sub(r"'\w{1,2}\b", "", chunk)  # Caroline's, I'll
    parts = WORD_OR_RUN.findall(chunk)
    found = []
    for part in parts:
        if UNSPACED_RUN.match(part):
            found += unspaced_terms(part)
        elif not is_dropped(part, chunk, first):
            found.append(Term(match_form(fold_text(part)), part))
    # socket.io, 3.5, to-do: also as one term
    if len(parts) > 1 and "/" not in chunk and not UNSPACED_RUN.search(chunk):
        found.append(Term(quoted_terms(fold_text(" ".join(parts))), chunk.strip(".,;:!?()\"'")))
    return found


def is_dropped(word: str, chunk: str, first: bool) -> bool:
    low = word.lower()
    if low in STOP:
        name = word[0].isupper() and not first and low not in ("i", "a") and not word.isupper()
        return not name
    # A single letter is left over from something, unless it is part of a name: C++, plan B.
    return (
        len(word) == 1
        and word.isascii()
        and not word.isdigit()
        and not (word.isupper() or "+" in chunk or "#" in chunk)
    )


def match_form(word: str) -> str:
    if INFLECTED.search(word) and len(word) >= 5:
        return f"{quoted_terms(word[: max(4, len(word) - 2)])}*"
    return quoted_terms(word)


def unspaced_terms(run: str) -> list[Term]:
    """
    Return the terms of *run*, a text without spaces: each pair of neighbouring characters, or the only
    character.
    """
    if len(run) == 1:
        return [Term(quoted_terms(run), run)]
    return [Term(quoted_terms(f"{a} {b}"), a + b) for a, b in pairwise(run)]


def quoted_terms(words: str) -> str:
    return f'"{words}"'


VERSION = 17  # of the tables and their contents; a file of another version is replaced
KEPT_NEVER = -1  # instead of a generation: a connection that is closed after one use
NOT_OPEN = -1  # the inode before the file is first looked at

# idle connections that stay open for the next readers, two file descriptors each; others are closed after use
POOLED = 2
CACHE_KIB = 16_000  # of pages, for each reader; the system's cache has the rest

# Columns of the two full-text tables with their weights in bm25; bench/LOG.md has what was tried.
NOTE_COLUMNS = {
    "title": 1.0,
    "description": 1.0,
    "body": 1.0,
    "tags": 0.5,
    "dates": 0.4,  # the note's days, in words
    "linked": 0.2,  # titles of linked notes
    "said": 0.4,  # the messages that the note was made from
    "near": 0.4,  # the messages beside those
    "far": 0.2,  # the messages beside the near ones
}

# above: the sender, and the headings above the statement
STATEMENT_COLUMNS = {"above": 0.4, "body": 1.0}

# Types: str is TEXT, int INTEGER, bytes BLOB. Days are ordinals (date.toordinal).
TABLES: dict[str, dict[str, type]] = {
    "meta": {"key": str, "value": str},
    "note": {
        "id": int,  # never used twice: a running search may still hold the id of a deleted note
        "path": str,
        "node": str,  # the note's own id
        "type": str,
        "title": str,
        "description": str,
        "priority": str,
        "status": str,
        "pinned": int,
        "standing": int,
        "loop": str,
        "event": str,
        "created": str,
        "updated": str,
        "origin": str,
        "superseded_by": str,
        "tags": str,  # JSON
        "home": str,  # path of the map that lists the note
        "hit": int,  # whether a search may find it
        "said_from": int,
        "said_to": int,
        "event_from": int,
        "event_to": int,
        "mtime": int,  # ns
        "size": int,
        "hash": str,
    },
    "bad": {"path": str, "mtime": int, "size": int, "reason": str},
    # The names of a note. rank: 0 path, 1 id, 2 alias
    "name": {"note": int, "leaf": str, "full": str, "rank": int},
    # kind: as in links.py
    "link": {"src": int, "dst": int, "target": str, "full": str, "leaf": str, "kind": int},
    "source": {"note": int, "session": str, "id": str, "kind": str, "timestamp": int},
    "text": {"id": int, **dict.fromkeys(NOTE_COLUMNS, str)},
    # embedder: its id, or "" without a vector so far, or "gone" if the note was deleted
    "vector": {"note": int, "embedder": str, "data": bytes, "rev": int},
    "message": {
        "id": int,
        "mid": str,  # the gateway's id
        "key": str,
        "session": str,
        "timestamp": int,
        "role": str,
        "talk": int,  # said by a person or the agent, in words
        "file": str,
        "line": str,  # as in the archive
    },
    # id: a message's row. spans: its statements, packed as in statements.py. rules: `rules_number` of the rules that
    # searched the message for secrets, 0 if none did so far. clean: 1 if these rules found no secret.
    "spoken": {"id": int, "rules": int, "clean": int, "spans": bytes},
    # id: the statement's number (statements.py)
    "statement_vector": {"id": int, "data": bytes},
    "archive": {"file": str, "offset": int, "tail": bytes},
}

UNKEYED = (
    "name",
    "link",
    "source",
)  # tables without a primary key; in other tables, the first column is the key

INDEXES = {  # an item is the columns of one index
    # The last index has all columns that order the notes of a type (index.py).
    "note": (
        *("node", "home status type", "said_from", "event_from", "pinned", "standing", "loop"),
        "type status priority event_from said_from path",
    ),
    "name": ("leaf", "note"),
    "link": ("src", "dst", "leaf"),
    "source": ("note", "id", "session timestamp"),
    "vector": ("rev", "embedder"),
    "message": ("key", "session talk timestamp id", "file", "timestamp"),
    "spoken": ("rules",),
}
UNIQUE = {"note": ("path",), "message": ("mid session",)}


class Store:
    """
    The index's SQLite *file* and the connections to it. Call `look` before anything else. *patience_s*: seconds
    to wait for another process's lock.
    """

    def __init__(self, file: Path, patience_s: float = 10.0) -> None:
        self.file, self.patience_s = file, patience_s
        self.born = "new"  # why the file was last made, for the log
        # grows with every new file, so that data of the old file is dropped from memory
        self.generation = 0
        self._inode = NOT_OPEN
        self._pool: queue.LifoQueue[tuple[int, sqlite3.Connection]] = queue.LifoQueue(POOLED)
        self._changing, self._writing = threading.RLock(), threading.RLock()

    # --- using it

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """Yields a connection that sees one unchanging state of the file."""
        generation, db = self._take()
        try:
            db.execute("begin")
            yield db
        except sqlite3.DatabaseError:
            db.close()  # a broken connection must not go back into the pool
            raise
        finally:
            with suppress(sqlite3.ProgrammingError):  # already closed
                if db.in_transaction:
                    db.execute("rollback")
                try:
                    self._pool.put_nowait((generation, db))
                except queue.Full:
                    db.close()

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """Yields the only writing connection. The block is one transaction."""
        with self._writing:
            db = self._connect()
            try:
                db.execute("begin immediate")
                yield db
                db.execute("commit")
            except BaseException:
                with suppress(sqlite3.Error):
                    db.execute("rollback")
                raise
            finally:
                db.close()

    def close(self) -> None:
        with self._changing:
            self._close_pooled()

    # --- the file itself

    def replace(self, why: str, broken: int | None = None) -> bool:
        """
        Start an empty file. *why* is for the log.

        Returns False, and does nothing, if the file of generation *broken* was already replaced.
        """
        with self._changing, self._file_lock():
            if broken is not None and (broken != self.generation or inode_of(self.file) != self._inode):
                return False
            self._close_pooled()
            self._create(why)
            return True

    def look(self) -> int:
        """
        Open the present file if it is not open, and return its generation.

        Notices that another process deleted or replaced the file. Otherwise we would go on using a file that
        nobody else sees.
        """
        if inode_of(self.file) != self._inode:
            with self._changing:
                if inode_of(self.file) != self._inode:  # again: another thread may have opened the file
                    self._close_pooled()
                    self._open("new" if self._inode == NOT_OPEN else "it was deleted")
        return self.generation

    def _open(self, why: str) -> None:
        """Open the file, or make a new one if it is unusable. *why*: the reason to log if there is no file."""
        with self._changing:
            if self._why_unusable() is not None:
                with self._file_lock():
                    # Check again: another process may have just made it.
                    if (wrong := self._why_unusable()) is not None:
                        return self._create(wrong or why)
            self.generation, self._inode = self.generation + 1, inode_of(self.file)

    def _why_unusable(self) -> str | None:
        """Why the present file is unusable; "" if there is no file, None if nothing is wrong."""
        if not self.file.exists():
            return ""
        try:
            with closing(self._connect_to_read()[1]) as db:
                version = db.execute("pragma user_version").fetchone()[0]
                filled = db.execute("select count(*) from meta").fetchone()[0]
        except sqlite3.DatabaseError as e:
            if not is_unusable(e):
                raise
            return reason_unusable(e)
        return None if version == VERSION and filled else f"it was of version {version}, not {VERSION}"

    @contextmanager
    def _file_lock(self) -> Iterator[None]:
        """Keeps other processes from making or replacing the file during the block."""
        self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder = os.open(self.file.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)

    def _create(self, why: str) -> None:
        import sqlite_utils  # imported only here: where pandas is installed, this takes 0.4 s

        fresh = self.file.with_name(
            f"{self.file.name}.new"
        )  # made beside the old file, so that the inodes differ
        fresh.unlink(missing_ok=True)
        remove_sidecars(fresh)
        os.close(os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        with closing(self._connect(fresh)) as db:
            db.execute("pragma journal_mode=wal")
            db.execute("begin immediate")
            tables = sqlite_utils.Database(db)
            for name, columns in TABLES.items():
                key = None if name in UNKEYED else next(iter(columns))
                db.execute(tables.create_table_sql(name, columns, pk=key))
            for wanted in (INDEXES, UNIQUE):
                for table, listed in wanted.items():
                    for item in listed:
                        tables[table].create_index(item.split(), unique=wanted is UNIQUE)
            # Plain SQL, because sqlite-utils cannot make an index on some of the rows.
            db.execute(
                "create index idx_note_superseded_by on note(superseded_by) where superseded_by is not null"
            )
            db.execute(f"create index idx_link_contradiction on link(src, dst) where kind = {CONTRADICTION}")
            full_text(db)
            db.execute(
                "insert into meta values ('rev', 0), ('next', 1), ('hits', 0), ('filled', 0), ('statements', 0), ('said_gone', 0)"
            )
            if why.startswith(DAMAGED):
                now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
                db.execute("insert into meta values ('damage', ?)", (f"{now} {why}",))
            db.execute(f"pragma user_version={VERSION}")
            db.execute("commit")
        remove_sidecars(self.file)
        fresh.replace(self.file)
        self.born, self.generation, self._inode = why, self.generation + 1, inode_of(self.file)

    # --- connections

    def _connect(self, file: Path | None = None) -> sqlite3.Connection:
        db = sqlite3.connect(
            file or self.file, timeout=self.patience_s, isolation_level=None, check_same_thread=False
        )
        try:
            db.execute("pragma synchronous=normal")  # a lost transaction is read again from the files
            db.execute(f"pragma cache_size=-{CACHE_KIB}")
            db.execute("pragma temp_store=memory")
            db.execute(
                "select count(*) from sqlite_master"
            ).fetchone()  # sqlite opens the file only at the first query
        except BaseException:
            db.close()
            raise
        return db

    def _connect_to_read(self) -> tuple[int, sqlite3.Connection]:
        """
        Open a connection for reading. Return (generation of the file, connection).

        On a full or read-only disk, the connection is opened as immutable and must be used only once. Then the
        generation is KEPT_NEVER. Raises sqlite3.DatabaseError on such a disk if the WAL holds changes. Raises it
        also if the database cannot be opened for another reason.
        """
        try:
            return self.generation, self._connect()
        except sqlite3.DatabaseError as e:
            # In WAL mode a reader writes files beside the database, which fails on a full disk. If the WAL is empty or
            # missing, the database file alone is complete.
            log = self.file.with_name(f"{self.file.name}-wal")
            if not is_disk_barred(e) or (log.exists() and log.stat().st_size):
                raise
        uri = f"{self.file.absolute().as_uri()}?immutable=1"
        return KEPT_NEVER, sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)

    def _take(self) -> tuple[int, sqlite3.Connection]:
        """
        Return a generation and a connection: the connection used last, whose pages are cached, or a new one.
        """
        while True:
            try:
                generation, db = self._pool.get_nowait()
            except queue.Empty:
                return self._connect_to_read()
            if generation == self.generation:
                return generation, db
            db.close()

    def _close_pooled(self) -> None:
        while True:
            try:
                self._pool.get_nowait()[1].close()
            except queue.Empty:
                return


def full_text(db: sqlite3.Connection) -> None:
    """
    Make the full-text tables.

    `note_fts` takes its text from the table `text`. `statement_fts` keeps no text, because the table `message`
    has it. To delete a row, pass the row's former values. Does not call sqlite-utils' `enable_fts`: that
    function commits within the transaction that makes the file, and does not let us choose the table's name.
    """
    tokenizer = TOKENIZER.replace("'", "''")
    db.execute(
        f"create virtual table note_fts using fts5({', '.join(NOTE_COLUMNS)}, content='text', content_rowid='id', tokenize='{tokenizer}')"
    )
    db.execute(
        f"create virtual table statement_fts using fts5({', '.join(STATEMENT_COLUMNS)}, content='', tokenize='{tokenizer}')"
    )
    for table in ("note_fts", "statement_fts"):
        # A transaction's terms are gathered in memory up to this much: a third less CPU than with the default of 1 MB.
        db.execute(f"insert into {table}({table}, rank) values ('hashsize', {16 << 20})")


def rows_of(db: sqlite3.Connection, statement: str, keys: Iterable[int | str]) -> list[tuple[Any, ...]]:
    """
    Return the rows of *statement*, which ends with `in`, for *keys*. Asks for 900 keys at a time, because some
    builds of sqlite take only 999.
    """
    listed, found = list(keys), []
    for at in range(0, len(listed), 900):
        part = listed[at : at + 900]
        found += db.execute(f"{statement} ({','.join('?' * len(part))})", part).fetchall()
    return found


def meta_value(db: sqlite3.Connection, key: str) -> int:
    return int(db.execute("select value from meta where key = ?", (key,)).fetchone()[0])


def remove_sidecars(file: Path) -> None:
    """Remove the files that sqlite keeps beside *file*: WAL, shared memory and journal."""
    for suffix in ("-wal", "-shm", "-journal"):
        file.with_name(file.name + suffix).unlink(missing_ok=True)


def inode_of(file: Path) -> int:
    """Return the inode number of *file*; 0 if there is no such file."""
    try:
        return file.stat().st_ino
    except FileNotFoundError:
        return 0


DAMAGED = "it could not be used"  # how the reason begins if the file was damaged


def reason_unusable(e: sqlite3.DatabaseError) -> str:
    return f"{DAMAGED} ({str(e).partition(' with text ')[0]})"  # cut before " with text ": a note's text must not get into the log


# sqlite's result codes for an unusable file: busy and locked (for too long), corrupt, not a database, and I/O
# errors of reading. A full disk, or missing permission, does not make the file unusable.
UNUSABLE, UNREADABLE = {5, 6, 11, 26}, {266, 522}

# Messages of errors without a code of their own: a table is missing, a full-text table is broken,
# bytes are not text.
BROKEN = ("no such table", "vtable constructor failed", "Could not decode to UTF-8")
BARRED = {8, 10, 13, 14}  # read-only, I/O, full, cannot open


def is_unusable(e: sqlite3.DatabaseError) -> bool:
    code = getattr(e, "sqlite_errorcode", 0)
    told = code & 0xFF in UNUSABLE or code in UNREADABLE or str(e).startswith(BROKEN)
    return told or isinstance(e, sqlite3.IntegrityError)


def is_disk_barred(e: Exception) -> bool:
    """Return whether *e* says that the disk is full or read-only, so that a later try may work."""
    if isinstance(e, sqlite3.DatabaseError):
        return not is_unusable(e) and getattr(e, "sqlite_errorcode", 0) & 0xFF in BARRED
    return isinstance(e, OSError) and e.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


# --- Entry, a note as the index lists it, and Hit, a note that was found.
#
# Both are read from the tables `note`, `link` and `source`. search.py finds notes by words; only the vault
# has a note's body. Lists are sorted by path, so that text generated from them does not depend on when the
# index was made.


@dataclass(frozen=True, slots=True)
class Entry:
    path: str
    id: str
    type: str
    title: str
    description: str
    priority: str
    status: str
    pinned: bool
    loop: str | None
    event: str | None
    created: dt.date | None
    updated: dt.date | None
    origin: str | None
    superseded_by: str | None
    links: tuple[str, ...]  # paths of linked notes, links in the frontmatter first
    tags: tuple[str, ...]
    mtime: int  # ns
    standing: bool = False  # an instruction for every conversation
    contradicts: tuple[str, ...] = ()  # paths of active notes that contradict this note
    said_last: bool = False  # whether this note was said after all of `contradicts`
    outdated: tuple[
        str, ...
    ] = ()  # linked notes that were replaced, unless this note is or links to the successor
    short: str = ""  # the shortest beginning of the file name that is unique; "": none, or not looked up

    @property
    def handle(self) -> str:
        """The shortest text by which omg_open finds the note."""
        return self.short or self.path

    @property
    def map(self) -> str:
        """
        Return the path of the map that lists the note. This is the first map that the note links to, or else the
        map for the note's type.
        """
        return map_listing(self.path, self.type, self.links) or map_of_type(self.type)

    @property
    def rank(self) -> int:
        """The rank of the note's priority; 0 is the highest."""
        return PRIORITIES.index(self.priority)


# A hit with a lower score is weak. On LoCoMo, by words alone, nine in ten of the right notes score above .25;
# for half of the questions about other people's talks, the best hit scores below .22.
WEAK_BELOW = 0.2


@dataclass(frozen=True, slots=True)
class Hit:
    entry: Entry
    score: float  # 0 to 1: how well the note answers the question; comparable between searches
    why: str
    cosine: float | None = (
        None  # of the note with the question; None: the note has no vector, or many notes are nearer
    )

    @property
    def weak(self) -> bool:
        """Whether the note hardly matches, and was returned only because no note matches better."""
        return self.score < WEAK_BELOW


COLUMNS = """id, path, node, type, title, description, priority, status, pinned, loop, event, created, updated,
    origin, superseded_by, tags, mtime, standing"""

MANY = 500  # notes; for more, one pass over all links is quicker than a look-up for each note


def entries_where(db: sqlite3.Connection, where: str, values: Iterable[object]) -> dict[int, Entry]:
    """
    Return row → note, sorted by path, for the notes that the SQL clause *where* selects. *values* fill its
    placeholders.
    """
    rows = db.execute(f"select {COLUMNS} from note {where} order by path", tuple(values)).fetchall()
    select = (
        "select link.rowid, src, path, superseded_by from link join note on note.id = dst"
        f" where kind in ({PROSE}, {LINK})"
    )
    found = (
        db.execute(select)
        if len(rows) > MANY
        else rows_of(db, f"{select} and src in", [row[0] for row in rows])
    )
    links: dict[int, dict[str, str | None]] = {}
    for _, src, path, successor in sorted(found):
        links.setdefault(src, {})[path] = successor
    against = contradictions(db) if rows else {}
    none: tuple[tuple[str, ...], bool] = (), False
    short = short_names(db, [(row[0], row[1]) for row in rows]) if len(rows) <= MANY else {}
    return {
        id: entry_of_row((id, *row), links.get(id, {}), against.get(id, none), short.get(id, ""))
        for id, *row in rows
    }


def contradictions(db: sqlite3.Connection) -> dict[int, tuple[tuple[str, ...], bool]]:
    """
    Return row of a note → (paths, newest), for each note that active notes contradict.

    - *paths*: the notes that contradict the note. A contradiction counts for both notes, whichever of them names
      it.
    - *newest*: True if the note's latest message is later than the latest message of every contradicting note.
    - A note from the assistant or a tool cannot contradict a note from a person.
    """
    found: dict[int, dict[str, bool]] = {}
    select = f"""
        select one.id, one.origin, other.path, other.origin, other.status,
        (select max(timestamp) from source where note = a) > (select max(timestamp) from source where note = b) from
        (select src as a, dst as b from link indexed by idx_link_contradiction where kind = {CONTRADICTION}
        union select dst, src from link indexed by idx_link_contradiction where kind = {CONTRADICTION})
        join note one on one.id = a join note other on other.id = b
        """
    for id, origin, path, by, status, later in db.execute(select):
        if status == "active" and (by not in ("tool", "assistant") or origin in ("tool", "assistant")):
            found.setdefault(id, {})[path] = bool(later)  # None if one of the two notes has no message
    return {id: (tuple(sorted(paths)), all(paths.values())) for id, paths in found.items()}


def entry_of_row(
    row: tuple[Any, ...], links: Mapping[str, str | None], against: tuple[tuple[str, ...], bool], short: str
) -> Entry:
    """
    Return the note of *row*, which has the values of COLUMNS.

    *links*: path of a linked note → path of the note that replaced it, or None. *against*: a value of
    `contradictions`.
    """
    _, *texts, pinned, loop, event, created, updated, origin, successor, tags, mtime, standing = row
    days = (day and dt.date.fromisoformat(day) for day in (created, updated))
    marks = () if tags == "[]" else tuple(json.loads(tags))
    first = (*texts, bool(pinned), loop, event, *days, origin, successor)
    known = {
        None,
        row[1],
        *links,
    }  # successors that the note links to or is: a link to a note they replaced is not outdated
    outdated = tuple(path for path, successor in links.items() if successor not in known)
    values: tuple[Any, ...] = (*first, tuple(links), marks, mtime, bool(standing), *against, outdated, short)
    return Entry(*values)
