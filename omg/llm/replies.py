"""A question to a model and its reply: its size, what is wrong with it, and the JSON in it."""

from __future__ import annotations

import functools
import importlib.util
import itertools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ..config import Config
from ..errors import BadReply
from ..text.tokens import count_tokens
from .ledger import ModelReply

# --- A question to a model, why there is no reply, and the type of whoever can be asked.


@dataclass(frozen=True, slots=True)
class ModelQuestion:
    system: str
    user: str
    schema: dict[str, Any] | None  # JSON schema of the reply; None: any text
    purpose: str  # "observe", "reflect", …: what the ledger says it was for
    agent: str = ""
    temperature: float | None = None  # that the configuration has for the model that is asked

    @property
    def usual_temperature(self) -> float:
        """As Mastra's observational memory has it: some freedom for what is noted, none for what is merged."""
        return 0.0 if self.purpose == "reflect" else 0.3


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no reply, as the child tells it."""

    why: str
    status: int = 0  # HTTP; 0: no answer at all
    again: bool = True  # whether the same question may fare better a little later
    wait_s: float | None = None  # how long the server asks us to stay away


Ask = Callable[[ModelQuestion], ModelReply]


def instructions(name: str, also: str) -> str:
    """The system part of a question: prompts/<name>.md, and what the owner of the config adds to it."""
    return prompt_text(name) + (f"\n\n# Also\n\n{also}\n" if also else "")


@cache
def prompt_text(name: str) -> str:
    return (Path(__file__).parents[1] / "prompts" / f"{name}.md").read_text(encoding="utf-8")


# --- How many tokens a model takes in and gives, and what they cost, from the configuration or LiteLLM's own table.


SHORT_REPLY = 4_000  # tokens that every model allows


def model_window(model: str, config: Config) -> int:
    """
    Tokens *model* can take in.

    From the configuration, else from the table that LiteLLM carries (read as a file: no import). Unknown:
    8,192 for a server of one's own, a common default there, and 32,000 for any other, less than most have.
    """
    known = config.llm.context_window or limits_in_table(model).takes
    return known or (8_192 if config.llm.api_base else 32_000)


def reply_room(model: str, asked: int, config: Config) -> int:
    """The tokens that a reply of *model* may have, limited by the model and by what *asked* leaves of its window."""
    wanted = config.llm.max_output_tokens
    left = model_window(model, config) - asked
    # A window that is not known is guessed low: below what every model allows, only the table and the user go.
    return min(wanted, limits_in_table(model).gives or wanted, max(left, SHORT_REPLY))


class Limits(NamedTuple):
    """Tokens that a model takes in, and that it gives, and the price of each in usd; None where the table does not know."""

    takes: int | None = None
    gives: int | None = None
    usd_in: float | None = None
    usd_out: float | None = None


@functools.lru_cache(maxsize=64)
def limits_in_table(model: str) -> Limits:
    spec = importlib.util.find_spec("litellm")
    if spec is None or not spec.submodule_search_locations:
        return Limits()
    file = Path(spec.submodule_search_locations[0]) / "model_prices_and_context_window_backup.json"
    try:
        table = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return Limits()
    name = model
    while name:  # `openrouter/anthropic/x` is there as itself, or as `anthropic/x`, or as `x`
        if entry := table.get(name):
            takes = entry.get("max_input_tokens") or entry.get("max_tokens")
            gives = entry.get("max_output_tokens")
            prices = (entry.get(f"{way}_cost_per_token") for way in ("input", "output"))
            return Limits(int(takes) if takes else None, int(gives) if gives else None, *prices)
        name = name.partition("/")[2]
    return Limits()


# --- JSON out of a model's reply, whatever surrounds it; of a truncated one, the items that are whole.
#
# Not here: what the items mean (observe/reply.py, reflect/verdicts.py).


TEXT, TEXTS = {"type": "string"}, {"type": "array", "items": {"type": "string"}}  # in a JSON schema


def object_schema(required: str, **properties: Any) -> dict[str, Any]:
    """The JSON schema of an object; *required* are names of properties, with spaces between."""
    return {"type": "object", "properties": properties, "required": required.split()}


def cut_out(text: str, key: str = "edits", mark: str = "op") -> dict[str, Any]:
    """
    The JSON object with *key* in *text*, whatever stands around it; of a truncated one, the items that are whole.

    *mark* is a key that every item of the list under *key* has.
    """
    try:
        return found_in(text, key, mark)
    except RecursionError as e:
        raise BadReply("the reply nests brackets without end; it was not used") from e


def one_of(value: Any, *words: str) -> str:
    """*value* as one of *words*, whatever its case. Raises ValueError."""
    if (word := str(value).strip().lower()) not in words:
        raise ValueError(f"op is none of {', '.join(words)}")
    return word


def found_in(text: str, key: str, mark: str) -> dict[str, Any]:
    decoder = json.JSONDecoder(strict=False)
    for start in (m.start() for m in re.finditer(r"\{", text)):
        try:
            value, _ = decoder.raw_decode(text, start)
        except ValueError:
            continue
        if isinstance(value, dict) and key in value:
            return value
        if isinstance(value, dict) and mark in value:
            break  # the outer object is broken: what follows are its items
    if bare := re.search(r"^\s*(?:```\w*\s*)?\[", text):  # some models answer with the bare list
        try:
            value, _ = decoder.raw_decode(text, bare.end() - 1)
            return {key: value}
        except ValueError:
            pass
    if f'"{key}"' not in text:
        raise BadReply(f"the reply holds no JSON object with `{key}`; it was not used")
    return {key: whole_items(text, decoder, key, mark)}


def whole_items(text: str, decoder: json.JSONDecoder, key: str, mark: str) -> list[Any]:
    items = []
    at = text.index(f'"{key}"')
    while (at := text.find("{", at)) >= 0:
        try:
            value, at = decoder.raw_decode(text, at)
            items.append(value)
        except ValueError:
            at += 1
    items = [v for v in items if isinstance(v, dict) and mark in v]
    if not items:
        raise BadReply("the reply broke off before its first item was whole; it was not used")
    return items


def why_useless(reply: ModelReply) -> str | None:
    """Why *reply* is useless; None if it may be useful."""
    if not reply.text:
        return "sent an empty reply; if it goes on, name another model"
    if is_degenerate(reply.text):
        return "sent a reply that repeats itself without end; if it goes on, name another model"
    return None


def with_token_counts(reply: ModelReply, question: ModelQuestion) -> ModelReply:
    """*reply* with our own token counts, where the server gave none: a cap must hold there, too."""
    if reply.tokens_in or reply.tokens_out:
        return reply
    return replace(
        reply, tokens_in=count_tokens(question.system + question.user), tokens_out=count_tokens(reply.text)
    )


def without_thinking(text: str) -> str:
    """*text* without the thinking that some local models write before it."""
    return re.sub(r"\A\s*<think(ing)?>.*?(</think(ing)?>|\Z)", "", text, flags=re.DOTALL).strip()


def is_degenerate(text: str) -> bool:
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
    return any(is_stuck(line) for line in share if len(line) >= 1_500)


def is_stuck(line: str) -> bool:
    """Whether *line* ends in one piece said over and over, for 1,500 characters and half of its length."""
    tail = line.rstrip('`]}" ,;.')[-20_000:][::-1]  # reversed: what the end repeats is a prefix now
    end = max(1_500, len(tail) // 2)
    # A prefix of `end` chars that is a piece said at least four times equals itself from one piece on.
    piece = tail.find(tail[: end * 3 // 4], 1)
    end = max(end, 4 * piece)
    if piece < 1 or end > len(tail) or tail[piece:end] != tail[: end - piece]:
        return False
    return re.search(r"\w", tail[:piece]) is not None
