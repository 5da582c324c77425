"""
The processes of a fleet: `omg fleet serve` answers the gateways, `omg fleet work` observes and reflects.

Serving: the daemon's routes over HTTP, with a bearer token for each tenant.

    POST /drop/NAME                      stores a turn in the database, then answers
    POST /inject /tool /command /corpus /search /context/assemble /forget /status    answer from the graph
    POST /work /reflect /rebuild         make a job
    POST /health   GET /metrics

The token and the session decide which graph a request may use, before any file is read. Each answer first compares the
graph's revision with the database, so no answer comes from an outdated copy.

Working: Procrastinate's jobs, any number at once, on any machine. A job names one graph and locks it, so two workers never
change one graph. At most one job of each kind waits for a graph. A job checks its graph out, does what a home's daemon
does, and commits. If another machine committed first, nothing is written, and the job starts again from the newer graph.
"""

from __future__ import annotations

import asyncio
import logging
import re
import signal
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from ..daemon import BODY_BYTES, cut_answer, shared_answers
from ..errors import BadInput, NotFound, OmgError, Stale, error_text
from ..graph.state import parsed_object
from ..identity import Identity, is_remembered
from ..llm.child import Child
from ..memory import MAIN, Memory
from ..secrets import redact
from ..text.tokens import count_tokens
from ..tools.reading import mapping_in
from ..tools.removing import Codes
from ..tools.tools import CHANGING, graph_of
from ..worker.intake import DropReader
from ..worker.nights import rebuild_each, reflect_each
from .homes import Home, Homes
from .store import REQUEST_S, WORK_S, FleetStore, GraphRow, opened_pool

if TYPE_CHECKING:
    from procrastinate import App
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

log = logging.getLogger(__name__)

DROP_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z.-]{0,150}\.json")
DEADLINE_S = 0.12  # for the answer to a prompt: the plugin waits 150 ms
LAST_GIVEN_SHARE = 0.3  # the part of the deadline that is kept for reading what a session was last given
THREADS = 16
TENANT_AT_ONCE = 6  # requests of one tenant that are answered at once; the others wait without a thread
# Path → the job that a request makes, and the answer: the daemon's answer if nothing is done yet.
JOBS: dict[str, tuple[str, dict[str, Any]]] = {
    "/work": ("observe", {"batches": 0, "messages": 0, "files": 0, "waiting": []}),
    "/reflect": ("reflect", {"graphs": []}),
    "/rebuild": ("rebuild", {}),
}

Answer = Callable[[Memory, dict[str, Any]], Mapping[str, Any]]


class Serving:
    def __init__(self, store: FleetStore, homes: Homes) -> None:
        self.store, self.homes, self.codes = store, homes, Codes()
        self.reader = DropReader(apart=True)
        self.threads = ThreadPoolExecutor(THREADS)
        self.turns: WeakValueDictionary[int, asyncio.Semaphore] = WeakValueDictionary()  # by tenant
        self.answers: dict[str, Answer] = {
            **shared_answers(self.codes),
            "/context/assemble": assemble,
            "/forget": forget_answer,
        }

    def lobby(self, tenant: int) -> GraphRow:
        """Return the row of the tenant's own files, which say whose memory a session uses. Raises NotFound."""
        if (row := self.store.graph(tenant, "")) is None:
            raise NotFound("no such tenant")
        return row

    def identity(self, tenant: int, body: Mapping[str, Any]) -> Identity | None:
        """Return whose memory the session in *body* uses: the owner's if no session is named, None if nobody's."""
        about = mapping_in(body, "context") or body
        session = about.get("sessionKey") or about.get("session") or about.get("identity") or MAIN
        with self.homes.hold(self.lobby(tenant)) as home:
            return home.memory.registry.asking(about, str(session))

    def drop(self, tenant: int, name: str, data: bytes) -> dict[str, Any]:
        """Store the drop *data*, and make the job that observes it. Raises BadInput if *data* is not a drop."""
        if not DROP_NAME.fullmatch(name):
            raise BadInput(f"{name[:80]!r} is no name of a drop; the form is <ms>-<uuid>.json")
        with tempfile.TemporaryDirectory(dir=self.homes.folder) as folder:
            file = Path(folder, name)
            file.write_bytes(data)
            turn, _ = self.reader.read(file, ())  # the worker decides which messages are remembered
        with self.homes.hold(self.lobby(tenant)) as home:
            registry = home.memory.registry
            if (who := registry.whose(turn)) is None:
                return {"taken": False}
            registry.note_speakers(turn)
            if found := home.own.changes():
                with self.store.pool.connection() as conn, conn.transaction():
                    home.own.commit(conn, found)
        row = self.store.make_graph(tenant, who)
        self.store.put_drop(row.id, name, data)
        self.store.defer("observe", row.id)  # only now, so that a waiting job sees the drop
        return {"taken": True}

    def answer(self, tenant: int, path: str, body: dict[str, Any]) -> Mapping[str, Any]:
        nothing: dict[str, Any] = {"hits": [], "said": []} if path == "/search" else {}
        if (who := self.identity(tenant, body)) is None:
            return nothing
        tool = body.get("name") if path == "/tool" else ""
        makes = tool == "omg_remember"
        row = self.store.make_graph(tenant, who) if makes else self.store.graph(tenant, who.folder)
        if row is None:
            return nothing
        body = {**body, "identity": None}  # the home that answers has one graph
        if path in JOBS:
            kind, nothing_yet = JOBS[path]
            return {**nothing_yet, "queued": kind, "new": self.store.defer(kind, row.id)}
        try:
            if makes or tool in CHANGING or path in ("/command", "/forget"):
                return self.homes.change(row, path, lambda home: self.answers[path](home.memory, body))
            with self.homes.hold(row) as home:
                said = self.answers[path](home.memory, body)
                with suppress(Stale):  # the graph has changed meanwhile: what was given is not saved
                    home.keep_served(self.store)
                return said
        except NotFound:
            if self.store.row(row.id) is None:
                return nothing  # the whole graph was forgotten meanwhile
            raise

    def last_given(self, tenant: int, body: dict[str, Any]) -> dict[str, Any]:
        """Return the `system` slice that the session was last given; {} if that slice is outdated."""
        who = self.identity(tenant, body)
        if who is None or not is_remembered(body):
            return {}
        found = self.store.ask(
            "SELECT s #>> ARRAY['sessions', %s, 'system'] FROM (SELECT convert_from(string_agg(bytes, ''::bytea"
            " ORDER BY part), 'UTF8')::json s FROM omg_files f JOIN omg_graphs g ON g.id = f.graph WHERE g.tenant = %s"
            " AND g.folder = %s AND path = 'state.json') f WHERE s #>> ARRAY['sessions', %s, 'epoch'] = s ->> 'epoch'",
            session := str(body.get("sessionKey") or ""), tenant, who.folder, session,
        )  # fmt: skip
        return {"appendSystemContext": found[0][0]} if found and found[0][0] else {}

    async def inject(self, tenant: int, body: dict[str, Any]) -> Mapping[str, Any]:
        """Return the slice for this prompt if it is ready in time, else the `system` slice that the session was last given."""
        asked_s = body.get("deadline_ms")
        deadline_s = (
            min(asked_s / 1000, 30.0) if isinstance(asked_s, int | float) and asked_s > 0 else DEADLINE_S
        )
        work = asyncio.get_running_loop().run_in_executor(self.threads, self.answer, tenant, "/inject", body)
        work.add_done_callback(lambda done: done.cancelled() or done.exception())
        with suppress(TimeoutError):
            return await asyncio.wait_for(asyncio.shield(work), deadline_s * (1 - LAST_GIVEN_SHARE))
        with suppress(TimeoutError):
            last = asyncio.to_thread(self.last_given, tenant, body)
            return await asyncio.wait_for(last, deadline_s * LAST_GIVEN_SHARE)
        return {}

    def close(self) -> None:
        self.threads.shutdown(wait=False, cancel_futures=True)
        self.reader.close()


def assemble(memory: Memory, body: dict[str, Any]) -> Mapping[str, Any]:
    """
    Return the answer to the gateway: which messages leave the context, and the text that replaces them.

    {} if no message leaves. Unlike the daemon, a fleet never lets the gateway wait for an observation.
    """
    graph = graph_of(memory.registry, body)
    return cut_answer(memory, graph, body)[1] if graph else {}


def forget_answer(memory: Memory, body: dict[str, Any]) -> Mapping[str, Any]:
    """Forget what *body* (`{session, names, matching, redact, dry_run}`) names. Return what was removed."""
    session, dry_run = str(body.get("session") or MAIN), bool(body.get("dry_run"))
    if body.get("redact"):
        return {"redacted": bool(memory.redact(str(body["redact"]), session=session, dry_run=dry_run))}
    matching = str(body["matching"]) if body.get("matching") else None
    names = map(str, body.get("names") or ())
    what = memory.forget(*names, matching=matching, session=session, dry_run=dry_run)
    return {"notes": [*what.paths], "messages": len(what.messages)}


def make_application(serving: Serving) -> Starlette:
    from prometheus_client import generate_latest
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.responses import JSONResponse, PlainTextResponse
    from starlette.routing import Route

    async def answer(request: Request, route: str, name: str) -> Mapping[str, Any]:
        if route not in {"/drop", "/health", *serving.answers, *JOBS}:
            raise HTTPException(
                404, f"a fleet has no path {request.url.path[:100]}; docs/fleet.md lists its paths"
            )
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        tenant = await asyncio.to_thread(serving.store.tenant_of, token.strip())
        if tenant is None or scheme.lower() != "bearer":
            raise HTTPException(
                401, "no tenant has this token; `omg fleet tenant rotate NAME` gives a new one"
            )
        data = bytearray()
        async for chunk in request.stream():
            data += chunk
            if len(data) > BODY_BYTES:
                raise HTTPException(413, f"the body is larger than {BODY_BYTES} bytes")
        async with serving.turns.setdefault(tenant, asyncio.Semaphore(TENANT_AT_ONCE)):
            return await dispatch(tenant, route, name, bytes(data))

    async def dispatch(tenant: int, route: str, name: str, data: bytes) -> Mapping[str, Any]:
        run = partial(asyncio.get_running_loop().run_in_executor, serving.threads)
        if route == "/drop":
            return await run(serving.drop, tenant, name, data)
        if (body := parsed_object(data or b"{}")) is None:
            raise HTTPException(400, "the body is not a JSON object")
        if route == "/health":
            return {"ok": True, "fleet": True, "observer": None}
        if route == "/inject":
            return await serving.inject(tenant, body)
        return await run(serving.answer, tenant, route, body)

    async def handle(request: Request) -> Response:
        began, status = time.monotonic(), 200
        path, name = request.url.path, ""
        if path.startswith("/drop/"):
            path, name = "/drop", path.removeprefix("/drop/")
        try:
            said = await answer(request, path, name)
        except HTTPException as e:
            status, said = e.status_code, {"error": e.detail}
        except OmgError as e:
            # After 422 the sender sets a drop aside; after 503 the sender tries again.
            status = 503 if path == "/drop" and not isinstance(e, BadInput) else 422
            said = {"error": str(e)}
        except Exception as e:
            log.exception("%s failed", path)
            status, said = 503, {"error": f"the fleet failed ({type(e).__name__}); try again"}
        REQUEST_S.labels("" if status == 404 else path, status).observe(time.monotonic() - began)
        return JSONResponse(said, status)

    async def told(request: Request) -> Response:
        return PlainTextResponse(generate_latest())

    return Starlette(routes=[Route("/metrics", told), Route("/{path:path}", handle, methods=["POST"])])


def run_server(url: str, *, host: str, port: int, cache: Path) -> None:
    """Serve until SIGTERM or SIGINT."""
    import uvicorn

    # uvicorn raises the signal again when it has stopped. Ignore the second signal, so that the cache is still removed.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    # Load the token table and the scanner's rules now: the first prompt and the first drop would wait for them.
    count_tokens("warm")
    redact("warm")
    with opened_pool(url, THREADS + 4) as pool:
        store = FleetStore(pool)
        with Homes(store, cache, kept=256) as homes:
            serving = Serving(store, homes)
            app = make_application(serving)
            uvicorn.run(app, host=host, port=port, log_level="warning", access_log=False)
            serving.close()


LEASE_S = 30.0  # if a worker shows no life for this long, another worker takes its job
PATIENCE = 120  # seconds that a query waits for Postgres to come back
TICK = "* * * * * */5"  # every five seconds, once in the whole fleet
AT_ONCE = 500  # graphs that one tick makes jobs for
AGAIN_S = 60.0  # until a failed job is tried again


def reflect_night(memory: Memory) -> None:
    for night in reflect_each(memory.worker):
        if "error" in night:
            log.warning("the nightly reflection on a memory failed: %s", night["error"])


WORK: dict[str, Callable[[Memory], object]] = {
    "observe": lambda memory: memory.work(),
    "reflect": reflect_night,
    "rebuild": lambda memory: rebuild_each(memory.worker, {"swap": True}),
}


def do_job(store: FleetStore, homes: Homes, kind: str, graph: int) -> None:
    """Do the work of *kind* on *graph* and commit the graph. After an error the graph is due again in AGAIN_S; never raises."""

    def work(home: Home) -> None:
        WORK[kind](home.memory)
        if homes.stopping.is_set():  # the work ended without the model's answer
            raise OmgError("the worker stops")

    if (row := store.row(graph)) is None:
        return
    try:
        return homes.change(row, kind, work, night=kind == "reflect")
    except NotFound:
        return  # removed meanwhile
    except (OmgError, OSError) as e:
        log.warning("graph %d: %s failed and is tried again: %s", graph, kind, error_text(e))
    except Exception:
        log.exception("graph %d: %s failed and is tried again", graph, kind)
    WORK_S.labels(kind, "failed").observe(0)
    column = "night_at" if kind == "reflect" else "due_at"
    store.ask(
        f"UPDATE omg_graphs SET {column} = now() + make_interval(secs => %s) WHERE id = %s", AGAIN_S, graph
    )


def tick(store: FleetStore, lease_s: float = LEASE_S) -> dict[str, int]:
    """Make the jobs that are due, replace stalled jobs, and end transactions that block others for longer than *lease_s*."""
    # A stalled job is deleted and made anew: a retry would violate the unique index of waiting jobs.
    stalled = store.ask(
        "DELETE FROM procrastinate_jobs j WHERE status = 'doing' AND NOT EXISTS (SELECT 1 FROM"
        " procrastinate_workers w WHERE w.id = j.worker_id AND w.last_heartbeat > now() - make_interval(secs => %s))"
        " RETURNING task_name, (args ->> 'graph')::bigint",
        lease_s,
    )
    due = store.ask(
        # Graphs that are due, or have drops without a job, because a server was killed in between.
        "SELECT 'observe', id FROM omg_graphs WHERE due_at <= now() UNION SELECT 'observe', graph FROM omg_drops d"
        " WHERE came_at < now() - interval '20 seconds' AND NOT EXISTS (SELECT 1 FROM procrastinate_jobs j"
        " WHERE j.lock = 'graph:' || d.graph AND j.status IN ('todo', 'doing')) LIMIT %s",
        AT_ONCE,
    )
    nights = store.ask(
        "SELECT 'reflect', id FROM omg_graphs WHERE night_at <= now() ORDER BY night_at LIMIT %s", AT_ONCE
    )
    # If a process was stopped during its commit and another waits for the lock, end that commit. (No timeout of Postgres 15
    # ends a transaction that is idle after psycopg's executemany.)
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
        log.warning("%d jobs were made again, because their workers show no life", len(stalled))
    return {"stalled": len(stalled), "due": len(due), "nights": len(nights)}


def make_app(url: str) -> App:
    """Make Procrastinate's app, without tasks."""
    from procrastinate import App, PsycopgConnector
    from procrastinate.exceptions import ConnectorException
    from psycopg import OperationalError

    class PatientConnector(PsycopgConnector):
        """Repeats a query while Postgres is away. Otherwise a finished job might never be recorded as finished."""

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


def run_worker(url: str, *, parallel: int, cache: Path, lease_s: float, child: Child | None = None) -> None:
    """Work until SIGTERM or SIGINT. *child* is the process that asks models; None starts a new one."""
    with opened_pool(url, parallel + 2) as pool:
        store = FleetStore(pool)
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
    """Take jobs until a signal comes. Restart Procrastinate's worker when the worker gives up because Postgres is away."""

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
                log.warning("the worker starts again after an error: %s", type(e).__name__)
            await asyncio.sleep(1)

    def stop() -> None:
        homes.stop()
        working.cancel()

    working = asyncio.create_task(work())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop)
    with suppress(asyncio.CancelledError):
        await working
