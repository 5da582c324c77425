"""
Finds the session's graph, and passes tool calls and /omg commands to their functions.

The other modules of this room answer.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ..errors import BadInput, OmgError
from ..graph.graph import Graph
from ..index.store import Hit
from ..inject.passages import Passage
from ..inject.prompt import passage_line
from ..provenance import origin_mark
from ..worker.intake import Intake
from ..worker.registry import Registry
from .changing import correct_tool, remember_tool
from .reading import (
    HITS,
    SAID_AT,
    found_about,
    found_line,
    hit_limit,
    hit_value,
    mapping_in,
    open_tool,
    said_about,
    said_at,
    said_value,
    search_tool,
    whole_messages,
)
from .removing import ASK_USER, Codes, forget_tool
from .settling import COMMANDS, settle_command
from .today import decide_text, today_text, why_text

TO_FORGET = "Forgetting cannot be undone. To forget, send /omg forget with the code of your choice: "
VERBS = (
    *("status", "today", "decide", "why", "search WORDS", "confirm NOTE", "reject NOTE"),
    *("keep NOTE", "undo CYCLE", "forget WORDS"),
)
CHANGING = (
    "omg_correct",
    "omg_forget",
)  # these tools change existing notes, and wait for another writer of the vault


def graph_of(
    registry: Registry, context: Mapping[str, Any], *, write: bool = False, create: bool = False
) -> Graph | None:
    """
    The graph that the asking session may see; None if there is none. Reading does not wait for a writer of the vault.
    """
    who = registry.asking(context)
    if who is None or not (create or (registry.folder / "graphs" / who.folder).is_dir()):
        return None
    return registry.graph(who) if write or create else registry.opened(who)


def nothing_text(registry: Registry, context: Mapping[str, Any]) -> str:
    off = registry.config.switched_off(str(context.get("agentId") or "main"))
    return f"The memory is switched off: {off}." if off else "Nothing is remembered for this conversation."


def call_tool(intake: Intake, body: Mapping[str, Any], codes: Codes) -> dict[str, Any]:
    """
    Answer a tool call: `{name, params, context}` → `{text, details}`. An error becomes the `text` that the model
    gets.
    """
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
    What `omg search` prints: notes in `hits`, quotations about the query in `said`. *body*: query, k (most hits),
    identity (None: the owner's).
    """
    graph, query, now = registry.find(body.get("identity")), str(body["query"]), registry.clock()
    hits = graph.index.search(query, int(body["k"]), now=now)
    said = said_about(graph, query, hits, now)
    return {"hits": [*map(hit_value, hits)], "said": [said_value(graph, passage) for passage in said]}


def slash_command(intake: Intake, body: Mapping[str, Any], codes: Codes) -> dict[str, Any]:
    """The answer to a command that a person sent, one of VERBS."""
    context = mapping_in(body, "context")
    verb, _, rest = str(body.get("args") or "status").strip().partition(" ")
    graph = graph_of(intake.registry, context, write=verb == "forget" or verb in COMMANDS)
    if graph is None:
        return {"text": nothing_text(intake.registry, context)}
    try:
        if verb == "status":
            return {"text": "\n".join([status_line(graph), *account_offers(intake.registry, graph)])}
        if verb == "today":
            return {"text": today_text(graph, intake.registry.clock())}
        if verb == "decide":
            return {"text": decide_text(graph)}
        if verb == "why":
            return {"text": why_text(graph, str(context.get("sessionKey") or ""))}
        if verb in COMMANDS and rest.strip():
            return {"text": settle_command(graph, verb, rest.strip(), intake.registry.clock())}
        if verb == "search" and rest.strip():
            found = found_about(graph, rest, HITS, intake.registry.clock())
            return {"text": "\n".join(found_line(graph, f) for f in found) or "Nothing found."}
        if verb == "forget" and rest.strip():
            code = rest.rpartition(":")[2].strip()  # the answer shows each code behind its label
            params = {"code": code} if code in codes.issued else {"query": rest}
            # A command is always the user's own. It counts as a turn of its own with one message that says
            # nothing else.
            once = secrets.token_hex(4)
            said = {"id": once, "text": params.get("code", "")}
            context |= {"trigger": "user", "runId": once, "userMessage": said}
            text = str(forget_tool(intake, graph, params, context, codes)["text"])
            return {"text": text.replace(ASK_USER, TO_FORGET)}
    except OmgError as e:
        return {"text": str(e)}
    return {"text": " · ".join(f"/omg {verb}" for verb in VERBS)}


def status_line(graph: Graph) -> str:
    entries = [e for e in graph.index.entries() if e.path.startswith("nodes/")]
    waiting = graph.pending()
    state = graph.state()
    trouble = f" {state.error}" if state.error and waiting else ""
    notes = "1 note is" if len(entries) == 1 else f"{len(entries)} notes are"
    turns = "1 turn waits" if len(waiting) == 1 else f"{len(waiting)} turns wait"
    return f"{notes} remembered; {turns} to be observed.{trouble}"


def account_offers(registry: Registry, graph: Graph) -> list[str]:
    """
    How to join new accounts: a person sees their own accounts, the owner sees all. No account is joined
    automatically.
    """
    whose = [graph.identity]
    if graph.identity.key.endswith(":main"):
        whose = [who for who in registry.identities() if who.agent == graph.identity.agent]
    return [offer for who in whose if (offer := registry.new_account(who))]


# --- The graph as an extra corpus of OpenClaw's memory_search and memory_get, by session.


def corpus_answer(registry: Registry, body: Mapping[str, Any]) -> dict[str, Any]:
    """
    Answer OpenClaw's `memory_search` or `memory_get` from the session's graph.

    Returns `{result}` for "get", else `{results}`. Without a graph, `result` is None and `results` is empty.
    """
    params, graph = mapping_in(body, "params"), graph_of(registry, mapping_in(body, "context"))
    if graph is None:
        return {"result": None} if body.get("op") == "get" else {"results": []}
    if body.get("op") == "get":
        name = str(params.get("lookup") or params.get("path") or "").removeprefix("omg/")
        find = corpus_said if SAID_AT.fullmatch(name) else corpus_note
        return {"result": find(graph, name)}
    query, limit = str(params.get("query") or ""), hit_limit(params.get("maxResults"), 6)
    found = found_about(graph, query, limit, registry.clock())
    return {"results": [corpus_hit(graph, f) for f in found]}


def corpus_note(graph: Graph, name: str) -> dict[str, Any] | None:
    path = graph.index.find(name)
    entry = graph.index.entry(path) if path else None
    if entry is None:
        return None
    return corpus_text(corpus_entry(entry.path, entry.title, entry.type), graph.vault.text(entry.path))


def corpus_said(graph: Graph, at: str) -> dict[str, Any] | None:
    with suppress(BadInput):  # no message was said at this time
        return corpus_text(corpus_entry(at, f"What was said at {at}", "messages"), whole_messages(graph, at))
    return None


def corpus_text(entry: dict[str, Any], text: str) -> dict[str, Any]:
    return {**entry, "content": text, "fromLine": 1, "lineCount": text.count("\n") + 1}


def corpus_hit(graph: Graph, found: Hit | Passage) -> dict[str, Any]:
    if isinstance(found, Passage):
        id = path = said_at(graph, found)
        entry = corpus_entry(path, f"{found.speaker}, {path}", "messages")
        snippet = passage_line(found).removeprefix("- ")
    else:
        id, path, mark = found.entry.id, found.entry.path, origin_mark(found.entry.origin)
        entry = corpus_entry(path, found.entry.title, found.entry.type)
        snippet = f"{found.entry.description} ({mark})" if mark else found.entry.description
    return {
        **entry,
        "score": round(min(found.score, 1.0), 3),
        "snippet": snippet,
        "id": id,
        "startLine": 1,
        "endLine": 1,
        "citation": f"omg/{path}",
    }


def corpus_entry(path: str, title: str, kind: str) -> dict[str, Any]:
    return {"corpus": "omg", "path": f"omg/{path}", "title": title, "kind": kind}
