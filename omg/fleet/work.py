"""
`omg fleet work`: runs Procrastinate's jobs, any number at once, on any machine.

A job carries the id of a graph and nothing else. Its lock is the graph, so no two workers are at one, and what waits
for a graph is one job of each kind. A job checks its graph out, runs what a home runs, and commits. If another machine
was quicker, or this one was away for longer than its lease, nothing is written and the job is done again on what there
is now.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import NotFound, OmgError, error_text
from ..llm.child import Child
from ..memory import Memory
from ..worker.delegate import rebuild_each
from ..worker.nights import reflect_each
from .homes import DEFAULT_CACHE, Home, Homes
from .store import WORK_S, Store, opened_pool

if TYPE_CHECKING:
    from procrastinate import App

log = logging.getLogger(__name__)

LEASE_S = 30.0  # without a sign of life from its worker a job is another's
PATIENCE = 120  # seconds for Postgres to come back, before a worker begins anew
TICK = "* * * * * */5"  # every five seconds, once in the whole fleet
AT_ONCE = 500  # graphs that one tick makes jobs for
AGAIN_S = 60.0  # until a job is tried again that failed


def reflect_night(memory: Memory) -> None:
    for night in reflect_each(memory.worker):
        if night.error:
            log.warning("not reflected: %s", night.error)


WORK: dict[str, Callable[[Memory], object]] = {
    "observe": lambda memory: memory.work(),
    "reflect": reflect_night,
    "rebuild": lambda memory: rebuild_each(memory.worker, {"swap": True}),
}


def do_job(store: Store, homes: Homes, kind: str, graph: int) -> None:
    """Do the work and commit it. What goes wrong makes the graph wait, and never fails the job."""

    def work(home: Home) -> None:
        WORK[kind](home.memory)
        if homes.stopping.is_set():  # the model was not waited for
            raise OmgError("the worker stops")

    if (row := store.row(graph)) is None:
        return
    try:
        return homes.change(row, kind, work, night=kind == "reflect")
    except NotFound:
        return  # removed meanwhile
    except (OmgError, OSError) as e:
        log.warning("graph %d: %s waits: %s", graph, kind, error_text(e))
    except Exception:
        log.exception("graph %d: %s waits", graph, kind)
    WORK_S.labels(kind, "failed").observe(0)
    column = "night_at" if kind == "reflect" else "due_at"
    store.ask(
        f"UPDATE omg_graphs SET {column} = now() + make_interval(secs => %s) WHERE id = %s", AGAIN_S, graph
    )


def tick(store: Store, lease_s: float = LEASE_S) -> dict[str, int]:
    """Make the jobs that are due, and a new one for each that stalled, and end locks that are held for longer than a lease."""
    # Retrying a stalled job would meet the unique index of those that wait: it is deleted, and made anew.
    stalled = store.ask(
        "DELETE FROM procrastinate_jobs j WHERE status = 'doing' AND NOT EXISTS (SELECT 1 FROM"
        " procrastinate_workers w WHERE w.id = j.worker_id AND w.last_heartbeat > now() - make_interval(secs => %s))"
        " RETURNING task_name, (args ->> 'graph')::bigint",
        lease_s,
    )
    due = store.ask(
        # due, or with drops that no job was made for: a server was killed between the two
        "SELECT 'observe', id FROM omg_graphs WHERE due_at <= now() UNION SELECT 'observe', graph FROM omg_drops d"
        " WHERE came_at < now() - interval '20 seconds' AND NOT EXISTS (SELECT 1 FROM procrastinate_jobs j"
        " WHERE j.lock = 'graph:' || d.graph AND j.status IN ('todo', 'doing')) LIMIT %s",
        AT_ONCE,
    )
    nights = store.ask(
        "SELECT 'reflect', id FROM omg_graphs WHERE night_at <= now() ORDER BY night_at LIMIT %s", AT_ONCE
    )
    # A process that was stopped in the middle of a commit loses it, once somebody waits for its lock. (No timeout of
    # Postgres 15 ends a transaction that rests after psycopg's executemany.)
    store.ask(
        "SELECT pg_terminate_backend(b.pid) FROM pg_stat_activity w JOIN pg_stat_activity b ON b.pid = ANY"
        "(pg_blocking_pids(w.pid)) WHERE w.wait_event_type = 'Lock' AND w.datname = current_database()"
        " AND b.xact_start < now() - make_interval(secs => %s)",
        lease_s,
    )
    for kind, graph in due + nights + stalled:
        if kind in WORK:
            store.defer(kind, graph)
    if stalled:
        log.warning("%d jobs of workers that show no life are made anew", len(stalled))
    return {"stalled": len(stalled), "due": len(due), "nights": len(nights)}


def make_app(url: str) -> App:
    """Procrastinate's app, without tasks."""
    from procrastinate import App, PsycopgConnector
    from procrastinate.exceptions import ConnectorException
    from psycopg import OperationalError

    class PatientConnector(PsycopgConnector):
        """Says again that a job is finished if Postgres was away: else it would be nobody's and never end."""

        async def execute_query_async(self, *args: Any, **kwargs: Any) -> None:
            for second in range(PATIENCE):
                try:
                    await super().execute_query_async(*args, **kwargs)
                    return
                except ConnectorException as e:
                    if not isinstance(e.__cause__, OperationalError) or second == PATIENCE - 1:
                        raise
                    await asyncio.sleep(1)

    return App(connector=PatientConnector(conninfo=url, min_size=1, max_size=4))


def run_worker(
    url: str,
    *,
    parallel: int = 4,
    cache: Path = DEFAULT_CACHE,
    lease_s: float = LEASE_S,
    child: Child | None = None,
) -> None:
    """Work until SIGTERM or SIGINT. *child* asks the models, else one of our own."""
    with opened_pool(url, parallel + 2) as pool:
        store = Store(pool)
        with Homes(store, cache, kept=max(64, 4 * parallel), child=child) as homes:
            app = make_app(url)
            for kind in WORK:
                app.task(name=kind)(partial(do_job, store, homes, kind))

            @app.periodic(cron=TICK)
            @app.task(name="tick", queueing_lock="tick", priority=1)  # before any graph's job
            def tick_task(timestamp: int) -> None:
                tick(store, lease_s)

            asyncio.run(keep_working(app, homes, parallel, lease_s))


async def keep_working(app: App, homes: Homes, parallel: int, lease_s: float) -> None:
    """Take jobs; begin anew when Procrastinate's worker gave up because Postgres was away."""

    async def work() -> None:
        while True:
            try:
                async with app.open_async():
                    await app.run_worker_async(
                        concurrency=parallel,
                        delete_jobs="always",
                        install_signal_handlers=False,
                        fetch_job_polling_interval=2.0,
                        update_heartbeat_interval=lease_s / 3,
                        stalled_worker_timeout=lease_s,
                        shutdown_graceful_timeout=lease_s,
                    )
            except Exception as e:
                log.warning("the worker begins anew: %s", type(e).__name__)
            await asyncio.sleep(1)

    def stop() -> None:
        homes.stop()
        working.cancel()

    working = asyncio.create_task(work())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    with suppress(asyncio.CancelledError):
        await working
