"""
What a message was served in an earlier request, put before it again, byte for byte.

A prompt's fresh notes stand before it in its own request only: the gateway keeps none of them. In the next one they
would be missing, and from there on no provider's cache would hold. So they come back while their message is raw,
until the next cut, which makes the prefix anew anyway. One rule: a text that names what was edited, forgotten or
superseded since does not come back (an edit empties `served`: inject/decide.py, forget/), nor one without room for it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate, takewhile
from typing import Any

from ..graph.graph import Graph
from ..graph.state import SessionState
from ..index.archived import standing_paths
from ..inject.prompt import NO_LONGER, SAID_LEAD, WAITING_LEAD
from ..text.links import WIKILINK
from ..text.tokens import count_tokens

NOTE_LINE = re.compile(r"- (\S.*?) (?:— |\()")
BY_RUN = ":user"  # ends the idempotency key of the message that began a run, behind the run's id


def served_again(
    graph: Graph, given: Sequence[Mapping[str, Any]], gone: Collection[int], own: SessionState
) -> dict[int, str]:
    """Index of a message → what it was served, for those that are not *gone* and where all that it names holds."""
    if not own.served:
        return {}
    found: dict[int, str] = {}
    for i, message in enumerate(given):
        key = str(message.get("idempotencyKey") or "")
        if key.endswith(BY_RUN) and i not in gone and (text := own.served.get(key.removesuffix(BY_RUN))):
            found[i] = text
    named = {i: notes_named(text) for i, text in found.items()}
    paths = {name: graph.index.find(name) for name in set().union(*named.values())}
    standing = graph.index.ask(standing_paths, {path for path in paths.values() if path})
    return {i: text for i, text in found.items() if all(paths[name] in standing for name in named[i])}


def notes_named(text: str) -> set[str]:
    """The names of the notes that *text* tells as standing."""
    lines = [line for line in text.splitlines() if NO_LONGER not in line]
    notes = takewhile(lambda line: line not in (SAID_LEAD, WAITING_LEAD), lines)
    links = (link.partition("|")[0] for line in lines for link in WIKILINK.findall(line))
    return {m[1] for line in notes if (m := NOTE_LINE.match(line))} | set(links)


def fitting(again: Mapping[int, str], room: int) -> dict[int, str]:
    """The first of *again*, as many as *room* tokens hold: what comes in later never moves what stands."""
    costs = accumulate(count_tokens(text) for text in again.values())
    kept = sum(1 for _ in takewhile(lambda cost: cost <= room, costs))
    return dict(list(again.items())[:kept])


def runs_kept(
    own: SessionState, given: Sequence[Mapping[str, Any]], again: Mapping[int, str]
) -> dict[str, str]:
    """Of what was served: *again*, and that to a run whose message is none of those *given* yet."""
    runs = {i: str(m.get("idempotencyKey") or "").removesuffix(BY_RUN) for i, m in enumerate(given)}
    here = {run for i, run in runs.items() if i not in again}
    newest = next(reversed(own.served), "")
    stay = {runs[i] for i in again} | ({newest} - here)
    return {run: text for run, text in own.served.items() if run in stay}
