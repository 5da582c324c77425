"""
Finds the graph that a session may see, and who answers its tool call or /omg command.

The answers are in reading.py and changing.py.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ..errors import BadInput, OmgError
from ..graph.graph import Graph
from ..index.store import Entry, Hit
from ..provenance import origin_mark
from ..worker.intake import Intake
from ..worker.registry import Registry
from .changing import correct_tool, remember_tool
from .reading import (
    HITS,
    hit_limit,
    hit_line,
    hit_value,
    mapping_in,
    open_tool,
    said_about,
    said_line,
    search_tool,
)
from .removing import ASK_USER, Codes, forget_tool
from .today import decide_text, today_text, why_text

TO_FORGET = "It cannot be taken back. To do it, send /omg forget with the code of your choice: "
CHANGING = ("omg_correct", "omg_forget")  # of what is there; they wait for whoever is at the vault


def graph_of(
    registry: Registry, context: Mapping[str, Any], *, write: bool = False, create: bool = False
) -> Graph | None:
    """The graph that the asking session may see; None if it has none. Reading does not wait for a writer of the
    vault."""
    who = registry.asking(context)
    if who is None or not (create or (registry.folder / "graphs" / who.folder).is_dir()):
        return None
    return registry.graph(who) if write or create else registry.opened(who)


def nothing_text(registry: Registry, context: Mapping[str, Any]) -> str:
    off = registry.config.switched_off(str(context.get("agentId") or "main"))
    return f"The memory is switched off: {off}." if off else "Nothing is remembered for this conversation."


def call_tool(intake: Intake, body: Mapping[str, Any], codes: Codes) -> dict[str, Any]:
    """`{name, params, context}` → `{text, details}`. An error is told to the model as `text`."""
    name, params, context = str(body.get("name")), mapping_in(body, "params"), mapping_in(body, "context")
    graph = graph_of(intake.registry, context, write=name in CHANGING, create=name == "omg_remember")
    if graph is None:
        return {"text": nothing_text(intake.registry, context), "details": {}}
    try:
        if name == "omg_search":
            return search_tool(intake.registry, graph, params, str(context.get("sessionKey") or ""))
        if name == "omg_open":
            return open_tool(graph, params)
        if name == "omg_remember":
            return remember_tool(intake, graph, params, context)
        if name == "omg_correct":
            return correct_tool(intake, graph, params, context)
        if name == "omg_forget":
            return forget_tool(intake, graph, params, context, codes)
    except OmgError as e:
        return {"text": str(e), "details": {"error": type(e).__name__}}
    raise BadInput(f"no tool {name!r}")


def search_answer(registry: Registry, body: Mapping[str, Any]) -> dict[str, Any]:
    """
    What `omg search` prints: `hits`, and in `said` lines with what was said about it. *body*: query, k, and identity,
    None for the owner's.
    """
    graph, query, now = registry.find(body.get("identity")), str(body["query"]), registry.clock()
    hits = graph.index.search(query, int(body["k"]), now=now)
    return {"hits": [*map(hit_value, hits)], "said": said_lines(graph, query, hits, now)}


def said_lines(graph: Graph, words: str, hits: list[Hit], now: datetime) -> list[str]:
    return [said_line(graph, passage) for passage in said_about(graph, words, hits, now)]


def slash_command(intake: Intake, body: Mapping[str, Any], codes: Codes) -> dict[str, Any]:
    """`/omg status`, `/omg today`, `/omg decide`, `/omg why`, `/omg search WORDS`, `/omg forget WORDS`, `/omg forget CODE`."""
    context = mapping_in(body, "context")
    verb, _, rest = str(body.get("args") or "status").strip().partition(" ")
    graph = graph_of(intake.registry, context, write=verb == "forget")
    if graph is None:
        return {"text": nothing_text(intake.registry, context)}
    try:
        if verb == "status":
            return {"text": status_line(graph)}
        if verb == "today":
            return {"text": today_text(graph, intake.registry.clock())}
        if verb == "decide":
            return {"text": decide_text(graph)}
        if verb == "why":
            return {"text": why_text(graph, str(context.get("sessionKey") or ""))}
        if verb == "search" and rest.strip():
            now = intake.registry.clock()
            hits = graph.index.search(rest, HITS, now=now)
            lines = [*map(hit_line, hits), *said_lines(graph, rest, hits, now)]
            return {"text": "\n".join(lines) or "Nothing found."}
        if verb == "forget" and rest.strip():
            code = rest.rpartition(":")[2].strip()  # the answer shows each with its label before it
            params = {"code": code} if code in codes.issued else {"query": rest}
            # A command is always the user's own turn, so each one counts as a turn and a message of its own, which says
            # nothing beside.
            once = secrets.token_hex(4)
            said = {"id": once, "text": params.get("code", "")}
            context |= {"trigger": "user", "runId": once, "userMessage": said}
            text = str(forget_tool(intake, graph, params, context, codes)["text"])
            return {"text": text.replace(ASK_USER, TO_FORGET)}
    except OmgError as e:
        return {"text": str(e)}
    return {
        "text": "/omg status · /omg today · /omg decide · /omg why · /omg search WORDS · /omg forget WORDS"
    }


def status_line(graph: Graph) -> str:
    entries = [e for e in graph.index.entries() if e.path.startswith("nodes/")]
    waiting = graph.pending()
    state = graph.state()
    trouble = f" {state.error}" if state.error and waiting else ""
    notes = "1 note is" if len(entries) == 1 else f"{len(entries)} notes are"
    turns = "1 turn waits" if len(waiting) == 1 else f"{len(waiting)} turns wait"
    return f"{notes} remembered; {turns} to be observed.{trouble}"


# --- The graph as an extra corpus of OpenClaw's memory_search and memory_get, by session.


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
