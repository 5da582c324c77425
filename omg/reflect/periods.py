"""
Reflections on weeks and months, made by a model of what was noted in them, and of weeks in turn.

Only what is over is looked back on: whole ISO weeks of notes of all types, whole months of weeks. No note is deleted
or changed but for `reflected_in`. One rule: a claim that names no note it was shown is dropped, and a reply that is
no shorter than what it was made of is no reflection.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from ..dates.days import event_span
from ..errors import BadReply
from ..grounding.judge import LEAST_TOLD
from ..grounding.words import Words, told_words
from ..index.entries import Entry
from ..llm.jsontext import TEXT, TEXTS, cut_out, object_schema
from ..llm.question import Ask, ModelQuestion
from ..node.fields import TYPES
from ..node.maptable import map_of_type
from ..node.markdown import wikilink
from ..node.note import Node
from ..plan.drafts import Plan
from ..plan.edits import one_line, split_history, weaker_origin
from ..tokens import clip_text, count_tokens
from .revise import put_page, without_links
from .topics import normalized, stems_of

WEEK = re.compile(r"reflections/\d{4}-W\d\d")

REFLECTION_SCHEMA = object_schema(
    "description claims",
    description=TEXT,
    claims={"type": "array", "items": object_schema("text notes", text=TEXT, notes=TEXTS)},
)
LEAST_NOTES, LEAST_TOKENS = 3, 80  # below either, the notes are their own summary
# Of its input's tokens that a reflection is asked to stay below; where that is too little for the names of all that
# happened, so many for each note, and at most the larger share.
TARGET_SHARE, TOKENS_A_NOTE, LARGEST_SHARE = 0.5, 8, 0.8
LONGEST_REFLECTION = 800  # tokens of a reflection, however much it is made of
NOTE_TOKENS = 300  # of a note's text that a model is shown
SHOWN_SHARE = 0.5  # of the model's window for what is shown
CLAIM_CHARS, LINE_CHARS = 600, 300

# What the next attempt is told when the last one came out too long. Each asks for less than the one before.
LADDER = (
    "",
    "Say it in fewer claims: join those of one thread, and drop the least important.",
    "Only outcomes now: what was decided, finished, promised or changed, in one sentence each. No course of events.",
    "At most three claims of one short sentence each. Names stay before numbers, and numbers before dates.",
)


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
        return hashlib.sha256("\n".join(self.members).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Claim:
    text: str
    notes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ReflectionDraft:
    description: str
    claims: tuple[Claim, ...]

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
    """The day it happened: its event's, else the day it was said."""
    days = event_span(entry.event)
    return days[0] if days else entry.created


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


# --- what is asked


def reflection_on(
    period: Period, nodes: Sequence[Node], ask: Ask, *, system: str, room: int, agent: str
) -> ReflectionDraft | None:
    """
    A reflection on *nodes*, or None if no attempt gave one that is shorter than they are.

    What does not fit into *room* tokens at once is looked back on in parts. Raises ModelError.
    """
    parts = []
    for part in fitting_parts(nodes, room):
        if (found := ask_until_short(period, part, ask, system=system, agent=agent)) is None:
            return None
        parts.append(found)
    if len(parts) == 1:
        return parts[0]
    said = " ".join(p.description for p in parts)
    return ReflectionDraft(said[:LINE_CHARS], tuple(c for p in parts for c in p.claims))


def fitting_parts(nodes: Sequence[Node], room: int) -> Iterator[list[Node]]:
    """*nodes* in as few parts as *room* tokens allow, of about the same size: a remnant could not be condensed."""
    sizes = [count_tokens(shown_line("e100", n)) for n in nodes]
    share = sum(sizes) / -(-sum(sizes) // room)
    part: list[Node] = []
    spent, full = 0.0, share
    for node, size in zip(nodes, sizes, strict=True):
        if part and spent + size / 2 > full:
            yield part
            part, full = [], full + share
        part.append(node)
        spent += size
    yield part


def ask_until_short(
    period: Period, nodes: Sequence[Node], ask: Ask, *, system: str, agent: str
) -> ReflectionDraft | None:
    """
    Ask up to four times, each time for less; the first reply below the target wins, else the shortest usable one.

    After Mastra's compression ladder, with three differences: the target stands in the question, a retry is
    shown what was too long, and nothing that grew is ever taken: of a reply that did, the first claims, which matter
    most, as far as they are shorter than the notes. None: no reply was of use, and the same question
    would hardly get a better one. A reply that was cut short was too long; what is whole of it counts where none
    came to its end. Raises BadReply if there was no reply at all, which may be different tomorrow.
    """
    shown = {f"e{n}": node for n, node in enumerate(nodes, 1)}
    text = "\n".join(shown_line(handle, node) for handle, node in shown.items())
    whole = substance_tokens(nodes)
    target = target_tokens(whole, len(nodes))
    best, before = None, ""  # type: ReflectionDraft | None, str
    grown: list[ReflectionDraft] = []
    unended: list[ReflectionDraft] = []
    silent: list[BadReply] = []
    for step in LADDER:
        length = f"Stay below {target} tokens in all, about {target * 3 // 4} words. {step}".strip()
        user = f"# {period.title}, {period.first} to {period.last}\n\n{text}\n\n# Length\n\n{length}{before}"
        try:
            reply = ask(ModelQuestion(system, user, schema=REFLECTION_SCHEMA, purpose="reflect", agent=agent))
        except BadReply as e:
            silent.append(e)
            continue
        try:
            found = parse_reflection(reply.text, shown)
        except BadReply as e:
            silent += [e] * reply.cut
            continue
        size = found.tokens
        if reply.cut:
            unended.append(found)
            before = "\n\nYour last answer was far too long: it was cut short."
            continue
        if size < target:
            return found
        if size < whole and (best is None or size < best.tokens):
            best = found
        grown += [found] * (size >= whole)
        lines = "\n".join(f"- {c.text}" for c in found.claims)
        before = f"\n\n# Your last answer, which had {size} tokens\n\n{found.description}\n{lines}"
    if len(silent) == len(LADDER):
        raise silent[-1]
    unended = [found for found in unended if found.tokens < whole]
    return best or next((s for s in (*(cut_claims(g, whole) for g in grown), *unended) if s), None)


def target_tokens(whole: int, notes: int) -> int:
    """What a reflection on *notes* notes of *whole* tokens is asked to stay below."""
    share = max(int(whole * TARGET_SHARE), TOKENS_A_NOTE * notes)
    return min(LONGEST_REFLECTION, share, int(whole * LARGEST_SHARE))


def cut_claims(found: ReflectionDraft, limit: int) -> ReflectionDraft | None:
    """Its first claims, as many as stay below *limit* tokens; None if the first does not."""
    for n in range(len(found.claims) - 1, 0, -1):
        if (shorter := replace(found, claims=found.claims[:n])).tokens < limit:
            return shorter
    return None


def shown_line(handle: str, node: Node) -> str:
    """A note as the model sees it: its line, and what its text adds to that."""
    more = "".join(f"\n    {line}" for line in clip_text(added_text(node), NOTE_TOKENS).splitlines())
    tool = ", tool" if node.origin == "tool" else ""
    return f"{handle} {node.event or node.created} [{node.type}{tool}] {node.title}: {node.description}{more}"


def as_shown(nodes: Sequence[Node]) -> tuple[str, ...]:
    """What a reflection on *nodes* is made of: a reply counts for as long as it is this."""
    return tuple(shown_line(n.path, n) for n in nodes)


def added_text(node: Node) -> str:
    """What the text of a note says beyond its description, as it is read."""
    main = without_links(split_history(node.body)[0])
    main = "\n".join(line for line in main.splitlines() if line.strip() and not line.startswith("# "))
    return "" if normalized(main) in normalized(node.description) else main


def substance_tokens(nodes: Sequence[Node]) -> int:
    """Tokens of what notes say, without what tells them apart."""
    return sum(count_tokens(f"{n.description}\n{clip_text(added_text(n), NOTE_TOKENS)}") for n in nodes)


# --- what comes back


def parse_reflection(text: str, shown: Mapping[str, Node]) -> ReflectionDraft:
    """What of a reply can be stood behind. Raises BadReply if that is nothing."""
    value = cut_out(text, "claims", "text")
    claims: dict[str, Claim] = {}
    for item in value["claims"] if isinstance(value["claims"], list) else ():
        if (claim := to_claim(item, shown)) is not None:
            claims.setdefault(normalized(claim.text), claim)
    if not claims:
        raise BadReply("the reply holds no claim that names a note it was shown")
    said = cleaned_claim(value.get("description"), shown)
    persons = [n for n in shown.values() if n.origin != "tool"]
    if not said or len(said) > LINE_CHARS or not is_told_in(said, persons, shown.values()):
        said = next(iter(claims.values())).text[:LINE_CHARS]
    return ReflectionDraft(said, tuple(claims.values()))


def is_told_in(said: str, notes: Iterable[Node], shown: Iterable[Node]) -> bool:
    """Whether *notes* tell most of what is *said*, each number in it, and whatever else a tool's that is *shown* tells."""
    if not (tools := [n for n in shown if n.origin == "tool"]):
        return True
    there, theirs, words = told_in(notes), told_in(tools), told_words(said)
    return len(there.of(words)) >= LEAST_TOLD * len(words) and all(
        w in there for w in words if w[0].isdigit() or w in theirs
    )


def told_in(notes: Iterable[Node]) -> Words:
    return Words(frozenset().union(*(told_words(f"{n.title} {n.description} {n.body}") for n in notes)))


def to_claim(item: Any, shown: Mapping[str, Node]) -> Claim | None:
    if not isinstance(item, Mapping):
        return None
    said, named = cleaned_claim(item.get("text"), shown), item.get("notes")
    handles = (
        re.findall(r"\w+", named) if isinstance(named, str) else named if isinstance(named, list) else []
    )
    notes = tuple(dict.fromkeys(str(h).strip() for h in handles if str(h).strip() in shown))
    if not said or not notes or len(said) > CLAIM_CHARS:
        return None
    of = grounded_on(said, [shown[h] for h in notes], shown.values())
    return Claim(said, tuple(of)) if is_told_in(said, of, shown.values()) else None


def cleaned_claim(value: Any, shown: Mapping[str, Node]) -> str:
    """One line, without links and without handles: `[[x]]` or "(e3)" would mean nothing, or something else, in a note."""
    said = re.sub(r"[\[\]]", " ", without_links(value)) if isinstance(value, str) else ""
    said = re.sub(
        r"\s{0,9}\([^\w()]{0,9}e\d{1,6}\b(?:[^\w()]{1,9}e\d{1,6}\b)*[^\w()]{0,9}\)",
        lambda m: "" if set(re.findall(r"e\d+", m[0])) <= shown.keys() else m[0],
        said,
    )
    return one_line(said)


def grounded_on(said: str, cited: list[Node], shown: Iterable[Node]) -> list[Node]:
    """
    *cited*, and every tool's note whose words *said* repeats clearly more than theirs.

    A model may credit a person with what a page wanted remembered; so it does not get to choose.
    """
    stems = stems_of(said).keys()
    theirs = share_covered(stems, cited)
    silent = [n for n in shown if n.origin == "tool" and n not in cited]
    return cited + [n for n in silent if (c := share_covered(stems, [n])) >= 0.6 and c > theirs + 0.2]


def share_covered(stems: AbstractSet[str], nodes: Sequence[Node]) -> float:
    there = {s for n in nodes for s in stems_of(f"{n.title} {n.description} {n.body}")}
    return len(stems & there) / len(stems) if stems else 0.0


# --- what is written


def is_enough(nodes: Sequence[Node]) -> bool:
    """Whether there is anything to condense: two reflections, or notes that one would not read at a glance."""
    if sum(n.type == "reflection" for n in nodes) >= 2:
        return True
    return len(nodes) >= LEAST_NOTES and substance_tokens(nodes) >= LEAST_TOKENS


def write_reflection(plan: Plan, period: Period, found: ReflectionDraft, nodes: Sequence[Node]) -> str:
    """Draft the reflection, and enter it into the notes it was made of; returns its path."""
    cited = list({n.path: n for c in found.claims for n in c.notes}.values())
    told = grounded_on(found.description, cited, nodes)
    lines = [f"- {c.text} ({', '.join(wikilink(n.path, n.title) for n in c.notes)})" for c in found.claims]
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
        origin=reduce(weaker_origin, (n.origin for n in told)),
        generation=max(n.generation for n in nodes) + 1,
        links=(map_of_type("reflection"),),
        body=f"# {period.title}\n\n" + "\n".join(lines),
    )
    put_page(plan, node)
    for n in nodes:
        if period.path not in n.reflected_in:
            plan.amend(n.path, reflected_in=(*n.reflected_in, period.path))
    return period.path
