"""
What models were asked and what it cost: one JSON line for each reply, and the day's cap.

It holds numbers, never text. Every reply is entered, useful or not, because it was paid for. Several processes may
append to the file. A call first reserves what it may cost (`reserved`), so of many calls at once at most one goes
past the cap.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO
from zoneinfo import ZoneInfo

from ..config import Config
from ..errors import OverBudget

# Someone else's key pays for `gateway`, so it has a cap before anyone thinks of one: at the default
# step of 6,000 tokens this is some forty observations, a long day of talk.
GATEWAY_TOKENS_PER_DAY = 500_000


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What a model said. Token counts are the provider's, else our own; 0.0 usd: no known price."""

    text: str
    model: str
    tokens_in: int
    tokens_out: int
    usd: float = 0.0
    cut: bool = False  # it ended because it had reached the tokens it may have


@dataclass(frozen=True, slots=True)
class Spent:
    tokens: int = 0
    usd: float = 0.0
    calls: int = 0


class Ledger:
    """
    The file, and the sums of one day of it.

    A day is one of the configured time zone. `cap_tokens` and `cap_usd` are None where there is no cap.
    """

    def __init__(self, file: Path, config: Config) -> None:
        self.file = file
        self.cap_usd = config.observation.daily_budget_usd
        self.cap_tokens = config.observation.daily_budget_tokens
        if self.cap_tokens is None and asks_gateway(config):
            self.cap_tokens = GATEWAY_TOKENS_PER_DAY
        self._zone = ZoneInfo(config.time.zone) if config.time.zone else None  # None: the system's
        self._day, self._read, self._spent = "", 0, Spent()
        self._reserved: list[Spent] = []  # by the calls that are under way
        self._settled = threading.Condition()

    def spend(self, reply: ModelReply, purpose: str, now: datetime) -> None:
        """Enter *reply*. The line is one `write`, so that lines of two processes do not mix."""
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
        """What all processes spent on the day of *now*. Reads only what was appended since the last call."""
        day = self._today(now)
        with self._settled:
            try:
                with self.file.open("rb") as file:
                    if day != self._day or os.fstat(file.fileno()).st_size < self._read:
                        self._day, self._read, self._spent = day, 0, Spent()
                    file.seek(self._read)
                    self._take_in(file)
            except FileNotFoundError:
                self._day, self._read, self._spent = day, 0, Spent()
            return self._spent

    @contextmanager
    def reserved(self, most: Spent, now: datetime) -> Iterator[None]:
        """
        Make a call in this block that costs at most *most*. Raises OverBudget if today's cap is reached.

        While the calls under way may reach the cap, this waits for their real cost. So only the last call of a day may
        go past the cap, as when calls are made one after another.
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
        """Whether the calls under way may reach today's cap. Raises OverBudget if it is reached already."""
        self.check(now)
        spent = [self.today(now), *self._reserved]
        tokens = self.cap_tokens is not None and sum(s.tokens for s in spent) >= self.cap_tokens
        usd = self.cap_usd is not None and sum(s.usd for s in spent) >= self.cap_usd
        return bool(self._reserved) and (tokens or usd)

    def check(self, now: datetime, share: float = 1.0) -> None:
        """Raise OverBudget if *share* of today's cap is used: all of it, or what turns older than a day may use."""
        spent = self.today(now)
        what = "turns wait" if share == 1 else f"above {share:.0%} of it turns older than a day wait"
        remedy = f"{what} until tomorrow; raise the cap in omg.toml to go on today"
        if self.cap_tokens is not None and spent.tokens >= self.cap_tokens * share:
            used = f"{spent.tokens:,} of {self.cap_tokens:,} tokens"
            raise OverBudget(f"observation.daily_budget_tokens: {used} used today; {remedy}")
        if self.cap_usd is not None and spent.usd >= self.cap_usd * share:
            used = f"${spent.usd:.2f} of ${self.cap_usd:.2f}"
            raise OverBudget(f"observation.daily_budget_usd: {used} used today; {remedy}")

    def _today(self, now: datetime) -> str:
        return now.astimezone(self._zone).date().isoformat()

    def _take_in(self, file: BinaryIO) -> None:
        mark = self._day.encode()
        for line in file:
            if not line.endswith(b"\n"):
                break  # another process is still writing it
            self._read += len(line)
            if mark in line:  # spares the parsing of all other days when a process reads the file first
                self._spent = spent_with(self._spent, line, self._day)


def spent_with(spent: Spent, line: bytes, day: str) -> Spent:
    """*spent* and what *line* says, if it is a line of *day*; a line torn by a crash counts nothing."""
    try:
        entry = json.loads(line)
        if entry["day"] != day:
            return spent
        tokens = int(entry["tokens_in"]) + int(entry["tokens_out"])
        return Spent(spent.tokens + tokens, spent.usd + float(entry["usd"]), spent.calls + 1)
    except (ValueError, TypeError, KeyError):
        return spent


def asks_gateway(config: Config) -> bool:
    """Whether any configured model is the gateway's; an Observer without a model is, under the plugin."""
    asked = [config.observation.model or "gateway", config.reflection.model]
    asked += [agent.model or "" for agent in config.observation.agents.values()]
    return any("gateway" in ([models] if isinstance(models, str) else models) for models in asked)


# --- Limits how many calls of one model are under way at once, and to fewer for a while after it refused one as too many.


FEWER_S = 60.0  # without another refusal, until twice as many may be under way again


class Places:
    """`with places:` waits until fewer than *most* calls are under way. Put it around each call."""

    def __init__(self, most: int) -> None:
        self.most, self.taken = most, 0
        self._room, self._halved = most, 0.0  # when, on the monotonic clock
        self._changed = threading.Condition()

    @property
    def room(self) -> int:
        """How many calls may be under way now."""
        later = int((time.monotonic() - self._halved) / FEWER_S)
        return min(self.most, self._room << min(later, 10))

    def halve(self, began: float) -> None:
        """Allow half as many: the model refused a call that *began* then (monotonic). Refusals of one moment count once."""
        with self._changed:
            if began >= self._halved:
                self._room, self._halved = max(1, self.room // 2), time.monotonic()

    def __enter__(self) -> None:
        with self._changed:
            while self.taken >= self.room:
                self._changed.wait(1.0)  # time alone makes room as well
            self.taken += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self.taken -= 1
            self._changed.notify()
