"""The views of notes: the list and its search, one note, the graph, and the preview of a forgetting."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from functools import reduce
from itertools import islice
from typing import Any

from ..curate import open_note, select_to_forget
from ..dates.days import due_text, event_span, relative_day
from ..errors import BadInput, NotFound
from ..forget.places import Holding, holding
from ..forget.selection import Selection, Wanted, said_again, select, select_words
from ..graph.graph import Graph
from ..graph.state import NEVER
from ..index.search import parse_query
from ..index.store import Entry, Hit, entries_where
from ..inject.passages import Passage, find_said, quoted_passages, speaker_name
from ..message.turn import Message
from ..node.note import GENERATED, ORIGINS, STATUSES, TYPES
from ..plan.corrections import corrected_by
from ..plan.drafts import PERSONS
from ..plan.edits import as_read, split_history
from ..plan.pages import due_day, persons_words, session_title, standing_loops
from ..text.characters import with_labels
from ..text.words import cut_text
from .drawing import KIND_NAMES, drawn_graph, neighbourhood
from .request import Asked

ROWS = 50  # notes on a page of the list
SAID_TOKENS, SAID_SHOWN = 1_500, 12  # messages shown beside the notes that a search finds
LOOPS_SHOWN = 6
LINE_CHARS, MESSAGE_CHARS = 320, 1_200
TEXT_CHARS = 40_000  # shown of a note, or of a map with thousands of lines
SESSIONS_SHOWN = 30
BESIDE = 24  # neighbours drawn on a note's page
SAYERS = {"user": "you", "human": "you, by hand", "assistant": "the assistant", "tool": "a tool or a page"}

SPEAKERS = {
    "user": "you",
    "assistant": "the assistant",
}  # a sender may call themselves by other keys of SAYERS
STATES = {"superseded": "no longer so", "any": "any state"}
# A session's title (plan/pages.py) → what a person calls the session.
NAMES = {
    r"^main project \w+-": "project ",
    r"^main thread\b": "your chat, thread",
    r"^main$": "your chat",
    r"^person ": "",
    r"^(\S+) (?:direct|dm) (\S+)": r"\2 on \1",
    r"^(\S+) (group|channel|room) (\S+)": r"\2 \3 on \1",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One note in a list."""

    entry: Entry
    link: str
    text: str
    day: str
    marks: tuple[str, ...]
    warnings: tuple[str, ...]
    why: str = ""

    @property
    def kind(self) -> str:
        return KIND_NAMES.get(self.entry.type, self.entry.type)


def name_of(session: str) -> str:
    """Return what a person calls the *session* or memory: "your chat", "clara", "group -1004815 on telegram"."""
    return reduce(lambda name, old: re.sub(old, NAMES[old], name), NAMES, session_title(session))


def row_of(asked: Asked, entry: Entry, why: str = "") -> Row:
    text = cut_text(" ".join(entry.description.split()), LINE_CHARS)
    day = entry.updated or entry.created
    link = asked.link("note", path=entry.path)
    return Row(
        entry,
        link,
        text,
        str(day) if day else "no day",
        marks_of(entry, asked.today),
        warnings_of(entry),
        why,
    )


def marks_of(entry: Entry, today: date) -> tuple[str, ...]:
    """Say whether the note is pinned, when it is due, and whether it is open or done."""
    said = entry.updated or entry.created
    due = due_text(entry.event, today, entry.loop, said) if entry.event else ""
    loop = entry.loop if entry.loop and entry.status == "active" else ""
    return tuple(filter(None, ("pinned" * entry.pinned, due, loop)))


def warnings_of(entry: Entry) -> tuple[str, ...]:
    """Say why the note may be wrong: its status, a contradiction, or who said it."""
    status = "" if entry.status == "active" else STATES.get(entry.status, entry.status)
    origin = f"from {SAYERS[entry.origin]}" if entry.origin in ("assistant", "tool") else ""
    outdated = (
        "mentions something that no longer holds" if entry.outdated and entry.type != "reflection" else ""
    )
    return tuple(filter(None, (status, "contradicted" if entry.contradicts else "", outdated, origin)))


# --- the list


def memory_view(asked: Asked) -> dict[str, Any]:
    """List the notes, newest first, or the notes and messages that a search finds."""
    graph, words = asked.graph, asked.get("q")
    filters = {name: asked.get(name) for name in ("type", "map", "by", "session", "day", "status")}
    filters["status"] = filters["status"] or "active"
    at = asked.number("at")
    if words:
        hits, said = found_for(asked, words)
        fitting = set(graph.index.ask(paths_where, filters, [h.entry.path for h in hits]))
        rows = [row_of(asked, h.entry, h.why) for h in hits if h.entry.path in fitting]
        more = False
    else:
        said = []
        entries, more = graph.index.ask(newest_where, filters, ROWS, at)
        rows = [row_of(asked, entry) for entry in entries]
    loops = standing_loops(graph.index.entries(loop="open"), asked.today)
    plain = not words and not at and not any(v for k, v in filters.items() if k != "status")
    if asked.get("loops"):
        rows, more, plain = [row_of(asked, entry) for entry in loops], False, False
    given = {k: v for k, v in filters.items() if v and (k, v) != ("status", "active")}
    params = {k: v for k, v in (("q", words), *given.items()) if v}
    return {
        "title": "Memory",
        "words": words,
        "filters": filters,
        "given": given,
        "rows": rows,
        "said": said,
        "loops": [row_of(asked, e) for e in loops[:LOOPS_SHOWN]] if plain else [],
        "loop_count": len(loops),
        "loops_alone": bool(asked.get("loops")),
        "earlier": asked.link("", **{**params, "at": at + ROWS}) if more else "",
        "newer": asked.link("", **{**params, "at": max(0, at - ROWS)}) if at else "",
        "counts": graph.index.ask(counts_by_type),
        "choices": filter_choices(graph),
        "waiting": len(graph.pending()),
    }


def found_for(asked: Asked, words: str) -> tuple[Sequence[Hit], list[dict[str, str]]]:
    graph, now = asked.graph, asked.memory.clock()
    query = parse_query(words, asked.today)
    hits = graph.index.search(query, ROWS, now=now)
    found = find_said(graph, query, hits, session="", now=now)
    passages = quoted_passages(graph, query, found, room=SAID_TOKENS)
    return hits, [passage_row(asked, p) for p in islice(passages, SAID_SHOWN)]


def passage_row(asked: Asked, passage: Passage) -> dict[str, str]:
    return {
        "speaker": SPEAKERS.get(passage.speaker, passage.speaker),
        "text": passage.text,
        "whole": "",
        "at": asked.time_of(passage.at_ms),
        "link": asked.link("note", path=passage.note) if passage.note else "",
        "marks": ", ".join(filter(None, (passage.passed_on, "has changed since" * passage.changed))),
    }


LISTED = (*TYPES, "note", "reflection")


def conditions(filters: dict[str, str]) -> tuple[str, list[object]]:
    """Return an SQL condition on the table `note`, and the condition's values."""
    marks = ", ".join("?" * len(LISTED))
    parts, values = [f"type in ({marks})"], list[object](LISTED)
    columns = {"type": "type", "map": "home", "by": "origin", "status": "status"}
    for name, column in columns.items():
        if (value := filters.get(name)) and value != "any":
            parts.append(f"{column} = ?")
            values.append(value)
    if day := filters.get("day"):
        parts.append("? in (coalesce(updated, created), created)")
        values.append(day)
    if session := filters.get("session"):
        parts.append("id in (select note from source where session = ?)")
        values.append(session)
    return " and ".join(parts), values


def newest_where(
    db: sqlite3.Connection, filters: dict[str, str], limit: int, offset: int
) -> tuple[list[Entry], bool]:
    """Return one page of the notes that pass *filters*, newest first, and whether more follow."""
    where, values = conditions(filters)
    order = "coalesce(updated, created) desc, path"
    paths = [
        path
        for (path,) in db.execute(
            f"select path from note where {where} order by {order} limit ? offset ?",
            (*values, limit + 1, offset),
        )
    ]
    return entries_at(db, paths[:limit]), len(paths) > limit


def entries_at(db: sqlite3.Connection, paths: Sequence[str]) -> list[Entry]:
    """Return the notes at *paths*, in that order, without those that no longer exist."""
    marks = ", ".join("?" * len(paths))
    found = {e.path: e for e in entries_where(db, f"where path in ({marks})", paths).values()}
    return [found[path] for path in paths if path in found]


def paths_where(db: sqlite3.Connection, filters: dict[str, str], among: Sequence[str]) -> list[str]:
    where, values = conditions({**filters, "status": filters["status"].replace("active", "any")})
    marks = ", ".join("?" * len(among))
    return [
        p
        for (p,) in db.execute(
            f"select path from note where {where} and path in ({marks})", (*values, *among)
        )
    ]


def counts_by_type(db: sqlite3.Connection) -> dict[str, int]:
    found = dict(db.execute("select type, count(*) from note where status = 'active' group by type"))
    return {type: found[type] for type in LISTED if type in found}


def filter_choices(graph: Graph) -> dict[str, list[tuple[str, str]]]:
    """Return the values of each filter, each with the name that a person reads."""
    select = "select session from source group by session order by max(timestamp) desc limit ?"
    sessions = graph.index.ask(lambda db: db.execute(select, (SESSIONS_SHOWN,)).fetchall())
    counts = graph.index.moc_counts()
    return {
        "type": [(type, type) for type in LISTED],
        "map": [(p, t) for p, t in graph.index.maps().items() if counts.get(p)],
        "by": [(origin, SAYERS[origin]) for origin in ORIGINS],
        "session": [(key, name_of(key)) for (key,) in sessions if key],
        "status": [(s, STATES.get(s, s)) for s in (*STATUSES, "any")],
    }


# --- one note


def note_view(asked: Asked) -> dict[str, Any]:
    """
    Show a note: its text, its history, its messages, how often it was used, and its neighbours. Raises NotFound,
    BadInput, BadNode.
    """
    graph, note = asked.graph, open_note(asked.graph, asked.get("path"))
    node, entry = note.node, graph.index.entry(note.node.path)
    if entry is None:
        raise NotFound(f"{node.path} is not in the index yet; try again in a moment")
    main, before = split_history(node.body)
    whole = main.removeprefix(f"# {node.title}").strip()
    text = cut_text(whole, TEXT_CHARS)
    times, last = graph.uses.all().get(node.id, NEVER)
    around, links = graph.index.ask(neighbourhood, node.path, BESIDE, pages=False)
    proposed = corrected_by(node)
    return {
        "title": node.title,
        "node": node,
        "row": row_of(asked, entry),
        "cut": text != whole,
        "text": "" if as_read(with_labels(text)) == as_read(node.description) else text,
        "before": [line.removeprefix("- ") for line in before][::-1],
        "said": [message_row(asked, m) for m in note.messages],
        "uses": times,
        "last_use": f"{relative_day(asked.day_of(last), asked.today)}" if last else "",
        "around": [row_of(asked, e) for e in around if e.path != node.path],
        "drawing": drawn_graph(asked, around, links, node.path) if len(around) > 1 else "",
        "successor": linked_row(asked, node.superseded_by),
        "against": [row for path in entry.contradicts if (row := linked_row(asked, path))],
        "corrects": linked_row(asked, proposed[0]) if proposed else None,
        "corrected": proposed[1] if proposed else None,
        "said_by": SAYERS.get(node.origin or "", "unknown"),
        "theirs": node.origin in PERSONS,
        "page": node.type in GENERATED,
        "words": persons_words(note.text, node.path) if node.type in GENERATED else "",
        "file": str(graph.vault.file(node.path)),
        "due": event_span(node.event) and due_day(entry),
    }


def linked_row(asked: Asked, path: str | None) -> Row | None:
    entry = asked.graph.index.entry(path) if path else None
    return row_of(asked, entry) if entry else None


def message_row(asked: Asked, message: Message) -> dict[str, str]:
    text = message.text.strip()
    return {
        "speaker": SPEAKERS.get(name := speaker_name(message), name),
        "at": asked.time_of(message.timestamp),
        "text": cut_text(text, MESSAGE_CHARS),
        "whole": text if len(text) > MESSAGE_CHARS else "",
        "link": "",
        "marks": "",
    }


# --- the graph


MOST_DRAWN = 150


def graph_view(asked: Asked) -> dict[str, Any]:
    """Draw a note and its surroundings, at most MOST_DRAWN notes; without a note, draw the maps and their newest notes."""
    graph, name = asked.graph, asked.get("path")
    centre = open_note(graph, name).node.path if name else "index"
    if graph.index.entry(centre) is None:
        return {"title": "Graph", "rows": [], "drawing": "", "centre": None, "total": 0}
    around, links = graph.index.ask(neighbourhood, centre, MOST_DRAWN)
    total = graph.index.ask(lambda db: db.execute("select count(*) from note").fetchone()[0])
    return {
        "title": "Graph",
        "centre": linked_row(asked, centre),
        "rows": [row_of(asked, e) for e in around if e.path != centre],
        "drawing": drawn_graph(asked, around, links, centre, large=True),
        "total": total,
        "given": bool(name),
    }


# --- what a forgetting would take


def forget_view(asked: Asked) -> dict[str, Any]:
    """Show what each choice would forget. Change nothing. Raises NotFound, BadInput."""
    graph, path, words = asked.graph, asked.get("path"), asked.get("words")
    asked.memory.take_in()
    entry = graph.index.entry(path) if path else None
    choices, again = list[dict[str, Any]](), list[str]()
    if entry and (what := selection_for(graph, "forget", path, "")):
        again = said_again(graph, what, asked.memory.clock())
        only = Selection((path,), ())  # the other places are known only after the forgetting
        choices += [{"name": "forget", **taken(asked, what)}, {"name": "alone", **taken(asked, only)}]
    held = holding(graph, words) if words else None
    for name in ("words", "redact"):
        if what := selection_for(graph, name, path, words, held):
            choices.append({"name": name, **taken(asked, what)})
    if not choices and (path or words):
        raise NotFound(f"no note or message is named or contains {words or path!r}; nothing was changed")
    return {
        "title": "Forget",
        "path": path,
        "words": words,
        "row": row_of(asked, entry) if entry else None,
        "choices": choices,
        "again": again,
    }


def selection_for(
    graph: Graph, choice: str, path: str, words: str, held: Holding | None = None
) -> Selection | None:
    """
    Select what *choice* would remove, by *path* or by *words*. Returns None if *choice* does not apply.

    *held*: the answer of `holding` for *words*, if the caller already has it.
    """
    if choice == "forget" and path:
        return select_to_forget(graph, ids=[path])
    if choice == "alone" and path:
        return select(graph, Wanted([path], alone=True))
    if choice == "words" and words:
        return select_to_forget(graph, matching=words, held=held) or None
    if choice == "redact" and words:
        with suppress(BadInput):
            return select_words(graph, words, held) or None
    return None


SHOWN = 12  # quoted notes and messages of a choice


def taken(asked: Asked, what: Selection) -> dict[str, Any]:
    index = asked.graph.index
    entries = index.ask(entries_at, what.paths[:SHOWN])
    messages: Iterable[Message] = index.messages(what.messages[:SHOWN])
    return {
        "rows": [row_of(asked, e) for e in entries],
        "notes": len(what.paths),
        "messages": len(what.messages),
        "said": [message_row(asked, m) for m in messages],
        "left": what.left,
        "beyond": what.beyond,
        "linking": what.linking,
    }
