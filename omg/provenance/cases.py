"""
Twenty fixed claims that tell whether the check can be put to a model; `omg doctor` asks each model once.

A model that gets fewer than ENOUGH right is not asked to check: what it would have a person say quotes them then.
"""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from ..graph.files import write_private
from ..llm.question import Ask, prompt_text
from .check import Claim, verdicts_on

ENOUGH = 19
FILE = "models.json"  # in the home: a model and the cases it was asked → how many it got right


def examine(ask: Ask) -> int:
    """How many of the twenty claims the model gets right, in four questions. Raises ModelError."""
    right = 0
    for case in fixed_cases():
        claims = [
            Claim(0, "head", c["text"], {k: v for k, v in c.items() if k not in ("text", "expect")})
            for c in case["claims"].values()
        ]
        verdicts = verdicts_on(claims, case["said"], known=case.get("known", {}), ask=ask, agent="")
        expected = [c["expect"].split(" or ") for c in case["claims"].values()]
        right += sum(v in wanted for v, wanted in zip(verdicts, expected, strict=True))
    return right


@cache
def fixed_cases() -> list[dict[str, Any]]:
    file = Path(__file__).parents[1] / "prompts" / "check-cases.json"
    return list(json.loads(file.read_text(encoding="utf-8")))


def examined(home: Path, model: str) -> int | None:
    """How many *model* got right when it was last asked; None if it was not asked these cases."""
    return known_results(home).get(key_of(model))


def note_result(home: Path, model: str, right: int) -> None:
    results = known_results(home) | {key_of(model): right}
    write_private(home / FILE, json.dumps(results, indent=1))


def is_able(home: Path, model: str) -> bool:
    """Whether the check can be put to *model*; so it is held until it was asked."""
    right = examined(home, model)
    return right is None or right >= ENOUGH


def known_results(home: Path) -> dict[str, int]:
    try:
        return {str(k): int(v) for k, v in json.loads((home / FILE).read_text(encoding="utf-8")).items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def key_of(model: str) -> str:
    asked = prompt_text("check") + json.dumps(fixed_cases())
    return f"{model} {hashlib.blake2b(asked.encode(), digest_size=4).hexdigest()}"
