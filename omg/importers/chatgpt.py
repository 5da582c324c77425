"""Reads ChatGPT's export: `conversations.json`, or since 2026 `conversations-000.json`, `-001`, …

A chat is a tree of messages (`mapping`). Only the branch that ends at `current_node` is read; edits and retries are
side branches. Custom instructions count as the user's words, ChatGPT's saved memory as ChatGPT's claims."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

from ..graph.state import mapping_in, objects_in
from .drops import JsonObject, digest, entry_of_message, said_epoch_ms, said_text, text_part
from .exports import Chat, ItemReading, Member, branch_to, claims, session_of_chat

SERVICE = "ChatGPT"
NUMBERED = re.compile(r"conversations-\d+\.json")
NOT_KEPT = ("is_temporary", "is_temporary_chat", "is_do_not_remember")

WORDS = ("text", "multimodal_text")
REASONING = ("thoughts", "reasoning_recap")
CODE = ("code", "execution_output", "computer_output")

# "【4:0†source】"; a citation between private-use characters; an entity, as "entity["city","Lisbon","…"]"
CITATION = re.compile("【[^【】\n]*†[^【】\n]*】|\ue200(?!entity)[^\ue200\ue201]*\ue201")
ENTITY = re.compile('\ue200?entity\ue202?(\\["[^\\]\n]*\\])\ue201?')
PRIVATE_USE = re.compile("[\ue000-\uf8ff]")
# "3. [2024-06-01]. The user lives in Lisbon."
SAVED = re.compile(r"^\s*(?:\d+\.\s*)?\[(\d{4}-\d\d-\d\d)\]\.?\s*(.*)$")


@dataclass(slots=True)
class Contexts:
    """Custom instructions and memory, collected from all chats."""

    instructions: dict[str, int] = field(default_factory=dict)  # text → its earliest time, in ms
    memory: str = ""
    memory_ms: int = 0


def read_chats(members: list[Member], items: ItemReading) -> Iterator[Chat]:
    names = {m: PurePath(m.name).name for m in members}
    numbered = [m for m in members if NUMBERED.fullmatch(names[m])]
    kept, contexts = numbered or members, Contexts()
    if len(kept) < len(members):
        items.leave_out("files that repeat conversations-<number>.json", len(members) - len(kept))
    for member in sorted(kept, key=lambda m: m.name):
        for chat in items.items(member):
            if found := read_chat(chat, member, items, contexts):
                yield found
    yield from instructions(contexts)
    yield from claims(SERVICE, saved_lines(contexts))


def read_chat(chat: JsonObject, member: Member, items: ItemReading, contexts: Contexts) -> Chat | None:
    """
    Read one chat of a ChatGPT export, without hidden messages and tool calls.

    Returns None in these cases:
    - The chat is temporary, or has the mark do-not-remember.
    - A newer copy of the chat is known.
    - No message is left to import.
    """
    nodes = {str(id): node for id, node in mapping_in(chat, "mapping").items() if isinstance(node, dict)}
    id = str(chat.get("conversation_id") or chat.get("id") or digest(json.dumps(sorted(nodes)), 8))
    if not nodes:
        items.skip(f"{member.name}: chat {id} has no messages")
        return None
    if any(chat.get(mark) for mark in NOT_KEPT):
        items.leave_out("temporary and do-not-remember chats")
        return None
    made = said_epoch_ms(chat.get("create_time")) or 0
    changed = said_epoch_ms(chat.get("update_time")) or made
    if not items.reading.is_newest(f"{SERVICE} {id}", changed):
        items.leave_out("older copies of a chat")
        return None
    messages = {node_id: mapping_in(node, "message") for node_id, node in nodes.items()}
    parents = {node_id: node.get("parent") for node_id, node in nodes.items()}
    times = {node_id: (said_epoch_ms(m.get("create_time")) or 0) for node_id, m in messages.items()}
    branch = branch_to(chat.get("current_node"), parents, times)
    at_ms, entries = made or changed or member.at_ms, []
    for node_id in branch:
        message = messages[node_id]
        at_ms = times[node_id] or at_ms  # a message without a time gets the time of the message before it
        kind, content = parts_said(message, at_ms, contexts)
        if content:
            role = mapping_in(message, "author")["role"]
            entries.append(entry_of_message(str(message.get("id") or node_id), role, content, at_ms))
        elif kind:
            items.leave_out(kind)
    beside = nodes.keys() - set(branch)
    items.leave_out(
        "edited and retried", sum(bool(parts_said(messages[n], 0, Contexts())[1]) for n in beside)
    )
    return (session_of_chat(SERVICE, id), entries) if entries else None


def parts_said(message: JsonObject, at_ms: int, contexts: Contexts) -> tuple[str, list[JsonObject]]:
    """
    Return (kind, parts): what was said in *message*, or why *message* is left out.

    - ("", parts) if something was said
    - (reason, []) if the message is left out and counted, for example ("code that ran", []), or ("empty", []) for a
      message without text and files
    - ("", []) if *message* is {}, or holds the user's instructions or ChatGPT's memory. Instructions and memory are
      stored in *contexts*.
    """
    author, content, about = (mapping_in(message, key) for key in ("author", "content", "metadata"))
    role, kind = author.get("role"), content.get("content_type")
    if not message:
        return "", []
    if kind == "user_editable_context":
        text = "\n".join(
            filter(None, (said_text(content.get(k)) for k in ("user_profile", "user_instructions")))
        )
        contexts.instructions[text] = min(contexts.instructions.get(text, at_ms), at_ms)
        return "", []
    if kind == "model_editable_context":
        if at_ms >= contexts.memory_ms:
            contexts.memory, contexts.memory_ms = said_text(content.get("model_set_context")), at_ms
        return "", []
    hidden = about.get("is_visually_hidden_from_conversation") or about.get("is_user_system_message")
    if hidden or message.get("weight") == 0:
        return "hidden", []
    if role not in ("user", "assistant"):
        return "tools and system", []
    if role == "assistant" and message.get("recipient") not in (None, "all"):
        return "calls of tools", []
    if kind in REASONING:
        return "reasoning", []
    if kind in CODE:
        return "code that ran", []
    if kind not in WORDS:
        return "pages and tools", []
    given = content.get("parts")
    parts = [part for piece in given if (part := part_of(piece))] if isinstance(given, list) else []
    if role == "user":
        files = [a for a in objects_in(about, "attachments") if not is_image(a)]
        parts += [{"type": "file", "name": file.get("name")} for file in files]
    return ("empty", []) if not parts else ("", parts)


def part_of(given: Any) -> JsonObject | None:
    if isinstance(given, str):
        return text_part(text) if (text := cleaned(given)) else None
    kind = given.get("content_type") if isinstance(given, dict) else None
    if kind == "audio_transcription":
        return text_part(text) if (text := cleaned(said_text(given.get("text")))) else None
    return {"type": "image"} if kind == "image_asset_pointer" else None


def is_image(attachment: JsonObject) -> bool:
    return str(attachment.get("mime_type") or attachment.get("mimeType")).startswith("image/")


def cleaned(text: str) -> str:
    """*text* without citations, and without marks that ChatGPT's page does not show."""
    return PRIVATE_USE.sub("", CITATION.sub("", ENTITY.sub(lambda m: entity_name(m[1]), text))).strip()


def entity_name(listed: str) -> str:
    try:
        values = json.loads(listed)
    except ValueError:
        return ""
    return str(values[1] if len(values) > 1 else values[0])


def instructions(contexts: Contexts) -> Iterator[Chat]:
    """Yield the custom instructions as one chat of the user, each text once."""
    told = [(text, at) for text, at in contexts.instructions.items() if text.strip()]
    entries = [
        entry_of_message(f"chatgpt-instructions-{digest(text, 8)}", "user", [text_part(text)], at_ms)
        for text, at_ms in told
    ]
    if entries:
        yield session_of_chat(SERVICE, "instructions"), entries


def saved_lines(contexts: Contexts) -> dict[str, int]:
    """
    Line of ChatGPT's memory → its time in ms: noon of the day that the line names, else the time of the whole memory.
    """
    found = {}
    for line in contexts.memory.splitlines():
        at_ms, text = contexts.memory_ms, line.strip()
        if saved := SAVED.match(line):
            day, text = datetime.fromisoformat(saved[1]).replace(hour=12, tzinfo=UTC), saved[2]
            at_ms = round(day.timestamp() * 1000)
        if text and not text.endswith(":"):  # "Model Set Context:" heads the list
            found[text] = at_ms
    return found
