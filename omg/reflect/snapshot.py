"""The notes a cycle works on, as they were at its start, beside the Plan it drafts on."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ..index.entries import Entry
from ..node.markdown import wikilink
from ..node.note import Node
from ..plan.drafts import Plan


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a cycle works on. *entries*: all active and dormant notes, by path, as they were at its start."""

    plan: Plan
    entries: Mapping[str, Entry]
    changed: AbstractSet[str]  # paths of notes that no cycle has seen as they are now
    frozen: AbstractSet[str]  # paths that a person's undo put back: they stay as they are

    def node(self, path: str) -> Node:
        return self.plan.draft(path).node

    def ours(self, path: str, *properties: str) -> bool:
        """Whether the words of *path* are ours, and these *properties* of its head."""
        draft = self.plan.draft(path)
        return draft.ours and draft.theirs.isdisjoint(properties)

    def now(self) -> list[Entry]:
        """The active notes as the drafts leave them, by path."""
        found = {**self.entries, **self.plan.drafted()}
        return [found[p] for p in sorted(found) if found[p].status == "active"]


def link_of(node: Node) -> str:
    return wikilink(node.path, node.title)
