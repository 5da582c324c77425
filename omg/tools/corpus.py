"""The graph as an extra corpus of OpenClaw's memory_search and memory_get, by session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..graph.graph import Graph
from ..index.entries import Entry, Hit
from ..provenance.authors import origin_mark
from ..worker.registry import Registry
from .asked import mapping_in
from .reading import hit_limit
from .tools import graph_of


def corpus_answer(registry: Registry, body: Mapping[str, Any]) -> dict[str, Any]:
    """What `memory_search` and `memory_get` of this session may see of the graph, in their form."""
    params, graph = mapping_in(body, "params"), graph_of(registry, mapping_in(body, "context"))
    if body.get("op") == "get":
        name = str(params.get("lookup") or params.get("path") or "")
        return {"result": corpus_note(graph, name.removeprefix("omg/")) if graph else None}
    query, limit = str(params.get("query") or ""), hit_limit(params.get("maxResults"), 6)
    hits = graph.index.search(query, limit, now=registry.clock()) if graph else []
    return {"results": [*map(corpus_hit, hits)]}


def corpus_note(graph: Graph, name: str) -> dict[str, Any] | None:
    path = graph.index.find(name)
    entry = graph.index.entry(path) if path else None
    if entry is None:
        return None
    text = graph.vault.text(entry.path)
    return {**corpus_entry(entry), "content": text, "fromLine": 1, "lineCount": text.count("\n") + 1}


def corpus_hit(hit: Hit) -> dict[str, Any]:
    entry, mark = hit.entry, origin_mark(hit.entry.origin)
    return {
        **corpus_entry(entry),
        "score": round(min(hit.score, 1.0), 3),
        "snippet": f"{entry.description} ({mark})" if mark else entry.description,
        "id": entry.id,
        "startLine": 1,
        "endLine": 1,
        "citation": f"omg/{entry.path}",
    }


def corpus_entry(entry: Entry) -> dict[str, Any]:
    return {"corpus": "omg", "path": f"omg/{entry.path}", "title": entry.title, "kind": entry.type}
