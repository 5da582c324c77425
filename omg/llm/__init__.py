"""
Ask a model, over LiteLLM, in a child process that comes and goes.

    Asker ── retries, fallbacks, ledger ── Child ── a pipe ── child.py, a process ── litellm

What comes back is text: what it means is for the Observer and the Reflector to say. One rule: what is asked
and what is answered is never logged, and never part of an error.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import json
import logging
import random
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..config import Config, Llm
from ..errors import BadReply, ConfigError, CutShort, ModelError, ModelUnavailable
from ..tokens import count
from .child import Child, spelled
from .ledger import Ledger, Reply

__all__ = [
    "Ask",
    "Asker",
    "Child",
    "Ledger",
    "Question",
    "Reply",
    "asker",
    "degenerate",
    "reply_to",
    "window",
]

log = logging.getLogger(__name__)

SHORT_REPLY = 4_000  # tokens that every model allows
LONGEST_PAUSE_S = 60.0  # who asks us to wait longer than this is not waited for


@dataclass(frozen=True, slots=True)
class Question:
    system: str
    user: str
    schema: dict[str, Any] | None  # JSON schema of the reply; None: any text
    purpose: str  # "observe", "reflect", …: what the ledger says it was for
    agent: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no reply, as the child tells it."""

    why: str
    status: int = 0  # HTTP; 0: no answer at all
    again: bool = True  # whether the same question may fare better a little later
    wait_s: float | None = None  # how long the server asks us to stay away


Ask = Callable[[Question], Reply]


class Asker:
    """
    An Ask: each of *models* in turn, each as often as `[llm] attempts` says.

    Raises OverBudget before a call that today's cap forbids, CutShort if every reply reached its limit unsaid,
    BadReply if all that came was empty or looping, else ModelUnavailable. One thread at a time is served; `close` from another one ends its waiting.
    """

    def __init__(
        self,
        config: Config,
        models: Sequence[str],
        ledger: Ledger,
        *,
        gateway: Ask | None = None,
        child: Child | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.models = tuple(models)
        self._config, self._llm = config, config.llm
        self._ledger = ledger
        self._gateway = gateway
        self._child = child or Child()
        self._child_is_ours = child is None
        self._now = now
        self._plain: set[str] = set()  # models that refused our schema or temperature, and answered without
        self._closed = threading.Event()

    def __call__(self, question: Question) -> Reply:
        failed: list[ModelError] = []
        for model in self.models:
            if failed:
                log.warning("%s; asking %s", failed[-1], model)
            try:
                return self._persist(model, question)
            except (ModelUnavailable, BadReply) as e:
                failed.append(e)
        if len(failed) == 1:
            raise failed[0]
        kinds = (CutShort, BadReply, ModelUnavailable)
        kind = next((k for k in kinds if all(isinstance(e, k) for e in failed)), ModelUnavailable)
        raise kind("; ".join(map(str, failed))) from failed[-1]

    def close(self) -> None:
        self._closed.set()
        if self._child_is_ours:
            self._child.close()

    def __enter__(self) -> Asker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _persist(self, model: str, question: Question) -> Reply:
        """*model*'s reply, tried again where that may help. A useless reply gets one more chance, not all."""
        useless = 0
        for tries in itertools.count(1):
            if self._closed.is_set():
                break
            self._ledger.check(self._now())
            came = self._try(model, question)
            if isinstance(came, Reply):
                if not came.text and came.cut:  # asked the same again, it would hardly think less
                    raise CutShort(
                        f"{model}: said nothing in {came.tokens_out:,} tokens (models that reason at length do "
                        "that); raise [llm] max_output_tokens"
                    )
                if (fault := faulty(came)) is None:
                    return came
                useless += 1
                if useless > 1 or tries >= self._llm.attempts:
                    raise BadReply(f"{model}: {fault}")
                continue
            pause = rest(came, tries, self._llm)
            if pause is None:
                raise ModelUnavailable(f"{model}: {told(came, tries, self._llm)}")
            self._closed.wait(pause)
        raise ModelUnavailable(f"{model}: not asked any more, OMG is stopping")

    def _try(self, model: str, question: Question) -> Reply | Failure:
        """One reply, entered in the ledger, or why there is none."""
        if model == "gateway":
            came: Reply | Failure = self._ask_gateway(question)
        else:
            plain = model in self._plain
            came = self._ask_child(model, question, plain)
            if isinstance(came, Failure) and came.status in (400, 422) and not plain:
                # Some servers refuse a schema, some a temperature, some a long reply, and not all say which.
                came = self._ask_child(model, question, plain=True)
                if isinstance(came, Reply):
                    self._plain.add(model)
        if isinstance(came, Reply):
            self._ledger.spend(came, question.purpose, self._now())
            came = replace(came, text=spoken(came.text))
        return came

    def _ask_gateway(self, question: Question) -> Reply:
        if self._gateway is None:
            raise ModelUnavailable(
                "gateway: OpenClaw's plugin is not connected; start the gateway, or name a model in "
                "[observation] model"
            )
        asked = replace(question, system=spelled(question.system, question.schema), schema=None)
        return counted(self._gateway(asked), asked)

    def _ask_child(self, model: str, question: Question, plain: bool) -> Reply | Failure:
        llm = self._llm
        room = reply_tokens(model, question, self._config)
        # Without an api_base the key is the first model's: another provider must not be shown it.
        key = llm.api_key if llm.api_base or model == self.models[0] else ""
        answer = self._child.call(
            {
                "model": model,
                "system": question.system,
                "user": question.user,
                "schema": question.schema,
                "json_schema": False if plain else llm.json_schema,
                "plain": plain,
                "max_tokens": min(room, SHORT_REPLY) if plain else room,
                "timeout_s": llm.timeout_s,
                "api_base": llm.api_base,
                "api_key": key,
            },
            llm.timeout_s,
        )
        return counted(Reply(model=model, **answer), question) if "text" in answer else Failure(**answer)


def asker(
    config: Config,
    models: str | Sequence[str],
    ledger: Ledger,
    *,
    gateway: Ask | None = None,
    child: Child | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Asker:
    """
    The Ask over *models*, the first that answers; close it after use.

    *gateway* answers for the model `gateway`, and is not asked again when it raises. Askers that share a
    *child* share its process; who made it closes it.
    """
    models = [models] if isinstance(models, str) else list(models)
    if not models or "offline" in models or not all(models):
        raise ConfigError(f"model = {models}: name a LiteLLM model or `gateway`; `offline` is never asked")
    return Asker(config, models, ledger, gateway=gateway, child=child, now=now)


def reply_to(ask: Ask, question: Question) -> Reply:
    """What *ask* says, for one who asks about less where a reply was cut: empty, where it was cut before its first word."""
    try:
        return ask(question)
    except CutShort:
        return Reply("", "", 0, 0, cut=True)


def rest(failure: Failure, tries: int, llm: Llm) -> float | None:
    """Seconds until the next try after *tries* of them; None: there is none."""
    if not failure.again or tries >= llm.attempts or (failure.wait_s or 0) > LONGEST_PAUSE_S:
        return None
    # ±20 %, so that what failed together does not come back together
    pause: float = min(llm.backoff_s * 2 ** (tries - 1), LONGEST_PAUSE_S) * random.uniform(0.8, 1.2)
    return max(pause, failure.wait_s or 0)


def told(failure: Failure, tries: int, llm: Llm) -> str:
    """What happened and what to do, for a person."""
    if not failure.status and not failure.again:
        return failure.why  # there was no model to blame
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
    }.get(failure.status, ("gave no usable answer", "see that the server is up; check [llm] api_base"))
    if failure.wait_s and failure.wait_s > LONGEST_PAUSE_S:
        remedy = f"it asks to be left alone for {failure.wait_s:.0f} s"
    code = f"{failure.status}: " if failure.status else ""
    after = f" after {tries} tries" if tries > 1 else ""
    return f"{happened}{after} ({code}{failure.why}); {remedy}"


def faulty(reply: Reply) -> str | None:
    """Why *reply* is of no use to anyone; None if it may be."""
    if not reply.text:
        return "sent an empty reply; if it goes on, name another model"
    if degenerate(reply.text):
        return "sent a reply that repeats itself without end; if it goes on, name another model"
    return None


def counted(reply: Reply, question: Question) -> Reply:
    """*reply* with our own token counts, where the server gave none: a cap must hold there, too."""
    if reply.tokens_in or reply.tokens_out:
        return reply
    return replace(reply, tokens_in=count(question.system + question.user), tokens_out=count(reply.text))


def spoken(text: str) -> str:
    """*text* without the thinking that some local models write before it."""
    return re.sub(r"\A\s*<think(ing)?>.*?(</think(ing)?>|\Z)", "", text, flags=re.DOTALL).strip()


def degenerate(text: str) -> bool:
    """
    Whether *text* is a model's endless loop.

    Judged by lines, and careful: a batch whose reply is refused is asked again, so a faithful list, log or
    progress bar must pass. A line that repeats at once counts as one, up to 10,000 characters of it; lines
    below 24 characters say little and count for nothing; only a line of its own 1,500 characters can loop
    in itself. (Cases: mastra-ai/mastra#24354.)
    """
    if len(text) < 2_000:
        return False
    lines = [line for line in map(str.strip, text.splitlines()) if line]
    share: dict[str, int] = {}
    for line in lines:
        share[line] = share.get(line, 0) + len(line) + 1
    if any(size > 10_000 and size > 2 * len(line) for line, size in share.items()):
        return True
    once = [line for line, _ in itertools.groupby(lines) if len(line) >= 24]
    if len(once) >= 20 and len(set(once)) <= len(once) / 4:
        return True
    return any(stuck(line) for line in share if len(line) >= 1_500)


def stuck(line: str) -> bool:
    """Whether *line* ends in one piece said over and over, for 1,500 characters and half of its length."""
    tail = line.rstrip('`]}" ,;.')[-20_000:][::-1]  # reversed: what the end repeats is a prefix now
    reach = [0] * len(tail)  # reach[i]: how far the text from i on equals that from 0 on (Gusfield's Z array)
    left = right = 0
    for i in range(1, len(tail)):
        n = min(right - i, reach[i - left]) if i < right else 0
        while i + n < len(tail) and tail[n] == tail[i + n]:
            n += 1
        reach[i] = n
        if i + n > right:
            left, right = i, i + n
        if n >= 3 * i and i + n >= max(1_500, len(tail) / 2) and re.search(r"\w", tail[:i]):
            return True
    return False


def window(model: str, config: Config) -> int:
    """
    Tokens *model* can take in.

    From the configuration, else from the table that LiteLLM carries (read as a file: no import). Unknown:
    8,192 for a server of one's own, a common default there, and 32,000 for any other, less than most have.
    """
    known = config.llm.context_window or in_table(model)[0]
    return known or (8_192 if config.llm.api_base else 32_000)


def reply_tokens(model: str, question: Question, config: Config) -> int:
    """Tokens that a reply of *model* may have: as many as it gives, and as its window leaves beside *question*."""
    wanted = config.llm.max_output_tokens
    left = window(model, config) - count(question.system + question.user)
    # A window that is not known is guessed low: below what every model allows, only the table and the user go.
    return min(wanted, in_table(model)[1] or wanted, max(left, SHORT_REPLY))


@functools.lru_cache(maxsize=64)
def in_table(model: str) -> tuple[int | None, int | None]:
    """Tokens that *model* takes in, and that it gives; None where the table does not know."""
    spec = importlib.util.find_spec("litellm")
    if spec is None or not spec.submodule_search_locations:
        return None, None
    file = Path(spec.submodule_search_locations[0]) / "model_prices_and_context_window_backup.json"
    try:
        table = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return None, None
    name = model
    while name:  # `openrouter/anthropic/x` is there as itself, or as `anthropic/x`, or as `x`
        if entry := table.get(name):
            takes, gives = (
                entry.get("max_input_tokens") or entry.get("max_tokens"),
                entry.get("max_output_tokens"),
            )
            return int(takes) if takes else None, int(gives) if gives else None
        name = name.partition("/")[2]
    return None, None
