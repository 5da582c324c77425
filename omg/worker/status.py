"""
Reports what `omg status` shows: what runs, what waits and why, what it cost, and what the night did.

A graph that cannot be opened is listed with its error, and the others as usual. openclaw/doctor.py says what is wrong and
how to mend it.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, time, timedelta, tzinfo
from typing import Any

from ..config import NIGHT, engine_since_ms
from ..dates.days import iso_time, time_text
from ..errors import OmgError, error_text, how_many
from ..graph.graph import Graph
from ..graph.state import SessionState
from ..identity import Identity
from ..inbox import other_files, unread_files, why_no_note
from ..journal import undone_cycles
from ..llm.replies import Ledger, Spent
from ..plan.corrections import proposed_notes
from ..text.tokens import count_tokens
from .events import edits_lately, last_cuts
from .schedule import step_tokens
from .worker import Worker

Cuts = Mapping[str, Mapping[str, Any]]  # session → its last event `context_cut`


def home_status(worker: Worker) -> dict[str, Any]:
    """The state of the home and of each graph, as `omg status --json` prints it. Costs are those of all graphs."""
    since_ms = engine_since_ms(worker.registry.folder)
    cuts = last_cuts(worker.registry.folder) if since_ms else {}
    observer = worker.models()
    return {
        "home": str(worker.registry.folder),
        "observer": ", else ".join(observer),
        "offline": observer[0] == "offline",
        "effort": worker.config.observation.effort,
        "switched_off": worker.config.all_switched_off(),
        "reflector": ", else ".join(worker.reflecting()),
        "spool": len(worker.intake.drops()),
        "unreadable_drops": len(list((worker.registry.folder / "spool" / "bad").glob("*.json"))),
        **costs_of(worker.ledger, worker.clock()),
        "next_night": next_night(worker),
        "observing": observing_status(worker),
        **({"context_engine": {"since": iso_time(since_ms)}} if since_ms else {}),
        "edits": dict(zip(("last", "refused"), edits_lately(worker.registry.folder), strict=True)),
        "graphs": [
            status_of(worker, who, cuts if since_ms else None) for who in worker.registry.identities()
        ],
    }


DAYS = 30


def costs_of(ledger: Ledger, now: datetime) -> dict[str, Any]:
    """What all graphs cost `today`, with its caps, and in the `last_30_days`, by purpose."""
    days = ledger.lately(now, DAYS)
    caps = {"cap_tokens": ledger.cap_tokens, "cap_usd": ledger.cap_usd}
    return {
        "today": cost_of([[*days.values()][-1]]) | caps,
        "last_30_days": cost_of(days.values()),
    }


def cost_of(days: Iterable[Mapping[str, Spent]]) -> dict[str, Any]:
    """The sum of *days*, as JSON, and under `by_purpose` that of each purpose."""
    purposes: dict[str, Spent] = defaultdict(Spent)
    for purpose, spent in (part for day in days for part in day.items()):
        purposes[purpose] += spent
    sums = {"": sum(purposes.values(), Spent())} | dict(sorted(purposes.items()))
    each = {name: {"calls": s.calls, "tokens": s.tokens, "usd": round(s.usd, 4)} for name, s in sums.items()}
    return each.pop("") | {"by_purpose": each}


def cost_lines(costs: Mapping[str, Any], *, capped: bool = True) -> list[str]:
    """The lines that tell a person the answer of `costs_of`. *capped*: whether they name the caps, which only models have."""
    lines = []
    for label, key in (("today  ", "today"), ("30 days", "last_30_days")):
        cost = costs[key]
        tokens, usd = cost.get("cap_tokens"), cost.get("cap_usd")
        text = f"{cost['tokens']:,}{f' of {tokens:,}' if capped and tokens else ''} tokens"
        text += f", ${cost['usd']:.2f}{f' of ${usd:.2f}' if capped and usd is not None else ''}"
        parts = [
            f"{purpose} {part['tokens']:,} (${part['usd']:.2f})"
            for purpose, part in cost["by_purpose"].items()
        ]
        whole = f"{label}   {how_many(cost['calls'], 'call')}, {text}"
        lines.append(": ".join([whole, *[", ".join(parts)] * bool(parts)]))
    return lines


def next_night(worker: Worker) -> str:
    """When the nightly job of `omg install` runs next; "" in a home that OpenClaw does not use."""
    if not (worker.registry.folder / "installed.json").exists():
        return ""
    now = worker.clock().astimezone()
    later = timedelta(days=now.time() >= time(*NIGHT))
    return seconds(datetime.combine(now.date() + later, time(*NIGHT)).astimezone())


def observing_status(worker: Worker) -> dict[str, Any]:
    """The graphs that are being observed, those that wait in line, and the calls of each model."""
    works = worker.under_way()
    return {
        "parallel": worker.config.observation.parallel,
        **{
            name: [{"identity": w.who.key, "since": seconds(w.since)} for w in works if w.under_way is now]
            for name, now in (("under_way", True), ("waiting", False))
        },
        "calls": {
            model: {"under_way": p.taken, "room": p.room, "most": p.most}
            for model, p in worker.places().items()
        },
    }


def seconds(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds")


def status_of(worker: Worker, who: Identity, cuts: Cuts | None) -> dict[str, Any]:
    try:
        return graph_status(worker, worker.registry.graph(who, keep=False), cuts)
    # A vault that cannot be opened does not hide the other graphs.
    except (OmgError, OSError, sqlite3.Error) as e:
        return {"identity": who.key, "error": error_text(e)}


def graph_status(worker: Worker, graph: Graph, cuts: Cuts | None) -> dict[str, Any]:
    """The state of one graph. *cuts* is None unless OMG is the context engine."""
    state, pending, options = worker.state_of(graph), graph.pending(), worker.config.observation
    waiting = sum(p.tokens for p in pending)
    inbox, undone = unread_files(graph)
    return {
        "identity": graph.identity.key,
        "vault": str(graph.vault.root),
        "apart": worker.registry.why_apart(graph.identity),
        "notes": sum(e.path.startswith("nodes/") for e in graph.index.entries()),
        "proposed": sum(1 for _ in proposed_notes(graph)),
        "inbox": inbox,
        "inbox_undone": undone,
        "windows": {
            "messages": {
                "tokens": max((s.window for s in state.sessions.values()), default=0),
                "threshold": options.message_tokens,
            },
            "pending": {
                "tokens": waiting,
                "threshold": round(step_tokens(state, options)),
                "turns": len(pending),
            },
            "reflection": {
                "tokens": state.changed_tokens,
                "threshold": worker.config.reflection.observation_tokens,
            },
        },
        "unread": len(state.unread),
        "open_receipts": len(list((graph.folder / "receipts").glob("*.open.json"))),
        "due": worker.due(graph),
        "waiting_because": worker.waits(graph),
        "failures": state.failures,
        "observed": iso_time(state.observed_ms),
        "reflected": iso_time(state.reflected_ms),
        "reflected_what": state.reflected,
        "reflection_undone": is_night_undone(graph, state.reflected_ms),
        "former_rules": archived_cycle(graph, state.former_rules),
        "verdicts": {"said": state.verdicts, "refused": state.verdicts_refused},
        "unreadable": graph.index.bad()
        | {f"inbox/{file.name}": why for file in other_files(graph) if (why := why_no_note(file))},
        "sessions": {
            key: {
                "task": s.task,
                "activated": iso_time(s.activated_ms),
                "reason": s.reason,
                "window": s.window,
                **({"context": context_status(s, cuts.get(key))} if cuts is not None and s.asked_ms else {}),
            }
            for key, s in state.sessions.items()
        },
    }


def context_status(session: SessionState, cut: Mapping[str, Any] | None) -> dict[str, Any]:
    """A session whose context OMG puts together: its tokens of messages and of notes, and the last cut."""
    last = {key: (cut or {}).get(key) for key in ("reason", "turns", "tokens")}
    return {
        "asked": iso_time(session.asked_ms),
        "raw_tokens": session.raw_tokens,
        "notes_tokens": count_tokens(session.timeline),
        "cut_turns": len(session.cut_turns),
        "cut": iso_time(session.context_cut_ms),
        "last_cut": last if cut else None,
        # as the provider counts; None if it reports no cache
        "cached_share": round(session.cached / session.prompted, 3) if session.cached else None,
    }


def observer_text(answer: Mapping[str, Any]) -> str:
    """Which model observes, and why it cannot be asked at the moment, for a person."""
    if answer["offline"]:
        return f"{answer['observer']} (rules, no model: near-verbatim notes)"
    if answer.get("effort") == "low":
        waits = "the rules note what is said at once, and only the night's reading waits until one is up"
        return f"rules, at once; a model reads it at night: {model_text(answer, waits)}"
    return model_text(answer, "what is said waits until one is up")


def model_text(answer: Mapping[str, Any], waits: str) -> str:
    """The model, and why it cannot be asked at the moment. *waits*: what happens while no gateway lends it."""
    daemon, name = answer.get("daemon") or {}, str(answer["observer"])
    if not name.startswith("gateway"):
        return name
    text = name.replace("gateway", "the agent's own model, asked through the gateway", 1)
    if daemon.get("lent"):
        text += f" ({daemon['lent']} answered last)"
    if trouble := daemon.get("trouble"):
        return f"{text}\n          not now: {trouble}"
    if daemon.get("polled_s") is None:
        return f"{text}\n          not now: no gateway lends it; {waits}"
    return text


def status_text(answer: Mapping[str, Any], zone: tzinfo) -> str:
    """The *answer* of `home_status` for a person, with times of their *zone*."""
    daemon = answer.get("daemon")
    # With rules alone there is no cap.
    asked = not answer["offline"] or answer["reflector"] != answer["observer"]
    lines = [
        f"home      {answer['home']}",
        f"daemon    {'up, pid ' + str(daemon['pid']) if daemon else answer.get('away') or 'not running'}",
        *(f"off       {off}" for off in answer.get("switched_off") or ()),
        f"observer  {observer_text(answer)}",
        *([f"reflector {answer['reflector']}"] if answer["reflector"] != answer["observer"] else []),
        *cost_lines(answer, capped=asked),
    ]
    if night := answer.get("next_night"):
        lines.append(f"night     next at {time_text(night, zone)}, by OpenClaw's scheduler")
    if text := observing_text(answer.get("observing") or {}, zone):
        lines.append(f"observing {text}")
    if (edits := answer.get("edits")) and edits["last"]:
        lines.append(
            f"edits     of the last {edits['last']}, {edits['refused']} refused or noted as the assistant's"
        )
    if bad := answer["unreadable_drops"]:
        lines.append(f"spool     {how_many(bad, 'drop')} could not be read; see {answer['home']}/spool/bad")
    if engine := answer.get("context_engine"):
        sessions = [s for g in answer["graphs"] for s in g.get("sessions", {}).values() if "context" in s]
        cut = sum(bool(s["context"]["cut_turns"]) for s in sessions)
        since, asked_for = time_text(engine["since"], zone), how_many(len(sessions), "session")
        lines.append(f"contexts  OMG's engine since {since}: asked for {asked_for}, {cut} cut")
    for graph in answer["graphs"]:
        lines += ["", *graph_lines(graph, zone)]
    return "\n".join(lines)


def observing_text(observing: Mapping[str, Any], zone: tzinfo) -> str:
    """How many graphs are observed or wait, since when, and which models take fewer calls at present; "" for none."""
    parts = [
        f"{how_many(len(works), 'graph')} {verb} since {time_text(works[0]['since'], zone, 'seconds')}"
        for works, verb in ((observing.get("under_way"), "at work"), (observing.get("waiting"), "waiting"))
        if works
    ]
    for model, calls in (observing.get("calls") or {}).items():
        if calls["room"] < calls["most"]:
            parts.append(
                f"{calls['room']} calls of {model} at a time for now, not {calls['most']}: it refused more"
            )
    return "; ".join(parts)


def graph_lines(graph: Mapping[str, Any], zone: tzinfo) -> list[str]:
    if "error" in graph:
        return [graph["identity"], f"  out of reach: {graph['error']}"]
    waiting = graph["windows"]["pending"]
    turns = how_many(waiting["turns"], "turn")
    lines = [
        graph["identity"],
        *([f"  apart     {graph['apart']}"] if graph["apart"] else []),
        f"  vault     {graph['vault']}",
        f"  notes     {graph['notes']}",
        *(
            [f"  proposed  {graph['proposed']} by the assistant: see `omg confirm`"]
            if graph["proposed"]
            else []
        ),
        f"  waiting   {turns}, {waiting['tokens']:,} of {waiting['threshold']:,} tokens",
    ]
    if graph["waiting_because"] and waiting["turns"]:
        lines.append(f"  because   {graph['waiting_because']}")
    if files := graph["inbox"]:
        named = ", ".join(files[:3]) + " …" * (len(files) > 3)
        lines.append(f"  inbox     {how_many(len(files), 'file')} not read yet: {named}")
    if files := graph["inbox_undone"]:
        what = f"{how_many(len(files), 'file')} whose filing you undid: {', '.join(files[:3])}"
        lines.append(f"  inbox     {what}{' …' * (len(files) > 3)}; changed words are read again")
    if unread := graph["unread"]:
        lines.append(
            f"  unread    {how_many(unread, 'piece')} that rules have noted wait for a model, at night"
        )
    seen, tidied = (time_text(graph[done], zone) or "never" for done in ("observed", "reflected"))
    undone = ", which was undone" if graph["reflection_undone"] else ""
    what = f": {graph['reflected_what']}" if graph.get("reflected_what") and not undone else ""
    lines.append(f"  observed  {seen}; reflected {tidied}{undone}{what}")
    if cycle := graph.get("former_rules"):
        what = "notes that earlier rules wrote and today's would not"
        lines.append(f"  archived  {what}; `omg undo {cycle}` brings them back")
    if (refused := graph["verdicts"]["refused"]) and not undone:
        said = how_many(graph["verdicts"]["said"], "verdict")
        lines.append(f"  refused   {refused} of {said} of the last night; see reflections/log/ in the vault")
    for key, session in graph["sessions"].items():
        if (found := session.get("context")) and found["cut_turns"]:
            lines.append(f"  context   {key}: {context_text(found, zone)}")
    return lines + [f"  unreadable {path}: {why}" for path, why in graph["unreadable"].items()]


def archived_cycle(graph: Graph, cycle: str) -> str:
    """*cycle*, which archived notes of earlier rules, as long as it can be undone; else ""."""
    there = (graph.folder / "receipts" / f"{cycle}.json").exists()
    return cycle if there and cycle not in undone_cycles(graph) else ""


def is_night_undone(graph: Graph, at_ms: int) -> bool:
    """Whether the reflection begun at *at_ms* was undone."""
    began = f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y%m%dT%H%M%S}-reflection-"
    return any(cycle.startswith(began) for cycle in undone_cycles(graph))


def context_text(found: Mapping[str, Any], zone: tzinfo) -> str:
    shown = f"{found['raw_tokens']:,} tokens raw, {found['notes_tokens']:,} of notes for {found['cut_turns']} turns cut"
    why, last = "", found["last_cut"] or {}
    if last.get("reason") == "threshold":
        why = f": {last['turns']} turns of {last['tokens']:,} tokens, it had grown too long"
    elif last.get("reason") == "edit":
        why = ": its notes made anew, since something was edited or forgotten"
    cached = (
        f"; {found['cached_share']:.0%} of its prompts came from a cache" if found["cached_share"] else ""
    )
    return f"{shown}; last {time_text(found['cut'], zone)}{why}{cached}"
