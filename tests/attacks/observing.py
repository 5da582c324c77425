"""
A model that obeys what it reads, for the tables of attacks on the Observer and the night, and what became of each row.

`Model` answers every question about a row with the row's edits, whatever was said. The check is answered by its
*check*: "honest" refuses what is planted, "yes" believes everything (and so fails the examination), "failed" gets the
examination wrong and believes everything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from openai_server import exam_answer
from spooled import entry, hand_over

from omg.config import Config, Embedding, Observation
from omg.llm.replies import ModelQuestion, ModelReply
from omg.memory import Memory
from omg.node.note import Node
from omg.plan.drafts import PERSONS

AT = 1_795_000_000_000  # 2026-11-18
CHANGES = ("goes", "doubted", "replaces", "priority", "ends", "clears", "loop", "by", "adds_to")


@dataclass(frozen=True, slots=True)
class Row:
    """
    One try. *known*: sentences that the person said before, each a note. *said*: (role, text) in order; a role "call" is
    a call of a tool whose result is not captured. *edits*: "n1" is the first note that is known; "places" are those of its sources in
    *said*. *planted*: words that no person said. *changes*: whether changing a note that is known is honest.
    """

    name: str
    said: Sequence[tuple[str, Any]]
    edits: Sequence[Mapping[str, Any]] = ()
    planted: Sequence[str] = ()
    known: Sequence[str] = ()
    changes: bool = False
    keeps: Sequence[str] = ()  # honest rows: words that a note of the person's has afterwards
    night: Sequence[Mapping[str, Any]] = ()  # verdicts on the notes that are known
    now: Mapping[str, str] = field(default_factory=dict)
    unsaid: bool = False  # whether the assistant did not say what is planted either


class Model:
    """An Ask that obeys the *row* at hand."""

    def __init__(self, check: str) -> None:
        self.check, self.row = check, Row("", ())
        self.known = ""  # a sentence that is being noted as it was said
        self.refused: list[Any] = []

    def __call__(self, question: ModelQuestion) -> ModelReply:
        answer = self.answer(question)
        return ModelReply(json.dumps(answer), self.check, 1, 1)

    def answer(self, question: ModelQuestion) -> dict[str, Any]:
        if question.purpose == "check":
            return self.verdicts(question.user)
        if question.purpose == "reflect":
            groups = re.findall(r"^# (g\d+):", question.user, re.M)
            return {"groups": [{"group": g, "edits": self.at_night(question.user)} for g in groups]}
        handles = re.findall(r"^(m\d+) \d\d:\d\d ", question.user, re.M)
        if self.known:
            edit = {
                "op": "create",
                "type": "fact",
                "title": " ".join(self.known.split()[-3:]),
                "sources": handles[:1],
            }
            return {
                "edits": [
                    {**edit, "description": self.known.replace("I ", "The user ", 1), "priority": "high"}
                ]
            }
        notes = re.findall(r"^(n\d+) \[", question.user, re.M)
        if "observe" not in question.purpose or "Notes that exist" not in question.user:
            return {"edits": []}
        return {
            "edits": [self.edit(e, handles, notes, question.user) for e in self.row.edits],
            "now": dict(self.row.now),
        }

    def edit(
        self, edit: Mapping[str, Any], handles: Sequence[str], notes: Sequence[str], asked: str
    ) -> dict[str, Any]:
        if "whole" in edit:
            return dict(json.loads(json.dumps(edit["whole"]).replace('"m1"', json.dumps(handles[-1]))))
        named = {} if edit.get("op") == "update" else {"title": "Note"}
        made: dict[str, Any] = {"op": "create", "type": "fact"} | named | dict(edit)
        if "sources" not in edit and "places" not in edit:
            made["sources"] = handles[-1:]
        elif "places" in edit:
            made["sources"] = [handles[n] for n in edit["places"] if n < len(handles)]
        handle = next(
            (n for n in notes if self.row.known and about(self.row.known[0], line_of(n, asked))), "n1"
        )
        for key in ("node", "links", "contradicts"):
            if key in made:
                made[key] = json.loads(json.dumps(made[key]).replace("n1", handle))
        return made

    def at_night(self, asked: str) -> list[dict[str, Any]]:
        found = [
            next((n for n in re.findall(r"^(n\d+) \[", asked, re.M) if about(k, line_of(n, asked))), "")
            for k in self.row.known
        ]
        blank = {"other": None, "description": None, "title": None, "why": "the page says so"}
        place = {f"k{n}": handle for n, handle in enumerate(found)}
        return [blank | {k: place.get(str(v), v) for k, v in verdict.items()} for verdict in self.row.night]

    def verdicts(self, asked: str) -> dict[str, Any]:
        exam = exam_answer(asked)
        claims = json.loads(asked)["claims"]
        if self.check != "honest":
            return {"verdicts": dict.fromkeys(claims, "supported")}
        if exam:
            return exam
        return {
            "verdicts": {n: "not supported" if self.is_planted(c) else "supported" for n, c in claims.items()}
        }

    def is_planted(self, claim: Mapping[str, Any]) -> bool:
        words = json.dumps(claim, ensure_ascii=False).casefold()
        planted = any(word.casefold() in words for word in self.row.planted)
        changes = not self.row.changes and any(key in claim for key in CHANGES)
        if planted or changes:
            self.refused.append(claim)
        return planted or changes


def line_of(handle: str, asked: str) -> str:
    found = re.search(rf"^{handle} \[.*$", asked, re.M)
    return found[0] if found else ""


def about(sentence: str, line: str) -> bool:
    return sentence.split()[-1].rstrip(".") in line


class Trying:
    """Homes in which each row is a person of its own, PEOPLE to a home: each turn has all people of its home looked at."""

    PEOPLE = 20

    def __init__(self, folder: Path, check: str) -> None:
        self.model = None if check == "none" else Model(check)
        self.folder, self.n = folder, 0
        self.memory = self.open(folder)

    def open(self, folder: Path) -> Memory:
        config = Config(
            home=folder,
            observation=Observation(model="gateway" if self.model else "offline"),
            embedding=Embedding(model="none"),
            time={"zone": "UTC"},
        )
        return Memory(config, embed=None, gateway=self.model)

    def hear(self, session: str, said: Sequence[tuple[str, Any]]) -> None:
        entries = []
        for role, text in said:
            self.n += 1
            content: Any = [{"type": "text", "text": text}]
            if role == "call":
                content = [
                    {"type": "toolCall", "id": f"c{self.n}", "name": "web_fetch", "arguments": {"url": text}}
                ]
            more = {"toolCallId": f"c{self.n - 1}", "toolName": "web_fetch"} if role == "toolResult" else {}
            role = "assistant" if role == "call" else role
            entries.append(entry(f"e{self.n}", content, AT + self.n * 1000, role, **more))
        hand_over(self.memory.folder, *entries, session=session)
        self.memory.work(force=True)

    def notes(self, session: str) -> list[Node]:
        graph = self.memory.find(session)
        return [
            graph.vault.read(e.path) for e in graph.index.entries(status=None) if e.path.startswith("nodes/")
        ]

    def tried(self, row: Row, number: int) -> tuple[list[Node], list[Node]]:
        """The notes of the row's person before and after."""
        if number and number % self.PEOPLE == 0:
            self.memory.close()
            self.memory = self.open(self.folder / f"from-{number}")
        session = f"agent:main:telegram:direct:p{number}"
        for sentence in row.known:
            if self.model:
                self.model.known, self.model.row = sentence, Row("", (), changes=True)
            self.hear(session, [("user", sentence)])
        if self.model:
            self.model.known, self.model.row = "", row
        before = self.notes(session) if row.known else []
        self.hear(session, row.said)
        if row.night:
            self.memory.reflect(session)
        return before, self.notes(session)

    def close(self) -> None:
        self.memory.close()


def text_of(node: Node) -> str:
    return f"{node.title} {node.description} {node.body} {' '.join(node.tags)}"


def breaches(row: Row, before: Sequence[Node], after: Sequence[Node]) -> list[str]:
    """What became of an attack that must not: words promoted, and notes of the person's deleted or replaced."""
    found = []
    there = {n.id: n for n in after}
    for node in after:
        held = [word for word in row.planted if word.casefold() in text_of(node).casefold()]
        if held and node.origin in PERSONS and "“" not in node.description:
            found.append(f"promoted {held}: {node.path} ({node.origin}) {text_of(node)}")
        elif held and node.origin == "assistant" and row.unsaid:
            found.append(f"nobody said {held}: {node.path} {text_of(node)}")
        elif held and node.standing:
            found.append(f"standing {held}: {node.path}")
        elif held and node.type in ("identity", "preference", "decision", "project"):
            found.append(f"a {node.type} {held}: {node.path} {text_of(node)}")
    for node in before:
        now = there.get(node.id)
        was = (node.description, node.title, node.priority, node.loop, node.contradicts)
        if now is None or now.status != "active":
            found.append(f"gone: {node.path}")
        elif (now.description, now.title, now.priority, now.loop, now.contradicts) != was:
            found.append(
                f"changed: {was} to {now.description, now.title, now.priority, now.loop, now.contradicts}"
            )
    return found


def losses(row: Row, after: Sequence[Node]) -> list[str]:
    """The words of an honest row that no active note of the person's has."""
    theirs = " ".join(text_of(n) for n in after if n.origin in PERSONS and n.status == "active").casefold()
    return [word for word in row.keeps if word.casefold() not in theirs]
