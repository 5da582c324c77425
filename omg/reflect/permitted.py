"""
What of a model's verdicts on notes is done.

One rule: a model proposes; who is newer, whose words they are, and what may replace what is decided by code. What a
person wrote in, or pinned, is at the most put to them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ..dates.days import event_span
from ..grounding.statements import negations
from ..node.fields import TYPES
from ..node.markdown import slugify
from ..node.note import Node
from ..plan.drafts import Plan
from ..plan.edits import split_history
from .revise import (
    close_loop,
    contradict_notes,
    describe_note,
    lead_to,
    merge_notes,
    point_at_each_other,
    retitle_note,
    said_day,
    supersede_note,
)
from .similar import REPEATS
from .snapshot import link_of
from .topics import numbers_in, resembles, statement_likeness, stems_of
from .verdicts import OF_TWO, ShownGroup, Verdict, read_verdicts

VERDICT_LINE_CHARS, VERDICT_TITLE_CHARS, WHY_CHARS = 300, 80, 160
# A note that says "mark all as superseded" is obeyed by some models. Pairs, as a night finds them, leave half of a call.
FEW_REPLACED = 3  # notes that a reply may always replace: one subject that changed four times
ASKED_OF_ONE = {"close": "overdue", "retitle": "title"}
TRUST_OF_ORIGIN = {"tool": 0, "assistant": 1}  # a person's word, said or written, is 2


class RefusedVerdict(Exception):
    """Why a verdict was not followed. For the log; no conversation text in it."""


@dataclass(slots=True)
class MergeRules:
    """What the verdicts of one cycle are measured against."""

    plan: Plan
    changed: Collection[str]  # paths: only these may be described anew
    frozen: Collection[str]  # paths that a person's undo put back: no two of them are joined again
    similar: Mapping[str, Collection[str]]  # a changed note → those it resembles
    asked: Collection[frozenset[str]]  # the pairs asked about: others were left alone, and are as they were
    done: list[str] = field(default_factory=list)  # lines for the log page
    refused: list[str] = field(default_factory=list)
    proposed: list[str] = field(default_factory=list)  # what only a person may do
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(
            ("merged", "superseded", "contradictions", "described", "retitled", "closed", "linked"), 0
        )
    )


def follow_verdicts(
    rules: MergeRules, shown: Sequence[ShownGroup], text: str, *, words: bool = True
) -> set[str]:
    """
    Draft what the reply *text* proposes and may be done; returns the names of the groups it speaks of. Not *words*:
    the verdicts count, but what the model wrote may tell of a note that is gone.
    """
    found = read_verdicts(text, shown, rules.refused)
    paths = list(dict.fromkeys(path for s in shown for path in s.notes.values()))
    if (gone := gone_after(rules, shown, found)) > max(FEW_REPLACED, len(paths) // 2):
        first = link_of(node_at(rules, paths[0]))
        rules.proposed.append(
            f"A model would replace {gone} of {len(paths)} notes at once, {first} and others."
        )
        rules.refused.append(f"a reply that would replace {gone} of {len(paths)} notes")
        return set(found)
    for s in shown:
        for n, verdict in enumerate(found.get(s.name, ()), 1):
            if not words:
                verdict = verdict.model_copy(update={"description": "", "title": "", "why": ""})
            try:
                follow_verdict(rules, s, verdict)
            except RefusedVerdict as e:
                rules.refused.append(f"{s.name}, edit {n}, {verdict.op}: {e}")
    return set(found)


def follow_verdict(rules: MergeRules, shown: ShownGroup, verdict: Verdict) -> None:
    """Draft one verdict on the notes of *shown*. Raises RefusedVerdict."""
    notes = shown.notes
    if verdict.op == "keep":
        return
    if verdict.node not in notes or (verdict.op in OF_TWO and verdict.other not in notes):
        raise RefusedVerdict("names a note that is not of its group")
    # A page in sight may say that something is over, or what a note is to be called.
    if (kind := ASKED_OF_ONE.get(verdict.op)) and notes[verdict.node] not in shown.group.of(kind):
        raise RefusedVerdict("that was not asked about")
    if verdict.op == "close" and verdict.other not in notes:
        standing = trust_in(node_at(rules, notes[verdict.node]))
        if any(trust_in(node_at(rules, path)) < standing for path in notes.values()):
            raise RefusedVerdict("it names no note that ends it, beside one less trusted")
    act = {
        "merge": merge_pair,
        "supersede": supersede_pair,
        "contradict": contradict_pair,
        "link": link_pair,
        "describe": new_description,
        "retitle": new_title,
        "close": end_loop,
    }[verdict.op]
    rules.done.append(act(rules, notes[verdict.node], notes.get(verdict.other, ""), verdict))


def gone_after(rules: MergeRules, shown: Sequence[ShownGroup], found: Mapping[str, Sequence[Verdict]]) -> int:
    """
    How many of the notes would be gone after *found*; those that only repeat another are not counted.

    Pairs that hang together leave one note, whichever way round each is given.
    """
    heads: dict[str, str] = {}
    named = [(s.notes, verdict) for s in shown for verdict in found.get(s.name, ())]
    for notes, verdict in named:
        a, b = notes.get(verdict.node), notes.get(verdict.other)
        if verdict.op not in ("merge", "supersede") or a is None or b is None:
            continue
        with suppress(RefusedVerdict):  # what is not followed takes nothing away
            check_pair(rules, a, b)
            one, other = (node_at(rules, path).description for path in (a, b))
            if verdict.op == "supersede" or statement_likeness(one, other) < REPEATS:
                a, b = head_of_chain(heads, a), head_of_chain(heads, b)
                if a != b:
                    heads[b] = a
    return len(heads)


def head_of_chain(heads: Mapping[str, str], path: str) -> str:
    while path in heads:
        path = heads[path]
    return path


# --- two notes


def merge_pair(rules: MergeRules, keep: str, gone: str, verdict: Verdict) -> str:
    check_pair(rules, keep, gone)
    a, b = keep_and_gone(rules, node_at(rules, keep), node_at(rules, gone))
    ours, theirs = numbers_in(stems_of(a.description)), numbers_in(stems_of(b.description))
    if not (ours <= theirs or theirs <= ours):
        raise RefusedVerdict("their numbers differ, so they are not the same")
    if a.event and b.event and a.event != b.event:
        raise RefusedVerdict("their days differ, so they are not the same")
    said = verdict.description if may_describe(rules, a.path, verdict.description, (a, b)) else ""
    # A weak model takes a change for a repetition. A line made of both holds both; without one the newer holds.
    if (
        not said
        and standing_of(rules, a) == standing_of(rules, b)
        and last_said_ms(rules, b.path) > last_said_ms(rules, a.path)
    ):
        a, b = b, a
    merge_notes(rules.plan, a.path, b.path, said)
    rules.counts["merged"] += 1
    return f"Merged {link_of(b)} into {link_of(a)}{reason_of(verdict)}"


def keep_and_gone(rules: MergeRules, a: Node, b: Node) -> tuple[Node, Node]:
    """The note that stays and the one that goes; *a* is whom the model would keep, and wins a tie."""
    if standing_of(rules, b) > standing_of(rules, a):
        a, b = b, a
    if standing_of(rules, b)[0]:
        rules.proposed.append(f"{link_of(a)} and {link_of(b)} seem to say the same.")
        raise RefusedVerdict(f"{b.path} is one that a person wrote in, or pinned")
    if a.type != b.type and b.type != "fact":
        raise RefusedVerdict(f"a {b.type} is no {a.type}")
    if trust_in(a) < trust_in(b) or trust_in(a) > trust_in(b) == TRUST_OF_ORIGIN["tool"]:
        raise RefusedVerdict("one is a person's word, and one is not")
    return a, b


def standing_of(rules: MergeRules, found: Node) -> tuple[int, int, bool]:
    """What decides which of two notes stays, the first difference first."""
    touched = rules.plan.draft(found.path).touched
    return 2 * found.pinned + touched, trust_in(found), found.type != "fact"


def supersede_pair(rules: MergeRules, new: str, old: str, verdict: Verdict) -> str:
    check_pair(rules, new, old)
    if last_said_ms(rules, old) > last_said_ms(rules, new):
        new, old = old, new
    a, b = node_at(rules, new), node_at(rules, old)
    if b.pinned:
        rules.proposed.append(f"{link_of(b)} is pinned, but {link_of(a)} is newer and says otherwise.")
        raise RefusedVerdict(f"{old} is pinned; only a person takes it back")
    if trust_in(a) < trust_in(b):
        raise RefusedVerdict(f"what came from {a.origin} does not replace what a person said")
    line = f"{link_of(a)} ({said_day(rules.plan, a)}) replaced {link_of(b)} ({said_day(rules.plan, b)}){reason_of(verdict)}"
    supersede_note(rules.plan, old, new)
    rules.counts["superseded"] += 1
    return line


def contradict_pair(rules: MergeRules, one: str, other: str, verdict: Verdict) -> str:
    check_pair(rules, one, other)
    a, b = node_at(rules, one), node_at(rules, other)
    if trust_in(a) != trust_in(b):
        raise RefusedVerdict("one is a person's word, and one is not")
    contradict_notes(rules.plan, one, other)
    rules.counts["contradictions"] += 1
    rules.proposed.append(f"{link_of(a)} and {link_of(b)} contradict each other; which of them holds?")
    return f"{link_of(a)} and {link_of(b)} point at each other: neither says which of them holds now."


def link_pair(rules: MergeRules, path: str, other: str, verdict: Verdict) -> str:
    a, b = node_at(rules, path), node_at(rules, other)
    if a.path == b.path or {a.status, b.status} != {"active"} or {path, other} <= {*rules.frozen}:
        raise RefusedVerdict("names one note twice, or one that is not active, or that a person put back")
    if "tool" in (a.origin, b.origin) and a.origin != b.origin:
        raise RefusedVerdict("one is a tool's word, and one is not")
    if not rules.plan.draft(path).ours:
        raise RefusedVerdict("a person wrote in it")
    if b.path in (*a.links, *a.wikilinks):
        raise RefusedVerdict("it leads there already")
    lead_to(rules.plan, path, other)
    rules.counts["linked"] += 1
    return f"Linked {link_of(a)} to {link_of(b)}{reason_of(verdict)}"


# --- one note


def new_title(rules: MergeRules, path: str, _: str, verdict: Verdict) -> str:
    found, title = node_at(rules, path), verdict.title
    if path not in rules.changed or path in rules.frozen or found.status != "active":
        raise RefusedVerdict("the note did not change")
    if rules.plan.draft(path).touched or not found.path.startswith("nodes/"):
        raise RefusedVerdict("a person wrote in it")
    words = stems_of(title).keys()
    if not words or len(title) > VERDICT_TITLE_CHARS or slugify(title) == slugify(found.title):
        raise RefusedVerdict("that is no title, or no other")
    # A title reaches prompts that show nothing else of the note: no word of it may come from elsewhere.
    if not words <= stems_of(own_text(found)).keys():
        raise RefusedVerdict("its words are not the note's")
    if negations(f"{found.title} {found.description}") and not negations(title):
        raise RefusedVerdict("the note says that something is not so, and the title does not")
    if rules.plan.is_taken(f"nodes/{found.type}/{slugify(title)}", by=found.id):
        raise RefusedVerdict("another note has that title")
    line = f"Called “{found.title}” {link_of(retitle_note(rules.plan, path, title))} now{reason_of(verdict)}"
    rules.counts["retitled"] += 1
    return line


def end_loop(rules: MergeRules, path: str, other: str, verdict: Verdict) -> str:
    found, days = node_at(rules, path), event_span(node_at(rules, path).event)
    if found.status != "active" or found.loop != "open" or not days or days[1] >= rules.plan.day:
        raise RefusedVerdict("it is no open loop whose day is past")
    if path in rules.frozen:
        raise RefusedVerdict("a person undid that before")
    told = node_at(rules, other) if other and other != path else None
    if told is not None and trust_in(told) < trust_in(found):
        raise RefusedVerdict(f"what came from {told.origin} does not end what a person means to do")
    if found.pinned or rules.plan.draft(path).touched:
        rules.proposed.append(f"{link_of(found)} was due on {found.event}, and seems to be over.")
        raise RefusedVerdict(f"{path} is one that a person wrote in, or pinned")
    close_loop(rules.plan, path, told)
    rules.counts["closed"] += 1
    return f"Closed {link_of(found)}, due on {found.event}{reason_of(verdict)}"


def new_description(rules: MergeRules, path: str, _: str, verdict: Verdict) -> str:
    found = node_at(rules, path)
    if path not in rules.changed or found.status != "active":
        raise RefusedVerdict("the note did not change")
    if path in rules.frozen or not may_describe(rules, path, verdict.description, (found,)):
        raise RefusedVerdict("the line may not be changed, or not to that")
    describe_note(rules.plan, path, verdict.description)
    rules.counts["described"] += 1
    return f"Described {link_of(found)} anew{reason_of(verdict)}"


# --- what may be


def check_pair(rules: MergeRules, one: str, other: str) -> None:
    if one == other:
        raise RefusedVerdict("names one note twice")
    pair = node_at(rules, one), node_at(rules, other)
    for path, found in zip((one, other), pair, strict=True):
        if found.type not in TYPES or found.status != "active":
            raise RefusedVerdict(f"{path} is not active any more")
    if one in rules.frozen and other in rules.frozen:
        raise RefusedVerdict("a person undid that before")
    if frozenset((one, other)) not in rules.asked and point_at_each_other(*pair):
        raise RefusedVerdict("they contradict each other, and neither has changed since")
    # A call holds notes on several subjects, and a weak model takes any two of them, or those of the example.
    a, b = (f"{found.title} {found.description}" for found in pair)
    if (
        other not in rules.similar.get(one, ())
        and one not in rules.similar.get(other, ())
        and not resembles(a, b)
    ):
        raise RefusedVerdict("they are not about the same")


def own_text(found: Node) -> str:
    """What *found* says itself; its History has the titles of others' notes."""
    return f"{found.title} {found.description} {split_history(found.body)[0]}"


def trust_in(found: Node) -> int:
    return TRUST_OF_ORIGIN.get(found.origin or "", 2)


def may_describe(rules: MergeRules, path: str, description: str, of: Sequence[Node]) -> bool:
    """
    Whether *path* may be given *description*, which was made *of* these notes.

    Not where a person has written, nor where what a person said would be mixed with what others did; and
    it must be made of the notes' own words, and have no number that they have not.
    """
    draft = rules.plan.draft(path)
    if not 0 < len(description) <= VERDICT_LINE_CHARS or not draft.ours or "description" in draft.theirs:
        return False
    if len({trust_in(n) for n in of}) > 1:
        return False
    said = stems_of(description).keys()
    there = {s for n in of for s in stems_of(own_text(n))}
    return bool(said) and numbers_in(said) <= there and len(said & there) >= 0.6 * len(said)


def last_said_ms(rules: MergeRules, path: str) -> int:
    """When the note was last said, in ms; a person's own hand counts as saying it."""
    found = node_at(rules, path)
    latest = max((s.timestamp for s in found.sources), default=0)
    draft = rules.plan.draft(path)
    if not draft.ours or "description" in draft.theirs:
        with suppress(OSError):
            latest = max(latest, rules.plan.graph.vault.file(path).stat().st_mtime_ns // 10**6)
    if not latest and (day := found.updated or found.created):
        latest = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1000)
    return latest


def node_at(rules: MergeRules, path: str) -> Node:
    return rules.plan.draft(path).node


def reason_of(verdict: Verdict) -> str:
    why = verdict.why[:WHY_CHARS].rstrip(".")
    return f": {why}." if why else "."
