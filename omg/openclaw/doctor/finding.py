"""Finding: what the doctor says about one thing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Finding:
    level: Literal["ok", "note", "warn", "fail"]
    what: str
    where: str = ""
    mend: str = ""
    fix: Callable[[], object] | None = field(default=None, repr=False)

    def line(self) -> str:
        mark = {"ok": "✓", "note": "·", "warn": "!", "fail": "✗"}[self.level]
        place = f" [{self.where}]" if self.where else ""
        return f"{mark} {self.what}{place}" + (f"\n    → {self.mend}" if self.mend else "")

    def value(self) -> dict[str, Any]:
        return {
            "level": self.level,
            "what": self.what,
            "where": self.where,
            "mend": self.mend,
            "fixable": self.fix is not None,
        }
