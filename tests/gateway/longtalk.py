"""
A conversation that is longer than its model's window, said to the real gateway; what each request held.

    said(n)          what a person says in turn n: a fact in every other of the first forty, an order for a tool in every fourth
    talked           the turns, with the requests that reached the provider
    measured         of those turns: the largest request, failures, compactions, cuts, how much of a prefix stood
    asked, held      questions about the facts, and which of the facts stand in each of their requests

Used by test_context_engine.py, and by bench/window.py for two hundred turns. One rule: all is counted by what the
provider received, never by what anybody says they sent.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from gateway import Gateway
from openai_server import OpenAIServer, Request, text_of

WINDOW = 32_768  # of mock-small
TIMELINE = re.compile(r"(?s)<omg-memory v=\"\w+\">\nEarlier in this conversation, as notes.*?</omg-memory>")
STANDING = re.compile(r"(?s)<omg-memory .*?</omg-memory>")  # of the system prompt
SUMMARY = "context summarization assistant"
SOAK = "And so it goes on, for the {}th time. " * 60


@dataclass(frozen=True, slots=True)
class Fact:
    """*answer*: the words that a reader needs; none of them is in *question*."""

    text: str
    question: str
    answer: tuple[str, ...]


FACTS = (
    Fact("My sister Maya lives in Tiverton.", "Where does my sister live?", ("Tiverton",)),
    Fact("I am allergic to hazelnuts.", "What am I allergic to?", ("hazelnut",)),
    Fact("We decided to use Postgres for the billing service.", "Which database did we choose for billing?", ("Postgres",)),
    Fact("My flight to Oslo leaves on 14 June at 07:40.", "When does my flight leave?", ("07:40",)),
    Fact("The garage code is kept in the blue notebook.", "Where is the code of the garage kept?", ("blue notebook",)),
    Fact("I take my coffee without sugar but with oat milk.", "Which milk do I take?", ("oat",)),
    Fact("My manager is called Ingrid Solberg.", "What is my manager's name?", ("Ingrid",)),
    Fact("Our dog Pimlico is nine years old.", "What is our dog called?", ("Pimlico",)),
    Fact("I moved to Leiden in 2019 because of the university.", "In which year did I move?", ("2019",)),
    Fact("The invoice of the roofer came to 4,310 euros.", "How much did the roofer charge?", ("4,310",)),
    Fact("I want answers in metric units only.", "Which units do I want?", ("metric",)),
    Fact("My thesis is about the nesting of swifts.", "What is my thesis about?", ("swifts",)),
    Fact("The staging server is called heron.", "What is the name of the staging server?", ("heron",)),
    Fact("I promised Tom to return his tent by Friday.", "What do I owe Tom?", ("tent",)),
    Fact("I cannot work on Thursdays, that is my day with the children.", "On which day can I not work?", ("Thursday",)),
    Fact("We rejected the offer of Nordwind because it was too slow.", "Whose offer did we turn down?", ("Nordwind",)),
    Fact("My bicycle was stolen at the station on 3 February.", "What was taken from me in winter?", ("bicycle",)),
    Fact("I am reading a novel by Halldór Laxness.", "Which author am I reading?", ("Laxness",)),
    Fact("The release is planned for the second week of September.", "For when is the release planned?", ("September",)),
    Fact("My grandmother's recipe needs cardamom and rye flour.", "Which spice is in my grandmother's recipe?", ("cardamom",)),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Said:
    """A turn: what it said, how it ended, and the *requests* that reached the provider until then."""

    text: str
    status: str
    requests: tuple[Request, ...]

    @property
    def own(self) -> list[Request]:
        """The agent's requests, without summaries, the Observer's and the like."""
        return [
            r for r in self.requests if r.body.get("tools") and "Pre-compaction memory flush" not in r.user
        ]


def said(n: int) -> str:
    if n % 4 == 3:
        return f'Look into folder {n}: CALL exec {{"command": "seq 1 700"}}'
    if n % 2 == 0 and n // 2 < len(FACTS):
        return f"{FACTS[n // 2].text} {SOAK.format(*[n] * 60)}"
    return f"I prefer the number {n} over all others. {SOAK.format(*[n] * 60)}"


def talked(
    gateway: Gateway,
    provider: OpenAIServer,
    session: str,
    turns: int,
    tell: Callable[[int], None] = lambda n: None,
) -> list[Said]:
    made = []
    for n in range(turns):
        made.append(turn(gateway, provider, session, said(n)))
        tell(n)
    return made


def asked(gateway: Gateway, provider: OpenAIServer, session: str, facts: Sequence[Fact]) -> list[Said]:
    return [turn(gateway, provider, session, fact.question) for fact in facts]


def turn(gateway: Gateway, provider: OpenAIServer, session: str, text: str) -> Said:
    before = len(provider.history)
    status = gateway.say(session, text)["status"]
    return Said(text, status, tuple(provider.history[before:]))


# --- what they held


def measured(turns: Sequence[Said], events: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """*events*: of the session's transcript."""
    kept = sorted(shares(turns))
    own = [r for turn in turns for r in turn.own]
    return {
        "turns": len(turns),
        "failed": sum(turn.status != "ok" for turn in turns),
        "window": WINDOW,
        "largest_messages": max(map(tokens, own)),
        "largest_with_tools": max(tokens(r, "messages", "tools") for r in own),
        "compactions": sum(e["type"] == "compaction" for e in events),
        "asked_for_summary": sum(SUMMARY in r.system for turn in turns for r in turn.requests),
        "cuts": len({text for r in own for text in TIMELINE.findall(wire(r))}),
        "prefix_least": round(kept[0], 4) if kept else None,
        "prefix_median": round(median(kept), 4) if kept else None,
        "prefix_below_95": sum(share < 0.95 for share in kept),
        "prefixes": len(kept),
    }


def shares(turns: Sequence[Said]) -> list[float]:
    """How much of a turn's first request is the beginning of the next turn's, where all that OMG adds stood still."""
    found = []
    for one, other in itertools.pairwise(turn.own[0] for turn in turns if turn.own):
        before, after = wire(one), wire(other)
        still = STANDING.findall(one.system) == STANDING.findall(other.system)
        if still and TIMELINE.findall(before) == TIMELINE.findall(after):
            same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))
            found.append(sum(1 for _ in same) / len(before))
    return found


def tokens(request: Request, *parts: str) -> int:
    return sum(len(json.dumps(request.body[part])) for part in parts or ("messages",)) // 4


def wire(request: Request) -> str:
    return "\n".join(f"{m['role']}: {text_of(m.get('content'))}" for m in request.body["messages"])


def held(turns: Sequence[Said], facts: Sequence[Fact]) -> list[dict[str, Any]]:
    """For each question (a turn for each of *facts*): where its own fact stands, and which of the others do."""
    rows = []
    for turn, fact in zip(turns, facts, strict=True):
        shown = wire(turn.own[0]) if turn.own else ""
        rows.append(
            {
                "question": fact.question,
                "fact": fact.text,
                "stands": stands(shown, fact),
                "where": places(shown, fact),
                "all": sum(stands(shown, other) for other in facts),
            }
        )
    return rows


def stands(shown: str, fact: Fact) -> bool:
    return all(re.search(rf"(?i)\b{re.escape(word)}", shown) for word in fact.answer)


def places(shown: str, fact: Fact) -> list[str]:
    """raw: as it was said; timeline: what stands for what was cut; memory: what else OMG adds; else: a summary."""
    timeline = " ".join(TIMELINE.findall(shown))
    memory = " ".join(STANDING.findall(TIMELINE.sub("", shown)))
    rest = STANDING.sub("", shown)
    found = {"raw": fact.text in rest, "timeline": stands(timeline, fact), "memory": stands(memory, fact)}
    return [name for name, there in found.items() if there] or (["else"] if stands(rest, fact) else [])


def report(name: str, found: dict[str, Any]) -> str:
    prefix = "no two requests to compare"
    if found["prefixes"]:
        prefix = f"prefix share min {found['prefix_least']:.1%} median {found['prefix_median']:.1%}"
    return (
        f"{name}: {found['turns']} turns, {found['failed']} failed, largest request {found['largest_messages']:,} of "
        f"{found['window']:,} tokens ({found['largest_with_tools']:,} with tools), {found['cuts']} cuts, "
        f"{found['compactions']} compactions, {found['asked_for_summary']} questions for a summary, {prefix}"
    )
