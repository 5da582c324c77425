"""
Chats of the host's own interfaces: Control UI, desktop, phone, terminal, command line and HTTP API.

Their keys do not say whose they are. The owner is given their memory from the first message on; what the gateway does
not say to be the owner's gets nothing of it, and `omg status`, `omg doctor` and `omg inject` say why.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from gateway import GATEWAY_TOKEN, LIMITED, Gateway, eventually
from openai_server import OpenAIServer

pytestmark = pytest.mark.gateway

MAIN = "agent:main:main"
NAMELESS = "agent:main:called"  # of a program that does not say who it is
KNOWN = "cardamom"
ASKED = "How do I take my coffee?"
HOOKS_TOKEN = "hooks-token-0123456789abcdef"
CONFIG = {
    "agents": {"defaults": {"heartbeat": {"target": "none"}}},
    "gateway": {
        "controlUi": {"enabled": True},
        "http": {"endpoints": {"chatCompletions": {"enabled": True}, "responses": {"enabled": True}}},
    },
    "hooks": {
        "enabled": True,
        "token": HOOKS_TOKEN,
        "path": "/hooks",
        "allowRequestSessionKey": True,
        "allowedSessionKeyPrefixes": ["hook:"],
        "internal": {"enabled": True, "entries": {"boot-md": {"enabled": True}}},
    },
}
# the program, its mode, its scopes: "operator.admin" is what the gateway gives to all but phones with limited access
PROGRAMS = {
    "Control UI": ("openclaw-control-ui", "webchat", None),
    "the desktop app": ("openclaw-macos", "ui", None),
    "a phone": ("openclaw-ios", "ui", None),
    "a phone with limited access": ("openclaw-android", "ui", LIMITED),
    "the terminal": ("openclaw-tui", "ui", None),
}
# keys that OpenClaw or its user makes up for a chat, beside those of `sessions.create`
KEYS = (
    MAIN,
    "agent:main:main:thread:77",
    "agent:main:dashboard:review-ui",
    "agent:main:explicit:portal-1",
    "agent:main:acp-bridge:9f1c",
    "agent:main:holiday",
    "agent:main:holiday:thread:3",
    "agent:main:webchat:x",
    "agent:main:telegram:slash:111",
    "agent:main:voice:call-1",
)


@pytest.fixture(scope="module")
def gateway(boot: Any) -> Iterator[Gateway]:
    made = boot(omg='[observation]\nmodel = "offline"\nbuffer_tokens = "turn"\n', config=CONFIG)
    (made.workspace / "BOOT.md").write_text("SAY booted, and I prefer turmeric in my coffee")
    made.start()
    made.say(MAIN, f"I prefer {KNOWN} in my coffee.")
    eventually(lambda: KNOWN in notes_of(made, MAIN), 60, "the note", why=lambda: made.call("omg.status"))
    yield made


def notes_of(gateway: Gateway, key: str) -> str:
    return "\n".join(gateway.memory.notes(key).values()) if key in gateway.memory.graphs() else ""


def knows(provider: OpenAIServer, do: Callable[[], Any], least: int = 1) -> list[bool]:
    """Of each request to the agent's model while *do* was done, whether the owner's memory stood in it."""
    before = len(provider.history)
    do()

    def requests() -> list[str]:
        return [str(r.body) for r in provider.history[before:] if r.body.get("tools")]

    eventually(lambda: len(requests()) >= least, 60, "the agent's model to be asked")
    return [KNOWN in text for text in requests()]


def graphs_of_chats(gateway: Gateway) -> set[str]:
    gateway.omg("observe", fails=None)  # whatever is still on its way is taken in
    return set(gateway.memory.graphs()) - {MAIN, NAMELESS}


def post(
    gateway: Gateway, path: str, body: dict[str, Any], token: str = GATEWAY_TOKEN, **headers: str
) -> None:
    told = {"content-type": "application/json", "authorization": f"Bearer {token}", **headers}
    request = urllib.request.Request(gateway.url + path, json.dumps(body).encode(), told)
    with urllib.request.urlopen(request, timeout=90) as answer:
        answer.read()


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_new_chat_of_the_owner_has_their_memory_from_the_first_message(
    gateway: Gateway, provider: OpenAIServer, program: str
) -> None:
    client, mode, scopes = PROGRAMS[program]
    with gateway.signed_in(client, mode, *([scopes] if scopes else [])) as console:
        made = console.call("sessions.create", {"agentId": "main"}, 60)["key"]
        for message in ("first", "second"):
            asked = lambda made=made: gateway.chat(made, ASKED, console=console)  # noqa: E731
            assert knows(provider, asked) == [True], (made, message)


@pytest.mark.parametrize("key", KEYS)
def test_every_chat_of_the_owner_has_their_memory_from_the_first_message_on(
    gateway: Gateway, provider: OpenAIServer, key: str
) -> None:
    for message in ("first", "second"):
        assert knows(provider, lambda: gateway.chat(key, ASKED)) == [True], message
    assert knows(provider, lambda: gateway.say(f"{key}-2", ASKED)) == [True]  # as `openclaw agent` calls


def test_a_chat_of_the_command_line_has_the_owners_memory(gateway: Gateway, provider: OpenAIServer) -> None:
    for chosen in (("--session-id", "portal-2"), ("--session-key", "agent:main:errand")):
        for message in ("first", "second"):
            asked = lambda chosen=chosen: gateway.run("agent", *chosen, "--message", ASKED)  # noqa: E731
            assert knows(provider, asked) == [True], (chosen, message)


def test_each_request_to_the_http_api_has_the_owners_memory(gateway: Gateway, provider: OpenAIServer) -> None:
    said = [{"role": "user", "content": ASKED}]
    key = {"x-openclaw-session-key": "agent:main:my-app"}
    for body, path, headers in (
        ({"messages": said}, "/v1/chat/completions", {}),
        ({"messages": said, "user": "thread-7"}, "/v1/chat/completions", {}),
        ({"messages": said}, "/v1/chat/completions", key),
        ({"input": ASKED}, "/v1/responses", {}),
    ):
        for message in ("first", "second"):
            asked = lambda b=body, p=path, h=headers: post(gateway, p, {"model": "openclaw", **b}, **h)  # noqa: E731
            assert knows(provider, asked) == [True], (body, message)


def test_all_chats_of_the_owner_write_to_one_memory(gateway: Gateway) -> None:
    said = [f"The shop number {n} sells no spices." for n in range(len(PROGRAMS) + len(KEYS))]
    for text, (client, mode, scopes) in zip(said, PROGRAMS.values(), strict=False):
        with gateway.signed_in(client, mode, *([scopes] if scopes else [])) as console:
            made = console.call("sessions.create", {"agentId": "main"}, 60)["key"]
            gateway.chat(made, text, console=console)
    for text, key in zip(said[len(PROGRAMS) :], KEYS, strict=True):
        gateway.chat(key, text)
    lost = lambda: set(said) - {m["text"] for m in gateway.memory.taken()}  # noqa: E731
    eventually(lambda: not lost(), 30, "each to be taken in", why=lost)
    assert graphs_of_chats(gateway) == set()


def test_a_chat_with_only_omg_commands_creates_no_memory(gateway: Gateway) -> None:
    with gateway.signed_in("openclaw-control-ui", "webchat") as console:
        made = console.call("sessions.create", {"agentId": "main"}, 60)["key"]
        gateway.chat(made, "/omg status", console=console)
    # what no prompt is built for is handed over a quarter of a minute later
    handed = lambda: any(made in file.read_text() for file in (gateway.home / "cursors").iterdir())  # noqa: E731
    eventually(handed, 60, "the chat to be handed over")
    assert graphs_of_chats(gateway) == set()


def test_a_turn_without_a_person_is_given_nothing_and_not_kept(
    gateway: Gateway, provider: OpenAIServer
) -> None:
    hook = {"message": ASKED, "name": "mail", "deliver": False}
    lasting = {**hook, "sessionKey": "hook:mailbox", "sessionMode": "persistent"}
    for body in (hook, lasting, lasting):
        assert not any(knows(provider, lambda body=body: post(gateway, "/hooks/agent", body, HOOKS_TOKEN)))
    assert not any(knows(provider, lambda: gateway.run_job(ASKED)))
    booted = [str(r.body) for r in provider.history if "running a boot check" in str(r.body)]
    assert booted
    assert not any("<omg-memory v=" in text for text in booted)
    assert graphs_of_chats(gateway) == set()
    assert "turmeric" not in notes_of(gateway, MAIN)


def test_an_incognito_chat_is_given_nothing_and_not_kept(gateway: Gateway, provider: OpenAIServer) -> None:
    with gateway.signed_in("openclaw-control-ui", "webchat") as console:
        made = console.call("sessions.create", {"agentId": "main", "incognito": True}, 60)["key"]
        for text in (ASKED, "I prefer saffron in my tea."):
            assert knows(provider, lambda t=text: gateway.chat(made, t, console=console)) == [False]
    assert graphs_of_chats(gateway) == set()
    assert "saffron" not in notes_of(gateway, MAIN)


def test_a_preview_of_an_unused_chat_shows_what_its_owner_is_given(gateway: Gateway) -> None:
    told = gateway.omg("inject", "--session", "agent:main:dashboard:new", "--prompt", ASKED)
    assert KNOWN in told
    assert "nobody has spoken in agent:main:dashboard:new yet" in told


def test_a_program_without_a_name_gets_a_memory_of_its_own_and_status_says_why(
    gateway: Gateway, provider: OpenAIServer
) -> None:
    """`openclaw gateway call` asks for no more than `operator.write`, and the gateway does not say who it is."""
    call(gateway, NAMELESS, ASKED)
    call(gateway, NAMELESS, "I prefer sumac in my tea.")
    eventually(lambda: "sumac" in notes_of(gateway, NAMELESS), 60, "its own note")
    assert not any(NAMELESS in str(r.body) and KNOWN in str(r.body) for r in provider.history)
    assert "sumac" not in notes_of(gateway, MAIN)
    why = "the gateway did not say that only the owner speaks in this chat"
    assert why in gateway.omg("status")
    doctor = gateway.omg("doctor", fails=None)
    assert f"! has a memory of its own: {why} [{NAMELESS}]" in doctor
    assert "omg identity join owner webchat:cli" in doctor
    gateway.omg("identity", "join", "owner", "webchat:cli")
    asked = lambda: call(gateway, NAMELESS, ASKED)  # noqa: E731
    # it stops the daemon, and the gateway starts another, which no prompt waits for
    eventually(lambda: knows(provider, asked) == [True], 120, "the owner's memory", each_s=2)


def call(gateway: Gateway, session: str, text: str) -> None:
    sent = {"sessionKey": session, "message": text, "idempotencyKey": f"k{time.monotonic_ns()}"}
    gateway.run("gateway", "call", "chat.send", "--params", json.dumps(sent))
    gateway.wait_run(sent["idempotencyKey"])
