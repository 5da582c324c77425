"""
`omg fleet work`: takes jobs, any number at once, on any machine.

A job checks its graph out, runs what a home runs, and commits. Where another machine was quicker, or this one was
away for longer than its lease, the commit changes nothing and the work is done again on what is there now.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import NotFound, OmgError, Stale, error_text
from ..llm.child import Child
from ..memory import Memory
from ..reflect.run import is_due
from ..worker.delegate import rebuild_each
from ..worker.nights import reflect_each
from ..worker.schedule import last_ms, rests_count, retry_at
from . import metrics
from .homes import DEFAULT_CACHE, Home, Homes
from .jobs import LEASE_S, TICK, defer, make_app, tick
from .store import Store, graph_row, opened_pool

log = logging.getLogger(__name__)

TRIES = 3  # of one job, where another machine is quicker each time; then it waits with the others
AGAIN_S = 60.0  # after what no state could keep


def observe_due(memory: Memory) -> None:
    memory.take_in()
    memory.work()


def reflect_night(memory: Memory) -> None:
    for night in reflect_each(memory.worker):
        if night.error:
            log.warning("not reflected: %s", night.error)


def rebuild_notes(memory: Memory) -> None:
    rebuild_each(memory.worker, {"swap": True})


WORK: dict[str, Callable[[Memory], None]] = {
    "observe": observe_due,
    "reflect": reflect_night,
    "rebuild": rebuild_notes,
}


def do_job(store: Store, homes: Homes, kind: str, graph: int) -> None:
    """Do the work and commit it. What goes wrong makes the graph wait, and never fails the job."""
    began = time.monotonic()
    for _ in range(TRIES):
        try:
            with store.pool.connection() as conn:
                row = graph_row(conn, "g.id = %s", (graph,))
            if row is None:
                return
            with homes.hold(row, drops=True) as home:
                assert home.memory is not None
                WORK[kind](home.memory)
                if homes.stopping.is_set():  # the model was not waited for: another does this again
                    return home.begin()
                due_at, more = next_look(home)
                if not home.commit(store, due_at=due_at, night=kind == "reflect"):
                    note_look(store, home, due_at)
            if more and kind == "observe":
                defer(store, "reflect", graph)
            metrics.job_done(kind, time.monotonic() - began)
            return
        except Stale as e:
            metrics.FENCED.labels(kind).inc()
            log.info("%s is done again: %s", kind, e)
        except NotFound:
            return  # removed meanwhile
        except (OmgError, OSError) as e:
            log.warning("graph %d: %s waits: %s", graph, kind, error_text(e))
            break
        except Exception:
            log.exception("graph %d: %s waits", graph, kind)
            break
    metrics.FAILED.labels(kind).inc()
    column = "night_at" if kind == "reflect" else "due_at"
    with store.pool.connection() as conn:
        conn.execute(
            f"UPDATE omg_graphs SET {column} = now() + make_interval(secs => %s) WHERE id = %s",
            (AGAIN_S, graph),
        )


def note_look(store: Store, home: Home, due_at: float | None) -> None:
    """Nothing was to do: when to look again."""
    with store.pool.connection() as conn:
        conn.execute(
            "UPDATE omg_graphs SET due_at = to_timestamp(%s) WHERE id = %s AND generation = %s AND due_at IS NOT NULL",
            (due_at, home.row.id, home.own.generation),
        )


def next_look(home: Home) -> tuple[float | None, bool]:
    """When to look at what waits, in seconds since the epoch; and whether enough changed to reflect now."""
    memory = home.memory
    assert memory is not None and memory.registry.only is not None
    graph = memory.registry.opened(memory.registry.only)
    state, pending, options = graph.state(), graph.pending(), memory.config.observation
    more = is_due(graph, memory.config) == "now"
    if not pending:
        return None, more
    now = memory.clock().timestamp()
    if memory.worker.hindered(graph):
        return now + AGAIN_S, more
    if state.failures:
        return max(retry_at(state), now), more
    if memory.worker.due(graph):
        return now, more
    return (last_ms(pending) / 1000 + options.quiet_after if rests_count(options) else None), more


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

            def doing(kind: str) -> Callable[[int], None]:
                def run(graph: int) -> None:
                    do_job(store, homes, kind, graph)

                return run

            for kind in WORK:
                app.task(name=kind)(doing(kind))

            @app.periodic(cron=TICK)
            @app.task(name="tick", queue="tick", queueing_lock="tick")
            def tick_task(timestamp: int) -> None:
                tick(store, lease_s)

            asyncio.run(keep_working(app, homes, parallel, lease_s))


async def keep_working(app: Any, homes: Homes, parallel: int, lease_s: float) -> None:
    """Take jobs; begin anew when the worker gave up, as where Postgres was away."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    while not stop.is_set():
        try:
            async with app.open_async():
                # The tick has a worker of its own: it does not wait for the jobs.
                workers = [
                    asyncio.create_task(
                        app.run_worker_async(
                            queues=[queue],
                            concurrency=at_once,
                            delete_jobs="always",
                            install_signal_handlers=False,
                            fetch_job_polling_interval=2.0,
                            update_heartbeat_interval=lease_s / 3,
                            stalled_worker_timeout=lease_s,
                            shutdown_graceful_timeout=lease_s,
                        )
                    )
                    for queue, at_once in (("default", parallel), ("tick", 1))
                ]
                stopping = asyncio.create_task(stop.wait())
                await asyncio.wait((*workers, stopping), return_when=asyncio.FIRST_COMPLETED)
                if stop.is_set():
                    homes.stop()
                for task in (*workers, stopping):
                    task.cancel()
                await asyncio.gather(*workers, stopping, return_exceptions=True)
        except Exception as e:
            log.warning("the worker begins anew: %s", type(e).__name__)
        if not stop.is_set():
            await asyncio.sleep(1)
