"""
A model that says what it is told to: an OpenAI-compatible server on loopback, for tests.

    with OpenAIServer() as server:                      # or the fixture `openai_server`
        server.replies(Fail(429, retry_after=0), {"edits": []})     # said once each, in order
        server.always(lambda request: request.user.upper())         # said when the queue is empty
        …                                               # api_base = server.base, any key
        assert server.history[0].user == "hello"

A reply is text, a value (sent as its JSON), one of the classes below, or a function from Request to any of
these; like any server's, it ends at the `max_tokens` of the request. The check of what a reply would have the user say
(omg/provenance.py) is not in the queue: every claim is supported, unless `server.check` says otherwise, and the
requests are in `server.checks`. Nor is the night's question on maps: nothing is told of them, unless `server.maps` says
otherwise. It passes the examination of models, unless `server.passes` is False. With nothing left to say it answers 404,
which nobody retries, so that a call a test did not expect is seen. It is a real server on a real socket; what
it is not is a judge of what a client should send.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from omg.check import fixed_cases
from omg.llm.replies import Ask, ModelQuestion, ModelReply


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asked."""

    path: str
    headers: Mapping[str, str]  # names in lower case
    body: dict[str, Any]

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def key(self) -> str:
        return self.headers.get("authorization", "").removeprefix("Bearer ")

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON schema the reply is asked to follow; None when none was sent."""
        form = self.body.get("response_format") or {}
        return (form.get("json_schema") or {}).get("schema")

    def said(self, role: str) -> str:
        """All text of the messages of *role*."""
        return "\n".join(
            text_of(m.get("content")) for m in self.body.get("messages", []) if m.get("role") == role
        )

    @property
    def system(self) -> str:
        return self.said("system")

    @property
    def user(self) -> str:
        return self.said("user")


@dataclass(frozen=True, slots=True)
class Say:
    """A whole reply, where its text alone is not enough to say."""

    text: str | None
    tokens_in: int = 100
    tokens_out: int = 20
    finish: str = "stop"  # "length": cut at max_tokens
    usage: bool = True  # False: some servers count nothing
    extra: Mapping[str, Any] = field(default_factory=dict)  # more keys of the message, such as `refusal`


@dataclass(frozen=True, slots=True)
class Fail:
    """An HTTP error."""

    status: int
    message: str = "scripted failure"
    retry_after: float | str | None = None


@dataclass(frozen=True, slots=True)
class Hang:
    """No byte of an answer until the client has gone or the server closes."""


@dataclass(frozen=True, slots=True)
class Slow:
    """
    *reply*, after *seconds*; with *drip*, its bytes one by one over that time.

    A dripping body defeats a client's timeout between two reads.
    """

    reply: Any
    seconds: float
    drip: bool = False


@dataclass(frozen=True, slots=True)
class Drop:
    """The connection closes: with no answer, or *after* that many bytes of the answer to *reply*."""

    reply: Any = "unfinished"
    after: int = 0


@dataclass(frozen=True, slots=True)
class Raw:
    """Any bytes with status 200, such as a proxy's HTML page."""

    body: bytes
    content_type: str = "text/html"


Reply = Any  # str | dict | list | Say | Fail | Hang | Slow | Drop | Raw | Callable[[Request], Reply]
OVER = Fail(404, "the test's script is over: this request was not expected")


def claims_of(user: str) -> dict[str, Any]:
    """The claims that the check is asked about, by number; none where *user* asks something else."""
    try:
        return dict(json.loads(user)["claims"])
    except (ValueError, TypeError, KeyError):
        return {}


def exam_answer(user: str) -> dict[str, Any] | None:
    """The right answer to a question of the examination of models (omg/check.py); None where *user* asks something else."""
    claims = claims_of(user)
    for case in fixed_cases() if claims else ():
        expected = {n: c["expect"].split(" or ")[0] for n, c in case["claims"].items()}
        asked = [c.get("text") for c in claims.values() if isinstance(c, dict)]
        if [c["text"] for c in case["claims"].values()] == asked:
            return {"verdicts": expected}
    return None


def borne_out(user: str) -> dict[str, Any]:
    """What one answers to the check who believes everything, and passes the examination nevertheless."""
    return exam_answer(user) or {"verdicts": dict.fromkeys(claims_of(user), "supported")}


def on_maps(user: str) -> dict[str, Any] | None:
    """What one answers to the night's question on maps who has nothing to tell; None where *user* asks something else."""
    return {"maps": []} if user.startswith("# m1: ") else None


def created(text: str, *sources: str, **more: Any) -> dict[str, Any]:
    """An edit by which a model notes *text* as a fact."""
    edit = {"op": "create", "type": "fact", "title": text, "description": text, "priority": "low"}
    return {**edit, "sources": list(sources), **more}


def believed(question: ModelQuestion) -> ModelReply | None:
    """The same for a model that is a function, and nothing told of maps; None where *question* is another one."""
    answer = borne_out(question.user)
    reply = answer if answer["verdicts"] else on_maps(question.user)
    return ModelReply(json.dumps(reply), "scripted", 1, 1) if reply else None


def believing(ask: Ask) -> Ask:
    """*ask*, and the check answered by somebody who believes everything."""
    return lambda question: believed(question) or ask(question)


class OpenAIServer:
    """Listens from construction to `close`, on a port of its own."""

    def __init__(self, *replies: Reply) -> None:
        self.history: list[Request] = []
        self.checks: list[Request] = []
        self.passes = True  # the examination, which no test sees; else `check` answers it
        self.check: Reply = lambda request: borne_out(request.user)
        self.maps: Reply = lambda request: on_maps(request.user)
        self.queue: deque[Reply] = deque(replies)
        self.fallback: Reply = OVER
        self.closing = threading.Event()
        self._turn = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"script": self}))
        self._http.daemon_threads = True
        self.base = f"http://127.0.0.1:{self._http.server_port}/v1"
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    def replies(self, *replies: Reply) -> None:
        """Say these next, each once."""
        self.queue.extend(replies)

    def always(self, reply: Reply) -> None:
        """Say this whenever the queue is empty."""
        self.fallback = reply

    def reset(self) -> None:
        """Forget the script and the history."""
        self.queue.clear()
        self.history.clear()
        self.fallback = OVER

    def next(self, request: Request) -> Reply:
        with self._turn:
            if (exam := exam_answer(request.user)) is not None and self.passes:
                reply: Reply = exam
            elif claims_of(request.user):
                self.checks.append(request)
                reply = self.check
            elif on_maps(request.user):
                reply = self.maps
            else:
                self.history.append(request)
                reply = self.queue.popleft() if self.queue else self.fallback
        while callable(reply):
            reply = reply(request)
        return reply

    def close(self) -> None:
        if not self.closing.is_set():
            self.closing.set()
            self._http.shutdown()
            self._http.server_close()

    def __enter__(self) -> OpenAIServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Handler(BaseHTTPRequestHandler):
    script: OpenAIServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.answer(
            200, json.dumps({"object": "list", "data": [{"id": "scripted", "object": "model"}]}).encode()
        )

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
        request = Request(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
        try:
            self.play(self.script.next(request), request)
        except OSError:
            self.close_connection = True  # the client has gone: what a timeout looks like from here

    def play(self, reply: Reply, request: Request) -> None:
        match reply:
            case Hang():
                self.wait_for_the_end()
            case Slow(inner, seconds, drip):
                if drip:
                    status, data, headers = rendered(inner, request)
                    self.answer(status, data, headers, pause_s=seconds / max(1, len(data)))
                elif not self.script.closing.wait(seconds):
                    self.play(inner, request)
            case Drop(inner, after):
                status, data, headers = rendered(inner, request)
                if after:
                    self.answer(status, data, headers, cut=after)
                self.close_connection = True
            case _:
                self.answer(*rendered(reply, request))

    def wait_for_the_end(self) -> None:
        self.connection.settimeout(0.05)
        while not self.script.closing.is_set():
            try:
                if not self.connection.recv(1):
                    break
            except TimeoutError:
                pass
        self.close_connection = True

    def answer(
        self,
        status: int,
        data: bytes,
        headers: Mapping[str, str] | None = None,
        pause_s: float = 0,
        cut: int | None = None,
    ) -> None:
        self.send_response(status)
        for name, value in {"content-type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        if not pause_s:
            self.wfile.write(data[:cut])
            return
        for i in range(len(data)):
            if self.script.closing.is_set():
                break
            self.wfile.write(data[i : i + 1])
            self.wfile.flush()
            time.sleep(pause_s)

    def log_message(self, format: str, *args: Any) -> None:
        pass


def rendered(reply: Reply, request: Request) -> tuple[int, bytes, dict[str, str]]:
    """Status, body and headers of a reply that is neither late nor cut."""
    match reply:
        case Fail(status, message, retry_after):
            headers = {} if retry_after is None else {"retry-after": str(retry_after)}
            return status, json.dumps({"error": {"message": message, "code": status}}).encode(), headers
        case Raw(body, content_type):
            return 200, body, {"content-type": content_type}
        case Say():
            say = reply
        case str():
            say = Say(reply)
        case _:
            say = Say(json.dumps(reply, ensure_ascii=False))
    say = cut(say, request)
    if request.body.get("stream"):
        return 200, streamed(say, request), {"content-type": "text/event-stream"}
    message = {"role": "assistant", "content": say.text, **say.extra}
    choice = {"index": 0, "message": message, "finish_reason": say.finish}
    return 200, json.dumps(envelope(request, "chat.completion", choice) | usage(say)).encode(), {}


def cut(say: Say, request: Request) -> Say:
    """*say*, ended at the tokens that the request allows, of four characters each."""
    limit = request.body.get("max_tokens") or request.body.get("max_completion_tokens")
    if not limit or not say.text or len(say.text) <= 4 * limit:
        return say
    return replace(say, text=say.text[: 4 * limit], finish="length", tokens_out=limit)


def streamed(say: Say, request: Request) -> bytes:
    """The reply as server-sent events, the way OpenClaw asks for all of its own."""
    delta = {"role": "assistant", "content": say.text, **say.extra}
    chunks = [
        envelope(request, "chat.completion.chunk", {"index": 0, "delta": delta, "finish_reason": None}),
        envelope(request, "chat.completion.chunk", {"index": 0, "delta": {}, "finish_reason": say.finish}),
        {**envelope(request, "chat.completion.chunk"), **usage(say)},
    ]
    return b"".join(b"data: " + json.dumps(c).encode() + b"\n\n" for c in chunks) + b"data: [DONE]\n\n"


def envelope(request: Request, kind: str, *choices: dict[str, Any]) -> dict[str, Any]:
    return {"id": "scripted", "object": kind, "created": 1, "model": request.model, "choices": list(choices)}


def usage(say: Say) -> dict[str, Any]:
    if not say.usage:
        return {}
    total = say.tokens_in + say.tokens_out
    return {
        "usage": {"prompt_tokens": say.tokens_in, "completion_tokens": say.tokens_out, "total_tokens": total}
    }


def text_of(content: Any) -> str:
    """A message's text, whether it is a string or a list of parts."""
    if isinstance(content, list):
        return "\n".join(part.get("text", "") for part in content if isinstance(part, dict))
    return content or ""
