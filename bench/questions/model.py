"""
One request to a model through LiteLLM, and what it cost.

One rule: what fails is asked again a few times, then told; nothing is made up in its place.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

ATTEMPTS, PAUSE_S = 3, 2.0
HOPELESS = ("AuthenticationError", "BadRequestError", "NotFoundError", "PermissionDeniedError")


@dataclass(frozen=True, slots=True)
class Model:
    name: str
    base: str = ""
    timeout_s: float = 7_000


@dataclass(slots=True)
class Spent:
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float = 0.0
    seconds: float = 0.0

    def value(self) -> dict[str, float]:
        return {
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
            "usd": round(self.usd, 6),
            "seconds": round(self.seconds, 1),
        }


@dataclass(frozen=True, slots=True)
class Reply:
    text: str
    calls: list[dict[str, Any]] = field(default_factory=list)  # id, name, arguments as text


@contextmanager
def connections() -> Iterator[None]:
    """All requests go through one pool of connections, which is closed in the end."""
    import httpx

    litellm = loaded()
    with httpx.Client(follow_redirects=True, limits=httpx.Limits()) as session:
        litellm.client_session = session
        try:
            yield
        finally:
            litellm.client_session = None
            litellm.in_memory_llm_clients_cache.flush_cache()


def loaded() -> Any:
    os.environ.setdefault(
        "LITELLM_LOCAL_MODEL_COST_MAP", "True"
    )  # else it fetches a price list when imported
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")  # else it looks for a .env file
    import litellm

    litellm.suppress_debug_info, litellm.telemetry, litellm.drop_params = True, False, True
    return litellm


def ask(
    model: Model, messages: Sequence[Mapping[str, Any]], spent: Spent, tools: Sequence[Any] | None = None
) -> Reply:
    """What *model* says; its cost is added to *spent*."""
    litellm = loaded()
    where: dict[str, Any] = {}
    if model.base:
        where = {"api_base": model.base, "api_key": os.environ.get("OMG_LLM_API_KEY", "none")}
    if tools:
        where["tools"] = list(tools)
        if find_spec("mcp") is None:
            where["_skip_mcp_handler"] = True  # else LiteLLM wants that package wherever there are tools
    for attempt in range(1, ATTEMPTS + 1):
        began = time.monotonic()
        try:
            said = litellm.completion(
                model=model.name,
                messages=list(messages),
                temperature=0,
                timeout=model.timeout_s,
                max_retries=0,
                **where,
            )
            break
        except Exception as e:
            if attempt == ATTEMPTS or type(e).__name__ in HOPELESS:
                raise
            time.sleep(PAUSE_S * 4 ** (attempt - 1))
    spent.seconds += time.monotonic() - began
    if usage := getattr(said, "usage", None):
        spent.tokens_in += usage.prompt_tokens or 0
        spent.tokens_out += usage.completion_tokens or 0
    with suppress(Exception):  # a model without a price
        spent.usd += float(litellm.completion_cost(said))
    message = said.choices[0].message
    calls = [
        {"id": c.id, "name": c.function.name, "arguments": c.function.arguments}
        for c in message.tool_calls or ()
    ]
    text = message.content or ""
    # A model that is played by hand writes its calls as text.
    if tools and not calls and isinstance(made := json_in(text).get("tool_calls"), list):
        calls = [
            {"id": f"call_{i}", "name": c["name"], "arguments": json.dumps(c.get("arguments") or {})}
            for i, c in enumerate(made)
            if isinstance(c, dict) and "name" in c
        ]
    return Reply(text, calls)


def json_in(text: str) -> dict[str, Any]:
    """The JSON object in *text*, whatever stands around it; {} if there is none."""
    for start in (m.start() for m in re.finditer(r"\{", text)):
        try:
            value, _ = json.JSONDecoder(strict=False).raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            return value
    return {}
