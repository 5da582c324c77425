"""
Which of a model's verdicts on notes are carried out.

A model proposes. Code decides by who said the notes, what the call showed, who was heard later, and days. No words are
compared: a call shows no page's note beside a person's, and a person's note takes a new text, or goes, only by a call
that showed persons' notes alone. What a person wrote in, or pinned, is at the most put to them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from ..dates.days import event_span
from ..node.fields import TYPES
from ..node.markdown import slugify
from ..node.note import Node
from ..plan.drafts import Plan
from ..plan.edits import trust_of
from .similar import close_loop, describe_note, lead_to, merge_notes, retitle_note, said_day, supersede_note
from .topics import link_of
from .verdicts import OF_TWO, Refusal, ShownGroup, Verdict, read_verdicts

VERDICT_LINE_CHARS, VERDICT_TITLE_CHARS, WHY_CHARS = 300, 80, 160
# A note that says "mark all as superseded" is obeyed by some models. Pairs, as a night finds them, leave half of a call.
FEW_REPLACED = 3  # notes that a reply may always replace: one subject that changed four times


class RefusedVerdict(Exception):
    """Why a verdict was not followed: a fixed phrase, without a word of a note."""


@dataclass(slots=True)
class MergeRules:
    """What the verdicts of one cycle are measured against."""

    plan: Plan
    changed: Collection[str]  # paths: only these may be described anew
    frozen: Collection[str]  # paths that a person's undo put back: no two of them are joined again
    asked: Collection[frozenset[str]]  # the pairs asked about: others were left alone, and are as they were
    done: list[str] = field(default_factory=list)  # lines for the log page
    refused: list[Refusal] = field(default_factory=list)
    proposed: list[str] = field(default_factory=list)  # what only a person may do
    verdicts: int = 0  # followed or not
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(
            ("merged", "superseded", "contradictions", "described", "retitled", "closed", "linked"), 0
        )
    )

    def node(self, path: str) -> Node:
        return self.plan.draft(path).node

    def do(self, what: str, line: str) -> None:
        self.counts[what] += 1
        self.done.append(line)


@dataclass(frozen=True, slots=True)
class Case:
    """A verdict on notes that were shown. *least*: how far the least trusted note of the call is trusted."""

    verdict: Verdict
    path: str
    other: str  # "": none, or none that was shown
    least: int


def follow_verdicts(
    rules: MergeRules, shown: Sequence[ShownGroup], text: str, *, words: bool = True
) -> set[str]:
    """
    Draft what the reply *text* proposes and may be done; returns the names of the groups it speaks of. Not *words*:
    the verdicts count, but what the model wrote may tell of a note that is gone.
    """
    unread = len(rules.refused)
    found = read_verdicts(text, shown, rules.refused)
    rules.verdicts += sum(map(len, found.values())) + len(rules.refused) - unread
    paths = list(dict.fromkeys(path for s in shown for path in s.notes.values()))
    if (gone := gone_after(shown, found)) > max(FEW_REPLACED, len(paths) // 2):
        first = link_of(rules.node(paths[0]))
        rules.proposed.append(
            f"A model would replace {gone} of {len(paths)} notes at once, {first} and others."
        )
        rules.refused.append(Refusal(f"it would replace {gone} of {len(paths)} notes at once"))
        return set(found)
    for s in shown:
        for n, verdict in enumerate(found.get(s.name, ()), 1):
            if not words:
                verdict = verdict.model_copy(update={"description": "", "title": "", "why": ""})
            named = [path for handle in (verdict.node, verdict.other) if (path := s.notes.get(handle))]
            try:
                follow_verdict(rules, s, verdict)
            except RefusedVerdict as e:
                links = " and ".join(link_of(rules.node(path)) for path in named)
                rules.refused.append(Refusal(str(e), verdict.op, f"{s.name}, edit {n}", links))
    return set(found)


def follow_verdict(rules: MergeRules, shown: ShownGroup, verdict: Verdict) -> None:
    """Draft one verdict on the notes of *shown*. Raises RefusedVerdict."""
    notes = shown.notes
    if verdict.op == "keep":
        return
    if verdict.node not in notes or (verdict.op in OF_TWO and verdict.other not in notes):
        raise RefusedVerdict("names a note that is not of its group")
    if verdict.op in OF_TWO and verdict.node == verdict.other:
        raise RefusedVerdict("names one note twice")
    case = Case(verdict, notes[verdict.node], notes.get(verdict.other, ""), shown.least)
    FOLLOW[verdict.op](rules, case)


def gone_after(shown: Sequence[ShownGroup], found: Mapping[str, Sequence[Verdict]]) -> int:
    """How many notes would be gone after *found*. Pairs that hang together leave one, whichever way round each is given."""
    heads: dict[str, str] = {}
    for s in shown:
        for verdict in found.get(s.name, ()):
            a, b = (s.notes.get(handle, "") for handle in (verdict.node, verdict.other))
            a, b = head_of_chain(heads, a), head_of_chain(heads, b)
            if verdict.op in ("merge", "supersede") and a and b and a != b:
                heads[b] = a
    return len(heads)


def head_of_chain(heads: Mapping[str, str], path: str) -> str:
    while path in heads:
        path = heads[path]
    return path


# --- two notes


def merge_pair(rules: MergeRules, case: Case) -> None:
    a, b = keep_and_gone(rules, *check_pair(rules, case))
    if a.event and b.event and a.event != b.event:
        raise RefusedVerdict("their days differ, so they are not the same")
    said = case.verdict.description
    if said:
        try:
            check_text(rules, a, said, "description", case.least)
        except RefusedVerdict as e:  # without it nothing is lost: the History has what both said
            rules.refused.append(Refusal(f"its description: {e}", "merge", notes=link_of(a)))
            said = ""
    # A weak model takes a change for a repetition. A line made of both holds both; without one the newer holds.
    same = standing_of(rules, a) == standing_of(rules, b)
    if not said and same and last_said_ms(rules, b.path) > last_said_ms(rules, a.path):
        a, b = b, a
    check_goes(b, case.least)
    merge_notes(rules.plan, a.path, b.path, said)
    rules.do("merged", f"Merged {link_of(b)} into {link_of(a)}{reason_of(case)}")


def keep_and_gone(rules: MergeRules, a: Node, b: Node) -> tuple[Node, Node]:
    """The note that stays and the one that goes; *a* is the one that the model would keep, and wins a tie."""
    if standing_of(rules, b) > standing_of(rules, a):
        a, b = b, a
    if standing_of(rules, b)[0]:
        rules.proposed.append(f"{link_of(a)} and {link_of(b)} seem to say the same.")
        raise RefusedVerdict("the note that would go is one that a person wrote in, or pinned")
    if a.type != b.type and b.type != "fact":
        raise RefusedVerdict(f"a {b.type} is no {a.type}")
    if trust_of(a.origin) < trust_of(b.origin):
        raise RefusedVerdict("a person's word does not go into one of another")
    return a, b


def standing_of(rules: MergeRules, found: Node) -> tuple[int, int, bool]:
    """What decides which of two notes stays, the first difference first."""
    touched = rules.plan.draft(found.path).touched
    return 2 * found.pinned + touched, trust_of(found.origin), found.type != "fact"


def supersede_pair(rules: MergeRules, case: Case) -> None:
    a, b = check_pair(rules, case)
    if last_said_ms(rules, b.path) > last_said_ms(rules, a.path):
        a, b = b, a
    if trust_of(a.origin) < trust_of(b.origin):
        raise RefusedVerdict(f"what came from {a.origin} does not replace what a person said")
    check_goes(b, case.least)
    if b.pinned:
        rules.proposed.append(f"{link_of(b)} is pinned, but {link_of(a)} is newer and says otherwise.")
        raise RefusedVerdict("the older one is pinned; only a person takes it back")
    days = said_day(rules.plan, a), said_day(rules.plan, b)
    supersede_note(rules.plan, b.path, a.path)
    line = f"{link_of(a)} ({days[0]}) replaced {link_of(b)} ({days[1]}){reason_of(case)}"
    rules.do("superseded", line)


def contradict_pair(rules: MergeRules, case: Case) -> None:
    a, b = active_pair(rules, case)
    if b.path in a.contradicts or a.path in b.contradicts:
        return  # they say so already
    rules.plan.contradict(a.path, b.path)
    rules.proposed.append(f"{link_of(a)} and {link_of(b)} contradict each other; which of them holds?")
    line = f"{link_of(a)} and {link_of(b)} point at each other: neither says which of them holds now."
    rules.do("contradictions", line)


def link_pair(rules: MergeRules, case: Case) -> None:
    a, b = active_pair(rules, case)
    if not rules.plan.draft(a.path).ours:
        raise RefusedVerdict("a person wrote in it")
    if b.path in (*a.links, *a.wikilinks):
        return  # it leads there already
    lead_to(rules.plan, a.path, b.path)
    rules.do("linked", f"Linked {link_of(a)} to {link_of(b)}{reason_of(case)}")


# --- one note


def new_title(rules: MergeRules, case: Case) -> None:
    found, title = changed_note(rules, case), case.verdict.title
    check_text(rules, found, title, "title", case.least)
    if not slugify(title) or slugify(title) == slugify(found.title) or len(title) > VERDICT_TITLE_CHARS:
        raise RefusedVerdict("that is no title, or no other")
    if rules.plan.is_taken(f"nodes/{found.type}/{slugify(title)}", by=found.id):
        raise RefusedVerdict("another note has that title")
    there = retitle_note(rules.plan, case.path, title)
    rules.do("retitled", f"Called “{found.title}” {link_of(there)} now{reason_of(case)}")


def new_description(rules: MergeRules, case: Case) -> None:
    found = changed_note(rules, case)
    check_text(rules, found, case.verdict.description, "description", case.least)
    describe_note(rules.plan, case.path, case.verdict.description)
    rules.do("described", f"Described {link_of(found)} anew{reason_of(case)}")


def end_loop(rules: MergeRules, case: Case) -> None:
    found, day = rules.node(case.path), rules.plan.day
    days = event_span(found.event)
    if found.loop == "done":
        return  # another verdict of this night closed it
    if found.status != "active" or found.loop != "open" or not days or days[1] >= day:
        raise RefusedVerdict("it is no open loop whose day is past")
    if found.path in rules.frozen:
        raise RefusedVerdict("a person undid that before")
    told = rules.node(case.other) if case.other not in ("", case.path) else None
    if told and trust_of(told.origin) < trust_of(found.origin):
        raise RefusedVerdict(f"what came from {told.origin} does not end what a person means to do")
    if told and last_said_ms(rules, told.path) < last_said_ms(rules, found.path):
        raise RefusedVerdict("the note that it names was heard before, and cannot tell how it ended")
    if found.pinned or rules.plan.draft(found.path).touched:
        rules.proposed.append(f"{link_of(found)} was due on {found.event}, and seems to be over.")
        raise RefusedVerdict("a person wrote in it, or pinned it")
    close_loop(rules.plan, found.path, told)
    rules.do("closed", f"Closed {link_of(found)}, due on {found.event}{reason_of(case)}")


FOLLOW = {
    "merge": merge_pair,
    "supersede": supersede_pair,
    "contradict": contradict_pair,
    "link": link_pair,
    "describe": new_description,
    "retitle": new_title,
    "close": end_loop,
}


# --- what may be


def active_pair(rules: MergeRules, case: Case) -> tuple[Node, Node]:
    a, b = rules.node(case.path), rules.node(case.other)
    if any(found.type not in TYPES or found.status != "active" for found in (a, b)):
        raise RefusedVerdict("one of the two is not active any more")
    if case.path in rules.frozen and case.other in rules.frozen:
        raise RefusedVerdict("a person undid that before")
    return a, b


def check_pair(rules: MergeRules, case: Case) -> tuple[Node, Node]:
    """Both notes, of which one is to go."""
    a, b = active_pair(rules, case)
    marked = b.path in a.contradicts or a.path in b.contradicts
    if marked and frozenset((case.path, case.other)) not in rules.asked:
        raise RefusedVerdict("they contradict each other, and neither has changed since")
    return a, b


def check_goes(found: Node, least: int) -> None:
    if trust_of(found.origin) > least:
        raise RefusedVerdict("a person's note goes only where persons' notes alone were shown")


def changed_note(rules: MergeRules, case: Case) -> Node:
    found = rules.node(case.path)
    if case.path not in rules.changed or case.path in rules.frozen or found.status != "active":
        raise RefusedVerdict("the note did not change")
    return found


def check_text(rules: MergeRules, found: Node, text: str, what: str, least: int) -> None:
    """Raise RefusedVerdict unless *text* may stand as *what*, the title or description, of *found*."""
    draft = rules.plan.draft(found.path)
    if not draft.ours or what in draft.theirs or (what == "title" and draft.touched):
        raise RefusedVerdict("a person wrote in it")
    if not 0 < len(text) <= VERDICT_LINE_CHARS:
        raise RefusedVerdict("it says nothing, or too much for one line")
    if trust_of(found.origin) > least:
        raise RefusedVerdict("a person's note takes new words only where persons' notes alone were shown")


def last_said_ms(rules: MergeRules, path: str) -> int:
    """When the note was last said, in ms; a person's own hand counts as saying it."""
    found = rules.node(path)
    latest = max((s.timestamp for s in found.sources), default=0)
    draft = rules.plan.draft(path)
    if not draft.ours or "description" in draft.theirs:
        with suppress(OSError):
            latest = max(latest, rules.plan.graph.vault.file(path).stat().st_mtime_ns // 10**6)
    if not latest and (day := found.updated or found.created):
        latest = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1000)
    return latest


def reason_of(case: Case) -> str:
    why = case.verdict.why[:WHY_CHARS].rstrip(".")
    return f": {why}." if why else "."
