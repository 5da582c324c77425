"""Asks a model about groups of notes, reads a verdict on each group, and decides which verdicts are carried out.

The model only proposes. Rules decide by the origin and the days of the notes, and by the check (checking.py).

- A person's note is reworded or replaced only if the model was shown nothing but persons' notes.
- Before a note that a person edited or pinned is changed, the person is asked."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from ..dates.days import day_of_ms, event_span
from ..errors import BadReply
from ..graph.graph import Graph
from ..graph.state import write_private
from ..index.store import Entry
from ..llm.replies import TEXT, cut_out, object_schema, one_of
from ..node.note import TYPES, Node
from ..plan.drafts import Plan
from ..plan.edits import one_line, split_history, trust_of
from ..text.characters import without_citations
from ..text.tokens import clip_text
from .similar import (
    NotesAlike,
    close_loop,
    merge_notes,
    said_day,
    supersede_note,
)
from .topics import Snapshot, link_of, normalized

# --- What a model is asked about at night: matters of a few notes each, and which matters are shown together.
#
# A matter is two notes that may be about one thing, or an open loop past its day. A matter that a model has answered is
# not asked again until one of its notes changes. similar.py finds which notes are alike.


GROUP_NOTES = 6  # most notes of a group; a group is about one subject
NOTES_PER_CALL = 24  # the model judges each group by itself, since a small model mixes groups up
# A model is asked about an open loop once its day is past and a later note may tell how it ended. Without such a note,
# it is asked LATE_DAYS after that day: before, people may still report what they did, and the Observer is shown the loop.
# NEWS_SHOWN: the most later notes shown with a loop.
LATE_DAYS, NEWS_SHOWN = 10, 3


@dataclass(frozen=True, slots=True)
class Matter:
    """
    A question about notes for the model.

    *paths* depends on *kind*:
    - "same": two notes that may say the same
    - "overdue": first a note about a plan whose day is past, then newer notes that may tell how the plan ended
    """

    kind: Literal["same", "overdue"]
    paths: tuple[str, ...]

    @property
    def known_by(self) -> tuple[str, ...]:
        """
        The paths of the notes by which the matter is recognised on a later night.

        - "same": both notes
        - "overdue": only the note about the plan, because the newer notes may differ from night to night
        """
        return tuple(sorted(self.paths)) if self.kind == "same" else self.paths[:1]

    @property
    def key(self) -> str:
        return "\n".join((self.kind, *self.known_by))


@dataclass(slots=True)
class Group:
    """Questions about notes (matters) that the model gets and answers together."""

    matters: list[Matter] = field(default_factory=list)

    @property
    def paths(self) -> list[str]:
        return list(dict.fromkeys(p for m in self.matters for p in m.paths))


def digest_of(texts: Iterable[str]) -> str:
    """
    Hash each of *texts*, and return the hashes joined by spaces.

    *texts*: notes as shown to the model. The next night compares these hashes to see whether a note changed.
    """
    return " ".join(hashlib.sha256(text.encode()).hexdigest()[:10] for text in texts)


# --- what there is to ask


def pairs_alike(similar: Mapping[str, Iterable[str]]) -> list[Matter]:
    """Each pair of a changed note and a note that it resembles, once."""
    pairs: dict[frozenset[str], tuple[str, str]] = {}
    for path, near in similar.items():
        for other in near:
            pairs.setdefault(frozenset((path, other)), (path, other))
    return [Matter("same", paths) for paths in pairs.values()]


def loops_past_their_day(snapshot: Snapshot) -> list[tuple[Entry, int]]:
    """Open loops whose day is past, with the number of days since; the longest overdue first."""
    late = []
    for entry in snapshot.now():
        span = event_span(entry.event) if entry.loop == "open" and entry.type in TYPES else None
        if span is not None and span[1] < snapshot.plan.day and entry.path not in snapshot.frozen:
            late.append((entry, (snapshot.plan.day - span[1]).days))
    return sorted(late, key=lambda found: (-found[1], found[0].path))


def overdue(loop: Entry, days: int, alike: NotesAlike) -> Matter | None:
    """
    Return a question for the model: how did the plan in the note *loop* end?

    *days*: how many days ago the plan was due. The question names up to NEWS_SHOWN newer notes that may have the
    answer. If no note may have the answer, returns None until *days* reaches LATE_DAYS.
    """
    news = [n.path for n in alike.to(loop) if is_news(n, loop)][:NEWS_SHOWN]
    return Matter("overdue", (loop.path, *news)) if news or days >= LATE_DAYS else None


def is_news(note: Entry, of: Entry) -> bool:
    """
    Whether *note* may tell how the plan in the note *of* ended.

    *note* must be newer than *of*, and at least as trusted.
    """
    later = (note.updated or dt.date.min) > (of.updated or dt.date.max)
    return later and trust_of(note.origin) >= trust_of(of.origin)


# --- what is shown together


def by_trust(matters: Iterable[Matter], entries: Mapping[str, Entry]) -> dict[int, list[Matter]]:
    """
    Group *matters*, questions about notes, by trust: the most trusted group first.

    Returns trust → matters. The least trusted note of a matter decides (see `trust_of`).
    """
    found: dict[int, list[Matter]] = {2: [], 1: [], 0: []}
    for matter in matters:
        found[min(trust_of(entries[path].origin) for path in matter.paths)].append(matter)
    return found


def groups_of(matters: Sequence[Matter]) -> list[Group]:
    """Put *matters* into groups. Matters that share notes go into one group, up to GROUP_NOTES notes."""
    found: list[Group] = []
    places: dict[str, list[Group]] = {}  # path → the groups that show it
    for matter in matters:
        near = [g for path in matter.paths for g in places.get(path, ())]
        fits = [g for g in near if len({*g.paths, *matter.paths}) <= GROUP_NOTES]
        group = max(fits, key=lambda g: len({*g.paths} & {*matter.paths}), default=None)
        if group is None:
            found.append(group := Group())
        group.matters.append(matter)
        for path in matter.paths:
            if group not in places.setdefault(path, []):
                places[path].append(group)
    return found


def calls_of(groups: Sequence[Group]) -> list[list[Group]]:
    """Divide *groups* among as few calls as NOTES_PER_CALL allows, in their order."""
    calls: list[list[Group]] = []
    room = 0
    for group in groups:
        size = len(group.paths)
        if size > room:
            calls.append([])
            room = NOTES_PER_CALL
        calls[-1].append(group)
        room -= size
    return calls


OPS = ("merge", "supersede", "contradict", "close", "keep")
OF_TWO = OPS[:3]  # operations on two notes
OR_NULL = {"type": ["string", "null"]}
VERDICT_SCHEMA = object_schema(
    "op node other description why",
    op={"type": "string", "enum": [*OPS]},
    node=TEXT,
    other=OR_NULL,
    description=OR_NULL,
    why=TEXT,
)
VERDICTS_SCHEMA = object_schema(
    "groups",
    groups={
        "type": "array",
        "items": object_schema("group edits", group=TEXT, edits={"type": "array", "items": VERDICT_SCHEMA}),
    },
)
BODY_TOKENS = 120  # of a note's text: so many are shown to a model


class Verdict(BaseModel):
    """
    One item of a reply. `node`: the note that stays, or the note in question. `other`: the note that goes, or the
    second note.
    """

    model_config = ConfigDict(extra="ignore")

    op: str
    node: str
    other: str = ""
    description: str = ""
    why: str = ""

    @field_validator("op", mode="before")
    @classmethod
    def check_op(cls, value: Any) -> str:
        return one_of(value, *OPS)

    @field_validator("node", "other", mode="before")
    @classmethod
    def mend_handle(cls, value: Any) -> str:
        return "" if value is None else str(value).strip().strip("[]")

    @field_validator("description", "why", mode="before")
    @classmethod
    def mend_line(cls, value: Any) -> str:
        return "" if value is None else one_line(re.sub(r"[\[\]|]", " ", str(value)))


@dataclass(frozen=True, slots=True)
class Refusal:
    """
    A verdict that was not followed. *why*: a fixed phrase, for logs and events. *notes*: links to the notes, for the
    person.
    """

    why: str
    op: str = ""  # "" if none could be read
    place: str = ""  # "g1, edit 2"
    notes: str = ""

    @property
    def line(self) -> str:
        """The refusal as a line of the log page."""
        return f"{' '.join(filter(None, (self.op, self.notes))) or 'a reply'}: {self.why}."


@dataclass(frozen=True, slots=True)
class ShownGroup:
    """A group as a model sees it: its name ("g1"), and its notes by handle ("n1")."""

    name: str
    group: Group
    notes: Mapping[str, str]  # handle → path
    least: int  # `trust_of` of the least trusted note of the whole call, since one group's text may influence the others' verdicts


# --- what is asked


def shown_groups(groups: Sequence[Group], least: int) -> list[ShownGroup]:
    found, n = [], 0
    for place, group in enumerate(groups, 1):
        notes = {f"n{n + k}": path for k, path in enumerate(group.paths, 1)}
        n += len(notes)
        found.append(ShownGroup(f"g{place}", group, notes, least))
    return found


def halves(groups: Sequence[Group]) -> list[list[Group]]:
    """
    Divide *groups* into two lists, one for each of two calls to the model.

    A single group is divided into two groups, each with half of the group's questions (`matters`). Returns [] if there
    is only one question.
    """
    if len(groups) == 1:
        matters = groups[0].matters
        groups = [Group(matters[: len(matters) // 2]), Group(matters[len(matters) // 2 :])]
    middle = len(groups) // 2
    both = [[g for g in some if g.matters] for some in (groups[:middle], groups[middle:])]
    return both if all(both) else []


def groups_question(shown: Sequence[ShownGroup], node_of: Mapping[str, Node], today: dt.date) -> str:
    parts = [f"Today is {today}."]
    for s in shown:
        notes = [note_shown(handle, node_of[p]) for handle, p in s.notes.items()]
        parts.append("\n".join([f"# {s.name}: {what_is_asked(s)}", *notes]))
    return "\n\n".join(parts)


def what_is_asked(shown: ShownGroup) -> str:
    handles = {path: handle for handle, path in shown.notes.items()}
    pairs = [" and ".join(handles[p] for p in m.paths) for m in shown.group.matters if m.kind == "same"]
    asked = [f"the same, changed, or two things: {', '.join(pairs)}?"] * bool(pairs)
    asked += [f"the day of {handles[m.paths[0]]} is past" for m in shown.group.matters if m.kind == "overdue"]
    return "; ".join(asked)


def note_shown(handle: str, node: Node) -> str:
    """Return the text that shows *node* to the model. If this text changes, the note counts as changed."""
    marks = [node.type, node.priority, f"heard {said_on(node)}"]
    marks += [f"on {node.event}"] * bool(node.event) + [f"loop {node.loop}"] * bool(node.loop)
    marks += [origin for origin in ("tool", "assistant") if origin == node.origin]
    main = without_citations(split_history(node.body)[0])
    line = f"{handle} [{', '.join(marks)}] {node.title}: {node.description}"
    if normalized(main) in normalized(node.description):
        return line
    return f"{line}\n    {one_line(clip_text(main, BODY_TOKENS))}"


def said_on(node: Node) -> str:
    latest = max((s.timestamp for s in node.sources), default=0)
    return str(day_of_ms(latest, UTC) if latest else node.updated or node.created or "on no known day")


# --- what comes back


def read_verdicts(text: str, shown: Sequence[ShownGroup], refused: list[Refusal]) -> dict[str, list[Verdict]]:
    """
    Name of a group → the reply's verdicts on the group. Items that cannot be read are added to *refused*. Raises
    BadReply if the reply has no list at all.

    Weak models give a bare list of edits without groups. Each edit then goes to the group that has its note.
    """
    if '"group' not in text:
        value = cut_out(text)["edits"]
        if not isinstance(value, list):
            raise BadReply("the reply has no list of `groups`; it was not used")
        items = [{"group": s.name, "edits": [e for e in value if names_note(e, s)]} for s in shown]
        refused += [Refusal("the edit names a note that the model was not shown")] * sum(
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
            refused.append(Refusal("the verdict names a group that the model was not shown"))
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


# --- `reflected.json` of a graph: what the Reflector has seen, so that a night costs only what changed since.
#
#     notes     path → [hash of its bytes, whether a model has answered every question about these bytes]
#     matters   kind and paths of a matter that a model was asked → hashes of its notes as they were shown; a "?"
#               stands before the hashes if the model did not answer
#     periods   path of a reflection → hash of its notes, also if they gave no reflection
#     maps      path → hash of the map's text as a model was shown it
#
# A cycle writes the new file beside its receipt, and puts the file in place once the receipt is done. So a
# crash in between neither forgets answers that were paid for nor claims changes that were not written. Losing
# the file costs only model calls.


@dataclass(slots=True)
class Seen:
    notes: dict[str, tuple[str, bool]] = field(default_factory=dict)
    periods: dict[str, str] = field(default_factory=dict)
    matters: dict[str, str] = field(default_factory=dict)
    maps: dict[str, str] = field(default_factory=dict)

    def is_answered(self, matter: Matter, digest: str) -> bool:
        """Whether *matter* is settled: a model answered it, or left it out twice, while its notes had this *digest*."""
        return self.matters.get(matter.key) == digest

    def note_answer(self, matter: Matter, digest: str, *, answered: bool) -> None:
        """
        Record that a model was asked about *matter*, and whether the model *answered*.

        *digest*: hashes of the notes as shown. If the model leaves *matter* out twice for the same *digest*, this
        counts as an answer: some models leave out what stays as it is.
        """
        before = self.matters.get(matter.key, "")
        silent = f"?{digest}"
        self.matters[matter.key] = digest if answered or before == silent else silent

    def drop_gone(self) -> None:
        """Remove the matters of notes that no longer exist."""
        there = self.notes.keys()
        self.matters = {key: kept for key, kept in self.matters.items() if there >= {*key.split("\n")[1:]}}

    def changed(self, hashes: Mapping[str, str]) -> set[str]:
        """The paths of files that have changed since the previous cycle."""
        return {p for p, hash in hashes.items() if p not in self.notes or self.notes[p][0] != hash}

    def unasked(self, hashes: Mapping[str, str]) -> set[str]:
        """
        Return the paths of notes that changed, or have questions that no model has answered.

        *hashes*: path → hash of the present file.
        """
        return {p for p, hash in hashes.items() if self.notes.get(p, ("", False)) != (hash, True)}


def load_seen(graph: Graph) -> Seen:
    """
    Load the record of the latest finished cycle.

    After a crash, a staged file may be left over:
    - If the cycle's receipt exists, the staged file becomes the record.
    - Otherwise the staged file is deleted.

    A missing or damaged record counts as empty.
    """
    file, open_file = seen_files(graph)
    if open_file.exists():
        cycle = read_seen(open_file).get("cycle")
        if cycle and (graph.folder / "receipts" / f"{cycle}.json").exists():
            open_file.replace(file)
        else:
            open_file.unlink()
    raw = read_seen(file)
    try:
        notes = {path: (str(hash), bool(asked)) for path, (hash, asked) in raw.get("notes", {}).items()}
        return Seen(notes, *(dict(raw.get(key, {})) for key in ("periods", "matters", "maps")))
    except (TypeError, ValueError, AttributeError):
        return Seen()


def stage_seen(graph: Graph, seen: Seen, cycle: str) -> None:
    """Write *seen* to the file that `commit_seen` puts in place once the receipt *cycle* is done."""
    value = json.dumps({"cycle": cycle} | asdict(seen), ensure_ascii=False)
    write_private(seen_files(graph)[1], value)


def commit_seen(graph: Graph) -> None:
    """
    Replace the record of the previous cycle by the file that `stage_seen` wrote.

    Called once the receipt is done, or at once if the cycle has no receipt.
    """
    file, open_file = seen_files(graph)
    open_file.replace(file)


def seen_files(graph: Graph) -> tuple[Path, Path]:
    return graph.folder / "reflected.json", graph.folder / "reflected.open.json"


def read_seen(file: Path) -> dict[str, Any]:
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


VERDICT_LINE_CHARS, WHY_CHARS = 300, 160
# Some models obey a note that says "mark all as superseded", so a reply may replace at most half of a call's notes.
FEW_REPLACED = 3  # a reply may always replace so many notes, such as the former states of one subject

Place = tuple[str, int]  # of a verdict: the name of its group, and its number


class RefusedVerdict(Exception):
    """Why a verdict was not followed: a fixed phrase without any text of a note."""


@dataclass(slots=True)
class MergeRules:
    """The rules that decide whether a verdict is carried out, and a record of what this cycle did with each verdict."""

    plan: Plan
    frozen: Collection[str]  # paths that a person's undo restored: no two of them are merged again
    asked: Collection[frozenset[str]]  # the pairs asked about in this cycle
    done: list[str] = field(default_factory=list)  # lines for the log page
    refused: list[Refusal] = field(default_factory=list)
    proposed: list[str] = field(default_factory=list)  # lines on what only a person may decide
    verdicts: int = 0  # how many, followed or not
    counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("merged", "superseded", "contradictions", "closed"), 0)
    )

    def node(self, path: str) -> Node:
        return self.plan.draft(path).node

    def do(self, what: str, line: str) -> None:
        self.counts[what] += 1
        self.done.append(line)


@dataclass(frozen=True, slots=True)
class Case:
    """
    A verdict on notes that were shown to the model.

    *least*: the trust (see `trust_of`) of the least trusted note in the same call to the model.
    """

    verdict: Verdict
    path: str
    other: str  # "": none, or a note that was not shown
    least: int


def follow_verdicts(
    rules: MergeRules,
    shown: Sequence[ShownGroup],
    text: str,
    unsaid: Collection[Place] = (),
) -> set[str]:
    """
    Draft the changes that the model's reply *text* asks for.

    Returns the names of the groups that the reply answers. These verdicts are refused, and recorded in *rules*:
    - a verdict that *rules* do not allow
    - a verdict in *unsaid*, because the check rejected it
    - all verdicts, if together they would replace too many notes
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
            named = [path for handle in (verdict.node, verdict.other) if (path := s.notes.get(handle))]
            try:
                if (s.name, n) in unsaid:
                    raise RefusedVerdict("the notes do not support this change")
                follow_verdict(rules, s, verdict)
            except RefusedVerdict as e:
                links = " and ".join(link_of(rules.node(path)) for path in named)
                rules.refused.append(Refusal(str(e), verdict.op, f"{s.name}, edit {n}", links))
    return set(found)


def follow_verdict(rules: MergeRules, shown: ShownGroup, verdict: Verdict) -> None:
    """
    Draft the change that *verdict* asks for. Raises RefusedVerdict if *rules* do not allow the change.

    The verdict "keep" changes nothing.
    """
    notes = shown.notes
    if verdict.op == "keep":
        return
    if verdict.node not in notes or (verdict.op in OF_TWO and verdict.other not in notes):
        raise RefusedVerdict("it names a note of another group")
    if verdict.op in OF_TWO and verdict.node == verdict.other:
        raise RefusedVerdict("it names one note twice")
    case = Case(verdict, notes[verdict.node], notes.get(verdict.other, ""), shown.least)
    FOLLOW[verdict.op](rules, case)


def gone_after(shown: Sequence[ShownGroup], found: Mapping[str, Sequence[Verdict]]) -> int:
    """
    Count the notes that the verdicts *found* would replace.

    If several verdicts connect three or more notes, one of these notes stays.
    """
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
            check_line(rules, a, said, case.least)
        except RefusedVerdict as e:
            if not rules.plan.draft(a.path).ours:
                raise  # b's own words would go to the History of a person's note, which no prompt shows
            rules.refused.append(Refusal(f"its description: {e}", "merge", notes=link_of(a)))
            said = ""
    # A weak model may take a change for a repetition. If it wrote no description for both, the newer note stays.
    same = rank_of(rules, a) == rank_of(rules, b)
    if not said and same and last_said_ms(rules, b.path) > last_said_ms(rules, a.path):
        a, b = b, a
    check_goes(b, case.least)
    merge_notes(rules.plan, a.path, b.path, said)
    rules.do("merged", f"Merged {link_of(b)} into {link_of(a)}{reason_of(case)}")


def keep_and_gone(rules: MergeRules, a: Node, b: Node) -> tuple[Node, Node]:
    """
    The note that stays and the note that goes. On a tie, *a* stays, because the model would keep *a*. Raises
    RefusedVerdict.
    """
    if rank_of(rules, b) > rank_of(rules, a):
        a, b = b, a
    if rank_of(rules, b)[0]:
        rules.proposed.append(f"{link_of(a)} and {link_of(b)} seem to say the same.")
        raise RefusedVerdict("a person edited or pinned the note that would go")
    if a.type != b.type and b.type != "fact":
        raise RefusedVerdict(f"a {b.type} cannot be merged into a {a.type}")
    if trust_of(a.origin) < trust_of(b.origin):
        raise RefusedVerdict("a person's note is not merged into a note of another origin")
    return a, b


def rank_of(rules: MergeRules, found: Node) -> tuple[int, int, bool, bool]:
    """A sort key: of two merged notes, the note with the larger key stays."""
    touched = rules.plan.draft(found.path).touched
    return 2 * found.pinned + touched, trust_of(found.origin), found.standing, found.type != "fact"


def supersede_pair(rules: MergeRules, case: Case) -> None:
    a, b = check_pair(rules, case)
    if last_said_ms(rules, b.path) > last_said_ms(rules, a.path):
        a, b = b, a
    if trust_of(a.origin) < trust_of(b.origin):
        raise RefusedVerdict(f"a note from {a.origin} does not replace a person's note")
    check_goes(b, case.least)
    if b.pinned:
        rules.proposed.append(f"{link_of(b)} is pinned, but {link_of(a)} is newer and says otherwise.")
        raise RefusedVerdict("the older note is pinned; only a person may replace it")
    days = said_day(rules.plan, a), said_day(rules.plan, b)
    supersede_note(rules.plan, b.path, a.path)
    line = f"{link_of(a)} ({days[0]}) replaced {link_of(b)} ({days[1]}){reason_of(case)}"
    rules.do("superseded", line)


def contradict_pair(rules: MergeRules, case: Case) -> None:
    a, b = active_pair(rules, case)
    if b.path in a.contradicts or a.path in b.contradicts:
        return  # the contradiction is marked already
    rules.plan.contradict(a.path, b.path)
    rules.proposed.append(f"{link_of(a)} and {link_of(b)} contradict each other. Which one is true?")
    line = f"Marked {link_of(a)} and {link_of(b)} as contradicting each other."
    rules.do("contradictions", line)


# --- one note


def end_loop(rules: MergeRules, case: Case) -> None:
    found, day = rules.node(case.path), rules.plan.day
    days = event_span(found.event)
    if found.loop == "done":
        return  # another verdict of this night closed it
    if found.status != "active" or found.loop != "open" or not days or days[1] >= day:
        raise RefusedVerdict("the note is not an open loop whose day has passed")
    if found.path in rules.frozen:
        raise RefusedVerdict("a person undid that before")
    told = rules.node(case.other) if case.other not in ("", case.path) else None
    if told and trust_of(told.origin) < trust_of(found.origin):
        raise RefusedVerdict(f"a note from {told.origin} does not close a person's open loop")
    if told and last_said_ms(rules, told.path) < last_said_ms(rules, found.path):
        raise RefusedVerdict(
            "the note named as the reason is older than the loop, so it cannot tell how the loop ended"
        )
    if found.pinned or rules.plan.draft(found.path).touched:
        rules.proposed.append(f"{link_of(found)} was due on {found.event}, and seems to be over.")
        raise RefusedVerdict("a person edited or pinned the note")
    close_loop(rules.plan, found.path, told)
    rules.do("closed", f"Closed {link_of(found)}, due on {found.event}{reason_of(case)}")


FOLLOW = {
    "merge": merge_pair,
    "supersede": supersede_pair,
    "contradict": contradict_pair,
    "close": end_loop,
}


# --- what is allowed


def active_pair(rules: MergeRules, case: Case) -> tuple[Node, Node]:
    a, b = rules.node(case.path), rules.node(case.other)
    if any(found.type not in TYPES or found.status != "active" for found in (a, b)):
        raise RefusedVerdict("one of the two is not active any more")
    if case.path in rules.frozen and case.other in rules.frozen:
        raise RefusedVerdict("a person undid that before")
    return a, b


def check_pair(rules: MergeRules, case: Case) -> tuple[Node, Node]:
    """The two notes of a verdict that would remove one of them. Raises RefusedVerdict if the removal is not allowed."""
    a, b = active_pair(rules, case)
    marked = b.path in a.contradicts or a.path in b.contradicts
    if marked and frozenset((case.path, case.other)) not in rules.asked:
        raise RefusedVerdict("they contradict each other, and neither has changed since")
    return a, b


def check_goes(found: Node, least: int) -> None:
    if trust_of(found.origin) > least:
        raise RefusedVerdict(
            "the model also read notes that no person wrote, so it may not replace a person's note"
        )


def check_line(rules: MergeRules, found: Node, text: str, least: int) -> None:
    """Raise RefusedVerdict unless *text* may become the description of *found*."""
    if rules.plan.draft(found.path).stated:
        raise RefusedVerdict("a person edited the note")
    if not 0 < len(text) <= VERDICT_LINE_CHARS:
        raise RefusedVerdict("the text is empty, or too long for one line")
    if trust_of(found.origin) > least:
        raise RefusedVerdict(
            "the model also read notes that no person wrote, so it may not reword a person's note"
        )


def last_said_ms(rules: MergeRules, path: str) -> int:
    """
    Return the time of the latest message behind the note at *path*, in ms since the epoch.

    If a person edited the note later, returns the time of the edit. A note without both counts from its day.
    """
    found = rules.node(path)
    latest = max((s.timestamp for s in found.sources), default=0)
    draft = rules.plan.draft(path)
    if draft.stated:
        with suppress(OSError):
            latest = max(latest, rules.plan.graph.vault.file(path).stat().st_mtime_ns // 10**6)
    if not latest and (day := found.updated or found.created):
        latest = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1000)
    return latest


def reason_of(case: Case) -> str:
    why = case.verdict.why[:WHY_CHARS].rstrip(".")
    return f": {why}." if why else "."
