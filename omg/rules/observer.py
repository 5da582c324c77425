"""Reads a conversation and replies as a model would: with notes that quote what people say.

Handles are those of the prompt: `m1` is the first message, `n1` the first known note. A statement that earns no note
(rules/kinds.py) stays in the archive, where search finds it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, tzinfo
from functools import cache
from typing import TYPE_CHECKING, Any

from ..dates.days import day_of_ms, event_span
from ..message.envelope import strip_memory
from ..message.statements import Statement, statements_in
from ..message.turn import Message
from ..text.words import denies, split_sentences, told_words
from .corrections import Correction, correction_in
from .kinds import (
    LONGEST_SENTENCE,
    TYPES,
    after_lead,
    cue,
    earning_span,
    holds,
    is_event,
    is_question,
    kind_of,
    own_statements,
    straight,
    without_question,
)
from .quotes import event_of, named_days, person_in, title_of, with_days

if TYPE_CHECKING:
    from ..index.store import Entry

# --- Who speaks in a conversation, and what is open at its end.
#
# The page Now is shown in prompts without a check. So it holds only requests of the user and questions of the assistant,
# and nothing that a tool returned.


NAME = re.compile(r"[^\W\d_][\w.'-]*(?: [^\W\d_][\w.'-]*){0,2}")
STRANGER = "somebody"
# Words for the speakers in a prompt. They are no names.
NO_NAMES = re.compile(r"(?:the )?(?:user|assistant|system|tool|omg|owner|agent|human)\b.*", re.I)
CLIPPED = 160  # characters of a request or question


def speaker(message: Message) -> str:
    """
    Return the name of the person who sent *message*.

    The name is taken from the sender's display name; of two words, only the first is used. Without a name, returns "the
    user" or "the assistant".
    """
    found = NAME.search(" ".join(message.sender.split()))
    name = found[0] if found else ""
    if not name or NO_NAMES.fullmatch(name):
        return "the assistant" if message.role == "assistant" else "the user"
    first, _, rest = name.partition(" ")
    return first if rest and " " not in rest and not first.endswith(".") else name


def with_strangers(messages: Sequence[Message]) -> list[Message]:
    """
    Return *messages* of a group, with the sender "somebody" in each message of an unnamed user. An unnamed user has
    no usable name and is not the owner.
    """
    return [
        replace(m, sender=STRANGER)
        if m.role == "user" and m.owner is not True and m.sender_id and speaker(m) == "the user"
        else m
        for m in messages
    ]


def now_hints(messages: Sequence[Message]) -> dict[str, str]:
    """The user's latest open request (`task`), its progress (`state`), and what the assistant waits for (`next`)."""
    task = state = ahead = ""
    for m in messages:
        text = " ".join(strip_memory(m.text).split())
        if m.role == "user" and text:
            if asked := last_request(m.text):
                who = speaker(m)
                task = f"{who[:1].upper()}{who[1:]} asked: “{clipped_hint(asked)}”"
                state, ahead = "not answered yet", ""
            elif cue("closing").match(text) or state == "answered":
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
    """The last request in *text*, in the person's own words; "" if there is none."""
    said = [s for s in statements_in(strip_memory(text)) if s.governed in ("", "asked")]
    asked = (s.text for s in reversed(said) if s.governed == "asked" or is_order(s.text))
    return next((" ".join(each.split()) for each in asked), "")


def is_order(text: str) -> bool:
    said = straight(text[:CLIPPED])
    return bool(cue("order").match(said, after_lead(said)))


def clipped_hint(text: str) -> str:
    return text if len(text) <= CLIPPED else f"{text[: CLIPPED - 1].rsplit(' ', 1)[0]}…"


# --- Notes.


OfflineReply = dict[str, Any]
# A message of up to TYPED_CHARS characters was typed by its sender; a longer message may be somebody else's text, and
# gives only facts and events. MOST_OF_A_MESSAGE: the most notes from one message.
TYPED_CHARS, MOST_OF_A_MESSAGE = 1_500, 20
# A pronoun after at most so many words may refer to the sentence before: "decided to deploy it".
NAMED_BEFORE = 2
GROUNDED = 0.6  # least share of the words of a small model's fact that the message must have
# Two notes say the same if the longer has this share of the shorter's words (SAME_DAY if both name the same
# day), and the shorter has this share of the longer's length (ALIKE).
SAME, SAME_DAY, ALIKE = 0.8, 0.5, 0.5


@dataclass(frozen=True, slots=True)
class Draft:
    """
    A note that the rules create or change in their reply.

    `node`: the handle or title of the existing note to change; None for a new note.
    """

    type: str
    title: str
    description: str
    day: date | None = None  # when it was said
    who: str = ""
    body: str = ""
    event: str | None = None
    loop: str | None = None
    standing: bool = False
    links: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()  # handles of messages; none for an unchanged known note
    op: str = "create"
    node: str | None = None
    shared: bool = False  # the message is so long that it may be somebody else's text

    @property
    def edit(self) -> OfflineReply:
        """The edit for this note, in the form of prompts/observe.md."""
        high = self.standing or self.type in ("identity", "decision") or self.loop == "open"
        return {
            "op": self.op,
            "node": self.node,
            "type": self.type,
            "title": self.title,
            "description": self.description,
            "body": self.body,
            "priority": "high" if high else "medium",
            "event": self.event,
            "loop": self.loop,
            "standing": self.standing,
            "tags": ["shared"] if self.shared else [],
            "links": list(self.links),
            "sources": list(dict.fromkeys(self.sources)),
        }


def observe_offline(
    messages: Sequence[Message],
    known: Sequence[Entry],
    zone: tzinfo,
    before: Sequence[Message] = (),
    recent: Collection[str] = (),
) -> OfflineReply:
    """
    Reply to *messages* and the *known* notes as a model would. *recent*: paths of the notes from the message right
    before *messages*.
    """
    observer = OfflineObserver(messages, known, zone, recent)
    for n, message in enumerate(messages, 1):
        observer.read_message(message, f"m{n}")
    stands = {} if observer.people else now_hints(messages)  # a talk among people has no task
    return {"edits": [d.edit for d in observer.drafts if d.sources], "now": stands}


def derive_edit(
    fact: Mapping[str, Any], handle: str, message: Message, *, notes: Mapping[str, Entry], zone: tzinfo
) -> OfflineReply:
    """
    The edit for a fact (`type`, `text`) that a small model found in *message*. The edit quotes the statement that
    says the fact. {} if no statement says the fact, or if a note already says the fact.
    """
    words = told_words(str(fact.get("text") or "")) - told_words(speaker(message))
    said = [s for s in own_statements(message.text, message.material) if s.own]
    best = max(said, key=lambda s: len(words & told_words(s.text)), default=None)
    if not words or best is None or len(words & told_words(best.text)) < GROUNDED * len(words):
        return {}
    observer = OfflineObserver([message], list(notes.values()), zone)
    observer.add(best.text, (str(fact.get("type") or "fact"), 0, 0), message, handle)
    return next((d.edit for d in observer.drafts if d.sources), {})


class OfflineObserver:
    """Reads a conversation into drafts, one message after another. The known notes are the first drafts."""

    def __init__(
        self, messages: Sequence[Message], known: Sequence[Entry], zone: tzinfo, recent: Collection[str] = ()
    ) -> None:
        speakers = {speaker(m) for m in messages if m.sender}
        self.people = len(speakers) > 1 or any(m.sender and m.role == "assistant" for m in messages)
        self.zone = zone
        self.drafts = [known_draft(e, f"n{n}") for n, e in enumerate(known, 1) if e.status == "active"]
        # handles of what was said last: first the recent known notes, then the last message read
        self.last = {f"n{n}" for n, e in enumerate(known, 1) if e.path in recent}

    def read_message(self, m: Message, handle: str) -> None:
        if m.role == "tool" or (m.role == "assistant" and not m.sender) or not strip_memory(m.spoken):
            return
        if takes_back(statements_in(m.text, m.material)):
            self.drafts = [d for d in self.drafts if not d.sources or d.sources[-1] not in self.last]
            return
        here, before = len(self.drafts), ""
        for statement in own_statements(m.text, m.material):
            if len(self.drafts) - here >= MOST_OF_A_MESSAGE:
                break
            noted = len(self.drafts)
            self.read_statement(statement, m, handle, before)
            before = statement.text if len(self.drafts) == noted else ""
        self.last = {handle}

    def read_statement(self, statement: Statement, m: Message, handle: str, before: str) -> None:
        """
        Add the note that *statement* earns. The note also quotes the sentence *before* if the statement refers back
        to it.
        """
        day = day_of_ms(m.timestamp, self.zone)
        text = " ".join(without_question(statement.text).split())
        if (made := correction_in(text, day)) and self.put_right(made, text, day, m, handle):
            return

        @cache  # mostly a statement is one part, which is then tested twice
        def tells(part: str) -> bool:
            return is_event(part, named_days(part, day), day, people=self.people)

        start, end = earning_span(text, tells)
        part = text[start:end]
        kind, at = kind_of(part)
        if kind == "wish" and self.people:  # orders to an assistant
            return
        if not kind and tells(part):
            kind, at = "event", after_lead(straight(part))
        if not kind:
            return
        # A trait, a like or a wish is quoted alone; an event is quoted with the clauses before it.
        alone = kind in ("identity", "like", "wish") and not points_back(part)
        text, start = (part, 0) if alone or is_question(text) or is_order(text) else (text[:end], start)
        if points_back(text) and len(before) + len(text) < LONGEST_SENTENCE:
            before = " ".join(without_question(before).split())
            text, start = f"{before} {text}".strip(), start + len(before) + bool(before)
        self.add(text, (kind, start, start + at), m, handle)

    def add(self, text: str, found: tuple[str, int, int], m: Message, handle: str) -> None:
        """
        Add a note that quotes *text*, unless a note already says the same.

        *found* is `(kind, start, at)`:
        - kind: a key of TYPES, or a type of note
        - start: the index in *text* where the part worth noting begins
        - at: the index in *text* of the clause that decided the kind
        """
        kind, start, at = found
        text = " ".join(text.split())
        lead = after_lead(straight(text))
        text, at = f"{text[lead : lead + 1].upper()}{text[lead + 1 :]}", max(at - lead, 0)
        start = max(start - lead, 0)
        day = day_of_ms(m.timestamp, self.zone)
        days, who = named_days(text, day), speaker(m) if self.people else ""
        event, type, long = (
            event_of(text, [d for d in days if d.at >= start], day),
            TYPES.get(kind, kind),
            len(m.spoken) > TYPED_CHARS,
        )
        ahead = (span := event_span(event)) is not None and span[1] > day
        quoted, title = with_days(text, days), title_of(text, at, days)
        person = person_in(text, at) if kind == "identity" else ""
        draft = Draft(
            "fact" if long and type != "episode" else type,
            f"{who}: {title}" if who else title,
            f"{who}: “{quoted}”" if who else quoted,
            day=day,
            who=who,
            event=event,
            loop="open" if ahead and kind in ("event", "episode", "decision") else None,
            standing=kind == "wish" and not long,
            sources=(handle,),
            shared=long,
        )
        if not title:
            return
        for i, old in enumerate(self.drafts):
            if says_same(draft, old):
                if old.sources:
                    self.drafts[i] = replace(old, sources=(*old.sources, handle))
                return
        turned = next((d for d in reversed(self.drafts) if turns_round(draft, d)), None)
        if turned and turned.sources and handle in turned.sources:
            turned = None
        if turned:
            draft = replace(draft, op="supersede", node=turned.node or turned.title)
        short = f"{who}: {person}" if who and person else person
        self.drafts.append(self.with_own_title(draft, short))

    def with_own_title(self, draft: Draft, short: str) -> Draft:
        """
        Give *draft* a title that no other note of its type has: *short* if it is free. Two notes of the same title
        and type would be taken for one.
        """
        taken = {d.title.casefold() for d in self.drafts if d.type == draft.type}
        near = [d for d in self.drafts if d.sources and set(d.sources) & set(draft.sources)]
        draft = replace(draft, links=tuple(d.node or d.title for d in near[-1:]))
        titles = (short, draft.title, f"{draft.title} ({draft.event or draft.day})")
        return replace(draft, title=next((t for t in titles if t and t.casefold() not in taken), titles[-1]))

    def put_right(self, made: Correction, text: str, day: date, m: Message, handle: str) -> bool:
        """Apply the correction *made* to the newest note that fits. Returns False if no note fits."""
        who = speaker(m) if self.people else ""
        for i in reversed(range(len(self.drafts))):
            old = self.drafts[i]
            if old.who != who and old.sources:
                continue
            if old.node and made.wrong and made.wrong not in next(iter(split_sentences(old.description)), ""):
                continue  # an update replaces only the first sentence of an existing note
            near = bool({handle, *self.last} & {old.node, *old.sources[-1:]})
            if new := made.applied(old.title, old.description, old.event, old.day or day, near=near):
                title, description, event = new
                self.drafts[i] = replace(
                    old,
                    title=title,
                    description=description,
                    event=event,
                    day=day,
                    # the History of an existing note keeps the former words
                    body="" if old.node else f"Corrected on {day}: “{text}”",
                    sources=(*old.sources, handle),
                )
                return True
        return False


def known_draft(e: Entry, handle: str) -> Draft:
    return Draft(
        e.type,
        e.title,
        e.description,
        day=e.updated,
        event=e.event,
        loop=e.loop,
        standing=e.standing,
        op="update",
        node=handle,
    )


def points_back(text: str) -> bool:
    """Whether *text* begins with a word for something in an earlier sentence, such as "it" or "she"."""
    m = holds("back", straight(text))
    return m is not None and len(told_words(text[: m.start()])) <= NAMED_BEFORE


def takes_back(said: Sequence[Statement]) -> bool:
    """
    Whether a message only takes back what the speaker said before: "I was just kidding."
    """
    return bool(said) and all(s.governed == "refused" and len(told_words(s.text)) <= 2 for s in said)


def says_same(new: Draft, old: Draft) -> bool:
    """Whether *old* says the same as *new*, about the same day."""
    if new.event and old.event and new.event != old.event:
        return False
    one, two = (told_words(without_days(d)) - told_words(d.who) for d in (new, old))
    if not one or denies(new.description) != denies(old.description) or numbers(new) - numbers(old):
        return False
    least, most = sorted((one, two), key=len)
    share = SAME_DAY if new.event and new.event == old.event else SAME
    return one <= two | told_words(old.title) or (
        len(one & two) >= share * len(least) and len(least) >= ALIKE * len(most)
    )


def without_days(draft: Draft) -> str:
    text, at, kept = draft.description, 0, ""
    for day in named_days(text, draft.day) if draft.day else ():
        kept, at = kept + text[at : day.at], day.after
    return kept + text[at:]


def numbers(draft: Draft) -> set[str]:
    return set(re.findall(r"\d+", without_days(draft)))


def on_every_answer(wish: Draft) -> bool:
    """
    Whether *wish* is about every answer, like "keep it short". A wish with a condition is not: "detailed error
    messages when I ask about debugging".
    """
    return not holds("condition", wish.description)


def turns_round(new: Draft, old: Draft) -> bool:
    """
    Whether the standing wish *new* replaces the wish *old*: both set the length of answers, or one denies the other.
    """
    if not new.standing or old.type != "preference" or new.who != old.who:
        return False
    one, two = told_words(new.description), told_words(old.description)
    if holds("length", new.description) and holds("length", old.description):
        return (old.standing or len(two) <= 2) and all(map(on_every_answer, (new, old)))
    opposed = denies(new.description) != denies(old.description)
    return old.standing and opposed and len(one & two) >= ALIKE * min(len(one), len(two)) > 0
