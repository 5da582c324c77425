"""
Runs all checks in turn, and `--fix`.

Each check is a function that yields findings; a finding that is safe to mend carries the function that does
it. Nothing is changed without `--fix`, and `--fix` never touches a word a person wrote.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from ...config import engine_since_ms
from ...errors import OmgError, error_text
from ...memory import Memory
from ..gateway import OpenClaw


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


def examine_home(memory: Memory, claw: OpenClaw | None) -> Iterator[Finding]:
    """Every finding, the gateway's first. *claw* None: OpenClaw is not on this machine."""
    from .gateway import check_gateway, check_hosts, check_turns, has_slot
    from .graph import check_graph, check_home

    yield from check_gateway(memory, claw)
    yield from check_home(memory)
    yield from check_hosts(memory)
    since_ms = engine_since_ms(memory.folder) if has_slot(claw) else 0
    for who in memory.registry.identities():
        cut = list((memory.folder / "graphs" / who.folder / "receipts").glob("*.open.json"))
        try:
            graph = memory.graph(who)
            if cut and not any(file.exists() for file in cut):
                yield Finding("note", "a cycle that a crash cut short was finished just now", who.key)
            yield from check_graph(memory, graph)
            if since_ms:
                yield from check_turns(graph, since_ms)
        except (OmgError, OSError, sqlite3.Error) as e:  # one graph's trouble is not the others'
            yield Finding("fail", error_text(e), who.key, "mend that, then `omg doctor` again")


def mend_findings(findings: list[Finding]) -> list[str]:
    """Mend what is safe to; returns what was mended, or why not."""
    said = []
    for finding in findings:
        if finding.fix is None:
            continue
        try:
            finding.fix()
            said.append(f"mended: {finding.what}")
        except (OmgError, OSError) as e:
            said.append(f"could not mend: {finding.what}: {e}")
    return said
