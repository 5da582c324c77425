"""Reads Gemini's prompts and answers in Google Takeout: My Activity → Gemini Apps, as JSON.

An item is a prompt with its answer, newest first. Items do not name their chat, so a pause of GAP_MS begins a new
chat. Titles are in the person's language, but the form of an item is the same in every language."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from ..graph.state import objects_in
from .drops import JsonObject, digest, entry_of_message, said_epoch_ms, said_text, text_part
from .exports import Chat, ItemReading, Member, session_of_chat

SERVICE = "Gemini"
GAP_MS = 30 * 60_000
SAID = re.compile(r"(?:Prompted|Asked|Said|Branched|Answered)[\s\u00a0]+(.*)", re.S)
DONE = re.compile(r"(?:Created|Used|Added|Gave|Selected)\b")
BREAK = re.compile(r"(?i)<br\s*/?>|</(?:p|li|h\d|div|tr)>")
TAG = re.compile(r"<[^<>]*>")


def read_activity(members: list[Member], items: ItemReading) -> Iterator[Chat]:
    for member in sorted(members, key=lambda m: m.name):
        said: list[tuple[int, JsonObject]] = []
        for item in items.items(member):
            at_ms = said_epoch_ms(item.get("time"))
            if at_ms is None:
                items.skip(f"{member.name}: an activity without a time")
            else:
                said.append((at_ms, item))
            # items come newest first, and a pause ends a chat
            if len(said) > 1 and said[-2][0] - said[-1][0] > GAP_MS:
                yield from chat_of(said[:-1], items)
                said = said[-1:]
        yield from chat_of(said, items)


def chat_of(said: list[tuple[int, JsonObject]], items: ItemReading) -> Iterator[Chat]:
    entries = []
    for at_ms, item in sorted(said, key=lambda pair: pair[0]):
        title, answer = said_text(item.get("title")).strip(), answer_in(item)
        if DONE.match(title) or not (answer or SAID.match(title)):
            items.leave_out("activities that are no prompts")
            continue
        prompt = found[1] if (found := SAID.match(title)) else title
        id = digest(f"{at_ms} {title}", 12)
        entries.append(entry_of_message(f"gemini-{id}", "user", [text_part(prompt)], at_ms))
        if answer:
            entries.append(
                entry_of_message(f"gemini-{id}-answer", "assistant", [text_part(answer)], at_ms + 1)
            )
    if entries:
        yield session_of_chat(SERVICE, f"{entries[0]['createdAt']}"), entries


def answer_in(item: JsonObject) -> str:
    pieces = objects_in(item, "safeHtmlItem")
    return "\n".join(filter(None, (plain_text(said_text(p.get("html"))) for p in pieces)))


def plain_text(page: str) -> str:
    lines = html.unescape(TAG.sub("", BREAK.sub("\n", page))).splitlines()
    return "\n".join(line.strip() for line in lines if line.strip())
