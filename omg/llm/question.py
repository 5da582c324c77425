"""A question to a model, why there is no reply, and the type of whoever can be asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .ledger import ModelReply


@dataclass(frozen=True, slots=True)
class ModelQuestion:
    system: str
    user: str
    schema: dict[str, Any] | None  # JSON schema of the reply; None: any text
    purpose: str  # "observe", "reflect", …: what the ledger says it was for
    agent: str = ""
    temperature: float | None = None  # that the configuration has for the model that is asked

    @property
    def usual_temperature(self) -> float:
        """As Mastra's observational memory has it: some freedom for what is noted, none for what is merged."""
        return 0.0 if self.purpose == "reflect" else 0.3


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no reply, as the child tells it."""

    why: str
    status: int = 0  # HTTP; 0: no answer at all
    again: bool = True  # whether the same question may fare better a little later
    wait_s: float | None = None  # how long the server asks us to stay away


Ask = Callable[[ModelQuestion], ModelReply]


def instructions(name: str, also: str) -> str:
    """The system part of a question: prompts/<name>.md, and what the owner of the config adds to it."""
    return prompt_text(name) + (f"\n\n# Also\n\n{also}\n" if also else "")


@cache
def prompt_text(name: str) -> str:
    return (Path(__file__).parents[1] / "prompts" / f"{name}.md").read_text(encoding="utf-8")
