"""
What memory costs a provider's cache: over 30 turns with tools, the characters of each request that are not a prefix of the
one before, with OMG and without, beside what was found in the same run.

The gateway does not keep what a plugin puts before a message, so where a prompt got something the next turn's requests
differ from there on, and the tools' results after it are paid again.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from agent_model import INTERNAL, agent, called
from gateway import Gateway, eventually
from openai_server import OpenAIServer, Reply, Request, text_of

pytestmark = pytest.mark.gateway

TURNS = 30
WITH, WITHOUT = "agent:main:main", "agent:main:other"
BLOCK = re.compile(r"(?s)<omg-memory v=.*?</omg-memory>\n*")
SLACK = 200  # characters: ids and times in the gateway's own context differ in length
PLACES = "attic cellar garage shed workshop larder hallway study boathouse greenhouse".split()
ROOMS = "red blue green yellow white black grey brown pink orange".split()
THINGS = "kayak telescope accordion tent sewing-machine loom kiln theodolite sextant unicycle".split()
OTHERS = "lamp chair carpet mirror clock vase basket ladder bucket hammer saw plane chisel rope drum".split()


@dataclass
class Run:
    """One conversation as the provider saw it."""

    turns: list[list[Request]] = field(default_factory=list)
    found: int = 0  # questions whose answer stood in the request
    asked: int = 0

    @property
    def requests(self) -> list[Request]:
        return [request for turn in self.turns for request in turn]

    @property
    def anew(self) -> int:
        pairs = itertools.pairwise(["", *map(wire, self.requests)])
        return sum(len(now) - common(before, now) for before, now in pairs)

    @property
    def served(self) -> int:
        return sum(bool(given(turn[0])) for turn in self.turns)


@pytest.fixture(scope="module")
def gateway(boot: Any, provider: OpenAIServer) -> Iterator[Gateway]:
    made = boot()
    made.omg("new", "fact", "House", "--text", "The house has ten rooms.")
    (graph,) = made.memory.graphs().values()
    for n, (thing, room) in enumerate(itertools.product([*THINGS, *OTHERS], ROOMS[:6])):
        place = PLACES[n % len(PLACES)]
        said = f"The {room} {thing} is kept in the {place}."
        file = graph / "vault" / "nodes" / "fact" / f"{room}-{thing}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"---\ndescription: {said}\ntype: fact\n---\n\n{said}\n")
    provider.always(worker)
    yield made.start()


def worker(request: Request) -> Reply:
    """An agent that looks at a file whenever it is asked to do something or where something is."""
    if "You are the Observer" in request.system:
        return agent(request)
    last = [m for m in request.body["messages"] if INTERNAL not in text_of(m.get("content"))][-1]
    if last["role"] == "tool":
        return "Done."
    said = BLOCK.sub("", text_of(last["content"]))
    return "You are welcome." if "Thanks" in said else called("exec", '{"command": "seq 1 400"}')


def talked(gateway: Gateway, provider: OpenAIServer, session: str) -> Run:
    run = Run()
    for n in range(TURNS):
        thing, room = THINGS[n // 3], ROOMS[n % 6]
        text = (
            f"Where is the {room} {thing} kept?",
            f"Rename the variable in line {n} to total and run the tests",
            "Thanks, that looks good",
        )[n % 3]
        before = len(provider.history)
        assert gateway.say(session, text)["status"] == "ok", (n, text)
        turn = [r for r in provider.history[before:] if r.body.get("tools")]
        run.turns.append(turn)
        if n % 3 == 0:
            place = PLACES[((n // 3) * 6 + n % 6) % len(PLACES)]
            run.asked += 1
            run.found += f"The {room} {thing} is kept in the {place}." in wire(turn[0])
    return run


def wire(request: Request) -> str:
    return "\n".join(json.dumps(m, ensure_ascii=False) for m in request.body["messages"])


def common(one: str, other: str) -> int:
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return sum(1 for _ in same)


def lost(before: list[Request], now: list[Request]) -> int:
    """How much of the end of a turn's last request is not the beginning of the next turn's."""
    return len(wire(before[-1])) - common(wire(before[-1]), wire(now[0]))


def given(request: Request) -> str:
    """What OMG put before the user's message of this turn."""
    users = [m for m in request.body["messages"] if m["role"] == "user"]
    users = [m for m in users if INTERNAL not in text_of(m["content"])]
    return "".join(BLOCK.findall(text_of(users[-1]["content"])))


def turn_begins(request: Request) -> int:
    """Where in `wire` the user's message of this turn begins."""
    messages = request.body["messages"]
    users = [
        n for n, m in enumerate(messages) if m["role"] == "user" and INTERNAL not in text_of(m["content"])
    ]
    return len("\n".join(json.dumps(m, ensure_ascii=False) for m in messages[: users[-1]]))


def test_with_memory_only_the_added_text_and_the_current_turn_miss_the_prompt_cache(
    gateway: Gateway, provider: OpenAIServer, capsys: pytest.CaptureFixture[str], record_property: Any
) -> None:
    ours = talked(gateway, provider, WITH)
    gateway.configure({"plugins": {"entries": {"omg": {"hooks": {"allowPromptInjection": False}}}}})
    eventually(lambda: gateway.say("agent:main:third", "Thanks")["status"] == "ok", 60, "a turn", each_s=2)
    plain = talked(gateway, provider, WITHOUT)
    assert not any(BLOCK.search(wire(r)) for r in plain.requests)
    standing = [r.system for r in ours.requests]
    changes = sum(a != b for a, b in itertools.pairwise(standing))
    whole = sum(len(wire(r)) for r in ours.requests)
    repaid = changed = 0
    for before, now in itertools.pairwise(ours.turns):
        if before[-1].system != now[0].system:
            changed += len(wire(now[0]))
        elif given(before[0]):
            assert common(wire(before[-1]), wire(now[0])) >= turn_begins(before[0])
            repaid += len(wire(before[-1])) - turn_begins(before[0])
        else:  # a turn that was given nothing costs no more than without OMG, but for the gateway's own context
            assert lost(before, now) <= max(lost(*pair) for pair in itertools.pairwise(plain.turns)) + SLACK
    told = sum(len(given(turn[0])) for turn in ours.turns) + sum(map(len, BLOCK.findall(standing[0])))
    first, bare = len(wire(ours.requests[0])), len(wire(plain.requests[0]))
    figure = (
        f"{TURNS} turns, {len(ours.requests)} requests, {whole:,} characters: after the first ({first:,} with OMG, "
        f"{bare:,} without) {ours.anew - first:,} sent anew with OMG, {plain.anew - bare:,} without; {ours.served} prompts "
        f"were given something, {told:,} characters, and {repaid:,} of their turns were sent again; the standing part "
        f"changed {changes} times ({changed:,}); found {ours.found} of {ours.asked} with OMG, {plain.found} without"
    )
    record_property("cache", figure)
    with capsys.disabled():
        print("\n" + figure)
    assert (ours.found, plain.found) == (ours.asked, 0)
    assert ours.served <= ours.asked  # nothing for small talk and orders
    assert ours.anew - plain.anew <= told + repaid + changed
