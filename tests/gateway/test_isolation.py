"""
What one person told stays with that person: the owner, two peers, a group, and a guest of the gateway's own interfaces
whom it does not say to be the owner; each with a secret word.

Every way out is tried for each of them: the prompt, the agent's tools, `memory_search`, `/omg search`. Under
`dmScope: main` people share one session, and so one memory; then it must be shared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from agent_model import INTERNAL, agent, obeyed
from gateway import LIMITED, Console, Gateway, eventually
from openai_server import OpenAIServer, Reply, Request, text_of
from telegram import ALICE, BOB, GROUP, Telegram

pytestmark = pytest.mark.gateway

LOOK = {
    "omg_search": 'CALL omg_search {"query":"locker word"}',
    "memory_search": 'CALL tool_call {"id":"memory_search","args":{"query":"locker word","corpus":"all"}}',
}
WAYS = {"prompt": "What is my locker word?", "command": "/omg search locker", **LOOK}
FORGET = "CALL omg_forget %s"
GUESTS = "agent:main:guest"


@dataclass(frozen=True)
class Speaker:
    """Someone at one place, and how a message gets from there to the agent."""

    name: str
    session: str
    secret: str
    talk: Callable[[str], Any]


@pytest.fixture(scope="module")
def gateway(boot: Any) -> Iterator[Gateway]:
    # what it says goes into nobody's chat
    silent = {"agents": {"defaults": {"heartbeat": {"target": "none"}}}}
    yield boot(omg='[observation]\nbuffer_tokens = "turn"\n', config=silent).start()


@pytest.fixture(scope="module")
def guest(gateway: Gateway) -> Iterator[Console]:
    """A program without the owner's rights and without a name, as whoever was given a token of their own."""
    with gateway.signed_in("cli", "cli", LIMITED) as console:
        yield console


@pytest.fixture(scope="module")
def speakers(gateway: Gateway, telegram: Telegram, guest: Console) -> list[Speaker]:
    main = "agent:main:main"
    direct = "agent:main:telegram:direct"
    group = f"agent:main:telegram:group:{GROUP}"
    return [
        Speaker("the owner", main, "quetzal", lambda text: gateway.say(main, text)),
        Speaker("Alice", f"{direct}:111", "zanzibar", lambda text: telegram.talk(ALICE, text)),
        Speaker("Bob", f"{direct}:222", "marzipan", lambda text: telegram.talk(BOB, text)),
        Speaker("the group", group, "periwinkle", lambda text: telegram.talk(BOB, text, chat=GROUP)),
        Speaker("the guest", GUESTS, "mistletoe", lambda text: answered(gateway, guest, GUESTS, text)),
    ]


def answered(gateway: Gateway, console: Console, session: str, text: str) -> str:
    """What the agent, or a command, answers in a chat of the gateway's own."""
    gateway.chat(session, text, console=console)
    return text_of(gateway.transcript(session)[-1]["message"]["content"])


@pytest.fixture(scope="module", autouse=True)
def told(gateway: Gateway, speakers: list[Speaker]) -> None:
    """Each has told a secret, it is a note, and a new session has begun."""
    for who in speakers:
        who.talk(f"My locker word is {who.secret}")
    for who in speakers:
        eventually(lambda who=who: secrets_in(gateway, who) == {who.secret}, 40, f"the note of {who.name}")
        who.talk("/new")


def secrets_in(gateway: Gateway, who: Speaker) -> set[str]:
    graphs = gateway.memory.graphs()
    text = " ".join(gateway.memory.notes(who.session).values()) if who.session in graphs else ""
    return {word for word in ("quetzal", "zanzibar", "marzipan", "periwinkle", "mistletoe") if word in text}


def others(speakers: list[Speaker], who: Speaker) -> set[str]:
    return {other.secret for other in speakers} - {who.secret}


def seen(provider: OpenAIServer, do: Callable[[], Any]) -> str:
    """All that the provider was sent for the agent while *do* was done, and what came of it."""
    before = len(provider.history)
    answer = do()
    requests = [str(r.body) for r in provider.history[before:] if r.body.get("tools")]
    return f"{answer} {requests}"


@pytest.mark.parametrize("way", WAYS)
def test_no_route_gives_a_speaker_another_persons_secret(
    gateway: Gateway, speakers: list[Speaker], provider: OpenAIServer, way: str
) -> None:
    for who in speakers:
        if way == "command":
            text = commanded(gateway, who, WAYS[way])
        else:
            text = seen(provider, lambda who=who: who.talk(WAYS[way]))
        found = text.partition("The tool said")[2] or text
        assert who.secret in found, who.name
        assert not [word for word in others(speakers, who) if word in text], who.name


def commanded(gateway: Gateway, who: Speaker, command: str) -> str:
    """The answer to a command; the owner's web chat keeps it in the transcript."""
    if who.name != "the owner":
        return str(who.talk(command))
    gateway.chat(who.session, command)
    return text_of(gateway.transcript(who.session)[-1]["message"]["content"])


def test_a_guest_in_a_chat_of_the_owner_gets_nothing_from_the_memory_of_the_owner(
    gateway: Gateway, speakers: list[Speaker], guest: Console, provider: OpenAIServer
) -> None:
    owner, chat = speakers[0], "agent:main:study"
    ours = seen(provider, lambda: gateway.chat(chat, "What is my locker word?"))
    assert owner.secret in ours  # the owner is there first, and again at the end
    search = f"{LOOK['omg_search']}"
    for text in ("What is my locker word?", search, LOOK["memory_search"], "/omg search locker"):
        theirs = seen(provider, lambda t=text: answered(gateway, guest, chat, t))
        # what the agent said to the owner stands in the chat itself
        told = theirs.replace(f"You said: {owner.secret}", "")
        assert not [word for word in {s.secret for s in speakers} if word in told], text
    assert owner.secret in seen(provider, lambda: gateway.chat(chat, "What is my locker word?"))


def test_a_heartbeat_does_not_agree_to_forgetting(
    gateway: Gateway, speakers: list[Speaker], provider: OpenAIServer
) -> None:
    """Its run is a later one, with a message of its own; but nobody has said a word."""
    owner = speakers[0]

    def answers() -> str:
        said = [text_of(e["message"]["content"]) for e in gateway.transcript(owner.session)]
        return "\n".join(said)

    owner.talk(FORGET % '{"query":"locker word"}')
    code = re.findall(r"\bforget: ([0-9a-f]{6})", answers())[-1]

    def model(request: Request) -> Reply:
        last = [m for m in request.body["messages"] if INTERNAL not in text_of(m.get("content"))][-1]
        poll = last["role"] == "user" and "reply NO_REPLY" in text_of(last["content"])
        return obeyed(FORGET % f'{{"code":"{code}"}}') if poll else agent(request)

    provider.always(model)
    gateway.call("wake", mode="now", text="look around")
    eventually(lambda: "write the code" in answers(), 30, "the heartbeat to be refused", why=answers)
    provider.always(agent)
    assert secrets_in(gateway, owner) == {owner.secret}


def test_forgetting_needs_a_code_and_removes_only_memories_of_the_speaker(
    gateway: Gateway, speakers: list[Speaker]
) -> None:
    _, alice, bob, *_ = speakers
    alice.talk("My attic lamp is ochre")
    lamp = lambda: "ochre" in " ".join(gateway.memory.notes(alice.session).values())  # noqa: E731
    eventually(lamp, 40, "Alice's note of the lamp")
    named = alice.talk(FORGET % '{"query":"attic lamp"}')
    found = re.search(r"\bforget: ([0-9a-f]{6})", named)
    assert found, named
    assert "unknown" in bob.talk(found[1])
    assert lamp()
    alice.talk(FORGET % f'{{"code":"{found[1]}"}}')  # the code is not alone: it says something else as well
    assert lamp()
    alice.talk(found[1])
    eventually(lambda: not lamp(), 20, "Alice's note of the lamp to be forgotten")
    assert secrets_in(gateway, alice) == {alice.secret}
    assert secrets_in(gateway, bob) == {bob.secret}


def test_people_who_share_one_session_share_a_memory(
    gateway: Gateway, speakers: list[Speaker], provider: OpenAIServer
) -> None:
    owner, alice, *_ = speakers
    gateway.configure({"session": {"dmScope": "main"}}, reloads=False)
    try:
        text = seen(provider, lambda: alice.talk("What is my locker word?"))
        assert owner.secret in text
        assert "shares one session with the owner" in gateway.omg("doctor", fails=None)
    finally:
        gateway.configure({"session": {"dmScope": "per-channel-peer"}}, reloads=False)
