"""
Which turns of a context may leave it, as far as memory goes: those of which all that it keeps is observed.

Not here: when they leave, and which stay all the same (cut.py). One rule: what only seems to be observed is not.
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..graph.graph import Graph
from ..message.drop import clean_entries, content_of, is_no_persons

if TYPE_CHECKING:
    from .context import RequestContext


def observed_turns(graph: Graph, context: RequestContext, soon: Iterable[tuple[str, int]] = ()) -> set[int]:
    """
    The turns of which all that memory keeps is in the archive, or was forgotten; of the rest nothing is known.

    One that the gateway began by itself goes with the turns of a person around it, which may speak of it. *soon*: places
    of what waits, and is to count as observed.
    """
    again = graph.pending_keys()  # what a forgetting left without a note waits once more
    rows = [*graph.index.said_since(context.session, context.since_ms()), *context.copied(graph)]
    archived = Counter((role, at) for role, at, mid in rows if mid not in again)
    archived.update(soon)
    found, own, waiting = set(), set(), set()
    for n, turn in enumerate(context.turns):
        if n in context.alike or not context.is_spoken(turn):
            continue
        # Several may be said in one millisecond, and only some of them be observed.
        missing = [i for i in turn if archived[context.place(i)] < context.here[context.place(i)]]
        if missing and not is_accounted_for(graph, context, turn, missing):
            waiting.add(n)
        elif missing and context.is_no_persons(turn):
            own.add(n)
        else:
            found.add(n)
    persons = sorted(found | waiting)
    around = {n: persons[max(0, (at := bisect(persons, n)) - 1) : at + 1] for n in own}
    return found | {n for n in own if waiting.isdisjoint(around[n])}


def waiting_places(graph: Graph, session: str) -> Iterator[tuple[str, int]]:
    """The places of what was taken in of *session* and is not observed."""
    for pending in graph.pending():
        turn = graph.readable(pending)
        if turn is not None and turn.session == session:
            yield from ((m.role, m.timestamp) for m in turn.messages)


def is_accounted_for(graph: Graph, context: RequestContext, turn: range, missing: Sequence[int]) -> bool:
    """Whether what is *missing* of *turn* was forgotten, or says nothing, such as an empty answer, or to no person."""
    own = context.is_no_persons(turn)
    entries = ({"entryId": str(i), "message": context.given[i]} for i in turn)
    keys = {m.id: m.key for m in clean_entries(entries, context.asked)}
    names = {i: {keys.get(str(i), ""), context.own_place(i)} for i in missing}
    gone = graph.tombstones.messages(set().union(*names.values()))
    left = [i for i in missing if gone.isdisjoint(names[i])]
    # What memory does not keep is not nothing: the answer to a report that comes in while a person's turn goes on.
    if any(str(i) in keys or (not own and says_something(context.given[i])) for i in left):
        return False
    return bool(gone or len(missing) < len(turn) or own)


def says_something(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    # An outline, or nothing that can be read.
    if "chars" in message or not isinstance(content, str | list | None):
        return True
    if message.get("role") == "user":
        return not is_no_persons(message) and bool(content_of(content)[0].strip())
    return bool(clean_entries([{"entryId": "alone", "message": message}]))
