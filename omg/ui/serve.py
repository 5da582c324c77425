"""
Serves the page on loopback to one browser: the first that opens the printed link.

The page runs in its own process, like every `omg` command, and uses the vault under the same lock. So the daemon
needs no port, and drawing a page delays no prompt. Ctrl-C ends the process.

    /<secret>/enter?key=…   once: sets the session's cookie, which is sent below /<secret>/ alone
    /<secret>/…             GET shows (pages.py), POST /do/<action> changes (actions.py)

The server accepts a request that passes these checks:
- The header `Host` names this page on loopback. This stops DNS rebinding.
- The cookie is the session's cookie. This stops other users of the machine.
- A change also has the page's token, and comes from the page itself. This stops other sites.

A page has no inline script, and loads nothing from other hosts.
"""

from __future__ import annotations

import hmac
import logging
import secrets
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from ..client import ask_daemon
from ..errors import BadInput, NotFound, OmgError
from ..graph.graph import Graph
from ..identity import Identity
from ..memory import Memory
from ..worker.registry import PATIENCE_S
from .actions import ACTIONS, Done
from .notes import name_of
from .pages import FOLDER, VIEWS, error_page, filled, page_of
from .request import Asked

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

log = logging.getLogger(__name__)

LINK_LIVES_S = 900  # lifetime of a printed link that nobody opened
BODY_BYTES = 20_000
LOOK_S = 5.0  # without a daemon, the page looks for changes in the vault at most this often
ASSETS = {"page.css": "text/css", "htmx.min.js": "text/javascript", "icon.svg": "image/svg+xml"}
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",  # with `no-referrer`, a browser sends no origin with a form
    "x-content-type-options": "nosniff",
}


@dataclass(slots=True)
class Browser:
    """The one browser that is served. *hosts* are the accepted values of the header `Host`."""

    hosts: frozenset[str]
    base: str = field(default_factory=lambda: f"/{secrets.token_urlsafe(16)}")
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))  # sent by every form
    key: str = field(default_factory=lambda: secrets.token_urlsafe(32))  # part of the link; "" once used
    made: float = field(default_factory=time.monotonic)
    done: dict[str, Done] = field(default_factory=dict)  # the last action, until a page has shown it

    def enters(self, key: str) -> bool:
        """Return whether *key* opens the page. A key works once, within LINK_LIVES_S seconds."""
        fits = bool(self.key) and same(key, self.key) and time.monotonic() - self.made < LINK_LIVES_S
        self.key = "" if fits else self.key
        return fits

    def note(self, done: Done) -> str:
        """Keep the result *done* for the next page. Return the value of `done` in that page's link."""
        mark = secrets.token_urlsafe(6)
        self.done = {mark: done}
        return mark


def same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())


def make_page(memory: Memory, browser: Browser, start: str = "") -> Starlette:
    """Return the application. *start* is the view that the link opens first."""
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.middleware.base import BaseHTTPMiddleware
    from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
    from starlette.routing import Route

    looked = 0.0

    def keep_up(graph: Graph) -> None:
        """Update the index from the vault, unless a daemon does."""
        nonlocal looked
        if time.monotonic() - looked > LOOK_S:
            looked = time.monotonic()
            if not is_daemon_up(memory.folder):
                memory.refresh(graph, wait_s=PATIENCE_S)

    def asked_by(request: Request, params: Mapping[str, str]) -> Asked:
        chosen = params.get("who", "")
        graph = memory.registry.find(chosen or None)
        try:
            keep_up(graph)
        except (OmgError, OSError) as e:  # shown as last read
            log.info("the vault was not looked at: %s", type(e).__name__)
        return Asked(memory, graph, params, browser.base, browser.token, who=chosen and graph.identity.folder)

    def refused(request: Request) -> str:
        """Return why *request* is refused, or ""."""
        if request.headers.get("host", "") not in browser.hosts:
            return "The page does not answer under this host name: open the link that `omg ui` printed."
        if not same(request.cookies.get("omg", ""), browser.cookie):
            return "Only the browser that opened the link sees this page. Run `omg ui` again for a new link."
        if request.method == "POST":
            origin = request.headers.get("origin")
            ours = origin is None or origin.removeprefix("http://") in browser.hosts
            if not ours or request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
                return "This change did not come from the page that `omg ui` opened. Make the change there."
        return ""

    def shown(request: Request) -> Response:
        if why := refused(request):
            return PlainTextResponse(why, 403)
        view = request.path_params.get("view", "")
        if view not in VIEWS:
            return PlainTextResponse("There is no such page.", 404)
        params = dict(request.query_params)
        asked = asked_by(request, params)
        done = browser.done.pop(params.get("done", ""), None)
        try:
            return HTMLResponse(page_of(asked, view, flash=done, people=people_of(memory)))
        except OmgError as e:
            page = error_page(asked, str(e), flash=done, people=people_of(memory))
            return HTMLResponse(page, 404 if isinstance(e, NotFound) else 422)

    def changed(request: Request, form: Mapping[str, str]) -> Response:
        if why := refused(request):
            return PlainTextResponse(why, 403)
        if not same(form.get("token", ""), browser.token):
            return PlainTextResponse(
                "This form belongs to an earlier run of `omg ui`: open the page again.", 403
            )
        asked = asked_by(request, form)
        action = ACTIONS.get(request.path_params["action"])
        if action is None:
            return PlainTextResponse("There is no such action.", 404)
        try:
            done = action(asked)
        except OmgError as e:
            return HTMLResponse(error_page(asked, str(e), flash=None, people=people_of(memory)), 422)
        if "hx-request" in request.headers:  # htmx replaces the decided entry by this text
            return HTMLResponse(filled(asked, "done.html", "", flash=done))
        back = form.get("back", "")
        if done.report:
            page = filled(asked, "report.html", "", title="Forgotten", flash=done, people=people_of(memory))
            return HTMLResponse(page)
        if back == "note" and done.path:
            to = asked.link("note", path=done.path, done=browser.note(done))
        else:
            to = asked.link(back if back in VIEWS and back != "note" else "", done=browser.note(done))
        return RedirectResponse(to, 303)

    async def show(request: Request) -> Response:
        return await run_in_threadpool(shown, request)

    async def change(request: Request) -> Response:
        data = bytearray()
        async for chunk in request.stream():
            data += chunk
            if len(data) > BODY_BYTES:
                return PlainTextResponse("The text is too long.", 413)
        form = dict(parse_qsl(data.decode("utf-8", "replace"), keep_blank_values=True))
        return await run_in_threadpool(changed, request, form)

    async def enter(request: Request) -> Response:
        if request.headers.get("host", "") not in browser.hosts or not browser.enters(
            request.query_params.get("key", "")
        ):
            return PlainTextResponse(
                "This link was used, or is too old. Run `omg ui` again for a new one.", 403
            )
        answer = RedirectResponse(f"{browser.base}/{start}", 303)
        answer.set_cookie("omg", browser.cookie, path=f"{browser.base}/", httponly=True, samesite="strict")
        return answer

    async def asset(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in ASSETS or (why := refused(request)):
            return PlainTextResponse("There is no such file." if name not in ASSETS else why, 404)
        return Response((FOLDER / "static" / name).read_bytes(), media_type=ASSETS[name])

    base = browser.base
    app = Starlette(
        routes=[
            Route(f"{base}/enter", enter),
            Route(f"{base}/static/{{name}}", asset),
            Route(f"{base}/do/{{action}}", change, methods=["POST"]),
            Route(f"{base}/", show),
            Route(f"{base}/{{view}}", show),
        ]
    )
    app.add_middleware(BaseHTTPMiddleware, dispatch=with_headers)
    return app


async def with_headers(request: Request, answer_to: Callable[[Request], Awaitable[Response]]) -> Response:
    answer = await answer_to(request)
    answer.headers.update(HEADERS)
    return answer


def people_of(memory: Memory) -> list[tuple[str, str, str]]:
    """Return folder, key and name of every graph, or [] if there is only one."""
    known = [(who.folder, who.key, owner_of(who)) for who in memory.registry.identities()]
    return known if len(known) > 1 else []


def owner_of(who: Identity) -> str:
    """
    Return the name that the page shows for the person or group *who*.

    The owner of the home is "you". An agent other than "main" is added: "you, with the agent work".
    """
    name = "you" if who.key == f"agent:{who.agent}:main" else name_of(who.key)
    return name if who.agent == "main" else f"{name}, with the agent {who.agent}"


def is_daemon_up(home: Path) -> bool:
    try:
        return ask_daemon(home, "/health", {}, timeout_s=1) is not None
    except OmgError:
        return False


def bound(port: int) -> socket.socket:
    """Return a listening socket on loopback. Raises BadInput if *port* is taken."""
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(("127.0.0.1", port))
        made.listen(64)  # listen now: the link works as soon as it is printed
    except OSError as e:
        made.close()
        raise BadInput(f"port {port} cannot be used ({e.strerror}); give another with --port") from e
    return made


def serve_page(memory: Memory, port: int, ready: Callable[[str], None], start: str = "") -> None:
    """Serve until SIGINT (Ctrl-C) or SIGTERM. *ready* is called with the link, which works once."""
    import uvicorn

    # uvicorn raises the signal again once it is down. It is ignored, so that we end in order.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    listening = bound(port)
    port = listening.getsockname()[1]
    browser = Browser(frozenset(f"{host}:{port}" for host in ("127.0.0.1", "localhost")))
    config = uvicorn.Config(
        make_page(memory, browser, start), log_level="error", access_log=False, server_header=False
    )
    ready(f"http://127.0.0.1:{port}{browser.base}/enter?key={browser.key}")
    uvicorn.Server(config).run(sockets=[listening])
