"""
The agent's tools and the /omg command: whose graph is asked, what is wanted, what is answered.

Not here: what reads (reading.py), finding, writing, forgetting (index/search.py, curate/notes.py); this carries between
them and a caller.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ..curate.notes import write_edits
from ..dates.days import day_of_ms
from ..errors import BadInput, OmgError
from ..graph.graph import Graph
from ..grounding.notes import grounded_edit
from ..grounding.sight import PERSONS, Sight
from ..grounding.words import visible
from ..identity import says_owner
from ..index.archived import last_messages
from ..message.drop import to_epoch_ms
from ..message.redaction import redact
from ..message.turn import Message
from ..node.fields import TYPES, Source
from ..observe.reply import whole_days
from ..plan.drafts import NEEDS_USER
from ..plan.edits import Edit
from ..worker.intake import Intake
from ..worker.registry import Registry
from .asked import mapping_in, said_by_user
from .codes import Codes
from .forgetting import ASK_USER, forget_tool
from .reading import hit_value, open_tool, search_tool

PROPOSED_WITHIN, PENDING_LOOKED_AT = 6, 8  # messages, and turns, in which a proposal is sought


def graph_of(
    registry: Registry, context: Mapping[str, Any], *, write: bool = False, create: bool = False
) -> Graph | None:
    """The graph the asking session may see; None if it has none. A reader waits for nobody who is at the vault."""
    who = registry.identity_of(
        str(context.get("sessionKey") or ""),
        channel=str(context.get("channel") or ""),
        sender=str(context.get("senderId") or ""),
        owner=says_owner(context.get("senderIsOwner")),
    )
    if who is None or not (create or (registry.folder / "graphs" / who.folder).is_dir()):
        return None
    return registry.graph(who) if write or create else registry.opened(who)


def call_tool(intake: Intake, body: Mapping[str, Any], codes: Codes) -> dict[str, Any]:
    """`{name, params, context}` → `{text, details}`. What goes wrong is told to the model in words, as `text`."""
    name, params, context = str(body.get("name")), mapping_in(body, "params"), mapping_in(body, "context")
    graph = graph_of(intake.registry, context, write=name == "omg_forget", create=name == "omg_remember")
    if graph is None:
        return {"text": "Nothing is remembered for this conversation.", "details": {}}
    try:
        if name == "omg_search":
            return search_tool(intake.registry, graph, params)
        if name == "omg_open":
            return open_tool(graph, params)
        if name == "omg_remember":
            return remember_tool(intake.registry, graph, params, context)
        if name == "omg_forget":
            return forget_tool(intake, graph, params, context, codes)
    except OmgError as e:
        return {"text": str(e), "details": {"error": type(e).__name__}}
    raise BadInput(f"no tool {name!r}")


def search_answer(registry: Registry, body: Mapping[str, Any]) -> dict[str, Any]:
    """What `omg search` prints. *body*: query, k, and identity, None for the owner's."""
    graph = registry.find(body.get("identity"))
    return {
        "hits": [
            *map(hit_value, graph.index.search(str(body["query"]), int(body["k"]), now=registry.clock()))
        ]
    }


def remember_tool(
    registry: Registry, graph: Graph, params: Mapping[str, Any], context: Mapping[str, Any]
) -> dict[str, Any]:
    """Only what the user asked for in this very turn: their message is the source, as the transcript has it."""
    message = mapping_in(context, "userMessage")
    text, title, kind = (str(params.get(key) or "") for key in ("text", "title", "type"))
    if not said_by_user(message):
        raise BadInput("omg_remember needs a message of the user in this turn as its source; there is none")
    at = to_epoch_ms(message.get("timestamp")) or registry.now_ms()
    said = str(message.get("text") or "")
    source = Source(str(context["sessionKey"]), str(message["id"]), at)
    when = str(params.get("when") or "")
    path = remember_note(registry, graph, text, title, kind, said=said, source=source, when=when)
    return {"text": f"Remembered as [[{path}]].", "details": {"path": path}}


def remember_note(
    registry: Registry,
    graph: Graph,
    text: str,
    title: str,
    kind: str,
    *,
    said: str,
    source: Source | None,
    when: str = "",
) -> str:
    """
    Write *text* as a note of type *kind*, on the word of a user who *said* so in *source*; returns its path. *when*:
    the day or days of what happens.

    A page or a tool may have talked a model into this. So the user vouches only for what stands in their words, or in
    what the assistant proposed and they took up; the rest is the assistant's, and what has no source is a tool's:
    neither becomes a preference, a decision or who they are. Raises BadInput, Locked.
    """
    text, title = (visible(redact(" ".join(given.split()))[0]) for given in (text, title))
    if not text:
        raise BadInput("to remember something needs a `text`, one line")
    event = whole_days(when.strip()) if when.strip() else None
    if when.strip() and event is None:
        raise BadInput(
            f"`when` is a day, a month or a year, such as 2026-03-05, or two with `..` between; not {when!r}"
        )
    at = source.timestamp if source else registry.now_ms()
    edit = Edit(
        op="create",
        title=title or text[:50],
        description=text,
        type=kind if kind in TYPES else "fact",
        event=event,
        sources=(source,) if source else (),
        origin="tool",
        day=day_of_ms(at, registry.zone),
    )
    if source is not None:
        edit = as_told(edit, graph, Message(source.id, "user", said, at), source)
    if edit.origin not in PERSONS and edit.type in NEEDS_USER:
        edit = replace(edit, type="fact")
    return write_edits(graph, [edit], registry.clock(), f"remembered {edit.title}")


def as_told(edit: Edit, graph: Graph, message: Message, source: Source) -> Edit:
    """*edit* as the user's *message* vouches for it, and what the assistant said before: a page may hold the rest."""
    before = said_before(graph, source.session, message)
    sight = Sight([*before, message], zone=graph.zone, unseen=True)
    edit = grounded_edit(edit, [message], sight)
    if edit.origin not in PERSONS:
        return replace(edit, origin="assistant")
    proposal = sight.answered(message)
    if proposal is None or not proposal.id:
        return edit
    theirs = Source(source.session, proposal.id, proposal.timestamp)
    return replace(edit, sources=(theirs, source))


def said_before(graph: Graph, session: str, message: Message) -> list[Message]:
    """The last messages of *session* before *message*, observed already or not."""
    found: list[Message] = graph.index.ask(last_messages, session, message.timestamp, PROPOSED_WITHIN)
    for pending in graph.pending()[-PENDING_LOOKED_AT:]:
        with suppress(BadInput, FileNotFoundError):
            turn = pending.turn()
            if turn.session == session:
                found += [m for m in turn.messages if m.timestamp < message.timestamp and m.id != message.id]
    return found[-PROPOSED_WITHIN:]


def slash_command(intake: Intake, body: Mapping[str, Any], codes: Codes) -> dict[str, Any]:
    """`/omg status`, `/omg search WORDS`, `/omg forget WORDS`, `/omg forget CODE`."""
    context = mapping_in(body, "context")
    verb, _, rest = str(body.get("args") or "status").strip().partition(" ")
    graph = graph_of(intake.registry, context, write=verb == "forget")
    if graph is None:
        return {"text": "Nothing is remembered for this conversation yet."}
    try:
        if verb == "status":
            return {"text": status_line(graph)}
        if verb == "search":
            return {"text": str(search_tool(intake.registry, graph, {"query": rest})["text"])}
        if verb == "forget":
            # A command is always the user's own turn, so each one counts as a turn and a message of its own.
            once = secrets.token_hex(4)
            context |= {"trigger": "user", "runId": once, "userMessage": {"id": once}}
            params = {"code": rest.strip()} if rest.strip() in codes.issued else {"query": rest}
            text = str(forget_tool(intake, graph, params, context, codes)["text"])
            return {"text": text.replace(ASK_USER, "To do it, send: /omg forget ")}
    except OmgError as e:
        return {"text": str(e)}
    return {"text": "/omg status · /omg search WORDS · /omg forget WORDS"}


def status_line(graph: Graph) -> str:
    entries = [e for e in graph.index.entries() if e.path.startswith("nodes/")]
    waiting = graph.pending()
    state = graph.state()
    trouble = f" {state.error}" if state.error and waiting else ""
    return f"{len(entries)} notes are remembered; {len(waiting)} turns wait to be observed.{trouble}"
