"""
The product in one conversation: a person says something, and a later session knows it.

Everything is real but the model and Telegram: the gateway, the plugin, the daemon, the vault. Nothing is
configured beyond what a person would, so the Observer is the agent's own model, lent by the gateway.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from gateway import Gateway, eventually
from openai_server import OpenAIServer, Request
from telegram import ALICE, GROUP, Telegram

pytestmark = pytest.mark.gateway

SESSION = "agent:main:telegram:direct:111"
BLOCK = re.compile(r"(?s)<omg-memory v=.*?</omg-memory>")


@pytest.fixture(scope="module")
def gateway(boot: Any) -> Iterator[Gateway]:
    yield boot(omg='[observation]\nbuffer_tokens = "turn"\n').start()


@pytest.fixture(autouse=True)
def up(gateway: Gateway) -> None:
    """The gateway runs, whichever test has stopped it."""
    if gateway.process is None:
        gateway.start()


@pytest.fixture(scope="module")
def noted(gateway: Gateway, telegram: Telegram) -> str:
    """What Alice prefers, said and noted: the path of the note."""
    telegram.talk(ALICE, "I prefer short checklists")

    def found() -> list[str]:
        notes = gateway.memory.notes(SESSION) if SESSION in gateway.memory.graphs() else {}
        return [path for path, text in notes.items() if "short checklists" in text]

    (path,) = eventually(found, 30, "the note", why=lambda: gateway.call("omg.status"))
    return str(path)


def asked(provider: OpenAIServer) -> list[Request]:
    """The agent's own requests: those that offer tools."""
    return [request for request in provider.history if request.body.get("tools")]


def test_what_a_person_says_is_a_note_and_reaches_the_next_session(
    gateway: Gateway, telegram: Telegram, provider: OpenAIServer, noted: str
) -> None:
    assert noted.startswith("preference/")
    text = gateway.memory.notes(SESSION)[noted]
    assert "origin: user" in text
    assert gateway.transcript(SESSION)[0]["id"] in text  # its source is the very message

    assert "new" in telegram.talk(ALICE, "/new").lower()
    telegram.talk(ALICE, "What do you know about how I like my answers?")
    telegram.talk(ALICE, "And what else?")
    first, second = asked(provider)[-2:]
    assert "prefers short checklists" in "".join(BLOCK.findall(first.system + first.user))
    assert "observational-memory-graph" in first.system  # the skill is offered
    ours = BLOCK.findall(first.system)
    assert len(ours) == 1
    assert BLOCK.findall(second.system) == ours
    assert second.system == first.system


def test_only_in_a_direct_chat_a_reply_lists_new_notes_with_the_command_to_undo_them(
    gateway: Gateway, telegram: Telegram, noted: str
) -> None:
    telegram.talk(ALICE, "I prefer trains to planes")
    eventually(lambda: "trains" in "".join(gateway.memory.notes(SESSION)), 30, "the note")
    assert "noted:" not in telegram.talk(ALICE, "What is new in the group?", GROUP)
    told = telegram.talk(ALICE, "Thanks, and how are you?")
    assert re.search(r"\n\nnoted: .*trains.* · undo: /omg undo \w{4}", told), told
    assert "noted:" not in telegram.talk(ALICE, "Fine.")
    assert "noted:" not in json.dumps(gateway.transcript(SESSION))
    undone = telegram.talk(ALICE, told[told.index("/omg undo") :].partition(",")[0])
    assert "Undone" in undone
    assert "trains" not in "".join(gateway.memory.notes(SESSION))


@pytest.mark.usefixtures("noted")
def test_no_process_outlives_the_gateway(gateway: Gateway) -> None:
    gateway.stop()
    eventually(lambda: not gateway.survivors(), 10, "every process to end", why=gateway.survivors)
