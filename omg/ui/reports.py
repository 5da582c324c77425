"""The views of what happened and what waits: Days, To decide, Health and cost."""

from __future__ import annotations

from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from ..client import ask_daemon
from ..dates.days import time_text
from ..errors import BadNode, OmgError
from ..forget.selection import readable_note
from ..graph.state import given_lately
from ..journal import Change, Receipt, closed_files, readable, undone_cycles
from ..node.note import Node, parse_node
from ..plan.corrections import UNANSWERED_DAYS, corrected_by
from ..tools.today import Doubt, doubts_of
from ..worker.events import event_lines, parsed_events
from ..worker.status import DAYS, cost_of, home_status, observer_text
from .drawing import drawn_bars
from .given import tokens_of
from .notes import Row, message_row, row_of
from .request import Asked

# --- Days


CYCLES = 12  # cycles on a page
CHANGES = 25  # shown entries of a cycle
KINDS = {  # in the order of a day
    "observation": "Learnt from what was said",
    "edit": "By hand or on request",
    "reflection": "A night",
    "rebuild": "Made again from the archive",
    "undo": "A change was taken back",
    "forget": "Forgotten",
    "upgrade": "Upgrade: archived notes of an older version",
}
TENDED = "with new links or marks"  # the note says the same as before; such notes are counted, not listed
DEEDS = ("learnt", "changed", "replaced", "closed", "brought back", "set aside", "removed", "written", TENDED)
REFUSED = (b'"edit_refused"', b'"verdict_refused"')


@dataclass(frozen=True, slots=True)
class Deed:
    """
    What one set of changes did to one note.

    - *what*: a word of DEEDS, such as "learnt"
    - *text*: the note's description
    - *was*: the former description; "" if unchanged
    - *link*: the address of the note's page
    """

    what: str
    text: str
    was: str
    link: str


def days_view(asked: Asked) -> dict[str, Any]:
    """
    Return the page Days: the changes of notes, grouped by day, newest day first.

    A change that OMG learnt from pending turns belongs to the day of their last message. Any other change belongs to
    the day on which it was made. Each day begins with what OMG learnt. With `nights`, only the changes by nightly runs
    are listed.
    """
    graph, at, nights = asked.graph, asked.number("at"), bool(asked.get("nights"))
    name = "-reflection-" if nights else ""
    files = [f for f in reversed(closed_files(graph)) if name in f.name and "-maps-" not in f.name]
    undone = undone_cycles(graph)
    shown = [r for file in files[at : at + CYCLES] if (r := readable(graph, file)) and is_told(r)]
    days: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for receipt in shown:
        row = cycle_row(asked, receipt, receipt.id in undone)
        days[row["day"]].append(row)
    for rows in days.values():
        rows.sort(key=lambda row: row["order"])
    reflected = graph.state().reflected_ms
    return {
        "title": "Days",
        "days": days,
        "refused": refused_by_day(asked) if not nights else {},
        "nights": nights,
        "earlier": asked.link("days", nights=asked.get("nights"), at=at + CYCLES)
        if len(files) > at + CYCLES
        else "",
        "newer": asked.link("days", nights=asked.get("nights"), at=max(0, at - CYCLES)) if at else "",
        "last_night": asked.time_of(reflected) if reflected else "",
    }


def is_told(receipt: Receipt) -> bool:
    return bool(receipt.summary) or any(not is_page(c) for c in receipt.changes)


def is_page(change: Change) -> bool:
    return not change.path.startswith(("nodes/", "reflections/2", "inbox/"))


def cycle_row(asked: Asked, receipt: Receipt, undone: bool) -> dict[str, Any]:
    told_whole = receipt.kind == "rebuild"  # a rebuild may change thousands of notes
    deeds = [deed_of(asked, c) for c in receipt.changes if not (told_whole or is_page(c))]
    deeds.sort(key=lambda deed: DEEDS.index(deed.what))
    counts = Counter(deed.what for deed in deeds)
    at = datetime.fromisoformat(receipt.at).astimezone(asked.graph.zone)
    return {
        "kind": KINDS.get(receipt.kind, receipt.kind),
        "order": [*KINDS, receipt.kind].index(receipt.kind),
        "day": f"{at:%Y-%m-%d}",
        "at": f"{at:%H:%M}",
        "counts": ", ".join(f"{n} {what}" for what, n in counts.items()),
        "deeds": (shown := [deed for deed in deeds if deed.what != TENDED])[:CHANGES],
        "more": max(0, len(shown) - CHANGES),
        "summary": receipt.summary if told_whole or receipt.kind in ("reflection", "undo", "upgrade") else (),
        "cycle": "" if undone or not receipt.changes else receipt.id,
        "undone": undone,
        "folded": undone or receipt.kind == "undo",
    }


def deed_of(asked: Asked, change: Change) -> Deed:
    before, after = node_in(change.before, change.path), node_in(change.after, change.path)
    link = asked.link("note", path=change.path) if change.after is not None else ""
    said = after.description if after else before.description if before else change.path
    was = before.description if before and after and before.description != after.description else ""
    return Deed(what_became(before, after, change), said, was, link)


def what_became(before: Node | None, after: Node | None, change: Change) -> str:
    if change.before is None:
        return "learnt" if change.path.startswith("nodes/") else "written"
    if change.after is None:
        return "removed"
    if before and after:
        if after.status != before.status:
            return {"superseded": "replaced", "dormant": "set aside", "archived": "set aside"}.get(
                after.status, "brought back"
            )
        if after.loop == "done" and before.loop != "done":
            return "closed"
        if (after.description, after.body) == (before.description, before.body):
            return TENDED
    return "changed"


def node_in(text: str | None, path: str) -> Node | None:
    with suppress(BadNode):
        return parse_node(text, path) if text else None
    return None


def refused_by_day(asked: Asked) -> dict[str, list[tuple[str, int]]]:
    """Return for each day the reasons why proposals of a model were refused, with counts."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    lines = (line for line in event_lines(asked.memory.folder) if any(name in line for name in REFUSED))
    for event in parsed_events(lines):
        if event.get("graph") == asked.graph.identity.key:
            day = datetime.fromisoformat(str(event["at"])).astimezone(asked.graph.zone).date()
            found[str(day)][str(event.get("reason") or "no reason named")] += 1
    return {day: reasons.most_common(8) for day, reasons in found.items()}


# --- To decide


ASKED_AT_ONCE = 30


def decide_view(asked: Asked) -> dict[str, Any]:
    """List the doubts that the person can settle, newest first: contradictions and unconfirmed claims."""
    doubts = [(row_of(asked, doubt.entry), doubt) for doubt in doubts_of(asked.graph)]
    doubts.sort(key=lambda d: d[0].day, reverse=True)
    since = str(asked.today - timedelta(days=UNANSWERED_DAYS))
    fresh = sum(row.day >= since for row, _ in doubts)
    return {
        "title": "To decide",
        "fresh": [doubt_row(asked, *d) for d in doubts[:fresh][:ASKED_AT_ONCE]],
        "old": [doubt_row(asked, *d) for d in doubts[fresh:][:ASKED_AT_ONCE]],
        "total": len(doubts),
        "days": UNANSWERED_DAYS,
    }


def doubt_row(asked: Asked, row: Row, doubt: Doubt) -> dict[str, Any]:
    node = readable_note(asked.graph, doubt.entry.path)
    found = corrected_by(node) if node else None
    said = asked.graph.index.messages([s.id for s in node.sources[:1]]) if node else ()
    return {
        "row": row,
        "why": doubt.why,
        "other": row_of(asked, doubt.other) if doubt.other else None,
        "was": found[1].was if found else "",
        "said": [message_row(asked, m) for m in said],
    }


# --- Health and cost


def health_view(asked: Asked) -> dict[str, Any]:
    """Show the state of the daemon and the observer, what waits and why, the cost, and the share of prompts with memory."""
    status = status_now(asked)
    own: dict[str, Any] = next((g for g in status["graphs"] if g["identity"] == asked.graph.identity.key), {})
    costs = asked.memory.worker.ledger.lately(asked.memory.clock(), DAYS)
    tokens = {day: Counter({p: s.tokens for p, s in parts.items()}) for day, parts in costs.items()}
    spent = cost_of(costs.values())
    purposes = list(spent["by_purpose"])
    given = given_by_day(asked)
    last = next(given_lately(asked.graph.folder), None)
    return {
        "title": "Health and cost",
        "status": status,
        "daemon": status.get("daemon"),
        "observer": observer_text(status),
        "own": own,
        "observed": time_text(own["observed"], asked.graph.zone) if own.get("observed") else "never",
        "reflected": time_text(own["reflected"], asked.graph.zone) if own.get("reflected") else "never",
        "next_night": time_text(status.get("next_night") or "", asked.graph.zone),
        "last_prompt": asked.time_of(last["at"]) if last else "",
        "waits": own.get("waiting_because", ""),
        "pending": own.get("windows", {}).get("pending", {}),
        "purposes": purposes,
        "token_bars": drawn_bars(tokens, purposes, "Tokens"),
        "spent": spent,
        "days": DAYS,
        "first": next(iter(costs)),
        "today": str(asked.today),
        "given_names": GIVEN_NAMES,
        "given_bars": drawn_bars(given, GIVEN_NAMES, "Prompts"),
        "prompts": sum(sum(parts.values()) for parts in given.values()),
        "served": sum(parts.get(GIVEN_NAMES[0], 0) for parts in given.values()),
    }


def status_now(asked: Asked) -> dict[str, Any]:
    """Return the daemon's status, or the status read from the home if no daemon answers."""
    with suppress(OmgError):
        if (answer := ask_daemon(asked.memory.folder, "/status", {}, timeout_s=5)) is not None:
            return answer
    return home_status(asked.memory.worker)


GIVEN_NAMES = ("notes of their own", "only what always stands", "nothing")


def given_by_day(asked: Asked) -> dict[str, Counter[str]]:
    days = {str(asked.today - timedelta(days=n)): Counter[str]() for n in reversed(range(DAYS))}
    for record in given_lately(asked.graph.folder):
        system, prompt = tokens_of(record)
        if (day := str(asked.day_of(record["at"]))) in days:
            days[day][GIVEN_NAMES[0 if prompt else 1 if system else 2]] += 1
    return days
