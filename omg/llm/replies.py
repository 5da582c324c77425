"""
A question to a model and its reply: its size, what it cost, what is wrong with it, and the JSON in it.

The ledger has one JSON line for each reply, useful or not, because each was paid for. A line holds numbers, never text,
and several processes may append lines. A call first reserves the most that it may cost, so only one call can exceed the
day's cap.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import re
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from ..config import Config
from ..errors import BadReply, OverBudget
from ..text.tokens import count_tokens

# Default cap for `gateway`, because somebody else's key pays for it. At the default step of 7,500 tokens this is about thirty
# observations, a long day of talk.
GATEWAY_TOKENS_PER_DAY = 500_000
LAST_BYTES = 4_000_000  # how much of the ledger `lately` reads: years of one person's calls


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A model's reply. Token counts are the provider's; if the provider gives none, our own. *usd* is 0.0 if the price
    is unknown."""

    text: str
    model: str
    tokens_in: int
    tokens_out: int
    usd: float = 0.0
    cut: bool = False  # the reply reached the most tokens allowed


@dataclass(frozen=True, slots=True)
class Spent:
    tokens: int = 0
    usd: float = 0.0
    calls: int = 0

    def __add__(self, other: Spent) -> Spent:
        return Spent(self.tokens + other.tokens, self.usd + other.usd, self.calls + other.calls)


class Ledger:
    """
    The file that records what each reply cost, and today's sums.

    Days are those of the configured time zone. `cap_tokens` and `cap_usd` limit a day; None means no limit.
    """

    def __init__(self, file: Path, config: Config) -> None:
        self.file = file
        self.cap_usd = config.observation.daily_budget_usd
        self.cap_tokens = config.observation.daily_budget_tokens
        if self.cap_tokens is None and asks_gateway(config):
            self.cap_tokens = GATEWAY_TOKENS_PER_DAY
        self._zone = ZoneInfo(config.time.zone) if config.time.zone else None  # None: the system's
        self._day, self._read, self._spent = "", 0, Spent()
        self._reserved: list[Spent] = []  # what running calls have reserved
        self._settled = threading.Condition()

    def spend(self, reply: ModelReply, purpose: str, now: datetime) -> None:
        """Add a line for *reply*, in a single `write`, so that lines of two processes do not mix."""
        line = {
            "at": now.astimezone(UTC).isoformat(timespec="milliseconds"),
            "day": self._today(now),
            "model": reply.model,
            "purpose": purpose,
            "tokens_in": reply.tokens_in,
            "tokens_out": reply.tokens_out,
            "usd": round(reply.usd, 6),
            **({"cut": True} if reply.cut else {}),
        }
        self.file.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(fd, "r+b", buffering=0) as file:
            torn = file.seek(0, os.SEEK_END) and (file.seek(-1, os.SEEK_END), file.read(1))[1] != b"\n"
            file.write(b"\n" * bool(torn) + json.dumps(line).encode() + b"\n")

    def today(self, now: datetime) -> Spent:
        """Return what all processes spent on the day of *now*. Reads only the lines added since the previous call."""
        day = self._today(now)
        with self._settled:
            size = self.file.stat().st_size if self.file.exists() else 0
            if day != self._day or size < self._read:
                self._day, self._read, self._spent = day, 0, Spent()
            if size:
                self._take_in()
            return self._spent

    def lately(self, now: datetime, days: int) -> dict[str, dict[str, Spent]]:
        """Day → purpose → cost, for the last *days* days, oldest first. Reads only the last LAST_BYTES of the file."""
        today = now.astimezone(self._zone).date()
        found: dict[str, dict[str, Spent]] = {
            str(today - timedelta(days=n)): {} for n in reversed(range(days))
        }
        for day, purpose, spent in self._entries(LAST_BYTES):
            if day in found:
                found[day][purpose] = found[day].get(purpose, Spent()) + spent
        return found

    def has_paid_for(self, purpose: str) -> bool:
        """Whether a model was ever asked for *purpose*."""
        return any(entry[1] == purpose for entry in self._entries())

    @contextmanager
    def reserved(self, most: Spent, now: datetime) -> Iterator[None]:
        """
        Reserve *most* for the call in this block. Raises OverBudget if today's cap is reached.

        If the running calls may reach the cap, wait until their real cost is known. Only the last call of a day can
        therefore exceed the cap.
        """
        with self._settled:
            while self._may_be_reached(now):
                self._settled.wait()
            self._reserved.append(most)
        try:
            yield
        finally:
            with self._settled:
                self._reserved.remove(most)
                self._settled.notify_all()

    def _may_be_reached(self, now: datetime) -> bool:
        """Whether the running calls may reach today's cap. Raises OverBudget if the cap is reached already."""
        self.check(now)
        spent = [self.today(now), *self._reserved]
        tokens = self.cap_tokens is not None and sum(s.tokens for s in spent) >= self.cap_tokens
        usd = self.cap_usd is not None and sum(s.usd for s in spent) >= self.cap_usd
        return bool(self._reserved) and (tokens or usd)

    def check(self, now: datetime, share: float = 1.0) -> None:
        """
        Raise OverBudget if today's use has reached *share* of a daily cap. *share*: below 1 for turns older than
        a day, so that the rest of the cap is left for newer turns.
        """
        spent = self.today(now)
        kept = f"the last {1 - share:.0%} of the cap is kept for newer turns, so turns older than a day wait"
        what = "turns wait" if share == 1 else kept
        remedy = f"{what} until tomorrow; raise the cap in omg.toml to go on today"
        if self.cap_tokens is not None and spent.tokens >= self.cap_tokens * share:
            used = f"{spent.tokens:,} of {self.cap_tokens:,} tokens"
            raise OverBudget(f"observation.daily_budget_tokens: {used} used today; {remedy}")
        if self.cap_usd is not None and spent.usd >= self.cap_usd * share:
            used = f"${spent.usd:.2f} of ${self.cap_usd:.2f}"
            raise OverBudget(f"observation.daily_budget_usd: {used} used today; {remedy}")

    def _entries(self, last_bytes: int | None = None) -> Iterator[tuple[str, str, Spent]]:
        """Yield the entries of the file, or only those in its *last_bytes*."""
        if self.file.exists():
            with self.file.open("rb") as file:
                if last_bytes:
                    file.seek(max(0, os.fstat(file.fileno()).st_size - last_bytes))
                yield from filter(None, map(entry_of, file))

    def _today(self, now: datetime) -> str:
        return now.astimezone(self._zone).date().isoformat()

    def _take_in(self) -> None:
        """Add today's costs to the sum, from the lines that were written to the file since the previous call."""
        mark = self._day.encode()
        with self.file.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    break  # another process is still writing it
                self._read += len(line)
                # lines of other days need not be parsed
                if mark in line and (entry := entry_of(line)) and entry[0] == self._day:
                    self._spent += entry[2]


def entry_of(line: bytes) -> tuple[str, str, Spent] | None:
    """Return the day, the purpose and the cost in *line*; None for a line torn by a crash."""
    try:
        entry = json.loads(line)
        tokens = int(entry["tokens_in"]) + int(entry["tokens_out"])
        return str(entry["day"]), str(entry.get("purpose") or "other"), Spent(tokens, float(entry["usd"]), 1)
    except (ValueError, TypeError, KeyError):
        return None


def asks_gateway(config: Config) -> bool:
    """
    Return whether OMG may ask the gateway's model under this configuration. True if a configured model is the
    gateway's, or if the Observer has no configured model.
    """
    asked = [config.observation.model or "gateway", config.reflection.model]
    asked += [agent.model or "" for agent in config.observation.agents.values()]
    return any("gateway" in ([models] if isinstance(models, str) else models) for models in asked)


# --- Limits how many calls to one model run at once, and lowers the limit for a while after a refusal.


FEWER_S = 60.0  # after this long without a refusal, the limit doubles again


class Places:
    """Lets at most *most* calls to one model run at once: `with places:` around a call waits until it may start."""

    def __init__(self, most: int) -> None:
        self.most, self.taken = most, 0
        self._room, self._halved = most, 0.0  # `_halved`: when, by the monotonic clock
        self._changed = threading.Condition()

    @property
    def room(self) -> int:
        """How many calls may run at once now."""
        later = int((time.monotonic() - self._halved) / FEWER_S)
        return min(self.most, self._room << min(later, 10))

    def halve(self, began: float) -> None:
        """Halve the limit, because the model refused a call that *began* at this monotonic time. Refused calls that ran
        at the same time count once."""
        with self._changed:
            if began >= self._halved:
                self._room, self._halved = max(1, self.room // 2), time.monotonic()

    def __enter__(self) -> None:
        with self._changed:
            while self.taken >= self.room:
                self._changed.wait(1.0)  # the limit also rises with time
            self.taken += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self.taken -= 1
            self._changed.notify()


# --- A question to a model, a failure, and the type of a function that asks.


@dataclass(frozen=True, slots=True)
class ModelQuestion:
    system: str
    user: str
    schema: dict[str, Any] | None  # JSON schema of the reply; None: any text
    purpose: str  # "observe", "reflect", …: what the question is for, as the ledger says
    agent: str = ""
    temperature: float | None = None  # set in the configuration for the model that is asked

    @property
    def usual_temperature(self) -> float:
        """The temperature if none is configured, as in Mastra's observational memory: 0.3 to observe, 0 to reflect."""
        return 0.0 if self.purpose == "reflect" else 0.3


@dataclass(frozen=True, slots=True)
class Failure:
    """Why the model gave no reply, as the child process reports it."""

    why: str
    status: int = 0  # HTTP; 0: no answer at all
    again: bool = True  # whether asking again a little later may help
    wait_s: float | None = None  # how long the server asks us to wait


Ask = Callable[[ModelQuestion], ModelReply]


def instructions(name: str, also: str) -> str:
    """Return the system part of a question: prompts/<name>.md, then *also*, the instructions in the configuration."""
    return prompt_text(name) + (f"\n\n# Also\n\n{also}\n" if also else "")


@cache
def prompt_text(name: str) -> str:
    return (Path(__file__).parents[1] / "prompts" / f"{name}.md").read_text(encoding="utf-8")


# --- A model's limits and prices, from the configuration or LiteLLM's table.


SHORT_REPLY = 4_000  # tokens of a reply that every model allows


def model_window(model: str, config: Config) -> int:
    """
    Return how many tokens *model* accepts as input: the first known number in this list.

    - the configured `context_window`
    - the number in LiteLLM's table, which is read as a file without importing LiteLLM
    - 8,192 if `api_base` names a server: a common default of self-hosted servers
    - 32,000, less than most models accept
    """
    known = config.llm.context_window or limits_in_table(model).takes
    return known or (8_192 if config.llm.api_base else 32_000)


def reply_room(model: str, asked: int, config: Config) -> int:
    """Return how many tokens a reply of *model* may have, to a question of *asked* tokens."""
    wanted = config.llm.max_output_tokens
    left = model_window(model, config) - asked
    # An unknown window is guessed low, so a guess never limits the reply below SHORT_REPLY;
    # the table and the user may.
    return min(wanted, limits_in_table(model).gives or wanted, max(left, SHORT_REPLY))


class Limits(NamedTuple):
    """How many tokens a model takes in and gives at most, and the price of a token in usd. None: unknown."""

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
    while name:  # the table has `openrouter/anthropic/x` under that name, `anthropic/x` or `x`
        if entry := table.get(name):
            takes = entry.get("max_input_tokens") or entry.get("max_tokens")
            gives = entry.get("max_output_tokens")
            prices = (entry.get(f"{way}_cost_per_token") for way in ("input", "output"))
            return Limits(int(takes) if takes else None, int(gives) if gives else None, *prices)
        name = name.partition("/")[2]
    return Limits()


# --- The JSON in a model's reply, whatever surrounds it; from a truncated reply, the complete items.


TEXT, TEXTS = {"type": "string"}, {"type": "array", "items": {"type": "string"}}  # in a JSON schema


def object_schema(required: str, **properties: Any) -> dict[str, Any]:
    """Return the JSON schema of an object. *required*: names of properties, separated by spaces."""
    return {"type": "object", "properties": properties, "required": required.split()}


def cut_out(text: str, key: str = "edits", mark: str = "op") -> dict[str, Any]:
    """
    Find the JSON object that has *key* in *text*, whatever surrounds the object. A truncated object gives its complete items.

    *mark*: a key that every item of the list under *key* has. Raises BadReply if there is neither object nor item.
    """
    try:
        return found_in(text, key, mark)
    except RecursionError as e:
        raise BadReply("the reply nests brackets without end; it was not used") from e


BARE_LIST = re.compile(r"\s*(?:```\w*\s*)?\[")  # some models answer with the list alone


def one_of(value: Any, *words: str) -> str:
    """Return *value* in lower case. Raises ValueError if *value* is not one of *words*."""
    if (word := str(value).strip().lower()) not in words:
        raise ValueError(f"op is not one of {', '.join(words)}")
    return word


# What models write that is not JSON: Python's words, strings in single quotes, comments, commas before a
# bracket. The first alternative matches JSON strings, which stay as they are. A string without an end reaches
# to the end of the text: a new try at each of its quotation marks would take quadratic time.
SLIP = re.compile(
    r'"(?:\\.|[^"\\])*(?:"|\\?\Z)|\'(?:\\.|[^\'\\])*(?:\'|\\?\Z)|\b(?:None|True|False)\b|//[^\n]*|,\s{0,99}(?:\.\.\.|…)?(?=\s{0,99}[}\]])',
    re.S,
)
WORDS = {"None": "null", "True": "true", "False": "false"}


def nearly_json(text: str) -> str:
    """Return *text* from its first brace on, with the usual JSON mistakes of models corrected."""

    def mended(found: re.Match[str]) -> str:
        part = found[0]
        if part[0] == "'" and len(part) > 1 and part[-1] == "'":
            return '"' + re.sub(r'(?<!\\)"', r"\"", part[1:-1].replace("\\'", "'")) + '"'
        return part if part[0] in "\"'" else WORDS.get(part, "")

    return SLIP.sub(mended, text[max(0, text.find("{")) :])


def found_in(text: str, key: str, mark: str) -> dict[str, Any]:
    """Find the object that has *key*. From a truncated object, take the complete items under *key*, and count the
    unreadable items under "broken"."""
    decoder, best, lost = json.JSONDecoder(strict=False), list[Any](), 0
    for form in (text, nearly_json(text)):
        named, bare, at = form.find(f'"{key}"'), BARE_LIST.match(form), 0
        items, broken = list[Any](), 0
        while (at := form.find("{", at)) >= 0:
            value, end = dict[str, Any](), at
            try:
                value, end = decoder.raw_decode(form, at)
            except ValueError:
                broken += 0 <= named < at
            if key in value:
                return dict(value)
            item = mark in value and at > named
            items += [value] * item
            at = end if item else at + 1
        if bare:
            with suppress(ValueError):
                return {key: decoder.raw_decode(form, bare.end() - 1)[0]}
        # Mending can spoil an item: after a stray quote, an apostrophe looks like the start of a string.
        if len(items) > len(best):
            best, lost = items, broken
    if best:
        return {key: best, "broken": lost}
    what = "broke off before its first complete item" if named >= 0 else f"holds no JSON object with `{key}`"
    raise BadReply(f"the reply {what}; it was not used")


def why_useless(reply: ModelReply) -> str | None:
    """Say why *reply* is useless; None if *reply* may be useful."""
    if not reply.text:
        return "sent an empty reply; if this goes on, name another model"
    if is_degenerate(reply.text):
        return "sent a reply that repeats itself without end; if this goes on, name another model"
    return None


def with_token_counts(reply: ModelReply, question: ModelQuestion) -> ModelReply:
    """Return *reply*, with our own token counts if the server gave none: the daily cap needs them."""
    if reply.tokens_in or reply.tokens_out:
        return reply
    return replace(
        reply, tokens_in=count_tokens(question.system + question.user), tokens_out=count_tokens(reply.text)
    )


def without_thinking(text: str) -> str:
    """Return *text* without the thinking that some local models write first."""
    return re.sub(r"\A\s*<think(ing)?>.*?(</think(ing)?>|\Z)", "", text, flags=re.DOTALL).strip()


# Lengths of a reply's end: the first shows loops of short pieces, the second loops of long pieces.
ENDS_CHARS = (4_000, 20_000)
# An end that is more than this many times its compressed size is a loop. Loops reach 37 and more, the most uniform honest
# lists 22, real replies 5.
LOOPING = 25


def is_degenerate(text: str) -> bool:
    """Whether *text* ends in one piece repeated again and again. Such an end compresses to almost nothing."""
    ends = (text[-chars:].encode("utf-8", "replace") for chars in ENDS_CHARS)
    return len(text) >= 2_000 and any(len(end) > LOOPING * len(zlib.compress(end)) for end in ends)
