"""Defines the schema of the Observer's reply, and turns a reply into edits.

A reply is untrusted: only items that can be parsed are used, and they name notes and messages only by the handles
that were shown. The cited messages tell who said a thing (provenance.py)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, tzinfo
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator

from ..check import Claim, Evidence, Verdict
from ..dates.days import day_of_ms, span_text
from ..dates.rules import month_span, resolve_dates
from ..errors import BadReply, how_many
from ..inbox import PREFIX, is_by_hand
from ..index.store import Entry
from ..llm.replies import TEXTS, ModelReply, cut_out, object_schema
from ..message.turn import Message
from ..node.markdown import slugify
from ..node.note import PRIORITIES, TYPES, Node, Source
from ..plan.corrections import corrected_by
from ..plan.drafts import PERSONS
from ..plan.edits import Edit, one_line, place_of, short_title, with_sentences
from ..provenance import (
    Proposed,
    Settled,
    Target,
    as_claim_of,
    claims_of,
    origin_of,
    settle_edits,
    source_name,
)
from ..text.characters import visible
from ..text.words import cut_text, split_sentences, told_words

CLEAR = "clear"  # a model writes this in an update to empty a field; null leaves the field as it is
LINE = {"type": ["string", "null"]}
EDIT_SCHEMA = object_schema(
    "op sources",
    op={"type": "string", "enum": ["create", "update", "supersede"]},
    node=LINE,
    type={"type": ["string", "null"], "enum": [*TYPES, None]},
    title=LINE,
    description=LINE,
    body=LINE,
    drop=TEXTS,
    priority={"type": ["string", "null"], "enum": [*PRIORITIES, None]},
    event=LINE,
    loop={"type": ["string", "null"], "enum": ["open", "done", CLEAR, None]},
    standing={"type": ["boolean", "null"]},
    tags=TEXTS,
    links={"type": "array", "items": object_schema("note", note={"type": "string"}, reason=LINE)},
    contradicts=TEXTS,
    sources=TEXTS,
)
OBSERVER_SCHEMA = object_schema(
    "edits", edits={"type": "array", "items": EDIT_SCHEMA}, now={"type": "object"}
)
EVENT = re.compile(r"(\d{4}(?:-\d\d(?:-\d\d)?)?)(?:(?:\.\.|/)(\d{4}(?:-\d\d(?:-\d\d)?)?))?(?![\d-])")
HINTS = ("task", "state", "next")  # what a conversation is about now
LONGEST_DESCRIPTION = 600  # characters; a longer description goes on in the body


@dataclass(frozen=True, slots=True)
class ShownToObserver:
    """What the Observer was shown, by handle: `m1` → (session, message), `n1` → note."""

    messages: Mapping[str, tuple[str, Message]]
    notes: Mapping[str, Entry]
    zone: tzinfo
    now: str = ""  # the conversation's hints before these messages
    # handle → what the note says beyond its line
    bodies: Mapping[str, str] = field(default_factory=dict)
    more: int = 0  # notes that exist and are not shown
    # The last messages before these, which these may answer; they are not shown.
    before: Sequence[Message] = ()
    # Message id → how many notes were made earlier from this page or tool's result.
    noted: Mapping[str, int] = field(default_factory=dict)
    # Notes that the assistant proposed from these messages (plan/corrections.py).
    proposals: Sequence[Node] = ()
    made: frozenset[str] = frozenset()  # handles of notes made from these messages when they were read first


@dataclass(slots=True)
class ParsedReply:
    edits: list[Edit] = field(default_factory=list)
    proposed: int = 0  # edits in the reply
    targets: dict[int, Target] = field(default_factory=dict)  # place of an edit → the note it changes
    cited: list[list[Message]] = field(default_factory=list)  # by each edit
    # name → text; "" clears the hint, a missing name leaves the hint as it is
    hints: dict[str, str] = field(default_factory=dict)
    shared: list[str] = field(default_factory=list)  # names of the hints that other conversations may see
    taken: list[str] = field(default_factory=list)  # paths of proposals that the person's words confirm
    cut: int = 0  # replies whose end is missing
    # A reason for each dropped item, without conversation text.
    dropped: list[str] = field(default_factory=list)
    # Statements that were not noted, with the reason; for `omg history`.
    refused: list[str] = field(default_factory=list)
    notes: Mapping[str, str] = field(default_factory=dict)  # path of a shown note → what the note says
    said: list[tuple[Source, str]] = field(default_factory=list)  # what the assistant said in these messages


# --- Usual slips of format: what models write, and what they mean.


FORMS: Mapping[str, Mapping[str, str]] = {
    "op": {
        **dict.fromkeys(("add", "new", "insert", "note", "record"), "create"),
        **dict.fromkeys(
            ("edit", "modify", "change", "amend", "append", "revise", "upsert", "merge"), "update"
        ),
        **dict.fromkeys(("replace", "supercede"), "supersede"),
    },
    "type": dict.fromkeys(("trait", "person"), "identity") | {"event": "episode", "plan": "episode"},
    "priority": {"normal": "medium", "urgent": "high", "critical": "high", "minor": "low"},
    "loop": {
        **dict.fromkeys(("closed", "complete", "completed", "resolved", "finished"), "done"),
        **dict.fromkeys(("true", "yes", "pending", "todo"), "open"),
    },
    "standing": dict.fromkeys(("true", "yes", "1"), "yes") | dict.fromkeys(("false", "no", "0"), "no"),
}
KEYS = {
    "op": ("action", "operation"),
    "node": ("note", "node_id", "note_id", "target"),
    "description": ("text", "content", "desc", "summary"),
    "sources": ("source", "messages", "cites", "source_ids", "evidence"),
}
BEHIND_WORD = re.compile(r"[^a-z].*", re.S)  # the rest of "update note", "fact (work)"
NOTHING = ("null", "none", "n/a")
# A handle, and what models write beside a handle: "[m1]", "M1", "message 1", "m1 09:46", "n1: its title",
# "n1 [fact]".
HANDLE = re.compile(
    r"[\s\[(#\"'`]*([mn]?)(?:sg|essage|ote|ode)?[\s_.#-]*(\d{1,5})[\s\])\"'`]*(?:(?<=[\s\])])\d?\d:\d\d|[:\[(].*)?",
    re.I,
)
# A range stands alone: "m1: I have 2-3 cats" names only m1.
RANGE = re.compile(
    r"[\s\[(\"'`]*(?:(?:from|messages?|msgs?)\s)?m?(\d{1,5})\s?(?:-|–|\.\.+|…|to)\s?m?(\d{1,5})[\s\])\"'`]*",
    re.I,
)
DAY_PARTS = re.compile(r"\b(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})\b")
MOST_IN_RANGE = 50  # messages


def meant(name: str, words: Sequence[str]) -> BeforeValidator:
    """
    Read a value of the field *name* as one of *words*. Any other value becomes None.

    These differences do not matter: capitals, an "s" or "d" at the end ("updated"), a synonym in FORMS ("edit" for
    "update"), and more words behind the first one.
    """
    forms = FORMS.get(name, {})

    def mend(value: Any) -> str | None:
        word = str(value).strip().strip("`\"'").lower()
        tried = [w.removesuffix(end) for w in (word, BEHIND_WORD.sub("", word)) for end in ("", "s", "d")]
        return next((form for w in tried if (form := forms.get(w, w)) in words), None)

    return BeforeValidator(mend)


def handle(value: Any, letter: str) -> str:
    """Read *value* as a handle: 1, "[m1]" and "M1" are m1. Any other text is returned as it is."""
    found = HANDLE.fullmatch(str(value))
    return f"{found[1].lower() or letter}{int(found[2])}" if found else str(value).strip()


def each(value: Any, separator: str = "\0") -> list[str]:
    """
    The texts in *value*: the items of a list, the values of an object, or the parts of a string between the
    *separator*. Empty texts and words in NOTHING are left out.
    """
    if isinstance(value, dict):
        value = [v for v in value.values() if isinstance(v, str)] or [*value.values()]
    if isinstance(value, list):
        return [text for item in value for text in each(item)]
    texts = re.split(separator, value) if isinstance(value, str) else [str(value)] * isinstance(value, int)
    return [text.strip() for text in texts if text.strip() and text.strip().lower() not in NOTHING]


def handles_of(part: str) -> list[str]:
    """The handles of the messages that *part* names: one message, or a range such as "m1-m3"."""
    if (found := RANGE.fullmatch(part)) is None:
        return [handle(part, "m")]
    first, last = sorted(map(int, found.groups()))
    return [f"m{n}" for n in range(first, min(last, first + MOST_IN_RANGE) + 1)]


def mended_sources(value: Any) -> list[str]:
    parts = re.split(r"[,;]|\s(?:and\s|&)|(?<!to)(?<![-–….])\s(?=m\d)", ", ".join(each(value)))
    return [name for part in parts if part.strip() for name in handles_of(part)]


def as_line(value: Any) -> str:
    return " ".join(each(value))


def mended_event(value: Any) -> str | None:
    text = "..".join(each(value, r"\s+(?:to|until|[-–])\s+|(?<=\d)–(?=\d)|(?<=\b\d{4})-(?=\d{4}\b)")).lower()
    return DAY_PARTS.sub(lambda m: f"{m[1]}-{int(m[2]):02}-{int(m[3]):02}", text) or None


Text = Annotated[str, BeforeValidator(as_line)]
# A note may also be named by its title, which has spaces.
Names = Annotated[list[str], BeforeValidator(lambda value: each(value, r"[,;]\s*"))]


def links_meant(value: Any) -> list[tuple[str, str]]:
    """The links of an edit, as (name, reason). A model writes them as objects, or as names without a reason."""
    found = list[tuple[str, str]]()
    for item in value if isinstance(value, list) else [value]:
        names, reason = item, ""
        if isinstance(item, dict):
            names, reason = {k: v for k, v in item.items() if k != "reason"}, as_line(item.get("reason"))
        found += [(name, visible(one_line(reason))) for name in each(names, r"[,;]\s*")]
    return found


Links = Annotated[list[tuple[str, str]], BeforeValidator(links_meant)]


class ReplyItem(BaseModel):
    """
    One edit as a model writes it, with slips of format mended.

    A field that the model left out is None or empty, and an update does not change such a field. An unknown `op` and
    missing `sources` are errors.
    """

    model_config = ConfigDict(extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def named_otherwise(cls, item: Any) -> Any:
        """
        Give the keys of *item* their proper names. If `op` is missing, an item that names a note is an update, and
        any other item is a new note.
        """
        if not isinstance(item, dict):
            return item
        if len(item) == 1:  # {"create": {…}}
            ((op, inner),) = item.items()
            item = {"op": op, **inner} if isinstance(inner, dict) else item
        item = {str(key).lower(): value for key, value in item.items() if value is not None}
        named = {key: item[other] for key, others in KEYS.items() for other in others if item.get(other)}
        return {"op": "update" if (named | item).get("node") else "create", **named, **item}

    op: Annotated[Literal["create", "update", "supersede"], meant("op", ("create", "update", "supersede"))]
    node: Text = ""
    type: Annotated[str | None, meant("type", TYPES)] = None
    title: Text = ""
    description: Text = ""
    body: Annotated[str, BeforeValidator(lambda value: "\n".join(each(value)))] = ""
    drop: Annotated[list[str], BeforeValidator(each)] = []
    priority: Annotated[str | None, meant("priority", PRIORITIES)] = None
    event: Annotated[str | None, BeforeValidator(mended_event)] = None
    loop: Annotated[str | None, meant("loop", ("open", "done", CLEAR))] = None
    standing: Annotated[Literal["yes", "no"] | None, meant("standing", ("yes", "no"))] = None
    tags: Annotated[list[str], BeforeValidator(lambda value: each(value, r"[,;]\s*"))] = []
    links: Links = []
    contradicts: Names = []
    sources: Annotated[list[str], BeforeValidator(mended_sources)]

    @model_validator(mode="after")
    def described(self) -> ReplyItem:
        """Let a new note without a description use its body as the description."""
        if self.op != "update" and not self.description:
            self.description, self.body = self.body, ""
        return self


def parse_answer(
    reply: ModelReply, shown: ShownToObserver, model: str, *, material: bool = False
) -> ParsedReply:
    """
    Parse the edits in *reply*, an answer of *model*.

    If the reply was cut short, only the edits before the cut are used. Raises BadReply, which names the model.
    """
    try:
        raw = cut_out(reply.text)
        parsed = parse_value(raw, shown, material=material)
    except BadReply as e:
        why = "ended before its first note was whole; raise [llm] max_output_tokens" if reply.cut else e
        raise BadReply(f"{model}: {why}") from e
    if reply.cut:
        parsed.cut, parsed.hints = 1, {}  # the hints stand at the end of a reply
        parsed.dropped.append(
            "the end of a reply that was cut short; raise [llm] max_output_tokens for longer replies"
        )
    elif broken := raw.get("broken"):
        parsed.dropped.append(f"{how_many(broken, 'edit')} that could not be read as JSON")
    return parsed


def parse_value(raw: Mapping[str, Any], shown: ShownToObserver, *, material: bool = False) -> ParsedReply:
    """
    Parse the edits of a reply. An empty list is an answer; a missing list raises BadReply. *material*: the question
    was about text that tools returned or people passed on, so each edit has the origin `tool`.
    """
    parsed = ParsedReply(
        notes={e.path: e.description for e in shown.notes.values()}, said=assistant_said(shown)
    )
    counted = NotesOfPages(dict(shown.noted))
    items = items_in(raw)
    parsed.proposed = len(items)
    linked: list[list[tuple[str, str]]] = []  # for each edit: the names in its links, with their reasons
    places: dict[str, int] = {}  # a name by which other edits may refer to an edit → the edit's place
    for n, value in enumerate(items, 1):
        try:
            item = ReplyItem.model_validate(value)
            place = None if named_note(item, shown) else places.get(name_of_edit(item.node))
            edit, cited = to_edit(item, shown, None if place is None else parsed.edits[place])
        except (ValidationError, ValueError, RecursionError) as e:
            reason = e.errors()[0]["msg"] if isinstance(e, ValidationError) else str(e)
            parsed.dropped.append(f"edit {n}: {reason}")
            continue
        if material:
            edit = told_by_source(edit, cited, shown)
            if not counted.room_for(edit):
                why = f"at most {FROM_PAGE} notes are made from one page or one tool result"
                parsed.dropped.append(f"edit {n}: {why}")
                parsed.refused.append(f"left out “{edit.description}”: {why}")
                continue
        if (target := target_of(item, shown, place, parsed)) is not None:
            parsed.targets[len(parsed.edits)] = target
        if place is not None:
            edit = about_edit(edit, place, parsed.edits[place])
        for name in (f"new:{n}", slugify(edit.title)):
            places.setdefault(name, len(parsed.edits))
        parsed.edits.append(edit)
        parsed.cited.append(cited)
        linked.append(item.links)
    for place, links in enumerate(linked):
        parsed.edits[place] = linked_edit(parsed.edits, place, links, places, shown)
    now = raw.get("now")
    if isinstance(now, Mapping) and not material:
        parsed.hints = {
            k: visible(" ".join(str(now[k]).split()))[:LONGEST_DESCRIPTION]
            for k in HINTS
            if now.get(k) is not None
        }
    return parsed


def items_in(raw: Mapping[str, Any]) -> list[Any]:
    """
    The edits of a reply. A model may write them as a list, as a single edit, as an object by number, or as JSON in a
    string. Raises BadReply.
    """
    items = raw.get("edits")
    if isinstance(items, str):
        items = cut_out(items)["edits"]
    if isinstance(items, dict):
        items = [items] if "title" in items or "op" in items else [*items.values()]
    if not isinstance(items, list):
        raise BadReply("the reply has no list of `edits`; nothing was marked observed")
    return items


def linked_edit(
    edits: Sequence[Edit],
    place: int,
    links: Sequence[tuple[str, str]],
    places: Mapping[str, int],
    shown: ShownToObserver,
) -> Edit:
    """The edit at *place* with its *links* to edits of the same reply, and with the reason of each link."""
    edit = edits[place]
    others = {name: n for name, _ in links if (n := places.get(name_of_edit(name), place)) != place}
    titles = {name: edits[n].title for name, n in others.items()}
    known = {name: shown.notes.get(handle(name, "n")) for name, _ in links}
    titles |= {name: note.title for name, note in known.items() if note}
    for name, reason in links:
        edit = with_reason(edit, reason, titles.get(name, ""))
    return replace(edit, beside=tuple(dict.fromkeys(others.values())))


def with_reason(edit: Edit, reason: str, title: str) -> Edit:
    """
    Add the *reason* of a link to the body of *edit*, as a sentence that names *title*. Adds nothing if the body names
    *title*.
    """
    if not reason or not title or place_of(title, edit.body):
        return edit
    if not place_of(title, reason):
        reason = f"{reason.rstrip('.。 ')} ({title})."
    return replace(edit, body=with_sentences(edit.body, reason))


FROM_PAGE = 5  # most notes from one page or tool's result


@dataclass(slots=True)
class NotesOfPages:
    """Counts the notes made from each page or tool's result, by the id of its message."""

    made: dict[str, int]

    def room_for(self, edit: Edit) -> bool:
        if edit.op == "create" and any(self.made.get(s.id, 0) >= FROM_PAGE for s in edit.sources):
            return False
        self.made |= {s.id: self.made.get(s.id, 0) + (edit.op == "create") for s in edit.sources}
        return True


def told_by_source(edit: Edit, cited: Sequence[Message], shown: ShownToObserver) -> Edit:
    """
    Make *edit* a claim of the page or tool that the text comes from.

    The description then begins with the source ("example.com says: …"), and the origin is "tool". So the note never
    counts as the person's.
    """
    messages = [*shown.before, *(m for _, m in shown.messages.values())]
    source = next((m for m in cited if m.role == "tool"), next((m for m in cited if m.material), None))
    text = edit.description
    if text and source is not None:
        text = as_claim_of(source_name(source, messages), text)
    return replace(edit, origin="tool", description=text)


def assistant_said(shown: ShownToObserver) -> list[tuple[Source, str]]:
    return [
        (Source(session, m.id, m.timestamp, source_kind(m)), m.text)
        for session, m in shown.messages.values()
        if m.role == "assistant" and m.text
    ]


def proposed_by(parsed: ParsedReply) -> Proposed:
    return Proposed(parsed.edits, parsed.cited, parsed.targets, parsed.notes, parsed.said)


def claims_in(parsed: ParsedReply, shown: ShownToObserver) -> list[Claim]:
    """The claims of a reply that the check has to answer."""
    hints = [Claim(-1, "hint", text, {"hint": key}) for key, text in parsed.hints.items() if text]
    proposed = [proposal_claim(n, node) for n, node in enumerate(shown.proposals)]
    return [*claims_of(proposed_by(parsed)), *hints, *proposed]


LATEST = 3  # so many of the user's latest messages tell the state of the conversation


def evidence_for(parsed: ParsedReply, shown: ShownToObserver) -> Evidence:
    """
    Return what the check may use as evidence for the claims of *parsed*.

    The evidence is the messages, and notes that tell what a person said. Notes made by the same reply are left out.
    """
    messages = [m for _, m in shown.messages.values()]
    known = {  # without notes of the same reply: they would confirm each other
        t.title: f"(said {t.said}) {t.description} {t.body}".strip()
        for t in parsed.targets.values()
        if t.path and t.origin in PERSONS
    }
    known = {n.title: f"(said {n.updated}) {n.description}" for n in leant_on(parsed, shown)} | known

    def cites(claim: Claim) -> Sequence[Message]:
        if claim.part == "hint":
            return [m for m in messages if m.role == "user"][-LATEST:]
        if claim.part != "proposal":
            return parsed.cited[claim.of]
        ids = {source.id for source in shown.proposals[claim.of].sources}
        return [m for m in messages if m.id in ids]

    return Evidence([*shown.before, *messages], cites, shown.zone, known)


def leant_on(parsed: ParsedReply, shown: ShownToObserver) -> Iterator[Entry]:
    """
    Yield the notes that edits take words from. All of these must hold:

    - The edit links to the note.
    - The edit and the note each tell what a person said.
    - The edit has words of the note that are not in the messages that the edit cites.
    """
    for edit, cited in zip(parsed.edits, parsed.cited, strict=True):
        words = told_words(f"{edit.description} {edit.body}") - told_words("\n".join(m.spoken for m in cited))
        for note in shown.notes.values() if edit.origin in PERSONS else ():
            named = note.path in edit.links and note.origin in PERSONS
            if named and words & told_words(f"{note.title} {note.description}"):
                yield note


def proposal_claim(place: int, node: Node) -> Claim:
    found = corrected_by(node)
    says = {"replaces": found[1].was} if found else {"type": node.proposes}
    says |= {"event": node.event} if node.event else {}
    return Claim(place, "proposal", f"{node.title}: {node.description}", says)


def settled_reply(
    parsed: ParsedReply, shown: ShownToObserver, answers: Sequence[tuple[Claim, Verdict]]
) -> ParsedReply:
    """Apply the *answers* of the check to *parsed*."""
    shared = [claim.says["hint"] for claim, v in answers if claim.part == "hint" and v == "supported"]
    taken = [shown.proposals[c.of].path for c, v in answers if c.part == "proposal" and v == "supported"]
    return replace(
        with_settled(parsed, settle_edits(proposed_by(parsed), answers)), shared=shared, taken=taken
    )


def quoted_reply(parsed: ParsedReply) -> ParsedReply:
    """
    Replace each note that would count as the user's by a quotation of the user.

    Used if the model cannot check its notes: only the user's own words are then reliable.
    """
    return with_settled(parsed, settle_edits(proposed_by(parsed), None))


def with_settled(parsed: ParsedReply, done: Settled) -> ParsedReply:
    dropped, refused = [*parsed.dropped, *done.dropped], [*parsed.refused, *done.refused]
    return replace(parsed, edits=done.edits, dropped=dropped, refused=refused)


def name_of_edit(name: str) -> str:
    return name if name.startswith("new:") else slugify(name)


def note_named(name: str, shown: ShownToObserver) -> Entry | None:
    """The shown note that *name* means. A note is named by its title, its path, the name of its file or its handle."""
    name = name.strip("[]\"'` ").partition("|")[0].casefold()
    named = (
        e for e in shown.notes.values() if name in (e.title.casefold(), e.path, e.path.rpartition("/")[2])
    )
    return next(named, None) or shown.notes.get(handle(name, "n"))


def named_note(item: ReplyItem, shown: ShownToObserver) -> Entry | None:
    """The shown note that *item* changes; None for a new note, or if *item* names no shown note."""
    return note_named(item.node, shown) if item.op != "create" and item.node else None


def to_edit(item: ReplyItem, shown: ShownToObserver, about: Edit | None) -> tuple[Edit, list[Message]]:
    """
    The edit that *item* asks for, and the messages that *item* cites. Raises ValueError with the reason if *item*
    cannot become an edit.

    *about*: an earlier edit of the same reply, if *item* changes the note that the earlier edit makes.
    """
    target = named_note(item, shown)
    cited = [shown.messages[h] for h in dict.fromkeys(item.sources) if h in shown.messages]
    heard = [m for _, m in cited]
    if why := why_no_edit(item, heard, known=target is not None or about is not None):
        raise ValueError(why)
    description, rest = short_line(visible(" ".join(item.description.split())))
    body = f"{rest}\n{visible(unless_clear(item.body) or '')}".strip()
    day = day_of_ms(max(m.timestamp for m in heard), shown.zone)
    item = item.model_copy(update={"event": event_meant(item.event, day)})
    kind = item.type or (target.type if target else about.type if about else "fact")
    links = paths_of(shown.notes.get(handle(name, "n")) for name, _ in item.links)
    contradicts = paths_of(note_named(name, shown) for name in item.contradicts)
    kept = target if item.op == "update" else None  # fields that are not given keep the values of this note
    edit = Edit(
        op=item.op,
        title=visible(item.title) or (kept.title if kept else short_title(description)),
        description=description,
        type=kind,
        body=body,
        priority=item.priority or (kept.priority if kept else "medium"),
        event=unless_clear(item.event),
        loop=unless_clear(item.loop),
        tags=tuple(tag for tag in map(safe_tag, item.tags) if tag and tag != CLEAR)[:5],
        links=tuple(dict.fromkeys((*links, *contradicts))),
        contradicts=contradicts,
        sources=tuple(Source(session, m.id, m.timestamp, source_kind(m)) for session, m in cited),
        target=target.path if target and item.op != "create" else None,
        sets=fields_set(item, target),
        drop=tuple(item.drop),
        standing=item.standing == "yes" and kind == "preference",
        day=day,
    )
    return replace(edit, origin=origin_of(edit, heard, set(filter(is_by_hand, heard)))), heard


def why_no_edit(item: ReplyItem, heard: Sequence[Message], *, known: bool) -> str:
    """Why *item*, which cites *heard*, cannot be an edit; "" if it can. *known*: the note to be changed was shown."""
    says = visible(" ".join(item.description.split())) or (item.op == "update" and sets_something(item))
    if not says:
        return "no description"
    if not heard:
        return "cites no message that was shown"
    return "" if known or item.op == "create" else f"the note to {item.op} was not shown to the model"


def short_line(text: str) -> tuple[str, str]:
    """Split *text* into a line of at most LONGEST_DESCRIPTION characters and the rest, which goes into the body."""
    if len(text) <= LONGEST_DESCRIPTION:
        return text, ""
    line = ""
    for sentence in split_sentences(text):
        if len(line) + len(sentence) >= LONGEST_DESCRIPTION:
            break
        line = f"{line} {sentence}".strip()
    line = line or cut_text(text, LONGEST_DESCRIPTION)
    return line, text[len(line) :].strip() if text.startswith(line) else text


def unless_clear(value: str | None) -> str | None:
    return None if value == CLEAR else value


def paths_of(notes: Iterable[Entry | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(note.path for note in notes if note))


def target_of(
    item: ReplyItem, shown: ShownToObserver, place: int | None, parsed: ParsedReply
) -> Target | None:
    """
    Return the note that *item* changes, as it is before the change; None for a new note.

    - If *item* names a note that the model was shown, this note is returned.
    - Otherwise *item* may go on with an earlier edit of the same reply, at index *place*. The note is returned as the
      earlier edit leaves it.
    """
    if note := named_note(item, shown):
        body = next((text for handle, text in shown.bodies.items() if shown.notes[handle] is note), "")
        return target_of_note(note, body)
    if item.op == "create" or place is None:
        return None
    about, known = parsed.edits[place], parsed.targets.get(place)
    if known is not None:  # both edits change the same shown note
        return replace(known, title=about.title, description=about.description or known.description)
    return Target(about.origin, about.title, about.description, about.body)


def target_of_note(note: Entry, body: str) -> Target:
    return Target(note.origin, note.title, note.description, body, note.path, note.updated)


def fields_set(item: ReplyItem, target: Entry | None) -> frozenset[str]:
    """
    Return the names of the properties that *item* changes in the note *target*.

    - "title", "type", "priority", "event", "loop" and "standing" count if the model gave a value that differs from the
      value in *target*. Without *target*, each given value counts.
    - "body" and "tags" count only if the model cleared them with the word CLEAR. Other text and tags are added to the
      note's.
    """
    given = {name for name in ("title", "type", "priority", "event", "loop") if getattr(item, name)}
    same = {name for name in given if target and getattr(target, name) == getattr(item, name)}
    cleared = {"body"} if item.body == CLEAR else set()
    stands = None if item.standing is None else item.standing == "yes"
    standing = {"standing"} if stands not in (None, target.standing if target else None) else set()
    return frozenset((given - same) | cleared | standing | ({"tags"} if CLEAR in item.tags else set()))


def sets_something(item: ReplyItem) -> bool:
    return bool(fields_set(item, None) or item.body or item.drop or item.links or item.standing is not None)


def about_edit(edit: Edit, place: int, other: Edit) -> Edit:
    """
    Let *edit* change the note that *other*, an earlier edit of the same reply, makes or changes.

    *place*: the place of *other* in the reply. If *edit* creates a note, it is returned unchanged.
    """
    if edit.op == "create":
        return edit
    unset = {name: getattr(other, name) for name in ("title", "type", "priority") if name not in edit.sets}
    return replace(edit, about=place, **(unset if edit.op == "update" else {}))


def event_meant(text: str | None, said: date) -> str | None:
    """
    Read *text* as a day or a span of days: "2026-03-05", "2026-03-05..2026-03-08".

    "Tomorrow" is counted from the day *said*. The word "clear", which empties the field, is returned unchanged. None
    means that *text* names no day.
    """
    if not text or text == CLEAR:
        return text
    found = resolve_dates(text, said)
    return whole_days(text) or (span_text(found[0].start, found[-1].end) if found else None)


def whole_days(text: str) -> str | None:
    """
    Read the day, month, year or span at the start of *text* as days: "2026-03" is 2026-03-01..2026-03-31. None if
    there is none.
    """
    found = EVENT.match(text)
    if found is None:
        return None
    try:
        first, last = (calendar_span(part) for part in (found[1], found[2] or found[1]))
    except ValueError:
        return None
    return span_text(*sorted((first[0], last[1])))


def calendar_span(text: str) -> tuple[date, date]:
    """The first and the last day of "2026", "2026-03" or "2026-03-05"."""
    year, *rest = map(int, text.split("-"))
    if len(rest) == 2:
        return (day := date(year, *rest)), day
    return month_span(year, rest[0], 1) if rest else month_span(year, 1, 12)


def source_kind(message: Message) -> str:
    return "inbox" if message.id.startswith(PREFIX) else "message"


def safe_tag(tag: str) -> str:
    return re.sub(r"[^\w/-]+", "-", tag.lstrip("#").lower()).strip("-")[:40]
