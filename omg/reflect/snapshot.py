"""
What the Reflector does without a model: repetitions, links, sleep, maps.

    repeated   notes that say the same to the letter become one        kin      what a changed note resembles
    mend       links to a former path lead to the present one again    proposed what looks like a repetition
    doze       what nobody has linked or recalled for long leaves      shelve   maps that grew too long get topics
               the maps, and comes back when it is

Each drafts on a Plan and returns lines for the log page. One rule: files that a person has touched keep
their place and their words; at the most they are superseded by one that says the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ..index.entries import Entry
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
