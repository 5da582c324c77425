"""
Reads Claude.ai's export: chats, projects and memories, in one zip or in several.

Since 2026 a chat may have branches; only the branch that ends at `current_leaf_message_uuid` is read. Attachments
and the documents of a project become quotations. Claude's memory becomes claims of the assistant.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..graph.state import mapping_in, objects_in
from .drops import JsonObject, entry_of_message, said_epoch_ms, said_text, text_part
from .exports import (
    Chat,
    ItemReading,
    Member,
    branch_to,
    claims,
    quoted,
    session_of_chat,
)

SERVICE = "Claude.ai"
ROLES = {"human": "user", "assistant": "assistant"}
UNSAID = {"thinking": "reasoning", "tool_use": "calls of tools", "tool_result": "tools and system"}


def read_chats(members: list[Member], items: ItemReading) -> Iterator[Chat]:
    memory: dict[str, int] = {}
    for member in sorted(members, key=lambda m: m.name):
        for item in items.items(member):
            if "chat_messages" in item:
                if chat := read_chat(item, member, items):
                    yield chat
            elif "prompt_template" in item:
                yield from read_project(item, member)
            elif "conversations_memory" in item:
                memory |= dict.fromkeys(memory_lines(item), member.at_ms)
            else:
                items.leave_out("items of no known form")
    yield from claims(SERVICE, memory)


def read_chat(chat: JsonObject, member: Member, items: ItemReading) -> Chat | None:
    if not (id := said_text(chat.get("uuid"))):
        items.skip(f"{member.name}: a chat without a uuid")
        return None
    made = said_epoch_ms(chat.get("created_at")) or 0
    changed = said_epoch_ms(chat.get("updated_at")) or made
    if chat.get("is_temporary"):
        items.leave_out("temporary and do-not-remember chats")
        return None
    if not items.reading.is_newest(f"{SERVICE} {id}", changed):
        items.leave_out("older copies of a chat")
        return None
    listed = objects_in(chat, "chat_messages")
    by_id = {str(m["uuid"]): m for m in listed if m.get("uuid")}
    items.leave_out("messages without an id, or repeated", len(listed) - len(by_id))
    parents = {id: said_text(m.get("parent_message_uuid")) for id, m in by_id.items()}
    branch = list(by_id)
    if not by_id.keys().isdisjoint(parents.values()):
        times = {id: float(said_epoch_ms(m.get("created_at")) or 0) for id, m in by_id.items()}
        branch = branch_to(chat.get("current_leaf_message_uuid"), parents, times)
        items.leave_out("edited and retried", len(by_id) - len(branch))
    at_ms, entries = made or changed or member.at_ms, []
    for message_id in branch:
        message = by_id[message_id]
        at_ms = said_epoch_ms(message.get("created_at")) or at_ms
        role = ROLES.get(str(message.get("sender")))
        if role and (content := parts_said(message, items)):
            entries.append(entry_of_message(message_id, role, content, at_ms))
    return (session_of_chat(SERVICE, id), entries) if entries else None


def parts_said(message: JsonObject, items: ItemReading) -> list[JsonObject]:
    """The text of *message*, then its attachments. An attachment without text is only named."""
    texts = []
    for part in objects_in(message, "content"):
        kind = said_text(part.get("type"))
        if kind == "text" and (text := said_text(part.get("text")).strip()):
            texts.append(text)
        elif kind in UNSAID:
            items.leave_out(UNSAID[kind])
    if not texts and not message.get("content"):
        texts = [text] if (text := said_text(message.get("text")).strip()) else []
    parts = [text_part(text) for text in texts]
    for attachment in objects_in(message, "attachments"):
        name = str(attachment.get("file_name") or "pasted")
        text = said_text(attachment.get("extracted_content"))
        parts.append(quoted(name, text) if text.strip() else {"type": "file", "name": name})
    files = {
        str(f.get("file_name")): f
        for key in ("files", "files_v2")
        for f in objects_in(message, key)
        if f.get("file_name")
    }
    return [*parts, *({"type": "file", "name": name} for name in files)]


def read_project(project: JsonObject, member: Member) -> Iterator[Chat]:
    """Yield the user's description of a project as one chat, with the project's documents as quotations."""
    name, id = str(project.get("name") or "").strip(), str(project.get("uuid"))
    at_ms = said_epoch_ms(project.get("created_at")) or member.at_ms
    told = [said_text(project.get(key)).strip() for key in ("description", "prompt_template")]
    docs = [d for d in objects_in(project, "docs") if said_text(d.get("content")).strip()]
    if name and (any(told) or docs):
        about = text_part("\n\n".join([f"Project {name}: {told[0]}".rstrip(": "), *filter(None, told[1:])]))
        parts = [about, *(quoted(str(d.get("filename")), d["content"]) for d in docs)]
        yield session_of_chat(SERVICE, f"project-{id}"), [entry_of_message(id, "user", parts, at_ms)]


def memory_lines(memory: JsonObject) -> Iterator[str]:
    """
    Yield each line of Claude's memory, without the headings. The memory has one text about all chats, and one
    text about each project.
    """
    texts = [memory.get("conversations_memory"), *mapping_in(memory, "project_memories").values()]
    for text in texts:
        for line in said_text(text).splitlines():
            bare = line.strip().strip("*#").strip()
            if bare and not line.lstrip().startswith(("#", "**")):
                yield line.strip()
