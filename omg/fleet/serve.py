"""
`omg fleet serve`: the daemon's routes over HTTP, with a bearer token for each tenant.

    POST /drop/NAME                      a turn; a row before it is answered
    POST /inject /tool /command /corpus /search /context/assemble /forget    answered from the graph, checked out here
    POST /work /reflect /rebuild         a job is made
    POST /status /health   GET /metrics

Whose graph a request is of follows from its token and its session, before any file is looked at. Before each answer the
graph's generation is read, so nothing is answered from a copy that is behind.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..daemon.daemon import graph_served
from ..daemon.server import BODY_BYTES
from ..errors import BadInput, NotFound, OmgError, Stale
from ..identity import Identity, is_remembered, says_owner
from ..inject.decide import hook_result
from ..memory import Memory
from ..secrets import redact
from ..text.tokens import count_tokens
from ..tools.changing import Codes
from ..tools.reading import mapping_in
from ..tools.tools import CHANGING, call_tool, corpus_answer, graph_of, search_answer, slash_command
from ..window.context import cut_context
from ..worker.intake import DropReader
from ..worker.schedule import note_asked, note_urgent
from ..worker.status import home_status
from . import metrics
from .homes import DEFAULT_CACHE, Home, Homes
from .jobs import defer
from .store import Store, opened_pool

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

log = logging.getLogger(__name__)

DROP_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z.-]{0,150}\.json")
DEADLINE_S = 0.12  # of a prompt: the plugin waits 150 ms
TRIES = 5  # of a change that a worker was quicker than
THREADS = 16
# The jobs that a request makes; its answer says that nothing is done yet, in the daemon's form.
JOBS: dict[str, tuple[str, dict[str, Any]]] = {
    "/work": ("observe", {"batches": 0, "messages": 0, "files": 0, "waiting": []}),
    "/reflect": ("reflect", {"graphs": []}),
    "/rebuild": ("rebuild", {}),
}

Answer = Callable[[Memory, dict[str, Any]], Mapping[str, Any]]


class Serving:
    def __init__(self, store: Store, homes: Homes) -> None:
        self.store, self.homes, self.codes = store, homes, Codes()
        self.reader = DropReader(apart=True)
        self.threads = ThreadPoolExecutor(THREADS)
        self.answers: dict[str, Answer] = {
            "/inject": inject_answer,
            "/tool": lambda memory, body: call_tool(memory.intake, body, self.codes),
            "/command": lambda memory, body: slash_command(memory.intake, body, self.codes),
            "/corpus": lambda memory, body: corpus_answer(memory.registry, body),
            "/search": lambda memory, body: search_answer(memory.registry, {**body, "identity": None}),
            "/context/assemble": assemble,
            "/forget": forget_answer,
            "/status": lambda memory, body: home_status(memory.worker),
        }

    # --- whose

    def identity(self, tenant: int, about: Mapping[str, Any]) -> Identity | None:
        """Whose the session of a question is, by the tenant's own files."""
        with self._lobby(tenant) as home:
            assert home.memory is not None
            registry = home.memory.registry
            if session := str(about.get("sessionKey") or about.get("session") or about.get("identity") or ""):
                return registry.identity_of(
                    session,
                    channel=str(about.get("channel") or ""),
                    sender=str(about.get("senderId") or ""),
                    owner=says_owner(about),
                )
            return registry.identity_of("agent:main:main")

    @contextmanager
    def _lobby(self, tenant: int) -> Iterator[Home]:
        """The tenant's home without a graph."""
        row = self.store.graph(tenant, "")
        if row is None:
            raise NotFound("no such tenant")
        with self.homes.hold(row) as home:
            yield home

    # --- what comes in

    def drop(self, tenant: int, name: str, data: bytes) -> dict[str, Any]:
        """Keep what was said, and have it observed. Raises BadInput for what is no drop."""
        if not DROP_NAME.fullmatch(name):
            raise BadInput(f"{name[:80]!r}: a drop's name is <ms>-<uuid>.json")
        with tempfile.TemporaryDirectory(dir=self.homes.folder) as folder:
            file = Path(folder, name)
            file.write_bytes(data)
            turn, _ = self.reader.read(file, ())  # which messages are remembered, the worker decides
        with self._lobby(tenant) as home:
            assert home.memory is not None
            registry = home.memory.registry
            if (who := registry.whose(turn)) is None:
                return {"taken": False}
            registry.note_speakers(turn)
            found, gone = home.own.changes()
            if found or gone:
                with self.store.pool.connection() as conn, conn.transaction():
                    at = home.own.add_shared(conn, found, gone)
                home.own.settle(found, gone, at)
        row = self.store.make_graph(tenant, who)
        self.store.put_drop(row.id, name, data)
        defer(self.store, "observe", row.id)  # after the row is there: a job that waits already will see it
        return {"taken": True}

    # --- what is answered

    def answer(self, tenant: int, path: str, body: dict[str, Any]) -> Mapping[str, Any]:
        about = mapping_in(body, "context") or body
        who = self.identity(tenant, about)
        if who is None:
            return {}
        makes = path == "/tool" and body.get("name") == "omg_remember"
        row = self.store.make_graph(tenant, who) if makes else self.store.graph(tenant, who.folder)
        if row is None:
            return {"hits": []} if path == "/search" else {}
        if path in JOBS:
            kind, nothing_yet = JOBS[path]
            return {**nothing_yet, "queued": kind, "new": defer(self.store, kind, row.id)}
        changes = path in ("/command", "/forget") or (
            path == "/tool" and body.get("name") in (*CHANGING, "omg_remember")
        )
        for _ in range(TRIES):
            try:
                with self.homes.hold(row, drops=changes) as home:
                    assert home.memory is not None
                    said = self.answers[path](home.memory, body)
                    if changes:
                        home.commit(self.store, due_at=time.time())
                    else:
                        with suppress(
                            Stale
                        ):  # what a session was given is of no weight where the graph has moved on
                            home.keep_served(self.store)
                return said
            except Stale:
                metrics.FENCED.labels(path).inc()
            except NotFound:
                if self.store.graph(tenant, who.folder) is None:
                    return {}  # forgotten whole meanwhile
                raise
        raise OmgError("the memory is being changed elsewhere; nothing was changed here, ask again")

    def standing(self, tenant: int, body: dict[str, Any]) -> dict[str, Any]:
        """What the session was last given, of the generation of now; nothing where there is none."""
        who = self.identity(tenant, body)
        if who is None or not is_remembered(body):
            return {}
        with self.store.pool.connection() as conn:
            row = conn.execute(
                "SELECT string_agg(bytes, ''::bytea ORDER BY part) FROM omg_files f JOIN omg_graphs g ON g.id = f.graph"
                " WHERE g.tenant = %s AND g.folder = %s AND path = 'state.json'",
                (tenant, who.folder),
            ).fetchone()
        state = json.loads(row[0]) if row and row[0] else {}
        own = state.get("sessions", {}).get(str(body.get("sessionKey") or ""), {})
        return (
            {"appendSystemContext": own["system"]}
            if own.get("system") and own["epoch"] == state["epoch"]
            else {}
        )

    async def inject(self, tenant: int, body: dict[str, Any]) -> Mapping[str, Any]:
        """The prompt's slice within the deadline; else the standing one. The checkout goes on meanwhile."""
        asked_s = body.get("deadline_ms")
        deadline_s = (
            min(asked_s / 1000, 30.0) if isinstance(asked_s, int | float) and asked_s > 0 else DEADLINE_S
        )
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self.threads, self.answer, tenant, "/inject", body)
        work.add_done_callback(lambda done: done.cancelled() or done.exception())
        try:
            return await asyncio.wait_for(asyncio.shield(work), deadline_s * 0.7)
        except TimeoutError:
            with suppress(TimeoutError):
                return await asyncio.wait_for(
                    asyncio.to_thread(self.standing, tenant, body), deadline_s * 0.3
                )
            return {}

    def close(self) -> None:
        self.threads.shutdown(wait=False, cancel_futures=True)
        self.reader.close()


def inject_answer(memory: Memory, body: dict[str, Any]) -> Mapping[str, Any]:
    graph = graph_served(memory, body)
    return hook_result(graph, body, memory.clock(), memory.config) if graph is not None else {}


def assemble(memory: Memory, body: dict[str, Any]) -> Mapping[str, Any]:
    """As the daemon's, but nobody waits here for another machine's observing."""
    graph = graph_of(memory.registry, body)
    if graph is None:
        return {}
    session, at_ms = str(body.get("sessionKey") or ""), memory.registry.now_ms()
    graph.note(partial(note_asked, session=session, at_ms=at_ms))
    made = cut_context(graph, body, now=memory.clock(), config=memory.config, tell=lambda *_, **__: None)
    if made.waits and not graph.state().urgent_ms:
        graph.update(partial(note_urgent, session="", reason="context", at_ms=at_ms, waiting=True))
    if not made.text:
        return {}
    tokens = made.raw + sum(map(count_tokens, (made.text, *made.served.values())))
    return {**{of: getattr(made, of) for of in ("text", "cut", "served", "told")}, "tokens": tokens}


def forget_answer(memory: Memory, body: dict[str, Any]) -> Mapping[str, Any]:
    """`{session, names, matching, redact, dry_run}` → what went."""
    session, dry_run = str(body.get("session") or "agent:main:main"), bool(body.get("dry_run"))
    if body.get("redact"):
        what: Any = memory.redact(str(body["redact"]), session=session, dry_run=dry_run)
        return {"redacted": bool(what)}
    names = [str(name) for name in body.get("names") or ()]
    matching = str(body["matching"]) if body.get("matching") else None
    what = memory.forget(*names, matching=matching, session=session, dry_run=dry_run)
    return {"notes": [*what.paths], "messages": len(what.messages)}


def make_application(serving: Serving) -> Starlette:
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse, PlainTextResponse
    from starlette.routing import Route

    def refusal(status: int, why: str) -> Response:
        return JSONResponse({"error": why}, status)

    async def handle(request: Request) -> Response:
        began, path = time.monotonic(), request.url.path
        route = "/drop" if path.startswith("/drop/") else path
        response = await answer(request, path, route)
        metrics.REQUEST_S.labels(route if response.status_code != 404 else "", response.status_code).observe(
            time.monotonic() - began
        )
        return response

    async def answer(request: Request, path: str, route: str) -> Response:
        if route not in {"/drop", "/health", "/status", *serving.answers, *JOBS}:
            return refusal(404, f"no such path: {path[:100]}")
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        tenant = None
        if scheme.lower() == "bearer" and token:
            tenant = await asyncio.to_thread(serving.store.tenant_of, token.strip())
        if tenant is None:
            return refusal(401, "no tenant has this token; `omg fleet tenant rotate NAME` gives a new one")
        data = bytearray()
        async for chunk in request.stream():
            data += chunk
            if len(data) > BODY_BYTES:
                return refusal(413, f"a body has {BODY_BYTES} bytes at the most")
        try:
            if route == "/drop":
                name = path.removeprefix("/drop/")
                return JSONResponse(await asyncio.to_thread(serving.drop, tenant, name, bytes(data)))
            try:
                body = json.loads(data or b"{}")
            except (ValueError, RecursionError):
                body = None
            if not isinstance(body, dict):
                return refusal(400, "the body is no JSON object")
            if route == "/health":
                return JSONResponse({"ok": True, "fleet": True, "observer": None})
            if route == "/inject":
                return JSONResponse(await serving.inject(tenant, body))
            return JSONResponse(await asyncio.to_thread(serving.answer, tenant, path, body))
        except OmgError as e:
            later = route == "/drop" and not isinstance(e, BadInput)
            return refusal(503 if later else 422, str(e))
        except Exception as e:
            log.exception("%s failed", route)
            return refusal(503, f"{type(e).__name__}; ask again")

    async def told(request: Request) -> Response:
        from prometheus_client import generate_latest

        return PlainTextResponse(generate_latest())

    return Starlette(
        routes=[Route("/metrics", told), Route("/{path:path}", handle, methods=["POST"])],
    )


def run_server(url: str, *, host: str = "127.0.0.1", port: int = 8790, cache: Path = DEFAULT_CACHE) -> None:
    """Until SIGTERM or SIGINT."""
    import uvicorn

    # uvicorn raises the signal again once it is down; we end by ourselves, and leave no cache behind.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    # The first prompt would wait for the table, and the first drop for the scanner's rules.
    count_tokens("warm")
    redact("warm")
    with opened_pool(url, THREADS + 4) as pool:
        store = Store(pool)
        with Homes(store, cache, kept=256) as homes:
            serving = Serving(store, homes)
            try:
                uvicorn.run(
                    make_application(serving), host=host, port=port, log_level="warning", access_log=False
                )
            finally:
                serving.close()
