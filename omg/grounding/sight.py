"""
Everything in sight of one reply, and whose words it is: the person's own, the assistant's, or others'.

Others' are what tools returned and were called with, what people forwarded, quoted and pasted, and notes that a tool's
word made. One rule: what a person only passes on is not theirs, and what an assistant says makes nobody's word its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, tzinfo

from ..dates.spans import MONTHS
from ..dates.spoken import resolve_dates
from ..inbox.notes import is_by_hand
from ..index.entries import Entry
from ..message.turn import Message
from ..offline.quoted import own_words
from ..text.words import Words, told_words
from .statements import AFFIRMED, DAY_AFFIRMED, SaidWords, accepts, affirms, proposal_in, what_is_said

ADDRESS = re.compile(r"\b\w{1,20}://\S+")
QUOTED_WORDS = 25  # of others in a message, at the most, which a word of its sender can call true
DAYS_CHARS = 1_000  # of a message in which days are sought, at 25 µs a character
PERSONS = ("user", "human", None)  # origins of what a person said or wrote


@dataclass(frozen=True, slots=True)
class Ground:
    """What an edit can rest on: the messages that it cites, and what they answer."""

    said: SaidWords
    accepted: frozenset[str]  # words of proposals that were taken up
    names: frozenset[str]  # of who spoke
    assistant: frozenset[str]  # words of the assistant that nobody took up
    texts: tuple[str, ...]  # what was said and accepted, for its days
    roles: frozenset[str]
    context: Words  # what the person stated in other messages in sight
    by_hand: bool = False
    known: frozenset[str] = frozenset()  # of the note that is changed, if a person's word made it
    fetched: bool = False  # others' words stood before a proposal that was taken up, out of sight

    @property
    def own(self) -> Words:
        return Words(self.said.all | self.accepted | self.names)

    @property
    def stated(self) -> Words:
        return Words(self.said.stated | self.said.denied | self.accepted)

    @property
    def states(self) -> bool:
        return self.said.states or bool(self.accepted)


class Sight:
    """The messages and notes of one question, read once."""

    def __init__(
        self,
        messages: Sequence[Message],
        zone: tzinfo,
        notes: Iterable[Entry] = (),
        *,
        unseen: bool = False,
        before: Sequence[Message] = (),
    ) -> None:
        """
        *unseen*: there may be words of others that are not among *messages*. *before*: what was said right before them, of
        which the first may answer the last; nothing else rests on it.
        """
        self.messages, self.zone, self.before = messages, zone, before
        self.own = {m: own_words(m.text) for m in messages if m.role == "user"}
        self.said: dict[Message, SaidWords] = {}
        others = [foreign_texts(m) for m in messages]
        self.results = [Words(told_words(text)) for texts in others for text in texts]
        self.tool_notes = [
            Words(told_words(f"{n.title} {n.description}")) for n in notes if n.origin == "tool"
        ]
        passed_on = [told_words(m.text) - told_words(self.own[m]) for m in messages if m in self.own]
        self.passed_on = [Words(words) for words in passed_on if words]
        self.foreign = bool(unseen or self.results or self.passed_on)
        every = (*self.results, *self.passed_on, *self.tool_notes)
        self.others = Words(frozenset().union(*(words.all for words in every)))
        self.foreign_texts = [text for texts in others for text in texts]
        self.foreign_texts += [m.text for m in messages if m in self.own and m.text != self.own[m]]

    def said_in(self, message: Message) -> SaidWords:
        if message not in self.said:
            # Beside others' words, those of an address are no statement of whoever hands it over.
            own = self.own[message]
            self.said[message] = what_is_said(ADDRESS.sub(" ", own) if self.foreign else own)
        return self.said[message]

    def ground(self, cited: Sequence[Message], known: str) -> Ground:
        """What the messages *cited* give; *known*: the text of the note that is changed, if a person's word made it."""
        people = [m for m in cited if m.role == "user"]
        said = SaidWords()
        taken: list[str] = []
        fetched = False
        for m in people:
            said |= self.said_in(m)
            proposal = self.answered(m)
            if proposal is not None:
                fetched = fetched or (proposal not in self.messages and any(map(passes_on, self.before)))
                taken.append(proposal_in(proposal.text, strict=self.foreign or fetched))
            taken += self.quoted_as_true(m)
        accepted = frozenset().union(*map(told_words, taken))
        # All that the assistant said, and not only what is cited: whoever follows it need not say so.
        spoken = [told_words(m.text) for m in self.messages if m.role == "assistant"]
        return Ground(
            said,
            accepted,
            frozenset().union(*(told_words(m.sender) for m in people)),
            frozenset().union(*spoken) - accepted,
            (*(self.own[m] for m in people), *taken, *map(self.days_as_told, people)),
            frozenset(m.role for m in cited),
            Words(frozenset().union(*(self.said_in(m).stated for m in self.own if m not in people))),
            by_hand=bool(people) and all(map(is_by_hand, people)),
            known=told_words(known),
            fetched=fetched,
        )

    def quoted_as_true(self, message: Message) -> list[str]:
        """What others say in *message*, if the person adds that it is so."""
        own = self.own[message]
        if len(message.text.split()) > len(own.split()) + QUOTED_WORDS or not affirms(own, AFFIRMED):
            return []
        return [message.text] if told_words(message.text) - told_words(own) else []

    def days_as_told(self, message: Message) -> str:
        """What the assistant said right before *message*, if that says that the day is right."""
        place = self.messages.index(message)
        before = self.messages[place - 1] if place else None
        told = before is not None and before.role == "assistant" and affirms(self.own[message], DAY_AFFIRMED)
        return before.text if before and told else ""

    def answered(self, message: Message) -> Message | None:
        """What the assistant proposed just before *message*, if that takes it up."""
        place = self.messages.index(message)
        said = [*self.before[-1:], *self.messages[:place]]
        proposal = said[-1] if said else None
        if proposal is None or proposal.role != "assistant" or not accepts(self.own[message], proposal.text):
            return None
        return proposal

    def names_day(self, day: date) -> bool:
        """Whether others' words name *day*."""
        return any(says_day(text, day) for text in self.foreign_texts)

    def speaks_of(self, ground: Ground, day: date) -> bool:
        """Whether the person's words speak of *day*, or could be reckoned to it."""
        for m in self.messages:
            if m.role != "user" or not m.text:
                continue
            said = datetime.fromtimestamp(m.timestamp / 1000, self.zone).date()
            for text in ground.texts:
                if any(when.start <= day <= when.end for when in resolve_dates(text[:DAYS_CHARS], said)):
                    return True
        return any(says_day(text, day) for text in ground.texts)


def foreign_texts(message: Message) -> list[str]:
    """What of *message* a tool said, or was told."""
    texts = [message.text] if message.role == "tool" and message.text.strip() else []
    return texts + [call.arguments for call in message.calls if call.arguments.strip(" {}")]


def passes_on(message: Message) -> bool:
    """Whether there are words of others in *message*."""
    own = own_words(message.text) if message.role == "user" else message.text
    return bool(foreign_texts(message) or told_words(message.text) - told_words(own))


def says_day(text: str, day: date) -> bool:
    """Whether *text* names *day*, with its year or without."""
    month = f"(?:{MONTHS[day.month - 1][:3]})\\w{{0,7}}"
    number = f"0?{day.day}(?:st|nd|rd|th|\\.)?"
    plain = rf"\b{number}\s(?:of\s)?{month}\b|\b{month}\s{number}\b|\b0?{day.day}\.0?{day.month}\.(?!\d\d?\b)"
    return day.isoformat() in text or bool(re.search(plain, text, re.I))
