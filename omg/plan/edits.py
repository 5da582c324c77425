"""
Edit, a proposal for one note, and NoteDraft, the note as it will be.

Pure functions. drafts.py applies an edit's effects on other notes. If two notes are merged, the less trusted of
their origins is kept.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Literal

from ..dates.days import event_span, says_day
from ..index.store import Entry
from ..journal import Rebase
from ..node.markdown import HISTORY_HEADING, SLUG_CHARS, slugify
from ..node.note import Node, Source
from ..text.characters import WIKILINK, link_label
from ..text.words import sentence_parts

# --- How an update changes a note's text: it adds new sentences and removes outdated ones (drafts.py moves these to History).
#
# Texts are compared without regard to links, case and spacing. Unchanged text keeps its bytes.


SHORTEST_CUT = 4  # characters; a shorter text ("no.") stands in many sentences
PIECE = re.compile(rf"{WIKILINK.pattern}|(\s+)|(.)", re.S)
MARKS_AT_END = ".!?…。！？;, "
EMPTY_ITEM = re.compile(r"^[ \t]*[-*+][ \t]*(?:\n|\Z)", re.M)


def as_read(text: str) -> str:
    """Return *text* in the form that is compared: labels in place of links, single spaces, lower case."""
    return spans_as_read(text)[0].strip()


def spans_as_read(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return `as_read` of *text*, and for each character of the result its place in *text*."""
    chars: list[str] = []
    spans: list[tuple[int, int]] = []
    for piece in PIECE.finditer(text):
        link, space, char = piece.groups()
        shown = link_label(link) if link is not None else " " if space else char
        chars.append(shown.lower())
        spans += [piece.span()] * len(chars[-1])
    return "".join(chars), spans


def place_of(part: str, text: str) -> slice | None:
    """
    Return the span of *part* and its closing punctuation in *text*; None if *text* does not have *part* in
    whole words.
    """
    wanted = as_read(part).rstrip(MARKS_AT_END)
    if len(wanted) < SHORTEST_CUT:
        return None
    read, spans = spans_as_read(text)
    found = re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", read)
    if found is None:
        return None
    start, end = spans[found.start()][0], spans[found.end() - 1][1]
    while end < len(text) and text[end] in MARKS_AT_END[:-2]:
        end += 1
    return slice(start, end)


def without_part(text: str, part: str) -> tuple[str, str]:
    """Return *text* without *part*, and the removed text on one line ("" if *text* does not have *part*)."""
    at = place_of(part, text)
    if at is None:
        return text, ""
    before, after = text[: at.start].rstrip(" \t"), text[at.stop :].lstrip(" \t")
    gap = " " if before and after and not before.endswith("\n") and not after.startswith("\n") else ""
    rest = EMPTY_ITEM.sub("", f"{before}{gap}{after}")
    return re.sub(r"\n{3,}", "\n\n", rest).strip(), " ".join(text[at].split())


def fresh_sentences(text: str, more: str) -> str:
    """Return the sentences and lines of *more* that *text* does not contain."""
    there = {as_compared(s) for line in text.splitlines() for s in (line, *sentence_parts(line))}
    lines = []
    for line in more.strip().splitlines():
        fresh = [s for s in sentence_parts(line) if as_compared(s) not in there]
        if fresh or not line.strip():
            lines.append("".join(fresh).rstrip())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def as_compared(sentence: str) -> str:
    """Return `as_read` of *sentence*, without punctuation and list marks at its ends."""
    return as_read(sentence).strip(MARKS_AT_END + "-*+")


def with_sentences(text: str, more: str) -> str:
    """Return *text* with the sentences and lines of *more* that *text* lacks."""
    added = fresh_sentences(text, more)
    if not added or not text:
        return text or added
    prose = "\n" not in text and "\n" not in added
    return f"{text} {added}" if prose else f"{text}\n\n{added}"


TITLE_CHARS = 120  # the name of the file holds SLUG_CHARS of them


@dataclass(frozen=True, slots=True)
class Edit:
    """A proposal to create, update or supersede one note."""

    op: Literal["create", "update", "supersede"]
    title: str
    description: str  # in an update, "" leaves the description as it is
    type: str = "fact"
    body: str = ""
    priority: str = "medium"
    event: str | None = None
    loop: str | None = None
    tags: tuple[str, ...] = ()
    links: tuple[str, ...] = ()  # paths
    contradicts: tuple[str, ...] = ()  # paths of notes that cannot be true if this edit is
    beside: tuple[int, ...] = ()  # places (0, 1, …) of related edits in the same reply
    sources: tuple[Source, ...] = ()
    origin: str | None = None
    target: str | None = None  # path of the note to update or supersede
    about: int | None = (
        None  # in place of `target`: the place of an earlier edit in the same reply that makes the note
    )
    # Properties that an update sets or clears ("title", "type", "priority", "event", "loop", "standing").
    # "body" or "tags" here: the edit's body or tags replace the note's. Otherwise they are added to the note's.
    sets: frozenset[str] = frozenset()
    drop: tuple[str, ...] = ()  # sentences of the body that are outdated
    standing: bool = False
    day: dt.date | None = None  # when it was said; None: the plan's day
    proposes: str = ""  # for a note of the assistant's: see node/note.py
    joins: bool = False  # adds to an existing note of this title and origin, instead of a second note

    @property
    def said_ms(self) -> int:
        return max((s.timestamp for s in self.sources), default=0)


@dataclass(slots=True)
class NoteDraft:
    """A note as it will be written. *before*: the file's text now; None if there is no file."""

    before: str | None
    node: Node
    text: str  # the file's future text
    ours: bool  # only OMG has written the file's words, so OMG may render the file anew
    rebase: Rebase = field(default_factory=Rebase)
    theirs: frozenset[str] = frozenset()  # properties that a person set in a note of ours
    was: str | None = None  # the former path, if the file gets another name

    @property
    def touched(self) -> bool:
        """Whether a person edited the file or set a property."""
        return not self.ours or bool(self.theirs)

    @property
    def written(self) -> bool:
        """
        Whether the note is in a person's words: written with `omg new`, or confirmed.

        False for a note made from an inbox file, because OMG chose the words.
        """
        return self.node.origin == "human" and all(s.kind != "inbox" for s in self.node.sources)

    @property
    def stated(self) -> bool:
        """Whether a person wrote what the note says: its text, its description, or all of it."""
        return not self.ours or "description" in self.theirs or self.written


def one_line(text: str) -> str:
    return " ".join(text.split())


def short_title(description: str) -> str:
    """Return the beginning of *description* as a title, cut after a whole word if possible."""
    if len(description) > SLUG_CHARS:
        description = description[: SLUG_CHARS + 1].rpartition(" ")[0] or description[:SLUG_CHARS]
    return description.rstrip(" .,;:")


def title_alias(title: str, path: str) -> tuple[str, ...]:
    """
    Return *title* as an alias if the file name spells it differently, as for "Maria's iPhone"; otherwise an
    empty tuple.
    """
    title, name = one_line(re.sub(r"[\[\]|\\]", " ", title)), path.rpartition("/")[2]
    if number := re.fullmatch(re.escape(slugify(title)) + r"-(\d+)", name):  # a second note by this title
        title += f" {number[1]}"
    fits = len(title) <= TITLE_CHARS and name in (title, slugify(title))
    return (title,) if fits and Node(path, "", "", "").title != title else ()


def merged_sources(old: tuple[Source, ...], new: Iterable[Source]) -> tuple[Source, ...]:
    def key(s: Source) -> tuple[str, str | int]:
        return s.session, s.id or s.timestamp

    both = (*old, *new)
    kept = {key(s): s for s in (*new, *old)}
    return tuple(kept[k] for k in dict.fromkeys(map(key, both)))


def higher_priority(a: str, b: str) -> str:
    return min(a, b, key=("high", "medium", "low").index)


def head_set_by(edit: Edit, old: Node) -> dict[str, Any]:
    """Return the new values of the `Node` fields that the update *edit* may change in *old*."""
    said = one_line(edit.description) or old.description
    sets = edit.sets
    return {
        "description": said,
        "type": edit.type if "type" in sets else old.type,
        "priority": edit.priority if "priority" in sets else higher_priority(old.priority, edit.priority),
        "event": edit.event if "event" in sets else edit.event or old.event,
        "loop": edit.loop if "loop" in sets else edit.loop or old.loop,
        "standing": edit.standing if "standing" in sets else old.standing,
        "tags": tuple(dict.fromkeys((*(() if "tags" in sets else old.tags), *edit.tags))),
    }


ORIGIN_ORDER = ("tool", "assistant", "user", "human", None)  # the least trusted first


def weaker_origin(a: str | None, b: str | None) -> str | None:
    """Return the less trusted of two origins."""
    return min(a, b, key=ORIGIN_ORDER.index)


def trust_of(origin: str | None) -> int:
    """Return how much an origin is trusted: 0 for a tool or a page, 1 for the assistant, 2 for a person."""
    return min(ORIGIN_ORDER.index(origin), 2)


def split_history(body: str) -> tuple[str, tuple[str, ...]]:
    """Return the text of *body* above `## History`, and the lines of the History."""
    main, mark, lines = body.partition(f"{HISTORY_HEADING}\n")
    if not mark:
        return body.strip(), ()
    return main.strip(), tuple(line for line in lines.strip().splitlines() if line.strip())


def with_history_lines(body: str, lines: tuple[str, ...]) -> str:
    return f"{body.strip()}\n\n{HISTORY_HEADING}\n" + "\n".join(lines) if lines else body.strip()


TOOK_OVER = "took over: "  # begins a History line about a note that was merged into this one; such a line is still current


def told_text(body: str) -> str:
    """
    Return the current part of *body*: its text, and History lines about notes that were merged into this note.
    """
    main, lines = split_history(body)
    said = (line.partition(": ")[2] for line in lines)
    return "\n".join([main, *(text.removeprefix(TOOK_OVER) for text in said if text.startswith(TOOK_OVER))])


def dated(old: Node, day: dt.date, text: str) -> list[str]:
    """Return *text* as a dated line for the History of *old*; nothing if *text* is empty."""
    return [f"- {old.updated or old.created or day}: {text}"] if text else []


def former_state(old: Node, event: str | None, day: dt.date) -> str:
    """
    Return a line for the History of *old*: a date and the present description.

    - *event*: the note's event after the change. If the event changes, the line also names the days of the former
      event.
    - *day*: the date of the line if *old* has no date.
    """
    when = unnamed_days(old.event, old.description) if old.event != event else ""
    return f"- {old.updated or old.created or day}: {old.description}{when}"


def unnamed_days(event: str | None, text: str) -> str:
    """
    Return the days of *event* in brackets: " (on 2026-03-05)". Return "" if *text* already names a day of *event*, or
    if *event* is a whole month that *text* names.
    """
    days = event_span(event)
    if days is None or any(says_day(text, day) for day in days):
        return ""
    whole_month = days[0].day == 1 and (days[1] + dt.timedelta(1)).day == 1 and str(days[0])[:7] in text
    return "" if whole_month else f" (on {event})"


def news_line(day: dt.date, edit: Edit, old: Node) -> str:
    """Return the History line for *edit*, for a note whose text OMG may not change."""
    said, more = one_line(edit.description), one_line(edit.body)
    news = "" if said == old.description else said
    news = news if as_read(more) in as_read(news) else f"{news} {more}".strip()
    return f"- {day}: {news or said or old.description}"


def numbered_paths(type: str, title: str) -> Iterator[str]:
    """Yield the possible paths of a note with this *type* and *title*, in order of preference."""
    slug = slugify(title)
    yield f"nodes/{type}/{slug}"
    for n in count(2):
        yield f"nodes/{type}/{slug}-{n}"


SHARED = {*Entry.__slots__} & {*dir(Node)} - {"links"}  # fields that a note and its index entry share


def as_entry(node: Node) -> Entry:
    """Return *node* as a note of the index. Its links are not resolved."""
    shared = {name: getattr(node, name) for name in SHARED}
    return Entry(**shared, links=(*node.links, *node.wikilinks), mtime=0)


def with_node_properties(node: Node, of: Node, properties: Iterable[str]) -> Node:
    """Return *node* with the values of *properties* (frontmatter names) taken from the note *of*."""
    names = [n for p in properties for n in (("scope", "identity") if p == "appliesTo" else (p,))]
    return replace(node, **{name: getattr(of, name) for name in names if name in Node.__slots__})
