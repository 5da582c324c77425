"""
Reflections on weeks, months and projects: which are due, and their pages.

Only whole ISO weeks and months that are over get a page. Of the notes, only the property `reflected_in` is changed.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations, zip_longest
from typing import Any

from ..dates.days import event_span
from ..errors import BadReply, NotFound
from ..index.store import Entry
from ..journal import Rebase
from ..llm.replies import TEXT, TEXTS, Ask, ModelQuestion, cut_out, object_schema
from ..node.fields import PRIORITIES, TYPES, map_of_type
from ..node.markdown import wikilink
from ..node.note import Node, render_node
from ..plan.drafts import Plan
from ..plan.edits import NoteDraft, one_line, split_history, weaker_origin
from ..text.characters import without_citations
from ..text.tokens import clip_text, count_tokens
from ..text.words import words_in
from .topics import TopicItem, dot_product, feature_weights, normalized

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
    """Tokens of the notes' descriptions and shortened texts, without handles and dates."""
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


# --- A week or a month without a model: its notes by thread, in their own words.
#
# Pure and deterministic. The page says only what the notes say, leaves out what tools said, and is shorter than the
# notes.


SAME_THREAD = 0.25  # cosine of two notes' words; in a week, those that most of its notes have count nothing
THREADS_NAMED = 3  # threads that the line on the whole names


def notes_by_thread(nodes: Sequence[Node]) -> ReflectionDraft | None:
    """What *nodes*, in the order they happened, come to; None if that is no shorter, or all of it is a tool's."""
    threads = threads_of([n for n in nodes if n.origin != "tool"])
    if not threads:
        return None
    whole = substance_tokens(nodes)
    target = target_tokens(whole, len(nodes))
    line = threads_named(threads)
    spent, said = count_tokens(line), set[str]()
    for node in best_of_each(threads):
        spent += count_tokens(f"\n{node.description}")
        if said and spent >= target:
            break
        said.add(node.path)
    claims = [
        Claim(" ".join(n.description for n in thread if n.path in said), tuple(thread))
        for thread in threads
        if any(n.path in said for n in thread)
    ]
    if rest := [n for thread in threads if said.isdisjoint(n.path for n in thread) for n in thread]:
        claims.append(Claim("", tuple(rest)))
    found = ReflectionDraft(line, tuple(claims), by_rule=True)
    return found if found.tokens < whole else None


def threads_of(nodes: Sequence[Node]) -> list[list[Node]]:
    """
    Groups of notes that link to one another or share distinctive words; the most important first. A week
    of a month is a thread of its own.
    """
    heads = list(range(len(nodes)))

    def head(n: int) -> int:
        while heads[n] != n:
            n = heads[n]
        return n

    weights = feature_weights(
        [TopicItem(n.path, n.title, n.description, frozenset(f"#{t}" for t in n.tags)) for n in nodes]
    )
    for a, b in combinations(range(len(nodes)), 2):
        if "reflection" in (nodes[a].type, nodes[b].type):
            continue
        if are_linked(nodes[a], nodes[b]) or dot_product(weights[a], weights[b]) >= SAME_THREAD:
            heads[head(b)] = head(a)
    found: dict[int, list[Node]] = {}
    for n, node in enumerate(nodes):
        found.setdefault(head(n), []).append(node)
    return sorted(found.values(), key=lambda t: (min(map(rank_of, t)), -len(t)))


def are_linked(a: Node, b: Node) -> bool:
    return a.path in (*b.links, *b.wikilinks) or b.path in (*a.links, *a.wikilinks)


def rank_of(node: Node) -> int:
    return PRIORITIES.index(node.priority)


def best_of_each(threads: Sequence[Sequence[Node]]) -> Iterator[Node]:
    """The most important note of each thread, then the second of each, and so on; of equals the newest first."""
    ranked = [
        [node for *_, node in sorted((rank_of(node), -n, node) for n, node in enumerate(thread))]
        for thread in threads
    ]
    for turn in zip_longest(*ranked):
        yield from (node for node in turn if node is not None)


def threads_named(threads: Sequence[Sequence[Node]]) -> str:
    """One line on the whole: its threads, each by the title of its best note, a week's by what comes first in it."""
    best = [node for node, _ in zip(best_of_each(threads), threads, strict=False)]
    names = [n.description.partition(";")[0] if n.type == "reflection" else n.title for n in best]
    more = len(names) - THREADS_NAMED
    return "; ".join([*names[:THREADS_NAMED], *([f"{more} more"] if more > 0 else [])])


# --- What a model says of a week or a month: asked for less until it is short, and held against the notes it was shown.
#
# A claim that names none of the notes shown is dropped. A reply that is not shorter than its notes is refused.


REFLECTION_SCHEMA = object_schema(
    "description claims",
    description=TEXT,
    claims={"type": "array", "items": object_schema("text notes", text=TEXT, notes=TEXTS)},
)
SHOWN_SHARE = 0.5  # of the model's window for what is shown
CLAIM_CHARS, LINE_CHARS = 600, 300

# What the next attempt is told when the last one came out too long. Each asks for less than the one before.
LADDER = (
    "",
    "Say it in fewer claims: join those of one thread, and drop the least important.",
    "Only outcomes now: what was decided, finished, promised or changed, in one sentence each. No course of events.",
    "At most three claims of one short sentence each. Names stay before numbers, and numbers before dates.",
)


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
    """*nodes* in as few parts as *room* tokens allow. The parts are of about the same size, because a small rest
    could not be condensed."""
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


def cut_claims(found: ReflectionDraft, limit: int) -> ReflectionDraft | None:
    """Its first claims, as many as stay below *limit* tokens; None if the first does not."""
    for n in range(len(found.claims) - 1, 0, -1):
        if (shorter := replace(found, claims=found.claims[:n])).tokens < limit:
            return shorter
    return None


def shown_line(handle: str, node: Node) -> str:
    """A note as the model sees it: its line, and the rest of its text."""
    more = "".join(f"\n    {line}" for line in clip_text(added_text(node), NOTE_TOKENS).splitlines())
    by = f", {node.origin}" if node.origin in ("tool", "assistant") else ""
    return f"{handle} {node.event or node.created} [{node.type}{by}] {node.title}: {node.description}{more}"


def as_shown(nodes: Sequence[Node]) -> tuple[str, ...]:
    """What a reflection on *nodes* is made of: a reply counts for as long as it is this."""
    return tuple(shown_line(n.path, n) for n in nodes)


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
    if not said or len(said) > LINE_CHARS:
        said = next(iter(claims.values())).text[:LINE_CHARS]
    return ReflectionDraft(said, tuple(claims.values()))


def to_claim(item: Any, shown: Mapping[str, Node]) -> Claim | None:
    if not isinstance(item, Mapping):
        return None
    said, named = cleaned_claim(item.get("text"), shown), item.get("notes")
    handles = words_in(named) if isinstance(named, str) else named if isinstance(named, list) else []
    notes = tuple(dict.fromkeys(str(h).strip() for h in handles if str(h).strip() in shown))
    if not said or not notes or len(said) > CLAIM_CHARS:
        return None
    return Claim(said, tuple(shown[h] for h in notes))


def cleaned_claim(value: Any, shown: Mapping[str, Node]) -> str:
    """One line, without links and without handles: `[[x]]` or "(e3)" would mean nothing, or something else, in a note."""
    said = re.sub(r"[\[\]]", " ", without_citations(value)) if isinstance(value, str) else ""
    said = re.sub(
        r"\s{0,9}\([^\w()]{0,9}e\d{1,6}\b(?:[^\w()]{1,9}e\d{1,6}\b)*[^\w()]{0,9}\)",
        lambda m: "" if set(re.findall(r"e\d+", m[0])) <= shown.keys() else m[0],
        said,
    )
    return one_line(said)
