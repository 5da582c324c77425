"""Many people's turns at once, through the real LiteLLM in its process: each in order, nobody waits for another."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from openai_server import Hang, OpenAIServer, Request, Say, borne_out, created
from spooled import entry, hand_over

from omg.check import fixed_cases, is_able, key_of, note_result
from omg.config import Config
from omg.curate import forget_selection
from omg.errors import Locked, ModelUnavailable
from omg.forget.selection import Wanted, select
from omg.graph.state import flock
from omg.llm.child import Child
from omg.llm.replies import ModelQuestion, ModelReply
from omg.memory import Memory
from omg.worker.events import read_events
from omg.worker.status import home_status, status_text
from tests.test_daemon import eventually, start

NOW = datetime(2026, 3, 5, 12, tzinfo=UTC)
assert start  # the fixture


def person(n: int) -> str:
    return f"agent:main:telegram:direct:p{n:03}"


class Model:
    """Answers after *seconds*; knows how many of its calls are under way, and who was asked about in which order."""

    def __init__(self, seconds: float = 0.3) -> None:
        self.seconds, self.under_way, self.most = seconds, 0, 0
        self.asked: list[str] = []
        self.hangs: set[str] = set()
        self.during: Callable[[str], object] = lambda who: None
        self.tokens = (100, 20)
        self._guard = threading.Lock()

    def __call__(self, request: Request) -> Any:
        who, shown = told_of(request)
        with self._guard:
            self.asked += [
                f"{name} {text.split()[1]}" for name, text in zip(who, shown.values(), strict=False)
            ]
            self.under_way += 1
            self.most = max(self.most, self.under_way)
        if self.hangs & set(who):
            return Hang()
        time.sleep(self.seconds)
        self.during(who[0] if who else "")
        with self._guard:
            self.under_way -= 1
        edits = [created(text, m) for m, text in shown.items()]
        tokens_in, tokens_out = self.tokens
        return Say(json.dumps({"edits": edits, "groups": []}), tokens_in, tokens_out)


def told_of(request: Request) -> tuple[list[str], dict[str, str]]:
    shown = dict(re.findall(r"^(m\d+) \S+ user: (.*)$", request.user, re.M))
    return [text.split()[0] for text in shown.values()], shown


@pytest.fixture
def model(openai_server: OpenAIServer) -> Model:
    model = Model()
    openai_server.always(model)
    return model


@pytest.fixture
def make(
    home: Path, openai_server: OpenAIServer, child: Child, model: Model
) -> Iterator[Callable[..., Memory]]:
    made: list[Memory] = []

    def opened(**observation: Any) -> Memory:
        llm = {"api_base": openai_server.base, "attempts": 1, "backoff_s": 0.01, "context_window": 64_000}
        options = {"model": f"openai/{home.parent.name}", "buffer_tokens": "turn"} | observation
        llm["timeout_s"] = options.pop("timeout_s", 20)
        config = Config(home=home, llm=llm, observation=options, time={"zone": "UTC"})
        made.append(Memory(config, clock=lambda: NOW, embed=None))
        made[-1].worker._child = child
        return made[-1]

    yield opened
    for memory in made:
        memory.worker._child = Child()  # the tests' own is not this one's to end
        memory.close()


def say(memory: Memory, n: int, *words: str, at: datetime = NOW, session: str = "") -> None:
    """One turn a word, a minute apart, of the person *n*."""
    for i, word in enumerate(words):
        ms = int((at + timedelta(minutes=i)).timestamp() * 1000)
        told = entry(f"{n}-{word}", f"p{n:03} {word} is in the cellar.", ms)
        hand_over(memory.folder, told, session=session or person(n))
    memory.take_in()


def waiting(memory: Memory) -> list[str]:
    return [p.read_text() for p in memory.folder.glob("graphs/*/pending/*.json")]


def test_at_most_the_configured_number_of_graphs_is_observed_in_parallel_each_in_order(
    make: Callable[..., Memory], model: Model
) -> None:
    memory = make(parallel=4, max_tokens_per_batch=15)
    for n in range(8):
        say(memory, n, "lamp", "boat", "chair")
    assert len(memory.work()) == 24
    assert model.most == 4
    for n in range(8):
        assert [a for a in model.asked if a.startswith(f"p{n:03}")] == [
            f"p{n:03} {w}" for w in ("lamp", "boat", "chair")
        ]
    ends = [e for e in read_events(memory.folder) if e["event"] == "observation_end"]
    # Of each its own, whoever else asks meanwhile.
    assert {e["model_tokens"] / e["calls"] for e in ends} == {120}
    # The examination of the model is the home's, and no graph's.
    calls = sum(e["calls"] for e in ends) + len(fixed_cases())
    assert calls == memory.worker.ledger.today(NOW).calls
    starts = [e for e in read_events(memory.folder) if e["event"] == "observation_start"]
    assert max(e["under_way"] for e in starts) == 4
    assert max(e["waiting"] for e in starts) >= 4 and max(e["waited_ms"] for e in starts) >= 0


def test_a_hanging_call_holds_up_only_its_own_graph(make: Callable[..., Memory], model: Model) -> None:
    memory = make(parallel=3, timeout_s=6)
    model.hangs = {"p000", "p001"}
    for n in range(10):
        say(memory, n, "lamp")
    memory.worker.start()
    eventually(lambda: len(memory.worker.under_way()) == 2, 5.5)
    text = status_text(home_status(memory.worker), UTC)
    assert "observing 2 graphs at work since" in text and "it is being observed since 12:00:00" in text
    eventually(lambda: not memory.worker.under_way(), 20)
    assert memory.graph(memory.registry.identity_of(person(0))).state().failures == 1
    assert len(waiting(memory)) == 2


def test_if_a_model_hangs_in_its_examination_only_users_of_that_model_wait(
    home: Path,
) -> None:
    began, goes_on, asked = threading.Event(), threading.Event(), list[str]()

    def hangs(question: ModelQuestion) -> ModelReply:
        asked.append("new")
        began.set()
        goes_on.wait(20)
        raise ModelUnavailable("no answer in time")

    def answers(question: ModelQuestion) -> ModelReply:
        asked.append("other")
        return ModelReply(json.dumps(borne_out(question.user)), "other", 1, 1)

    note_result(home, key_of("known"), 20)
    with ThreadPoolExecutor(4) as pool:
        try:
            waits = [pool.submit(is_able, home, "new", hangs, NOW)]
            assert began.wait(20)
            waits.append(pool.submit(is_able, home, "new", hangs, NOW))
            assert pool.submit(is_able, home, "known", hangs, NOW).result(10)
            assert pool.submit(is_able, home, "other", answers, NOW).result(10)
            time.sleep(0.3)
        finally:
            goes_on.set()
        for each in waits:
            with pytest.raises(ModelUnavailable):
                each.result(10)
    assert asked == ["new", *["other"] * len(fixed_cases())]
    assert is_able(home, "other", hangs, NOW) and is_able(home, "known", hangs, NOW)


def test_todays_turns_do_not_wait_for_a_large_import(make: Callable[..., Memory], model: Model) -> None:
    """Neither for somebody else's, nor for their own; and each conversation of the import stays in its order."""
    memory = make(parallel=1, max_tokens_per_batch=15)
    years = NOW - timedelta(days=900)
    say(memory, 0, *(f"w{n:02}" for n in range(12)), at=years, session=f"{person(0)}:thread:1")
    memory.worker.start()
    eventually(lambda: len(model.asked) >= 2, 20)
    say(memory, 1, "lamp")
    say(memory, 0, "boat")
    asked = len(model.asked)
    memory.worker.start()
    eventually(lambda: not memory.worker.under_way(), 30)
    assert {"p001 lamp", "p000 boat"} <= set(model.asked[: asked + 4])
    imported = [a for a in model.asked if a.startswith("p000 w")]
    assert imported == [f"p000 w{n:02}" for n in range(12)]
    assert waiting(memory) == []


def test_an_import_leaves_a_quarter_of_the_daily_cap_for_new_messages(
    make: Callable[..., Memory], model: Model
) -> None:
    memory = make(parallel=4, max_tokens_per_batch=15, daily_budget_tokens=1_200)
    model.tokens = (30, 10)
    say(memory, 0, *(f"w{n:02}" for n in range(20)), at=NOW - timedelta(days=900))
    memory.work()
    ledger = memory.worker.ledger
    assert 900 <= ledger.today(NOW).tokens < 1_200  # of what an observation costs a few times over
    assert (
        "the last 25% of the cap is kept for newer turns, so turns older than a day wait"
        in memory.worker.waits(memory.find(person(0)))
    )
    say(memory, 1, "lamp", "boat")
    memory.work()
    assert waiting(memory) and all("p000 w" in turn for turn in waiting(memory))


def test_killing_the_model_process_during_eight_calls_loses_nothing(
    make: Callable[..., Memory], model: Model, child: Child
) -> None:
    memory = make(parallel=8)
    memory.config.llm.__dict__["attempts"] = 3
    model.seconds = 2
    for n in range(8):
        say(memory, n, "lamp")
    memory.worker.start()
    eventually(lambda: model.under_way == 8, 30)
    assert child.running is not None
    os.kill(child.running.process.pid, signal.SIGKILL)
    eventually(lambda: not memory.worker.under_way(), 60)
    assert waiting(memory) == []
    notes = [f.read_text() for f in memory.folder.glob("graphs/*/vault/nodes/fact/*.md")]
    assert len(notes) == 8  # each message once


def test_a_graph_that_is_forgotten_during_a_model_call_is_not_created_again(
    make: Callable[..., Memory], model: Model
) -> None:
    memory = make(parallel=4)
    for n in range(3):
        say(memory, n, "lamp")

    def forget(who: str) -> None:
        if who == "p001":
            graph = memory.find(person(1))
            forget_selection(memory.intake, graph, select(graph, Wanted(session=person(1))))

    model.during = forget
    memory.work()
    assert sorted(who.key for who in memory.registry.identities()) == [person(0), person(2)]
    assert not [f for f in memory.folder.glob("graphs/*p001*/**/*") if f.is_file() and f.suffix != ".lock"]


def test_two_processes_never_observe_one_graph_at_a_time(make: Callable[..., Memory], model: Model) -> None:
    memory, other = make(), make()
    say(memory, 0, "lamp")
    graph = memory.find(person(0))
    with flock(graph.folder / "observe.lock", "another process's"):
        assert memory.work() == [] and model.asked == []
    memory.worker.start()
    eventually(lambda: model.under_way == 1, 20)
    with pytest.raises(Locked), flock(graph.folder / "observe.lock", "x", 0):
        pass
    eventually(lambda: not memory.worker.under_way(), 20)
    assert model.asked == ["p000 lamp"] and other.work() == []


def test_a_rebuild_runs_between_two_batches_of_an_import(make: Callable[..., Memory], model: Model) -> None:
    memory = make(max_tokens_per_batch=15)
    say(memory, 0, *(f"w{n:02}" for n in range(6)), at=NOW - timedelta(days=900))
    graph = memory.find(person(0))
    memory.worker.start()
    eventually(lambda: len(model.asked) >= 2, 20)
    with memory.worker.resting(graph):
        asked = len(model.asked)
        memory.worker.start()
        time.sleep(1)
        assert len(model.asked) == asked
    memory.work()
    assert waiting(memory) == []
