"""
HTTP with JSON on a unix socket.

The socket is in a folder that only its owner can enter, so no other authentication is needed. A TCP port would need a
token, and guards against web pages. Every request gets an answer, and a bad one does not disturb other clients.
daemon.py has the answers.
"""

from __future__ import annotations

import json
import logging
import os
import socketserver
import sys
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..client import socket_of
from ..errors import OmgError

log = logging.getLogger(__name__)

Answer = Callable[[dict[str, Any]], Mapping[str, Any]]
Lost = Callable[[Mapping[str, Any]], None]
# The longest is a conversation of months, once after each start of the gateway (hooks/context/index.js).
BODY_BYTES = 32_000_000

# The gateway has few connections; each takes a thread and its memory.
CONNECTIONS_AT_ONCE = 128
SILENT_S = 60  # a client that sends nothing for so long is disconnected; ours ask at once
BUSY = json.dumps({"error": f"busy: {CONNECTIONS_AT_ONCE} connections are open already; ask again"}).encode()

REFUSAL = (
    b"HTTP/1.1 503 Busy\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s"
    % (len(BUSY), BUSY)
)


class Server(socketserver.ThreadingUnixStreamServer):
    """
    *answers*: path → the function that answers it; each request has its own thread. *lost*: path → the function that is
    called with an answer whose client had gone away.
    """

    daemon_threads = True
    request_queue_size = 512  # connections that come at one moment; a full queue drops them without an answer

    def __init__(
        self, home: Path, answers: Mapping[str, Answer], lost: Mapping[str, Lost] = MappingProxyType({})
    ) -> None:
        socket = socket_of(home)
        # An existing socket was left by a crash: this process holds the home's lock, so nobody listens on it.
        socket.unlink(missing_ok=True)
        self.answers, self.lost = answers, lost
        self._room = threading.BoundedSemaphore(CONNECTIONS_AT_ONCE)
        mask = os.umask(0o177)
        try:
            super().__init__(str(socket), Handler)
        finally:
            os.umask(mask)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve the connection in a thread; refuse it at once if there are too many."""
        if self._room.acquire(blocking=False):
            return super().process_request(request, client_address)
        try:
            request.setblocking(False)
            request.send(REFUSAL)
        except OSError as e:
            log.debug("a client went away: %s", type(e).__name__)
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        log.debug("a client went away: %s", type(sys.exc_info()[1]).__name__)


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    timeout = SILENT_S

    def do_POST(self) -> None:
        answer = self.server.answers.get(self.path)
        if answer is None:
            self.close_connection = True
            return self.reply(404, {"error": f"no such path: {self.path[:100]}"})
        try:
            length = int(self.headers.get("content-length") or 0)
        except ValueError:
            length = BODY_BYTES + 1
        if not 0 <= length <= BODY_BYTES:
            self.close_connection = True
            return self.reply(413, {"error": f"a body has {BODY_BYTES} bytes at the most"})
        try:
            body = json.loads(self.rfile.read(length) or b"{}")
            if not isinstance(body, dict):
                raise ValueError
        except (ValueError, RecursionError):
            return self.reply(400, {"error": "the body is no JSON object"})
        try:
            value = answer(body)
        except OmgError as e:
            return self.reply(422, {"error": str(e)})
        except Exception as e:
            log.exception("%s failed", self.path)
            return self.reply(500, {"error": f"{type(e).__name__} in OMG's daemon; see omg.log"})
        try:
            self.reply(200, value)
        except OSError:
            if lost := self.server.lost.get(self.path):
                lost(value)
            raise

    do_GET = do_POST

    def reply(self, status: int, value: Mapping[str, Any]) -> None:
        """Send head and body in one write: a second one would wait for the acknowledgement of the first."""
        data = json.dumps(value).encode("utf-8", "replace")
        self.send_response_only(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        if self.close_connection:
            self.send_header("connection", "close")
        self._headers_buffer.append(b"\r\n" + data)  # type: ignore[attr-defined]
        self.flush_headers()

    def address_string(self) -> str:
        return "gateway"  # a unix peer has no address, and the base class would index into it

    def log_message(self, format: str, *args: Any) -> None:
        pass
