"""
omg_search and omg_open: notes, messages word for word, and one note in full.

Results pass the same checks as the memory in a prompt. The searching is done in index/search.py and
inject/passages.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import islice
from typing import Any

from ..curate import OpenNote, open_note
from ..dates.days import day_of_ms, event_span, span_text
from ..dates.rules import When
from ..errors import BadInput
from ..graph.graph import Graph
from ..graph.state import SessionState
from ..index.search import parse_query
from ..index.store import Entry, Hit
from ..inject.passages import Said, find_said, passage_of, quoted_passages
from ..inject.prompt import cut_text, passage_line
from ..node.fields import GENERATED
from ..node.markdown import Section, sections_of
from ..plan.edits import split_history
from ..plan.pages import filed_day
from ..provenance import origin_mark
from ..text.tokens import count_tokens
from ..worker.registry import Registry

# --- Lenient readers for what a gateway sends with a call. None of them raises.


def mapping_in(body: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = body.get(key)
    return dict(value) if isinstance(value, Mapping) else {}


def link_target(value: object) -> str:
    """The name in a model's or person's reference to a note: the bare name or a whole [[link|label]]."""
    return str(value or "").strip().removeprefix("[[").removesuffix("]]").split("|")[0].strip()


def said_by_user(message: Mapping[str, Any]) -> bool:
    """Whether a person wrote this message of the transcript, and not the gateway in their place."""
    return bool(message.get("id")) and mapping_in(message, "provenance").get("kind") in (
        None,
        "",
        "external_user",
    )


HITS, RAW_TOKENS = 8, 2_000  # unless asked for otherwise; tokens of what was said, at the most
SEARCHED_FOR_DAYS = 100  # hits that are looked through for the days asked for: a search only raises those
MESSAGES, MESSAGE_CHARS = 10, 400  # that a note came from
LONG_TOKENS = 1_500  # a longer text is opened as its outline first
LEAD_CHARS = 600  # of what stands before its first heading


def hit_limit(value: object, default: int) -> int:
    return int(max(1, min(value, 20))) if isinstance(value, int | float) and value == value else default


def search_tool(registry: Registry, graph: Graph, params: Mapping[str, Any]) -> dict[str, Any]:
    """*params*: query, limit, when (days, as a person writes them), raw (what was said, not notes), order ("time")."""
    words, when = (str(params.get(key) or "").strip() for key in ("query", "when"))
    if not words and not when:
        raise BadInput("omg_search needs a `query`, or `when`")
    now, limit = registry.clock(), hit_limit(params.get("limit"), HITS)
    query, days = parse_query(words, now.astimezone(graph.zone).date()), tuple[When, ...]()
    if when:
        days = parse_query(when, now.astimezone(graph.zone).date()).days
        if not days:
            raise BadInput(f"`when` names no day: {when!r}; write 2026-03-05, 'last week' or 'in May'")
        query = replace(query, days=days)
    if params.get("raw") is True:
        found = find_said(graph, query, [], session="", own=SessionState(), now=now)
        if when:
            found = [said for said in found if is_within(days, day_of_ms(said.message.timestamp, graph.zone))]
        said = list(islice(quoted_passages(graph, query, found, room=RAW_TOKENS), limit))
        told = [
            f"- said {day_of_ms(p.at_ms, graph.zone)} by {passage_line(p).removeprefix('- ')}"
            for p in sorted(said, key=lambda p: p.at_ms)
        ]
        return {"text": "\n".join(told) or nothing_text(days, when), "details": {"said": len(said)}}
    hits = graph.index.search(query, SEARCHED_FOR_DAYS if when else limit, now=now)
    if when:
        hits = [hit for hit in hits if is_of_days(hit.entry, days)][:limit]
    if params.get("order") == "time":
        hits.sort(key=lambda h: (filed_day(h.entry) or date.min, h.entry.path))
    return {
        "text": "\n".join(map(hit_line, hits)) or nothing_text(days, when),
        "details": {"hits": [*map(hit_value, hits)]},
    }


def nothing_text(days: Iterable[When], when: str) -> str:
    """The answer when nothing was found. It names the days searched, which may not be the days meant."""
    spans = ", ".join(dict.fromkeys(span_text(w.start, w.end) for w in days))
    return f"Nothing found of {when!r}, which is {spans}." if when else "Nothing found."


def is_of_days(entry: Entry, days: Iterable[When]) -> bool:
    """Whether *entry* is about one of *days*, or was said then."""
    about = event_span(entry.event)
    return any(is_within(days, day) for day in (*(about or ()), entry.created, entry.updated) if day) or bool(
        about and any(about[0] <= when.start <= about[1] for when in days)
    )


def is_within(days: Iterable[When], day: date) -> bool:
    return any(when.start <= day <= when.end for when in days)


def hit_line(hit: Hit) -> str:
    entry = hit.entry
    marks = filter(None, (*day_marks(entry.event, entry.updated), origin_mark(entry.origin)))
    return f"[[{entry.path}]] — {entry.description} ({', '.join(marks)})".removesuffix(" ()")


def day_marks(event: str | None, said: date | None) -> list[str]:
    """The days of a note, each with its meaning: happened, happens, or said."""
    ahead = event and said and event[:10] > said.isoformat()
    return [
        *([f"{'happens' if ahead else 'happened'} {event}"] if event else []),
        *([f"said {said}"] if said else []),
    ]


def hit_value(hit: Hit) -> dict[str, Any]:
    entry = hit.entry
    return {
        "path": entry.path,
        "description": entry.description,
        "score": round(hit.score, 3),
        "weak": hit.weak,
        "why": hit.why,
        "origin": entry.origin,
    }


def open_tool(graph: Graph, params: Mapping[str, Any]) -> dict[str, Any]:
    """
    A note's line, its text, what it said before, its links, and the words it came from; in that order. Of a long text
    with headings, its outline; of `path#Heading`, that section alone.
    """
    name, heading = named_section(graph, params.get("id"))
    note = open_note(graph, name)
    details = {"path": note.node.path}
    if heading:
        return {"text": f"{note_head(note)}\n\n{section_text(note, heading)}", "details": details}
    parts = [note_head(note), *note_text(note)]
    links = dict.fromkeys((*note.node.links, *note.node.wikilinks, *note.backlinks))
    if links:
        parts.append("Linked: " + ", ".join(f"[[{path}]]" for path in links))
    said = [
        f"- {day_of_ms(m.timestamp, graph.zone)} {passage_line(passage_of(Said(m, ''), [], '', MESSAGE_CHARS)).removeprefix('- ')}"
        for m in note.messages[:MESSAGES]
    ]
    said_by = "\n".join(["It was said:", *(said or [f"- ({without_messages(note)})"])])
    return {"text": "\n\n".join([*parts, said_by]), "details": details}


def named_section(graph: Graph, value: object) -> tuple[str, str]:
    """The note that *value* names, and the heading after a `#`; "" where there is none, or a note has the whole name."""
    name = link_target(value)
    note, _, heading = name.partition("#")
    return (name, "") if graph.index.entry(name) else (note.strip(), heading.strip())


def note_head(note: OpenNote) -> str:
    node = note.node
    marks = [
        node.type,
        node.status if node.status != "active" else "",
        *day_marks(node.event, node.updated),
        f"{node.loop} loop" if node.loop else "",
        origin_mark(node.origin),
    ]
    return f"[[{node.path}]] {node.title}: {node.description} ({', '.join(filter(None, marks))})"


def note_text(note: OpenNote) -> list[str]:
    main, before = split_history(note.node.body)
    if count_tokens(main) > LONG_TOKENS and (sections := sections_of(main)):
        main = outline(note.node.path, main, sections)
    return [part for part in (main.strip(), "\n".join(["Before:", *before]) if before else "") if part]


def outline(path: str, text: str, sections: Sequence[Section]) -> str:
    """What stands before the first heading of *text*, and its headings with their sizes."""
    lead = cut_text(text[: sections[0].start].strip(), LEAD_CHARS)
    lines = [
        f"{'  ' * (s.level - 1)}- {s.heading} ({count_tokens(text[s.start : s.end])} tokens)"
        for s in sections
    ]
    told = f"The text is long. Its sections; `{path}#Heading` opens one:"
    return "\n".join([*([lead, ""] if lead else []), told, *lines])


def section_text(note: OpenNote, heading: str) -> str:
    """The section of *note* below *heading*, with those below it. Raises BadInput, naming the headings there are."""
    text = note.node.body
    sections = sections_of(text)
    for section in sections:
        if section.heading.casefold() == heading.casefold():
            return text[section.start : section.end].strip()
    there = ", ".join(f"{s.heading!r}" for s in sections) or "none"
    raise BadInput(f"[[{note.node.path}]] has no heading {heading!r}; there are: {there}")


def without_messages(note: OpenNote) -> str:
    if note.node.sources:
        return "it is not taken in yet"
    return (
        "OMG makes this page from the notes"
        if note.node.type in GENERATED
        else "no message is named as its source"
    )
