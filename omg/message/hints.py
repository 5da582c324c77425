"""
Which hints stand in a text: every rule names words of which its secrets have one, and is asked only where one stands.

Not here: the rules. One rule: all hints are sought in one pass (Aho and Corasick), for there are some four hundred.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass

import ahocorasick

DIGITS = "0-9"  # stands for any, in a rule's hints


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


def _has_digit(text: str) -> bool:
    return bool([digit for digit in "0123456789" if digit in text])  # ten times as fast as an expression


def rules_for(rules: Iterable[HintedRule], present: set[str]) -> list[HintedRule]:
    """Those of *rules* of which the hints are *present*."""
    near = [rule for rule in rules if not rule.hints[0].isdisjoint(present)]
    return [rule for rule in near if not any(group.isdisjoint(present) for group in rule.hints)]


@dataclass(frozen=True, slots=True)
class Found:
    """The hints in a text: each with the place of its last letter, in order; and all, with DIGITS if it has any."""

    places: list[tuple[int, str]]
    words: set[str]


class Hints:
    """Words sought all at once."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words = ahocorasick.Automaton()
        for word in words:
            self._words.add_word(word, word)
        self._words.make_automaton()

    def found_in(self, lowered: str) -> Found:
        places = list(self._words.iter(lowered))
        words = {word for _, word in places}
        return Found(places, words | {DIGITS} if _has_digit(lowered) else words)


SHORT_TEXT = 1_000  # chars: in less, nothing is gained by leaving lines out


def rules_by_line(
    rules: Iterable[HintedRule], text: str, found: Found
) -> Iterator[tuple[HintedRule, int, int]]:
    """
    Each of *rules* of which the hints are found near each other in *text*, and where: from the line above to the second below.

    For rules that do not reach farther.
    """
    rules = rules_for(rules, found.words)
    if not rules or len(text) <= SHORT_TEXT:
        yield from ((rule, 0, len(text)) for rule in rules)
        return
    hints = {hint for rule in rules for group in rule.hints for hint in group}
    for start, end, words in _lines_with(hints, text, found):
        if _has_digit(text[start:end]):
            words.add(DIGITS)
        yield from ((rule, start, end) for rule in rules_for(rules, words))


def _lines_with(hints: Set[str], text: str, found: Found) -> Iterator[tuple[int, int, set[str]]]:
    """From where to where there are lines of *text* near those with *hints*, and which are there."""
    start, end, line_end, words = 0, -1, -1, set[str]()
    for at, word in found.places:
        if word not in hints:
            continue
        if at > line_end:  # on another line than the one before
            begin = text.rfind("\n", 0, max(0, text.rfind("\n", 0, at))) + 1
            if begin >= end:
                if words:
                    yield start, end, words
                start, words = begin, set()
            line_end = end = text.find("\n", at) % (len(text) + 1)
            for _ in range(2):
                end = text.find("\n", end + 1) % (len(text) + 1)
        words.add(word)
    if words:
        yield start, end, words
