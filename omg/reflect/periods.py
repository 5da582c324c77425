"""
Reflections on weeks and months: what is due, and what is written of it.

Only what is over is looked back on: whole ISO weeks of notes of all types, whole months of weeks. Not here: what is
said of them, by a model (lookback.py) or by rule (threads.py). One rule: no note is deleted or changed but for
`reflected_in`.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from ..dates.days import event_span
from ..errors import NotFound
from ..index.entries import Entry
from ..journal import Rebase
from ..node.fields import TYPES
from ..node.maptable import map_of_type
from ..node.markdown import wikilink
from ..node.note import Node, render_node
from ..plan.drafts import Plan
from ..plan.edits import NoteDraft, split_history, weaker_origin
from ..text.links import without_citations
from ..text.tokens import clip_text, count_tokens
from .topics import normalized

WEEK = re.compile(r"reflections/\d{4}-W\d\d")

BY_RULE = "by-rule"  # tag of a page that no model wrote

LONGEST_EVENT = 31  # days; "in 2022" is no week of it
LEAST_NOTES, LEAST_TOKENS = 3, 80  # below either, the notes are their own summary
# Of its input's tokens that a reflection is asked to stay below; where that is too little for the names of all that
# happened, so many for each note, and at most the larger share.
TARGET_SHARE, TOKENS_A_NOTE, LARGEST_SHARE = 0.5, 8, 0.8
LONGEST_REFLECTION = 800  # tokens of a reflection, however much it is made of
NOTE_TOKENS = 300  # of a note's text that counts, and that a model is shown


@dataclass(frozen=True, slots=True)
class Period:
    """A week or a month that is over, and the paths of what belongs to it, in the order it happened."""

    path: str  # "reflections/2026-W08", "reflections/2026-02"
    title: str
    first: dt.date
    last: dt.date
    members: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Of what it is made of."""
        return hashlib.sha256("\n".join(self.members).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Claim:
    text: str  # "": the notes are named and not quoted
    notes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ReflectionDraft:
    description: str
    claims: tuple[Claim, ...]
    by_rule: bool = False  # no model wrote it; one may, some night

    @property
    def tokens(self) -> int:
        return count_tokens("\n".join((self.description, *(c.text for c in self.claims))))


# --- what is due


def week_of(day: dt.date) -> str:
    year, week, _ = day.isocalendar()
    return f"reflections/{year}-W{week:02}"


def monday(week: str) -> dt.date:
    year, number = week.removeprefix("reflections/").split("-W")
    return dt.date.fromisocalendar(int(year), int(number), 1)


def day_happened(entry: Entry) -> dt.date | None:
    """The day it happened: its event's, else the day it was said; so too of what took months or years."""
    days = event_span(entry.event)
    return days[0] if days and (days[1] - days[0]).days <= LONGEST_EVENT else entry.created


def due_weeks(entries: Sequence[Entry], today: dt.date) -> list[Period]:
    """
    Whole weeks in which something happened, oldest first, with all that was noted in them. *entries* are the active
    notes. Wishes and who somebody is make no week one in which something happened.
    """
    by_week: dict[str, list[tuple[dt.date, str]]] = {}
    eventful: set[str] = set()
    for e in entries:
        if e.type not in TYPES or (day := day_happened(e)) is None:
            continue
        by_week.setdefault(week_of(day), []).append((day, e.path))
        if e.type not in ("preference", "identity"):
            eventful.add(week_of(day))
    found = []
    for week in sorted(eventful):
        first = monday(week)
        last = first + dt.timedelta(days=6)
        if last < today:
            year, number, _ = first.isocalendar()
            members = tuple(path for _, path in sorted(by_week[week]))
            found.append(Period(week, f"Week {number} of {year}", first=first, last=last, members=members))
    return found


def due_months(entries: Sequence[Entry], today: dt.date) -> list[Period]:
    """
    Months whose last week is over, oldest first: their weeks' reflections, and the notes of weeks too small
    to have one. A week belongs to the month of its Thursday.
    """
    weekly = {e.path for e in entries if e.type == "reflection" and WEEK.fullmatch(e.path)}
    by_month: dict[str, list[tuple[dt.date, str]]] = {}
    for week in weekly:
        by_month.setdefault(month_of(monday(week)), []).append((monday(week), week))
    for e in entries:
        if e.type in TYPES and (day := day_happened(e)) and week_of(day) not in weekly:
            by_month.setdefault(month_of(monday(week_of(day))), []).append((day, e.path))
    found = []
    for month, members in sorted(by_month.items()):
        first = dt.date.fromisoformat(f"{month}-01")
        last = (first + dt.timedelta(days=31)).replace(day=1) - dt.timedelta(days=1)
        if monday(week_of(last - dt.timedelta(days=(last.weekday() - 3) % 7))) + dt.timedelta(days=6) < today:
            paths = tuple(path for _, path in sorted(members))
            found.append(
                Period(f"reflections/{month}", f"{first:%B %Y}", first=first, last=last, members=paths)
            )
    return found


def month_of(monday: dt.date) -> str:
    return f"{monday + dt.timedelta(days=3):%Y-%m}"


# --- what it is made of


def added_text(node: Node) -> str:
    """What the text of a note says beyond its description, as it is read."""
    main = without_citations(split_history(node.body)[0])
    main = "\n".join(line for line in main.splitlines() if line.strip() and not line.startswith("# "))
    return "" if normalized(main) in normalized(node.description) else main


def substance_tokens(nodes: Sequence[Node]) -> int:
    """Tokens of what notes say, without what tells them apart."""
    return sum(count_tokens(f"{n.description}\n{clip_text(added_text(n), NOTE_TOKENS)}") for n in nodes)


def target_tokens(whole: int, notes: int) -> int:
    """What a reflection on *notes* notes of *whole* tokens is asked to stay below."""
    share = max(int(whole * TARGET_SHARE), TOKENS_A_NOTE * notes)
    return min(LONGEST_REFLECTION, share, int(whole * LARGEST_SHARE))


def not_of_tools(nodes: Sequence[Node]) -> list[Node]:
    """What a reflection on *nodes* is made of: a tool's notes are told by themselves, or, with nothing else, alone."""
    return [n for n in nodes if n.origin != "tool"] or list(nodes)


# --- what is written


def is_enough(nodes: Sequence[Node]) -> bool:
    """Whether there is anything to condense: two reflections, or notes that one would not read at a glance."""
    if sum(n.type == "reflection" for n in nodes) >= 2:
        return True
    return len(nodes) >= LEAST_NOTES and substance_tokens(nodes) >= LEAST_TOKENS


def write_reflection(plan: Plan, period: Period, found: ReflectionDraft, nodes: Sequence[Node]) -> str:
    """
    Draft the reflection, and enter it into the notes it was made of; returns its path. For what rules made, no file is
    opened that a person wrote in.
    """
    linked = [(c.text, ", ".join(wikilink(n.path, n.title) for n in c.notes)) for c in found.claims]
    lines = [f"- {text} ({links})" if text else f"- Also noted: {links}." for text, links in linked]
    node = Node(
        path=period.path,
        id=f"omg/{period.path}",
        description=found.description,
        type="reflection",
        created=plan.day,
        updated=plan.day,
        event=f"{period.first}..{period.last}",
        scope=plan.graph.identity.scope,
        identity=plan.graph.identity.key,
        origin=reduce(weaker_origin, (n.origin for c in found.claims for n in c.notes)),
        generation=max(n.generation for n in nodes) + 1,
        links=(map_of_type("reflection"),),
        tags=(BY_RULE,) * found.by_rule,
        body=f"# {period.title}\n\n" + "\n".join(lines),
    )
    put_page(plan, node)
    for n in nodes:
        if period.path not in n.reflected_in and (plan.draft(n.path).ours or not found.by_rule):
            plan.amend(n.path, reflected_in=(*n.reflected_in, period.path))
    return period.path


def put_page(plan: Plan, node: Node) -> None:
    """Draft a page that we make: a new one, or in the place of ours; what its owner entered in its head stays."""
    try:
        draft = plan.draft(node.path)
    except NotFound:
        plan.drafts[node.path] = NoteDraft(None, node, render_node(node), ours=True)
        plan.maps.add(node)
        return
    old = draft.node
    tags = tuple(dict.fromkeys((*node.tags, *(tag for tag in old.tags if tag != BY_RULE))))
    kept = replace(
        node, created=old.created, pinned=old.pinned, tags=tags, aliases=old.aliases, extra=old.extra
    )
    kept = replace(kept, reflected_in=old.reflected_in, links=old.links or node.links)
    plan.rewrite(draft, kept, Rebase())
