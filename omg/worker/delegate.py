"""
Hands a command's work to the daemon, if one is running.

    handed_to_daemon   asks the daemon, if there is one
    observe_pending    turns all that is pending into notes, in this process
    rebuild_each       makes the notes again from the archive; with `swap` they replace the old ones

The home, not the process, decides which model observes. A command that cannot ask it does not fall back to another; it
says what waits and why.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypedDict

from ..client import ask_daemon
from ..errors import OmgError
from ..rebuild import Rebuilt, build_anew, swap_graphs
from .worker import Worker

log = logging.getLogger(__name__)

DAY_S = 86_400.0  # deadline: to observe an archive of years takes many calls of a model
TellProgress = Callable[[int], None]  # called with the tokens done since its last call


def handed_to_daemon(worker: Worker, path: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
    """
    The daemon's answer to *body*; None if none is up, or if this command was told to ask another model than the daemon's,
    by a configuration that changed since the daemon was started or by `OMG_OBSERVATION_MODEL`.
    """
    found = ask_daemon(worker.registry.folder, "/health", {}, timeout_s=10)
    if found is None:
        return None
    theirs, ours = found.get("observer"), worker.models()
    if theirs != ours and not found.get("fleet"):
        log.warning(
            "the daemon observes with %s, this command was told %s and does the work itself; `omg down` stops the daemon",
            ", else ".join(theirs or ["an earlier version's model"]),
            ", else ".join(ours),
        )
        return None
    return ask_daemon(worker.registry.folder, path, dict(body), timeout_s=DAY_S)


class TurnsWaiting(TypedDict):
    """Turns of one identity that were not observed, and why."""

    identity: str
    turns: int
    why: str


class WorkDone(TypedDict):
    """The result of observing: batches, messages in them, files written, and what still waits."""

    batches: int
    messages: int
    files: int
    waiting: list[TurnsWaiting]


def observe_pending(worker: Worker, body: Mapping[str, Any]) -> WorkDone:
    """Observe all that is due, or with `force` in *body* all that is pending."""
    done = worker.work(force=bool(body.get("force")))
    return {
        "batches": len(done),
        "messages": sum(o.messages for o in done),
        "files": sum(len(o.outcome.written) for o in done),
        "waiting": list(waiting_turns(worker)),
    }


def waiting_turns(worker: Worker) -> Iterator[TurnsWaiting]:
    """Whose turns were not observed, and why; only if waiting alone does not help."""
    for graph in worker.registry.graphs():
        state, pending = worker.state_of(graph), graph.pending()
        if pending and (why := worker.hindered(graph) or (state.error if state.failures else "")):
            yield {"identity": graph.identity.key, "turns": len(pending), "why": why}


def rebuild_each(
    worker: Worker, body: Mapping[str, Any], progress: TellProgress = lambda tokens: None
) -> dict[str, Any]:
    """
    `{identity, swap}` → `{before, after, kept, folder, replaced}`; `replaced` is None without `swap`.

    Building holds no lock. During the swap no turn of the graph is observed, so that none is lost in between.
    """
    key = str(body["identity"]) if body.get("identity") else None
    graph = worker.registry.find(key)
    if why := worker.away(worker.models(graph.identity.agent)):
        raise OmgError(f"nothing was rebuilt: {why}")
    worker.intake.take_in()

    def build() -> Rebuilt:
        who = worker.observer(graph.identity.agent)
        return build_anew(graph, who, worker.config, worker.clock(), progress)

    made, old = build(), None
    if body.get("swap"):
        with worker.resting(graph):
            made = build()  # what was observed meanwhile
            old = swap_graphs(graph, worker.clock())
    return {
        "before": made.before,
        "after": made.after,
        "kept": made.kept,
        "folder": str(graph.vault.root if old else made.folder),
        "replaced": old and str(old),
    }
