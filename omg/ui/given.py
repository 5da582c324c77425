"""The view Given: shows what OMG added to recent prompts and would add to a typed prompt, and why."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from ..graph.state import given_lately
from ..index.store import Entry
from ..inject.decide import Prompt, decide_slice, record_of
from ..message.turn import Message, message_from_json
from ..text.words import cut_text, told_words, words_in
from .notes import entries_at, message_row, name_of, row_of
from .request import Asked

SHOWN = 20  # prompts shown on a page
PROMPT_CHARS = 400
BEFORE_MS, AFTER_MS = 120_000, 120_000  # a prompt's message was said so long before or after the prompt
REASONS = {
    "new_session": "a new conversation",
    "model_change": "another model answers",
    "edit": "a note was edited, forgotten or undone",
    "threshold": "enough was said since",
    "compaction": "the conversation was shortened",
    "reset": "the conversation was begun anew",
    "quiet": "new notes were made during a pause",
    "idle": "a long silence",
}


def given_view(asked: Asked) -> dict[str, Any]:
    """List the latest prompts. `q` is a prompt to try now; `at` selects one of these prompts, to be shown whole."""
    graph, typed, at = asked.graph, asked.get("q"), asked.get("at")
    records = [r for r in given_lately(graph.folder) if not at or str(r["at"]) == at]
    known = known_notes(asked, records[:SHOWN])
    told = sum(any(r.get("tokens", ())) for r in records)
    noted = sum(bool(tokens_of(r)[1]) for r in records)
    return {
        "title": "Given",
        "typed": typed,
        "preview": preview_of(asked, typed) if typed else None,
        "alone": bool(at),
        "prompts": [prompt_row(asked, r, known, whole=bool(at)) for r in records[:SHOWN]],
        "kept": len(records),
        "told": told,
        "noted": noted,
    }


def preview_of(asked: Asked, typed: str) -> dict[str, Any]:
    """Show what the prompt *typed* would be given now in the owner's session. Record nothing."""
    graph, now, config = asked.graph, asked.memory.clock(), asked.memory.config
    session = graph.identity.key
    made = decide_slice(graph, graph.state(), Prompt(typed, session), now, config)
    record = record_of(made, session, int(now.timestamp() * 1000))
    row = prompt_row(asked, record, known_notes(asked, [record]), whole=True, typed=typed)
    return {**row, "system": made.given.system, "prompt": made.given.prompt}


def tokens_of(record: Mapping[str, Any]) -> tuple[int, int]:
    """Return the tokens of `system` and of `prompt`."""
    found = [n for n in record.get("tokens") or () if isinstance(n, int)]
    return (found[0], found[1]) if len(found) == 2 else (0, 0)


def known_notes(asked: Asked, records: Sequence[Mapping[str, Any]]) -> dict[str, Entry]:
    paths = list(dict.fromkeys(path for r in records for path, *_ in notes_of(r)))
    return {e.path: e for e in asked.graph.index.ask(entries_at, paths)} if paths else {}


def notes_of(record: Mapping[str, Any]) -> list[tuple[str, float, str, str]]:
    return [(str(n[0]), float(n[1]), str(n[2]), str(n[3])) for n in record.get("notes") or () if len(n) == 4]


def prompt_row(
    asked: Asked, record: Mapping[str, Any], known: Mapping[str, Entry], *, whole: bool, typed: str = ""
) -> dict[str, Any]:
    """Describe one prompt: its words, what it was given and why, and what was left out; *whole* adds the quotations."""
    at, session = int(record["at"]), str(record.get("session") or "")
    system, prompt = tokens_of(record)
    words = typed or asked.graph.index.ask(prompt_said, session, at)
    given, left = list[dict[str, Any]](), list[dict[str, Any]]()
    day = asked.day_of(at)
    for path, score, why, place in notes_of(record):
        entry = known.get(path)
        row = row_of(asked, entry, why) if entry else None
        if entry and (shared := shared_words(words, entry)):
            ways = [way for way in why.split("; ") if way not in ("", "found by words")]
            why = "; ".join([f"it says {shared}", *ways])
        changed = bool(entry and entry.updated and entry.updated > day)
        told = {"row": row, "path": path, "score": score, "why": why, "changed": changed, "place": place}
        (given if place else left).append(told)
    quotes = asked.graph.index.ask(said_at, record.get("said") or ()) if whole else []
    return {
        "at": asked.time_of(at),
        "link": asked.link("given", at=at),
        "words": cut_text(" ".join(words.split()), PROMPT_CHARS),
        "session": session,
        "chat": name_of(session),
        "reason": REASONS.get(str(record.get("reason") or ""), ""),
        "system_tokens": system,
        "prompt_tokens": prompt,
        "given": given,
        "left": left,
        "quotes": [message_row(asked, m) for m in quotes],
        "quoted": len(record.get("said") or ()),
    }


def shared_words(words: str, entry: Entry) -> str:
    """Return the words that the prompt and the note share, in quotation marks."""
    theirs = told_words(f"{entry.title} {entry.description}")
    found = dict.fromkeys(w.lower() for w in words_in(words) if told_words(w) & theirs)
    return ", ".join(f"“{word}”" for word in found)


def said_at(db: sqlite3.Connection, times: Sequence[int]) -> list[Message]:
    """Return the archived messages of a person or the agent with a timestamp in *times* (ms)."""
    marks = ", ".join("?" * len(times))
    lines = db.execute(
        f"select line from message where timestamp in ({marks}) order by timestamp", tuple(times)
    )
    return [message_from_json(line)[0] for (line,) in lines]


def prompt_said(db: sqlite3.Connection, session: str, at_ms: int) -> str:
    """Return the person's message in *session* nearest to *at_ms*; "" if the archive has none."""
    select = """select line from message where session = ? and talk = 1 and timestamp between ? and ?
        order by abs(timestamp - ?) limit 6"""
    rows = db.execute(select, (session, at_ms - BEFORE_MS, at_ms + AFTER_MS, at_ms))
    found = (message_from_json(line)[0] for (line,) in rows)
    return next((m.text for m in found if m.role == "user"), "")
