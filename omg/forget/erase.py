"""
The erasing of a Selection, or of the words of a Redaction, step by step.

What is to go is first written down (forgetting.json), so that a crash halfway is finished at the next start; every
step may be repeated. Afterwards a tombstone of salted hashes is all that is left, which import and rebuild heed. A
note that has other sources besides is not lost: those messages become pending again.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import asdict
from datetime import date
from typing import Any

from ..errors import BadNode
from ..graph.damaged import DAMAGED_FOLDER as DAMAGED
from ..graph.files import flock, write_private
from ..graph.graph import Graph
from ..graph.state import State, forget_served
from ..journal import Outcome, apply_change
from ..message.turn import Message, Turn, said_at
from ..node.note import parse_node
from ..plan.mappages import MapPages
from .bare import is_bare, remove_graph
from .copies import remove_damaged, scrub_copies, scrub_pending
from .homefiles import raise_mark, remove_drops, remove_keys, remove_temporary, scrub_logs
from .redacting import Redaction, redact_home, redact_words, redaction_from
from .selection import Selection, every_message
from .traces import (
    SEEN,
    Trace,
    archived_messages,
    remove_archived,
    scrub_log_pages,
    scrub_receipts,
    unlink_notes,
)

JOURNAL = "forgetting.json"


def forget_now(graph: Graph, selection: Selection | Redaction) -> None:
    """
    Do it; one that was begun before is finished first. The caller holds `graph.lock()`.

    Raises Locked, and does nothing, while the graph is being rebuilt.
    """
    finish_forgetting(graph)
    with flock(graph.folder / "rebuild.lock", f"the rebuilding of {graph.identity.key}", 0):
        kind = "redact" if isinstance(selection, Redaction) else "forget"
        write_private(graph.folder / JOURNAL, json.dumps({"kind": kind, **asdict(selection)}))
    finish_forgetting(graph)


def begun_paths(graph: Graph) -> frozenset[str]:
    """The notes that a forgetting which was begun takes away, or renames: nobody else has."""
    try:
        raw = json.loads((graph.folder / JOURNAL).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return frozenset()
    return frozenset(raw["paths"]) | {old for old, _ in raw.get("renamed", ())}


def finish_forgetting(graph: Graph) -> bool:
    """Complete a forgetting that was begun; False if none was. Every step may be repeated. The caller holds the lock."""
    journal = graph.folder / JOURNAL
    if not journal.exists():
        return False
    raw, home = json.loads(journal.read_text(encoding="utf-8")), graph.folder.parents[1]
    raise_mark(home)
    if raw.pop("kind", "forget") == "redact":
        finish_redaction(graph, redaction_from(raw))
        trace = None
    else:
        trace = finish_erasing(graph, selection_from(raw))
    # Again: what was served meanwhile was rendered from the index of before.
    graph.update(blank_served)
    raise_mark(home)
    if trace is not None and is_bare(graph, trace):
        remove_graph(graph)  # and the journal with it
    else:
        journal.unlink()
    return True


def selection_from(raw: dict[str, Any]) -> Selection:
    """As the journal has it, perhaps an earlier version's."""
    text = raw.pop("text")
    return Selection(**{name: tuple(values) for name, values in raw.items()}, text=text)


def finish_redaction(graph: Graph, what: Redaction) -> None:
    redact_words(graph, what)
    make_anew(graph, what.trace)
    redact_home(graph.folder.parents[1], what.words)
    remove_temporary(graph.folder.parents[1], graph.folder, what.trace)


def finish_erasing(graph: Graph, what: Selection) -> Trace:
    trace, messages, home = what.trace, set(what.messages), graph.folder.parents[1]
    if messages:
        said = [m for _, m in every_message(graph) if m.id in messages]
        graph.tombstones.add(messages | {m.key for m in said} | {said_at(m.role, m.timestamp) for m in said})
    observe_again(graph, set(what.again))
    unlink_notes(graph, what.paths, trace)
    scrub_pending(graph.intact(), trace)
    remove_archived(graph.folder / "archive", trace)
    for path in what.trash:
        (graph.vault.root / path).unlink(missing_ok=True)
    remove_notes(graph, what.paths, messages, set(what.alone))
    scrub_receipts(graph.folder / "receipts", trace)
    scrub_copies(graph, trace)
    remove_damaged(graph.folder / DAMAGED, trace)
    graph.update(lambda state: blank_state(state, trace))
    graph.uses.drop(lambda id: id in trace.names or trace.in_words(id))
    make_anew(graph, trace)
    remove_drops(home, trace)
    remove_temporary(home, graph.folder, trace)
    remove_keys(home, trace.keys)
    scrub_logs(home, trace)
    return trace


def make_anew(graph: Graph, trace: Trace) -> None:
    """What is derived from the notes."""
    for name in SEEN:  # they name notes, and cost a few model calls
        (graph.folder / name).unlink(missing_ok=True)
    remap_pages(graph, trace)
    graph.vault.settle(0)
    graph.vault.compact()
    graph.index.rebuild(graph.vault, graph.folder / "archive")


def observe_again(graph: Graph, ids: set[str]) -> None:
    """Put archived messages back among what is pending; the archive keeps its lines, and is not doubled."""
    by_session: dict[str, list[Message]] = {}
    for session, m in archived_messages(graph.folder / "archive"):
        if m.id in ids:
            by_session.setdefault(session, []).append(m)
    for n, (session, messages) in enumerate(sorted(by_session.items())):
        turn = Turn(session, agent=graph.identity.agent, reason="again", messages=tuple(messages))
        graph.put(f"{messages[-1].timestamp:015d}-again{n}", turn)


def remove_notes(graph: Graph, paths: Iterable[str], messages: set[str], alone: Collection[str]) -> None:
    """
    Take the files away. The tombstone of a note names none of the messages that stay: it may come back from those,
    unless it went *alone*.
    """
    for path in paths:
        data = graph.vault.bytes(path)
        if data is None:
            graph.vault.mark_not_ours(path)  # a kill may have come before its name was forgotten
            continue
        try:
            node = parse_node(data.decode("utf-8", errors="replace"), path)
            cited = [s.id for s in node.sources if s.id in messages or path in alone]
        except BadNode:
            cited = []  # whatever is in it, it goes
        if cited:
            graph.tombstones.add(cited, node.id)
        graph.vault.remove(path, data)


def blank_state(state: State, trace: Trace) -> None:
    """Served snapshots and hints may quote what was forgotten, and so may the words of a failure."""
    for key in trace.keys:
        state.sessions.pop(key, None)
    for key, s in state.sessions.items():
        forget_served(s)
        if key in trace.sessions or any(trace.in_words(t) for t in (s.task, s.state, s.next)):
            s.task = s.state = s.next = ""
            s.shared, s.mocs, s.falls, s.activated_ms = [], [], {}, 0  # what was cut, and when, stays so
        else:
            s.mocs = [path for path in s.mocs if not trace.names_path(path)]
            s.falls = {path: n for path, n in s.falls.items() if not trace.names_path(path)}
    state.by_hand = {path: at for path, at in state.by_hand.items() if not trace.names_path(path)}
    state.error = (
        "" if trace.in_words(state.error) or any(k in state.error for k in trace.keys) else state.error
    )
    state.epoch += 1


def blank_served(state: State) -> None:
    for s in state.sessions.values():
        forget_served(s)
    state.epoch += 1


def remap_pages(graph: Graph, trace: Trace) -> None:
    """Regenerate all maps without what is gone, and take its lines out of the log pages."""
    graph.index.sync(graph.vault)
    maps = MapPages(graph)
    maps.add_all()
    outcome = Outcome()
    for change in maps.changes():
        apply_change(graph, change, outcome)
    if (now := maps.now_change(graph.state().sessions, date.today())) is not None:
        apply_change(graph, now, outcome)
    scrub_log_pages(graph, trace)
