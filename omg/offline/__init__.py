"""
The Observer without a model: rules that keep, near-verbatim, what people assert, decide, prefer and plan.

It answers in the form a model does (prompts/observe.md), so that its reply takes the same way: parsed, gated,
written. Handles are those of the prompt: `m1` is the first of the messages, `n1` the first of the known notes.
It reads neither clock nor file, and what it cannot word well it leaves out.

    observe   messages and known notes → a whole reply
    derive    one fact that a small model found → an edit
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta, tzinfo
from typing import TYPE_CHECKING, Any

from ..dates import day_of, span
from ..turn import Message, strip
from .conversation import now, speaker
from .cues import base_of, bases, begins, holds, listed, says
from .drafts import CALLED_OFF, Draft, Drafts
from .likeness import gist
from .phrases import DAY, Reading, addressed, bare, read, sentences
from .quoted import own
from .titles import cut, title
from .wording import absolute, order, sentence, third

if TYPE_CHECKING:
    from ..index import Entry

Reply = dict[str, Any]

BECAUSE = re.compile(
    r",?\s{1,9}\b(?:because|so that|due to|given that|in order to)\b\s{1,9}(?P<why>.{1,600})$", re.I
)
CALLED = re.compile(r"(?i:it's|it is|it'll be|we) (?:called|named|call it) (?P<name>[A-Z\"][\w\" '-]*)")
PRONOUN = re.compile(r"\b(?P<verb>[a-z]+) (?P<it>it|them)\b(?!'| (?:is|was|will)\b)", re.I)
FIRST_PART = re.compile(r"[,:;]| because ")
SHORT = re.compile(
    r"(?:I|it|we|you|my|no|yes|not|none|that|oh|hm+|well|sure|ok)\b|.*\?$", re.I
)  # no answer in itself
OWN = re.compile(r"\b(?:I|I'm|I've|[Mm]y|me)\b")
UNCLEAR = ("plan", "must", "wish", "past", "remind", "choice")  # with an object that is only "it", no note
TAKEN_UP = re.compile(
    r"(?:use|go with|go for|switch|stick|drop|choose|pick|move|call it \w|name it \w|postpone)\b"
)
VAGUE = re.compile(r"\w+(?:ing|ed|able|ful|ous)|able", re.I)  # no title, where feelings are told
SAYING_SO = frozenset(
    ("sorry", "mean", "meant", "say", "said", "pm", "am", "clock")
)  # in a correction, beside the day
LONGEST_TITLE = 40  # characters, of one that is the statement itself
GROUNDED = 0.6  # of a small model's words that must stand in the message


def observe(messages: Sequence[Message], known: Sequence[Entry], zone: tzinfo) -> Reply:
    """What a model would reply, shown *messages* and the *known* notes."""
    hearing = Hearing(messages, {f"n{n}": e for n, e in enumerate(known, 1)}, zone)
    for n, message in enumerate(messages, 1):
        hearing.hear(message, f"m{n}")
    stands = {} if hearing.people else now(messages)  # people among themselves have no task
    return {"edits": hearing.drafts.edits(), "now": stands}


def derive(
    fact: Mapping[str, Any], handle: str, message: Message, notes: Mapping[str, Entry], zone: tzinfo
) -> Reply:
    """
    The edit for a fact (`type`, `text`) that a small model found in *message*; {} if there is nothing to do:
    it is known, or the message does not say it.
    """
    text, who = " ".join(str(fact.get("text") or "").split()), speaker(message)
    words = gist(text) - gist(who)
    heard = own(message.text) if message.role == "user" else message.text
    if not words or len(words & gist(heard)) < GROUNDED * len(words):
        return {}
    hearing = Hearing([message], notes, zone)
    found = read(first_person(text, who), people=True)
    kind = str(fact.get("type") or "fact")
    found = replace(found, type=kind) if found and found.type else Reading(kind, "stated", text)
    hearing.note(found, text, hearing.scene(message, handle), told=True)
    return next(iter(hearing.drafts.edits()), {})


def first_person(text: str, who: str) -> str:
    """ "Maya prefers tea" → "I prefer tea": as the cues know it."""
    m = re.match(rf"(?:{re.escape(who)}|the user)(?P<own>'s)?\s+(?P<verb>\w+)", text, re.I)
    if not m:
        return text
    if m["own"]:
        return f"My {m['verb']}{text[m.end() :]}"
    verb = m["verb"].lower()
    plain = {"is": "am", "has": "have"}.get(verb) or next(
        (b for b in (verb[:-1], verb[:-2]) if b in bases()), verb
    )
    return f"I {plain}{text[m.end() :]}"


@dataclass(frozen=True, slots=True)
class Scene:
    """Around a sentence: who says it to whom, when, and in which message."""

    handle: str
    who: str
    whom: str  # "" if that cannot be told
    day: date


class Hearing:
    """A conversation being heard, message by message, and the drafts it comes to."""

    def __init__(self, messages: Sequence[Message], known: Mapping[str, Entry], zone: tzinfo) -> None:
        self.zone = zone
        self.speakers = list(dict.fromkeys(speaker(m) for m in messages if m.sender))
        self.people = len(self.speakers) > 1 or any(m.sender and m.role == "assistant" for m in messages)
        self.drafts = Drafts(known, self.speakers)
        self.asked = ""  # the question that the message before ended with
        self.acted = False  # a tool was used since a person spoke

    def scene(self, m: Message, handle: str) -> Scene:
        who = speaker(m)
        others = [s for s in self.speakers if s != who]
        whom = (others[0] if len(others) == 1 else "") if self.people else "the assistant"
        return Scene(handle, who, whom, day_of(m.timestamp, self.zone))

    def hear(self, m: Message, handle: str) -> None:
        self.acted = self.acted or m.role == "tool" or bool(m.calls)
        text = strip(m.text)
        if m.role == "tool" or not text:
            return
        if m.role == "assistant" and not m.sender:
            if self.acted:
                self.outcome(text, self.scene(m, handle))
        else:
            self.listen(text, self.scene(m, handle))
            self.acted = False
        self.asked = text[-400:].rstrip() if text.rstrip().endswith("?") else ""

    # --- what people say

    def listen(self, text: str, scene: Scene) -> None:
        """The statements of one message become drafts; asides join the one before them."""
        here: int | None = None  # where the draft is that an aside belongs to
        thing = ""  # what "it" is
        loose: list[str] = []
        names = [s for s in self.speakers if s != scene.who]
        for n, said in enumerate(sentences(text)):
            said = addressed(said, names)
            if n == 0:
                said = self.answer(said) or said
            if begins("undo", bare(said)):
                self.drafts.drop(scene.who)
                here = None
                continue
            if self.corrected(said, scene) or self.went(said, scene) or self.called(here, said, scene):
                continue
            said = self.clear(said, thing, scene)
            found = read(said, self.people)
            if found and stands_alone(found, said) and not (here is not None and is_detail(found, said)):
                where = self.note(found, said, scene)
                thing = found.slot if found.cue == "own" else thing
                if where is not None or not self.people:
                    here = here if where is None else where
                    continue
            # no note of its own, but it may help another
            reason = here is not None and self.drafts.all[here].type == "decision" and BECAUSE.search(said)
            if here is not None and (found or reason):
                self.beside(here, said, scene)
            elif found:
                loose.append(said)
        if loose:
            self.remark(here, loose, scene)

    def beside(self, here: int, said: str, scene: Scene) -> None:
        self.drafts.aside(here, self.worded(Reading("", "aside"), said, scene)[0], scene.handle)

    def remark(self, here: int | None, asides: Sequence[str], scene: Scene) -> None:
        """Asides that found no note before them: they go to one after them; to a plan; or make a small note."""
        if not self.people:
            if here is not None:
                return
            here = self.drafts.open(scene.who)
            asides = [a for a in asides if OWN.search(a) and re.search(r"\d", a)]
        elif here is None:
            best = max(asides, key=lambda a: (bool(OWN.search(a)), len(gist(a))))
            if OWN.search(best) and says(" ".join(asides), 6):
                here = self.note(Reading("fact", "aside", bare(best)), best, scene)
        if here is not None:
            for aside in asides:
                self.beside(here, aside, scene)

    def answer(self, said: str) -> str:
        """The statement that a short answer makes of the question before it; "" if it makes none."""
        if not self.asked:
            return ""
        if begins("agreed", said) and (m := holds("proposed", self.asked)):
            rest = self.asked[m.end() :].rstrip("? ")
            named = TAKEN_UP.match(rest) and not re.search(r"\b(?:that|this|it)$", rest)
            return f"I agreed to {rest}" if named else ""
        last = re.split(r"(?<=[.!?])\s+", self.asked)[-1]
        if len(said.split()) > 8 or begins("reaction", said) or begins("undo", said) or SHORT.match(said):
            return ""
        if begins("working", last):
            return f"I'm working on {re.sub('^(?:mostly|mainly|currently|on) ', '', said, flags=re.I)}"
        if m := re.search(r"(?:what|which|who|when)(?:'s| is) your ((?:\w+ ){0,3}\w+)\?$", last, re.I):
            return f"My {m[1]} is {said}"
        if re.search(r"where (?:do you live|are you based)\?$", last, re.I):
            return f"I live in {re.sub('^in ', '', said, flags=re.I)}"
        if re.search(r"what should I call you\?$", last, re.I):
            return f"My name is {said}"
        return ""

    def clear(self, said: str, thing: str, scene: Scene) -> str:
        """*said* with "it" or "them" put in words, where a statement before tells what that is."""
        m = PRONOUN.search(said)
        if not m:
            return said
        verb = base_of(m["verb"])
        if verb in listed("light"):  # "get it", "make it" say anything
            return said
        for _, d in self.drafts.by(scene.who):
            if d.topic.lower().startswith(f"{verb} "):
                thing = cut(d.topic[len(verb) + 1 :]).rstrip(".!")
                break
        known = says(thing, 1) and not re.match(r"(?:about|to|for|with|on|this|that|it)\b", thing)
        return f"{said[: m.start('it')]}{thing}{said[m.end('it') :]}" if known else said

    def note(self, found: Reading, said: str, scene: Scene, *, told: bool = False) -> int | None:
        """Draft what *said* states. Where the draft is; None if it is known, or cannot be worded. *told*: it is already."""
        if told:
            description, event = absolute(sentence(said), scene.day, ahead=found.loop == "open")
        else:
            description, event = self.worded(found, said, scene)
        why = BECAUSE.search(description) if found.type == "decision" else None
        if why:
            description = sentence(description[: why.start()])
        kind, loop = planned(found, event, scene.day, self.people)
        name = titled(found, scene.who if self.people else "")
        if not name or not says(description, 2) or (self.people and not event and VAGUE.fullmatch(name)):
            return None
        draft = Draft(
            kind,
            name,
            description,
            scene.who,
            scene.day,
            slot=found.slot,
            topic=found.topic,
            cue=found.cue,
            asides=(sentence(f"Because {why['why']}"),) if why else (),
            priority=priority(kind, found.cue, bool(loop and (event or found.cue == "remind")), said),
            event=event,
            loop=loop,
            sources=(scene.handle,),
        )
        return self.drafts.place(draft, said)

    def worded(self, found: Reading, said: str, scene: Scene) -> tuple[str, str | None]:
        """*said* as a note says it, and its day."""
        if found.language != "en":
            return f"{scene.who[0].upper()}{scene.who[1:]}: “{said.strip()}”", None
        text, lead = bare(said), begins("adverbial", bare(said))
        if lead and holds("addressed", lead[0]) and not begins("order", text):
            text = text[lead.end() :]  # "since you're going to write for me: …"
        text, event = absolute(text, scene.day, ahead=found.loop == "open")
        text = order(found.cue, text)
        if found.type in ("decision", "identity") and not self.people:
            text = re.sub(
                r"^we\b", "I", text, flags=re.I
            )  # with an assistant, "we" decide what the user decides
        return sentence(third(text, scene.who, scene.whom)), event

    # --- what the assistant did

    def outcome(self, text: str, scene: Scene) -> None:
        """ "Booked, a table for two on Friday": what it did in the world for the person who asked."""
        for said in sentences(text):
            m = begins("outcome", said)
            if not m or said.endswith("?") or holds("workshop", said) or not says(m["what"], 2):
                continue
            did, event = absolute(f"{m['verb'].lower()} {m['what']}", scene.day, ahead=True)
            days, name = span(event), title(m["what"])
            loop = "open" if days and days[0] > scene.day else None
            if name:
                description = sentence(f"The assistant {did}")
                self.drafts.place(
                    Draft(
                        "episode",
                        name,
                        description,
                        "the user",
                        scene.day,
                        cue="outcome",
                        event=event,
                        loop=loop,
                        sources=(scene.handle,),
                    ),
                    said,
                )

    # --- what changes what was said before

    def corrected(self, said: str, scene: Scene) -> bool:
        """ "No, I meant Thursday": set the day of what the same person said last right. True if that is what it was."""
        m = begins("correction", said)
        rest = (m and (m["what"] or m["what2"])) or ""
        written, event = absolute(rest, scene.day, ahead=True)
        if not event or any(word.isalpha() for word in gist(written) - SAYING_SO):
            return False  # a day, and nothing but a day
        old = next((i for i, d in self.drafts.by(scene.who) if d.event and d.day == scene.day), None)
        if old is None:
            recent = [
                i
                for i, d in enumerate(self.drafts.all)
                if d.loop == "open"
                and d.event
                and d.day == scene.day
                and not self.drafts.of_another(d, scene.who)
            ]
            old = recent[0] if len(recent) == 1 else None
        if old is None:
            return False
        draft = self.drafts.all[old]
        assert draft.event
        if re.fullmatch(
            r"(?:on )?\w{1,20}day\W*(?:sorry\W*)?", rest, re.I
        ):  # a bare weekday: that of the week it was about
            event = str(nearest_weekday(date.fromisoformat(event[:10]), date.fromisoformat(draft.event[:10])))
        text = draft.description.replace(draft.event[:10], event[:10], 1)
        self.drafts.put(
            old,
            replace(
                draft, who=scene.who, event=event, description=text, sources=(*draft.sources, scene.handle)
            ),
        )
        return True

    def went(self, said: str, scene: Scene) -> bool:
        """ "Hamburg was great!": a plan that came true. True if there is one of which that can be said."""
        m = begins("went", bare(said))
        words = gist(m["what"]) if m else frozenset()
        for i, d in reversed(list(enumerate(self.drafts.all))):
            past = not d.event or d.event[:10] <= str(scene.day) or bool(CALLED_OFF.search(said))
            if (
                d.loop == "open"
                and past
                and words
                and words <= d.words
                and not self.drafts.of_another(d, scene.who)
            ):
                text = f"{d.description.rstrip('.')}; on {scene.day}: “{sentence(bare(said))}”"
                self.drafts.put(
                    i,
                    replace(
                        d,
                        who=scene.who,
                        day=scene.day,
                        loop="done",
                        description=text,
                        cue="went",
                        sources=(*d.sources, scene.handle),
                    ),
                )
                return True
        return False

    def called(self, here: int | None, said: str, scene: Scene) -> bool:
        """ "It's called Tidepool, it's about a crab": the name of the project that was spoken of."""
        m = CALLED.match(bare(said))
        if not m or here is None or self.drafts.all[here].type != "project":
            return False
        name = m["name"].strip('" ')
        draft = self.drafts.all[here]
        self.drafts.put(
            here,
            replace(
                draft, title=name, description=sentence(f"{draft.description.rstrip('.')} called {name}")
            ),
        )
        self.beside(here, said, scene)
        return True


# --- small rules


def stands_alone(found: Reading, said: str) -> bool:
    """Whether it is a note, and what it is about is named: "I'll order them" is about nothing one could look up."""
    unclear = found.cue in UNCLEAR and PRONOUN.search(FIRST_PART.split(said, maxsplit=1)[0])
    return bool(found.type) and not unclear


def is_detail(found: Reading, said: str) -> bool:
    """Whether it goes on about what was said before: "The meeting is at 11"."""
    return found.cue == "stated" and found.slot.lower().startswith("the ") and not DAY.search(said)


def planned(found: Reading, event: str | None, said: date, people: bool) -> tuple[str, str | None]:
    """Type and loop, once it is known whether the day is past or to come."""
    days = span(event)
    if days and days[1] < said:
        return found.type, None
    if days and days[0] > said and found.type in ("episode", "fact") and found.cue != "stated":
        return "episode", "open"
    if found.cue in ("due", "date") and not days:
        return ("fact" if found.cue == "due" else found.type), None
    if found.cue in ("must", "plan") and not days and people:
        return "fact", None  # what people say they will do, some day
    return found.type, found.loop


def titled(found: Reading, person: str) -> str:
    """A title; among people, one that says whose home or name it is."""
    if found.language != "en":
        words = " ".join(found.topic.rstrip("。.！!").split()[:6])
        return (
            words
            if len(words) <= LONGEST_TITLE
            else words[: LONGEST_TITLE + 1].rpartition(" ")[0] or words[:LONGEST_TITLE]
        )
    if found.cue in ("name", "home", "job", "status"):
        name = "Personal status" if found.cue == "status" else found.cue.title()
    elif found.slot and found.cue != "stated":
        name = title(found.slot.removeprefix("my "))
    else:
        return title(found.topic, found.cue)
    return (
        f"{person}'s {name[:1].lower()}{name[1:]}" if person and found.type == "identity" and name else name
    )


def priority(type: str, cue: str, due: bool, said: str) -> str:
    if type in ("decision", "identity") or due or cue in ("standing", "style"):
        return "high"
    if begins("remember", said):
        return "high"
    return "low" if cue == "aside" else "medium"


def nearest_weekday(day: date, around: date) -> date:
    """The day of *day*'s weekday that is nearest to *around*."""
    return around + timedelta(days=(day.weekday() - around.weekday() + 3) % 7 - 3)
