"""
A conversation that is longer than its model's window, with OMG as the context engine and, beside it, without.

One gateway: the engine comes by `omg install --context-engine` and goes by `--no-context-engine`; the tests run in the
order in which they stand.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
from collections.abc import Iterator
from statistics import median
from typing import Any

import pytest
from gateway import Gateway, eventually
from openai_server import OpenAIServer, Request, text_of

pytestmark = pytest.mark.gateway

TURNS = 44
WINDOW = 32_768  # of mock-small
WITH, WITHOUT = "agent:main:main", "agent:main:other"
TIMELINE = re.compile(r"(?s)<omg-memory v=\"\w+\">\nEarlier in this conversation, as notes.*?</omg-memory>")
STANDING = re.compile(r"(?s)<omg-memory .*?</omg-memory>")  # of the system prompt
SUMMARY = "context summarization assistant"


@pytest.fixture(scope="module")
def gateway(boot: Any) -> Iterator[Gateway]:
    yield boot(
        plugin=False,
        omg='[observation]\nmodel = "offline"\nbuffer_tokens = "turn"\n',
        config={
            "agents": {"defaults": {"model": {"primary": "mock/mock-small"}}},
            "plugins": {"slots": {"contextEngine": "legacy"}},
        },
    )


def slot(gateway: Gateway) -> Any:
    return json.loads((gateway.state / "openclaw.json").read_text())["plugins"]["slots"].get("contextEngine")


def talked(gateway: Gateway, provider: OpenAIServer, session: str) -> list[list[Request]]:
    """A long conversation with tools; the requests of each turn. Fails with the first turn that fails."""
    turns = []
    for n in range(TURNS):
        asked = f"I prefer the number {n} over all others. " + f"And so it goes on, for the {n}th time. " * 60
        if n % 4 == 3:
            asked = f'Look into folder {n}: CALL exec {{"command": "seq 1 700"}}'
        before = len(provider.history)
        done = gateway.say(session, asked)
        assert done["status"] == "ok", (n, done)
        turns.append(provider.history[before:])
    return turns


def own(turn: list[Request]) -> list[Request]:
    """The agent's requests, without summaries, the Observer's and the like."""
    return [r for r in turn if r.body.get("tools") and "Pre-compaction memory flush" not in r.user]


def tokens(request: Request) -> int:
    return len(json.dumps(request.body["messages"])) // 4


def wire(request: Request) -> str:
    return "\n".join(f"{m['role']}: {text_of(m.get('content'))}" for m in request.body["messages"])


def shares(turns: list[list[Request]]) -> list[float]:
    """How much of a turn's first request is the beginning of the next turn's, where all that OMG adds stood still."""
    found = []
    for one, other in itertools.pairwise(turns):
        if own(one) and own(other):
            before, after = wire(own(one)[0]), wire(own(other)[0])
            still = STANDING.findall(own(one)[0].system) == STANDING.findall(own(other)[0].system)
            if still and TIMELINE.findall(before) == TIMELINE.findall(after):
                same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))
                found.append(sum(1 for _ in same) / len(before))
    return found


def report(name: str, turns: list[list[Request]]) -> str:
    compactions = sum(SUMMARY in r.system for turn in turns for r in turn)
    largest = max(tokens(r) for turn in turns for r in own(turn))
    cuts = len({t for turn in turns for r in own(turn) for t in TIMELINE.findall(wire(r))})
    kept = sorted(shares(turns))
    return (
        f"{name}: {len(turns)} turns, largest request {largest:,} of {WINDOW:,} tokens, {cuts} cuts, "
        f"{compactions} questions for a summary, prefix share min {kept[0]:.1%} median {median(kept):.1%}"
    )


def test_installing_it_takes_the_slot_and_only_when_it_is_asked_for(gateway: Gateway) -> None:
    gateway.omg("install", "--no-nightly")
    assert slot(gateway) == "legacy"
    assert "put contexts together" in gateway.omg("install", "--no-nightly", "--context-engine")
    assert slot(gateway) == "omg-context"
    assert "✓" not in gateway.omg("install", "--no-nightly")
    gateway.start()


def test_a_long_conversation_never_outgrows_its_window_and_is_never_compacted(
    gateway: Gateway, provider: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    turns = talked(gateway, provider, WITH)
    with capsys.disabled():
        print("\n" + report("with OMG's context engine", turns))
    assert max(tokens(r) for turn in turns for r in own(turn)) < WINDOW
    assert not [r for turn in turns for r in turn if SUMMARY in r.system]
    assert not [e for e in gateway.events(WITH) if e["type"] == "compaction"]
    last = own(turns[-1])[0].body["messages"]
    (text,) = TIMELINE.findall("\n".join(text_of(m.get("content")) for m in last))
    assert "number 30 over all others" in text
    calls = {c["id"] for m in last for c in m.get("tool_calls") or ()}
    assert calls == {m["tool_call_id"] for m in last if m["role"] == "tool"}
    assert median(shares(turns)) > 0.95


def test_every_message_of_it_is_shown_or_observed(gateway: Gateway, provider: OpenAIServer) -> None:
    shown = wire(own(provider.history)[-1])
    eventually(lambda: not gateway.memory.spooled(), 20, "the spool to be taken in")
    archived = " ".join(m["text"] for m in gateway.memory.taken() if m["session"] == WITH)
    for n in range(TURNS):
        said = f"Look into folder {n}" if n % 4 == 3 else f"I prefer the number {n} over"
        assert said in shown or said in archived, n


def test_a_killed_daemon_costs_no_turn(gateway: Gateway, provider: OpenAIServer) -> None:
    for pid in gateway.daemons():
        os.kill(pid, signal.SIGKILL)
    assert gateway.say(WITH, "Is anybody there?")["status"] == "ok"
    request = own(provider.history)[-1]
    assert tokens(request) < WINDOW
    assert TIMELINE.search(wire(request))


def test_status_and_doctor_know_it(gateway: Gateway) -> None:
    eventually(gateway.daemons, 60, "a daemon")
    eventually(lambda: "turns cut" in gateway.omg("status"), 60, "the status", each_s=1)
    assert "omg-context puts contexts together" in gateway.omg("doctor", fails=None)


def test_uninstalling_it_gives_the_slot_back_and_the_session_goes_on(
    gateway: Gateway, provider: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "by legacy" in gateway.omg("install", "--no-nightly", "--no-context-engine")
    assert slot(gateway) == "legacy"
    assert not (gateway.state / "extensions" / "omg-context").exists()
    # The gateway reads its configuration anew meanwhile, and a turn that it stops for that is asked again.
    eventually(lambda: gateway.say(WITH, "And now?")["status"] == "ok", 60, "a turn", each_s=2)
    turns = talked(gateway, provider, WITHOUT)
    with capsys.disabled():
        print("\n" + report("with the gateway's own", turns))
    assert not any(TIMELINE.search(wire(r)) for turn in turns for r in own(turn))
