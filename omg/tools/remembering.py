"""
omg_remember: what the agent is asked to remember becomes a note at once.

It is the user's where their own message says just that; else it is a proposal of the assistant's, until the observation of
the turn finds that the user's words bear it out, or the user runs `omg confirm`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..curate.notes import write_edits
from ..dates.days import day_of_ms
from ..errors import BadInput
from ..graph.graph import Graph
from ..message.drop import to_epoch_ms
from ..message.machinery import REMEMBERED
from ..message.turn import Message
from ..node.fields import TYPES, Source
from ..observe.reply import whole_days
from ..plan.edits import Edit, short_title
from ..plan.proposals import holds_plainly
from ..provenance.authors import as_others
from ..secrets import redact
from ..text.characters import visible
from ..worker.registry import Registry
from .asked import mapping_in, said_by_user

PROPOSED = (
    ", as your proposal: the user did not say it in just these words. It becomes theirs once what they said bears it out,"
    " or they run `omg confirm`."
)


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
    waits = PROPOSED if graph.vault.read(path).proposes else "."
    return {"text": f"{REMEMBERED} [[{path}]]{waits}", "details": {"path": path}}


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

    A page may have talked a model into this. So the note is the user's only where *text* is a sentence of theirs; else
    it is the assistant's fact, which proposes to be of type *kind*. What has no source is a tool's. Raises BadInput,
    Locked.
    """
    text, title = (visible(redact(" ".join(given.split()))[0]) for given in (text, title))
    if not text:
        raise BadInput("to remember something needs a `text`, one line")
    at = source.timestamp if source else registry.now_ms()
    kind = kind if kind in TYPES else "fact"
    edit = Edit(
        op="create",
        title=title or short_title(text),
        description=text,
        type=kind,
        event=days_asked(when),
        sources=(source,) if source else (),
        origin="user",
        day=day_of_ms(at, registry.zone),
    )
    if source is None:
        edit = as_others(edit, "tool")
    elif not holds_plainly(text, Message(source.id, "user", said, at).spoken):
        edit = replace(as_others(edit, "assistant"), proposes=kind)
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
