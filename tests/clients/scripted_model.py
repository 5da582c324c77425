"""
A model that answers what the prompt itself scripts, in the wire formats of four clients. Loopback only.

    POST …/messages                              Anthropic Messages        Claude Code
    POST …/responses                             OpenAI Responses          Codex
    POST …/chat/completions                      OpenAI chat completions   OpenCode
    POST …:generateContent, …:countTokens, …     Gemini                    Gemini CLI

The last user message that holds directives rules; the number of tool results after it is the step:

    [[tool NAME {"json": "args"}]]   call this tool        [[say TEXT]]     say this, and the turn ends
    [[tools A {..} || B {..}]]       parallel calls
    [[sleep S]]  wait before answering   [[usage N]]  report N input tokens   [[fail N]]  answer HTTP N, once per prompt

Without directives it says "MOCK-REPLY to: <prompt>"; asked for a summary, a fixed text; asked for JSON, what fits the
schema. Each request is kept, as a JSON line of the log.
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

LOCK, STATE = threading.Lock(), {"n": 0, "log": Path("requests.jsonl"), "failed": set()}
KEEP_HEADERS = (
    "user-agent",
    "session",
    "conversation",
    "x-app",
    "anthropic-beta",
    "originator",
    "thread",
    "turn",
    "x-opencode",
)
DIRECTIVE = re.compile(r"\[\[(?:tools?|say|sleep|usage|fail|think) ")  # and no link of a note
SUMMARY = "<summary>MOCK-SUMMARY: the user and the assistant talked.</summary>"
SUMMARY_MARKS = (
    "create a detailed summary of the conversation",
    "CONTEXT CHECKPOINT COMPACTION",
    "state_snapshot",
    "provide a detailed prompt for continuing",
    "summarize the conversation",
    "anchored summary",
)


# ---------------------------------------------------------------- requests -> one flat list of (kind, text)
def text_of(content):
    if isinstance(content, str):
        return content
    return "\n".join(p.get("text") or "" for p in content or [] if isinstance(p, dict))


def flatten(kind, body):
    """-> [(role, text)], role one of system, developer, user, assistant, call, tool; the order of the request."""
    out = []
    if kind == "anthropic":
        out.append(("system", text_of(body.get("system"))))
        for m in body.get("messages", []):
            blocks = (
                m["content"] if isinstance(m["content"], list) else [{"type": "text", "text": m["content"]}]
            )
            for b in blocks:
                t = b.get("type")
                if t == "tool_result":
                    out.append(("tool", text_of(b.get("content"))))
                elif t == "tool_use":
                    out.append(("call", b["name"] + " " + json.dumps(b["input"])))
                elif t == "text":
                    out.append((m["role"], b["text"]))
    elif kind == "responses":
        out.append(("system", body.get("instructions") or ""))
        items = body.get("input") or []
        for i in [{"role": "user", "content": items}] if isinstance(items, str) else items:
            t = i.get("type", "message")
            if t.endswith("_call"):
                out.append(
                    ("call", "{} {}".format(i.get("name") or t, i.get("arguments") or i.get("input") or ""))
                )
            elif t.endswith("_output"):
                o = i.get("output")
                out.append(("tool", o if isinstance(o, str) else text_of(o if isinstance(o, list) else [])))
            elif t == "message":
                out.append((i["role"], text_of(i["content"])))
    elif kind == "chat":
        for m in body.get("messages", []):
            if m.get("content"):
                out.append((m["role"], text_of(m["content"])))
            for c in m.get("tool_calls") or []:
                out.append(("call", c["function"]["name"] + " " + c["function"]["arguments"]))
    else:  # gemini
        out.append(("system", text_of((body.get("systemInstruction") or {}).get("parts"))))
        for c in body.get("contents", []):
            for p in c.get("parts", []):
                if "functionResponse" in p:
                    out.append(("tool", json.dumps(p["functionResponse"].get("response"))))
                elif "functionCall" in p:
                    out.append(
                        ("call", p["functionCall"]["name"] + " " + json.dumps(p["functionCall"].get("args")))
                    )
                elif "text" in p:
                    out.append(("assistant" if c.get("role") == "model" else "user", p["text"]))
    return out


def schema_of(kind, body):
    if kind == "gemini":
        g = body.get("generationConfig") or {}
        return g.get("responseJsonSchema") or g.get("responseSchema")
    if kind == "responses":
        return ((body.get("text") or {}).get("format") or {}).get("schema")
    if kind == "chat":
        return ((body.get("response_format") or {}).get("json_schema") or {}).get("schema")
    return (((body.get("output_config") or {}).get("format")) or {}).get("schema")


def fit(s):
    """A minimal value for a JSON schema."""
    if s.get("enum"):
        return s["enum"][0]
    t = str(s.get("type", "object")).lower()
    if t == "object":
        return {k: fit(v) for k, v in (s.get("properties") or {}).items()}
    return {"array": [], "boolean": False, "number": 1, "integer": 1}.get(t, "mock")


def calls_of(text):
    calls = []
    for part in text.split("||"):
        name, _, args = part.strip().partition(" ")
        try:
            parsed = json.loads(args or "{}")
        except ValueError:  # `opencode run "…"` wraps the prompt in quotes and escapes those inside
            parsed = json.loads(args.replace('\\"', '"'))
        calls.append({"name": name, "args": parsed, "id": "call_" + uuid.uuid4().hex[:20]})
    return calls


def decide(kind, body):
    flat = flatten(kind, body)
    schema = schema_of(kind, body)
    if schema:
        return {"text": json.dumps(fit(schema))}
    said = [(r, t) for r, t in flat if r in ("user", "tool", "assistant", "call")]
    low = " ".join(
        t for r, t in (said[-2:] + [f for f in flat if f[0] == "system"]) if r in ("user", "system")
    ).lower()
    start = max([i for i, (r, t) in enumerate(said) if r == "user" and DIRECTIVE.search(t)] or [-1])
    done = [
        i
        for i in range(start + 1, len(said))
        if said[i][0] == "assistant" and [*said, ("", "")][i + 1][0] != "call"
    ]
    over = bool(done) and any(
        r == "user" for r, t in said[done[0] :]
    )  # that turn has ended, this is a later prompt
    over = over or any(
        "MOCK-SUMMARY" in t for r, t in said[start + 1 :]
    )  # compacted since: its tool results are gone
    if any(m.lower() in low for m in SUMMARY_MARKS) and said and said[-1][0] == "user":
        return {"text": SUMMARY}
    users = [t for r, t in said if r == "user"]
    last = users[-1] if users else ""
    tools = [t for r, t in said[start + 1 :] if r == "tool"]
    if start < 0 or over:
        return {"text": "MOCK-REPLY to: " + " ".join(last.split())[-100:]}
    d, steps, step = {}, [], 0
    for word, rest in re.findall(r"\[\[(\w+) ?(.*?)\]\]", said[start][1], re.S):
        if word in ("tool", "tools", "say"):
            steps.append((word, rest))
        elif word == "fail":
            key = said[start][1]
            if key not in STATE["failed"]:
                STATE["failed"].add(key)
                return {"fail": int(rest)}
        else:
            d[word] = rest
    results = len(tools)
    for word, rest in steps:  # a step with k parallel calls uses up k results
        if word == "say" or results <= 0:
            break
        results -= len(rest.split("||"))
        step += 1
    if step < len(steps):
        word, rest = steps[step]
        return d | ({"text": rest} if word == "say" else {"calls": calls_of(rest)})
    return d | {"text": "MOCK-DONE after: " + " ".join((tools or [last])[-1].split())[:100]}


# ---------------------------------------------------------------- replies, one builder per wire format
def anthropic_events(body, d, tokens):
    mid, blocks = "msg_" + uuid.uuid4().hex[:24], []
    if d.get("think"):
        blocks.append({"type": "thinking", "thinking": d["think"], "signature": "bW9jaw=="})
    if d.get("text"):
        blocks.append({"type": "text", "text": d["text"]})
    for c in d.get("calls", []):
        blocks.append(
            {"type": "tool_use", "id": "toolu_" + c["id"][5:], "name": c["name"], "input": c["args"]}
        )
    stop = "tool_use" if d.get("calls") else "end_turn"
    use = {
        "input_tokens": tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": 12,
    }
    full = {
        "id": mid,
        "type": "message",
        "role": "assistant",
        "model": body.get("model"),
        "content": blocks,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": use,
    }
    ev = [("message_start", {"message": full | {"content": [], "stop_reason": None}})]
    for i, b in enumerate(blocks):
        t = b["type"]
        empty, deltas = {
            "thinking": (
                {"type": t, "thinking": "", "signature": ""},
                [
                    {"type": "thinking_delta", "thinking": b.get("thinking")},
                    {"type": "signature_delta", "signature": b.get("signature")},
                ],
            ),
            "text": ({"type": t, "text": ""}, [{"type": "text_delta", "text": b.get("text")}]),
            "tool_use": (
                b | {"input": {}},
                [{"type": "input_json_delta", "partial_json": json.dumps(b.get("input"))}],
            ),
        }[t]
        ev.append(("content_block_start", {"index": i, "content_block": empty}))
        ev += [("content_block_delta", {"index": i, "delta": x}) for x in deltas]
        ev.append(("content_block_stop", {"index": i}))
    ev.append(("message_delta", {"delta": {"stop_reason": stop, "stop_sequence": None}, "usage": use}))
    ev.append(("message_stop", {}))
    return full, [(n, {"type": n} | x) for n, x in ev]


def responses_events(body, d, tokens):
    rid, items = "resp_" + uuid.uuid4().hex[:24], []
    if d.get("think"):
        items.append(
            {
                "type": "reasoning",
                "id": "rs_" + uuid.uuid4().hex[:20],
                "encrypted_content": "bW9jaw==",
                "summary": [{"type": "summary_text", "text": d["think"]}],
            }
        )
    if d.get("text"):
        items.append(
            {
                "type": "message",
                "id": "msg_" + uuid.uuid4().hex[:20],
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": d["text"], "annotations": []}],
            }
        )
    for c in d.get("calls", []):
        ns, _, name = c["name"].rpartition("/")
        item = {
            "type": "function_call",
            "id": "fc_" + uuid.uuid4().hex[:20],
            "call_id": c["id"],
            "name": name,
            "arguments": json.dumps(c["args"]),
            "status": "completed",
        }
        if "__input" in c["args"]:  # a freeform ("custom") tool: [[tool apply_patch {"__input": "…"}]]
            item = {
                "type": "custom_tool_call",
                "id": item["id"],
                "call_id": c["id"],
                "name": name,
                "input": c["args"]["__input"],
            }
        items.append(item | ({"namespace": ns} if ns else {}))
    use = {
        "input_tokens": tokens,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 12,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens + 12,
    }
    full = {
        "id": rid,
        "object": "response",
        "status": "completed",
        "model": body.get("model"),
        "output": items,
        "usage": use,
    }
    ev = [("response.created", {"response": full | {"output": [], "status": "in_progress", "usage": None}})]
    for i, it in enumerate(items):
        ev.append(
            (
                "response.output_item.added",
                {"output_index": i, "item": it | ({"content": []} if it["type"] == "message" else {})},
            )
        )
        if it["type"] == "message":
            ev.append(
                (
                    "response.output_text.delta",
                    {"item_id": it["id"], "output_index": i, "content_index": 0, "delta": d["text"]},
                )
            )
        ev.append(("response.output_item.done", {"output_index": i, "item": it}))
    ev.append(("response.completed", {"response": full}))
    return full, [(n, {"type": n, "sequence_number": k} | x) for k, (n, x) in enumerate(ev)]


def chat_events(body, d, tokens):
    base = {
        "id": "chatcmpl-" + uuid.uuid4().hex[:20],
        "created": int(time.time()),
        "model": body.get("model"),
    }
    calls = [
        {
            "index": i,
            "id": c["id"],
            "type": "function",
            "function": {"name": c["name"], "arguments": json.dumps(c["args"])},
        }
        for i, c in enumerate(d.get("calls", []))
    ]
    fin = "tool_calls" if calls else "stop"
    use = {"prompt_tokens": tokens, "completion_tokens": 12, "total_tokens": tokens + 12}
    msg = (
        {"role": "assistant", "content": d.get("text")}
        | ({"tool_calls": calls} if calls else {})
        | ({"reasoning_content": d["think"]} if d.get("think") else {})
    )
    full = base | {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": msg, "finish_reason": fin}],
        "usage": use,
    }
    deltas = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": d["think"]}] if d.get("think") else []
    deltas += [{"content": d["text"]}] if d.get("text") else []
    deltas += [{"tool_calls": [c]} for c in calls]
    ev = [{"choices": [{"index": 0, "delta": x, "finish_reason": None}]} for x in deltas]
    ev += [{"choices": [{"index": 0, "delta": {}, "finish_reason": fin}]}, {"choices": [], "usage": use}]
    return full, [(None, base | {"object": "chat.completion.chunk"} | x) for x in ev] + [(None, "[DONE]")]


def gemini_events(body, d, tokens):
    parts = [{"text": d["think"], "thought": True}] if d.get("think") else []
    parts += [{"text": d["text"]}] if d.get("text") else []
    parts += [
        {"functionCall": {"id": c["id"], "name": c["name"], "args": c["args"]}} for c in d.get("calls", [])
    ]
    full = {
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {
            "promptTokenCount": tokens,
            "candidatesTokenCount": 12,
            "totalTokenCount": tokens + 12,
        },
        "modelVersion": "mock",
        "responseId": uuid.uuid4().hex,
    }
    return full, [(None, full)]


BUILD = {
    "anthropic": anthropic_events,
    "responses": responses_events,
    "chat": chat_events,
    "gemini": gemini_events,
}


def kind_of(path):
    path = path.split("?")[0]
    return (
        "anthropic"
        if path.endswith("/messages")
        else "responses"
        if path.endswith("/responses")
        else "chat"
        if path.endswith("/chat/completions")
        else "gemini"
        if "enerateContent" in path
        else None
    )


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *a):
        pass

    def json(self, code, obj):
        b = json.dumps(obj).encode()
        self.send_response(code)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(b)))
        self.end_headers()
        self.wfile.write(b)

    def record(self, body, reply):
        heads = {k.lower(): v for k, v in self.headers.items() if any(w in k.lower() for w in KEEP_HEADERS)}
        with LOCK, STATE["log"].open("a") as f:
            STATE["n"] += 1
            f.write(
                json.dumps(
                    {
                        "n": STATE["n"],
                        "t": round(time.time(), 3),
                        "path": self.path,
                        "headers": heads,
                        "body": body,
                        "reply": reply,
                    },
                    ensure_ascii=False,
                )
                + "\n"
            )

    def do_GET(self):
        self.record(None, None)
        models = [{"id": "mock-1", "slug": "mock-1", "object": "model", "name": "models/mock-1"}]
        self.json(
            200, {"object": "list", "data": models} if self.path.split("?")[0].endswith("/models") else {}
        )

    do_HEAD = do_GET

    def do_POST(self):
        path = self.path.split("?")[0]
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            body = {"_not_json": raw[:200].decode("latin-1")}
        kind = kind_of(path)
        tokens = len(raw) // 4
        if kind is None:
            reply = (
                {"input_tokens": tokens}
                if path.endswith("/count_tokens")
                else {"totalTokens": tokens}
                if path.endswith(":countTokens")
                else {
                    "object": "response.compaction",
                    "output": [{"type": "compaction", "encrypted_content": "bW9jaw=="}],
                }
                if path.endswith("/responses/compact")
                else {}
            )
            self.record(body, reply)
            return self.json(200, reply)
        d = decide(kind, body)
        self.record(body, d)
        time.sleep(float(d.get("sleep", 0)))
        if "fail" in d:
            return self.json(
                d["fail"], {"error": {"type": "mock_error", "code": d["fail"], "message": "mock failure"}}
            )
        full, events = BUILD[kind](body, d, int(d.get("usage") or tokens))
        if not (body.get("stream") or "streamGenerateContent" in path):
            return self.json(200, full)
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

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client that was interrupted


class ScriptedModel:
    def __init__(self, log: Path) -> None:
        STATE["log"] = self.log = log
        self.server = Quiet(("127.0.0.1", 0), Handler)
        self.base = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self) -> ScriptedModel:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def requests(self) -> list[dict[str, Any]]:
        """Each that asks the model for an answer, oldest first, with its conversation flat as (role, text)."""
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        found = [json.loads(line) for line in lines]
        found = [
            r | {"kind": kind} for r in found if r["body"] and (kind := kind_of(r["path"])) and r["reply"]
        ]
        return [r | {"flat": flatten(r["kind"], r["body"])} for r in found]
