"""
What a model says of notes that are alike, and which of it is done.

Its cost follows what changed since the last cycle: a note that resembles no other is never asked about. One rule: a
model proposes; who is newer, whose words they are, and what may replace what is decided by code.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import combinations
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from ..dates.days import day_of_ms
from ..errors import BadReply
from ..llm.jsontext import TEXT, cut_out, object_schema, one_of
from ..node.fields import TYPES
from ..node.note import Node
from ..plan.drafts import Plan
from ..plan.edits import one_line, split_history
from ..tokens import clip_text
from .revise import describe_note, merge_notes, said_day, supersede_note, without_links
from .snapshot import link_of
from .topics import normalized, numbers_in, resembles, statement_likeness, stems_of

VERDICT_SCHEMA = object_schema(
    "op node other description why",
    op={"type": "string", "enum": ["merge", "supersede", "describe"]},
    node=TEXT,
    other={"type": ["string", "null"]},
    description=TEXT,
    why=TEXT,
)
VERDICTS_SCHEMA = object_schema("edits", edits={"type": "array", "items": VERDICT_SCHEMA})
NOTES_PER_CALL = 12  # notes in a call: more, and small models begin to mix them up
BODY_TOKENS = 120  # of a note's text that a model is shown
VERDICT_LINE_CHARS, WHY_CHARS = 300, 160
# A note that says "mark all as superseded" is obeyed by some models. Pairs, as a night finds them, leave half of a call.
FEW_REPLACED = 3  # notes that a reply may always replace: one subject that changed four times
REPEATED = 0.5  # share of the words of two notes that merely say the same
TRUST_OF_ORIGIN = {"tool": 0, "assistant": 1}  # a person's word, said or written, is 2


class RefusedVerdict(Exception):
    """Why a verdict was not followed. For the log; no conversation text in it."""


class Verdict(BaseModel):
    """One item of a reply. `node` is what stays or holds, `other` what goes."""

    model_config = ConfigDict(extra="ignore")

    op: str
    node: str
    other: str = ""
    description: str = ""
    why: str = ""

    @field_validator("op", mode="before")
    @classmethod
    def check_op(cls, value: Any) -> str:
        return one_of(value, "merge", "supersede", "describe")

    @field_validator("node", "other", mode="before")
    @classmethod
    def mend_handle(cls, value: Any) -> str:
        return "" if value is None else str(value).strip().strip("[]")

    @field_validator("description", "why", mode="before")
    @classmethod
    def mend_line(cls, value: Any) -> str:
        return "" if value is None else one_line(re.sub(r"[\[\]]", " ", str(value)))


@dataclass(slots=True)
class MergeRules:
    """What the verdicts of one cycle are measured against."""

    plan: Plan
    changed: Collection[str]  # paths: only these may be described anew
    frozen: Collection[str]  # paths that a person's undo put back: no two of them are joined again
    similar: Mapping[str, Collection[str]]  # a changed note → those it resembles
    done: list[str] = field(default_factory=list)  # lines for the log page
    refused: list[str] = field(default_factory=list)
    proposed: list[str] = field(default_factory=list)  # what only a person may do
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("merged", "superseded", "described"), 0)
    )


# --- what is asked


def groups_to_ask(similar: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """
    Notes to show together. *similar*: a changed note → those it resembles, nearest first, no more than a few.

    Each changed note is in a call with all that it resembles; where they overlap, calls are shared.
    """
    found: list[list[str]] = []
    places: dict[str, list[int]] = {}  # path → the calls it is in
    for path, near in similar.items():
        wanted = [path, *near][:NOTES_PER_CALL]
        likely = {n for w in wanted for n in places.get(w, ())} | {len(found) - 1}
        fits = [n for n in likely if n >= 0 and len({*found[n], *wanted}) <= NOTES_PER_CALL]
        n = max(fits, key=lambda n: (len({*found[n]} & {*wanted}), n), default=len(found))
        if n == len(found):
            found.append([])
        for w in wanted:
            if w not in found[n]:
                found[n].append(w)
                places.setdefault(w, []).append(n)
    return found


def smaller_groups(paths: Sequence[str]) -> list[list[str]]:
    """Calls that together show each two of *paths*, and two thirds of them each; none for a pair."""
    thirds = [paths[n::3] for n in range(3)]
    return [[*a, *b] for a, b in combinations(thirds, 2)] if len(paths) > 2 else []


def verdicts_question(shown: Mapping[str, Node]) -> str:
    return "# Notes\n\n" + "\n".join(note_shown(handle, node) for handle, node in shown.items())


def note_shown(handle: str, node: Node) -> str:
    marks = [node.type, node.priority, f"heard {said_on(node)}"]
    marks += [f"on {node.event}"] * bool(node.event) + [f"loop {node.loop}"] * bool(node.loop)
    marks += ["tool"] * (node.origin == "tool")
    main = without_links(split_history(node.body)[0])
    line = f"{handle} [{', '.join(marks)}] {node.title}: {node.description}"
    if normalized(main) in normalized(node.description):
        return line
    return f"{line}\n    {one_line(clip_text(main, BODY_TOKENS))}"


def said_on(node: Node) -> str:
    latest = max((s.timestamp for s in node.sources), default=0)
    return str(day_of_ms(latest, UTC) if latest else node.updated or node.created)


# --- what comes back


def read_verdicts(text: str, rules: MergeRules) -> list[Verdict]:
    """Those that can be read; the others are noted. Raises BadReply if there is no list of them."""
    items = cut_out(text)["edits"]
    if not isinstance(items, list):
        raise BadReply("the reply has no list of `edits`; it was not used")
    found = []
    for n, item in enumerate(items, 1):
        try:
            found.append(Verdict.model_validate(item))
        except ValidationError as e:
            rules.refused.append(f"edit {n}: {e.errors()[0]['msg']}")
    return found


def follow_verdicts(rules: MergeRules, shown: Mapping[str, str], text: str, *, words: bool = True) -> None:
    """
    Draft what the reply *text* proposes and may be done. *shown*: handle → path. Not *words*: the verdicts count,
    but what the model wrote may tell of a note that is gone.
    """
    found = read_verdicts(text, rules)
    if (gone := gone_after(rules, shown, found)) > max(FEW_REPLACED, len(shown) // 2):
        first = link_of(node_at(rules, next(iter(shown.values()))))
        rules.proposed.append(
            f"A model would replace {gone} of {len(shown)} notes at once, {first} and others."
        )
        rules.refused.append(f"a reply that would replace {gone} of {len(shown)} notes")
        return
    for n, verdict in enumerate(found, 1):
        if not words:
            verdict = verdict.model_copy(update={"description": "", "why": ""})
        try:
            if verdict.node not in shown or (verdict.op != "describe" and verdict.other not in shown):
                raise RefusedVerdict("names a note that was not shown")
            path, other = shown[verdict.node], shown.get(verdict.other, "")
            act = {"merge": merge_pair, "supersede": supersede_pair, "describe": new_description}[verdict.op]
            rules.done.append(act(rules, path, other, verdict))
        except RefusedVerdict as e:
            rules.refused.append(f"edit {n}, {verdict.op}: {e}")


def gone_after(rules: MergeRules, shown: Mapping[str, str], found: Sequence[Verdict]) -> int:
    """
    How many of *shown* would be gone after *found*; those that only repeat another are not counted.

    Pairs that hang together leave one note, whichever way round each is given.
    """
    heads: dict[str, str] = {}
    for verdict in found:
        a, b = verdict.node, verdict.other
        if verdict.op == "describe" or a not in shown or b not in shown:
            continue
        with suppress(RefusedVerdict):  # what is not followed takes nothing away
            check_pair(rules, shown[a], shown[b])
            one, other = (node_at(rules, shown[handle]).description for handle in (a, b))
            if verdict.op == "supersede" or statement_likeness(one, other) < REPEATED:
                a, b = handle_of(heads, a), handle_of(heads, b)
                if a != b:
                    heads[b] = a
    return len(heads)


def handle_of(heads: Mapping[str, str], handle: str) -> str:
    while handle in heads:
        handle = heads[handle]
    return handle


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
    for path in (one, other):
        found = node_at(rules, path)
        if found.type not in TYPES or found.status != "active":
            raise RefusedVerdict(f"{path} is not active any more")
    if one in rules.frozen and other in rules.frozen:
        raise RefusedVerdict("a person undid that before")
    # A call holds notes on several subjects, and a weak model takes any two of them, or those of the example.
    a, b = (f"{found.title} {found.description}" for found in (node_at(rules, one), node_at(rules, other)))
    if (
        other not in rules.similar.get(one, ())
        and one not in rules.similar.get(other, ())
        and not resembles(a, b)
    ):
        raise RefusedVerdict("they are not about the same")


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
    there = {s for n in of for s in stems_of(f"{n.title} {n.description} {n.body}")}
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
