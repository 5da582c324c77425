"""
Message and Turn: what was said in one exchange with the agent, and which parts are *material*.

A message that arrives twice under different ids has the same `key`. `drop.py` makes messages from a transcript.

Material is text that a person passes on and did not write for the agent. All other text is *spoken*, even in quotation
marks: half of all messages have quotation marks. Only the form decides, in any language. Material is:
- code in fences or indented, and comments
- quoted lines, forwarded mails and pasted chats with times
- calendar files, and whole documents with a head

The search takes linear time: each pass reads the lines once, and no pattern nests repetitions (tests/test_stalls.py).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from itertools import groupby, pairwise, takewhile
from operator import itemgetter
from typing import Any, Literal

from ..errors import BadInput
from ..text.tokens import count_tokens, split_text


@dataclass(frozen=True, slots=True)
class Span:
    """
    Characters *start* to *end* of a text: a part that a person passed on, such as a pasted mail.

    *kind*: "code" for code, "quote" for anything else.
    """

    start: int
    end: int
    kind: str


Lines = Sequence[str]

FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")
# """ and ''' may also open within a line
TRIPLE = re.compile(r"\"{3}[^\"]{1,20000}\"{3}|'{3}[^']{1,20000}'{3}")
PICTURE = re.compile(r"!\[[^\[\]\n]{0,500}\]\([^()\n]{0,500}\)")
QUOTED = re.compile(r"\s{0,20}(?:[-*•–]\s{1,4}|\d{1,2}[.)]\s{1,4})?(?:[>＞»│┃▌▏❯]|&gt;)")
INDENTED = re.compile(r"(?: {4}|\t)\s*(?![-*•–+]\s|\d{1,3}[.)]\s)\S")
TAG_OPENS = re.compile(r"\s{0,20}<([A-Za-z][\w-]{0,60})(?:\s[^<>\n]{0,500})?>\s*$")
BEGIN = re.compile(r"BEGIN:(\w{1,30})\s*$")
HEAD_RULE = re.compile(r"---\s*$")

ADDRESS = re.compile(r"<[^<>\s@]{1,100}@[^<>\s@]{1,100}>|\[mailto:")
YEAR = re.compile(r"\b(?:19|20)\d\d\b|(?:19|20)\d\d年")
CLOCK = re.compile(r"\d{1,2}[:.h]\d\d(?!\d)|\d{1,2}[時时点시]")
# "From: Ann <ann@a.test>", in any language
HEADER = re.compile(r"[*\s]{0,6}[^\W\d_][\w .'’-]{0,24}\*{0,2}\s?[:：]\*{0,2}\s{0,8}\S")
DASHED = re.compile(r"\s{0,20}-{3,40}[^-\n]{3,80}-{3,40}\s*$")
LONGEST_CHAT = 2_000  # characters of a line of a chat
LONGEST_HEADER = 400  # characters of a line of a mail's head

TIME = r"[\[(]?(?:[\d.,/-]{4,12},? )?\d{1,2}[:.]\d\d(?:[:.]\d\d)?(?: ?[APap]\.?[Mm]\.?)?[\])]?"
# "[10:02] Ann: …", "10:02 <ann> …"
SAID_AT = re.compile(rf"\s{{0,9}}{TIME}[\s–-]{{1,4}}(?:<[\w.-]{{1,30}}>|[^\W\d_][\w .'’-]{{0,40}}?:)\s\S")
# A line of a log: its day, and its time with seconds
LOGGED = re.compile(r"\s{0,9}[\[(]?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d")
# "Ann: …"
SAID = re.compile(r"\s{0,3}([^\W\d_][\w.'’-]{0,30}(?: [^\W\d_][\w.'’-]{0,30})?): \S")
# "Ann, 9:41" and "Ann — today at 9:41", on a line above Ann's words
SPEAKER = re.compile(
    rf"\s{{0,3}}[^\W\d_][^\n:?!]{{0,40}}?(?:[,\s]\s?|\s[—–-]\s)[^\n:?!\d]{{0,20}}{TIME}\s{{0,3}}$"
)
QUARTER = re.compile(r"(?<![\d:.])\d{1,2}[:.](?:00|15|30|45)(?![\d:.])")
# A sentence, or at least six words: stands behind a name in a chat, but not in a form or list
TALK = re.compile(r"[.!?…。！？]\s*$|(?:\S+\s+){5}\S")
SUBTITLE = re.compile(r"\s{0,20}\d{1,2}:\d\d(?::\d\d)?[.,]\d{1,3} --> ")


@lru_cache(maxsize=512)
def material_in(text: str) -> tuple[Span, ...]:
    """
    Find the parts of *text* that a person only passes on, such as code and forwarded mails.

    Returns the parts in order; they do not overlap.
    """
    lines = text.split("\n")
    found = [""] * len(lines)  # of each line: its kind, "" for spoken
    for mark in (mark_fences, mark_blocks, mark_chat, mark_turns, mark_mail):
        mark(lines, found)
    spans = marked_spans(lines, found)
    spans += [Span(*m.span(), "quote") for pattern in (TRIPLE, PICTURE) for m in pattern.finditer(text)]
    spans += comments(text)
    return tuple(merged(sorted(spans, key=lambda s: (s.start, s.end))))


def fenced_code(text: str) -> list[Span]:
    """The code between fences in *text*, in order."""
    lines = text.split("\n")
    found = [""] * len(lines)
    mark_fences(lines, found)
    return marked_spans(lines, found)


def marked_spans(lines: Lines, found: Sequence[str]) -> list[Span]:
    """
    Return the parts of the text that are material, as places in the whole text.

    *found* has the kind of each line, "" for spoken text. Neighbouring lines of one kind become one part.
    """
    spans, at = [], 0
    for kind, run in groupby(zip(found, lines, strict=True), key=itemgetter(0)):
        end = at + sum(len(line) + 1 for _, line in run)
        if kind:
            spans.append(Span(at, end - 1, kind))
        at = end
    return spans


def comments(text: str) -> Iterator[Span]:
    """Return the HTML comments in *text*. A comment without an end is left out."""
    # A regular expression would read to the end of the text at each "<!--" if no "-->" follows.
    end = 0
    while (start := text.find("<!--", end)) >= 0 and (end := text.find("-->", start)) >= 0:
        yield Span(start, end + 3, "quote")


def merged(spans: Sequence[Span]) -> list[Span]:
    """The ordered *spans*; spans that touch, or have only a line's end between them, become one."""
    done: list[Span] = []
    for span in spans:
        if done and span.start <= done[-1].end + 1:
            done[-1] = Span(done[-1].start, max(done[-1].end, span.end), done[-1].kind)
        else:
            done.append(span)
    return done


def mark_fences(lines: Lines, found: list[str]) -> None:
    """Mark code between fences; a fence without an end reaches to the end of the text."""
    fence = ""
    if not any("```" in line or "~~~" in line for line in lines):
        return
    for n, line in enumerate(lines):
        m = FENCE.match(line)
        if fence:
            found[n] = "code"
            if m and m[1].startswith(fence) and not line.strip(" \t`~"):
                fence = ""
        elif m:
            found[n], fence = "code", m[1]


def mark_blocks(lines: Lines, found: list[str]) -> None:
    """
    Write "quote" or "code" into *found* for each line that a person passed on.

    The form of the lines decides:
    - lines that begin with ">" or a similar sign
    - indented code
    - lines from a tag to its end tag, and from BEGIN: to END:
    - all lines, if the text begins with a head between `---` lines
    """
    if HEAD_RULE.match(lines[0]) and any(HEAD_RULE.match(line) for line in lines[1:40]):
        found[:] = ["quote"] * len(lines)
        return
    blank, code = True, False
    closes = ""
    ends = {line.strip() for line in lines if line.lstrip().startswith(("</", "END:"))}
    for n, line in enumerate(lines):
        if found[n]:
            continue
        if closes:
            found[n] = "quote"
            closes = "" if line.strip() == closes else closes
            continue
        if not line or line.isspace():
            code, blank = False, True
            continue
        code, blank = line[0] in " \t" and bool(INDENTED.match(line)) and (code or blank), False
        if QUOTED.match(line):
            found[n] = "quote"
        elif (m := TAG_OPENS.match(line)) and f"</{m[1]}>" in ends:
            found[n], closes = "quote", f"</{m[1]}>"
        elif (m := BEGIN.match(line)) and f"END:{m[1]}" in ends:
            found[n], closes = "quote", f"END:{m[1]}"
        elif code:
            found[n] = "code"


def mark_chat(lines: Lines, found: list[str]) -> None:
    """
    Mark a pasted conversation: at least two lines that say who spoke and when, and the lines below each.
    """
    left = [n for n, line in enumerate(lines) if line and not found[n] and len(line) <= LONGEST_CHAT]
    for pattern in (SAID_AT, SPEAKER, SUBTITLE, LOGGED) if len(left) > 1 else ():
        heads = [n for n in left if pattern.match(lines[n])]
        if pattern is SPEAKER:  # without words below, the line is an entry of a list: "Gym, Monday 18:00"
            heads = [n for n in heads if "".join(lines[n + 1 : n + 2]).strip() and n + 1 not in heads]
        if len(heads) < 2 or is_timetable([lines[n] for n in heads]):
            continue
        end = heads[-1] + 1 if pattern is LOGGED else len(lines)
        for head, following in pairwise([*heads, end]):
            for n in takewhile(lambda n: lines[n].strip(), range(head, following)):
                found[n] = found[n] or "quote"


def mark_turns(lines: Lines, found: list[str]) -> None:
    """Mark a pasted conversation without times: two or more people speak by turns."""
    left = [n for n, line in enumerate(lines) if line and not found[n] and len(line) <= LONGEST_CHAT]
    said = {n: m[1] for n in left if (m := SAID.match(lines[n]))} if len(left) > 2 else {}
    names = Counter(said.values())
    talk = any(TALK.search(lines[n]) for n in said)
    if talk and len(said) >= 3 and 1 < len(names) < len(said):  # labels of a list do not repeat
        for n in said:
            found[n] = "quote"


def is_timetable(heads: Sequence[str]) -> bool:
    """Whether the times of all *heads* look like a timetable: full quarters of an hour, without brackets."""
    times = [QUARTER.search(head) for head in heads]
    return all(m and not head.lstrip().startswith(("[", "(")) for m, head in zip(times, heads, strict=True))


def mark_mail(lines: Lines, found: list[str]) -> None:
    """Mark an answered or forwarded mail, from its head to the end of the message."""
    for n in range(len(lines) - 1):  # a mail has lines below its head
        if not found[n] and lines[n].strip() and begins_mail(lines, found, n):
            below = first_written(lines, n + 1)
            if below and found[below]:  # the mail is quoted line by line; the person may write below
                found[n] = "quote"
                continue
            dashed = DASHED.match(lines[n]) is not None
            for k in range(n, len(lines)):
                found[k] = found[k] or "quote"
                ends = dashed and k > n and DASHED.match(lines[k])
                if ends and not HEADER.match(lines[first_written(lines, k + 1)]):
                    break  # "----- end -----": after it the person speaks again
            return


def first_written(lines: Lines, at: int) -> int:
    """The number of the first line that is not empty, line *at* or the line after it; 0 if both are empty."""
    return next((n for n in range(at, min(at + 2, len(lines))) if lines[n].strip()), 0)


def begins_mail(lines: Lines, found: Sequence[str], n: int) -> bool:
    """Whether line *n* begins a mail: "On … wrote:", a dashed line above header lines, or header lines."""
    line = lines[n]
    if len(line) > LONGEST_HEADER:
        return False
    # "On … wrote:" may be broken into two lines
    both = line
    if not line.rstrip().endswith((":", "：")):
        both = f"{line} {''.join(lines[n + 1 : n + 2])}"[:LONGEST_HEADER]
    if both.rstrip().endswith((":", "：")) and (YEAR.search(both) or CLOCK.search(both)):
        below = first_written(lines, n + 1)
        if ADDRESS.search(both) or (below and found[below] == "quote"):
            return True
    if DASHED.match(line):
        below = first_written(lines, n + 1)
        return bool(below and HEADER.match(lines[below][:LONGEST_HEADER]))
    head = []
    for line in lines[n : n + 12]:
        if len(line) > LONGEST_HEADER or not HEADER.match(line):
            break
        head.append(line)
    if len(head) < 2:
        return False
    told = "\n".join(head)
    return bool(ADDRESS.search(told)) or (
        len(head) > 2 and any(YEAR.search(x) and CLOCK.search(x) for x in head)
    )


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
    call_id: str = ""  # role "tool": the id of the call that this result answers
    tool: str = ""
    redacted: int = 0  # secrets taken out
    idempotency: str = ""
    # Only for a part of a message that was cut: the part's material, as found in the whole message.
    spans: tuple[Span, ...] | None = None

    @property
    def material(self) -> tuple[Span, ...]:
        """
        The parts of `text` that are not the speaker's own: a tool's whole result, what a person passes on.
        """
        if self.role == "tool":
            return (Span(0, len(self.text), "quote"),) if self.text.strip() else ()
        if self.role == "assistant":
            return ()
        return material_in(self.text) if self.spans is None else self.spans

    @property
    def spoken(self) -> str:
        """`text` without its material, with an ellipsis where material was cut out of a line."""
        text = self.with_parts(self.material, lambda kind, text: "" if "\n" in text else "…")
        return text if PART.sub("", text).strip("… \n") else ""

    def with_parts(self, spans: Iterable[Span], shown: Callable[[str, str], str]) -> str:
        """
        `text` with each of *spans* replaced by the result of *shown*, which gets the span's kind and text.
        """
        parts, at = [], 0
        for span in spans:
            parts += [self.text[at : span.start], shown(span.kind, self.text[span.start : span.end])]
            at = span.end
        return "".join([*parts, self.text[at:]]).strip()

    @property
    def key(self) -> str:
        """
        A key that does not depend on `id`: a hook's event and the transcript give different ids to the same message.
        """
        calls = "".join(call.id for call in self.calls) + self.call_id
        what = self.idempotency or f"{self.timestamp}\0{self.text}\0{calls}"
        return hashlib.blake2b(f"{self.role}\0{what}".encode("utf-8", "replace"), digest_size=12).hexdigest()

    @property
    def tokens(self) -> int:
        calls = sum(count_tokens(call.name + call.arguments) for call in self.calls)
        return FRAME_TOKENS + count_tokens(self.text) + calls


def said_at(role: str, at_ms: int) -> str:
    """
    A message's role and time as one string. This string identifies a message even if the host's context and the
    archive give the message different ids.
    """
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
    prompted: int = 0  # tokens of the prompts answered in this turn, as the provider counted them
    cached: int = 0  # how many of these tokens the provider had in its cache

    @property
    def owned(self) -> bool | None:
        """Whether the gateway says that every person in the turn is the owner; None if no person speaks."""
        said = [m.owner is True for m in self.messages if m.role == "user"]
        return all(said) if said else None

    @property
    def shared(self) -> bool:
        """Whether the turn names somebody who is not known to be the owner."""
        said = [m for m in self.messages if m.role == "user"]
        return any(m.owner is False or (m.owner is None and m.sender_id) for m in said)


# --- Turns and messages as JSON: a turn is a file of `pending/`, a message a line of the archive.
#
# A value reads back equal to what was written. JSON of older versions can still be read.


def turn_to_json(turn: Turn) -> str:
    """The turn as one line of JSON, the content of a file of pending/."""
    fields = asdict(turn)
    for message in fields["messages"]:
        del message["spans"]  # whole messages are stored, and cut again after they are read
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def turn_from_json(text: str) -> Turn:
    """The inverse of `turn_to_json`. Raises BadInput."""
    try:
        fields = json.loads(text)
        return Turn(**{**fields, "messages": tuple(_stored(m) for m in fields["messages"])})
    except (ValueError, TypeError, KeyError) as e:
        raise BadInput(f"not a stored turn: {e}") from e


def message_to_json(message: Message, session: str) -> str:
    """The message as a line of the archive: its fields that are set, and `session` (the sessionKey)."""
    fields = {k: v for k, v in asdict(message).items() if v or v is False or k in ("text", "timestamp")}
    return json.dumps({"session": session, **fields}, ensure_ascii=False, separators=(",", ":"))


def message_from_json(line: str) -> tuple[Message, str]:
    """The message in a line of the archive, and its session. Raises BadInput."""
    try:
        fields = json.loads(line)
        return _stored({k: v for k, v in fields.items() if k != "session"}), fields["session"]
    except (ValueError, TypeError, KeyError, AttributeError) as e:
        raise BadInput(f"not a line of the archive: {e}") from e


def _stored(fields: dict[str, Any]) -> Message:
    return Message(**{**fields, "calls": tuple(Call(**call) for call in fields.get("calls", ()))})


# --- A conversation cut into pieces that a model's window holds.
#
# A tool call stays with its result. Material of a message stays material in each part of the message.


SMALLEST = 1_000  # tokens; if a model fails on so few, smaller pieces do not help


def split_messages(messages: Sequence[Message], budget_tokens: int) -> list[tuple[Message, ...]]:
    """
    Divide *messages*, in order, into pieces of at most *budget_tokens*.

    A call stays with its result. A message above the budget is split into parts that keep the message's id and say
    which part they are. If one message has too many calls for one piece, several pieces share the calls, each with
    its result.
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
    Divide *messages*, in order, into two or three pieces of about half their tokens. Returns one piece if nothing can
    be cut.

    A message, or a call with its result, is not cut if it fits into SMALLEST tokens.
    """
    units = [sum(m.tokens for m in unit) for unit in _uncut_units(messages)]
    found = split_messages(messages, max(-(-sum(units) // 2), min(max(units, default=0), SMALLEST)))
    # Each part of a result comes with the whole call. If a piece is no smaller than before, nothing is cut.
    return found if all(sum(m.tokens for m in part) < sum(units) for part in found) else [tuple(messages)]


def _answers(messages: Sequence[Message]) -> dict[int, tuple[int, Call]]:
    """
    Find the call that each tool result in *messages* answers.

    Returns a dict: the place of the result → (the place of the call, the call). If a model used an id twice, the last
    call before the result counts.
    """
    found: dict[int, tuple[int, Call]] = {}
    made: dict[str, tuple[int, Call]] = {}
    for i, m in enumerate(messages):
        if m.call_id in made:
            found[i] = made[m.call_id]
        made |= {call.id: (i, call) for call in m.calls}
    return found


def _uncut_units(messages: Sequence[Message]) -> Iterator[tuple[Message, ...]]:
    """Divide *messages* into units that must not be cut: a call, its results, and all messages in between."""
    last = {at: i for i, (at, _) in _answers(messages).items()}
    start, until = 0, 0
    for i in range(len(messages)):
        until = max(until, last.get(i, i))
        if i == until:
            yield tuple(messages[start : i + 1])
            start = i + 1


def _shrink(unit: tuple[Message, ...], budget: int) -> Iterator[tuple[Message, ...]]:
    """Yield *unit*, or parts of it if it does not fit into *budget*."""
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
    """*message* in parts that each fit into *budget* (tokens)."""
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
        # Each part of a tool's result is material.
        parts.append(replace(message, text=head + text, spans=spans if message.role == "user" else None))
        at += len(text)
    return parts
