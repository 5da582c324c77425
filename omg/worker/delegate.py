"""
What a command hands to the daemon, where one is up: whoever has the model, and the files, does the work.

    observe   all that is pending becomes notes
    rebuild   the notes are made again from the archive, and with `swap` take the place of the old

`handed` asks the daemon, `observe` and `rebuild` do the work in this process and answer in the same form. One
rule: which model observes is a home's affair and never a process': a command that cannot ask it does not fall
back to another, it says what waits and why.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..client import ask_daemon
from ..errors import OmgError
from ..rebuild import Rebuilt, build_anew, swap_graphs
from .home import Home

log = logging.getLogger(__name__)

DAY_S = 86_400.0  # an archive of years, asked about call by call

TellProgress = Callable[[int], None]  # told the tokens done since it was last told


def handed_to_daemon(home: Home, path: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
    """
    The daemon's answer to work that asks a model; None if none is up, or if this command was told another model.

    A configuration that changed since the daemon was started, or `OMG_OBSERVATION_MODEL`, is such a choice.
    """
    found = ask_daemon(home.folder, "/health", {}, timeout_s=10)
    if found is None:
        return None
    theirs, ours = found.get("observer"), home.models()
    if theirs != ours:
        log.warning("the daemon observes with %s, this command was told %s and does it itself", theirs, ours)
        return None
    return ask_daemon(home.folder, path, dict(body), timeout_s=DAY_S)


def observe_pending(
    home: Home, body: Mapping[str, Any], progress: TellProgress = lambda tokens: None
) -> dict[str, Any]:
    """`{force}` → how many batches, messages and files, and what still waits."""
    done = home.work(force=bool(body.get("force")), progress=progress)
    return {
        "batches": len(done),
        "messages": sum(o.messages for o in done),
        "files": sum(len(o.outcome.written) for o in done),
        "waiting": list(waiting_turns(home)),
    }


def waiting_turns(home: Home) -> Iterator[dict[str, Any]]:
    """Whose turns were not observed, and why, where that is nothing that time alone mends."""
    for graph in home.graphs():
        state, pending = home.standing(graph), graph.pending()
        if pending and (why := home.hindered(graph) or (state.error if state.failures else "")):
            yield {"identity": graph.identity.key, "turns": len(pending), "why": why}


def rebuild_each(
    home: Home, body: Mapping[str, Any], progress: TellProgress = lambda tokens: None
) -> dict[str, Any]:
    """
    `{identity, swap}` → `{before, after, kept, folder, replaced}`; `replaced` is None without `swap`.

    The building waits for nobody and nobody for it; at the swap no turn is observed, so that none falls between.
    """
    key = str(body["identity"]) if body.get("identity") else None
    graph = home.find(key)
    if why := home.away(graph.identity.agent):
        raise OmgError(f"nothing was rebuilt: {why}")
    home.take_in()

    def build() -> Rebuilt:
        who = home.observer(graph.identity.agent)
        return build_anew(graph, who, home.config, home.clock(), progress)

    made, old = build(), None
    if body.get("swap"):
        with home.resting():
            made = build()  # what was observed meanwhile
            old = swap_graphs(graph, home.clock())
    return {
        "before": made.before,
        "after": made.after,
        "kept": made.kept,
        "folder": str(made.folder),
        "replaced": old and str(old),
    }
