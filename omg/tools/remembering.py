"""
omg_remember: what the user asked to have remembered becomes a note, on their word.

Not here: what counts as their word (grounding/). One rule: only what the user asked for in this very turn; the rest is the
assistant's.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ..curate.notes import write_edits
from ..dates.days import day_of_ms
from ..errors import BadInput
from ..graph.graph import Graph
from ..grounding.notes import grounded_edit
from ..grounding.sight import PERSONS, Sight
from ..index.archived import last_messages
from ..message.drop import to_epoch_ms
from ..message.machinery import REMEMBERED
from ..message.redaction import redact
from ..message.turn import Message
from ..node.fields import TYPES, Source
from ..observe.reply import whole_days
from ..plan.drafts import NEEDS_USER
from ..plan.edits import Edit
from ..text.characters import visible
from ..worker.registry import Registry
from .asked import mapping_in, said_by_user

PROPOSED_WITHIN, PENDING_LOOKED_AT = 6, 8  # messages, and turns, in which a proposal is sought


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
    return {"text": f"{REMEMBERED} [[{path}]].", "details": {"path": path}}


def remember_note(
    registry: Registry,
    graph: Graph,
    text: str,
    title: str,
    kind: str,
    *,
    said: str,
    source: Source | None,
    when: str,
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
    event = days_asked(when)
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


def days_asked(when: object) -> str | None:
    """*when* of a call as whole days; None for none. Raises BadInput for what names no day."""
    text = str(when or "").strip()
    event = whole_days(text) if text else None
    if text and event is None:
        raise BadInput(
            f"`when` is a day, a month or a year, such as 2026-03-05, or two with `..` between; not {text!r}"
        )
    return event


def as_told(edit: Edit, graph: Graph, message: Message, source: Source) -> Edit:
    """*edit* as the user's *message* vouches for it, and what the assistant said before: a page may hold the rest."""
    before = said_before(graph, source.session, message)
    sight = Sight([*before, message], graph.zone, unseen=True)
    edit = grounded_edit(edit, [message], sight)
    return edit if edit.origin in PERSONS else replace(edit, origin="assistant")


def said_before(graph: Graph, session: str, message: Message) -> list[Message]:
    """The last messages of *session* before *message*, observed already or not."""
    found: list[Message] = graph.index.ask(last_messages, session, message.timestamp, PROPOSED_WITHIN)
    for pending in graph.pending()[-PENDING_LOOKED_AT:]:
        with suppress(BadInput, FileNotFoundError):
            turn = pending.turn()
            if turn.session == session:
                found += [m for m in turn.messages if m.timestamp < message.timestamp and m.id != message.id]
    return found[-PROPOSED_WITHIN:]
