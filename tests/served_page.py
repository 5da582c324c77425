"""The page of `omg ui`, served on a real socket, and a client that keeps its cookie as a browser does."""

from __future__ import annotations

import http.client
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from urllib.parse import urlencode, urlsplit

import uvicorn

from omg.memory import Memory
from omg.ui.serve import Browser, bound, make_page


class Page:
    """*link* is what `omg ui` prints. `get` and `post` follow no redirects of others, and one of the page's own."""

    def __init__(self, port: int, session: Browser) -> None:
        self.port, self.session, self.cookie = port, session, ""
        self.origin = f"http://127.0.0.1:{port}"
        self.link = f"{self.origin}{session.base}/enter?key={session.key}"
        self.status = 0

    def request(self, method: str, path: str, body: str = "", **headers: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        sent = {"cookie": self.cookie, "content-type": "application/x-www-form-urlencoded", **headers}
        connection.request(method, path, body, {key: value for key, value in sent.items() if value})
        answer = connection.getresponse()
        self.status = answer.status
        self.text = answer.read().decode()
        connection.close()
        return answer

    def enter(self) -> Page:
        answer = self.request("GET", self.link.removeprefix(self.origin))
        assert answer.status == 303, self.text
        self.cookie = answer.headers["set-cookie"].partition(";")[0]
        return self

    def get(self, view: str = "", **params: object) -> str:
        """The text of *view*, with entities as a reader sees them."""
        query = f"?{urlencode(params)}" if params else ""
        self.request("GET", f"{self.session.base}/{view}{query}")
        return unescape(self.text)

    def post(self, action: str, headers: dict[str, str] | None = None, **form: str) -> str:
        """What the page shows after *action*."""
        sent = {"token": self.session.token, **form}
        answer = self.request("POST", f"{self.session.base}/do/{action}", urlencode(sent), **(headers or {}))
        if answer.status == 303:
            target = urlsplit(answer.headers["location"])
            self.request("GET", f"{target.path}?{target.query}")
        return unescape(self.text)

    def undo(self, shown: str) -> str:
        """Press "Undo" in *shown*."""
        found = re.search(r'name="cycle" value="([^"]+)"', shown)
        assert found, shown
        return self.post("undo", cycle=found[1])


@contextmanager
def served(memory: Memory) -> Iterator[Page]:
    listening = bound(0)
    port = listening.getsockname()[1]
    session = Browser(frozenset({f"127.0.0.1:{port}", f"localhost:{port}"}))
    server = uvicorn.Server(uvicorn.Config(make_page(memory, session), log_level="error", access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield Page(port, session)
    finally:
        server.should_exit = True
        thread.join()
