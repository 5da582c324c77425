"""
What of a conversation was said in another one, from which it was forked: a thread, or a copy begun at some message.

The gateway copies the messages, and memory keeps each once, under the conversation it was said in. Not here: what is
cut (context.py). One rule: a message is the same only where the run that it began is the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..graph.graph import Graph
from ..index.archived import said_under
from ..message.drop import to_epoch_ms
from ..message.turn import Message

Row = tuple[str, int, str]  # role, time and id of an archived message


def rows_copied(graph: Graph, session: str, given: Sequence[Mapping[str, Any]]) -> list[Row]:
    """The archived messages of other conversations that *given*, those of *session*, may be copies of."""
    begun = [(run_key(m), to_epoch_ms(m.get("timestamp")) or 0) for m in given]
    begun = [(key, at) for key, at in begun if key]
    found = graph.index.ask(said_under, [key for key, _ in begun]) if begun else []
    lasts = {other: at for other, at in found if other != session}  # the last that was said there
    rows: list[Row] = []
    for other, last in lasts.items():
        until = next((at for _, at in begun if at > last), None)  # from here on it was said here
        since = min(at for where, at in found if where == other)
        rows += [row for row in graph.index.said_since(other, since) if until is None or row[1] < until]
    return rows


def run_key(message: Mapping[str, Any]) -> str:
    """The key of the message that began a run, "" of any other."""
    run = message.get("idempotencyKey")
    if message.get("role") != "user" or not isinstance(run, str) or not run:
        return ""
    return Message("", "user", "", 0, idempotency=run).key
