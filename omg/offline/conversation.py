"""
Who speaks in a conversation, and how it stands at its end.

What a tool returned has no say here: Now goes into the prompt as it is, so only what the user asked for and what
the assistant asks back may stand in it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ..message.envelope import strip_memory
from ..message.turn import Message
from ..text.sentences import split_sentences
from .assertions import without_lead_in
from .cues import begins
from .sentences import written_sentences

NAME = re.compile(r"[^\W\d_][\w.'-]*(?: [^\W\d_][\w.'-]*){0,2}")
STRANGER = "somebody"
# no names: what a prompt calls those who speak
NO_NAMES = re.compile(r"(?:the )?(?:user|assistant|system|tool|omg|owner|agent|human)\b.*", re.I)
CLOSING_WORDS = re.compile(
    r"(?:thanks?|thank you|thx|cheers|great|perfect|ok(?:ay)?|bye|good ?night|see you|nice|cool|awesome|danke|merci|gracias"
    r"|got it|that's all)\b",
    re.I,
)
CLIPPED = 160  # characters of what someone asked


def speaker(message: Message) -> str:
    """Who says it: their display name, or the name in it; "the user" or "the assistant" where there is none."""
    found = NAME.search(" ".join(message.sender.split()))
    name = found[0] if found else ""
    if not name or NO_NAMES.fullmatch(name):
        return "the assistant" if message.role == "assistant" else "the user"
    first, _, rest = name.partition(" ")
    return first if rest and " " not in rest and not first.endswith(".") else name


def with_strangers(messages: Sequence[Message]) -> list[Message]:
    """*messages* of a group: in a room of several, who has no name that can be used and is not its owner is somebody."""
    return [
        replace(m, sender=STRANGER)
        if m.role == "user" and m.owner is not True and m.sender_id and speaker(m) == "the user"
        else m
        for m in messages
    ]


def now_hints(messages: Sequence[Message]) -> dict[str, str]:
    """The user's last request that is still open (`task`), how far it is (`state`), and what is waited for (`next`)."""
    task = state = ahead = ""
    for m in messages:
        text = " ".join(strip_memory(m.text).split())
        if m.role == "user" and text:
            if asked := last_request(m.text):
                who = speaker(m)
                task, state, ahead = (
                    f"{who[:1].upper()}{who[1:]} asked: “{clipped_hint(asked)}”",
                    "not answered yet",
                    "",
                )
            elif CLOSING_WORDS.match(text) or state == "answered":
                task = state = ahead = ""
            elif ahead:
                state, ahead = "the assistant's question was answered", ""
        elif m.role == "assistant" and task:
            if m.calls:
                state = f"working on it with {', '.join(dict.fromkeys(c.name for c in m.calls))}"
            elif text.endswith("?"):
                question = text if len(text) <= CLIPPED else split_sentences(text)[-1]
                state, ahead = (
                    "the assistant asked back",
                    f"wait for the answer to: “{clipped_hint(question)}”",
                )
            elif text:
                state, ahead = "answered", ""
    return {"task": task, "state": state, "next": ahead}


def last_request(text: str) -> str:
    """The last thing that *text* asks for; "" if it asks for nothing."""
    return next((said for said in reversed(list(written_sentences(text))) if asks_something(said)), "")


def asks_something(said: str) -> bool:
    if begins("told", said):
        return False
    return said.endswith(("?", "？")) or any(
        begins(kind, without_lead_in(said)) for kind in ("question", "command", "asked")
    )


def clipped_hint(text: str) -> str:
    return text if len(text) <= CLIPPED else f"{text[: CLIPPED - 1].rsplit(' ', 1)[0]}…"
