"""
What was said between two ends of the agent, cleaned.

- `read_drop` a spool file (of hooks/index.js or importer.py) → a Turn: the one place that parses drops
- `clean`     the gateway's entries → Messages: no injection, no wrappers, no turns of its own, no secrets
- `pieces`    safe cuts: a tool call stays with its result; `halves` where a piece was too much
- `to_json/from_json` for a pending turn, `message_to_json/message_from_json` for a line of the archive

No I/O and no opinion about what is worth remembering. Its one rule: a secret is out of a text before anything
else is made of it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from .. import identity, tokens
from ..dates import LAST_MS
from ..errors import BadInput
from . import machinery
from .envelope import answered, cut, from_gateway, legible, strip, unwrapped, wrap
from .redact import redact, redact_arguments

__all__ = ["Call", "Message", "Turn", "clean", "from_json", "message_from_json", "message_to_json", "pieces"]
__all__ += ["read_drop", "redacted", "strip", "to_json", "wrap"]

log = logging.getLogger(__name__)

Role = Literal["user", "assistant", "tool"]
# After a crash the gateway takes an interrupted turn up again by itself: what comes of it is said to the user.
RECOVERY = "main_session_restart_recovery"
# Where a web chat keeps /omg and what the plugin answered: that quotes notes, and is no conversation.
COMMAND = re.compile(r"\s*/omg(?:\s|$)", re.IGNORECASE)
INJECTED = "gateway-injected"  # the "model" of what the gateway itself says; of an aborted answer, too
TOOL_CHARS = 4_000  # of a tool's result; the archive is no place for the rest, and the transcript has it
ARGUMENT_CHARS = 2_000
SMALLEST = 1_000  # tokens: what a model cannot answer of these, it cannot of fewer
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
        calls = sum(tokens.count(call.name + call.arguments) for call in self.calls)
        return FRAME_TOKENS + tokens.count(self.text) + calls


@dataclass(frozen=True, slots=True)
class Turn:
    session: str  # the sessionKey
    session_id: str
    agent: str
    reason: str
    channel: str
    sender: str
    workspace: str
    messages: tuple[Message, ...] = field(default=())

    @property
    def owned(self) -> bool | None:
        """Whether all that people say in it is said to be the owner's; None where no person speaks."""
        heard = [m.owner is True for m in self.messages if m.role == "user"]
        return all(heard) if heard else None

    @property
    def shared(self) -> bool:
        """Whether somebody who is not known to be the owner is named in it."""
        heard = [m for m in self.messages if m.role == "user"]
        return any(m.owner is False or (m.owner is None and m.sender_id) for m in heard)


# --- drops


def _text(value: object) -> str:
    return "" if value is None else legible(str(value))


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def milliseconds(value: object) -> int | None:
    """Milliseconds since the epoch, of a number of them or of ISO text; None if it is neither."""
    number: object = value
    if isinstance(value, str):
        try:
            at = datetime.fromisoformat(value)
            number = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000
        except (ValueError, OverflowError):
            number = int(value) if value.isdecimal() and len(value) < 16 else None
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 < number < LAST_MS:
        return None
    return round(number)


Text = Annotated[str, BeforeValidator(_text)]
Ms = Annotated[int | None, BeforeValidator(milliseconds)]
Fields = Annotated[dict[str, Any], BeforeValidator(_mapping)]


class Loose(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Said(Loose):
    """A message as the transcript stores it."""

    role: str
    content: str | list[Any] | None = None
    timestamp: Ms = None
    idempotency: Text = Field("", alias="idempotencyKey")
    provenance: Fields = {}
    call_id: Text = Field("", alias="toolCallId")
    tool: Text = Field("", alias="toolName")
    details: Fields = {}
    model: Text = ""
    meta: Fields = Field({}, alias="__openclaw")


class Entry(Loose):
    id: Text = Field("", alias="entryId")
    created: Ms = Field(None, alias="createdAt")
    idempotency: Text = Field("", alias="idempotencyKey")
    message: Said


class Drop(Loose):
    v: Literal[1]
    reason: Text = "turn"
    agent: Text = Field("", alias="agentId")
    session: Text = Field("", alias="sessionKey")
    session_id: Text = Field("", alias="sessionId")
    workspace: Text = Field("", alias="workspaceDir")
    channel: Text = ""
    sender: Text = Field("", alias="senderId")
    entries: list[Any]


def read_drop(data: bytes, asked: Collection[str] = ()) -> Turn:
    """
    The Turn in a spool file.

    *asked*: triggers besides a person's whose turns are remembered, such as `cron`. Raises BadInput if *data*
    is no drop, or has no session; a single entry that cannot be read is left out and logged.
    """
    try:
        drop = Drop.model_validate(json.loads(data))
    except (ValueError, RecursionError) as e:
        reason = explain(e) if isinstance(e, ValidationError) else str(e)
        raise BadInput(f"not a drop: {reason}; a drop is JSON with v, sessionKey and entries") from e
    session = drop.session
    if not session.strip():
        raise BadInput("a drop without a sessionKey: whose it is cannot be told")
    sender, channel = _person(drop.entries)
    return Turn(
        session=session,
        session_id=drop.session_id,
        agent=drop.agent or (session.split(":")[1] if session.startswith("agent:") else "main"),
        reason=drop.reason,
        channel=drop.channel or channel,
        sender=drop.sender or sender,
        workspace=drop.workspace,
        messages=clean(drop.entries, asked),
    )


def _person(entries: Iterable[Any]) -> tuple[str, str]:
    """
    Who wrote the first message that says so, and on which channel.

    For drops without a hook's context: a session caught up later has the identity that it has live.
    """
    for raw in entries:
        meta = _mapping(_mapping(_mapping(raw).get("message")).get("__openclaw"))
        if meta.get("senderId"):
            return _text(meta["senderId"]), _text(_mapping(meta.get("transport")).get("channel"))
    return "", ""


def explain(error: ValidationError) -> str:
    """The first of pydantic's complaints, on one line."""
    first = error.errors()[0]
    return f"`{'.'.join(map(str, first['loc'])) or 'it'}`: {first['msg']}"


def clean(entries: Iterable[Any], asked: Collection[str] = ()) -> tuple[Message, ...]:
    """
    What people, the agent and its tools said, each message once and without what is not theirs.

    A turn that the gateway began by itself (heartbeat, cron, another session) goes whole, unless its source
    is *asked* for: then its answer stays. So does `/omg` with our answer to it. Of a person's turn that the
    agent left unanswered (NO_REPLY), the person's words stay.
    """
    kept: list[Message] = []
    seen: set[str] = set()
    calls: dict[str, Call] = {}  # by id
    inside = False  # a turn of the gateway's own
    commanded = False  # the person's last message was for us
    for raw in entries:
        try:
            entry = Entry.model_validate(raw)
        except ValidationError as e:
            log.warning("an entry of the transcript cannot be read and is left out: %s", explain(e))
            continue
        if entry.message.role == "user":
            provenance, text = entry.message.provenance, content_of(entry.message.content)[0]
            own = provenance.get("kind") not in (None, "external_user") or from_gateway(text)
            inside = own and provenance.get("sourceTool") not in (*asked, RECOVERY)
            commanded = COMMAND.match(text) is not None
            if own or commanded:
                continue
        elif commanded and entry.message.model == INJECTED:
            continue
        message = None if inside else _message(entry, calls)
        if message and seen.isdisjoint((message.id, message.key)):
            seen |= {message.id, message.key}
            kept.append(message)
    return tuple(kept)


def _message(entry: Entry, calls: dict[str, Call]) -> Message | None:
    """The cleaned message; None if nothing of it is to be kept. Its calls are noted in *calls*."""
    said = entry.message
    match said.role:
        case "user":
            message = _heard(said)
        case "assistant":
            message = _answer(said)
            calls |= {call.id: call for call in message.calls}
        case "toolResult" | "tool":
            message = _result(said, calls)
        case _:
            return None
    if message.role != "tool" and not message.text and not message.calls:
        return None  # a failed or aborted answer, a silent one, or nothing but thoughts
    message = replace(
        message,
        id=entry.id,
        timestamp=said.timestamp or entry.created or 0,
        idempotency=said.idempotency or entry.idempotency,
    )
    return message if message.id else replace(message, id=message.idempotency or message.key)


def _heard(said: Said) -> Message:
    text, redacted = redact(unwrapped(strip(content_of(said.content)[0])).strip())
    return Message(
        id="",
        role="user",
        text=text,
        timestamp=0,
        sender=redact(_text(said.meta.get("senderName")))[0],
        sender_id=_text(said.meta.get("senderId")),
        owner=identity.says_owner(said.meta.get("senderIsOwner")),
        redacted=redacted,
    )


def _answer(said: Said) -> Message:
    text, made = content_of(said.content)
    text, redacted = redact(answered(strip(text)).strip())
    calls = []
    for call in made:
        arguments, more = redact_arguments(legible(call.arguments))
        arguments = cut(machinery.call(call.name, arguments), ARGUMENT_CHARS)
        calls.append(replace(call, arguments=arguments))
        redacted += more
    return Message(
        "",
        "assistant",
        text,
        0,
        redact(_text(said.meta.get("senderName")))[0],
        calls=tuple(calls),
        redacted=redacted,
    )


def redacted(message: Message) -> Message:
    """*message* with what today's rules find taken out, for what an older version kept."""
    text, found = redact(message.text)
    sender, more = redact(message.sender)
    calls = []
    for call in message.calls:
        arguments, most = redact_arguments(call.arguments)
        calls.append(replace(call, arguments=arguments))
        more += most
    if not found + more:
        return message
    total = message.redacted + found + more
    return replace(message, text=text, sender=sender, calls=tuple(calls), redacted=total)


def _result(said: Said, calls: Mapping[str, Call]) -> Message:
    """A tool's result, cut; one through the gateway's tool search as a result of the tool that was meant."""
    call = calls.get(said.call_id)
    tool, content = call.name if call else said.tool, said.content
    if said.tool == "tool_call":
        tool = _text(_mapping(said.details.get("tool")).get("name")) or tool
        inner = _mapping(said.details.get("result")).get("content")
        content = inner if isinstance(inner, str | list) else content
    text, redacted = redact(strip(content_of(content)[0]).strip())
    text = machinery.result(tool, call.arguments if call else "", text)
    return Message("", "tool", cut(text, TOOL_CHARS), 0, call_id=said.call_id, tool=tool, redacted=redacted)


def content_of(content: str | list[Any] | None) -> tuple[str, list[Call]]:
    """Text, with placeholders for what is none, and the tool calls. Thoughts are nobody's words: left out."""
    texts: list[str] = []
    made: list[Call] = []
    for part in content if isinstance(content, list) else [content]:
        if not isinstance(part, Mapping):
            texts.append(_text(part) if isinstance(part, str) else "")
            continue
        kind = _text(part.get("type"))
        if kind in ("text", "input_text", "output_text"):
            texts.append(_text(part.get("text")))
        elif kind in ("toolCall", "tool_use"):
            made.append(_call(part))
        elif kind in ATTACHED:
            texts.append(_placeholder(kind.removeprefix("input_").removesuffix("_url"), part))
    return "\n".join(texts), made


ATTACHED = frozenset(("image", "image_url", "input_image", "audio", "video", "file", "document", "media"))


def _call(part: Mapping[str, Any]) -> Call:
    """A tool call; one through the gateway's tool search as a call of the tool that was meant."""
    name, arguments = _text(part.get("name")), part.get("arguments", part.get("input"))
    if name == "tool_call" and isinstance(arguments, Mapping) and isinstance(arguments.get("id"), str):
        name, arguments = arguments["id"].rsplit(":", 1)[-1], arguments.get("args")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments or {}, ensure_ascii=False, separators=(",", ":"))
    return Call(_text(part.get("id")), name, arguments)


def _placeholder(kind: str, part: Mapping[str, Any]) -> str:
    keys = ("fileName", "filename", "name", "title", "path")
    name = next((_text(part[key]) for key in keys if part.get(key)), "")
    name = re.split(r"[\\/]", name)[-1] or _text(part.get("mimeType") or part.get("media_type"))
    name = re.sub(r"[\[\]\s]+", " ", name).strip()[:80]
    return f"[{kind}: {name}]" if name else f"[{kind}]"


# --- cuts


def pieces(messages: Sequence[Message], budget_tokens: int) -> list[tuple[Message, ...]]:
    """
    *messages* in order, in pieces of at most *budget_tokens*.

    A call stays with its result. A message above the budget is split into parts that keep its id and say
    which part they are; calls too many for one piece are dealt out, each with its result.
    """
    done: list[tuple[Message, ...]] = []
    current: list[Message] = []
    used = 0
    for unit in _units(messages):
        for part in _shrink(unit, budget_tokens):
            cost = sum(m.tokens for m in part)
            if current and used + cost > budget_tokens:
                done.append(tuple(current))
                current, used = [], 0
            current += part
            used += cost
    return [*done, tuple(current)] if current else done


def halves(messages: Sequence[Message]) -> list[tuple[Message, ...]]:
    """
    *messages* in two or three pieces of half their tokens; in one, if they cannot be cut.

    A message, or a call and its result, is not cut where it fits into SMALLEST tokens.
    """
    units = [sum(m.tokens for m in unit) for unit in _units(messages)]
    found = pieces(messages, max(-(-sum(units) // 2), min(max(units, default=0), SMALLEST)))
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


def _units(messages: Sequence[Message]) -> Iterator[tuple[Message, ...]]:
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
    texts = tokens.split(message.text, max(16, budget - FRAME_TOKENS - 12))  # 12: "[part 3/14]" and a seam
    return [replace(message, text=f"[part {n}/{len(texts)}]\n{t}") for n, t in enumerate(texts, 1)]


# --- on disk


def to_json(turn: Turn) -> str:
    """A pending file: the Turn's fields by name, one line."""
    return json.dumps(asdict(turn), ensure_ascii=False, separators=(",", ":"))


def from_json(text: str) -> Turn:
    """The inverse of `to_json`. Raises BadInput."""
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
