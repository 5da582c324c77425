"""
The answerer, and the check that what it quotes stands in what it read.

One rule: an answer that its own context does not bear out counts as unknown, whatever it says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from omg import Memory
from omg.text.tokens import count_tokens

from .contexts import CALLS, TOOLS, call_tool, context_file, day_text
from .data import Conversation, Question
from .files import file_name, read, write
from .model import Model, Spent, ask, json_in

PROMPTS = Path(__file__).parents[1] / "prompts"
# How an answer begins that says it is not known; one that says so and has quotes is checked like any other.
UNKNOWN = re.compile(
    r"\W*(i (do not|don't|cannot|can't) (know|tell|say)|unknown\b|not known\b|no information\b|no mention\b"
    r"|(it|this|that) (is|was) (not|never) (known|mentioned|said|stated|recorded)"
    r"|(there is|there's|i have|i find|i see) (no|nothing)\b|nothing (is|was) (known|said|mentioned|recorded)"
    r"|(the|my|this) (memory|notes?|records?|conversations?|chats?) (do|does|did)(n't| not)\b)",
    re.I,
)
SHORTEST = 4  # characters of a quote: less stands everywhere
SAME = str.maketrans(
    {**dict.fromkeys("‘’‚‛`´", "'"), **dict.fromkeys("“”„‟«»", '"'), **dict.fromkeys("‐‑‒–—−", "-")}
)

TOOLS_READ = (
    f"The tools read more of the same memory. Where it could tell more, call them, {CALLS} times at most, before you "
    "answer; what they give may be quoted like the rest."
)


@cache
def prompt(name: str) -> str:
    return (PROMPTS / name).read_text(encoding="utf-8")


def prompt_hash(name: str) -> str:
    return sha256(prompt(name).encode()).hexdigest()[:12]


def answer_file(out: Path, context: str, question: str) -> Path:
    return out / "answers" / context / f"{file_name(question)}.json"


@dataclass(frozen=True, slots=True)
class Item:
    """One question in one context."""

    question: Question
    conversation: Conversation
    context: str


def answer(item: Item, out: Path, model: Model, memory: Callable[[], Memory]) -> None:
    """Ask, and keep what was said. *memory* is the conversation's, opened; only tools need it."""
    file = answer_file(out, item.context, item.question.id)
    given = read(context_file(out, item.context, item.question.id))
    if file.exists():
        return
    if given is None:
        raise RuntimeError(f"{item.question.id}: no context {item.context!r}; run --stage contexts first")
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": prompt("answer.md")},
        {"role": "user", "content": user_text(given["text"], item.question)},
    ]
    if item.context == "tools":
        messages[0]["content"] += f"\n\n{TOOLS_READ}"
    spent, shown = Spent(), [given["text"]]
    said = ask(model, messages, spent, TOOLS if item.context == "tools" else None)
    left = CALLS
    while said.calls:
        messages.append(called(said.text, said.calls))
        for call in said.calls:
            left -= 1
            text = (
                call_tool(memory(), call["name"], json_in(call["arguments"]))
                if left >= 0
                else "No calls are left; answer now."
            )
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": text})
            shown.append(text)
        if left < -CALLS:
            break  # it goes on calling, whatever it is told
        said = ask(model, messages, spent, TOOLS)
    read_text = "\n\n".join(shown)
    value = {
        "question": item.question.id,
        "model": model.name,
        "prompt": prompt_hash("answer.md"),
        **checked(said.text, read_text),
        "tokens": sum(map(count_tokens, shown)),  # of memory, that is: without question and instructions
        "calls": CALLS - max(left, 0) if item.context == "tools" else 0,
        **spent.value(),
        "reply": said.text,
    }
    if item.context == "tools":
        value["read"] = read_text
    write(file, value)


def user_text(memory: str, question: Question) -> str:
    """The context first and the question last, so that a context shared by many requests is seen, or cached, once."""
    return f"<memory>\n{memory}\n</memory>\n\nToday is {day_text(question.at)}.\n\nQuestion: {question.text}"


def called(text: str, calls: Sequence[dict[str, Any]]) -> dict[str, Any]:
    made = [
        {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": c["arguments"]}}
        for c in calls
    ]
    return {"role": "assistant", "content": text or None, "tool_calls": made}


# --- the check


def checked(reply: str, context: str) -> dict[str, Any]:
    """
    `{answer, quotes, abstains, refused}` of a *reply*; *refused* says why it counts as unknown, "" where it counts.

    In an empty context there is nothing to quote: what is said there is a guess, and counts as one.
    """
    value = json_in(reply)
    text, quotes = value.get("answer"), value.get("quotes")
    text = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False) if text is not None else ""
    quotes = [q for q in quotes if isinstance(q, str)] if isinstance(quotes, list) else []
    refused, abstains = "", not quotes and bool(UNKNOWN.match(text.translate(SAME)))
    if not text.strip():
        refused = "no answer in the reply"
    elif context.strip() and not abstains:
        refused = (
            "no quote" if not quotes else "; ".join(f"not there: {q}" for q in borrowed(quotes, context))
        )
    return {"answer": text, "quotes": quotes, "abstains": abstains, "refused": refused}


def borrowed(quotes: Sequence[str], context: str) -> list[str]:
    """Those of *quotes* that do not stand in *context*. A quote with an ellipsis is as many as it has parts."""
    there = normal(context)

    def stands(quote: str) -> bool:
        parts = [normal(part) for part in re.split(r"\.\.\.|…", quote)]
        return sum(map(len, parts)) >= SHORTEST and all(part in there for part in parts)

    return [quote for quote in quotes if not stands(quote)]


def normal(text: str) -> str:
    """*text* without what copying changes: case, spaces, the form of quotes and dashes, marks of Markdown, the ends."""
    plain = re.sub(r"[*_#>|\[\]\\]", " ", text.translate(SAME).casefold())
    return " ".join(plain.split()).strip(" \"'.,;:!?-")
