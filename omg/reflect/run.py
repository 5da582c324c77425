"""
One night over one graph, from its lock to its receipt.

Drafting and asking hold no lock. Under the lock the drafts are compared with the vault; where anybody wrote
meanwhile, all is drafted once more from the replies there are. Nothing changed: no receipt, no line in the log. One
rule: what a cycle did is one receipt, so one undo.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC
from typing import Literal

from ..config import Config
from ..errors import BadNode, NotFound
from ..graph.graph import Graph
from ..graph.state import State, flock
from ..journal import Change, Receipt, commit_receipt, receipt_id, replay_open
from ..node.fields import LOG_FOLDER, TYPES
from ..node.markdown import BEGIN, END, generated_block, with_generated_block
from ..node.note import Node, render_node
from ..observe.question import Observer
from ..plan.pages import YOURS
from ..plural import how_many
from ..vault.files import digest
from .drafting import Cycle, CycleWork, Progress
from .verdicts import commit_seen, stage_seen

TellReflection = Callable[..., None]  # (event, **fields): to events.jsonl


def is_due(graph: Graph, config: Config) -> Literal["now", "background"] | None:
    """
    Whether enough has changed since the last cycle: "background" from the share `buffer_activation` on, when
    there is nothing else to do (and `buffer_tokens` is not false); "now" at `observation_tokens`.
    """
    changed, options = graph.state().changed_tokens, config.reflection
    if changed >= options.observation_tokens:
        return "now"
    if config.observation.buffer_tokens is False:
        return None
    return "background" if changed >= options.observation_tokens * options.buffer_activation else None


def reflect_graph(
    graph: Graph,
    observer: Observer,
    config: Config,
    now: dt.datetime,
    *,
    since: dt.date | None = None,
    dry_run: bool = False,
    tell: TellReflection = lambda *a, **k: None,
    progress: Progress = lambda done, all: None,
    refresh: Callable[[], object] = lambda: None,
) -> Cycle:
    """
    Run one cycle. The index is up to the files already; *refresh* brings it up to them again (`Registry.refresh`).

    *since*: go over all notes of that day or later again, seen or not. *dry_run*: ask and draft as always, and
    write nothing. A model that fails costs what it was to do, which the next cycle does, and nothing else.
    Raises Locked if a cycle is under way.
    """
    with flock(graph.folder / "reflect.lock", f"the Reflector of {graph.identity.key}", timeout_s=0):
        started = time.monotonic()
        notes = "\n".join(f"{path} {hash}" for path, hash in graph.index.hashes().items())
        id, changed = receipt_id(now, "reflection", of=notes), graph.state().changed_tokens
        tell("reflection_start", cycle=id, model=observer.model, changed_tokens=changed)
        if not dry_run:
            with graph.lock():
                replay_open(graph)
        work = CycleWork(graph, observer, config, now, since=since, progress=progress)
        work.cycle.id, broken = id, False
        try:
            work.draft()
        except (NotFound, BadNode):  # renamed, forgotten or broken while the model thought
            if dry_run:
                raise
            broken = True
        if not dry_run:
            if broken or stale_notes(work):
                refresh()
            with graph.lock():
                replay_open(graph)
                if broken or stale_notes(work):
                    work = CycleWork(graph, observer, config, now, since=since, progress=progress, first=work)
                    work.draft()
                write_cycle(work)
        cycle = work.cycle
        for refusal in cycle.refused:
            tell("verdict_refused", op=refusal.op, reason=refusal.why)
        tell(
            "reflection_end",
            model=observer.model,
            cycle=cycle.id,
            calls=cycle.calls,
            tokens=cycle.tokens,
            verdicts=cycle.verdicts,
            duration_ms=round((time.monotonic() - started) * 1000),
            **cycle.counts,
        )
        return cycle


def stale_notes(work: CycleWork) -> bool:
    """Whether anybody wrote since: the index has other notes, or a file is not what it was drafted on."""
    if work.graph.index.hashes() != work.hashes:
        return True
    drafts = [(p, d) for p, d in work.plan.drafts.items() if d.text != d.before]
    return any(
        work.graph.vault.bytes(d.was or p) != (None if d.before is None else d.before.encode())
        for p, d in drafts
    )


def write_cycle(work: CycleWork) -> None:
    """Under the vault's lock: the receipt, the files, the index, and what was seen."""
    graph, cycle = work.graph, work.cycle
    changes = [*work.plan.changes(), *now_page(work)]
    note_seen(work)
    if changes or cycle.proposed or cycle.refused:
        cycle.receipt = cycle_receipt(work, changes)
        stage_seen(graph, work.seen, cycle.receipt.id)
        cycle.outcome = commit_receipt(graph, cycle.receipt)
        commit_seen(graph)
    elif work.seen != work.before:
        stage_seen(graph, work.seen, "")
        commit_seen(graph)

    def reflected(state: State) -> None:
        state.reflected_ms = int(work.now.timestamp() * 1000)
        state.changed_tokens = max(0, state.changed_tokens - work.state.changed_tokens)
        if cycle.calls:
            state.verdicts, state.verdicts_refused = cycle.verdicts, len(cycle.refused)

    graph.update(reflected)


def cycle_receipt(work: CycleWork, changes: list[Change]) -> Receipt:
    cycle, at = work.cycle, work.now.astimezone(UTC)
    if changes and not cycle.summary:
        cycle.summary = [f"Brought {how_many(len(changes), 'map')} up to date."]
        cycle.counts["maps"] = len(changes)
    return Receipt(
        cycle.id,
        "reflection",
        at.isoformat(timespec="seconds"),
        (*changes, *log_page(work, cycle.id)),
        summary=(cycle.headline,),
        person=bool(cycle.counts["superseded"]),  # what no longer holds leaves every slice at once
    )


def note_seen(work: CycleWork) -> None:
    """What the files will be, and about which of them a model was asked as they will be."""
    drafts = [(p, d) for p, d in work.plan.drafts.items() if d.text != d.before]
    # Of a file that the index has not as it was drafted on, the next cycle makes what there is to make.
    after = {
        p: digest(d.text.encode())
        for p, d in drafts
        if digest((d.before or "").encode()) == work.hashes.get(d.was or p)
    }
    gone = {p for p, d in drafts if d.node.status == "superseded"}
    notes, left = {}, work.unanswered()
    for path, entry in work.snapshot.entries.items():
        if entry.type in TYPES and path in work.hashes and path not in gone:
            there = work.plan.place_now(path)
            notes[there] = (after.get(there, work.hashes[path]), path not in left)
    work.seen.notes = notes
    for matter in {*work.replies.answered, *work.replies.passed_over}:
        if gone.isdisjoint(matter.paths):
            now = replace(matter, paths=tuple(map(work.plan.place_now, matter.paths)))
            work.seen.note_answer(now, work.matter_digest(now), answered=matter in work.replies.answered)
    work.seen.drop_gone()


def now_page(work: CycleWork) -> Iterable[Change]:
    """Now lists open loops: it changes when one of them did."""
    plan, graph = work.plan, work.graph
    loops = any(d.node.loop and d.text != d.before for d in plan.drafts.values())
    if loops and (change := plan.maps.now_change(graph.state().sessions, plan.day)):
        yield change


def log_page(work: CycleWork, id: str) -> Iterable[Change]:
    """This month's page, with a paragraph more."""
    cycle, day = work.cycle, work.plan.day
    path, title = f"{LOG_FOLDER}{day:%Y-%m}", f"{day:%B %Y}"
    lines = [
        f"### {work.now.astimezone(work.graph.zone):%Y-%m-%d %H:%M}, cycle {id}",
        f"\n{cycle.headline[0].upper()}{cycle.headline[1:]}.\n",
        *(f"- {line}" for line in cycle.summary),
    ]
    if cycle.proposed:
        lines += ["\nFor you to judge:\n", *(f"- {line}" for line in cycle.proposed)]
    if cycle.refused:
        lines += ["\nWhat the model proposed and was not done:\n", *(f"- {r.line}" for r in cycle.refused)]
    before = work.graph.vault.bytes(path)
    written = generated_block(before.decode("utf-8", errors="replace")) if before else None
    inner = "\n\n".join(filter(None, (written, "\n".join(lines))))
    node = Node(path, f"omg/log/{day:%Y-%m}", f"What the Reflector did in {title}.", "log")
    body = f"# {title}\n\n{YOURS}\n\n{BEGIN}\n{END}"
    if change := work.plan.maps.change(
        path, inner, with_generated_block(render_node(replace(node, body=body)), inner)
    ):
        yield change
