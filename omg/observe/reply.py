"""
What a model replied → edits.

Untrusted from end to end: an item that cannot be parsed is dropped, not the rest; notes and messages can only be
named by the handles they were shown under. Pure. One rule: who said a thing is computed from the messages cited,
never taken from the model.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from ..dates.days import day_of_ms
from ..errors import BadReply
from ..inbox.notes import PREFIX, is_by_hand
from ..index.entries import Entry
from ..llm.jsontext import TEXT, TEXTS, cut_out, object_schema, one_of
from ..llm.ledger import ModelReply
from ..message.turn import Message
from ..node.fields import PRIORITIES, TYPES, Source
from ..node.markdown import slugify
from ..offline.likeness import content_stems
from ..offline.quoted import own_words
from ..plan.drafts import NEEDS_USER
from ..plan.edits import Edit

EDIT_SCHEMA = object_schema(
    "op type title description priority sources",
    op={"type": "string", "enum": ["create", "update", "supersede"]},
    node={"type": ["string", "null"]},
    type={"type": "string", "enum": list(TYPES)},
    title=TEXT,
    description=TEXT,
    body=TEXT,
    priority={"type": "string", "enum": list(PRIORITIES)},
    event={"type": ["string", "null"]},
    loop={"type": ["string", "null"], "enum": ["open", "done", None]},
    tags=TEXTS,
    links=TEXTS,
    sources=TEXTS,
)
OBSERVER_SCHEMA = object_schema(
    "edits", edits={"type": "array", "items": EDIT_SCHEMA}, now={"type": "object"}
)
EVENT = re.compile(r"\d{4}-\d\d-\d\d(\.\.\d{4}-\d\d-\d\d)?")
LONG_WORD = re.compile(r"[^\W_]{4,}")
HINTS = ("task", "state", "next")  # how a conversation stands
LONGEST_DESCRIPTION = 600  # characters of a description; beyond it is no line any more but a model running on


@dataclass(frozen=True, slots=True)
class ShownToObserver:
    """What the Observer was shown, by handle: `m1` → message and its session, `n1` → note."""

    messages: Mapping[str, tuple[str, Message]]
    notes: Mapping[str, Entry]
    zone: tzinfo
    now: str = ""  # how the conversation stood before them


@dataclass(slots=True)
class ParsedReply:
    edits: list[Edit] = field(default_factory=list)
    hints: dict[str, str] = field(default_factory=dict)  # of HINTS; "" clears one, what is not there stays
    cut: int = 0  # replies whose end is missing
    dropped: list[str] = field(default_factory=list)  # why, one line per item; no conversation text


class ReplyItem(BaseModel):
    """One edit as a model writes it. Anything we can mend is mended; `op`, `description` and `sources` we cannot."""

    model_config = ConfigDict(extra="ignore")

    op: str
    node: str | None = None
    type: str = "fact"
    title: str = ""
    description: str
    body: str = ""
    priority: str = "medium"
    event: str | None = None
    loop: str | None = None
    tags: list[str] = []
    links: list[str] = []
    sources: list[str]
    reason: str = ""

    @field_validator("op", mode="before")
    @classmethod
    def check_op(cls, value: Any) -> str:
        return one_of(value, "create", "update", "supersede")

    @field_validator("type", mode="before")
    @classmethod
    def mend_type(cls, value: Any) -> str:
        kind = str(value).strip().lower()
        kind = kind if kind in TYPES else kind.removesuffix("s")
        return kind if kind in TYPES else "fact"

    @field_validator("priority", mode="before")
    @classmethod
    def mend_priority(cls, value: Any) -> str:
        priority = value.strip().lower() if isinstance(value, str) else ""
        return priority if priority in PRIORITIES else "medium"

    @field_validator("event", mode="before")
    @classmethod
    def mend_event(cls, value: Any) -> str | None:
        found = EVENT.fullmatch(str(value).strip()[:22]) or EVENT.match(str(value).strip())
        return found[0] if found else None

    @field_validator("loop", mode="before")
    @classmethod
    def mend_loop(cls, value: Any) -> str | None:
        return value if value in ("open", "done") else None

    @field_validator("title", "description", "body", "reason", mode="before")
    @classmethod
    def mend_text(cls, value: Any) -> str:
        return "" if value is None else str(value).strip()

    @field_validator("tags", "links", "sources", mode="before")
    @classmethod
    def mend_list(cls, value: Any) -> list[str]:
        if isinstance(value, str):
            value = re.split(r"[,\s]+", value)
        return [str(v).strip() for v in value if str(v).strip()] if isinstance(value, list) else []

    @field_validator("node", mode="before")
    @classmethod
    def mend_handle(cls, value: Any) -> str | None:
        return str(value).strip() if value else None


def parse_answer(reply: ModelReply, shown: ShownToObserver, model: str) -> ParsedReply:
    """The edits in *reply*; of one that was cut short, those that are whole. A BadReply names the *model*."""
    try:
        parsed = parse_reply(reply.text, shown)
    except BadReply as e:
        why = "ended before its first note was whole; raise [llm] max_output_tokens" if reply.cut else e
        raise BadReply(f"{model}: {why}") from e
    if reply.cut:
        parsed.cut, parsed.hints = 1, {}  # the hints stand at the end of a reply
        parsed.dropped.append("the end of a reply that was cut short; [llm] max_output_tokens allows more")
    return parsed


def parse_reply(text: str, shown: ShownToObserver) -> ParsedReply:
    """The edits in a reply. An empty list of edits is an answer; no JSON at all is none: raises BadReply."""
    return parse_value(cut_out(text), shown)


def parse_value(raw: Mapping[str, Any], shown: ShownToObserver) -> ParsedReply:
    parsed = ParsedReply()
    items = raw.get("edits")
    if not isinstance(items, list):
        raise BadReply("the reply has no list of `edits`; nothing was marked observed")
    linked: list[list[str]] = []  # as the model names what its edits are about
    places: dict[str, int] = {}  # of edits, by what others may call them
    for n, value in enumerate(items, 1):
        try:
            item = ReplyItem.model_validate(value)
            edit = to_edit(item, shown)
        except (ValidationError, ValueError) as e:
            reason = e.errors()[0]["msg"] if isinstance(e, ValidationError) else str(e)
            parsed.dropped.append(f"edit {n}: {reason}")
            continue
        for name in (f"new:{n}", slugify(edit.title)):
            places.setdefault(name, len(parsed.edits))
        parsed.edits.append(edit)
        linked.append([link if link.startswith("new:") else slugify(link) for link in item.links])
    for place, names in enumerate(linked):
        beside = tuple(dict.fromkeys(places[name] for name in names if places.get(name, place) != place))
        parsed.edits[place] = replace(parsed.edits[place], beside=beside)
    now = raw.get("now")
    if isinstance(now, Mapping):
        parsed.hints = {
            k: " ".join(str(now[k]).split())[:LONGEST_DESCRIPTION] for k in HINTS if now.get(k) is not None
        }
    return parsed


def to_edit(item: ReplyItem, shown: ShownToObserver) -> Edit:
    """Raises ValueError with the reason why this item cannot become a note."""
    description = " ".join(item.description.split())
    if not description:
        raise ValueError("no description")
    if len(description) > LONGEST_DESCRIPTION:
        raise ValueError(f"a description of {len(description)} characters")
    cited = [shown.messages[h] for h in dict.fromkeys(item.sources) if h in shown.messages]
    if not cited:
        raise ValueError("cites no message that was shown")
    target = shown.notes.get(item.node or "")
    if item.op != "create" and target is None:
        raise ValueError(f"{item.op} of a note that was not shown")
    latest = max(m.timestamp for _, m in cited)
    edit = Edit(
        op=item.op,  # type: ignore[arg-type]  # checked by ReplyItem
        title=item.title or description[:60],
        description=description,
        type=item.type,
        body=item.body,
        priority=item.priority,
        event=item.event,
        loop=item.loop,
        tags=tuple(tag for tag in map(safe_tag, item.tags) if tag)[:5],
        links=tuple(dict.fromkeys(shown.notes[h].path for h in item.links if h in shown.notes)),
        sources=tuple(Source(session, m.id, m.timestamp, source_kind(m)) for session, m in cited),
        origin=origin_of(description, [m for _, m in cited], [m for _, m in shown.messages.values()]),
        target=target.path if target and item.op != "create" else None,
        reason=item.reason,
        day=day_of_ms(latest, shown.zone),
    )
    return restrict_by_origin(edit, target)


def restrict_by_origin(edit: Edit, target: Entry | None) -> Edit:
    """What no person said becomes a fact or an episode at the most, and changes no note that a person's word made."""
    if edit.origin in ("user", "human"):
        return edit
    if target is not None and edit.target and (target.type in NEEDS_USER or edit.origin == "tool"):
        edit = replace(edit, op="create", target=None)
    return replace(edit, type="fact", priority="medium") if edit.type in NEEDS_USER else edit


def origin_of(statement: str, cited: Sequence[Message], shown: Sequence[Message]) -> str:
    """
    Who said it: "tool" as soon as a tool had a part in it, else "user" if a person did ("human" if they wrote it
    in a note of their own), else "assistant".

    A model may cite the person for what a page wanted remembered. So a statement whose words stand in a
    tool's result, and clearly less so in what the person wrote, is the tool's; and so is one whose words stand in
    what the person pasted or quoted, and not in their own.
    """
    roles = {m.role for m in cited}
    words = set(LONG_WORD.findall(statement.lower()))
    said = share_of_words(words, [m for m in cited if m.role == "user"])
    fetched = max((share_of_words(words, [m]) for m in shown if m.role == "tool"), default=0.0)
    if "tool" in roles or is_passed_on(statement, cited) or (fetched >= 0.6 and fetched > said + 0.2):
        return "tool"
    if "user" not in roles:
        return "assistant"
    return "human" if all(is_by_hand(m) for m in cited if m.role == "user") else "user"


def is_passed_on(statement: str, cited: Sequence[Message]) -> bool:
    """Whether what people wrote says it only where they pass on another's words."""
    texts = [m.text for m in cited if m.role == "user"]
    mine = [own_words(text) for text in texts]
    if sum(map(len, mine)) == sum(map(len, texts)):  # nearly always
        return False
    words = content_stems(statement)
    whole, theirs = content_stems("\n".join(texts)) & words, content_stems("\n".join(mine)) & words
    return len(theirs) < 0.5 * len(words) and len(whole) > len(theirs) + 0.2 * len(words)


def source_kind(message: Message) -> str:
    return "inbox" if message.id.startswith(PREFIX) else "message"


def share_of_words(words: set[str], messages: Sequence[Message]) -> float:
    """Share of *words* that stand in *messages*."""
    if not words or not messages:
        return 0.0
    text = " ".join(m.text for m in messages).lower()
    return sum(w in text for w in words) / len(words)


def safe_tag(tag: str) -> str:
    return re.sub(r"[^\w/-]+", "-", tag.lstrip("#").lower()).strip("-")[:40]
