"""
A conversation that is longer than its model's window, with OMG as the context engine and, beside it, without.

The engine comes by `omg install --context-engine` and goes by `--no-context-engine`. One gateway and one long conversation
for all tests but two: where the engine is removed, and where it is broken, the gateway is the test's own.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from gateway import Gateway, eventually
from longtalk import (
    FACTS,
    TIMELINE,
    WINDOW,
    Said,
    asked,
    held,
    measured,
    report,
    said,
    talked,
    tokens,
    turn,
    wire,
)
from openai_server import OpenAIServer, text_of

pytestmark = pytest.mark.gateway

TURNS = 44  # bench/window.py has two hundred
WITH, WITHOUT = "agent:main:main", "agent:main:other"


def with_legacy(boot: Any) -> Gateway:
    """A gateway without OMG, not yet started."""
    gateway: Gateway = boot(
        plugin=False,
        omg='[observation]\nmodel = "offline"\nbuffer_tokens = "turn"\n',
        config={
            "agents": {"defaults": {"model": {"primary": "mock/mock-small"}}},
            "plugins": {"slots": {"contextEngine": "legacy"}},
        },
    )
    return gateway


@pytest.fixture(scope="module")
def gateway(boot: Any) -> Gateway:
    return with_legacy(boot)


@pytest.fixture
def own_gateway(boot: Any) -> Iterator[Gateway]:
    """One with the engine, not yet started, for a test that takes the engine away."""
    gateway = with_legacy(boot)
    gateway.omg("install", "--no-nightly", "--context-engine")
    yield gateway
    gateway.stop()


@pytest.fixture(scope="module")
def engine(gateway: Gateway) -> list[str]:
    """What installing said without the engine, with it, and again; the gateway is up."""
    told = [gateway.omg("install", "--no-nightly"), slot(gateway)]
    told += [gateway.omg("install", "--no-nightly", "--context-engine"), slot(gateway)]
    told += [gateway.omg("install", "--no-nightly")]
    gateway.start()
    return told


@pytest.fixture(scope="module")
def turns(gateway: Gateway, provider: OpenAIServer, engine: list[str]) -> list[Said]:
    """A conversation so long that some of it was cut."""
    return talked(gateway, provider, WITH, TURNS)


def slot(gateway: Gateway) -> Any:
    return json.loads((gateway.state / "openclaw.json").read_text())["plugins"]["slots"].get("contextEngine")


def test_installing_takes_the_context_slot_only_if_asked(engine: list[str]) -> None:
    _, before, with_engine, after, again = engine
    assert before == "legacy"
    assert "make OMG the context engine" in with_engine
    assert after == "omg-context"
    assert "✓" not in again


def test_a_long_conversation_never_outgrows_its_window_and_is_never_compacted(
    gateway: Gateway, turns: list[Said], capsys: pytest.CaptureFixture[str]
) -> None:
    found = measured(turns, gateway.events(WITH))
    with capsys.disabled():
        print("\n" + report("with OMG's context engine", found))
    assert found["largest_messages"] < WINDOW
    assert (found["failed"], found["compactions"], found["asked_for_summary"]) == (0, 0, 0)
    assert found["prefix_median"] > 0.95
    last = turns[-1].own[0].body["messages"]
    (text,) = TIMELINE.findall("\n".join(text_of(m.get("content")) for m in last))
    assert "Halldór Laxness" in text
    calls = {c["id"] for m in last for c in m.get("tool_calls") or ()}
    assert calls == {m["tool_call_id"] for m in last if m["role"] == "tool"}


@pytest.mark.usefixtures("turns")
def test_a_question_about_an_old_statement_gets_the_statement(
    gateway: Gateway, provider: OpenAIServer
) -> None:
    facts = FACTS[:3]
    for row in held(asked(gateway, provider, WITH, facts), facts):
        assert row["stands"], row


@pytest.mark.usefixtures("turns")
def test_every_message_of_a_long_conversation_is_shown_or_observed(
    gateway: Gateway, provider: OpenAIServer
) -> None:
    shown = wire(turn(gateway, provider, WITH, "Go on.").own[-1])
    eventually(lambda: not gateway.memory.spooled(), 20, "the spool to be taken in")
    archived = " ".join(m["text"] for m in gateway.memory.taken() if m["session"] == WITH)
    for n in range(TURNS):
        assert said(n)[:30] in shown or said(n)[:30] in archived, n


@pytest.mark.usefixtures("turns")
def test_a_killed_daemon_costs_no_turn(gateway: Gateway, provider: OpenAIServer) -> None:
    for pid in gateway.daemons():
        os.kill(pid, signal.SIGKILL)
    asks = turn(gateway, provider, WITH, "Is anybody there?")
    assert asks.status == "ok"
    assert tokens(asks.own[-1]) < WINDOW
    assert TIMELINE.search(wire(asks.own[-1]))


@pytest.mark.usefixtures("engine")
def test_a_turn_is_taken_in_exactly_once_even_if_hooks_may_not_read_conversations(gateway: Gateway) -> None:
    eventually(gateway.daemons, 60, "a daemon")
    allowed = lambda yes: {"plugins": {"entries": {"omg": {"hooks": {"allowConversationAccess": yes}}}}}  # noqa: E731
    gateway.configure(allowed(False))
    eventually(
        lambda: gateway.say(WITH, "My lucky tree is the rowan.")["status"] == "ok", 60, "a turn", each_s=2
    )
    found = lambda: [m["id"] for m in gateway.memory.taken() if "is the rowan" in m["text"]]  # noqa: E731
    eventually(found, 30, "the turn to be taken in", why=gateway.tail)
    gateway.configure(allowed(True))
    eventually(lambda: gateway.say(WITH, "And the hooks again?")["status"] == "ok", 60, "a turn", each_s=2)
    eventually(lambda: not gateway.memory.spooled(), 30, "the spool to be taken in")
    said = [e["id"] for e in gateway.transcript(WITH) if "is the rowan" in str(e["message"]["content"])]
    assert sorted(found()) == sorted(said)  # by the hook afterwards, too, each is one, under its own id


@pytest.mark.usefixtures("turns")
def test_status_and_doctor_name_the_context_engine(gateway: Gateway) -> None:
    eventually(gateway.daemons, 60, "a daemon")
    eventually(lambda: "turns that were cut" in gateway.omg("status"), 60, "the status", each_s=1)
    assert "omg-context puts contexts together" in gateway.omg("doctor", fails=None)


def test_the_doctor_names_an_engine_that_the_gateway_has_put_out_of_use(own_gateway: Gateway) -> None:
    gateway = own_gateway
    file = gateway.state / "extensions" / "omg-context" / "index.js"
    file.write_text(
        file.read_text().replace("async compact(params) {", 'async compact() { throw new Error("broken");')
    )
    gateway.start()
    gateway.say(WITH, "Is it broken?")
    gateway.chat(WITH, "/compact")
    found = gateway.omg("doctor", fails=True)
    assert "the gateway has put omg-context out of use: broken (compact)" in found
    assert "--no-context-engine" in found
    assert gateway.say(WITH, "Do you go on?")["status"] == "ok"


def test_uninstalling_gives_the_context_slot_back_and_the_session_goes_on(
    own_gateway: Gateway, provider: OpenAIServer, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway = own_gateway.start()
    assert gateway.say(WITH, "Are you there?")["status"] == "ok"
    assert "is legacy again" in gateway.omg("install", "--no-nightly", "--no-context-engine")
    assert slot(gateway) == "legacy"
    assert not (gateway.state / "extensions" / "omg-context").exists()
    # The gateway reads its configuration anew meanwhile, and a turn that it stops for that is asked again.
    eventually(lambda: gateway.say(WITH, "And now?")["status"] == "ok", 60, "a turn", each_s=2)
    turns = talked(gateway, provider, WITHOUT, TURNS)
    with capsys.disabled():
        print("\n" + report("with the gateway's own", measured(turns, gateway.events(WITHOUT))))
    assert not any(TIMELINE.search(wire(r)) for turn in turns for r in turn.own)
    assert not [turn for turn in turns if turn.status != "ok"]
