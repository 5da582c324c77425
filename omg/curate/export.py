"""All active notes of a graph as one markdown page, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict

from ..errors import BadNode, NotFound
from ..graph.graph import Graph
from ..index.entries import Entry
from ..node.fields import TYPES
from ..node.note import Node


def export_graph(graph: Graph, form: str) -> str:
    """All active notes as one markdown page, or as JSON with everything there is about each."""
    nodes: list[Node] = []
    for entry in ordered(graph.index.entries(status=None)):
        with suppress(BadNode, NotFound):  # broken or removed this moment; the doctor names it
            nodes.append(graph.vault.read(entry.path))
    if form == "json":
        return json.dumps([asdict(n) for n in nodes], ensure_ascii=False, indent=1, default=str)
    parts = [f"# {graph.identity.key}\n"]
    for node in nodes:
        if node.status == "active":
            told = f"*{node.type}, {node.updated or node.created or 'undated'}*"
            said = node.body.strip()
            if not said.startswith(node.description):  # most begin with it
                told += f" — {node.description}"
            parts.append(f"## {node.title}\n\n{told}\n\n{said}\n")
    return "\n".join(parts)


def ordered(entries: Sequence[Entry]) -> list[Entry]:
    return sorted(
        (e for e in entries if e.type in TYPES or e.type in ("note", "reflection")),
        key=lambda e: (e.type, e.path),
    )
