"""
What a model is asked of groups of notes, and what it answers: a verdict for each group, of what is to be done.

Untrusted: an item that cannot be parsed is dropped, not the rest, and what is not said of one group leaves the others
standing. Not here: which groups there are (groups.py), and what of the verdicts may be done (permitted.py).
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from ..dates.days import day_of_ms
from ..errors import BadReply
from ..llm.jsontext import TEXT, cut_out, object_schema, one_of
from ..node.note import Node
from ..plan.edits import one_line, split_history
from ..text.links import without_citations
from ..text.tokens import clip_text
from .groups import Group
from .topics import normalized

OPS = ("merge", "supersede", "contradict", "link", "describe", "retitle", "close", "keep")
OF_TWO = OPS[:4]  # these are of two notes
OR_NULL = {"type": ["string", "null"]}
VERDICT_SCHEMA = object_schema(
    "op node other description title why",
    op={"type": "string", "enum": [*OPS]},
    node=TEXT,
    other=OR_NULL,
    description=OR_NULL,
    title=OR_NULL,
    why=TEXT,
)
VERDICTS_SCHEMA = object_schema(
    "groups",
    groups={
        "type": "array",
        "items": object_schema("group edits", group=TEXT, edits={"type": "array", "items": VERDICT_SCHEMA}),
    },
)
BODY_TOKENS = 120  # of a note's text that a model is shown


class Verdict(BaseModel):
    """One item of a reply. `node` is what stays or holds, `other` what goes, or what is beside it."""

    model_config = ConfigDict(extra="ignore")

    op: str
    node: str
    other: str = ""
    description: str = ""
    title: str = ""
    why: str = ""

    @field_validator("op", mode="before")
    @classmethod
    def check_op(cls, value: Any) -> str:
        return one_of(value, *OPS)

    @field_validator("node", "other", mode="before")
    @classmethod
    def mend_handle(cls, value: Any) -> str:
        return "" if value is None else str(value).strip().strip("[]")

    @field_validator("description", "title", "why", mode="before")
    @classmethod
    def mend_line(cls, value: Any) -> str:
        return "" if value is None else one_line(re.sub(r"[\[\]|]", " ", str(value)))


@dataclass(frozen=True, slots=True)
class Refusal:
    """A verdict that was not followed. *why* is a fixed phrase, for logs and events; *notes* are links, for the person."""

    why: str
    op: str = ""  # "" where there was none to be read
    place: str = ""  # "g1, edit 2"
    notes: str = ""

    @property
    def line(self) -> str:
        """For the log page."""
        return f"{' '.join(filter(None, (self.op, self.notes))) or 'a reply'}: {self.why}."


@dataclass(frozen=True, slots=True)
class ShownGroup:
    """A group as a model sees it: `g1`, and its notes by handle."""

    name: str
    group: Group
    notes: Mapping[str, str]  # handle → path
    least: int  # `trust_of` the least trusted note of the whole call: what one group says, a model may do in another


# --- what is asked


def shown_groups(groups: Sequence[Group], least: int) -> list[ShownGroup]:
    found, n = [], 0
    for place, group in enumerate(groups, 1):
        notes = {f"n{n + k}": path for k, path in enumerate(group.paths, 1)}
        n += len(notes)
        found.append(ShownGroup(f"g{place}", group, notes, least))
    return found


def halves(groups: Sequence[Group]) -> list[list[Group]]:
    """*groups* in two calls; the matters of a single group, in two; none of a single matter."""
    if len(groups) == 1:
        matters = groups[0].matters
        groups = [Group(matters[: len(matters) // 2]), Group(matters[len(matters) // 2 :])]
    middle = len(groups) // 2
    both = [[g for g in some if g.matters] for some in (groups[:middle], groups[middle:])]
    return both if all(both) else []


def groups_question(shown: Sequence[ShownGroup], node_of: Mapping[str, Node], today: dt.date) -> str:
    parts = [f"Today is {today}."]
    for s in shown:
        notes = [note_shown(handle, node_of[p], leads_to(s, node_of[p])) for handle, p in s.notes.items()]
        parts.append("\n".join([f"# {s.name}: {what_is_asked(s)}", *notes]))
    return "\n\n".join(parts)


def what_is_asked(shown: ShownGroup) -> str:
    handles = {path: handle for handle, path in shown.notes.items()}
    pairs = [" and ".join(handles[p] for p in m.paths) for m in shown.group.matters if m.kind == "same"]
    asked = [f"the same, changed, or two things: {', '.join(pairs)}?"] * bool(pairs)
    asked += [f"the day of {handles[path]} is past" for path in shown.group.of("overdue")]
    asked += [f"the title of {handles[path]} says little" for path in shown.group.of("title")]
    return "; ".join(asked)


def leads_to(shown: ShownGroup, node: Node) -> str:
    """The handles of the notes of its group that *node* links to."""
    there = {*node.links, *node.wikilinks}
    return " ".join(handle for handle, path in shown.notes.items() if path in there)


def note_shown(handle: str, node: Node, leads: str = "") -> str:
    """A note as a model sees it. It counts as changed where this does, but for the notes that it *leads* to."""
    marks = [node.type, node.priority, f"heard {said_on(node)}"]
    marks += [f"on {node.event}"] * bool(node.event) + [f"loop {node.loop}"] * bool(node.loop)
    marks += [origin for origin in ("tool", "assistant") if origin == node.origin]
    marks += [f"leads to {leads}"] * bool(leads)
    main = without_citations(split_history(node.body)[0])
    line = f"{handle} [{', '.join(marks)}] {node.title}: {node.description}"
    if normalized(main) in normalized(node.description):
        return line
    return f"{line}\n    {one_line(clip_text(main, BODY_TOKENS))}"


def said_on(node: Node) -> str:
    latest = max((s.timestamp for s in node.sources), default=0)
    return str(day_of_ms(latest, UTC) if latest else node.updated or node.created)


# --- what comes back


def read_verdicts(text: str, shown: Sequence[ShownGroup], refused: list[Refusal]) -> dict[str, list[Verdict]]:
    """
    What a reply says of each group that it speaks of; what cannot be read is noted in *refused*. Raises BadReply if
    there is no list at all.

    A bare list of edits, as weak models give it, is read as one on all groups: a handle belongs to one of them.
    """
    if '"group' not in text:
        value = cut_out(text)["edits"]
        if not isinstance(value, list):
            raise BadReply("the reply has no list of `groups`; it was not used")
        items = [{"group": s.name, "edits": [e for e in value if names_note(e, s)]} for s in shown]
        refused += [Refusal("an edit of a note that was not shown")] * sum(
            not any(names_note(e, s) for s in shown) for e in value
        )
    else:
        items = cut_out(text, "groups", "group")["groups"]
        if not isinstance(items, list):
            raise BadReply("the reply has no list of `groups`; it was not used")
    names = {s.name for s in shown}
    found: dict[str, list[Verdict]] = {}
    for item in items:
        name = str(item.get("group")).strip() if isinstance(item, Mapping) else ""
        edits = item.get("edits") if name in names else None
        if not isinstance(edits, list):
            refused.append(Refusal("a verdict on no group that was shown"))
            continue
        found.setdefault(name, [])
        for n, edit in enumerate(edits, 1):
            try:
                found[name].append(Verdict.model_validate(edit))
            except ValidationError:
                refused.append(Refusal("an edit that cannot be read", place=f"{name}, edit {n}"))
    return found


def names_note(edit: Any, shown: ShownGroup) -> bool:
    return isinstance(edit, Mapping) and str(edit.get("node")).strip("[] ") in shown.notes
