"""
A model whose answers the prompt itself scripts, in the wire formats of four clients. Loopback only.

    POST …/messages                              Anthropic Messages        Claude Code
    POST …/responses                             OpenAI Responses          Codex
    POST …/chat/completions                      OpenAI chat completions   OpenCode
    POST …:generateContent, …:countTokens, …     Gemini                    Gemini CLI

The last user message with directives decides. The number of tool results after it says which step is next:

    [[tool NAME {"json": "args"}]]   call this tool        [[say TEXT]]     say this; the turn ends
    [[sleep S]]  wait before answering                     [[usage N]]      report N input tokens

Without directives it says "MOCK-REPLY to: <prompt>". Asked for a summary, it gives a fixed text; asked for JSON, a value
that fits the schema. The log holds each request as a line of JSON.
"""

from __future__ import annotations

import json
import re
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SESSION_HEADERS = ("session", "conversation", "thread", "x-opencode")
DIRECTIVE = re.compile(r"\[\[(?:tool|say|sleep|usage) ")  # not a link of a note
SUMMARY = "<summary>MOCK-SUMMARY: the user and the assistant talked.</summary>"
SUMMARY_MARKS = (
    "create a detailed summary of the conversation",
    "context checkpoint compaction",
    "state_snapshot",
    "provide a detailed prompt for continuing",
    "summarize the conversation",
    "anchored summary",
)


# --- a request as a flat list of (role, text), in its order; a role is system, developer, user, assistant, call or tool


def text_of(content):
    if isinstance(content, str):
        return content
    return "\n".join(p.get("text") or "" for p in content or [] if isinstance(p, dict))


def flatten(kind, body):
    return list(FLAT[kind](body))


def flat_anthropic(body):
    yield "system", text_of(body.get("system"))
    for m in body.get("messages", []):
        content = m["content"]
        for b in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            if b.get("type") == "tool_result":
                yield "tool", text_of(b.get("content"))
            elif b.get("type") == "tool_use":
                yield "call", f"{b['name']} {json.dumps(b['input'])}"
            elif b.get("type") == "text":
                yield m["role"], b["text"]


def flat_responses(body):
    yield "system", body.get("instructions") or ""
    items = body.get("input") or []
    for i in [{"role": "user", "content": items}] if isinstance(items, str) else items:
        kind = i.get("type", "message")
        if kind.endswith("_call"):
            yield "call", f"{i.get('name') or kind} {i.get('arguments') or i.get('input') or ''}"
        elif kind.endswith("_output"):
            yield "tool", text_of(i.get("output"))
        elif kind == "message":
            yield i["role"], text_of(i["content"])


def flat_chat(body):
    for m in body.get("messages", []):
        if m.get("content"):
            yield m["role"], text_of(m["content"])
        for c in m.get("tool_calls") or []:
            yield "call", f"{c['function']['name']} {c['function']['arguments']}"


def flat_gemini(body):
    yield "system", text_of((body.get("systemInstruction") or {}).get("parts"))
    for c in body.get("contents", []):
        for p in c.get("parts", []):
            if "functionResponse" in p:
                yield "tool", json.dumps(p["functionResponse"].get("response"))
            elif "functionCall" in p:
                yield "call", f"{p['functionCall']['name']} {json.dumps(p['functionCall'].get('args'))}"
            elif "text" in p:
                yield ("assistant" if c.get("role") == "model" else "user"), p["text"]


FLAT = {"anthropic": flat_anthropic, "responses": flat_responses, "chat": flat_chat, "gemini": flat_gemini}


# --- what to answer: {text} or {calls}, and perhaps {sleep} or {usage}


def schema_of(kind, body):
    if kind == "gemini":
        g = body.get("generationConfig") or {}
        return g.get("responseJsonSchema") or g.get("responseSchema")
    if kind == "responses":
        return ((body.get("text") or {}).get("format") or {}).get("schema")
    if kind == "chat":
        return ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
    return ((body.get("output_config") or {}).get("format") or {}).get("schema")


def fit(schema):
    """A minimal value for a JSON schema."""
    if schema.get("enum"):
        return schema["enum"][0]
    kind = str(schema.get("type", "object")).lower()
    if kind == "object":
        return {k: fit(v) for k, v in (schema.get("properties") or {}).items()}
    return {"array": [], "boolean": False, "number": 1, "integer": 1}.get(kind, "mock")


def call_of(text):
    name, _, args = text.strip().partition(" ")
    try:
        parsed = json.loads(args or "{}")
    except ValueError:  # `opencode run "…"` puts the prompt in quotes and escapes those in it
        parsed = json.loads(args.replace('\\"', '"'))
    return {"name": name, "args": parsed, "id": uuid.uuid4().hex[:20]}


def decide(kind, body):
    if schema := schema_of(kind, body):
        return {"text": json.dumps(fit(schema))}
    flat = flatten(kind, body)
    said = [(r, t) for r, t in flat if r in ("user", "tool", "assistant", "call")]
    newest = [t for r, t in said[-2:] if r == "user"] + [t for r, t in flat if r == "system"]
    if said and said[-1][0] == "user" and any(m in " ".join(newest).lower() for m in SUMMARY_MARKS):
        return {"text": SUMMARY}
    last = next((t for r, t in reversed(said) if r == "user"), "")
    # What a memory quotes may be an earlier order; it is not one.
    said = [(r, re.sub(r"(?s)<(hook_context|omg-memory)\b.*?</\1>", "", t)) for r, t in said]
    start = max((i for i, (r, t) in enumerate(said) if r == "user" and DIRECTIVE.search(t)), default=-1)
    after = said[start + 1 :]
    # The turn of the directives is over if a later prompt follows an answer, or if a compaction took its tool results.
    roles = [*(r for r, _ in after), ""]
    answered = next(
        (i for i, r in enumerate(roles) if r == "assistant" and roles[i + 1] != "call"), len(roles)
    )
    if start < 0 or "user" in roles[answered:] or any("MOCK-SUMMARY" in t for _, t in after):
        return {"text": "MOCK-REPLY to: " + " ".join(last.split())[-100:]}
    directives = re.findall(r"\[\[(\w+) ?(.*?)\]\]", said[start][1], re.S)
    steps = [(word, rest) for word, rest in directives if word in ("tool", "say")]
    chosen = {word: rest for word, rest in directives if word in ("sleep", "usage")}
    results = [t for r, t in after if r == "tool"]
    step = next((n for n, (word, _) in enumerate(steps) if word == "say" or n >= len(results)), None)
    if step is None:
        return chosen | {"text": "MOCK-DONE after: " + " ".join((results or [last])[-1].split())[:100]}
    word, rest = steps[step]
    return chosen | ({"text": rest} if word == "say" else {"calls": [call_of(rest)]})


# --- the answer in each wire format: whole, and as events of a stream


def anthropic_events(body, said, tokens):
    calls = said.get("calls", [])
    blocks = [{"type": "text", "text": said["text"]}] if said.get("text") else []
    blocks += [
        {"type": "tool_use", "id": f"toolu_{c['id']}", "name": c["name"], "input": c["args"]} for c in calls
    ]
    stop = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    use = {
        "input_tokens": tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": 12,
    }
    full = {"id": f"msg_{uuid.uuid4().hex[:24]}", "type": "message", "role": "assistant", "model": body.get("model"),
            "content": blocks, **stop, "usage": use}  # fmt: skip
    events = [("message_start", {"message": full | {"content": [], "stop_reason": None}})]
    for i, block in enumerate(blocks):
        if block["type"] == "text":
            empty, delta = block | {"text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = block | {"input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events.append(("content_block_start", {"index": i, "content_block": empty}))
        events.append(("content_block_delta", {"index": i, "delta": delta}))
        events.append(("content_block_stop", {"index": i}))
    events += [("message_delta", {"delta": stop, "usage": use}), ("message_stop", {})]
    return full, [(name, {"type": name} | data) for name, data in events]


def responses_events(body, said, tokens):
    items = []
    if text := said.get("text"):
        content = [{"type": "output_text", "text": text}]
        items.append({"type": "message", "id": f"msg_{uuid.uuid4().hex[:20]}", "role": "assistant",
                      "status": "completed", "content": content})  # fmt: skip
    for c in said.get("calls", []):
        namespace, _, name = c["name"].rpartition("/")
        item = {"type": "function_call", "id": f"fc_{c['id']}", "call_id": f"call_{c['id']}", "name": name,
                "arguments": json.dumps(c["args"]), "status": "completed"}  # fmt: skip
        items.append(item | ({"namespace": namespace} if namespace else {}))
    use = {"input_tokens": tokens, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 12,
           "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": tokens + 12}  # fmt: skip
    full = {"id": f"resp_{uuid.uuid4().hex[:24]}", "object": "response", "status": "completed",
            "model": body.get("model"), "output": items, "usage": use}  # fmt: skip
    events = [
        ("response.created", {"response": full | {"output": [], "status": "in_progress", "usage": None}})
    ]
    for i, item in enumerate(items):
        at, is_text = {"output_index": i}, item["type"] == "message"
        events.append(
            ("response.output_item.added", at | {"item": item | ({"content": []} if is_text else {})})
        )
        if is_text:
            delta = {"item_id": item["id"], "content_index": 0, "delta": said["text"]}
            events.append(("response.output_text.delta", at | delta))
        events.append(("response.output_item.done", at | {"item": item}))
    events.append(("response.completed", {"response": full}))
    return full, [
        (name, {"type": name, "sequence_number": n} | data) for n, (name, data) in enumerate(events)
    ]


def chat_events(body, said, tokens):
    base = {
        "id": f"chatcmpl-{uuid.uuid4().hex[:20]}",
        "created": int(time.time()),
        "model": body.get("model"),
    }
    calls = [
        {"index": i, "id": f"call_{c['id']}", "type": "function",
         "function": {"name": c["name"], "arguments": json.dumps(c["args"])}}
        for i, c in enumerate(said.get("calls", []))
    ]  # fmt: skip
    end = "tool_calls" if calls else "stop"
    use = {"prompt_tokens": tokens, "completion_tokens": 12, "total_tokens": tokens + 12}
    message = {"role": "assistant", "content": said.get("text")} | ({"tool_calls": calls} if calls else {})
    choice = {"index": 0, "message": message, "finish_reason": end}
    full = base | {"object": "chat.completion", "choices": [choice], "usage": use}
    deltas = [{"role": "assistant", "content": said.get("text") or ""}, *({"tool_calls": [c]} for c in calls)]
    events = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    events += [{"choices": [{"index": 0, "delta": {}, "finish_reason": end}]}, {"choices": [], "usage": use}]
    chunks = [(None, base | {"object": "chat.completion.chunk"} | event) for event in events]
    return full, [*chunks, (None, "[DONE]")]


def gemini_events(body, said, tokens):
    parts = [{"text": said["text"]}] if said.get("text") else []
    for c in said.get("calls", []):
        parts.append({"functionCall": {"id": f"call_{c['id']}", "name": c["name"], "args": c["args"]}})
    use = {"promptTokenCount": tokens, "candidatesTokenCount": 12, "totalTokenCount": tokens + 12}
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    full = {
        "candidates": [candidate],
        "usageMetadata": use,
        "modelVersion": "mock",
        "responseId": uuid.uuid4().hex,
    }
    return full, [(None, full)]


EVENTS = {
    "anthropic": anthropic_events,
    "responses": responses_events,
    "chat": chat_events,
    "gemini": gemini_events,
}
ENDS = {"/messages": "anthropic", "/responses": "responses", "/chat/completions": "chat"}


def kind_of(path):
    path = path.partition("?")[0]
    known = next((kind for end, kind in ENDS.items() if path.endswith(end)), None)
    return known or ("gemini" if "enerateContent" in path else None)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def json(self, value):
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        models = [{"id": "mock-1", "slug": "mock-1", "object": "model", "name": "models/mock-1"}]
        is_list = self.path.partition("?")[0].endswith("/models")
        self.json({"object": "list", "data": models} if is_list else {})

    do_HEAD = do_GET

    def do_POST(self):
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        path, kind, tokens = self.path.partition("?")[0], kind_of(self.path), len(raw) // 4
        if kind is None:
            counts = {"/count_tokens": "input_tokens", ":countTokens": "totalTokens"}
            return self.json({name: tokens for end, name in counts.items() if path.endswith(end)})
        body = json.loads(raw)
        reply = decide(kind, body)
        self.server.keep(self, body, reply)
        time.sleep(float(reply.get("sleep", 0)))
        full, events = EVENTS[kind](body, reply, int(reply.get("usage") or tokens))
        if not (body.get("stream") or "streamGenerateContent" in path):
            return self.json(full)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for name, data in events:
            line = data if isinstance(data, str) else json.dumps(data)
            self.wfile.write(((f"event: {name}\n" if name else "") + f"data: {line}\n\n").encode())
            self.wfile.flush()
        self.close_connection = True


class Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, log: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.log, self.count, self.guard = log, 0, threading.Lock()

    def keep(self, asked: Handler, body: Any, reply: dict[str, Any]) -> None:
        headers = {k.lower(): v for k, v in asked.headers.items()}
        headers = {k: v for k, v in headers.items() if any(word in k for word in SESSION_HEADERS)}
        with self.guard, self.log.open("a", encoding="utf-8") as file:
            self.count += 1
            kept = {"n": self.count, "path": asked.path, "headers": headers, "body": body, "reply": reply}
            file.write(json.dumps(kept) + "\n")

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client that was interrupted


class ScriptedModel:
    def __init__(self, log: Path) -> None:
        self.log, self.server = log, Quiet(log)
        self.base = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self) -> ScriptedModel:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def requests(self) -> list[dict[str, Any]]:
        """Each question for an answer, oldest first, with its conversation flat as (role, text)."""
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        found = [json.loads(line) for line in lines]
        return [r | {"flat": flatten(kind_of(r["path"]), r["body"])} for r in found]
