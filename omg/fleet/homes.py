"""
Graphs checked out on this machine, each as a small home with one graph in it, on which the code of a home runs unchanged.

    <cache>/<process>/<graph>/        omg.toml, owners.json, … of the tenant
        graphs/<folder>/              the graph
        spool/                        its drops, while somebody works on it

A process has a folder of its own, which is removed at its end, or by another process of this machine where it was
killed. What somebody took away elsewhere leaves this cache within SWEEP_S, and before anything more is served of it.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..config import load_config
from ..embed import Embedder, load_embedder
from ..errors import NotFound, Stale
from ..forget.places import FORGOTTEN_MARK
from ..graph.graph import GRAPH_MARK, marked_identity
from ..llm.child import Child
from ..memory import Memory
from .store import GraphRow, Store, graph_row
from .tree import SERVED, Tree

log = logging.getLogger(__name__)

SWEEP_S = 15.0
HOMES_KEPT = 64  # checked out; each is a folder, and some five descriptors while it is open
DEFAULT_CACHE = Path("/var/tmp")  # a disk, not the memory that /tmp may be


class Home:
    """One graph's home on this machine. Whoever uses it holds `guard`."""

    def __init__(self, row: GraphRow, root: Path) -> None:
        self.row, self.root, self.guard = row, root, threading.RLock()
        self.memory: Memory | None = None
        self.drops: dict[str, int] = {}  # file in the spool → its row
        self.begin()

    def begin(self) -> None:
        """Nothing is checked out."""
        self.close()
        shutil.rmtree(self.root, ignore_errors=True)
        self.root.mkdir(parents=True, mode=0o700)
        self.drops = {}
        self.shared = Tree(self.row.shared, self.root, shared=True)
        folder = self.row.folder  # '': the tenant's home without a graph
        self.own = Tree(self.row.id, self.root / "graphs" / folder) if folder else self.shared

    def is_at(self, row: GraphRow) -> bool:
        """Whether what is checked out is what *row* says."""
        return (self.own.generation, self.own.served, self.shared.generation) == (
            row.generation,
            row.served,
            row.shared_generation,
        )

    def close(self) -> None:
        if self.memory is not None:
            self.memory.close()
            self.memory = None

    # --- the end of a work

    def commit(self, store: Store, *, due_at: float | None = None, night: bool = False) -> bool:
        """
        Write what changed here, in one transaction; whether anything did. *due_at*: when to look at what waits, in
        seconds since the epoch; *night*: there was one.

        Raises Stale where another machine was quicker: nothing is written then.
        """
        assert self.memory is not None
        for graph in self.memory.registry.kept():
            graph.flush()
        found, removed = self.own.changes()
        if not found and GRAPH_MARK in removed:
            return self._remove(store)
        shared, gone = self.shared.changes()
        taken = [id for name, id in self.drops.items() if not (self.root / "spool" / name).exists()]
        erases = FORGOTTEN_MARK in shared
        whole = bool(removed or taken or night or set(found) - set(SERVED))
        if not (whole or found or shared or gone):
            return False
        own = beside = None
        with store.pool.connection() as conn, conn.transaction():
            if whole or erases:
                own = self.own.commit(conn, found, removed, erases=erases)
            elif found:
                own = self.own.keep_served(conn, found)
            if shared or gone:
                beside = self.shared.add_shared(conn, shared, gone)
            if taken:
                conn.execute("DELETE FROM omg_drops WHERE id = ANY(%s)", (taken,))
            if whole:
                conn.execute(
                    "UPDATE omg_graphs SET due_at = to_timestamp(%s), night_at = CASE WHEN %s THEN NULL"
                    " ELSE coalesce(night_at, to_timestamp(%s)) END WHERE id = %s",
                    (due_at, night, self._next_night(), self.row.id),
                )
        if own is not None:
            self.own.settle(found, removed, own)
        if beside is not None:
            self.shared.settle(shared, gone, beside)
        return True

    def keep_served(self, store: Store) -> None:
        """Write what sessions were given, after an answer that changes nothing else. Raises Stale as `commit` does."""
        if found := self.own.written(SERVED):
            with store.pool.connection() as conn, conn.transaction():
                at = self.own.keep_served(conn, found)
            self.own.settle(found, (), at)

    def _remove(self, store: Store) -> bool:
        """The graph was forgotten whole; what keeps its session from coming back is a file of the home."""
        shared, gone = self.shared.changes()
        with store.pool.connection() as conn, conn.transaction():
            if self.own.locked(conn)[0] != self.own.generation:
                raise Stale(f"graph {self.row.id} has changed since it was checked out")
            self.shared.add_shared(conn, shared, gone)
            conn.execute("DELETE FROM omg_graphs WHERE id = %s", (self.row.id,))
        self.begin()
        return True

    def _next_night(self) -> float:
        """The next night where the user is, from one to six o'clock, each graph at a time of its own."""
        from datetime import timedelta

        assert self.memory is not None
        now = self.memory.clock().astimezone(self.memory.registry.zone)
        night = now.replace(hour=1, minute=0, second=0, microsecond=0) + timedelta(
            seconds=self.row.id * 7919 % 18_000
        )
        return (night if night > now else night + timedelta(days=1)).timestamp()


class Homes:
    def __init__(
        self,
        store: Store,
        cache: Path = DEFAULT_CACHE,
        *,
        kept: int = HOMES_KEPT,
        child: Child | None = None,
    ) -> None:
        self.store, self.kept = store, kept
        self.cache = cache / f"omg-fleet-{os.getuid()}"
        self.cache.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder = self.cache / f"{os.getpid()}-{os.urandom(4).hex()}"
        # Locked under another name first: another process removes what nobody holds.
        made = self.cache / f"{self.folder.name}.new"
        self._lock = made.open("w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        made.rename(made.with_suffix(".lock"))
        self.folder.mkdir(mode=0o700)
        self.child = child or Child()  # which all homes share
        self._embedders: dict[str, Embedder | None] = {}
        self._homes: OrderedDict[int, Home] = OrderedDict()
        self._guard = threading.Lock()
        self.stopping = threading.Event()
        self.remove_dead()
        threading.Thread(target=self._keep_clean, daemon=True).start()

    @contextmanager
    def hold(self, row: GraphRow, *, drops: bool = False) -> Iterator[Home]:
        """
        The home of *row*, up to its rows, while nobody else of this process uses it; with *drops* what waits is in its
        spool. Whatever is raised, the home is begun anew with the next use.

        Raises NotFound for a graph that is there no more.
        """
        home = self._held(row)
        try:
            with (
                self.store.pool.connection() as conn
            ):  # now that nobody else is at it: what was forgotten is not served
                now = graph_row(conn, "g.id = %s", (row.id,))
            if drops or now is None or home.memory is None or not home.is_at(now):
                self._check_out(home, drops)
            yield home
            for name in home.drops:
                (home.root / "spool" / name).unlink(missing_ok=True)
            home.drops = {}
        except BaseException:
            home.begin()
            raise
        finally:
            home.guard.release()
            self._trim()

    def _held(self, row: GraphRow) -> Home:
        """The home of *row*, its guard held."""
        while True:
            home = self._home(row)
            home.guard.acquire()
            if self._homes.get(row.id) is home:
                return home
            home.guard.release()  # it was dropped while we waited

    def _home(self, row: GraphRow) -> Home:
        with self._guard:
            home = self._homes.get(row.id)
            if home is None:
                home = self._homes[row.id] = Home(row, self.folder / str(row.id))
            self._homes.move_to_end(row.id)
        return home

    def _check_out(self, home: Home, drops: bool) -> None:
        with self.store.pool.connection() as conn, conn.transaction():
            conn.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            row = graph_row(conn, "g.id = %s", (home.row.id,))
            if row is None:
                raise NotFound("that graph is there no more")
            if home.own.generation < row.erased:
                home.begin()
            home.row = row
            again = home.shared.check_out(conn, row.shared_generation, 0)
            changed = home.own.check_out(conn, row.generation, row.served)
            waiting = (
                conn.execute(
                    "SELECT name, id, bytes FROM omg_drops WHERE graph = %s ORDER BY name", (row.id,)
                )
                if drops
                else ()
            )
            spool = home.root / "spool"
            spool.mkdir(exist_ok=True, mode=0o700)
            for name, id, data in waiting:
                (spool / name).write_bytes(data)
                home.drops[name] = id
        if home.memory is None or (again and "omg.toml" in home.shared.looks):
            home.close()
            home.memory = self._opened(home)
        if changed:
            take_in_files(home)

    def _opened(self, home: Home) -> Memory:
        config = load_config(home.root)
        config = config.model_copy(update={"vaults": {}})  # a tenant's files lie below its own folder
        name = config.embedding.model
        if name not in self._embedders:
            self._embedders[name] = load_embedder(name)
        memory = Memory(config, embed=self._embedders[name], child=self.child)
        if home.row.folder:
            memory.registry.only = marked_identity(home.own.root / GRAPH_MARK)
        return memory

    def _trim(self) -> None:
        """Drop those used last of all, of which nobody is at work."""
        with self._guard:
            for id in [*self._homes][: max(0, len(self._homes) - self.kept)]:
                self._drop(id)

    def _drop(self, id: int) -> bool:
        home = self._homes[id]
        if not home.guard.acquire(blocking=False):
            return False
        try:
            home.close()
            shutil.rmtree(home.root, ignore_errors=True)
            del self._homes[id]
        finally:
            home.guard.release()
        return True

    def sweep(self) -> None:
        """Drop the homes from which something was taken away elsewhere; one in use is begun anew by its next use."""
        with self._guard:
            held = {id: home.own.generation for id, home in self._homes.items()}
        with self.store.pool.connection() as conn:
            rows = conn.execute("SELECT id, erased FROM omg_graphs WHERE id = ANY(%s)", ([*held],)).fetchall()
        erased: dict[int, int] = dict(rows)
        for id, generation in held.items():
            if id not in erased or 0 <= generation < erased[id]:
                with self._guard, suppress(KeyError):
                    self._drop(id)

    def remove_dead(self) -> None:
        """Remove what processes of this machine left that were killed."""
        for lock in self.cache.glob("*.lock"):
            with suppress(OSError), lock.open("r+") as f:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
                lock.unlink()

    def _keep_clean(self) -> None:
        while not self.stopping.wait(SWEEP_S):
            try:
                self.remove_dead()
                self.sweep()
            except Exception as e:
                log.warning("the cache is looked through again in %d s: %s", SWEEP_S, type(e).__name__)

    def stop(self) -> None:
        """Ask no model any more; what is under way ends, and is not committed."""
        self.stopping.set()
        self.child.close()

    def close(self) -> None:
        self.stop()
        for home in list(self._homes.values()):
            home.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        self._lock.close()
        (self.cache / f"{self.folder.name}.lock").unlink(missing_ok=True)

    def __enter__(self) -> Homes:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def take_in_files(home: Home) -> None:
    """Bring the index up to files that a checkout wrote: they are nobody's edits, and what is gone nobody deleted by hand."""
    assert home.memory is not None
    if home.memory.registry.only is None:
        return
    graph = home.memory.registry.opened(home.memory.registry.only)
    with graph.lock():
        graph.index.sync(graph.vault)
        graph.index.archive(graph.folder / "archive")
