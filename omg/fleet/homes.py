"""
The graphs of a fleet: Postgres holds their files as rows, and this machine checks them out as small homes.

A commit is one transaction: it locks the graph's row and compares the row's generation with the one checked out. If the
two differ, another machine has committed since; the commit then raises Stale and writes nothing.

    <cache>/omg-fleet-<user>/<n>/<graph>/     omg.toml, owners.json, … of the tenant
        graphs/<folder>/                      the graph
        spool/                                the graph's drops, while a job takes them in

Each process locks the first free folder <n>. At its start, a process also empties the folders of killed processes. If a
person forgets words through another machine, this machine deletes its copies of them within SWEEP_S, and always before
it serves the graph again.
"""

from __future__ import annotations

import datetime as dt
import fcntl
import hashlib
import json
import logging
import math
import os
import re
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..client import ask_daemon
from ..config import load_config
from ..embed import Embedder, load_embedder
from ..errors import BadInput, ConfigError, NotFound, Stale
from ..forget.removal import FORGOTTEN_MARK
from ..graph.graph import GRAPH_MARK, marked_identity
from ..graph.state import TEMPORARY, file_look
from ..llm.child import Child
from ..memory import Memory
from ..reflect.run import is_due
from ..vault.files import LEFTOVER
from ..worker.schedule import when_due
from .store import WORK_S, FleetStore, GraphRow, graph_row

if TYPE_CHECKING:
    from psycopg import Connection

PART_BYTES = 65_536
# Files that servers write without a new generation: what sessions were given, and how often notes were of use.
SERVED = ("state.json", "uses.jsonl")
# Paths that Postgres does not hold, as the start of a regular expression: derived files, locks, the socket, logs.
DERIVED = r"index\.db[^/]*$|([^/]*\.)?lock$|omg\.sock$|omg\.log[^/]*$"
# For the files of a home, also its graphs and its spool, except the drops that could not be read.
OF_HOME = DERIVED + r"|graphs/|spool/(?!bad/|$)"
# Also files that are imported and exported, but not checked out, because observing and answering do not read them.
UNREAD = OF_HOME + r"|events|installed\.json$|cursors/|hosts/|plugins/|joined/|runs/"

Files = Mapping[str, bytes | None]  # path → content of the file; None: the file is gone


@dataclass(frozen=True, slots=True)
class Known:
    """A file as this machine last checked it out or committed it."""

    look: tuple[int, int, int]  # inode, mtime in ns, size
    parts: list[bytes]  # a hash of each part
    base: bytes  # content of a JSON file that a commit may have to merge, else b""


@dataclass(slots=True)
class Tree:
    """
    The files of one graph, checked out from Postgres into the folder *root*.

    *graph*: id of the graph's row in the table omg_graphs. *shared*: the row stands for a home instead of a graph. The
    files are then the home's own, such as omg.toml.
    """

    graph: int
    root: Path
    shared: bool = False
    revision: int = -1  # the revision checked out; -1: none
    generation: int = -1
    known: dict[str, Known] = field(default_factory=dict)

    @property
    def left_out(self) -> str:
        return UNREAD if self.shared else DERIVED

    def changes(self, paths: Iterable[str] | None = None) -> dict[str, bytes | None]:
        """Return the files written or removed since the checkout. With *paths*, look only at these, and only for writes."""
        found: dict[str, bytes | None] = dict.fromkeys(self.known if paths is None else ())
        for path in files_below(self.root, self.left_out) if paths is None else paths:
            try:
                look = file_look(file := below(self.root, path))
                if path in self.known and self.known[path].look == look:
                    found.pop(path, None)
                else:
                    found[path] = file.read_bytes()
            except FileNotFoundError:
                continue
        return found

    def check_out(self, conn: Connection[Any], revision: int, generation: int) -> bool:
        """Update the folder to the rows that *conn* sees. Return False if the folder was up to date."""
        if self.revision == revision:
            return False
        rows = conn.execute(
            "SELECT path, max(mtime_ns), string_agg(bytes, ''::bytea ORDER BY part) FILTER (WHERE fresh) FROM (SELECT *,"
            " max(revision) OVER (PARTITION BY path) > %s AS fresh FROM omg_files WHERE graph = %s AND path !~ %s) f"
            " GROUP BY path",
            (self.revision, self.graph, f"^({self.left_out})"),
        ).fetchall()
        for path in self.known.keys() - {path for path, _, _ in rows}:
            below(self.root, path).unlink(missing_ok=True)
            del self.known[path]
        for path, mtime_ns, data in rows:
            if data is not None:
                write_file(below(self.root, path), data, mtime_ns)
                self._know(path, data)
        self.revision, self.generation = revision, generation
        return True

    def commit(
        self, conn: Connection[Any], found: Files, *, advance: bool = False, erases: bool = False
    ) -> None:
        """
        Write the files *found* in the transaction of *conn*.

        *advance*: begin a new generation of the graph. *erases*: the commit removes forgotten words from a graph.

        If another machine changed the same JSON file meanwhile, both versions are merged. In a graph's commit that
        *erases*, the other version is overwritten, because it may hold the forgotten words.

        Raises Stale if the graph's row is gone, or if another machine began a new generation of the graph since the
        checkout. The generation of the home's own files (`shared`) is not compared.
        """
        row = conn.execute(
            "SELECT generation, revision FROM omg_graphs WHERE id = %s FOR UPDATE", (self.graph,)
        ).fetchone()
        # A home's own files are never stale: all its graphs share them, and both versions are merged.
        if row is None or (row[0] != self.generation and not self.shared):
            raise Stale(f"graph {self.graph} was changed elsewhere since it was checked out here")
        generation, revision = row
        if behind := revision != self.revision:
            theirs = self._newer(conn, found)
            if self.shared or not erases:
                found = {**found, **{path: self._merged(path, found[path], theirs[path]) for path in theirs}}
            for path in theirs:
                self.known.pop(path, None)  # Postgres has another version of this file
        self._write_rows(conn, found, revision + 1)
        conn.execute(
            "UPDATE omg_graphs SET revision = revision + 1, generation = generation + %s,"
            " erased = CASE WHEN %s THEN revision + 1 ELSE erased END WHERE id = %s",
            (int(advance), erases, self.graph),
        )
        self.generation = generation + advance
        if not behind:  # otherwise the next checkout fetches the merged files
            self.revision = revision + 1
            for path, data in found.items():
                self.known.pop(path, None)
                if data is not None:
                    self._know(path, data)

    def _know(self, path: str, data: bytes) -> None:
        merges = path.endswith(".json") and (self.shared or path in SERVED)
        look = file_look(below(self.root, path))
        self.known[path] = Known(look, [hash_of(piece) for piece in pieces_of(data)], data if merges else b"")

    def _newer(self, conn: Connection[Any], paths: Iterable[str]) -> dict[str, bytes]:
        """Return path → content in Postgres, for those of *paths* that another machine wrote since the checkout."""
        rows = conn.execute(
            "SELECT path, string_agg(bytes, ''::bytea ORDER BY part) FROM omg_files WHERE graph = %s"
            " AND path = ANY(%s) GROUP BY path HAVING max(revision) > %s",
            (self.graph, [*paths], self.revision),
        )
        return dict(rows.fetchall())

    def _merged(self, path: str, ours: bytes | None, theirs: bytes) -> bytes | None:
        known = self.known.get(path)
        if ours is None or ours == theirs:
            return ours
        if path.endswith(".jsonl"):
            size = known.look[2] if known else 0
            return theirs + ours[size:] if len(ours) >= size else ours
        try:
            base = json.loads(known.base if known else b"{}")
            return json.dumps(merge_values(base, json.loads(ours), json.loads(theirs))).encode()
        except ValueError:
            return ours

    def _write_rows(self, conn: Connection[Any], found: Files, revision: int) -> None:
        """Upsert the changed parts of the files in *found*, and delete the parts that no longer exist."""
        rows, cut = [], []
        for path, data in found.items():
            pieces = [] if data is None else pieces_of(data)
            same = self.known[path].parts if path in self.known else []
            mtime_ns = below(self.root, path).stat().st_mtime_ns if pieces else 0
            cut.append((self.graph, path, len(pieces)))
            for part, piece in enumerate(pieces):
                if part == len(pieces) - 1 or same[part : part + 1] != [hash_of(piece)]:
                    rows.append((self.graph, path, part, revision, mtime_ns, piece))
        with conn.cursor() as cursor:
            cursor.executemany("DELETE FROM omg_files WHERE graph = %s AND path = %s AND part >= %s", cut)
            cursor.executemany(
                "INSERT INTO omg_files (graph, path, part, revision, mtime_ns, bytes) VALUES (%s, %s, %s, %s, %s, %s)"
                " ON CONFLICT (graph, path, part) DO UPDATE SET revision = EXCLUDED.revision,"
                " mtime_ns = EXCLUDED.mtime_ns, bytes = EXCLUDED.bytes",
                rows,
            )


def files_below(root: Path, left_out: str) -> Iterator[str]:
    """Yield the files below *root*, as paths relative to *root*. Left out are paths that match *left_out*, symbolic
    links, temporary files, and names that are not UTF-8."""
    out = re.compile(left_out)
    for folder, folders, names in os.walk(root):
        at = "" if folder == str(root) else Path(folder).relative_to(root).as_posix() + "/"
        folders[:] = [name for name in filter(is_utf8, folders) if not out.match(f"{at}{name}/")]
        for name in filter(is_utf8, names):
            kept = not (out.match(at + name) or LEFTOVER.fullmatch(name) or TEMPORARY.fullmatch(name))
            if kept and not Path(folder, name).is_symlink():
                yield at + name


def is_utf8(name: str) -> bool:
    """Whether *name* is UTF-8, as Postgres requires. Python shows other bytes as lone surrogates."""
    return name.isascii() or not re.search("[\ud800-\udfff]", name)


def hash_of(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def pieces_of(data: bytes) -> list[bytes]:
    return [data[i : i + PART_BYTES] for i in range(0, len(data), PART_BYTES)] or [b""]


def below(root: Path, path: str) -> Path:
    """Return the file at *path* below *root*. Raises BadInput if *path* leads out of *root*."""
    if path.startswith("/") or "\0" in path or ".." in path.split("/"):
        raise BadInput(f"{path!r}: this path leads out of the graph's folder")
    return root / path


def write_file(file: Path, data: bytes, mtime_ns: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    file.write_bytes(data)
    file.chmod(0o600)
    os.utime(file, ns=(mtime_ns, mtime_ns))


def merge_values(base: Any, ours: Any, theirs: Any) -> Any:
    """Merge the changes of both sides into *base*, value by value. *ours* wins where both changed the same value."""
    if not (isinstance(ours, dict) and isinstance(theirs, dict)):
        return theirs if ours == base else ours
    base = base if isinstance(base, dict) else {}
    absent = object()
    made = {}
    for key in {**theirs, **ours}:
        b, o, t = base.get(key, absent), ours.get(key, absent), theirs.get(key, absent)
        value = merge_values(b, o, t) if o is not absent and t is not absent else t if o is b or o == b else o
        if value is not absent:
            made[key] = value
    return made


log = logging.getLogger(__name__)

T = TypeVar("T")

SWEEP_S = 15.0
TRIES = 5  # attempts at one change while other machines commit first
HINDERED_S = 60.0  # pause of a graph whose model does not answer, or whose daily cap is reached
# Idle homes that stay checked out. Each needs a folder and, while it is open, about five file descriptors.
HOMES_KEPT = 64


class Home:
    """A home with one graph, checked out on this machine."""

    def __init__(self, row: GraphRow, root: Path) -> None:
        self.row, self.root = row, root
        self._memory: Memory | None = None
        self.begin()

    @property
    def memory(self) -> Memory:
        assert self._memory is not None
        return self._memory

    def remove(self) -> None:
        if self._memory is not None:
            self._memory.close()
            self._memory = None
        shutil.rmtree(self.root, ignore_errors=True)

    def begin(self) -> None:
        """Empty the folder, so that no file of the graph is checked out."""
        self.remove()
        (self.root / "spool").mkdir(parents=True, mode=0o700)
        self.drops: dict[str, int] = {}  # file in the spool → its row
        self.shared = Tree(self.row.shared, self.root, shared=True)
        folder = self.row.folder  # '': the tenant's home without a graph
        self.own = Tree(self.row.id, self.root / "graphs" / folder) if folder else self.shared

    def bring_up(
        self, store: FleetStore, embedder: Callable[[str], Embedder | None], child: Child, drops: bool
    ) -> None:
        """Check out the files that are newer in Postgres. With *drops*, also copy the waiting drops into the spool."""
        with store.pool.connection() as conn, conn.transaction():
            conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            if (row := graph_row(conn, "g.id = %s", self.row.id)) is None:
                raise NotFound("this graph no longer exists")
            if self.own.revision < row.erased:
                self.begin()
            self.row = row
            again = self.shared.check_out(conn, row.shared_revision, 0)
            changed = self.own.check_out(conn, row.revision, row.generation)
            if drops:
                waiting = "SELECT name, id, bytes FROM omg_drops WHERE graph = %s ORDER BY name"
                for name, id, data in conn.execute(waiting, (row.id,)):
                    (self.root / "spool" / name).write_bytes(data)
                    self.drops[name] = id
        if self._memory is not None and again and "omg.toml" in self.shared.known:
            self._memory.close()
            self._memory = None
        if self._memory is None:
            config = load_config(self.root)
            config = config.model_copy(update={"vaults": {}})  # a tenant's files lie below its own folder
            self._memory = Memory(config, embed=embedder(config.embedding.model), child=child)
            if self.row.folder:
                self._memory.registry.only = marked_identity(self.own.root / GRAPH_MARK)
        registry = self._memory.registry
        if changed and registry.only is not None:  # the checkout changed these files, not a person
            graph = registry.opened(registry.only)
            with graph.lock():
                graph.index.sync(graph.vault)
                graph.index.archive(graph.folder / "archive")

    def is_at(self, row: GraphRow) -> bool:
        """Whether the checked-out files have the revisions that *row* names."""
        at = (self.own.revision, self.shared.revision)
        return self._memory is not None and at == (row.revision, row.shared_revision)

    def commit(self, store: FleetStore, *, night: bool = False) -> None:
        """
        Write the changed files and the graph's next due times to Postgres, in one transaction.

        The due times say when to observe and when to reflect next. *night*: the nightly run was done. Raises Stale, and
        writes nothing, if another machine committed first.
        """
        for graph in self.memory.registry.kept():
            graph.flush()
        own, shared = self.own.changes(), self.shared.changes()
        taken = [id for name, id in self.drops.items() if not (self.root / "spool" / name).exists()]
        erases, gone = FORGOTTEN_MARK in shared, own.get(GRAPH_MARK, b"") is None
        advance = bool(taken or erases or own.keys() - set(SERVED))
        due_at, night_at = (None, None) if gone else self._next_looks()
        with store.pool.connection() as conn, conn.transaction():
            if own or advance:
                self.own.commit(conn, own, advance=advance, erases=erases)
            if shared:
                self.shared.commit(conn, shared, erases=erases)
            conn.execute("DELETE FROM omg_drops WHERE id = ANY(%s)", (taken,))
            if gone:  # the whole graph was forgotten; a file of the home keeps its session from coming back
                conn.execute("DELETE FROM omg_graphs WHERE id = %s", (self.row.id,))
            conn.execute(
                "UPDATE omg_graphs SET due_at = to_timestamp(%s), night_at = CASE WHEN %s THEN NULL WHEN %s"
                " THEN least(night_at, to_timestamp(%s)) ELSE night_at END WHERE id = %s AND generation = %s",
                (due_at, night, advance, night_at, self.row.id, self.own.generation),
            )
        if gone:
            self.begin()

    def keep_served(self, store: FleetStore) -> None:
        """Save what sessions were given and which notes were of use. Raises Stale if another machine committed first."""
        if found := self.own.changes(SERVED):
            with store.pool.connection() as conn, conn.transaction():
                self.own.commit(conn, found)

    def _next_looks(self) -> tuple[float | None, float]:
        """
        Return when to observe the graph next and when to reflect on it next, in seconds since the epoch.

        - To observe: None if there is nothing to observe.
        - To reflect: now, if much has changed. Otherwise in the night, between one and six o'clock in the user's time
          zone. The graph's id decides the exact time, so the graphs do not all start together.
        """
        memory, only = self.memory, self.memory.registry.only
        assert only is not None
        graph, now = memory.registry.opened(only), memory.clock()
        due_at = when_due(graph.state(), graph.pending(), memory.worker.timing(graph.identity.agent), now)
        if due_at is not None and memory.worker.hindered(graph):
            due_at = now.timestamp() + HINDERED_S
        if is_due(graph, memory.config) == "now":
            return due_at, now.timestamp()
        at = now.astimezone(memory.registry.zone)
        night = at.replace(hour=1, minute=0, second=0) + dt.timedelta(seconds=self.row.id * 7919 % 18_000)
        return due_at, (night if night > at else night + dt.timedelta(days=1)).timestamp()


class Homes:
    """
    The homes that this process has checked out.

    At most *kept* homes stay checked out while nobody uses them. All homes ask models through one process, *child*.
    """

    def __init__(
        self,
        store: FleetStore,
        cache: Path,
        *,
        kept: int = HOMES_KEPT,
        child: Child | None = None,
    ) -> None:
        self.store, self.kept, self.child = store, kept, child or Child()
        self.cache = cache / f"omg-fleet-{os.getuid()}"
        self.cache.mkdir(parents=True, exist_ok=True, mode=0o700)
        found = self.cache.stat()
        if found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise ConfigError(
                f"{self.cache}: other accounts can reach it; run `chmod 700` on it, or name another folder with --cache"
            )
        folders = ((folder, emptied(folder)) for folder in (self.cache / str(n) for n in count()))
        self.folder, self._lock = next((folder, fd) for folder, fd in folders if fd is not None)
        self._embedders: dict[str, Embedder | None] = {}
        self._idle: OrderedDict[int, Home] = OrderedDict()  # by graph; the home used last is last
        self._busy: set[int] = set()
        self._free = threading.Condition()
        self.stopping = threading.Event()
        self.empty_dead()
        threading.Thread(target=self._keep_clean, daemon=True).start()

    @contextmanager
    def hold(self, row: GraphRow, *, drops: bool = False) -> Iterator[Home]:
        """
        Lend the home of *row*, up to date with the database, to one caller of this process at a time. With *drops*, the
        home's spool holds the waiting drops. After an error, the next call checks the home out anew. Raises NotFound if
        the graph no longer exists.
        """
        with self._free:
            self._free.wait_for(lambda: row.id not in self._busy)
            home = self._idle.pop(row.id, None) or Home(row, self.folder / str(row.id))
            self._busy.add(row.id)
        try:
            # Only after the wait: what was forgotten during the wait must not be served.
            if drops or (now := self.store.row(row.id)) is None or not home.is_at(now):
                home.bring_up(self.store, self._embedder, self.child, drops)
            yield home
            for name in home.drops:
                (home.root / "spool" / name).unlink(missing_ok=True)
            home.drops = {}
        except BaseException:
            home.begin()
            raise
        finally:
            with self._free:
                self._busy.remove(row.id)
                self._idle[row.id] = home
                while len(self._idle) > self.kept:
                    self._idle.popitem(last=False)[1].remove()
                self._free.notify_all()

    def change(self, row: GraphRow, what: str, do: Callable[[Home], T], *, night: bool = False) -> T:
        """
        Call *do* with the home of *row*, commit the home, and return the result of *do*. If another machine committed first,
        start again. Raises Stale after TRIES attempts. *what* labels the metrics.
        """
        for tries in count(1):
            began = time.monotonic()
            try:
                with self.hold(row, drops=True) as home:
                    said = do(home)
                    home.commit(self.store, night=night)
                WORK_S.labels(what, "done").observe(time.monotonic() - began)
                return said
            except Stale:
                WORK_S.labels(what, "fenced").observe(time.monotonic() - began)
                if tries == TRIES:
                    raise
        raise AssertionError

    def _embedder(self, name: str) -> Embedder | None:
        if name not in self._embedders:
            self._embedders[name] = load_embedder(name)
        return self._embedders[name]

    def sweep(self) -> None:
        """Delete idle homes that still hold text which another machine has forgotten. A home in use is emptied at its next
        use."""
        with self._free:
            held = [*self._idle]
        rows = self.store.ask(
            "SELECT g.id, g.erased, s.erased FROM omg_graphs g JOIN omg_graphs s ON s.tenant = g.tenant"
            " AND s.folder = '' WHERE g.id = ANY(%s)",
            held,
        )
        kept = {id: (own, shared) for id, own, shared in rows}
        with self._free:
            for id in held:
                own, shared = kept.get(id, (math.inf, math.inf))
                home = self._idle.get(id)
                if home and (home.own.revision < own or home.shared.revision < shared):
                    self._idle.pop(id).remove()

    def empty_dead(self) -> None:
        """Empty the folders that killed processes left on this machine."""
        for folder in self.cache.iterdir():
            if (fd := emptied(folder)) is not None:
                os.close(fd)

    def _keep_clean(self) -> None:
        while not self.stopping.wait(SWEEP_S):
            try:
                self.empty_dead()
                self.sweep()
            except Exception as e:
                log.warning(
                    "cleaning the cache failed, the next try is in %d s: %s", SWEEP_S, type(e).__name__
                )

    def stop(self) -> None:
        """Stop asking models. Running work ends without a commit."""
        self.stopping.set()
        self.child.close()

    def __enter__(self) -> Homes:
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()
        for home in self._idle.values():
            home.remove()
        os.close(self._lock)
        self.empty_dead()


def emptied(folder: Path) -> int | None:
    """Lock and empty *folder*. Return the descriptor that holds the lock; None if another process holds the lock."""
    folder.mkdir(exist_ok=True, mode=0o700)
    fd = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return None
    for left in folder.iterdir():
        shutil.rmtree(left, ignore_errors=True)
    return fd


# --- Imports and exports homes.


def import_home(store: FleetStore, tenant: str, folder: Path) -> dict[str, Any]:
    """
    Copy the home in *folder* into *tenant*. Return the number of graphs and files, and the paths left out (links, names
    that are not UTF-8). Raises BadInput, and writes nothing, if the home is in use or the tenant has a memory already.
    """
    if ask_daemon(folder, "/health", {}, timeout_s=5) is not None:
        raise BadInput(f"{folder}: a daemon runs for this home; stop it first with `omg down`")
    if waiting := len([*(folder / "spool").glob("[!.]*.json")]):
        raise BadInput(
            f"{folder}: files waiting in spool/: {waiting}; run `OMG_HOME={folder} omg observe` first"
        )
    id, vaults, files = store.tenant_id(tenant), load_config(folder).vaults, 0
    shared = store.graph(id, "")
    if shared is None or shared.revision or store.graphs(id):
        raise BadInput(f"{tenant}: this tenant has a memory already; import into a tenant without one")
    parts = [(shared.id, "", folder, OF_HOME)]
    with store.pool.connection() as conn, conn.transaction():
        marks = sorted((folder / "graphs").glob(f"[!.]*/{GRAPH_MARK}"))
        for mark in marks:
            row = conn.execute(
                "INSERT INTO omg_graphs (tenant, folder, due_at, night_at) VALUES (%s, %s, now(), now()"
                " + interval '12 hours') RETURNING id",
                (id, mark.parent.name),
            ).fetchone()
            assert row is not None
            parts.append((row[0], "", mark.parent, DERIVED))
            if elsewhere := vaults.get(marked_identity(mark).key):
                parts.append((row[0], "vault/", elsewhere, DERIVED))
        copy = "COPY omg_files (graph, path, part, revision, mtime_ns, bytes) FROM STDIN"
        with conn.cursor() as cursor, cursor.copy(copy) as rows:
            for graph, prefix, root, left_out in parts:
                for path in files_below(root, left_out):
                    file, files = root / path, files + 1
                    for part, piece in enumerate(pieces_of(file.read_bytes())):
                        rows.write_row((graph, prefix + path, part, 1, file.stat().st_mtime_ns, piece))
        # A server that has already checked the tenant out must read the new rows.
        conn.execute("UPDATE omg_graphs SET revision = 1 WHERE tenant = %s", (id,))
    there = {path for _, _, root, _ in parts for path in root.rglob("*")}
    left = sorted(str(path) for path in there if path.is_symlink() or not is_utf8(str(path)))
    return {"graphs": len(marks), "files": files, "left": left}


def export_home(store: FleetStore, tenant: str, folder: Path) -> int:
    """Write the tenant's files and drops as a home into *folder*, which must be empty. Return the number of files."""
    if folder.exists() and any(folder.iterdir()):
        raise BadInput(f"{folder}: this folder is not empty; name an empty or a new one")
    id, written = store.tenant_id(tenant), 0
    with store.pool.connection() as conn, conn.cursor() as cursor:
        for name, path, data, mtime_ns in cursor.stream(
            "SELECT g.folder, f.path, string_agg(f.bytes, ''::bytea ORDER BY f.part), max(f.mtime_ns)"
            " FROM omg_files f JOIN omg_graphs g ON g.id = f.graph WHERE g.tenant = %s GROUP BY 1, 2 UNION ALL"
            " SELECT '', 'spool/' || d.name, d.bytes, (extract(epoch FROM d.came_at) * 1e9)::bigint FROM omg_drops d"
            " JOIN omg_graphs g ON g.id = d.graph WHERE g.tenant = %s",
            (id, id),
        ):
            write_file(below(folder, f"graphs/{name}/{path}" if name else path), data, mtime_ns)
            written += 1
    return written
