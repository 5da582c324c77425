"""
What one cycle of the Reflector came to, and what a model said in it.

Values only: how it is drafted stands in drafting.py, locks and what is written in run.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ..journal import Outcome, Receipt
from .groups import Matter
from .periods import ReflectionDraft
from .verdicts import Refusal, ShownGroup

Progress = Callable[[int, int], None]  # (questions asked, questions there will be)


@dataclass(slots=True)
class Cycle:
    """What one cycle came to. `receipt` None: nothing changed, or nothing was to be written (a dry run)."""

    id: str = ""  # of its receipt, and in its events
    receipt: Receipt | None = None
    outcome: Outcome | None = None
    summary: list[str] = field(default_factory=list)  # what was done, a line each, with links
    proposed: list[str] = field(default_factory=list)  # what a person may want to do
    skipped: list[str] = field(default_factory=list)  # what could not be done, and why
    refused: list[Refusal] = field(default_factory=list)  # what the model wanted and may not
    verdicts: int = 0  # of the model on notes, followed or not
    counts: dict[str, int] = field(default_factory=dict)
    calls: int = 0
    tokens: int = 0  # in and out

    @property
    def headline(self) -> str:
        """One line for a person."""
        said = [f"{n} {what.removesuffix('s') if n == 1 else what}" for what, n in self.counts.items() if n]
        said += [f"{len(self.proposed)} for you to judge"] * bool(self.proposed)
        return ", ".join(said) or "nothing to do"


@dataclass(slots=True)
class CycleReplies:
    """What a model said in this cycle."""

    calls: list[tuple[list[ShownGroup], str]] = field(default_factory=list)  # with the reply to each
    shown: dict[str, str] = field(default_factory=dict)  # path → text of the note as it was shown
    answered: set[Matter] = field(default_factory=set)
    passed_over: set[Matter] = field(default_factory=set)  # asked about, and the reply says nothing of them
    # reflection → what it was made of, as shown, and what came of it; None: there is no use in asking
    periods: dict[str, tuple[tuple[str, ...], ReflectionDraft | None]] = field(default_factory=dict)
