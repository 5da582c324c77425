"""
What a note said before it was changed or corrected. Words that said so then are marked: they do not hold any more.

A message that is newer than the change is never marked by it. Not here: which words are quoted (passages.py).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

from ..dates.days import days_in, says_day
from ..errors import OmgError
from ..graph.graph import Graph
from ..node.note import parse_node
from ..plan.edits import split_history
from ..text.words import Words, told_words


@dataclass(frozen=True, slots=True)
class Former:
    """What a line of a note's History says that the note does not say now."""

    words: frozenset[str]
    days: frozenset[date]

    def is_told_by(self, text: str) -> bool:
        if self.days:
            return any(says_day(text, day) for day in self.days)
        return bool(self.words) and 2 * len(Words(told_words(text)).of(self.words)) >= len(self.words)


def is_former(read: Callable[[str], str], path: str, text: str, at_ms: int) -> bool:
    """Whether *text*, said at *at_ms*, tells what the note at *path* says no more. *read*: a path's text."""
    with suppress(OmgError, OSError):
        changed_ms, former = former_states(read(path), path)
        return at_ms < changed_ms and any(state.is_told_by(text) for state in former)
    return False


def is_denied(graph: Graph, path: str, was: str, text: str, at_ms: int) -> bool:
    """
    Whether *text*, said at *at_ms*, repeats of *was* what a person has taken out of the note at *path*, which was made
    from *was*. It has to tell half of what the note says still, too: of another key that hangs there it is no repetition.
    """
    with suppress(OmgError, OSError, UnicodeDecodeError):
        data = graph.vault.bytes(path)
        if data is None:
            return False
        node = parse_node(data.decode(), path)
        now = Words(told_words(f"{node.description} {split_history(node.body)[0]}"))
        kept = now.of(told_words(was))
        told = Words(told_words(text))
        if 2 * len(told.of(kept)) < len(kept) or not Former(told_words(was) - kept, frozenset()).is_told_by(
            text
        ):
            return False
        if graph.vault.reworded(data):
            return at_ms < graph.vault.file(path).stat().st_mtime * 1000
        return at_ms < max((s.timestamp for s in node.sources), default=0)  # we have written the file since
    return False


@lru_cache(maxsize=512)
def former_states(text: str, path: str) -> tuple[int, tuple[Former, ...]]:
    """When the note *text* was last told of, and what the lines of its History say beside it."""
    node = parse_node(text, path)
    main, history = split_history(node.body)
    if not history:
        return 0, ()
    now = f"{node.title} {node.description} {main}"
    told, days = told_words(now), days_in(now)
    lines = [line.partition(": ")[2] for line in history]
    former = [Former(told_words(line) - told, days_in(line) - days) for line in lines]
    return max((s.timestamp for s in node.sources), default=0), tuple(former)
