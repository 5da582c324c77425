"""
Parses a spool file of the gateway's plugin into a Turn.

    read_drop        a file of hooks/index.js or the importers → a Turn
    clean_entries    the gateway's entries → Messages, without injected text, wrappers, secrets and the
                     gateway's own turns

Secrets are redacted here, before any other code sees a text.
"""

from __future__ import annotations

import json
import logging
import posixpath
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from ..dates.days import LAST_MS
from ..errors import BadInput
from ..identity import WEB_CHAT, says_owner
from ..secrets import answers_with, redact, redact_arguments, redact_result
from .envelope import (
    FILE_WRITERS,
    FORGET_ANSWER,
    MEMORY_FORGOTTEN,
    arguments_without_memory,
    cut_middle,
    is_from_gateway,
    legible_text,
    memory_mark,
    result_without_memory,
    spoken_answer,
    strip_memory,
    without_envelope,
)
from .turn import Call, Message, Turn

log = logging.getLogger(__name__)

# After a crash the gateway resumes an interrupted turn by itself; its answer goes to the user.
RECOVERY = "main_session_restart_recovery"

# Entries in which a web chat keeps /omg and its answer. They quote notes and are not conversation.
COMMAND = re.compile(r"\s*/omg(?:\s|$)", re.IGNORECASE)
INJECTED = "gateway-injected"  # the "model" of the gateway's own messages and of aborted answers
TOOL_CHARS = 4_000  # of a tool's result; the transcript keeps the rest
ARGUMENT_CHARS = 2_000
MOST_TOKENS = 100_000_000  # of one prompt; a larger figure is an error
SENDER_CHARS = 200  # of a name


# --- drops


def _text_of(value: object) -> str:
    return "" if value is None else legible_text(str(value))


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def to_epoch_ms(value: object) -> int | None:
    """Milliseconds since the epoch, from a number or from ISO text; None for anything else."""
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


Text = Annotated[str, BeforeValidator(_text_of)]
Ms = Annotated[int | None, BeforeValidator(to_epoch_ms)]
Fields = Annotated[dict[str, Any], BeforeValidator(_mapping)]


class LooseModel(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class SaidMessage(LooseModel):
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


class DropEntry(LooseModel):
    id: Text = Field("", alias="entryId")
    created: Ms = Field(None, alias="createdAt")
    idempotency: Text = Field("", alias="idempotencyKey")
    message: SaidMessage


class SpoolDrop(LooseModel):
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
    Parse a spool file into a Turn.

    *asked*: triggers, such as `cron`. A turn that such a trigger started is kept as if a person had started the turn.
    An entry that cannot be read is left out and logged. Raises BadInput if *data* is not a drop, or has no session.
    """
    try:
        drop = SpoolDrop.model_validate(json.loads(data))
    except (ValueError, RecursionError) as e:
        reason = first_complaint(e) if isinstance(e, ValidationError) else str(e)
        raise BadInput(f"not a drop: {reason}; a drop is JSON with v, sessionKey and entries") from e
    session = drop.session
    if not session.strip():
        raise BadInput("a drop needs a sessionKey, which says whose conversation it is")
    sender, channel = _person(drop.entries)  # for a drop that no hook wrote: it names neither
    prompted, cached = _prompted(drop.entries)
    return Turn(
        session=session,
        session_id=drop.session_id,
        agent=drop.agent or (session.split(":")[1] if session.startswith("agent:") else "main"),
        reason=drop.reason,
        channel=drop.channel or channel,
        sender=drop.sender or sender,
        workspace=drop.workspace,
        messages=clean_entries(drop.entries, asked),
        prompted=prompted,
        cached=cached,
    )


def _prompted(entries: Iterable[Any]) -> tuple[int, int]:
    """How many tokens the prompts of *entries* had, and how many of these tokens came from a cache."""
    counted = {"input": 0, "cacheRead": 0, "cacheWrite": 0}
    for raw in entries:
        usage = _mapping(_mapping(_mapping(raw).get("message")).get("usage"))
        for key in counted:
            tokens = usage.get(key)
            counted[key] += tokens if isinstance(tokens, int) and 0 < tokens < MOST_TOKENS else 0
    return sum(counted.values()), counted["cacheRead"]


def _person(entries: Iterable[Any]) -> tuple[str, str]:
    """
    The ids of the sender and the channel, from the first message that names its sender; ("", "") if no message does.

    In the gateway's own chat, the sender is the program that sent the message.
    """
    for raw in entries:
        meta = _mapping(_mapping(_mapping(raw).get("message")).get("__openclaw"))
        transport = _mapping(meta.get("transport"))
        if clients := transport.get("clients"):
            client = _mapping(clients[0] if isinstance(clients, list) else None)
            return _text_of(client.get("id")), WEB_CHAT
        if meta.get("senderId"):
            return _text_of(meta["senderId"]), _text_of(transport.get("channel"))
    return "", ""


def first_complaint(error: ValidationError) -> str:
    """The first error of pydantic, as one line of text."""
    first = error.errors()[0]
    return f"`{'.'.join(map(str, first['loc'])) or 'it'}`: {first['msg']}"


def clean_entries(entries: Iterable[Any], asked: Collection[str] = ()) -> tuple[Message, ...]:
    """
    Return the messages of people, the agent and its tools, without repetitions.

    Text that OMG or the gateway added to a message is removed. Left out:
    - `/omg`, and OMG's answer to this command
    - each turn that the gateway started by itself: a heartbeat, cron, a message from another session. If *asked* names
      the turn's trigger, the turn is kept without its prompt.

    After a call of omg_forget, the agent's words are replaced, because they may repeat the forgotten text. This ends
    when a person speaks, or when the agent calls a tool that is not a memory tool.
    """
    kept: list[Message] = []
    seen: set[str] = set()
    calls: dict[str, Call] = {}  # by id
    inside = False  # a turn that the gateway began by itself
    commanded = False  # the person's last message was a command to OMG
    forgetting = False  # the agent has called omg_forget, and since then only memory tools
    for raw in entries:
        try:
            entry = DropEntry.model_validate(raw)
        except ValidationError as e:
            log.warning("an entry of the transcript cannot be read and is left out: %s", first_complaint(e))
            continue
        if entry.message.role == "user":
            own, commanded = is_own_prompt(entry.message), is_command(entry.message)
            inside = own and entry.message.provenance.get("sourceTool") not in (*asked, RECOVERY)
            if own or commanded:
                continue
        elif commanded and entry.message.model == INJECTED:
            continue
        message = None if inside else _message(entry, calls)
        if message and message.role == "user":
            forgetting = False
            message = _with_secret_redacted(message, kept[-1].text) if kept else message
        elif message and message.role == "assistant":
            marks = [memory_mark(call.name, call.arguments) for call in message.calls]
            forgetting = MEMORY_FORGOTTEN in marks or (forgetting and None not in marks)
            if forgetting and message.text:
                message = replace(message, text=FORGET_ANSWER)
        if message and seen.isdisjoint((message.id, message.key)):
            seen |= {message.id, message.key}
            kept.append(message)
    return tuple(kept)


def is_own_prompt(said: SaidMessage) -> bool:
    """Whether *said* is a prompt that the gateway began by itself: a heartbeat, a job, another session."""
    return said.provenance.get("kind") not in (None, "external_user") or is_from_gateway(
        content_of(said.content)[0]
    )


def is_command(said: SaidMessage) -> bool:
    return COMMAND.match(content_of(said.content)[0]) is not None


def is_no_persons(message: Mapping[str, Any]) -> bool:
    """Whether *message* is the gateway's own prompt, or a command to OMG."""
    try:
        said = SaidMessage.model_validate(message)
    except ValidationError:
        return False
    return said.role == "user" and (is_own_prompt(said) or is_command(said))


def _message(entry: DropEntry, calls: dict[str, Call]) -> Message | None:
    """The cleaned message of *entry*; None if the cleaning leaves nothing. Adds the message's calls to *calls*."""
    said = entry.message
    match said.role:
        case "user":
            message = _user_message(said)
        case "assistant":
            message = _answer(said)
            calls |= {call.id: call for call in message.calls}
        case "toolResult" | "tool":
            message = _result(said, calls)
        case _:
            return None
    if message.role != "tool" and not message.text and not message.calls:
        return None  # a failed, aborted or silent answer, or only thoughts
    message = replace(
        message,
        id=entry.id,
        timestamp=said.timestamp or entry.created or 0,
        idempotency=said.idempotency or entry.idempotency,
    )
    return message if message.id else replace(message, id=message.idempotency or message.key)


def _user_message(said: SaidMessage) -> Message:
    text, redacted = redact(without_envelope(strip_memory(content_of(said.content)[0])).strip())
    sender, sender_id = _sender_name(said), _text_of(said.meta.get("senderId"))
    return Message("", "user", text, 0, sender, sender_id, says_owner(said.meta), redacted=redacted)


def _with_secret_redacted(message: Message, question: str) -> Message:
    """
    Return *message*; redacted, if the message is the secret that *question* asks for.

    *question*: the text of the previous message. The message must be nothing but the password or code.
    """
    kind = answers_with(question, message.text)
    return replace(message, text=f"[redacted: {kind}]", redacted=message.redacted + 1) if kind else message


def _sender_name(said: SaidMessage) -> str:
    """The sender's name on one line, so that a name cannot add lines to a prompt."""
    return " ".join(redact(_text_of(said.meta.get("senderName")))[0].split())[:SENDER_CHARS]


def _answer(said: SaidMessage) -> Message:
    text, made = content_of(said.content)
    text, redacted = redact(spoken_answer(strip_memory(text)).strip())
    calls = []
    for call in made:
        arguments, more = redact_arguments(legible_text(call.arguments))
        arguments = cut_middle(arguments_without_memory(call.name, arguments), ARGUMENT_CHARS)
        calls.append(replace(call, arguments=arguments))
        redacted += more
    return Message("", "assistant", text, 0, _sender_name(said), calls=tuple(calls), redacted=redacted)


def redacted_arguments(message: Message) -> Message:
    """
    *message* with its text, sender and calls redacted by the present rules. For messages that an older version kept.
    """
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


def _result(said: SaidMessage, calls: Mapping[str, Call]) -> Message:
    """
    Return a tool's result as a message, cut to TOOL_CHARS.

    The gateway can call a tool through its own tool `tool_call`. The message then names the tool that did the work.
    """
    call = calls.get(said.call_id)
    tool, content = call.name if call else said.tool, said.content
    if said.tool == "tool_call":
        tool = _text_of(_mapping(said.details.get("tool")).get("name")) or tool
        inner = _mapping(said.details.get("result")).get("content")
        content = inner if isinstance(inner, str | list) else content
    text, redacted = redact_result(
        strip_memory(content_of(content)[0]).strip(), call.arguments if call else ""
    )
    text = result_without_memory(tool, call.arguments if call else "", text)
    return Message(
        "", "tool", cut_middle(text, TOOL_CHARS), 0, call_id=said.call_id, tool=tool, redacted=redacted
    )


def content_of(content: str | list[Any] | None) -> tuple[str, list[Call]]:
    """
    The text of a message, and its tool calls. Images and files become placeholders. A model's thoughts are left out.
    """
    texts: list[str] = []
    made: list[Call] = []
    for part in content if isinstance(content, list) else [content]:
        if not isinstance(part, Mapping):
            texts.append(_text_of(part) if isinstance(part, str) else "")
            continue
        kind = _text_of(part.get("type"))
        if kind in ("text", "input_text", "output_text"):
            texts.append(_text_of(part.get("text")))
        elif kind in ("toolCall", "tool_use"):
            made.append(_call(part))
        elif kind in ATTACHED:
            texts.append(_placeholder(kind.removeprefix("input_").removesuffix("_url"), part))
    return "\n".join(texts), made


ATTACHED = frozenset(("image", "image_url", "input_image", "audio", "video", "file", "document", "media"))


def _call(part: Mapping[str, Any]) -> Call:
    """
    Read a tool call from a part of a message.

    The gateway can call a tool through its own tool `tool_call`. The Call then names the tool that does the work.
    """
    name, arguments = _text_of(part.get("name")), part.get("arguments", part.get("input"))
    if name == "tool_call" and isinstance(arguments, Mapping) and isinstance(arguments.get("id"), str):
        name, arguments = arguments["id"].rsplit(":", 1)[-1], arguments.get("args")
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments or {}, ensure_ascii=False, separators=(",", ":"))
    return Call(_text_of(part.get("id")), name, arguments)


def _placeholder(kind: str, part: Mapping[str, Any]) -> str:
    keys = ("fileName", "filename", "name", "title", "path")
    name = next((_text_of(part[key]) for key in keys if part.get(key)), "")
    name = re.split(r"[\\/]", name)[-1] or _text_of(part.get("mimeType") or part.get("media_type"))
    name = re.sub(r"[\[\]\s]+", " ", name).strip()[:80]
    return f"[{kind}: {name}]" if name else f"[{kind}]"


# --- Which files an agent may have written, according to the calls in a transcript.
#
# A tool that is known to write names its file. A tool that is known not to write is ignored. Any other tool, such
# as a shell, may write any file until its run is over. Only times and names of inbox files are kept.


HARMLESS = frozenset(
    """
    agents_list find glob grep image ls memory_get memory_search message read session_status sessions_history
    sessions_list sessions_search sessions_send sessions_spawn subagents tool_describe tool_search tts update_plan
    web_fetch web_search
    """.split()
)

FILE_KEYS = ("path", "file_path", "filePath", "file", "filename")
NAMED_PATH = re.compile(r"(?<![^\s\"'`|<>*])[^\s\"'`|<>*]{1,1000}\.(?:md|txt)\b", re.IGNORECASE)
OUR_TOOLS = re.compile(r"omg_\w+$")
SLACK_MS = 5_000  # a file's time and a message's time come from one clock, but at different moments


@dataclass(frozen=True, slots=True)
class Writes:
    """
    A period in which the agent may have written files into the inbox.

    *named*: the names of these files. None means that the agent may have written any file.
    """

    begin_ms: int
    end_ms: int
    named: tuple[str, ...] | None


def writes_of(entries: Iterable[Any]) -> list[Writes]:
    """
    Return the periods in which the agent may have written inbox files.

    Each run of the agent yields:
    - one `Writes` for each call that names inbox files
    - one `Writes` without names for all calls that may write any file
    """
    return [found for run in runs_of(entries) for found in writes_in_run(run)]


def runs_of(entries: Iterable[Any]) -> Iterator[list[DropEntry]]:
    """
    Divide the readable *entries* into runs.

    A run begins with each message of the role "user", whether a person or the gateway wrote the message.
    """
    run: list[DropEntry] = []
    for raw in entries:
        try:
            entry = DropEntry.model_validate(raw)
        except ValueError:
            continue
        if entry.message.role == "user" and run:
            yield run
            run = []
        run.append(entry)
    if run:
        yield run


def writes_in_run(run: list[DropEntry]) -> Iterator[Writes]:
    at = [entry.message.timestamp or entry.created or 0 for entry in run]
    end = max(at) + SLACK_MS
    made = [
        (ms, call) for ms, entry in zip(at, run, strict=True) for call in content_of(entry.message.content)[1]
    ]
    hidden = [
        ms for ms, call in made if call.name not in FILE_WRITERS | HARMLESS and not OUR_TOOLS.match(call.name)
    ]
    if hidden:
        yield Writes(min(hidden) - SLACK_MS, end, None)
    for ms, call in made:
        if call.name in FILE_WRITERS and (names := tuple(inbox_files(call))):
            yield Writes(ms - SLACK_MS, end, names)


def inbox_files(call: Call) -> Iterator[str]:
    """The inbox files named in a writing tool's arguments, as `folded_path` writes them."""
    for path in file_arguments(call.arguments):
        folder, name = posixpath.split(posixpath.normpath(path.replace("\\", "/")))
        if folded_path(posixpath.basename(folder)) == "inbox" and folded_path(name).endswith((".md", ".txt")):
            yield folded_path(name)


def file_arguments(arguments: str) -> list[str]:
    try:
        made = json.loads(arguments)
    except ValueError:
        made = None
    paths = [made[key] for key in FILE_KEYS if key in made] if isinstance(made, Mapping) else []
    return [str(path).strip() for path in paths] or NAMED_PATH.findall(arguments.replace("\\n", "\n"))


def folded_path(name: str) -> str:
    """*name* in a form that is the same for all names of one file, whatever the file system."""
    return unicodedata.normalize("NFC", name).casefold()
