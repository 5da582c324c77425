"""
A Telegram Bot API that lives in this process: what people say goes in, what the bot says is kept.

    telegram.says(ALICE, "hello")                 # a direct message
    telegram.says(ALICE, "hello", chat=GROUP)     # in a group
    telegram.reply(after=n)                       # waits for the bot

It knows the five methods that OpenClaw's channel calls, and answers `true` to the rest.
"""

from __future__ import annotations

import json
import re
import threading
import time
import urllib.parse
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "777000111:AAProbeProbeProbeProbeProbeProbeProbe01"
BOT = {"id": 777000111, "is_bot": True, "first_name": "OMG Bot", "username": "omg_test_bot"}
SENDING = ("sendMessage", "sendRichMessage", "editMessageText", "editRichMessage", "sendMessageDraft")
GROUP = -100555


@dataclass(frozen=True, slots=True)
class Person:
    id: int
    name: str


ALICE, BOB, EVE = Person(111, "Alice"), Person(222, "Bob"), Person(333, "Eve")


class Telegram:
    """Listens from construction to `close`, on a port of its own."""

    def __init__(self) -> None:
        self.updates: list[dict[str, Any]] = []
        self.sent: list[dict[str, Any]] = []  # what the bot said: {"chat": …, "text": …, "at": monotonic}
        self.changed = threading.Condition()
        self.closing = False
        self._ids = 1000
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"telegram": self}))
        self._http.daemon_threads = True
        self.base = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()

    def says(self, who: Person, text: str, chat: int | None = None) -> int:
        """Someone writes to the bot. Returns how much the bot had said before, for `reply`."""
        with self.changed:
            self._ids += 1
            place: dict[str, Any] = {"id": who.id, "type": "private", "first_name": who.name}
            if chat is not None:
                place = {"id": chat, "type": "supergroup", "title": "The group"}
            sender = {"id": who.id, "is_bot": False, "first_name": who.name, "username": who.name.lower()}
            message: dict[str, Any] = {"message_id": self._ids, "date": int(time.time()), "text": text}
            message |= {"chat": place, "from": sender}
            if text.startswith("/"):
                message["entities"] = [{"type": "bot_command", "offset": 0, "length": len(text.split()[0])}]
            self.updates.append({"update_id": self._ids, "message": message})
            self.changed.notify_all()
            return len(self.sent)

    def reply(self, after: int, timeout_s: float = 60) -> str:
        """The bot's next text after its first *after*. Fails loudly when none comes."""
        with self.changed:
            if not self.changed.wait_for(lambda: len(self.sent) > after, timeout_s):
                raise AssertionError(f"the bot said nothing within {timeout_s:g} s; before: {self.sent[-3:]}")
            return str(self.sent[after]["text"])

    def talk(self, who: Person, text: str, chat: int | None = None) -> str:
        """Someone writes, and the bot's answer."""
        return self.reply(self.says(who, text, chat))

    def answer(self, method: str, params: dict[str, Any]) -> Any:
        if method == "getUpdates":
            return self._due(int(params.get("offset") or 0), min(float(params.get("timeout") or 0), 20))
        if method == "getMe":
            return BOT
        if method in SENDING:
            return self._keep(params)
        if method == "getChat":
            return {"id": int(params.get("chat_id", 0)), "type": "private"}
        if method == "getWebhookInfo":
            return {"url": "", "has_custom_certificate": False, "pending_update_count": 0}
        return True

    def _due(self, offset: int, timeout_s: float) -> list[dict[str, Any]]:
        def due() -> list[dict[str, Any]]:
            return [u for u in self.updates if u["update_id"] >= offset]

        with self.changed:
            self.changed.wait_for(lambda: self.closing or due(), timeout_s)
            return due()

    def _keep(self, params: dict[str, Any]) -> dict[str, Any]:
        chat, text = int(params.get("chat_id", 0)), str(params.get("text", ""))
        with self.changed:
            self._ids += 1
            self.sent.append({"chat": chat, "text": text, "at": time.monotonic()})
            self.changed.notify_all()
            place = {"id": chat, "type": "private" if chat > 0 else "supergroup"}
            return {
                "message_id": self._ids,
                "date": int(time.time()),
                "chat": place,
                "from": BOT,
                "text": text,
            }

    def close(self) -> None:
        with self.changed:
            self.closing = True
            self.changed.notify_all()
        self._http.shutdown()
        self._http.server_close()

    def __enter__(self) -> Telegram:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Handler(BaseHTTPRequestHandler):
    telegram: Telegram
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        method = self.path.rpartition("/")[2]
        result = self.telegram.answer(method, params_of(body, self.headers.get("content-type", "")))
        data = json.dumps({"ok": True, "result": result}).encode()
        try:
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
        except OSError:
            self.close_connection = True  # the gateway stopped while it polled

    do_GET = do_POST

    def log_message(self, format: str, *args: Any) -> None:
        pass


def params_of(body: bytes, kind: str) -> dict[str, Any]:
    if "json" in kind:
        return dict(json.loads(body or b"{}"))
    if "multipart" in kind:
        fields = re.finditer(rb'name="([^"]+)"\r\n\r\n(.*?)\r\n--', body, re.DOTALL)
        return {m[1].decode(): m[2].decode(errors="replace") for m in fields}
    return {name: values[0] for name, values in urllib.parse.parse_qs(body.decode()).items()}
