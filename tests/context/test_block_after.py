"""`block_after`: a turn with a larger context waits until the turns that could leave are observed."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from spooled import hand_over

from omg import daemon as module
from omg.config import Config, Context, Embedding, Observation
from omg.daemon import Daemon
from omg.graph.state import flock

SESSION = "agent:main:main"
NOW = 1_773_144_000_000


@pytest.fixture
def daemon(home: Path) -> Iterator[Daemon]:
    config = Config(
        home=home,
        observation=Observation(model="offline"),
        context=Context(message_tokens=500),
        embedding=Embedding(model="none"),
    )
    daemon = Daemon(config)
    yield daemon
    daemon.memory.close()


def talked(daemon: Daemon, turns: int = 30, session: str = SESSION) -> dict[str, Any]:
    """Return a conversation that is taken in but not observed, and the gateway's request about its context."""
    said: list[dict[str, Any]] = []
    for n in range(turns):
        text = f"I prefer the number {n} over all others. " + "And so on. " * 6
        said.append({"role": "user", "content": text, "timestamp": NOW + 2000 * n})
        said.append({"role": "assistant", "content": "Noted, as asked.", "timestamp": NOW + 2000 * n + 1000})
    entries = [{"entryId": f"e{i}", "message": m} for i, m in enumerate(said)]
    hand_over(daemon.config.home, *entries, session=session)
    daemon.memory.take_in()
    return {"sessionKey": session, "messages": said}


def waited(daemon: Daemon) -> list[bool]:
    lines = (daemon.config.home / "events.jsonl").read_text().splitlines()
    return [e["observed"] for e in map(json.loads, lines) if e["event"] == "context_waited"]


def test_a_prompt_waits_until_the_turns_that_will_be_cut_are_observed(daemon: Daemon) -> None:
    body = talked(daemon)
    first = daemon.assemble(body)
    assert first == {"wait_ms": 20_000}  # nothing leaves, and the plugin is asked to come again
    answers: list[Any] = []
    turn = threading.Thread(target=lambda: answers.append(daemon.assemble({**body, "waits": True})))
    turn.start()
    assert daemon.awake.wait(10)
    daemon.memory.work(force=True)
    turn.join(20)
    assert answers[0]["cut"]
    assert "wait_ms" not in answers[0]
    assert waited(daemon) == [True]


def test_a_wait_without_result_ends_and_is_not_repeated(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BLOCKED_S", 0.1)
    body = talked(daemon)
    assert daemon.assemble(body) == {"wait_ms": 100}
    assert daemon.assemble({**body, "waits": True}) == {}  # the messages as they are
    assert waited(daemon) == [False]
    assert daemon.assemble(body) == {}
    daemon.memory.work(force=True)
    assert daemon.assemble(body)["cut"]


def test_a_stuck_memory_delays_no_other_memory(daemon: Daemon) -> None:
    body, other = talked(daemon), talked(daemon, session="agent:main:telegram:direct:7")
    daemon.memory.work(force=True)
    with flock(daemon.memory.find(SESSION).folder / "state.lock", "the state"):
        stuck, turn = (threading.Thread(target=daemon.assemble, args=(asked,)) for asked in (body, other))
        stuck.start()
        stuck.join(0.2)
        turn.start()
        turn.join(10)
        assert (stuck.is_alive(), turn.is_alive()) == (True, False)
    stuck.join(20)
