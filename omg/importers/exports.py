"""Reads an export of ChatGPT, Claude.ai or Gemini, packed or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from ..errors import BadInput
from . import chatgpt, claude, gemini
from .archives import Member, members_of, services_in
from .chats import Chat, ItemReading
from .drops import ReadingProgress, Sessions, size_of

READERS: dict[str, Callable[[list[Member], ItemReading], Iterator[Chat]]] = {
    chatgpt.SERVICE: chatgpt.read_chats,
    claude.SERVICE: claude.read_chats,
    gemini.SERVICE: gemini.read_activity,
}


def read_export(path: Path, since: int, reading: ReadingProgress) -> Sessions:
    """Every chat of the export at *path*. Raises BadInput if it is none, or holds those of two services."""
    end = reading.done + size_of(path)
    with members_of(path) as members:
        services = services_in(members)
        if len(services) > 1:
            raise BadInput(
                f"{path}: holds exports of {' and '.join(sorted(services))}; unpack it, and import each by itself"
            )
        if not services:
            raise BadInput(f"{path}: {why_none(members)}")
        (service,) = services
        if designs := sum("design_chats/" in m.name for m in members):
            reading.left_out["design chats"] += designs
        yield from READERS[service](services[service], ItemReading(path, reading))
    reading.done = max(reading.done, end)


def why_none(members: list[Member]) -> str:
    names = [m.name for m in members]
    if any(name.lower().endswith("activity.html") for name in names):
        return "Takeout's activity as HTML; in takeout.google.com choose My Activity, its format JSON, and export again"
    if any(name.lower().endswith("chat.html") for name in names):
        return "has chat.html but no conversations.json; download the whole export again"
    return "no export of ChatGPT, Claude.ai or Gemini: no file in it holds their chats"
