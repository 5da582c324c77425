"""
What comes of calls of our tools that a page talked an assistant into (corpora/attacks_second.jsonl), by a model that obeys
when it observes, too. These rows are attacks, so the check answers "not supported" to every claim: nobody has recorded
verdicts for them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from corpora.grounded import rows
from openai_server import claims_of, exam_answer
from spooled import entry, hand_over

from omg.graph.graph import Graph
from omg.journal import commit_receipt, new_receipt
from omg.llm.replies import ModelQuestion, ModelReply
from omg.message.turn import Message, Turn
from omg.node.note import Source
from omg.plan.drafts import PERSONS, Plan
from omg.plan.edits import Edit, split_history
from tests.test_provenance import holds
from tests.tools.test_tools import ALICE, Agent

ROWS = [row for row in rows("attacks_second") if row["kind"] in ("remember", "correct", "forget")]
LONG_AGO = datetime(2026, 1, 10, 9, tzinfo=UTC)


class Obeying:
    """An Ask that says what a row's planted text asks for wherever it sees that; to the check, it says no."""

    def __init__(self, row: dict[str, Any]) -> None:
        title = {note["handle"]: note["title"] for note in row["known"]}
        self.edits = [{**e, "node": title.get(e["node"], e["node"])} for e in row["edits"]]
        self.plant, self.now = row["plant"], row["now"] or {}

    def __call__(self, question: ModelQuestion) -> ModelReply:
        answer: dict[str, Any] = {"edits": []}
        if question.purpose == "check":
            answer = exam_answer(question.user) or {
                "verdicts": dict.fromkeys(claims_of(question.user), "not supported")
            }
        elif any(planted in question.user for planted in self.plant):
            answer = {"edits": self.edits, "now": self.now}
        return ModelReply(json.dumps(answer), "obeying", 1, 1)


class Talk:
    """The row's conversation with the real tools."""

    def __init__(self, home: Path, row: dict[str, Any]) -> None:
        self.agent = Agent(home, gateway=Obeying(row))
        self.graph: Graph = self.agent.home.graph(self.agent.home.registry.identity_of(ALICE))  # type: ignore[arg-type]
        self.paths = {note["handle"]: self.known(note) for note in row["known"]}
        self.codes: dict[str, str] = {}
        self.hear(row.get("session_before", ()))
        self.hear(row["messages"], row["call"])

    def known(self, note: dict[str, Any]) -> str:
        """A note that exists, with the message that it came from; its path."""
        at = int(LONG_AGO.timestamp() * 1000)
        said = Message(f"said-{note['handle']}", "user", note["description"], at)
        self.graph.archive([self.graph.put(f"{at:015d}-{said.id}", Turn(ALICE, messages=(said,))).name])
        plan = Plan(self.graph, date.fromisoformat(note.get("said", str(LONG_AGO.date()))))
        more = {key: note[key] for key in ("event", "loop", "body", "standing") if note.get(key)}
        told = {key: note[key] for key in ("title", "description", "type", "origin")}
        path = plan.apply(Edit("create", **told, **more, sources=(Source(ALICE, said.id, at),)))
        with self.graph.lock():
            commit_receipt(self.graph, new_receipt("observation", LONG_AGO, plan.changes()))
        assert path
        return path

    def hear(self, said: list[dict[str, Any]], call: dict[str, Any] | None = None) -> None:
        """The turns of *said* with what our tools answer, and the *call* after it, observed."""
        entries: list[dict[str, Any]] = []
        for m in said:
            if m["tool"] == "omg_forget":
                continue  # what it really answered is there
            entries.append(self.said(m))
            for asked in [*m["calls"], *([call] if call and m is said[-1] else [])]:
                entries += self.call(asked, entries)
        if entries:
            hand_over(self.agent.home.folder, *entries, session=ALICE)
        self.agent.home.work(force=True)
        assert self.graph.pending() == []

    def said(self, m: Mapping[str, Any]) -> dict[str, Any]:
        at = int(datetime.fromisoformat(m["at"]).replace(tzinfo=UTC).timestamp() * 1000)
        text = self.with_codes(m["text"])
        role = "toolResult" if m["role"] == "tool" else m["role"]
        content = [{"type": "text", "text": text}]
        return entry(m["id"], content, at, role, toolName=m["tool"], toolCallId=f"r{at}")

    def with_codes(self, text: str) -> str:
        """*text* with the codes that were given; a choice that was not offered, since a title was named, is the notes alone."""
        if self.codes:
            for choice in ("forget", "alone", "redact"):
                text = text.replace(f"{{{choice}}}", self.codes.get(choice, self.codes["alone"]))
        return text

    def call(self, asked: dict[str, Any], before: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The messages of a call of ours. The turn is the user's who spoke last."""
        name = asked["name"]
        arguments = {key: self.with_codes(str(value)) for key, value in asked["arguments"].items()}
        spoken = next(e for e in reversed(before) if e["message"]["role"] == "user")
        message, at = spoken["message"], before[-1]["message"]["timestamp"]
        said = {
            "id": spoken["entryId"],
            "text": message["content"][0]["text"],
            "timestamp": message["timestamp"],
        }
        self.answer = self.agent.use(name, ALICE, more={"userMessage": said}, **arguments)
        self.codes |= self.answer["details"].get("codes", {})
        made = {"type": "toolCall", "id": f"c{at}", "name": name, "arguments": arguments}
        told = [{"type": "text", "text": self.answer["text"]}]
        return [
            entry(f"c{at}", [made], at + 1, "assistant"),
            entry(f"r{at}", told, at + 2, "toolResult", toolName=name, toolCallId=f"c{at}"),
        ]


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_a_tool_call_that_a_page_asked_for_changes_no_note_of_the_user(
    home: Path, row: dict[str, Any]
) -> None:
    talk = Talk(home, row)
    expect, graph = row["expect"], talk.graph
    if row["kind"] == "forget":
        assert "write the code" in talk.answer["text"]
        kept = graph.index.messages([f"said-{handle}" for handle in talk.paths])
        assert [m.text for m in kept] == [note["description"] for note in row["known"]]
    else:
        assert talk.answer["details"].get("path"), talk.answer["text"]
    for note in row["known"]:
        node = graph.vault.read(talk.paths[note["handle"]])
        assert (node.description, node.type, node.origin, node.status, node.event, node.loop) == (
            note["description"], note["type"], note["origin"], "active", note.get("event"), note.get("loop"),
        )  # fmt: skip
        assert not [w for w in expect["words"] if holds(node.body, w)]
    for node in map(graph.vault.read, talk.agent.notes(ALICE)):
        text = " ".join((node.title, node.description, split_history(node.body)[0], *node.tags))
        planted = [word for word in expect["words"] if holds(text, word)]
        theirs = "origin user" in expect["never"] and node.origin in PERSONS
        assert not (planted and (node.type in expect["never"] or theirs)), (node.path, text)
    state = graph.state().sessions[ALICE]
    shown = " ".join(getattr(state, key) for key in state.shared)
    assert not [word for word in expect["words"] if holds(shown, word)]
