"""
Asks a model, through LiteLLM or the gateway's plugin, with retries, fallbacks and the day's cap.

    Asker ── retries, fallbacks, places, ledger ─┬─ Child ── a pipe ── child.py, a process ── litellm
                                                 └─ GatewayModel ◀── polls of the plugin ── the agent's own model

Questions and answers are never logged, and never part of an error message.
"""

from __future__ import annotations

import itertools
import logging
import queue
import random
import re
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ..config import Config, Llm
from ..errors import BadReply, ConfigError, CutShort, ModelError, ModelUnavailable
from ..text.tokens import count_tokens
from .child import Child, schema_in_words
from .replies import (
    SHORT_REPLY,
    Ask,
    Failure,
    Ledger,
    ModelQuestion,
    ModelReply,
    Places,
    Spent,
    limits_in_table,
    reply_room,
    why_useless,
    with_token_counts,
    without_thinking,
)

log = logging.getLogger(__name__)

Paid = Callable[[ModelReply], object]
RETRY_PAUSE_S = 60.0  # give up if a server asks for a longer wait


class Asker:
    """
    A function (`Ask`) that asks *models* in turn, each up to `[llm] attempts` times.

    *gateway* answers for the model `gateway`, and is not asked again after it raises. *child* is the process that asks all
    other models. Several askers may share a child; its maker closes it. Raises ConfigError if *models* has `offline`,
    which means that no model is asked.

    Any number of threads may ask; `close` ends their waiting. A call raises

    - OverBudget if today's cap forbids asking;
    - CutShort if every reply reached its limit before its first word;
    - BadReply if all replies were empty or looping;
    - ModelUnavailable if no model answers for any other reason.
    """

    def __init__(
        self,
        config: Config,
        models: str | Sequence[str],
        ledger: Ledger,
        *,
        gateway: Ask | None = None,
        child: Child | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.models = (models,) if isinstance(models, str) else tuple(models)
        if not self.models or "offline" in self.models or not all(self.models):
            raise ConfigError(
                f"model = {models}: name a LiteLLM model or `gateway`; `offline` means no model"
            )
        self._config, self._llm = config, config.llm
        self._ledger = ledger
        self._gateway = gateway
        self._child = child or Child()
        self._now = now
        self._plain: set[str] = set()  # models that answer only without our schema or temperature
        self._closed = threading.Event()

    def __call__(self, question: ModelQuestion, paid: Paid = lambda reply: None) -> ModelReply:
        """Ask the models. Calls *paid* with every reply that was paid for, useful or not."""
        failed: list[ModelError] = []
        for model in self.models:
            if failed:
                log.warning("%s; asking %s instead", failed[-1], model)
            try:
                return self._persist(model, question, paid)
            except (ModelUnavailable, BadReply) as e:
                failed.append(e)
        if len(failed) == 1:
            raise failed[0]
        kinds = (CutShort, BadReply, ModelUnavailable)
        kind = next((k for k in kinds if all(isinstance(e, k) for e in failed)), ModelUnavailable)
        raise kind("; ".join(map(str, failed))) from failed[-1]

    def close(self) -> None:
        """End all waiting calls with an error. Does not close the child."""
        self._closed.set()

    def _persist(self, model: str, question: ModelQuestion, paid: Paid) -> ModelReply:
        """Ask *model*, with retries where they may help. After a useless reply, ask only once more."""
        useless = 0
        for tries in itertools.count(1):
            if self._closed.is_set():
                break
            came = self._try(model, question, paid)
            if isinstance(came, ModelReply):
                if not came.text and came.cut:  # another try would hardly think less
                    raise CutShort(
                        f"{model}: wrote no text in {came.tokens_out:,} tokens (models that reason at length do "
                        "that); raise [llm] max_output_tokens"
                    )
                if (fault := why_useless(came)) is None:
                    return came
                useless += 1
                if useless > 1 or tries >= self._llm.attempts:
                    raise BadReply(f"{model}: {fault}")
                continue
            pause = pause_before_retry(came, tries, self._llm)
            if pause is None:
                raise ModelUnavailable(f"{model}: {failure_text(came, tries, self._llm)}")
            self._closed.wait(pause)
        raise ModelUnavailable(f"{model}: not asked, because OMG is stopping")

    def _try(self, model: str, question: ModelQuestion, paid: Paid) -> ModelReply | Failure:
        """Ask *model* once. Return the reply, entered in the ledger, or why there is no reply."""
        asked = count_tokens(question.system + question.user)
        room = reply_room(model, asked, self._config)
        with self._ledger.reserved(most_spent(model, asked, room), self._now()):
            if model == "gateway":
                came: ModelReply | Failure = self._ask_gateway(question)
            else:
                came = self._ask_in_place(model, question, room)
            if isinstance(came, ModelReply):
                self._ledger.spend(came, question.purpose, self._now())
                paid(came)
                came = replace(came, text=without_thinking(came.text))
        return came

    def _ask_in_place(self, model: str, question: ModelQuestion, room: int) -> ModelReply | Failure:
        """Ask through the child. At most `[observation] parallel` calls run at once, fewer after the model refused a call."""
        places = self._child.places.setdefault(model, Places(self._config.observation.parallel))
        with places:
            began, plain = time.monotonic(), model in self._plain
            came = self._ask_child(model, question, room, plain)
            if isinstance(came, Failure) and came.status in (400, 422) and not plain:
                # Some servers refuse a schema, some a temperature, some a long reply, and not all say which.
                came = self._ask_child(model, question, room, plain=True)
                if isinstance(came, ModelReply):
                    self._plain.add(model)
            if isinstance(came, Failure) and came.status == 429:
                places.halve(began)
        return came

    def _ask_gateway(self, question: ModelQuestion) -> ModelReply:
        if self._gateway is None:
            raise ModelUnavailable(
                "gateway: OpenClaw's plugin is not connected; start the gateway, or name a model in "
                "[observation] model"
            )
        own = self._llm.temperature.get("gateway", False)
        system, temperature = schema_in_words(question.system, question.schema), None if own is False else own
        asked = replace(question, system=system, schema=None, temperature=temperature)
        return with_token_counts(self._gateway(asked), asked)

    def _ask_child(self, model: str, question: ModelQuestion, room: int, plain: bool) -> ModelReply | Failure:
        llm = self._llm
        own = llm.temperature.get(model, question.usual_temperature)
        # Without an api_base the key belongs to the first model, and no other provider may see the key.
        key = llm.api_key if llm.api_base or model == self.models[0] else ""
        answer = self._child.call(
            {
                "model": model,
                "system": question.system,
                "user": question.user,
                "schema": question.schema,
                "json_schema": False if plain else llm.json_schema,
                "plain": plain,
                "temperature": None if own is False else own,
                "max_tokens": min(room, SHORT_REPLY) if plain else room,
                "timeout_s": llm.timeout_s,
                "api_base": llm.api_base,
                "api_key": key,
            },
            llm.timeout_s,
        )
        if "text" not in answer:
            return Failure(**answer)
        return with_token_counts(ModelReply(model=model, **answer), question)


def most_spent(model: str, asked: int, room: int) -> Spent:
    """Return the most that a call can cost, with *asked* tokens in and *room* tokens out; 0 usd for a model without a price."""
    limits = limits_in_table(model)
    return Spent(asked + room, asked * (limits.usd_in or 0.0) + room * (limits.usd_out or 0.0))


def reply_to_failure(ask: Ask, question: ModelQuestion) -> ModelReply:
    """Return the reply of *ask*. For CutShort return an empty reply: the caller then asks about fewer messages."""
    try:
        return ask(question)
    except CutShort:
        return ModelReply("", "", 0, 0, cut=True)


def pause_before_retry(failure: Failure, tries: int, llm: Llm) -> float | None:
    """Return the seconds to wait after *tries* attempts; None: give up."""
    if not failure.again or tries >= llm.attempts or (failure.wait_s or 0) > RETRY_PAUSE_S:
        return None
    # ±20 %, so that calls that failed together are not retried together
    pause: float = min(llm.backoff_s * 2 ** (tries - 1), RETRY_PAUSE_S) * random.uniform(0.8, 1.2)
    return max(pause, failure.wait_s or 0)


def failure_text(failure: Failure, tries: int, llm: Llm) -> str:
    """Say to a person what happened and what to do."""
    if not failure.status and not failure.again:
        return failure.why  # no model failed
    happened, remedy = {
        400: ("refused the request", "check the model's name and its limits ([llm] max_output_tokens)"),
        401: ("refused the key", "set the provider's own variable, such as OPENAI_API_KEY, or [llm] api_key"),
        403: ("refused the key", "check what the key may do, and which models it may use"),
        404: ("is not known there", "check the model's name and [llm] api_base"),
        408: (
            f"did not answer within {llm.timeout_s:g} s",
            "raise [llm] timeout_s, or name a fallback model",
        ),
        429: ("has reached its rate limit or quota", "wait, or name a fallback model"),
    }.get(failure.status, ("gave no usable answer", "check that the server is up, and [llm] api_base"))
    if failure.wait_s and failure.wait_s > RETRY_PAUSE_S:
        remedy = f"it asks us to wait {failure.wait_s:.0f} s"
    code = f"{failure.status}: " if failure.status else ""
    after = f" after {tries} tries" if tries > 1 else ""
    return f"{happened}{after} ({code}{failure.why}); {remedy}"


# --- The agent's own model, lent by the gateway: questions wait here until the plugin fetches them.
#
# The plugin polls `next` without pause, lets the gateway answer each question, and hands the reply to `done`. The gateway's
# error message may quote the conversation, so only the kind of failure is passed on.


LONG_POLL_S = 8.0  # an unanswered poll tells the plugin that the daemon hangs (hooks/daemon.js)
GONE_S = 20.0  # without a poll for this long, the plugin has ended: a live plugin polls again at once
# Questions that were given up and may still be answered; the plugin itself gives up after three minutes.
LATE_REMEMBERED = 64
STOPPING = "gateway: not asked, because OMG is stopping"
AT_ONCE = 2  # calls that run at once; the same model also answers the person
TOO_MANY = "it is at its rate limit or quota; wait, or name another model"

FAILURE_KINDS = (
    # The plugin asks outside of every scope that OpenClaw closes (hooks/index.js); other versions may refuse.
    (
        "inventory has retired|async work scope is closed",
        "OpenClaw has reloaded its plugins, and lends no model to the old ones; start the gateway again",
    ),
    ("allowAgentIdOverride|NOT_AUTHORIZED", "the plugin may not ask this agent's model; run `omg install`"),
    (r"\b40[13]\b|unauthori[sz]ed|api.?key", "its key was refused; check that the agent itself can answer"),
    (r"\b429\b|rate.?limit|too.?many.?requests|quota|overloaded", TOO_MANY),
    (r"time.?out|timed out|abort", "it did not answer in time"),
    (r"context.{0,20}(length|window)|too (long|large|many tokens)", "the question was too long for it"),
)


class GatewayModel:
    """
    Asks the gateway's model through the plugin; an object is called like a function (`Ask`). A reply has at most
    *max_tokens*.

    At most AT_ONCE calls run in parallel. After a rate-limit error, fewer calls run in parallel.

    *late* is called with each reply that came after *timeout_s*, because such a reply was also paid for.
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
        self.trouble = ""  # why the last question was not answered; "": it was
        self.places = Places(AT_ONCE)
        self._asked: queue.Queue[str | None] = queue.Queue()
        self._waiting: dict[str, tuple[ModelQuestion, queue.Queue[Mapping[str, Any]]]] = {}
        self._given_up: dict[str, ModelQuestion] = {}  # the plugin may still bring replies
        self._closed = threading.Event()

    def __call__(self, question: ModelQuestion) -> ModelReply:
        """Ask the model. Raises ModelUnavailable if no answer comes in time, or when the daemon stops."""
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
        if self._closed.is_set():  # a later `close` ends this wait itself
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
        """Return a question for the plugin. If no question comes within *poll_s*, return {}, to show that the daemon is
        alive."""
        until = time.monotonic() + self.poll_s
        self.polled = time.monotonic()
        while not self._closed.is_set() and (left := until - time.monotonic()) > 0:
            try:
                id = self._asked.get(timeout=left)
            except queue.Empty:
                break
            if id and (waiting := self._waiting.get(id)):  # otherwise the caller has given up
                return {"id": id, "question": llm_request(waiting[0], self.max_tokens)}
        return {}

    def is_gone(self) -> bool:
        """Whether a plugin has asked for questions, but no longer does."""
        return self.polled is not None and time.monotonic() - self.polled > GONE_S

    def again(self, reply: Mapping[str, Any]) -> None:
        """
        Put a question back into the queue, because the question did not reach the plugin.

        *reply*: the question, as `next` returned it. The plugin's next poll gets the question.
        """
        if id := reply.get("id"):
            self._asked.put(str(id))

    def done(self, body: Mapping[str, Any]) -> dict[str, Any]:
        if waiting := self._waiting.get(str(body.get("id"))):
            with suppress(queue.Full):
                waiting[1].put_nowait(dict(body))
        elif (question := self._given_up.pop(str(body.get("id")), None)) and "error" not in body:
            self.late(question, lent_reply(body))
        return {}

    def close(self) -> None:
        """Stop all waiting: a call that waits for an answer fails, and the plugin's open polls return no question."""
        self._closed.set()
        for _, answer in list(self._waiting.values()):
            with suppress(queue.Full):
                answer.put_nowait({})
        for _ in range(8):  # more polls than a gateway has open at once
            self._asked.put(None)


def llm_request(question: ModelQuestion, max_tokens: int) -> dict[str, Any]:
    """Put *question* into the form of the gateway's `llm.complete`. The plugin adds only a deadline."""
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
    """Say in our own words what went wrong with the gateway's model. The gateway's words may quote the conversation."""
    said, code = str(reply.get("error") or ""), str(reply.get("code") or "")
    happened = next(
        (words for form, words in FAILURE_KINDS if re.search(form, f"{code} {said}", re.IGNORECASE)),
        "the agent's model failed; OpenClaw's log says more",
    )
    return happened + (f" ({code})" if re.fullmatch(r"[A-Z][A-Z0-9_]{2,60}", code) else "")


def whole_number(value: object) -> int:
    return int(value) if isinstance(value, int | float) and 0 < value < 1e12 else 0
