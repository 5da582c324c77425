"""
Message and Turn: what was said in one exchange with the agent.

How they are read is in drop.py, how they are stored below. A message that arrives twice under different ids has
the same `key`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from ..errors import BadInput
from ..text.tokens import count_tokens, split_text
from .material import Span, material_in

Role = Literal["user", "assistant", "tool"]
PART = re.compile(r"\A\[part \d+/\d+\]\n?")  # before each part of a message that was cut
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
    # Of a part of a message that was cut: its material, as the whole message shows it.
    spans: tuple[Span, ...] | None = None

    @property
    def material(self) -> tuple[Span, ...]:
        """The parts of `text` that are not the speaker's own words: all of a tool's result, what a person passes
        on."""
        if self.role == "tool":
            return (Span(0, len(self.text), "quote"),) if self.text.strip() else ()
        if self.role == "assistant":
            return ()
        return material_in(self.text) if self.spans is None else self.spans

    @property
    def spoken(self) -> str:
        """`text` without its material, with an ellipsis where material was cut out of a line."""
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
        """Equal for the same message under two ids, as a hook's event and the transcript give them."""
        calls = "".join(call.id for call in self.calls) + self.call_id
        what = self.idempotency or f"{self.timestamp}\0{self.text}\0{calls}"
        return hashlib.blake2b(f"{self.role}\0{what}".encode("utf-8", "replace"), digest_size=12).hexdigest()

    @property
    def tokens(self) -> int:
        calls = sum(count_tokens(call.name + call.arguments) for call in self.calls)
        return FRAME_TOKENS + count_tokens(self.text) + calls


def said_at(role: str, at_ms: int) -> str:
    """Identifies a message where the ids of its calls may have changed, as in a context."""
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
        """Whether the gateway says that every person in it is the owner; None if no person speaks."""
        said = [m.owner is True for m in self.messages if m.role == "user"]
        return all(said) if said else None

    @property
    def shared(self) -> bool:
        """Whether it names somebody who is not known to be the owner."""
        said = [m for m in self.messages if m.role == "user"]
        return any(m.owner is False or (m.owner is None and m.sender_id) for m in said)


# --- Turns and messages as JSON: a turn is a file of `pending/`, a message a line of the archive.
#
# What is written reads back equal, and what older versions wrote can still be read.


def turn_to_json(turn: Turn) -> str:
    """A pending file: the Turn's fields by name, one line."""
    fields = asdict(turn)
    for message in fields["messages"]:
        del message["spans"]  # whole messages are stored; they are parted anew where they are read
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def turn_from_json(text: str) -> Turn:
    """The inverse of `turn_to_json`. Raises BadInput."""
    try:
        fields = json.loads(text)
        return Turn(**{**fields, "messages": tuple(_stored(m) for m in fields["messages"])})
    except (ValueError, TypeError, KeyError) as e:
        raise BadInput(f"not a stored turn: {e}") from e


def message_to_json(message: Message, session: str) -> str:
    """A line of the archive: the Message's fields that are set, and `session`, the sessionKey."""
    fields = {k: v for k, v in asdict(message).items() if v or v is False or k in ("text", "timestamp")}
    return json.dumps({"session": session, **fields}, ensure_ascii=False, separators=(",", ":"))


def message_from_json(line: str) -> tuple[Message, str]:
    """The message of a line of the archive, and its session. Raises BadInput."""
    try:
        fields = json.loads(line)
        return _stored({k: v for k, v in fields.items() if k != "session"}), fields["session"]
    except (ValueError, TypeError, KeyError, AttributeError) as e:
        raise BadInput(f"not a line of the archive: {e}") from e


def _stored(fields: dict[str, Any]) -> Message:
    return Message(**{**fields, "calls": tuple(Call(**call) for call in fields.get("calls", ()))})


# --- A conversation cut into pieces that a model's window holds.
#
# A tool call stays with its result, and material of a message stays material in each of its parts.


SMALLEST = 1_000  # tokens: smaller pieces do not help a model that cannot answer this many


def split_messages(messages: Sequence[Message], budget_tokens: int) -> list[tuple[Message, ...]]:
    """
    *messages* in order, in pieces of at most *budget_tokens*.

    A call stays with its result. A message above the budget is split into parts that keep its id and say
    which part they are; calls too many for one piece are dealt out, each with its result.
    """
    done: list[tuple[Message, ...]] = []
    current: list[Message] = []
    used = 0
    for unit in _uncut_units(messages):
        for part in _shrink(unit, budget_tokens):
            cost = sum(m.tokens for m in part)
            if current and used + cost > budget_tokens:
                done.append(tuple(current))
                current, used = [], 0
            current += part
            used += cost
    return [*done, tuple(current)] if current else done


def split_halves(messages: Sequence[Message]) -> list[tuple[Message, ...]]:
    """
    *messages* in two or three pieces of half their tokens; in one, if they cannot be cut.

    A message, or a call and its result, is not cut where it fits into SMALLEST tokens.
    """
    units = [sum(m.tokens for m in unit) for unit in _uncut_units(messages)]
    found = split_messages(messages, max(-(-sum(units) // 2), min(max(units, default=0), SMALLEST)))
    # A long call stands before each part of its result: where that leaves nothing smaller, it is one piece.
    return found if all(sum(m.tokens for m in part) < sum(units) for part in found) else [tuple(messages)]


def _answers(messages: Sequence[Message]) -> dict[int, tuple[int, Call]]:
    """Place of a result → place of its call, and the call: the last before it, for some models reuse ids."""
    found: dict[int, tuple[int, Call]] = {}
    made: dict[str, tuple[int, Call]] = {}
    for i, m in enumerate(messages):
        if m.call_id in made:
            found[i] = made[m.call_id]
        made |= {call.id: (i, call) for call in m.calls}
    return found


def _uncut_units(messages: Sequence[Message]) -> Iterator[tuple[Message, ...]]:
    """What must not be cut: a call, its results, and whatever was said in between."""
    last = {at: i for i, (at, _) in _answers(messages).items()}
    start, until = 0, 0
    for i in range(len(messages)):
        until = max(until, last.get(i, i))
        if i == until:
            yield tuple(messages[start : i + 1])
            start = i + 1


def _shrink(unit: tuple[Message, ...], budget: int) -> Iterator[tuple[Message, ...]]:
    """*unit*, in parts that fit where it does not."""
    if sum(m.tokens for m in unit) <= budget:
        yield unit
        return
    answers = _answers(unit)
    answered = {(at, call.id) for at, call in answers.values()}
    for i, m in enumerate(unit):
        if i in answers:
            at, call = answers[i]
            again = replace(unit[at], text="", calls=(call,))
            for part in _parts(m, max(budget - again.tokens, budget // 2)):
                yield again, part
            continue
        if m.text:
            yield from ((part,) for part in _parts(replace(m, calls=()), budget))
        if left := tuple(call for call in m.calls if (i, call.id) not in answered):
            yield (replace(m, text="", calls=left),)


def _parts(message: Message, budget: int) -> list[Message]:
    """*message*, or parts of it within *budget*."""
    if message.tokens <= budget:
        return [message]
    texts = split_text(message.text, max(16, budget - FRAME_TOKENS - 12))  # 12: "[part 3/14]" and a seam
    parts, at = [], 0
    for n, text in enumerate(texts, 1):
        head = f"[part {n}/{len(texts)}]\n"
        spans = tuple(
            Span(max(s.start - at, 0) + len(head), min(s.end - at, len(text)) + len(head), s.kind)
            for s in message.material
            if s.start < at + len(text) and s.end > at
        )
        # A tool's result is material as a whole, whatever part of it this is.
        parts.append(replace(message, text=head + text, spans=spans if message.role == "user" else None))
        at += len(text)
    return parts
