"""
Message and Turn: what was said in one exchange with the agent.

How they are read is in drop.py, how they are stored in stored.py. A message that arrives twice under different ids has
the same `key`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from ..text.tokens import count_tokens
from .material import Span, material_in

Role = Literal["user", "assistant", "tool"]
PART = re.compile(r"\A\[part \d+/\d+\]\n?")  # before each part of a message that was cut (pieces.py)
FRAME_TOKENS = 4  # role and separators, for each message


@dataclass(frozen=True, slots=True)
class Call:
    id: str
    name: str
    arguments: str  # JSON, cut


@dataclass(frozen=True, slots=True)
class Message:
    id: str  # the gateway's entry id; else its idempotency key; else `key`
    role: Role
    text: str
    timestamp: int  # ms UTC
    sender: str = ""
    sender_id: str = ""
    owner: bool | None = None
    calls: tuple[Call, ...] = ()
    call_id: str = ""  # role "tool": which call it answers
    tool: str = ""
    redacted: int = 0  # secrets taken out
    idempotency: str = ""
    # Of a part of a message that was cut (pieces.py): its material, as the whole message shows it.
    spans: tuple[Span, ...] | None = None

    @property
    def material(self) -> tuple[Span, ...]:
        """What of `text` is not in the speaker's own words: all that a tool returned, what a person passes on."""
        if self.role == "tool":
            return (Span(0, len(self.text), "quote"),) if self.text.strip() else ()
        if self.role == "assistant":
            return ()
        return material_in(self.text) if self.spans is None else self.spans

    @property
    def spoken(self) -> str:
        """`text` without its material; an ellipsis stands where a line went on."""
        text = self.with_material(lambda kind, text: "" if "\n" in text else "…")
        return text if PART.sub("", text).strip("… \n") else ""

    def with_material(self, shown: Callable[[str, str], str]) -> str:
        """`text` with *shown*, of the kind and the text of each piece of material, in its place."""
        parts, at = [], 0
        for span in self.material:
            parts += [self.text[at : span.start], shown(span.kind, self.text[span.start : span.end])]
            at = span.end
        return "".join([*parts, self.text[at:]]).strip()

    @property
    def key(self) -> str:
        """Equal for one message that reaches us under two ids, by a hook's event and by the transcript."""
        calls = "".join(call.id for call in self.calls) + self.call_id
        what = self.idempotency or f"{self.timestamp}\0{self.text}\0{calls}"
        return hashlib.blake2b(f"{self.role}\0{what}".encode("utf-8", "replace"), digest_size=12).hexdigest()

    @property
    def tokens(self) -> int:
        calls = sum(count_tokens(call.name + call.arguments) for call in self.calls)
        return FRAME_TOKENS + count_tokens(self.text) + calls


def said_at(role: str, at_ms: int) -> str:
    """What tells a message where the ids of its calls are not what they were, as in a context."""
    return f"{role} {at_ms}"


@dataclass(frozen=True, slots=True)
class Turn:
    session: str  # the sessionKey
    session_id: str = ""
    agent: str = ""
    reason: str = ""
    channel: str = ""
    sender: str = ""
    workspace: str = ""
    messages: tuple[Message, ...] = field(default=())
    prompted: int = 0  # tokens of the prompts that were answered in it, as the provider counted them,
    cached: int = 0  # and those of them that it had in its cache

    @property
    def owned(self) -> bool | None:
        """Whether all that people say in it is said to be the owner's; None where no person speaks."""
        said = [m.owner is True for m in self.messages if m.role == "user"]
        return all(said) if said else None

    @property
    def shared(self) -> bool:
        """Whether somebody who is not known to be the owner is named in it."""
        said = [m for m in self.messages if m.role == "user"]
        return any(m.owner is False or (m.owner is None and m.sender_id) for m in said)
