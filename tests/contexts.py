"""
The contexts of a life's conversations: what the gateway holds of each, and what OMG lets it show of that.

A law for every step (lives.py): raw ∪ observed = said. Each message of a conversation is shown as it was said, once, or it
was cut, and is then in the archive; a turn that the gateway began, and of which memory keeps nothing, is cut with those around it; what stands for it tells nothing that somebody else said, and nothing that was forgotten.
What was cut once stays a lawful context, since the plugin goes by it when the daemon is away. Not here: what happens in a life.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from omg.config import Config
from omg.context import LAST_TURNS, Cut, cut_context, uncounted, whole_turns
from omg.graph.graph import Graph
from omg.text.tokens import count_tokens

SOAK = "It is kept where all of that is kept, and so on. " * 4
STATEMENT = re.compile(r"(?:Statement|Said) (\d+)\b")  # word for word, and as a note has it

OWN = re.compile(r"h\d+a?")  # ids of what the gateway began by itself, and of the answer

Message = dict[str, Any]


@dataclass
class Contexts:
    # session → its messages, each with our own `id`
    said: dict[str, list[Message]] = field(default_factory=dict)
    begins: dict[str, int] = field(default_factory=dict)  # where what is handed over of it begins
    # what was cut, what stands for it
    served: dict[str, tuple[tuple[str, ...], str]] = field(default_factory=dict)
    cuts: int = 0

    def heard(self, session: str, messages: list[Message]) -> None:
        self.said.setdefault(session, []).extend(messages)

    def compacted(self, session: str, at_ms: int) -> None:
        """The gateway's own summary stands for all but the last message."""
        if len(found := self.said.get(session, [])) > 1:
            summary = {
                "id": "",
                "role": "compactionSummary",
                "summary": "What was before.",
                "timestamp": at_ms,
            }
            self.said[session] = [summary, found[-1]]

    def rewound(self, session: str, to: int) -> None:
        """Somebody goes back to an earlier message of a conversation, and on from there."""
        del self.said.get(session, [])[to:]

    def outgrown(self, session: str, messages: int) -> None:
        """A long transcript is handed over by its newest bytes, wherever in a turn they begin."""
        self.begins[session] = max(0, len(self.said.get(session, [])) - messages)

    def assemble(
        self,
        graph: Graph,
        session: str,
        room: int | None,
        now: datetime,
        config: Config,
        whose: Collection[str],
    ) -> list[str]:
        """Ask what leaves, as the daemon does; what is wrong with the answer. *whose*: ids of what this memory was told."""
        given = self.said.get(session, [])
        given = given[min(self.begins.get(session, 0), len(given)) :]
        body = {"sessionKey": session, "messages": [stripped(m) for m in given], "tokenBudget": room}
        made = cut_context(
            graph, json.loads(json.dumps(body)), now=now, config=config, tell=lambda *_, **__: None
        )
        wrong = [*self._unlawful(session, given, made), *self._foreign(made.text, whose)]
        gone = tuple(given[i]["id"] for i in made.cut)
        wrong += self._left_behind(session, given, made) if made.reason == "threshold" else []
        before, text = self.served.get(session, (gone, made.text))
        stood = made.text and not made.reason and set(before) <= {m["id"] for m in given}
        if stood and (before, text) != (gone[-len(before) :], made.text):  # more may be handed over before it
            wrong.append("what stands for the cut changed without a cut")
        self.served.pop(session, None)
        if made.cut:
            self.served[session] = (gone, made.text)
            self.cuts += bool(made.reason)
        return wrong

    def _unlawful(self, session: str, given: list[Message], made: Cut) -> list[str]:
        wrong = []
        if sorted(set(made.cut)) != list(made.cut) or not all(0 <= i < len(given) for i in made.cut):
            wrong.append(f"{made.cut} are no messages of {len(given)}")
        if bool(made.cut) != bool(made.text):
            wrong.append("something is cut with nothing in its place, or the other way round")
        last = whole_turns([uncounted(m) for m in given])[-LAST_TURNS:]
        if any(i in turn for turn in last for i in made.cut):
            wrong.append("one of the last turns is cut")
        kept = [m for i, m in enumerate(given) if i not in made.cut]
        if count_tokens(made.text) + sum(map(cost, kept)) > sum(map(cost, given)):
            wrong.append("the context is longer than without")
        for one, other in (("calls", "answers"), ("answers", "calls")):
            torn = {m[one] for m in kept if m.get(one)} - {m[other] for m in kept if m.get(other)}
            if torn & {m.get(other) for m in given}:
                wrong.append(f"a call stands without its result, or the other way round: {sorted(torn)}")
        return wrong

    def _left_behind(self, session: str, given: list[Message], made: Cut) -> list[str]:
        """The gateway's own turns that stay between turns of a person which have left."""
        turns = [[given[i] for i in turn] for turn in whole_turns([uncounted(m) for m in given])]
        cut, (before, _) = {given[i]["id"] for i in made.cut}, self.served.get(session, ((), ""))
        fresh = [n for n, turn in enumerate(turns) if turn[0]["id"] in cut - set(before)]
        gone = [turn[0]["id"] in cut for turn in turns]
        own = [all(is_own(m) for m in turn) for turn in turns]
        stays = []
        for n in (n for n in range(max(fresh, default=0)) if own[n] and not gone[n]):
            around = [
                next((gone[k] for k in side if not own[k]), False)
                for side in (range(n, -1, -1), range(n, len(turns)))
            ]
            stays += [turns[n][0]["id"]] if all(around) else []
        return [f"turns of the gateway's own stay between what has left: {stays}"] if stays else []

    def _foreign(self, text: str, whose: Collection[str]) -> list[str]:
        told = {f"e{n}" for n in STATEMENT.findall(text)}
        return (
            [f"it tells what is not theirs, or is forgotten: {sorted(told - set(whose))}"]
            if told - set(whose)
            else []
        )

    def broken(self, observed: Collection[str]) -> list[str]:
        """What of the law does not hold: cut, and by the files neither *observed* nor forgotten."""
        return [
            f"cut of {session} and not observed: {lost}"
            for session, (gone, _) in self.served.items()
            if (lost := sorted(id for id in gone if id not in observed and not OWN.fullmatch(id)))
        ]


def stripped(message: Message) -> Message:
    """Return the message as the gateway sends it, without OMG's id."""
    return {key: value for key, value in message.items() if key not in ("id", "calls", "answers")}


def is_own(message: Message) -> bool:
    return OWN.fullmatch(message["id"]) is not None


def cost(message: Message) -> int:
    return count_tokens(json.dumps(message.get("content") or message.get("summary"), ensure_ascii=False))


def spoken(n: int, text: str, at_ms: int, *, tool: bool, answered: bool) -> list[Message]:
    """Return the messages of a turn `e<n>` as in a transcript: the statement, with *tool* a call and its result, and the answer."""
    made: list[Message] = [{"id": f"e{n}", "role": "user", "content": text}]
    if tool:
        call = {"type": "toolCall", "id": f"call{n}", "name": "exec", "arguments": {"command": f"ls {n}"}}
        made.append({"id": f"e{n}c", "role": "assistant", "content": [call], "calls": f"call{n}"})
        result = {"role": "toolResult", "toolCallId": f"call{n}", "toolName": "exec", "answers": f"call{n}"}
        made.append({"id": f"e{n}r", **result, "content": "a line of what was found\n" * (n % 7 + 1)})
    if tool or answered:
        made.append(
            {
                "id": f"e{n}a",
                "role": "assistant",
                "content": [{"type": "text", "text": f"Answer {n} is noted. " + SOAK}],
            }
        )
    return [{**message, "timestamp": at_ms + i} for i, message in enumerate(made)]


def polled(n: int, by: str, at_ms: int) -> list[Message]:
    """Return a turn that the gateway began by itself, and the agent's answer. Memory keeps neither."""
    prompt = {
        "provenance": {"kind": "internal_system", "sourceTool": by},
        "content": f"Look around, {n}. {SOAK}",
    }
    answer = [{"type": "text", "text": f"Finding {n}: the disk is nearly full. {SOAK}"}]
    return [
        {"id": f"h{n}", "role": "user", **prompt, "timestamp": at_ms},
        {"id": f"h{n}a", "role": "assistant", "content": answer, "timestamp": at_ms + 1},
    ]
