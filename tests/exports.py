"""Exports and histories of other assistants, made as their documented forms have them."""

import io
import json
import sqlite3
import zipfile
from datetime import UTC, datetime
from pathlib import Path

DAY_S = 86_400


def at(day: str, second: int = 0) -> float:
    return datetime.fromisoformat(f"{day}T12:00:00+00:00").timestamp() + second


def iso(day: str, second: int = 0) -> str:
    return datetime.fromtimestamp(at(day, second), UTC).isoformat().replace("+00:00", "Z")


def node(id, role, text, when, *, parent=None, kind="text", **more):
    """A node of ChatGPT's tree; *text* None: no message."""
    content = {"content_type": kind, **(text if isinstance(text, dict) else {"parts": [text]})}
    message = {
        "id": id,
        "author": {"role": role},
        "create_time": when,
        "content": content,
        "metadata": {},
    } | more
    return id, {"id": id, "parent": parent, "children": [], "message": None if text is None else message}


def chat(id, day, *nodes, current=None, **more):
    """A chat of ChatGPT's. A node without a parent follows the one before it."""
    mapping, last = {}, None
    for name, each in nodes:
        if each["parent"] is None and last is not None:
            each["parent"] = last
        mapping[name], last = each, name
    made = {
        "conversation_id": id,
        "id": id,
        "title": f"Chat {id}",
        "create_time": at(day),
        "update_time": at(day, 60),
    }
    return {**made, "mapping": mapping, "current_node": current or last, **more}


def talk(id, day, *said, **more):
    """A chat in which user and assistant speak by turns."""
    roles = ("user", "assistant")
    nodes = [node(f"{id}-{n}", roles[n % 2], text, at(day, n)) for n, text in enumerate(said)]
    return chat(id, day, node(f"{id}-root", "system", None, None), *nodes, **more)


def zipped(path: Path, files: dict, method=zipfile.ZIP_DEFLATED) -> Path:
    """A zip with *files*: name → bytes, or what becomes JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content if isinstance(content, bytes) else json.dumps(content))
    return path


def packed(files: dict) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content if isinstance(content, bytes) else json.dumps(content))
    return made.getvalue()


def claude_message(id, sender, text, day, second=0, *, parent=None, **more):
    parts = [{"type": "text", "text": text}] if isinstance(text, str) else text
    made = {"uuid": id, "sender": sender, "text": "", "content": parts, "created_at": iso(day, second)}
    return {
        **made,
        "attachments": [],
        "files": [],
        **({"parent_message_uuid": parent} if parent else {}),
        **more,
    }


def claude_chat(id, day, *messages, **more):
    made = {"uuid": id, "name": f"Chat {id}", "created_at": iso(day), "updated_at": iso(day, 60)}
    return {**made, "chat_messages": list(messages), **more}


def activity(title, when, answer="", header="Gemini Apps"):
    made = {"header": header, "title": title, "time": when, "products": [header]}
    return made | ({"safeHtmlItem": [{"html": answer}]} if answer else {})


def lines(path: Path, rows, end="\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(row) for row in rows) + end, encoding="utf-8")
    return path


def database(path: Path, script: str, rows: dict) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(path) as db:
        db.executescript(script)
        for table, values in rows.items():
            for value in values:
                db.execute(f"INSERT INTO {table} VALUES ({','.join('?' * len(value))})", value)
    db.close()
    return path
