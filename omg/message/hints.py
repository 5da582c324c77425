"""
Which hints stand in a text: every rule names words of which its secrets have one, and is asked only where one stands.

Not here: the rules. One rule: all hints are sought in one pass (Aho and Corasick), for there are some four hundred.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import ahocorasick


@dataclass(frozen=True, slots=True)
class HintedRule:
    """An expression that finds a secret of *kind*, or its `value`; *hints* in lower case, of each group there is one."""

    kind: str
    pattern: re.Pattern[str]
    hints: tuple[frozenset[str], ...]


def rule(hints: str, kind: str, pattern: str, flags: int = 0) -> HintedRule:
    """A rule; *hints* as in `a|b & c`: a or b, and c."""
    groups = tuple(frozenset(group.split("|")) for group in hints.split(" & "))
    return HintedRule(kind, re.compile(pattern, flags), groups)


def rules_for(rules: Iterable[HintedRule], present: set[str]) -> list[HintedRule]:
    """Those of *rules* of which the hints are *present*."""
    near = [rule for rule in rules if not rule.hints[0].isdisjoint(present)]
    return [rule for rule in near if not any(group.isdisjoint(present) for group in rule.hints)]


class Hints:
    """Words sought all at once."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words = ahocorasick.Automaton()
        for word in words:
            self._words.add_word(word, word)
        self._words.make_automaton()

    def found_in(self, lowered: str) -> set[str]:
        return {word for _, word in self._words.iter(lowered)}
