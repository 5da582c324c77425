"""
What a model says of notes that are alike, and what of it is done.

    changed notes and their nearest → calls of a dozen notes → a reply → verdicts → drafts on the Plan

Its cost follows what changed since the last cycle: a note that resembles no other is never asked about.
Not here: finding what is alike (tidy.py), and how notes are merged (revise.py). One rule: a model proposes;
who is newer, whose words they are, and what may replace what is decided by code.
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

from .. import tokens
from ..edit import Plan, one_line, split_history
from ..errors import BadReply
from ..node import TYPES, Node, wikilink
from ..reply import cut_out
from . import revise
from .topics import alike, normal, numbers, resembles, words

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "edits": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "op": {"type": "string", "enum": ["merge", "supersede", "describe"]},
                    "node": {"type": "string"},
                    "other": {"type": ["string", "null"]},
                    "description": {"type": "string"},
                    "why": {"type": "string"},
                },
                "required": ["op", "node", "other", "description", "why"],
            },
        }
    },
    "required": ["edits"],
}

MOST = 12  # notes in a call: more, and small models begin to mix them up
BODY_TOKENS = 120  # of a note's text that a model is shown
LINE_CHARS, WHY_CHARS = 300, 160
# A note that says "mark all as superseded" is obeyed by some models. Pairs, as a night finds them, leave half of a call.
FEW = 3  # notes that a reply may always replace: one subject that changed four times
REPEATED = 0.5  # share of the words of two notes that merely say the same
TRUST = {"tool": 0, "assistant": 1}  # a person's word, said or written, is 2


class Refused(Exception):
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
    def a_verb(cls, value: Any) -> str:
        verb = str(value).strip().lower()
        if verb not in ("merge", "supersede", "describe"):
            raise ValueError("op is none of merge, supersede, describe")
        return verb

    @field_validator("node", "other", mode="before")
    @classmethod
    def a_handle(cls, value: Any) -> str:
        return "" if value is None else str(value).strip().strip("[]")

    @field_validator("description", "why", mode="before")
    @classmethod
    def a_line(cls, value: Any) -> str:
        return "" if value is None else one_line(re.sub(r"[\[\]]", " ", str(value)))


@dataclass(slots=True)
class Court:
    """What the verdicts of one cycle are measured against."""

    plan: Plan
    changed: Collection[str]  # paths: only these may be described anew
    frozen: Collection[str]  # paths that a person's undo put back: no two of them are joined again
    kin: Mapping[str, Collection[str]]  # a changed note → those it resembles
    done: list[str] = field(default_factory=list)  # lines for the log page
    refused: list[str] = field(default_factory=list)
    proposed: list[str] = field(default_factory=list)  # what only a person may do
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("merged", "superseded", "described"), 0)
    )


# --- what is asked


def calls(kin: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """
    Notes to show together. *kin*: a changed note → those it resembles, nearest first, no more than a few.

    Each changed note is in a call with all of its kin; where they overlap, calls are shared.
    """
    found: list[list[str]] = []
    places: dict[str, list[int]] = {}  # path → the calls it is in
    for path, near in kin.items():
        wanted = [path, *near][:MOST]
        likely = {n for w in wanted for n in places.get(w, ())} | {len(found) - 1}
        fits = [n for n in likely if n >= 0 and len({*found[n], *wanted}) <= MOST]
        n = max(fits, key=lambda n: (len({*found[n]} & {*wanted}), n), default=len(found))
        if n == len(found):
            found.append([])
        for w in wanted:
            if w not in found[n]:
                found[n].append(w)
                places.setdefault(w, []).append(n)
    return found


def smaller(paths: Sequence[str]) -> list[list[str]]:
    """Calls that together show each two of *paths*, and two thirds of them each; none for a pair."""
    thirds = [paths[n::3] for n in range(3)]
    return [[*a, *b] for a, b in combinations(thirds, 2)] if len(paths) > 2 else []


def question(shown: Mapping[str, Node]) -> str:
    return "# Notes\n\n" + "\n".join(shown_as(handle, node) for handle, node in shown.items())


def shown_as(handle: str, node: Node) -> str:
    marks = [node.type, node.priority, f"heard {heard_on(node)}"]
    marks += [f"on {node.event}"] * bool(node.event) + [f"loop {node.loop}"] * bool(node.loop)
    marks += ["tool"] * (node.origin == "tool")
    main = revise.unlinked(split_history(node.body)[0])
    more = (
        ""
        if normal(main) in normal(node.description)
        else f"\n    {one_line(tokens.clip(main, BODY_TOKENS))}"
    )
    return f"{handle} [{', '.join(marks)}] {node.title}: {node.description}{more}"


def heard_on(node: Node) -> str:
    latest = max((s.timestamp for s in node.sources), default=0)
    return (
        datetime.fromtimestamp(latest / 1000, UTC).date().isoformat()
        if latest
        else str(node.updated or node.created)
    )


# --- what comes back


def verdicts(text: str, court: Court) -> list[Verdict]:
    """Those that can be read; the others are noted. Raises BadReply if there is no list of them."""
    items = cut_out(text)["edits"]
    if not isinstance(items, list):
        raise BadReply("the reply has no list of `edits`; it was not used")
    found = []
    for n, item in enumerate(items, 1):
        try:
            found.append(Verdict.model_validate(item))
        except ValidationError as e:
            court.refused.append(f"edit {n}: {e.errors()[0]['msg']}")
    return found


def follow(court: Court, shown: Mapping[str, str], text: str, *, words: bool = True) -> None:
    """
    Draft what the reply *text* proposes and may be done. *shown*: handle → path. Not *words*: the verdicts count,
    but what the model wrote may tell of a note that is gone.
    """
    found = verdicts(text, court)
    if (gone := swept(court, shown, found)) > max(FEW, len(shown) // 2):
        first = named(node(court, next(iter(shown.values()))))
        court.proposed.append(
            f"A model would replace {gone} of {len(shown)} notes at once, {first} and others."
        )
        court.refused.append(f"a reply that would replace {gone} of {len(shown)} notes")
        return
    for n, verdict in enumerate(found, 1):
        if not words:
            verdict = verdict.model_copy(update={"description": "", "why": ""})
        try:
            if verdict.node not in shown or (verdict.op != "describe" and verdict.other not in shown):
                raise Refused("names a note that was not shown")
            path, other = shown[verdict.node], shown.get(verdict.other, "")
            act = {"merge": merge, "supersede": supersede, "describe": describe}[verdict.op]
            court.done.append(act(court, path, other, verdict))
        except Refused as e:
            court.refused.append(f"edit {n}, {verdict.op}: {e}")


def swept(court: Court, shown: Mapping[str, str], found: Sequence[Verdict]) -> int:
    """
    How many of *shown* would be gone after *found*; those that only repeat another are not counted.

    Pairs that hang together leave one note, whichever way round each is given.
    """
    heads: dict[str, str] = {}
    for verdict in found:
        a, b = verdict.node, verdict.other
        if verdict.op == "describe" or a not in shown or b not in shown:
            continue
        with suppress(Refused):  # what is not followed takes nothing away
            check_pair(court, shown[a], shown[b])
            one, other = (node(court, shown[handle]).description for handle in (a, b))
            if verdict.op == "supersede" or alike(one, other) < REPEATED:
                a, b = head(heads, a), head(heads, b)
                if a != b:
                    heads[b] = a
    return len(heads)


def head(heads: Mapping[str, str], handle: str) -> str:
    while handle in heads:
        handle = heads[handle]
    return handle


def merge(court: Court, keep: str, gone: str, verdict: Verdict) -> str:
    check_pair(court, keep, gone)
    a, b = kept_first(court, node(court, keep), node(court, gone))
    ours, theirs = numbers(words(a.description)), numbers(words(b.description))
    if not (ours <= theirs or theirs <= ours):
        raise Refused("their numbers differ, so they are not the same")
    if a.event and b.event and a.event != b.event:
        raise Refused("their days differ, so they are not the same")
    said = verdict.description if may_say(court, a.path, verdict.description, (a, b)) else ""
    # A weak model takes a change for a repetition. A line made of both holds both; without one the newer holds.
    if not said and standing(court, a) == standing(court, b) and heard(court, b.path) > heard(court, a.path):
        a, b = b, a
    revise.merge(court.plan, a.path, b.path, said)
    court.counts["merged"] += 1
    return f"Merged {named(b)} into {named(a)}{reason(verdict)}"


def kept_first(court: Court, a: Node, b: Node) -> tuple[Node, Node]:
    """The note that stays and the one that goes; *a* is whom the model would keep, and wins a tie."""
    if standing(court, b) > standing(court, a):
        a, b = b, a
    if standing(court, b)[0]:
        court.proposed.append(f"{named(a)} and {named(b)} seem to say the same.")
        raise Refused(f"{b.path} is one that a person wrote in, or pinned")
    if a.type != b.type and b.type != "fact":
        raise Refused(f"a {b.type} is no {a.type}")
    if trust(a) < trust(b) or trust(a) > trust(b) == TRUST["tool"]:
        raise Refused("one is a person's word, and one is not")
    return a, b


def standing(court: Court, found: Node) -> tuple[int, int, bool]:
    """What decides which of two notes stays, the first difference first."""
    touched = court.plan.draft(found.path).touched
    return 2 * found.pinned + touched, trust(found), found.type != "fact"


def supersede(court: Court, new: str, old: str, verdict: Verdict) -> str:
    check_pair(court, new, old)
    if heard(court, old) > heard(court, new):
        new, old = old, new
    a, b = node(court, new), node(court, old)
    if b.pinned:
        court.proposed.append(f"{named(b)} is pinned, but {named(a)} is newer and says otherwise.")
        raise Refused(f"{old} is pinned; only a person takes it back")
    if trust(a) < trust(b):
        raise Refused(f"what came from {a.origin} does not replace what a person said")
    line = f"{named(a)} ({revise.day(court.plan, a)}) replaced {named(b)} ({revise.day(court.plan, b)}){reason(verdict)}"
    revise.supersede(court.plan, old, new)
    court.counts["superseded"] += 1
    return line


def describe(court: Court, path: str, _: str, verdict: Verdict) -> str:
    found = node(court, path)
    if path not in court.changed or found.status != "active":
        raise Refused("the note did not change")
    if path in court.frozen or not may_say(court, path, verdict.description, (found,)):
        raise Refused("the line may not be changed, or not to that")
    revise.describe(court.plan, path, verdict.description)
    court.counts["described"] += 1
    return f"Described {named(found)} anew{reason(verdict)}"


# --- what may be


def check_pair(court: Court, one: str, other: str) -> None:
    if one == other:
        raise Refused("names one note twice")
    for path in (one, other):
        found = node(court, path)
        if found.type not in TYPES or found.status != "active":
            raise Refused(f"{path} is not active any more")
    if one in court.frozen and other in court.frozen:
        raise Refused("a person undid that before")
    # A call holds notes on several subjects, and a weak model takes any two of them, or those of the example.
    a, b = (f"{found.title} {found.description}" for found in (node(court, one), node(court, other)))
    if other not in court.kin.get(one, ()) and one not in court.kin.get(other, ()) and not resembles(a, b):
        raise Refused("they are not about the same")


def trust(found: Node) -> int:
    return TRUST.get(found.origin or "", 2)


def may_say(court: Court, path: str, description: str, of: Sequence[Node]) -> bool:
    """
    Whether *path* may be given *description*, which was made *of* these notes.

    Not where a person has written, nor where what a person said would be mixed with what others did; and
    it must be made of the notes' own words, and have no number that they have not.
    """
    draft = court.plan.draft(path)
    if not description or len(description) > LINE_CHARS or not draft.ours or "description" in draft.theirs:
        return False
    if len({trust(n) for n in of}) > 1:
        return False
    said, there = (
        words(description).keys(),
        {s for n in of for s in words(f"{n.title} {n.description} {n.body}")},
    )
    return bool(said) and numbers(said) <= there and len(said & there) >= 0.6 * len(said)


def heard(court: Court, path: str) -> int:
    """When the note was last said, in ms; a person's own hand counts as saying it."""
    found = node(court, path)
    latest = max((s.timestamp for s in found.sources), default=0)
    draft = court.plan.draft(path)
    if not draft.ours or "description" in draft.theirs:
        with suppress(OSError):
            latest = max(latest, court.plan.graph.vault.file(path).stat().st_mtime_ns // 10**6)
    if not latest and (day := found.updated or found.created):
        latest = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1000)
    return latest


def node(court: Court, path: str) -> Node:
    return court.plan.draft(path).node


def named(found: Node) -> str:
    return wikilink(found.path, found.title)


def reason(verdict: Verdict) -> str:
    why = verdict.why[:WHY_CHARS].rstrip(".")
    return f": {why}." if why else "."
