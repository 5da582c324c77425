"""The graph as an extra corpus of OpenClaw's memory_search and memory_get, by session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..grounding.notes import origin_mark
from ..worker.registry import Registry
from .asked import mapping_in
from .reading import hit_limit
from .tools import graph_of


def corpus_answer(registry: Registry, body: Mapping[str, Any]) -> dict[str, Any]:
    """What `memory_search` and `memory_get` of this session may see of the graph, in their form."""
    params, graph = mapping_in(body, "params"), graph_of(registry, mapping_in(body, "context"))
    if body.get("op") == "get":
        path = graph and graph.index.resolve(
            str(params.get("lookup") or params.get("path") or "").removeprefix("omg/")
        )
        entry = graph.index.entry(path) if graph and path else None
        if graph is None or entry is None:
            return {"result": None}
        text = graph.vault.text(entry.path)
        return {
            "result": {
                "corpus": "omg",
                "path": f"omg/{entry.path}",
                "title": entry.title,
                "kind": entry.type,
                "content": text,
                "fromLine": 1,
                "lineCount": text.count("\n") + 1,
            }
        }
    hits = (
        graph.index.search(
            str(params.get("query") or ""), hit_limit(params.get("maxResults"), 6), now=registry.clock()
        )
        if graph
        else []
    )
    return {
        "results": [
            {
                "corpus": "omg",
                "path": f"omg/{h.entry.path}",
                "title": h.entry.title,
                "kind": h.entry.type,
                "score": round(min(h.score, 1.0), 3),
                "snippet": h.entry.description
                + (f" ({mark})" if (mark := origin_mark(h.entry.origin)) else ""),
                "id": h.entry.id,
                "startLine": 1,
                "endLine": 1,
                "citation": f"omg/{h.entry.path}",
            }
            for h in hits
        ]
    }
