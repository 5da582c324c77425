"""
The jobs of a fleet, by Procrastinate: which there are, when they are made, and what becomes of a stalled one.

A job carries the id of a graph and nothing else. Its lock is the graph, so that two workers are never at one, and what
waits for a graph is one job of each kind. What a job does is in work.py.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from .store import Store

if TYPE_CHECKING:
    from procrastinate import App

KINDS = ("observe", "reflect", "rebuild")
LEASE_S = 30.0  # without a sign of life from its worker a job is another's
PATIENCE_S = 120.0  # for Postgres to come back, before a worker begins anew
TICK = "* * * * * */5"  # every five seconds, in the whole fleet once
AT_ONCE = 500  # graphs that one tick makes jobs for

log = logging.getLogger(__name__)


def make_app(url: str) -> App:
    """Procrastinate's app, without tasks."""
    from procrastinate import App, PsycopgConnector
    from procrastinate.exceptions import ConnectorException
    from psycopg import OperationalError

    class PatientConnector(PsycopgConnector):
        """Waits for Postgres: a job that could not be told to be finished would be nobody's and never end."""

        async def execute_query_async(self, *args: Any, **kwargs: Any) -> None:
            await patiently(super().execute_query_async, *args, **kwargs)

        async def execute_query_one_async(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
            return dict(await patiently(super().execute_query_one_async, *args, **kwargs))

    async def patiently(ask: Any, *args: Any, **kwargs: Any) -> Any:
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE_S
        while True:
            try:
                return await ask(*args, **kwargs)
            except ConnectorException as e:
                if not isinstance(e.__cause__, OperationalError) or loop.time() > until:
                    raise
                log.warning(
                    "Postgres does not answer (%s); asked again in a second", type(e.__cause__).__name__
                )
                await asyncio.sleep(1)

    return App(connector=PatientConnector(conninfo=url, min_size=1, max_size=4))


def defer(store: Store, kind: str, graph: int) -> bool:
    """Make the job *kind* of *graph*; False if one waits already."""
    from psycopg.errors import UniqueViolation

    try:
        with store.pool.connection() as conn:
            conn.execute(
                "SELECT procrastinate_defer_jobs_v1(ARRAY[ROW('default', %s, 0, %s, %s, %s::jsonb, NULL)"
                "::procrastinate_job_to_defer_v1])",
                (kind, f"graph:{graph}", f"{kind}:{graph}", f'{{"graph": {int(graph)}}}'),
            )
    except UniqueViolation:
        return False
    return True


def tick(store: Store, lease_s: float = LEASE_S) -> dict[str, int]:
    """Make the jobs that are due, and a new one for each that stalled; returns how many of each."""
    with store.pool.connection() as conn:
        # Retrying a stalled job would meet the unique index of those that wait: it is deleted, and made anew.
        stalled = conn.execute(
            "DELETE FROM procrastinate_jobs j WHERE status = 'doing' AND NOT EXISTS (SELECT 1 FROM"
            " procrastinate_workers w WHERE w.id = j.worker_id AND w.last_heartbeat > now() - make_interval(secs => %s))"
            " RETURNING task_name, args ->> 'graph'",
            (lease_s,),
        ).fetchall()
        waiting = conn.execute(
            # due, or with drops that no job was made for: a server was killed between the two
            "SELECT id FROM omg_graphs WHERE due_at <= now() UNION SELECT graph FROM omg_drops d WHERE came_at <"
            " now() - interval '20 seconds' AND NOT EXISTS (SELECT 1 FROM procrastinate_jobs j WHERE j.lock ="
            " 'graph:' || d.graph AND j.status IN ('todo', 'doing')) LIMIT %s",
            (AT_ONCE,),
        ).fetchall()
        nights = conn.execute(
            "SELECT id FROM omg_graphs WHERE night_at <= now() ORDER BY night_at LIMIT %s", (AT_ONCE,)
        ).fetchall()
    made = [("observe", id) for (id,) in waiting] + [("reflect", id) for (id,) in nights]
    made += [(kind, int(id)) for kind, id in stalled if kind in KINDS and id]
    for kind, id in made:
        defer(store, kind, id)
    if stalled:
        log.warning("%d jobs of workers that show no life are made anew", len(stalled))
    return {"stalled": len(stalled), "due": len(waiting), "nights": len(nights)}
