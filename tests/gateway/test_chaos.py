"""
Whatever breaks, the user gets the reply, waits for nothing, and no message is lost or doubled.

Each test breaks one thing in the one gateway of this module, talks through it, mends it, and looks. How long
our hooks were waited for is measured inside the plugin, so that it is the turn's own delay.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from gateway import Gateway, eventually
from telegram import ALICE, Telegram

pytestmark = pytest.mark.gateway

DIRECT = "agent:main:telegram:direct:111"
AWAITED = ("before_prompt_build", "before_compaction", "before_reset")
AWAITED_MS = 200  # our share of a turn, at the most
BACK_S = 60  # a killed daemon is back in one second, a hung one is given twenty to answer first


@pytest.fixture(scope="module")
def gateway(boot: Any) -> Iterator[Gateway]:
    yield boot(omg='[observation]\nmodel = "offline"\n').start()


@pytest.fixture(autouse=True)
def whole_afterwards(gateway: Gateway, telegram: Telegram) -> Iterator[None]:
    """After every test: one daemon, everything said is taken in once, and nobody has waited for us."""
    yield
    the_daemon(gateway)
    telegram.talk(ALICE, "is everything there?")

    def difference() -> tuple[Counter[str], Counter[str]]:
        said, taken = Counter(gateway.due(DIRECT)), Counter(gateway.memory.ids(DIRECT))
        return said - taken, taken - said

    def why() -> object:
        return {"missing and too many": difference(), "log": gateway.tail(1500)}

    eventually(lambda: not any(difference()), 30, "every message, once", why=why)
    slowest = status(gateway)["slowestMs"]
    assert sum(slowest[hook] for hook in AWAITED) <= AWAITED_MS, slowest


def status(gateway: Gateway) -> dict[str, Any]:
    return gateway.call("omg.status")


def the_daemon(gateway: Gateway) -> int:
    """Waits for a healthy daemon and returns its pid; there must be no other."""

    def up() -> list[int]:
        now = status(gateway)
        well = now["keeper"]["state"] in ("started", "attached") and "error" not in now["daemon"]
        return gateway.daemons() if well and len(gateway.daemons()) == 1 else []

    (pid,) = eventually(up, BACK_S, "one daemon", why=lambda: (status(gateway), gateway.survivors()))
    return int(pid)


def test_killing_the_daemon_before_a_turn_loses_neither_message_nor_reply(
    gateway: Gateway, telegram: Telegram
) -> None:
    os.kill(the_daemon(gateway), signal.SIGKILL)
    assert "nobody home" in telegram.talk(ALICE, "SAY nobody home")


def test_killing_the_daemon_during_a_turn_loses_neither_message_nor_reply(
    gateway: Gateway, telegram: Telegram
) -> None:
    begun = telegram.says(ALICE, "SLEEP 2 SAY on my own")
    time.sleep(1)
    os.kill(the_daemon(gateway), signal.SIGKILL)
    assert telegram.reply(begun) == "on my own"


def test_killing_the_daemon_after_a_turn_loses_no_message(gateway: Gateway, telegram: Telegram) -> None:
    telegram.talk(ALICE, "SAY and then it died")
    os.kill(the_daemon(gateway), signal.SIGKILL)


def test_a_hanging_daemon_delays_no_reply_and_is_replaced(gateway: Gateway, telegram: Telegram) -> None:
    """Its socket accepts the question, but no answer comes."""
    hung = the_daemon(gateway)
    os.kill(hung, signal.SIGSTOP)
    assert telegram.talk(ALICE, "SAY not waiting") == "not waiting"
    eventually(lambda: hung not in gateway.daemons(), BACK_S, "the hung daemon to be replaced")
    assert the_daemon(gateway) != hung


def test_a_message_said_while_the_spool_cannot_be_written_is_taken_in_later(
    gateway: Gateway, telegram: Telegram
) -> None:
    """As on a full disk. The next turn that can write the spool hands the message over."""
    spool = gateway.home / "spool"
    the_daemon(gateway)
    spool.rename(gateway.home / "spool.away")
    spool.write_text("in the way")
    assert telegram.talk(ALICE, "SAY with nowhere to write") == "with nowhere to write"
    eventually(lambda: "not taken in yet" in gateway.tail(), 10, "a warning in the gateway's log")
    spool.unlink()
    (gateway.home / "spool.away").rename(spool)


def test_a_turn_in_which_the_gateway_is_killed_is_answered_by_the_next_gateway(
    gateway: Gateway, telegram: Telegram
) -> None:
    begun = telegram.says(ALICE, "SLEEP 4 SAY better late than never")
    eventually(lambda: "than never" in said_last(gateway), 10, "the message to be in the transcript")
    gateway.kill()
    eventually(lambda: not gateway.survivors(), 5, "every process to end", why=gateway.survivors)
    gateway.start()

    def late() -> bool:
        return any("late than never" in sent["text"] for sent in telegram.sent[begun:])

    eventually(late, 40, "the answer to the interrupted message", why=lambda: telegram.sent[begun:])


def said_last(gateway: Gateway) -> str:
    return str([e["message"]["content"] for e in gateway.transcript(DIRECT)][-1:])


def test_only_one_of_three_daemons_started_together_stays_and_serves_the_gateway(
    gateway: Gateway, telegram: Telegram
) -> None:
    """Two daemons are started by hand, and one by the gateway. One of them gets the lock."""
    gateway.stop()
    eventually(lambda: not gateway.survivors(), 10, "every process to end", why=gateway.survivors)
    environment = {**gateway.environment(), "OMG_HOME": str(gateway.home)}
    command = [sys.executable, "-m", "omg.cli", "serve"]
    by_hand = [subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL) for _ in range(2)]
    try:
        gateway.start()
        kept = the_daemon(gateway)
        assert kept in [daemon.pid for daemon in by_hand] or status(gateway)["keeper"]["pid"] == kept
        assert telegram.talk(ALICE, "SAY one is enough") == "one is enough"
    finally:
        for daemon in by_hand:
            with contextlib.suppress(ProcessLookupError):
                daemon.terminate()
            daemon.wait(20)


def test_a_second_gateway_does_not_touch_the_daemon_of_the_first(
    gateway: Gateway, telegram: Telegram
) -> None:
    """By mistake, on the same folder: it finds the place taken, and goes again."""
    kept = the_daemon(gateway)
    second = gateway.popen("gateway", "run", log="second.log")
    try:
        assert second.wait(90) != 0
    finally:
        if second.poll() is None:
            os.killpg(second.pid, signal.SIGKILL)
            second.wait(10)
    assert the_daemon(gateway) == kept
    assert telegram.talk(ALICE, "SAY undisturbed") == "undisturbed"


def test_reloading_the_plugin_replaces_its_daemon(gateway: Gateway, telegram: Telegram) -> None:
    former = the_daemon(gateway)
    gateway.run("plugins", "reload", "omg")
    eventually(lambda: former not in gateway.daemons(), 20, "the former daemon to end")
    the_daemon(gateway)
