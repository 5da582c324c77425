"""
The model behind the gateway's agent: it does what the user's message says, else it echoes.

    CALL <tool> <json>   one tool call         SAY <text>    that text
    <six hex digits>     omg_forget with that code
    FAIL <status>        an HTTP error         SLEEP <s>     that long, then as if it were not there

It is a function from a request to a reply, for `OpenAIServer.always`. The gateway's own model calls are known
by their system prompt: a summary for compaction, the note-taking turn before it, OMG's Observer.
"""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from typing import Any

from openai_server import Fail, Reply, Request, Say, Slow, text_of

INTERNAL = "BEGIN_OPENCLAW_INTERNAL_CONTEXT"  # the gateway's own second user message of each request
IDENTIFIERS = re.compile(r"(?:https?://|/)[\w./-]{4,}|[0-9a-f]{8}-[0-9a-f-]{27}|\b\d{3,}\b")
OURS = re.compile(r"(?s)<omg-memory.*?</omg-memory>")
# A summary that OpenClaw's audit of compactions accepts: these headings, and the identifiers kept.
SUMMARY = """## Decisions
- kept
## Open TODOs
- none
## Constraints/Rules
- none
## Pending user asks
- none
## Exact identifiers
- {}
"""
calls = itertools.count(1)


def agent(request: Request) -> Reply:
    """What the model says. Token counts follow the request, so that the gateway compacts when it should."""
    return measured(
        decided(request), sum(len(text_of(m.get("content"))) for m in request.body["messages"]) // 4
    )


def measured(reply: Reply, size: int) -> Reply:
    match reply:
        case str():
            return Say(reply, tokens_in=size)
        case Say():
            return replace(reply, tokens_in=size)
        case Slow():
            return replace(reply, reply=measured(reply.reply, size))
    return reply


def decided(request: Request) -> Reply:
    if "You are the Observer" in request.system:
        return observed(request.user)
    messages = [m for m in request.body["messages"] if INTERNAL not in text_of(m.get("content"))]
    last = messages[-1]
    if "context summarization assistant" in request.system:
        found = sorted(set(IDENTIFIERS.findall(text_of(last.get("content")))))[:40]
        return SUMMARY.format("\n- ".join(found) or "none")
    if last.get("role") == "tool":
        return "The tool said: " + text_of(last.get("content"))[:2000]
    # What OMG injects may quote an earlier order; it is not one.
    return obeyed(OURS.sub("", text_of(last.get("content"))))


def obeyed(text: str) -> Reply:
    if found := re.search(r"SLEEP (\d+)", text):
        return Slow(obeyed(text[: found.start()] + text[found.end() :]), int(found[1]))
    if found := re.search(r"FAIL (\d+)", text):
        return Fail(int(found[1]), "the test asked for it")
    if found := re.search(r"CALL (\w+) (\{.*\})", text):
        return called(found[1], found[2])
    if found := re.search(r"SAY ([^\n]*)", text):
        return found[1]
    bare = re.sub(r"(?ms)Conversation info:.*?```json\n.*?```|^\[[^\]]*UTC\]|^Runtime: .*?$", "", text)
    if re.fullmatch(
        r"[0-9a-f]{6}", bare.strip()
    ):  # a person writes the code of a forgetting, and nothing else
        return called("omg_forget", json.dumps({"code": bare.strip()}))
    return "You said: " + " ".join(bare.split())[-200:]


def observed(shown: str) -> Reply:
    """An Observer that keeps what people say of themselves, word for word, and nothing else."""
    said = re.findall(r"(?m)^(m\d+) \d\d:\d\d user ?([^:\n]*): ((?:I prefer|My \w+ \w+ is) [^\n.]*)", shown)
    return {"edits": [note(handle, who or "The user", text) for handle, who, text in said], "now": {}}


def note(handle: str, who: str, text: str) -> dict[str, Any]:
    kind = "preference" if text.startswith("I prefer") else "fact"
    described = text.replace("I prefer", f"{who} prefers").replace("My", f"{who}'s")
    edit = {"op": "create", "type": kind, "title": described[:50], "description": described}
    return {**edit, "priority": "high", "sources": [handle]}


def called(tool: str, arguments: str) -> Say:
    json.loads(arguments)  # a typing error in a test is seen here
    function = {"name": tool, "arguments": arguments}
    call = {"index": 0, "id": f"call_{next(calls)}", "type": "function", "function": function}
    return Say(None, finish="tool_calls", extra={"tool_calls": [call]})
