"""Runs the Reflector over all graphs of a home, at night from cron or when enough has changed; rebuilds a graph's
notes.

Up to `[observation] parallel` graphs run at a time. An error in one graph is reported and does not stop the others;
the next run continues unfinished work. reflect/run.py does one cycle."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, replace
from functools import partial
from typing import Any, TypedDict

from ..errors import Locked, OmgError, error_text, how_many
from ..graph.graph import Graph
from ..identity import Identity
from ..observe.former import archive_former_notes
from ..observe.question import Observer
from ..observe.run import read_unread
from ..rebuild import Rebuilt, build_anew, take_rebuilt
from ..reflect.run import Cycle, CycleOptions, counted, is_due, reflect_graph
from .worker import Worker

log = logging.getLogger(__name__)

WITHOUT_GATEWAY = "the steps that need a model, because no gateway lends the agent's own model now"
BY_RULE = ". Weeks and months are written by rule; the first night with a gateway writes them again"


class NightDone(TypedDict, total=False):
    """
    The result of a nightly run for one graph, as JSON. After a failure: only `identity` and `error`. Otherwise: all
    keys except `error`.
    """

    identity: str
    error: str
    cycle: str | None  # id of the cycle, for an undo; None: nothing was written
    headline: str
    counts: dict[str, int]
    summary: list[str]  # what was done, a line each
    proposed: list[str]  # for a person to judge
    refused: list[str]  # the model's proposals that were not carried out, and why
    skipped: list[str]  # steps that failed, and why
    calls: int  # of a model
    tokens: int  # in and out


def night_done(who: Identity, cycle: Cycle) -> NightDone:
    return {
        "identity": who.key,
        "cycle": cycle.receipt.id if cycle.receipt else None,
        "headline": cycle.headline,
        "counts": cycle.counts,
        "summary": cycle.summary,
        "proposed": cycle.proposed,
        "refused": [r.line for r in cycle.refused],
        "skipped": cycle.skipped,
        "calls": cycle.calls,
        "tokens": cycle.tokens,
    }


def reflect_each(
    worker: Worker,
    whose: Sequence[Identity] | None = None,
    *,
    since: dt.date | None = None,
    dry_run: bool = False,
    pending: bool = True,
) -> Iterator[NightDone]:
    """
    Run a cycle for each graph of *whose*; by default, for all graphs.

    Yields a result for each graph, in the same order.

    - *since*: look again at notes created or updated on this day or later
    - *dry_run*: write no note
    - *pending*: observe pending turns first
    """

    def begin(who: Identity) -> Future[NightDone]:
        # If the rules reflect, the Observer's model may still read unread turns.
        models = worker.reflecting(who.agent)
        crew = worker.crew(worker.models(who.agent) if models[0] == "offline" else models, night=True)
        return crew.start(lambda: night_of(worker, who, since, dry_run, pending))

    begun = [begin(who) for who in (worker.registry.identities() if whose is None else whose)]
    try:
        for night in begun:
            yield night.result()
    finally:
        for night in begun:  # if the caller stops the run, the other graphs are not begun
            night.cancel()


def night_of(worker: Worker, who: Identity, since: dt.date | None, dry_run: bool, pending: bool) -> NightDone:
    """
    Run a cycle for the graph of *who*, or return why there is none. After a failure, no cycle begins in the
    background until more has changed; the next night tries again.
    """
    if worker.closed:
        return {"identity": who.key, "error": "OMG is stopping; the next run reflects on this graph"}
    if off := worker.config.switched_off(who.agent):
        return night_done(who, Cycle(skipped=[f"OMG is switched off: {off}"]))
    try:
        graph = worker.registry.graph(who, keep=False)
        return night_done(who, one_night(worker, graph, since, dry_run=dry_run, pending=pending))
    except Locked as e:
        log.info("%s: not reflected, because it is in use: %s", who.key, e)
        return {"identity": who.key, "error": str(e)}
    except Exception as e:  # an error in one graph does not stop the others
        why = worker.report(who.key, e, "reflection_failed")
    try:
        if not dry_run:
            graph = worker.registry.opened(who, keep=False, make=False)
            graph.update(lambda state: setattr(state, "changed_tokens", 0))
    # For example a full disk. Without a pause the model would be asked at every tick.
    except (OSError, OmgError) as e:
        worker.note_trouble(who, e)
    return {"identity": who.key, "error": why}


def background_reflection(worker: Worker, *, idle: bool) -> list[NightDone]:
    """
    Reflect on the graphs that have changed enough since their previous reflection.

    `is_due` decides what is enough. A graph that is due in the "background" has to wait until the worker is *idle*.
    """
    due: list[Identity] = []
    for who in worker.registry.identities():
        if worker.rests(who) or worker.config.switched_off(who.agent):
            continue
        try:
            wanted = is_due(worker.registry.opened(who, keep=False), worker.config)  # reads only the state
        except (OmgError, OSError) as e:
            log.debug("%s: not looked at: %s", who.key, error_text(e))
            continue
        if wanted == "now" or (wanted and idle):
            due.append(who)
    return list(reflect_each(worker, due, pending=False))


def one_night(worker: Worker, graph: Graph, since: dt.date | None, *, dry_run: bool, pending: bool) -> Cycle:
    worker.registry.refresh(graph)
    models = worker.reflecting(graph.identity.agent)
    away = bool(worker.away(models))
    observer = Observer() if away else worker.answering(models)

    tell = partial(worker.registry.tell, graph=graph.identity.key)
    now, first = worker.clock(), Cycle()
    if not dry_run:
        archive_first(worker, graph, first, tell)
    if pending and not dry_run:
        observe_first(worker, graph, first)
    if graph.state().unread and not dry_run:
        read_first(worker, graph, first, tell)
    options = CycleOptions(since, dry_run, tell, refresh=lambda: worker.registry.refresh(graph))
    cycle = reflect_graph(graph, observer, worker.config, now, options)
    if away:
        cycle.skipped.insert(0, WITHOUT_GATEWAY + BY_RULE * bool(cycle.counts.get("reflections")))
    cycle.summary[:0], cycle.skipped[:0] = first.summary, first.skipped
    cycle.counts = first.counts | cycle.counts
    cycle.calls += first.calls
    cycle.tokens += first.tokens
    if not dry_run:
        graph.update(lambda state: setattr(state, "reflected", cycle.headline))
        there = {entry.id for entry in graph.index.entries(status=None)}
        graph.uses.drop(lambda id: id not in there)
    log.info("%s: reflected: %s; %d calls", graph.identity.key, cycle.headline, cycle.calls)
    for refusal in cycle.refused:
        said = ", ".join(filter(None, (refusal.place, refusal.op))) or "a reply"
        log.info("%s: refused %s: %s", graph.identity.key, said, refusal.why)
    return cycle


def archive_first(worker: Worker, graph: Graph, cycle: Cycle, tell: Callable[..., None]) -> None:
    """
    After an upgrade, archive notes that an earlier version's rules wrote, if today's rules would not write them.

    The number of archived notes goes into *cycle*.
    """
    offline = worker.models(graph.identity.agent)[0] == "offline"
    by_rules = offline and not worker.ledger.has_paid_for("observe")
    if receipt := archive_former_notes(graph, worker.clock(), by_rules=by_rules):
        notes = len(receipt.summary) - 1
        tell("notes_archived", cycle=receipt.id, notes=notes)
        cycle.counts["archived"] = notes
        cycle.summary.append(f"{receipt.summary[0]}; `omg undo {receipt.id}` brings the notes back.")


def observe_first(worker: Worker, graph: Graph, cycle: Cycle) -> None:
    """Observe all pending turns, however few. The result goes into *cycle*."""
    if not graph.pending():
        return
    done, error = worker.observe_now(graph.identity)
    if said := sum(observed.messages for observed in done):
        notes = how_many(sum(observed.notes for observed in done), "note")
        cycle.summary.append(f"Observed {how_many(said, 'message')} that waited, and wrote {notes}.")
    if error:
        cycle.skipped.append(f"observing the pending messages: {error}")


def read_first(worker: Worker, graph: Graph, cycle: Cycle, tell: Callable[..., None]) -> None:
    """Let the Observer's model read the turns that only rules have read. The result goes into *cycle*."""
    models = worker.models(graph.identity.agent)
    observer = worker.answering(models)
    if why := worker.away(models):
        cycle.skipped.append(f"the messages that a model should read and only rules have read so far: {why}")
    elif observer.ask is not None:
        observer = replace(observer, ask=counted(observer.ask, cycle))
        done = read_unread(graph, observer, worker.config, worker.clock(), partial(tell, trigger="night"))
        cycle.skipped += done.left
        cycle.counts["readings"] = len(done.batches)
        cycle.summary += [
            f"A model read {how_many(o.messages, 'message')} that only rules had read, and wrote {how_many(o.notes, 'note')}"
            f" (cycle {o.cycle})."
            for o in done.batches
        ]


def reflect_answer(worker: Worker, body: Mapping[str, Any]) -> dict[str, Any]:
    """The daemon's answer to POST /reflect {identity?, since?, dry_run?}."""
    since = dt.date.fromisoformat(str(body["since"])) if body.get("since") else None
    whose = [worker.registry.find(str(body["identity"])).identity] if body.get("identity") else None
    found = reflect_each(worker, whose, since=since, dry_run=bool(body.get("dry_run")))
    return {"graphs": [*found]}


def rebuild_each(worker: Worker, body: Mapping[str, Any]) -> dict[str, Any]:
    """
    Make the notes of one graph again from its messages.

    *body*: `{identity, swap}`. With `swap`, the new notes replace the graph's notes. Returns `{before, after, kept,
    folder, cycle}`; `cycle` is None without `swap`.

    Making the new notes locks nothing. The replacement waits for the observation under way, and the graph is not
    observed meanwhile.
    """
    key = str(body["identity"]) if body.get("identity") else None
    graph = worker.registry.find(key)
    if why := worker.away(worker.models(graph.identity.agent)):
        raise OmgError(f"nothing was rebuilt: {why}")
    worker.intake.take_in()

    def build() -> Rebuilt:
        who = worker.observer(graph.identity.agent)
        return build_anew(graph, who, worker.config, worker.clock())

    made, cycle = build(), None
    if body.get("swap"):
        with worker.resting(graph):  # an observation would write to the notes that are replaced
            made = build()  # turns that were observed meanwhile
            cycle = take_rebuilt(graph, worker.clock())
    folder = graph.vault.root if cycle else made.folder
    return {**asdict(made), "folder": str(folder), "cycle": cycle}
