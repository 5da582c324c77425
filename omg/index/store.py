"""
One sqlite file, derived from files that are kept elsewhere: many readers, one writer at a time.

Readers never wait for the writer (WAL) and each has a connection of its own, from a pool. A file that is
damaged, of another version, or held by somebody for too long is not repaired: `replace` starts an empty one,
and whoever owns the store fills it again (index.py). On a full disk the file stays, and is read as it is.

Not here: what the tables mean. One rule: nothing is in this file that cannot be read again from elsewhere.
"""

from __future__ import annotations

import errno
import fcntl
import os
import queue
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from .links import CONTRADICTION
from .terms import TOKENIZER

VERSION = 8  # of the tables below and of what is in their columns: with another, the file is made anew
KEPT_NEVER = -1  # the generation of a connection for one use
NOT_OPEN = -1  # the inode before the file is first looked at

# connections that wait for the next reader, two descriptors each; more at once are closed after use
POOLED = 2
CACHE_KIB = 16_000  # of pages, for each reader; the system's cache has the rest

# Columns of the two full-text tables with their weights in bm25; bench/LOG.md has what was tried.
NOTE_COLUMNS = {
    "title": 1.0,
    "description": 1.0,
    "body": 1.0,
    "tags": 0.5,
    "dates": 0.4,  # the days it is about, in words
    "linked": 0.2,  # titles of the notes it links to
    "said": 0.4,  # the messages it was made from
    "near": 0.4,  # those before and after them
    "far": 0.2,  # and the next ones
}

MESSAGE_COLUMNS = {"body": 1.0, "dates": 0.4, "near": 0.4, "far": 0.2}

# Types: str is TEXT, int INTEGER, bytes BLOB. Days are ordinals (date.toordinal).
TABLES: dict[str, dict[str, type]] = {
    "meta": {"key": str, "value": str},
    "note": {
        "id": int,  # never given twice: what a search holds for a moment must not become another note
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
        "generation": int,
        "superseded_by": str,
        "tags": str,  # JSON
        "home": str,  # the MOC that lists it
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
    # What a note answers to. rank: 0 path, 1 id, 2 alias
    "name": {"note": int, "leaf": str, "full": str, "rank": int},
    # kind: as in links.py
    "link": {"src": int, "dst": int, "target": str, "full": str, "leaf": str, "kind": int},
    "source": {"note": int, "session": str, "id": str, "kind": str, "timestamp": int},
    "text": {"id": int, **dict.fromkeys(NOTE_COLUMNS, str)},
    # embedder: whose vector it is; "" none yet; "gone" the note is no more
    "vector": {"note": int, "embedder": str, "data": bytes, "rev": int},
    "message": {
        "id": int,
        "mid": str,  # the gateway's id
        "key": str,
        "session": str,
        "timestamp": int,
        "talk": int,  # said by a person or the agent, in words
        "file": str,
        "line": str,  # as in the archive
    },
    "archive": {"file": str, "offset": int, "tail": bytes},
}

KEYS = {
    "meta": "key",
    "note": "id",
    "bad": "path",
    "text": "id",
    "vector": "note",
    "message": "id",
    "archive": "file",
}

INDEXES = {  # an item is the columns of one index
    "note": ("node", "home status type", "said_from", "event_from"),
    "name": ("leaf", "note"),
    "link": ("src", "dst", "leaf"),
    "source": ("note", "id", "session timestamp"),
    "vector": ("rev", "embedder"),
    "message": ("key", "session talk timestamp id", "file", "timestamp"),
}
UNIQUE = {"note": ("path",), "message": ("mid session",)}


class Store:
    """*patience_s*: how long a lock of somebody else's is waited for. Nothing is opened before `look`."""

    def __init__(self, file: Path, patience_s: float = 10.0) -> None:
        self.file, self.patience_s = file, patience_s
        self.born = "new"  # why the file was last made: for the log, once it is filled
        # grows with every new file, so that what is kept in memory is dropped with the old
        self.generation = 0
        self._inode = NOT_OPEN
        self._pool: queue.LifoQueue[tuple[int, sqlite3.Connection]] = queue.LifoQueue(POOLED)
        self._changing, self._writing = threading.RLock(), threading.RLock()

    # --- using it

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees one state of the file until the block ends."""
        generation, db = self._take()
        try:
            db.execute("begin")
            yield db
        except sqlite3.DatabaseError:
            db.close()  # not back into the pool: its next user would inherit the trouble
            raise
        finally:
            with suppress(sqlite3.ProgrammingError):  # closed
                if db.in_transaction:
                    db.execute("rollback")
                try:
                    self._pool.put_nowait((generation, db))
                except queue.Full:
                    db.close()

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """The only writer: all that the block does, or nothing of it."""
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
        """Start an empty file. Nothing is done, and False returned, if that of generation *broken* is gone already."""
        with self._changing, self._file_lock():
            if broken is not None and (broken != self.generation or inode_of(self.file) != self._inode):
                return False
            self._close_pooled()
            self._create(why)
            return True

    def look(self) -> int:
        """
        The generation of the file that is there, which is opened now if it is not open yet: notices that ours was
        deleted, or replaced by another process.

        Without it we would go on reading and writing a file that nobody else can see.
        """
        if inode_of(self.file) != self._inode:
            with self._changing:
                if inode_of(self.file) != self._inode:  # still: another thread may have opened it
                    self._close_pooled()
                    self._open("new" if self._inode == NOT_OPEN else "it was deleted")
        return self.generation

    def _open(self, why: str) -> None:
        """Take the file that is there, if it is of use; else make one, *why* being said where there is none."""
        with self._changing:
            if self._why_unusable() is not None:
                with self._file_lock():
                    # Still: another process may just have been making it.
                    if (wrong := self._why_unusable()) is not None:
                        return self._create(wrong or why)
            self.generation, self._inode = self.generation + 1, inode_of(self.file)

    def _why_unusable(self) -> str | None:
        """Why the file that is there is of no use; "" if there is none, None if nothing is wrong."""
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
        """Nobody else makes or replaces the file meanwhile: two processes may begin at once."""
        self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder = os.open(self.file.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)

    def _create(self, why: str) -> None:
        import sqlite_utils  # tables and indexes; 0.4 s where pandas is about, which it looks for; only a new index pays

        fresh = self.file.with_name(f"{self.file.name}.new")  # never two files in turn with one inode number
        fresh.unlink(missing_ok=True)
        remove_sidecars(fresh)
        os.close(os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        with closing(self._connect(fresh)) as db:
            db.execute("pragma journal_mode=wal")
            db.execute("begin immediate")
            tables = sqlite_utils.Database(db)
            for name, columns in TABLES.items():
                db.execute(tables.create_table_sql(name, columns, pk=KEYS.get(name)))
            for wanted in (INDEXES, UNIQUE):
                for table, listed in wanted.items():
                    for item in listed:
                        tables[table].create_index(item.split(), unique=wanted is UNIQUE)
            # Not the library's: it knows no index on some of the rows.
            db.execute(
                "create index idx_note_superseded_by on note(superseded_by) where superseded_by is not null"
            )
            db.execute(f"create index idx_link_contradiction on link(src, dst) where kind = {CONTRADICTION}")
            full_text(db)
            db.execute("insert into meta values ('rev', 0), ('next', 1), ('hits', 0), ('filled', 0)")
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
            db.execute("select count(*) from sqlite_master").fetchone()  # only now does sqlite open the file
        except BaseException:
            db.close()
            raise
        return db

    def _connect_to_read(self) -> tuple[int, sqlite3.Connection]:
        """
        A connection, and the generation it is kept for.

        Readers too write beside the file, where they meet each other; on a full disk they cannot. Unless it has
        a log still, the file alone is all there is: then that is read, and looked at anew the next time.
        """
        try:
            return self.generation, self._connect()
        except sqlite3.DatabaseError as e:
            log = self.file.with_name(f"{self.file.name}-wal")
            if not is_disk_barred(e) or (log.exists() and log.stat().st_size):
                raise
        uri = f"{self.file.absolute().as_uri()}?immutable=1"
        return KEPT_NEVER, sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)

    def _take(self) -> tuple[int, sqlite3.Connection]:
        """The connection used last, whose pages are warm; or a new one."""
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
    The full-text tables. That of notes reads its content from `text`, which a rebuild of a column needs anyway.

    Regular, not contentless: SQLite below 3.43 cannot delete from those. Not by sqlite-utils' `enable_fts`: it commits
    in the middle of the transaction that makes the file, and keeps a table's own name for its content.
    """
    tokenizer = TOKENIZER.replace("'", "''")
    db.execute(
        f"create virtual table note_fts using fts5({', '.join(NOTE_COLUMNS)}, content='text', content_rowid='id', tokenize='{tokenizer}')"
    )
    db.execute(
        f"create virtual table message_fts using fts5({', '.join(MESSAGE_COLUMNS)}, tokenize='{tokenizer}')"
    )
    for table in ("note_fts", "message_fts"):
        # A transaction's terms are gathered in memory up to this much: a third less CPU than with the default of 1 MB.
        db.execute(f"insert into {table}({table}, rank) values ('hashsize', {16 << 20})")


def rows_of(
    db: sqlite3.Connection, statement: str, keys: Iterable[int | str], rest: str = ""
) -> list[tuple[Any, ...]]:
    """The rows of `statement (keys) rest`; of several such statements, since sqlite takes 999 keys at once on any build."""
    listed, found = list(keys), []
    for at in range(0, len(listed), 900):
        part = listed[at : at + 900]
        found += db.execute(f"{statement} ({','.join('?' * len(part))}) {rest}", part).fetchall()
    return found


def remove_sidecars(file: Path) -> None:
    """Remove what sqlite keeps beside *file*."""
    for suffix in ("-wal", "-shm", "-journal"):
        file.with_name(file.name + suffix).unlink(missing_ok=True)


def inode_of(file: Path) -> int:
    """0 if there is no such file."""
    try:
        return file.stat().st_ino
    except FileNotFoundError:
        return 0


def reason_unusable(e: sqlite3.DatabaseError) -> str:
    return (
        f"it could not be used ({str(e).partition(' with text ')[0]})"  # else what a note says is in the log
    )


# Result codes of sqlite that say the file is of no use: busy and locked (for too long), corrupt, not a database;
# and, of I/O errors, those of reading. A disk that is full, or a file that may not be opened, says nothing of it.
UNUSABLE, UNREADABLE = {5, 6, 11, 26}, {266, 522}

# What has no code of its own: a table that is gone, or one of full text that is in pieces; text that is none.
BROKEN = ("no such table", "vtable constructor failed", "Could not decode to UTF-8")
BARRED = {8, 10, 13, 14}  # read-only, I/O, full, cannot open


def is_unusable(e: sqlite3.DatabaseError) -> bool:
    code = getattr(e, "sqlite_errorcode", 0)
    told = code & 0xFF in UNUSABLE or code in UNREADABLE or str(e).startswith(BROKEN)
    return told or isinstance(e, sqlite3.IntegrityError)


def is_disk_barred(e: Exception) -> bool:
    """Whether *e* is about the disk, which is full or not ours to write to: another time it may work."""
    if isinstance(e, sqlite3.DatabaseError):
        return not is_unusable(e) and getattr(e, "sqlite_errorcode", 0) & 0xFF in BARRED
    return isinstance(e, OSError) and e.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
