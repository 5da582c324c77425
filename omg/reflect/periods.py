"""Decides which weeks and months need a reflection, and makes the pages.

A page tells what was said in an ISO week or a month that is over, in the words that the notes had at that time."""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate, combinations, groupby, zip_longest
from typing import Any

from ..dates.days import event_span
from ..errors import BadNode, BadReply, NotFound
from ..graph.graph import Graph
from ..index.rows import days_of_note
from ..index.store import Entry
from ..journal import Rebase, changes_since
from ..llm.replies import TEXT, TEXTS, Ask, ModelQuestion, cut_out, object_schema
from ..node.markdown import wikilink
from ..node.note import PRIORITIES, Node, map_of_type, parse_node, render_node
from ..plan.drafts import Plan
from ..plan.edits import NoteDraft, fresh_sentences, one_line, place_of, split_history, weaker_origin
from ..plan.pages import week_of
from ..text.characters import without_citations
from ..text.tokens import clip_text, count_tokens
from ..text.words import split_sentences, stems_of, words_in
from .topics import TopicItem, dot_product, feature_weights, normalized

WEEK = re.compile(r"reflections/\d{4}-W\d\d")

THEN = "then "  # prefix of a digest: the page uses the notes' words of that time. Earlier versions used the present words.
BY_RULE = "by-rule"  # tag of a page that no model wrote

LEAST_NOTES, LEAST_TOKENS = 3, 80  # fewer notes or tokens need no summary
# A reflection should stay below TARGET_SHARE of its input's tokens. The limit is at least TOKENS_A_NOTE for each
# note, so that the reflection can name what happened, and at most LARGEST_SHARE.
TARGET_SHARE, TOKENS_A_NOTE, LARGEST_SHARE = 0.5, 8, 0.8
LONGEST_REFLECTION = 800  # the most tokens of a reflection
NOTE_TOKENS = 300  # of a note's text: so many are counted, and shown to a model
NEWS_TOKENS = 80  # tokens of the text that a week added to a note, if its description stayed the same


@dataclass(frozen=True, slots=True)
class Period:
    """A week or a month that is over. *members*: the day and the path of each note said in the period, sorted."""

    path: str  # "reflections/2026-W08", "reflections/2026-02"
    title: str
    first: dt.date
    last: dt.date
    members: tuple[tuple[dt.date, str], ...]

    @property
    def digest(self) -> str:
        """
        A hash that changes if other notes become *members*.

        A new text of a note does not change the hash, because the page keeps the words that the note had in the
        period.
        """
        return THEN + hashlib.sha256("\n".join(path for _, path in self.members).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Claim:
    text: str  # "": the note is named, not quoted
    notes: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class ReflectionDraft:
    description: str
    claims: tuple[Claim, ...]
    by_rule: bool = False  # no model wrote it; a model may in a later night

    @property
    def tokens(self) -> int:
        return count_tokens("\n".join((self.description, *(c.text for c in self.claims))))


# --- what is due


def month_of(day: dt.date) -> str:
    """The path of the month to which the week of *day* belongs: the month of its Thursday."""
    return f"reflections/{day + dt.timedelta(days=3 - day.weekday()):%Y-%m}"


def monday(week: str) -> dt.date:
    year, number = week.removeprefix("reflections/").split("-W")
    return dt.date.fromisocalendar(int(year), int(number), 1)


Said = Sequence[tuple[dt.date, Entry]]  # (day, note) for each day on which a note was said, sorted by day


def due_periods(said: Said, of: Callable[[dt.date], str], today: dt.date) -> list[Period]:
    """
    Return the weeks or months that are over and worth a reflection, oldest first.

    *of* gives the period of a day. A period is left out if all its notes are preferences or identities. In a period, a
    note is left out if the note that superseded it is in the same period.
    """
    found: dict[str, dict[str, tuple[dt.date, Entry]]] = {}
    for day, e in said:
        found.setdefault(of(day), {})[e.path] = (day, e)
    due = []
    for path, notes in sorted(found.items()):
        if WEEK.fullmatch(path):
            first = monday(path)
            last, title = first + dt.timedelta(days=6), f"Week {first.isocalendar().week} of {path[12:16]}"
        else:
            first = dt.date.fromisoformat(f"{path[12:]}-01")
            last = (first + dt.timedelta(days=31)).replace(day=1) - dt.timedelta(days=1)
            title = f"{first:%B %Y}"
        last_sunday = last + dt.timedelta(days=3 - (last.weekday() - 3) % 7)
        if last_sunday < today and any(e.type not in ("preference", "identity") for _, e in notes.values()):
            kept = sorted((day, p) for p, (day, e) in notes.items() if e.superseded_by not in notes)
            due.append(Period(path, title, first, last, tuple(kept)))
    return due


# --- The notes in the words that they had at that time. A History line holds a former statement and the last day on
# which the note said it. The receipts, as long as they are kept, tell what was added to a text. Only words that are
# still in the note are used, so nothing comes back that a person removed or forgot.


# A History line with a former statement. Lines about merging, replacing or closing do not match.
STATEMENT = re.compile(
    r"- (\d{4}-\d\d-\d\d): (?!\[\[|took over: |replaced by \[\[|closed, as its day |the assistant, in \[\[)(.+)"
)


def note_in_week(draft: NoteDraft, day: dt.date, zone: dt.tzinfo, added: str) -> Node:
    """
    Return the note as it was at the end of the week of *day*.

    If the note's statement changed in that week, the description also has the former statement: "… Before: …". *added*:
    the text that the week added to the note; "" if unknown. A note that a person edited is taken as it is now.
    """
    node, first = draft.node, monday(week_of(day))
    if node.type == "reflection":
        return node
    after = first + dt.timedelta(days=7)
    said = days_of_note(node, zone) or [day]
    main, lines = split_history(node.body)
    dated = [(event_span(m[1]), without_citations(m[2])) for line in lines if (m := STATEMENT.match(line))]
    former = sorted(((days[0], text) for days, text in dated if days), key=lambda state: state[0])
    if draft.stated:
        return replace(node, body=main)
    added = "\n".join(s.strip() for s in split_sentences(added) if place_of(s, node.body))
    states = [*(state for state in former if state[0] <= said[-1]), (said[-1], node.description)]
    older, until = (sum(on < limit for on, _ in states) for limit in (first, after))
    then = until - 1 if until > older else min(older, len(states) - 1)
    # The last statement before the week was still current when the week began, unless the note was said again
    # after that statement and before the week.
    began = not any(on < first and (not older or on > states[older - 1][0]) for on in said)
    now = states[then][1]
    told, before = stems_of(now).keys(), states[max(0, older - 1) if began else older : then]
    if was := next((text for _, text in reversed(before) if not stems_of(text).keys() <= told), ""):
        now = f"{now} Before: {was}"
    elif added and said[0] < first:
        now = one_line(clip_text(added, NEWS_TOKENS))
    return replace(node, description=now, body=added or (main if said[-1] < after else ""))


def added_texts(graph: Graph, due: Sequence[Period]) -> dict[tuple[str, str], str]:
    """
    (week, path of a note) → the text that the week added to the note, according to the receipts. New notes are left
    out.
    """
    members = [member for period in due for member in period.members]
    paths, first = {path for _, path in members}, min((day for day, _ in members), default=None)
    found: dict[tuple[str, str], str] = {}
    for c in changes_since(graph, first) if first else ():
        if not (c.path in paths and c.before and c.after):
            continue
        with suppress(BadNode):
            old, new = parse_node(c.before, c.path), parse_node(c.after, c.path)
            fresh = fresh_sentences(split_history(old.body)[0], split_history(new.body)[0])
            if fresh and (days := {*days_of_note(new, graph.zone)} - {*days_of_note(old, graph.zone)}):
                key = week_of(max(days)), c.path
                found[key] = f"{found[key]}\n{fresh}" if key in found else fresh
    return found


def added_text(node: Node) -> str:
    """The text of a note beyond its description."""
    main = without_citations(split_history(node.body)[0])
    main = "\n".join(line for line in main.splitlines() if line.strip() and not line.startswith("# "))
    return "" if normalized(main) in normalized(node.description) else main


def substance_tokens(nodes: Sequence[Node]) -> int:
    """Count the tokens of the notes' descriptions and shortened texts, without handles and dates."""
    return sum(count_tokens(f"{n.description}\n{clip_text(added_text(n), NOTE_TOKENS)}") for n in nodes)


def target_tokens(whole: int, notes: int) -> int:
    """The tokens that a reflection should stay below. *whole*: the tokens of the notes; *notes*: their number."""
    share = max(int(whole * TARGET_SHARE), TOKENS_A_NOTE * notes)
    return min(LONGEST_REFLECTION, share, int(whole * LARGEST_SHARE))


def not_of_tools(nodes: Sequence[Node]) -> list[Node]:
    """*nodes* without tools' notes; all of *nodes* if every note is a tool's."""
    return [n for n in nodes if n.origin != "tool"] or list(nodes)


# --- what is written


def is_enough(nodes: Sequence[Node]) -> bool:
    """Whether *nodes* are worth condensing: two reflections, or LEAST_NOTES notes with LEAST_TOKENS tokens."""
    if sum(n.type == "reflection" for n in nodes) >= 2:
        return True
    return len(nodes) >= LEAST_NOTES and substance_tokens(nodes) >= LEAST_TOKENS


def write_reflection(plan: Plan, period: Period, found: ReflectionDraft, nodes: Sequence[Node]) -> str:
    """
    Draft the page of a reflection, and return the path of the page. Each note in *nodes* gets the page in its
    `reflected_in`. If rules wrote the page, notes that a person edited stay unchanged.
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
    """Draft a generated page, or draft anew the page that OMG wrote before. Keeps the properties that a person set."""
    try:
        draft = plan.draft(node.path)
    except NotFound:
        plan.drafts[node.path] = NoteDraft(None, node, render_node(node), ours=True)
        plan.maps.add(node)
        return
    old = draft.node
    tags = tuple(dict.fromkeys((*node.tags, *(tag for tag in old.tags if tag != BY_RULE))))
    of_old = {name: getattr(old, name) for name in "created pinned aliases extra reflected_in".split()}
    plan.rewrite(draft, replace(node, tags=tags, links=old.links or node.links, **of_old), Rebase())


# --- A week or a month without a model: its notes by thread, in their own words, shorter than the notes.


# The least cosine of two notes of one thread. Words that most notes of the week have do not count.
SAME_THREAD = 0.25
NOTES_NAMED = 3  # in the description


def notes_by_thread(nodes: Sequence[Node]) -> ReflectionDraft | None:
    """
    Make a reflection on *nodes* by rule. *nodes* are in order of time. None if the reflection would not be shorter
    than *nodes*, or if every note is a tool's.
    """
    threads = threads_of([n for n in nodes if n.origin != "tool"])
    if not threads:
        return None
    whole = substance_tokens(nodes)
    target = target_tokens(whole, len(nodes))
    line = best_named(threads)
    spent, said = count_tokens(line), set[str]()
    for node in best_of_each(threads):
        spent += count_tokens(f"\n{node.description}")
        if said and spent >= target:
            break
        said.add(node.path)
    in_order = [n for thread in threads for n in thread]
    claims = [Claim(n.description, (n,)) for n in in_order if n.path in said]
    if rest := [n for n in in_order if n.path not in said]:
        claims.append(Claim("", tuple(rest)))
    found = ReflectionDraft(line, tuple(claims), by_rule=True)
    return found if found.tokens < whole else None


def threads_of(nodes: Sequence[Node]) -> list[list[Node]]:
    """
    Group notes that link to one another or share distinctive words, the most important group first. In a month, each
    weekly reflection is a group of its own.
    """
    import networkx

    weights = feature_weights(
        [TopicItem(n.path, n.title, n.description, frozenset(f"#{t}" for t in n.tags)) for n in nodes]
    )
    together = networkx.Graph()
    together.add_nodes_from(range(len(nodes)))
    for a, b in combinations(range(len(nodes)), 2):
        if "reflection" in (nodes[a].type, nodes[b].type):
            continue
        if are_linked(nodes[a], nodes[b]) or dot_product(weights[a], weights[b]) >= SAME_THREAD:
            together.add_edge(a, b)
    found = [[nodes[n] for n in sorted(part)] for part in networkx.connected_components(together)]
    return sorted(found, key=lambda t: (min(map(rank_of, t)), -len(t)))


def are_linked(a: Node, b: Node) -> bool:
    return a.path in (*b.links, *b.wikilinks) or b.path in (*a.links, *a.wikilinks)


def rank_of(node: Node) -> int:
    return PRIORITIES.index(node.priority)


def best_of_each(threads: Sequence[Sequence[Node]]) -> Iterator[Node]:
    """
    Yield the most important note of each thread, then the second of each, and so on. On a tie, the newer note comes
    first.
    """
    ranked = [
        [node for *_, node in sorted((rank_of(node), -n, node) for n, node in enumerate(thread))]
        for thread in threads
    ]
    for turn in zip_longest(*ranked):
        yield from (node for node in turn if node is not None)


def best_named(threads: Sequence[Sequence[Node]]) -> str:
    """
    One line on the whole period: the titles of the best notes of each thread. For a weekly reflection, the first part
    of its description stands in place of a title.
    """
    names = [
        n.description.partition(";")[0] if n.type == "reflection" else n.title for n in best_of_each(threads)
    ]
    more = len(names) - NOTES_NAMED
    return "; ".join([*names[:NOTES_NAMED], *([f"{more} more"] if more > 0 else [])])


# --- What a model says about a week or a month. A claim that names none of the notes shown is dropped.


REFLECTION_SCHEMA = object_schema(
    "description claims",
    description=TEXT,
    claims={"type": "array", "items": object_schema("text notes", text=TEXT, notes=TEXTS)},
)
SHOWN_SHARE = 0.5  # share of the model's window for the notes shown
CLAIM_CHARS, LINE_CHARS = 600, 300

# After Mastra's compression ladder; here the question names the target, and shows the reply that was too long.
# Added to the question when the last reply was too long. Each step asks for less.
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
    Ask a model for a reflection on *nodes*. None if no reply was shorter than *nodes*.

    If *nodes* do not fit into *room* tokens, the model is asked about them in parts. Raises ModelError.
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


def fitting_parts(nodes: Sequence[Node], room: int) -> list[list[Node]]:
    """
    Split *nodes* into as few parts as *room* tokens allow. The parts have about the same size, because a small last
    part could not be condensed.
    """
    sizes = [count_tokens(shown_line("e100", n)) for n in nodes]
    share = sum(sizes) / -(-sum(sizes) // room)
    middles = (end - size / 2 for end, size in zip(accumulate(sizes), sizes, strict=True))
    parts = groupby(zip(middles, nodes, strict=True), lambda at: int(at[0] / share))
    return [[node for _, node in part] for _, part in parts]


def ask_until_short(
    period: Period, nodes: Sequence[Node], ask: Ask, *, system: str, agent: str
) -> ReflectionDraft | None:
    """
    Ask up to four times, each time for a shorter reflection. Return the first that is short enough.

    If none is short enough, returns the first of these that is shorter than the notes:
    - the shortest complete reply
    - a complete reply without its last claims
    - the complete claims of a reply that was cut short

    Returns None if nothing is shorter. Raises BadReply if every reply was missing, or cut short and unreadable.
    """
    shown = {f"e{n}": node for n, node in enumerate(nodes, 1)}
    text = "\n".join(shown_line(handle, node) for handle, node in shown.items())
    whole, before = substance_tokens(nodes), ""
    target = target_tokens(whole, len(nodes))
    ended: list[ReflectionDraft] = []
    unended: list[ReflectionDraft] = []
    silent: list[BadReply] = []
    for step in LADDER:
        length = f"Stay below {target} tokens in all, about {target * 3 // 5} words. {step}".strip()
        user = f"# {period.title}, {period.first} to {period.last}\n\n{text}\n\n# Length\n\n{length}{before}"
        cut = True
        try:
            reply = ask(ModelQuestion(system, user, schema=REFLECTION_SCHEMA, purpose="reflect", agent=agent))
            cut = reply.cut
            found = parse_reflection(reply.text, shown)
        except BadReply as e:
            silent += [e] * cut
            continue
        if cut:
            unended.append(found)
            before = "\n\nYour last answer was far too long: it was cut short."
            continue
        if found.tokens < target:
            return found
        ended.append(found)
        lines = "\n".join(f"- {c.text}" for c in found.claims)
        before = f"\n\n# Your last answer, which had {found.tokens} tokens\n\n{found.description}\n{lines}"
    if len(silent) == len(LADDER):
        raise silent[-1]
    ended.sort(key=lambda found: found.tokens)
    shorter = (replace(f, claims=f.claims[:n]) for f in ended for n in range(len(f.claims) - 1, 0, -1))
    return next((found for found in (*ended[:1], *shorter, *unended) if found.tokens < whole), None)


def shown_line(handle: str, node: Node) -> str:
    """A note as the model sees it: one line, then the rest of the note's text."""
    more = "".join(f"\n    {line}" for line in clip_text(added_text(node), NOTE_TOKENS).splitlines())
    by = f", {node.origin}" if node.origin in ("tool", "assistant") else ""
    return f"{handle} {node.event or node.created} [{node.type}{by}] {node.title}: {node.description}{more}"


# --- what comes back


def parse_reflection(text: str, shown: Mapping[str, Node]) -> ReflectionDraft:
    """
    Read the description and the claims from *text*, the model's reply.

    A claim is kept only if the claim names a note in *shown*, the notes that the model was shown. Raises BadReply if no
    claim is kept.
    """
    value = cut_out(text, "claims", "text")
    claims: dict[str, Claim] = {}
    for item in value["claims"] if isinstance(value["claims"], list) else ():
        if (claim := to_claim(item, shown)) is not None:
            claims.setdefault(normalized(claim.text), claim)
    if not claims:
        raise BadReply("no claim of the reply names a note that was shown")
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


def cleaned_claim(value: Any, shown: Mapping[str, object]) -> str:
    """Put a claim on one line, without links and handles, which mean nothing in a note."""
    said = re.sub(r"[\[\]]", " ", without_citations(value)) if isinstance(value, str) else ""
    said = re.sub(
        r"\s{0,9}\([^\w()]{0,9}e\d{1,6}\b(?:[^\w()]{1,9}e\d{1,6}\b)*[^\w()]{0,9}\)",
        lambda m: "" if set(re.findall(r"e\d+", m[0])) <= shown.keys() else m[0],
        said,
    )
    return one_line(said)
