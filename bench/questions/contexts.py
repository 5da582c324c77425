"""
What the answerer is given to read before one question: one text for each context.

One rule: a context says nothing of which one it is.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import date, datetime
from pathlib import Path
from typing import Any

from omg import Memory
from omg.config import shipped_folder
from omg.index.store import terms_of
from omg.memory import MAIN
from omg.text.tokens import clip_text, count_tokens
from omg.text.words import sentence_spans

from .data import Conversation, Question, Said
from .files import file_name, read, write
from .vaults import Observing, commit, lane, opened

CONTEXTS = ("none", "last", "full", "raw", "slice", "vault", "tools")
SHARED = ("none", "full", "vault")  # the same for all questions of a conversation


def context_file(out: Path, context: str, question: str) -> Path:
    return out / "contexts" / context / f"{file_name(question)}.json"


def make_contexts(
    conversation: Conversation,
    questions: Sequence[Question],
    contexts: Iterable[str],
    budget: int,
    how: Observing,
    out: Path,
) -> None:
    """The contexts that are not there yet, of one conversation."""
    missing = [(c, q) for c in contexts for q in questions if not context_file(out, c, q.id).exists()]
    if not missing:
        return
    now = [missing[0][1].at]
    if not (read(how.record(conversation.id)) or {}).get("whole"):
        raise RuntimeError(f"{conversation.id} is not observed to its end; run --stage observe again")
    with opened(conversation.id, how, lambda: now[0], budget) as memory:
        while memory.find().index.embed():
            pass
        for context, question in missing:
            now[0], began = question.at, time.monotonic()
            text = context_text(context, conversation, question, memory, budget)
            value = {
                "question": question.id,
                "text": text,
                "tokens": count_tokens(text),
                "seconds": round(time.monotonic() - began, 3),
                "omg": commit(),
            }
            write(context_file(out, context, question.id), value)


def context_text(
    context: str, conversation: Conversation, question: Question, memory: Memory, budget: int
) -> str:
    if context == "none":
        return ""
    if context == "full":
        return by_day(conversation.messages)
    if context == "last":
        return last_messages(conversation.messages, budget)
    if context == "raw":
        return found_statements(conversation, question.text, budget)
    if context == "vault":
        return whole_notes(memory.find().vault.root)
    # As the first prompt of a new conversation on that day; a dry run, so that no question leaves a trace for the next.
    given = memory.inject(question.text, session=lane(f"asked {question.id}"), dry_run=True)
    return "\n\n".join(text.strip() for text in (given.system, given.prompt) if text.strip())


# --- messages


def by_day(messages: Iterable[Said]) -> str:
    lines, day = list[str](), None
    for m in messages:
        if m.at.date() != day:
            day = m.at.date()
            lines.append(f"\n## {day_text(m.at)}\n")
        lines.append(m.line)
    return "\n".join(lines).strip()


def day_text(at: datetime) -> str:
    return f"{at:%Y-%m-%d} ({at:%A})"


def last_messages(messages: Sequence[Said], budget: int) -> str:
    """The end of the conversation, whole messages; of the last one its end, if it alone is more than the budget."""
    least, most = 0, len(messages)
    while least < most:  # a longer end costs more
        middle = (least + most + 1) // 2
        if count_tokens(by_day(messages[len(messages) - middle :])) <= budget:
            least = middle
        else:
            most = middle - 1
    return by_day(messages[len(messages) - least :]) if least else clip_text(messages[-1].line, budget)


def found_statements(conversation: Conversation, query: str, budget: int) -> str:
    """
    The sentences that a plain search finds, best first to the budget, told in the order they were said.

    An FTS5 table of the messages' sentences, the words of *query* that say something joined by OR, bm25 as it comes.
    """
    said = [
        Said(m.id, m.role, m.speaker, " ".join(m.text[span].split()), m.at)
        for m in conversation.messages
        for span in sentence_spans(m.text)
    ]
    words = [term.match for term in terms_of(query)]
    if not words:
        return ""
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("create virtual table said using fts5(text, tokenize='porter unicode61')")
        db.executemany("insert into said values (?)", [(m.line,) for m in said])
        match = "select rowid from said where said match ? order by bm25(said), rowid limit 500"
        rows = db.execute(match, (" OR ".join(words),)).fetchall()
    taken: dict[int, Said] = {}
    room, days = budget, set[date]()
    for (rowid,) in rows:
        one = said[rowid - 1]
        cost = count_tokens(f"{one.line}\n") + (
            0 if one.at.date() in days else count_tokens(f"\n## {day_text(one.at)}\n\n")
        )
        if cost <= room:
            taken[rowid] = one
            days.add(one.at.date())
            room -= cost
    while count_tokens(in_order(taken)) > budget:  # seams between lines may cost a token each
        taken.popitem()
    return in_order(taken)


def in_order(said: dict[int, Said]) -> str:
    return by_day(said[n] for n in sorted(said))


def whole_notes(vault: Path) -> str:
    """Every note as its file is; the pages that are made from them add nothing."""
    notes = (f for f in sorted((vault / "nodes").rglob("*.md")) if not f.name.startswith("."))
    return "\n\n".join(f"# {f.relative_to(vault)}\n{f.read_text(encoding='utf-8').strip()}" for f in notes)


# --- tools

CALLS = 4
READING = ("omg_search", "omg_open")
# As the plugin offers them to an agent.
TOOLS = [
    {
        "type": "function",
        "function": {key: tool[key] for key in ("name", "description", "parameters")},
    }
    for tool in json.loads((shipped_folder("hooks") / "words.json").read_text(encoding="utf-8"))["tools"]
    if tool["name"] in READING
]


def call_tool(memory: Memory, name: str, params: dict[str, Any]) -> str:
    """What the tool says to the model, as the gateway would hand it on."""
    from omg.tools.removing import Codes
    from omg.tools.tools import call_tool

    if name not in READING:
        return f"There is no tool {name!r}."
    body = {"name": name, "params": params, "context": {"sessionKey": MAIN}}
    return str(call_tool(memory.intake, body, Codes())["text"])
