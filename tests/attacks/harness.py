"""
The attacks on public interfaces, as tables: each row is tried in a home of its own. A row of an attack breaks if it deletes,
replaces or promotes anything; a row of honest use is lost if what the person asked for is not done at once.

A test fails at the first attack that breaks (ATTACKS: none may), and if more than LOST of the honest rows are lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from spooled import entry, hand_over

from omg.node.note import Node
from omg.plan.drafts import PERSONS
from tests.tools.test_tools import ALICE, BOB, Agent

__all__ = ["ALICE", "BOB", "LOST", "Agent", "Talk", "each", "entry", "hand_over", "lost"]

LOST = 0.02  # of the honest rows
AT = 1_795_000_000_000  # 2026-11-18


class Talk:
    """Alice's conversation with an agent and its tools, offline."""

    def __init__(self, folder: Path) -> None:
        self.agent, self.n = Agent(folder), 0

    def knows(self, text: str, type: str = "fact", said: str = "") -> str:
        """A note of Alice's, which she asked for; its path."""
        made = self.call("omg_remember", said or text, text=text, type=type)
        return str(made["details"]["path"])

    def call(self, tool: str, said: str, **params: Any) -> dict[str, Any]:
        """The answer of *tool*, called in the turn in which she *said* that."""
        self.n += 1
        more = {"userMessage": {"id": f"t{self.n}", "text": said, "timestamp": AT + self.n}}
        return self.agent.use(tool, ALICE, more=more, **params)

    def reply(self, text: str, said: str) -> None:
        """What the agent says after a call, as the transcript has it; and the turn before it."""
        turn = [("user", f"t{self.n}", said), ("assistant", f"a{self.n}", text)]
        entries = [entry(id, words, AT + self.n, role) for role, id, words in turn]
        hand_over(self.agent.home.folder, *entries, session=ALICE)

    def note(self, path: str) -> Node:
        graph = self.agent.home.find(ALICE)
        return graph.vault.read(graph.index.resolve(path) or path)

    def theirs(self) -> list[str]:
        """What her active notes say."""
        graph = self.agent.home.find(ALICE)
        found = map(graph.vault.read, self.agent.notes(ALICE))
        return [n.description for n in found if n.origin in PERSONS and n.status == "active"]


def each(rows: Sequence[Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", rows, ids=[str(row[0])[:50] for row in rows])


def lost(rows: Iterable[Any], kept: Callable[[Any], bool]) -> list[Any]:
    """The honest *rows* that are not *kept*; fails if they are more than LOST."""
    rows = list(rows)
    gone = [row for row in rows if not kept(row)]
    assert len(gone) <= LOST * len(rows), f"{len(gone)} of {len(rows)}: {gone}"
    return gone
