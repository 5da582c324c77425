"""
Message and Turn: what was said in one exchange with the agent.

Not here: how they are read (drop.py) and stored (stored.py). One rule: `key` is the same for a message that arrives
twice under different ids.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Literal

from ..text.tokens import count_tokens

Role = Literal["user", "assistant", "tool"]
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
