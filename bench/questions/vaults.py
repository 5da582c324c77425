"""
Each conversation, observed through the library as a home of its own: session by session, the clock at its days.

    vaults/<conversation>/            the home
    vaults/<conversation>.json        which sessions are in it, which model observed, what it cost

Not here: any of omg's own parts; only what `Memory` offers, so that the same bench measures an older omg as well.
One rule: a session is captured, observed and entered as done, in that order, each of which may be repeated.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from omg import Memory
from omg.config import Config, load_config
from omg.embed import Embedder, load_embedder
from omg.memory import MAIN

from .data import Conversation, Said, Session
from .files import file_name, read, write

# For a model that answers by hand or slowly, where the environment does not say otherwise.
PATIENT = {
    "OMG_LLM_TIMEOUT_S": "7000",
    "OMG_LLM_ATTEMPTS": "1",
    "OMG_LLM_CONTEXT_WINDOW": "200000",
    "OMG_LLM_MAX_OUTPUT_TOKENS": "16000",
    "OMG_LLM_JSON_SCHEMA": "false",
}
_loading = threading.Lock()
NIGHTS = ("offline", "none", "end", "each")


@dataclass(frozen=True, slots=True)
class Observing:
    """Who observes into which folder, and who reflects when: `offline` and `end` once, `each` after every session."""

    folder: Path
    model: str
    base: str
    nights: str

    def home(self, conversation: str) -> Path:
        return self.folder / file_name(conversation)

    def record(self, conversation: str) -> Path:
        return self.folder / f"{file_name(conversation)}.json"


def observe(conversation: Conversation, how: Observing) -> dict[str, Any]:
    """Observe what is not observed yet; returns its record. Raises RuntimeError, saying why what waits waits."""
    file = how.record(conversation.id)
    done = read(file) or {"model": how.model, "nights": how.nights, "sessions": [], "seconds": 0.0}
    if (done["model"], done["nights"]) != (how.model, how.nights):
        raise RuntimeError(
            f"{file}: was observed by {done['model']}, nights {done['nights']}; name another folder for --vaults"
        )
    if done.get("whole"):
        return done  # type: ignore[no-any-return]
    done |= {"omg": commit()}
    now = [conversation.sessions[0].messages[0].at]
    with opened(conversation.id, how, lambda: now[0]) as memory:

        def timed(step: Callable[[], None]) -> None:
            began = time.monotonic()
            try:
                step()
            finally:
                done["seconds"] = round(done["seconds"] + time.monotonic() - began, 1)
                write(file, done | spent(how.home(conversation.id)))

        for session in conversation.sessions:
            now[0] = session.messages[-1].at + timedelta(hours=1)
            if session.id not in done["sessions"]:
                timed(lambda session=session: take_in(memory, session, done))  # type: ignore[misc]
                if how.nights == "each":
                    timed(lambda: reflect(memory))
                print(f"{conversation.id}: {session.id} of {len(conversation.sessions)} observed", flush=True)
        if how.nights in ("offline", "end"):
            now[0] += timedelta(hours=12)
            timed(lambda: reflect(memory))
        while memory.find().index.embed():
            pass
    messages = conversation.messages
    done |= spent(how.home(conversation.id)) | {"messages": len(messages), "whole": True}
    write(file, done)
    return done  # type: ignore[no-any-return]


def take_in(memory: Memory, session: Session, done: dict[str, Any]) -> None:
    memory.capture(map(entry, session.messages), session=lane(session.id))
    work = memory.observe()
    if why := "; ".join(waiting["why"] for waiting in work["waiting"]):
        raise RuntimeError(f"{session.id} waits: {why}")
    done["sessions"].append(session.id)


def entry(said: Said) -> dict[str, Any]:
    value = {"role": said.role, "content": said.text, "timestamp": said.at, "id": said.id}
    return value | ({"name": said.speaker} if said.speaker else {})


def lane(session: str) -> str:
    """A conversation of the owner's, in their memory."""
    return f"{MAIN}:thread:{file_name(session)}"


def reflect(memory: Memory) -> None:
    for night in memory.reflect():
        if error := night.get("error"):
            raise RuntimeError(f"the reflection: {error}")


def config(home: Path, how: Observing, budget: int | None = None) -> Config:
    """As the environment and the home's omg.toml say, and what this run asks for above them; days are UTC's, as the data's."""
    home.mkdir(parents=True, exist_ok=True)
    made = load_config(home, {"OMG_TIME_ZONE": "UTC", **(PATIENT if how.base else {}), **os.environ})
    parts: dict[str, Any] = {"observation": made.observation.model_copy(update={"model": how.model})}
    if how.nights == "offline":
        parts["reflection"] = made.reflection.model_copy(update={"model": "offline"})
    if how.base:
        key = made.llm.api_key or "none"
        parts["llm"] = made.llm.model_copy(update={"api_base": how.base, "api_key": key})
    if budget is not None:
        parts["inject"] = made.inject.model_copy(update={"budget_tokens": budget})
    return made.model_copy(update=parts)


def opened(
    conversation: str, how: Observing, clock: Callable[[], datetime], budget: int | None = None
) -> Memory:
    made = config(how.home(conversation), how, budget)
    return Memory(made, embed=embedder(made.embedding.model), clock=clock)


class InTurn:
    """An embedder of many homes at once: who asks waits, where a prompt would go on without vectors."""

    def __init__(self, embed: Embedder) -> None:
        self.embed, self.id, self._turn = embed, embed.id, threading.Lock()

    def __call__(self, texts: list[str]) -> Any:
        with self._turn:
            return self.embed(texts)


@cache
def loaded(model: str) -> Any:
    made = load_embedder(model)
    return made and InTurn(made)


def embedder(model: str) -> Any:
    """One for all homes."""
    with _loading:
        return loaded(model)


def spent(home: Path) -> dict[str, Any]:
    """What models were asked to observe and to reflect, from the home's ledger."""
    sums: dict[str, Any] = {"calls": 0, "tokens_in": 0, "tokens_out": 0, "usd": 0.0, "night_tokens": 0}
    file = home / "ledger.jsonl"
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        row = json.loads(line)
        if row["purpose"] == "reflect":
            sums["night_tokens"] += row["tokens_in"] + row["tokens_out"]
        else:
            sums["tokens_in"] += row["tokens_in"]
            sums["tokens_out"] += row["tokens_out"]
        sums["calls"] += 1
        sums["usd"] = round(sums["usd"] + row["usd"], 6)
    return sums


@cache
def commit() -> str:
    """Which omg is measured: the one that Python found, by its commit; with + where files differ from it."""
    import omg

    folder = Path(omg.__file__).parent

    def git(*args: str) -> str:
        done = subprocess.run(["git", "-C", folder, *args], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    return (git("rev-parse", "--short", "HEAD") or "unknown") + "+" * bool(git("status", "--porcelain", "."))
