"""
The agent's own model, lent by the gateway: questions wait here until the plugin fetches them.

The plugin asks `next` without pause, has the gateway answer the question it gets, and hands the reply to `done`. A
gateway's message about a failure may quote the conversation, so only the kind of failure is passed on.
"""

from __future__ import annotations

import contextlib
import queue
import re
import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import ModelUnavailable
from ..llm.replies import ModelQuestion, ModelReply, Places

LONG_POLL_S = 8.0  # the plugin notices a daemon that hangs when a poll is not answered (hooks/daemon.js)
GONE_S = 20.0  # after so long without a poll the plugin has ended: it polls again at once after each answer
LATE_REMEMBERED = 64  # questions that were given up; the plugin itself gives up after three minutes
STOPPING = "gateway: not asked any more, OMG is stopping"
AT_ONCE = 2  # calls under way; the same model also answers the person
TOO_MANY = "it is at its rate limit or quota; wait, or name another model"

FAILURE_KINDS = (
    # The plugin asks outside of every such operation (hooks/index.js); another version of OpenClaw may still refuse.
    (
        "inventory has retired|async work scope is closed",
        "OpenClaw has reloaded its plugins, and lends no model to what ran before; start the gateway again",
    ),
    ("allowAgentIdOverride|NOT_AUTHORIZED", "the plugin may not ask this agent's model; run `omg install`"),
    (r"\b40[13]\b|unauthori[sz]ed|api.?key", "its key was refused; see that the agent itself can answer"),
    (r"\b429\b|rate.?limit|too.?many.?requests|quota|overloaded", TOO_MANY),
    (r"time.?out|timed out|abort", "it did not answer in time"),
    (r"context.{0,20}(length|window)|too (long|large|many tokens)", "the question was too long for it"),
)


class GatewayModel:
    """
    An Ask that the plugin answers, each time in at most *max_tokens*. AT_ONCE calls at once, fewer after TOO_MANY.

    *late* is called with a reply that came after its question was given up: it was paid for.
    """

    def __init__(
        self,
        timeout_s: float,
        max_tokens: int,
        *,
        poll_s: float = LONG_POLL_S,
        late: Callable[[ModelQuestion, ModelReply], None] = lambda question, reply: None,
    ) -> None:
        self.timeout_s, self.max_tokens, self.poll_s, self.late = timeout_s, max_tokens, poll_s, late
        self.polled: float | None = None  # monotonic time at which the plugin last asked for questions
        self.answered = ""  # the model that last answered, as the gateway names it
        self.trouble = ""  # why the last question was not answered; "" if it was
        self.places = Places(AT_ONCE)
        self._asked: queue.Queue[str | None] = queue.Queue()
        self._waiting: dict[str, tuple[ModelQuestion, queue.Queue[Mapping[str, Any]]]] = {}
        self._given_up: dict[str, ModelQuestion] = {}  # the last ones: the plugin may still bring a reply
        self._closed = threading.Event()

    def __call__(self, question: ModelQuestion) -> ModelReply:
        """Raises ModelUnavailable if no answer comes in time, or when the daemon stops."""
        with self.places:
            began = time.monotonic()
            try:
                reply = self._ask(question)
            except ModelUnavailable as e:
                self.trouble = str(e)
                if TOO_MANY in self.trouble:
                    self.places.halve(began)
                raise
        self.answered, self.trouble = reply.model, ""
        return reply

    def _ask(self, question: ModelQuestion) -> ModelReply:
        id, answer = uuid.uuid4().hex, queue.Queue[Mapping[str, Any]](1)
        self._waiting[id] = question, answer
        self._asked.put(id)
        if self._closed.is_set():  # if `close` came later, it answers this wait itself
            answer.put({})
        try:
            reply = answer.get(timeout=self.timeout_s)
        except queue.Empty:
            while len(self._given_up) >= LATE_REMEMBERED:
                self._given_up.pop(next(iter(self._given_up)))
            self._given_up[id] = question
            raise ModelUnavailable(
                f"gateway: no answer within {self.timeout_s:g} s; is the gateway up, and does its model answer?"
            ) from None
        finally:
            self._waiting.pop(id, None)
        if self._closed.is_set():
            raise ModelUnavailable(STOPPING)
        if "error" in reply:
            raise ModelUnavailable(f"gateway: {failure_kind(reply)}")
        return lent_reply(reply)

    def next(self, _: Mapping[str, Any]) -> dict[str, Any]:
        """A question for the plugin; {} after LONG_POLL_S without one, which shows that the daemon is alive."""
        until = time.monotonic() + self.poll_s
        self.polled = time.monotonic()
        while not self._closed.is_set() and (left := until - time.monotonic()) > 0:
            try:
                id = self._asked.get(timeout=left)
            except queue.Empty:
                break
            if id and (waiting := self._waiting.get(id)):  # else the asker has given up
                return {"id": id, "question": llm_request(waiting[0], self.max_tokens)}
        return {}

    def is_gone(self) -> bool:
        """Whether a plugin has asked for questions, but no longer does."""
        return self.polled is not None and time.monotonic() - self.polled > GONE_S

    def again(self, reply: Mapping[str, Any]) -> None:
        """Put back the question in a *reply* of `next` that did not reach its poll: the next poll gets it."""
        if id := reply.get("id"):
            self._asked.put(str(id))

    def done(self, body: Mapping[str, Any]) -> dict[str, Any]:
        if waiting := self._waiting.get(str(body.get("id"))):
            with contextlib.suppress(queue.Full):
                waiting[1].put_nowait(dict(body))
        elif (question := self._given_up.pop(str(body.get("id")), None)) and "error" not in body:
            self.late(question, lent_reply(body))
        return {}

    def close(self) -> None:
        """End every wait for an answer or a question."""
        self._closed.set()
        for _, answer in list(self._waiting.values()):
            with contextlib.suppress(queue.Full):
                answer.put_nowait({})
        for _ in range(8):  # more polls than a gateway has open at once
            self._asked.put(None)


def llm_request(question: ModelQuestion, max_tokens: int) -> dict[str, Any]:
    """The *question* as the gateway's `llm.complete` takes it; the plugin adds only a deadline."""
    return {
        "systemPrompt": question.system,
        "messages": [{"role": "user", "content": question.user}],
        "maxTokens": max_tokens,
        "purpose": f"omg.{question.purpose}",
        "agentId": question.agent,
        **({} if question.temperature is None else {"temperature": question.temperature}),
    }


def lent_reply(body: Mapping[str, Any]) -> ModelReply:
    usage = body.get("usage")
    usage = usage if isinstance(usage, Mapping) else {}
    return ModelReply(
        text=str(body.get("text") or ""),
        model=str(body.get("model") or "gateway"),
        tokens_in=whole_number(usage.get("input") or usage.get("inputTokens")),
        tokens_out=whole_number(usage.get("output") or usage.get("outputTokens")),
        cut=body.get("stopReason") == "length",
    )


def failure_kind(reply: Mapping[str, Any]) -> str:
    """What went wrong with the gateway's model, in our own words."""
    said, code = str(reply.get("error") or ""), str(reply.get("code") or "")
    happened = next(
        (words for form, words in FAILURE_KINDS if re.search(form, f"{code} {said}", re.IGNORECASE)),
        "the agent's model failed; OpenClaw's log says more",
    )
    return happened + (f" ({code})" if re.fullmatch(r"[A-Z][A-Z0-9_]{2,60}", code) else "")


def whole_number(value: object) -> int:
    return int(value) if isinstance(value, int | float) and 0 < value < 1e12 else 0
