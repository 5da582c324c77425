"""
Asks a model about groups of notes, and reads its verdict on each group.

Untrusted: an item that cannot be parsed is dropped, not the rest, and what is not said of one group leaves the others
standing. Not here: what of the verdicts may be done (permitted.py).
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from ..dates.days import day_of_ms, event_span
from ..errors import BadInput, BadReply
from ..graph.graph import Graph
from ..graph.state import write_private
from ..index.store import Entry
from ..journal import read_receipt
from ..llm.replies import TEXT, cut_out, object_schema, one_of
from ..node.fields import TYPES
from ..node.note import Node
from ..plan.edits import one_line, split_history, trust_of
from ..text.characters import without_citations
from ..text.tokens import clip_text
from ..text.words import stems_of
from .similar import NotesAlike
from .topics import Snapshot, normalized

# --- What a model is asked about at night: matters of a few notes each, and which of them are shown together.
#
# A matter is two notes that may be on one thing, an open loop past its day, or a title that says too little. A
# matter that a model has answered is not brought up again until one of its notes changes. Which notes are alike is
# found in similar.py.


GROUP_NOTES = 6  # notes of a group: one subject, and what else is to be asked of it
NOTES_PER_CALL = 24  # each group is judged by itself, so that a small model does not mix them up
# An open loop is asked about once its day is past and something was said since; else when so many days are, for
# people tell of what they did, and the Observer is shown the loops of the last ten days.
LATE_DAYS, NEWS_SHOWN = 10, 3
SAYS_LITTLE = "note thing stuff info information update detail misc untitled new general topic item"
# Characters of a title; words of one that only repeats the statement's beginning.
LONG_TITLE, CUT_WORDS = 70, 6
OLD_WORDS = 0.5  # of a title's words that a note has which was restated; with fewer it may speak of what was


@dataclass(frozen=True, slots=True)
class Matter:
    """Something to ask. *paths*: both notes; the loop and what was said since; the note with that title."""

    kind: Literal["same", "overdue", "title"]
    paths: tuple[str, ...]

    @property
    def known_by(self) -> tuple[str, ...]:
        """The notes that make it what it is: what was said since a loop began is found one night and not another."""
        return tuple(sorted(self.paths)) if self.kind == "same" else self.paths[:1]

    @property
    def key(self) -> str:
        return "\n".join((self.kind, *self.known_by))


@dataclass(slots=True)
class Group:
    """Matters whose notes are shown together, and judged together."""

    matters: list[Matter] = field(default_factory=list)

    @property
    def paths(self) -> list[str]:
        return list(dict.fromkeys(p for m in self.matters for p in m.paths))

    def of(self, kind: str) -> list[str]:
        """The notes that a matter of *kind* is about, without what is shown beside them."""
        return [m.paths[0] for m in self.matters if m.kind == kind]


def digest_of(texts: Iterable[str]) -> str:
    """What is kept of a matter that was answered: a hash of each of its notes, as it was shown."""
    return " ".join(hashlib.sha256(text.encode()).hexdigest()[:10] for text in texts)


# --- what there is to ask


def pairs_alike(similar: Mapping[str, Iterable[str]]) -> list[Matter]:
    """Each two notes of which one changed and resembles the other, once."""
    pairs: dict[frozenset[str], tuple[str, str]] = {}
    for path, near in similar.items():
        for other in near:
            pairs.setdefault(frozenset((path, other)), (path, other))
    return [Matter("same", paths) for paths in pairs.values()]


def loops_past_their_day(snapshot: Snapshot) -> list[tuple[Entry, int]]:
    """Open loops whose day is over, and for how many days; the longest overdue first."""
    late = []
    for entry in snapshot.now():
        span = event_span(entry.event) if entry.loop == "open" and entry.type in TYPES else None
        if span is not None and span[1] < snapshot.plan.day and entry.path not in snapshot.frozen:
            late.append((entry, (snapshot.plan.day - span[1]).days))
    return sorted(late, key=lambda found: (-found[1], found[0].path))


def overdue(loop: Entry, days: int, alike: NotesAlike) -> Matter | None:
    """*loop*, whose day is *days* over, with what was said on it since; None while it may still be told of."""
    news = [n.path for n in alike.to(loop) if is_news(n, loop)][:NEWS_SHOWN]
    return Matter("overdue", (loop.path, *news)) if news or days >= LATE_DAYS else None


def is_news(note: Entry, of: Entry) -> bool:
    """Whether *note* may tell what became of the loop *of*: it was said later, and by nobody less trusted."""
    later = (note.updated or dt.date.min) > (of.updated or dt.date.max)
    return later and trust_of(note.origin) >= trust_of(of.origin)


def weak_titles(snapshot: Snapshot, paths: Iterable[str]) -> list[Matter]:
    """Those of *paths* whose title says too little and may be changed."""
    active = {e.path: e for e in snapshot.now() if e.type in TYPES and e.path.startswith("nodes/")}
    return [
        Matter("title", (p,))
        for p in sorted(paths)
        if p in active
        and (says_little(active[p]) or speaks_of_past(snapshot, active[p]))
        and not snapshot.plan.draft(p).touched
    ]


def says_little(entry: Entry) -> bool:
    """Whether a title names nothing, or is the beginning of the statement, cut off."""
    title = re.sub(r" \d+$", "", entry.title)
    if re.match(r"\d{4}-\d\d", title):  # a day's note is called after its day
        return False
    told = stems_of(title).keys() - stems_of(f"{SAYS_LITTLE} {' '.join(TYPES)}").keys()
    cut = len(title.split()) > CUT_WORDS and entry.description.startswith(title.rstrip(" .…"))
    return cut or len(title) > LONG_TITLE or all(any(c.isdigit() for c in word) for word in told)


def speaks_of_past(snapshot: Snapshot, entry: Entry) -> bool:
    """Whether the note said something else once, and its title seems to be about that."""
    told = stems_of(entry.title).keys()
    if len(told & stems_of(entry.description).keys()) >= OLD_WORDS * len(told):
        return False
    main, before = split_history(snapshot.node(entry.path).body)
    return bool(before) and len(told & stems_of(f"{entry.description} {main}").keys()) < OLD_WORDS * len(told)


# --- what is shown together


def by_trust(matters: Iterable[Matter], entries: Mapping[str, Entry]) -> dict[int, list[Matter]]:
    """*matters* by `trust_of` the least trusted of their notes, the most trusted first: no call shows two kinds."""
    found: dict[int, list[Matter]] = {2: [], 1: [], 0: []}
    for matter in matters:
        found[min(trust_of(entries[path].origin) for path in matter.paths)].append(matter)
    return found


def groups_of(matters: Sequence[Matter]) -> list[Group]:
    """*matters* in groups: those that share notes go together, as far as a group has room for all of them."""
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
    """*groups* in their order, as many to a call as it has room for."""
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


# --- What the Reflector has seen, so that its cost follows what changed since: a file `reflected.json` of a graph.
#
#     notes     path → [hash of its bytes, whether a model has answered all there is to ask about it as it is]
#     matters   kind and paths of what a model was asked → hashes of its notes as they were shown; "?" before them
#               where it was silent
#     periods   reflection → hash of what it is made of, or was last refused for
#
# A cycle writes it beside its receipt and takes it over once the receipt is done, so that a crash in between
# neither forgets what a model was paid for nor claims what was never written. Losing this file costs only model
# calls.


UNDONE = "undid "  # begins the summary of an undo's receipt


@dataclass(slots=True)
class Seen:
    notes: dict[str, tuple[str, bool]] = field(default_factory=dict)
    periods: dict[str, str] = field(default_factory=dict)
    matters: dict[str, str] = field(default_factory=dict)

    def is_answered(self, matter: Matter, digest: str) -> bool:
        """Whether a model has answered *matter*, or was silent on it twice, with its notes as they read now."""
        return self.matters.get(matter.key) == digest

    def note_answer(self, matter: Matter, digest: str, *, answered: bool) -> None:
        """A model was asked about *matter*. Silence counts the second time: some models leave out what stays as it is."""
        before = self.matters.get(matter.key, "")
        silent = f"?{digest}"
        self.matters[matter.key] = digest if answered or before == silent else silent

    def drop_gone(self) -> None:
        """Forget what was asked of notes that are not there any more."""
        there = self.notes.keys()
        self.matters = {key: kept for key, kept in self.matters.items() if there >= {*key.split("\n")[1:]}}

    def changed(self, hashes: Mapping[str, str]) -> set[str]:
        """Paths that are not as they were seen."""
        return {p for p, hash in hashes.items() if p not in self.notes or self.notes[p][0] != hash}

    def unasked(self, hashes: Mapping[str, str]) -> set[str]:
        """Paths of notes that a model may have to be asked about."""
        return {p for p, hash in hashes.items() if self.notes.get(p, ("", False)) != (hash, True)}


def load_seen(graph: Graph) -> Seen:
    """What the last finished cycle saw. Takes over, or drops, what a crash left beside it."""
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
        return Seen(notes, dict(raw.get("periods", {})), dict(raw.get("matters", {})))
    except (TypeError, ValueError, AttributeError):
        return Seen()


def stage_seen(graph: Graph, seen: Seen, cycle: str) -> None:
    """Write *seen* down as what will be true once the receipt *cycle* is done."""
    value = {"cycle": cycle, "notes": seen.notes, "periods": seen.periods, "matters": seen.matters}
    write_private(seen_files(graph)[1], json.dumps(value, ensure_ascii=False))


def commit_seen(graph: Graph) -> None:
    """The receipt is done, or there was none to write: what was promised is true."""
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


def undone_notes(graph: Graph) -> dict[str, str | None]:
    """
    Path → text (None: no file) of what a person's undo of a cycle put back, whether or not it is still so.

    They did not want what that cycle did; until such a note changes, it is not done again.
    """
    texts: dict[str, str | None] = {}
    for file in sorted((graph.folder / "receipts").glob("*-undo-*.json")):
        with suppress(BadInput):  # damaged, which is for the doctor to say
            receipt = read_receipt(file)
            if any(line.startswith(UNDONE) and "-reflection-" in line for line in receipt.summary):
                texts |= {c.path: c.after for c in receipt.changes}
    return texts
