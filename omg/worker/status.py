"""Reports what `omg status` shows: what runs, what waits and why, what it cost, and what the night did.

A graph that cannot be opened is listed with its error. openclaw/doctor.py tells what is wrong and how to mend it."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
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
from .events import edits_lately
from .schedule import step_tokens
from .worker import Worker


def home_status(worker: Worker) -> dict[str, Any]:
    """The state of the home and of each graph, as `omg status --json` prints it. Costs are sums over all graphs."""
    since_ms = engine_since_ms(worker.registry.folder)
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
        "graphs": [status_of(worker, who, engine=bool(since_ms)) for who in worker.registry.identities()],
    }


DAYS = 30


def costs_of(ledger: Ledger, now: datetime) -> dict[str, Any]:
    """
    Return the costs of all graphs: `{today, last_30_days}`.

    Both values also have the costs of each purpose. `today` also has the caps.
    """
    days = ledger.lately(now, DAYS)
    caps = {"cap_tokens": ledger.cap_tokens, "cap_usd": ledger.cap_usd}
    return {
        "today": cost_of([[*days.values()][-1]]) | caps,
        "last_30_days": cost_of(days.values()),
    }


def cost_of(days: Iterable[Mapping[str, Spent]]) -> dict[str, Any]:
    """The sum of *days* as JSON, and under `by_purpose` the sum of each purpose."""
    purposes: dict[str, Spent] = defaultdict(Spent)
    for purpose, spent in (part for day in days for part in day.items()):
        purposes[purpose] += spent
    sums = {"": sum(purposes.values(), Spent())} | dict(sorted(purposes.items()))
    each = {name: {"calls": s.calls, "tokens": s.tokens, "usd": round(s.usd, 4)} for name, s in sums.items()}
    return each.pop("") | {"by_purpose": each}


def cost_lines(costs: Mapping[str, Any], *, capped: bool = True) -> list[str]:
    """
    Write the answer of `costs_of` as lines for a person. *capped*: name the caps on the cost. Rules cost nothing, and
    have no caps.
    """
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
    """The time of the next nightly job of `omg install`; "" in a home that OpenClaw does not use."""
    if not (worker.registry.folder / "installed.json").exists():
        return ""
    now = worker.clock().astimezone()
    later = timedelta(days=now.time() >= time(*NIGHT))
    return seconds(datetime.combine(now.date() + later, time(*NIGHT)).astimezone())


def observing_status(worker: Worker) -> dict[str, Any]:
    """The graphs that are being observed, the graphs that wait in line, and the calls of each model."""
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


def status_of(worker: Worker, who: Identity, *, engine: bool) -> dict[str, Any]:
    try:
        return graph_status(worker, worker.registry.graph(who, keep=False), engine=engine)
    # A vault that cannot be opened does not hide the other graphs.
    except (OmgError, OSError, sqlite3.Error) as e:
        return {"identity": who.key, "error": error_text(e)}


def graph_status(worker: Worker, graph: Graph, *, engine: bool) -> dict[str, Any]:
    """The state of one graph. *engine*: whether OMG is the context engine."""
    state, pending, options = worker.state_of(graph), graph.pending(), worker.config.observation
    waiting = sum(p.tokens for p in pending)
    inbox, undone = unread_files(graph)
    return {
        "identity": graph.identity.key,
        "vault": str(graph.vault.root),
        "apart": worker.registry.why_apart(graph.identity),
        "new_account": worker.registry.new_account(graph.identity),
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
        "index_remade": index_remade(graph, worker.clock()),
        "unread": len(state.unread),
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
                **({"context": context_status(s)} if engine and s.asked_ms else {}),
            }
            for key, s in state.sessions.items()
        },
    }


REMADE_SHOWN = timedelta(days=7)


def index_remade(graph: Graph, now: datetime) -> str:
    """A line for a person if the index was damaged and made again within REMADE_SHOWN; otherwise ""."""
    at, why = graph.index.damage() or (None, "")
    if at is None or now - at > REMADE_SHOWN:
        return ""
    when = time_text(seconds(at), graph.zone)
    return f"made again from the notes and messages at {when}: {why}; nothing is lost"


def context_status(session: SessionState) -> dict[str, Any]:
    """
    Return the state of a session whose context OMG puts together.

    The state has the tokens of messages and of notes, and the time of the latest cut.
    """
    return {
        "asked": iso_time(session.asked_ms),
        "raw_tokens": session.raw_tokens,
        "notes_tokens": count_tokens(session.timeline),
        "cut_turns": len(session.cut_turns),
        "cut": iso_time(session.context_cut_ms),
        # as the provider counts; None if the provider reports no cache
        "cached_share": round(session.cached / session.prompted, 3) if session.cached else None,
    }


def observer_text(answer: Mapping[str, Any]) -> str:
    """Name the model that observes, for a person; and say why it cannot be asked at the moment."""
    if answer["offline"]:
        return f"{answer['observer']} (rules, no model: near-verbatim notes)"
    if answer.get("effort") == "low":
        waits = "the rules make notes at once, and only the nightly reading waits for a gateway"
        return (
            f"rules make notes at once; at night a model reads the same messages: {model_text(answer, waits)}"
        )
    return model_text(answer, "what is said waits until a gateway is up")


def model_text(answer: Mapping[str, Any], waits: str) -> str:
    """
    Name the model for a person. Also say why the model cannot be asked now.

    *waits*: what is delayed until a gateway runs, as the end of a sentence.
    """
    daemon, name = answer.get("daemon") or {}, str(answer["observer"])
    if not name.startswith("gateway"):
        return name
    text = name.replace("gateway", "the agent's own model, asked through the gateway", 1)
    if daemon.get("lent"):
        text += f" ({daemon['lent']} answered last)"
    if trouble := daemon.get("trouble"):
        return f"{text}\n          not now: {trouble}"
    if daemon.get("polled_s") is None:
        return f"{text}\n          not now: no gateway lends this model; {waits}"
    return text


StatusRow = tuple[object, str, object]  # whether it is shown, its label, its text


def labelled(rows: Iterable[StatusRow], margin: str = "") -> list[str]:
    return [f"{margin}{label:<9} {text}" for shown, label, text in rows if shown]


def status_text(answer: Mapping[str, Any], zone: tzinfo) -> str:
    """The *answer* of `home_status` for a person, with times of their *zone*."""
    daemon, other = answer.get("daemon"), answer["reflector"] != answer["observer"]
    up = f"up, pid {daemon['pid']}" if daemon else answer.get("away") or "not running"
    night, edits, bad = answer["next_night"], answer["edits"], answer["unreadable_drops"]
    refused = (
        f"{edits['refused']} of the last {edits['last']} were refused, or noted as the assistant's words"
    )
    observing, engine = observing_text(answer["observing"], zone), engine_text(answer, zone)
    who: list[StatusRow] = [
        (True, "home", answer["home"]),
        (True, "daemon", up),
        *((True, "off", off) for off in answer["switched_off"]),
        (True, "observer", observer_text(answer)),
        (other, "reflector", answer["reflector"]),
    ]
    what: list[StatusRow] = [
        (night, "night", f"next at {time_text(night, zone)}, by OpenClaw's scheduler"),
        (observing, "observing", observing),
        (edits["last"], "edits", refused),
        (bad, "spool", f"{how_many(bad, 'incoming file')} could not be read; see {answer['home']}/spool/bad"),
        (engine, "contexts", engine),
    ]
    # Rules cost nothing, so they have no cap.
    costs = cost_lines(answer, capped=not answer["offline"] or other)
    graphs = [line for graph in answer["graphs"] for line in ("", *graph_lines(graph, zone))]
    return "\n".join([*labelled(who), *costs, *labelled(what), *graphs])


def engine_text(answer: Mapping[str, Any], zone: tzinfo) -> str:
    """
    Say since when OMG has been OpenClaw's context engine, and for how many sessions.

    Returns "" if OMG is not the context engine.
    """
    if (engine := answer.get("context_engine")) is None:
        return ""
    sessions = [s for g in answer["graphs"] for s in g.get("sessions", {}).values() if "context" in s]
    cut = sum(bool(s["context"]["cut_turns"]) for s in sessions)
    since, asked_for = time_text(engine["since"], zone), how_many(len(sessions), "session")
    return f"OMG has been OpenClaw's context engine since {since}: {asked_for}, {cut} shortened"


def observing_text(observing: Mapping[str, Any], zone: tzinfo) -> str:
    """
    How many graphs are observed or wait, since when, and which models take fewer calls now; "" if there is nothing to
    say.
    """
    parts = [
        f"{how_many(len(works), 'graph')} {verb} since {time_text(works[0]['since'], zone, 'seconds')}"
        for works, verb in ((observing.get("under_way"), "at work"), (observing.get("waiting"), "waiting"))
        if works
    ]
    for model, calls in (observing.get("calls") or {}).items():
        if (room := calls["room"]) < (most := calls["most"]):
            parts.append(f"{model} takes {room} calls at a time for now, not {most}, because it refused more")
    return "; ".join(parts)


def graph_lines(graph: Mapping[str, Any], zone: tzinfo) -> list[str]:
    if "error" in graph:
        return [graph["identity"], f"  out of reach: {graph['error']}"]
    waiting, undone, verdicts = graph["windows"]["pending"], graph["reflection_undone"], graph["verdicts"]
    turns, refused, unread, cycle = (
        waiting["turns"],
        verdicts["refused"],
        graph["unread"],
        graph["former_rules"],
    )
    seen, tidied = (time_text(graph[done], zone) or "never" for done in ("observed", "reflected"))
    what = ", which was undone" if undone else f": {graph['reflected_what']}" * bool(graph["reflected_what"])
    former = f"notes that an older version made and this version would not make; `omg undo {cycle}` brings the notes back"
    of = f"of {how_many(verdicts['said'], 'proposal')} that a model made last night; see reflections/log/ in the vault"
    cut = {key: s["context"] for key, s in graph["sessions"].items() if s.get("context", {}).get("cut_turns")}
    rows: list[StatusRow] = [
        (graph["apart"], "apart", graph["apart"]),
        (graph["new_account"], "account", graph["new_account"]),
        (True, "vault", graph["vault"]),
        (True, "notes", graph["notes"]),
        (graph["proposed"], "proposed", f"{graph['proposed']} by the assistant: see `omg confirm`"),
        (
            True,
            "waiting",
            f"{how_many(turns, 'turn')}, {waiting['tokens']:,} of {waiting['threshold']:,} tokens",
        ),
        (turns and graph["waiting_because"], "because", graph["waiting_because"]),
        (graph["inbox"], "inbox", files_text(graph["inbox"], "not read yet")),
        (graph["inbox_undone"], "inbox", files_text(graph["inbox_undone"], "whose filing you undid") + AGAIN),
        (
            unread,
            "unread",
            f"{how_many(unread, 'piece')} of conversation read only by rules so far; a model reads this at night",
        ),
        (True, "observed", f"{seen}; reflected {tidied}{what}"),
        (cycle, "archived", former),
        (graph["index_remade"], "index", graph["index_remade"]),
        (refused and not undone, "refused", f"{refused} {of}"),
        *((True, "context", f"{key}: {context_text(found, zone)}") for key, found in cut.items()),
        *((True, "unreadable", f"{path}: {why}") for path, why in graph["unreadable"].items()),
    ]
    return [graph["identity"], *labelled(rows, "  ")]


AGAIN = "; changed words are read again"


def files_text(files: Sequence[str], what: str) -> str:
    """The number of *files* in the inbox, *what* is the matter with them, and the first three names."""
    return f"{how_many(len(files), 'file')} {what}: {', '.join(files[:3])}{' …' * (len(files) > 3)}"


def archived_cycle(graph: Graph, cycle: str) -> str:
    """
    Return *cycle*, the id of a receipt, if this cycle can still be undone; otherwise "".

    *cycle*: the cycle in which an upgrade of OMG archived notes that former rules had made.
    """
    there = (graph.folder / "receipts" / f"{cycle}.json").exists()
    return cycle if there and cycle not in undone_cycles(graph) else ""


def is_night_undone(graph: Graph, at_ms: int) -> bool:
    """Whether the reflection that began at *at_ms* was undone."""
    began = f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y%m%dT%H%M%S}-reflection-"
    return any(cycle.startswith(began) for cycle in undone_cycles(graph))


def context_text(found: Mapping[str, Any], zone: tzinfo) -> str:
    shown = f"{found['raw_tokens']:,} tokens of messages, and {found['notes_tokens']:,} tokens of notes in place of {found['cut_turns']} turns that were cut"
    share = found["cached_share"]
    return f"{shown}; last cut {time_text(found['cut'], zone)}" + (
        f"; {share:.0%} of its prompt tokens came from a cache" if share else ""
    )
