"""
Reads a conversation and replies as a model would.

Handles are those of the prompt: `m1` is the first of the messages, `n1` the first of the known notes. It
reads neither clock nor file, and what it cannot word well it leaves out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, tzinfo
from typing import TYPE_CHECKING, Any

from ..dates.days import day_of_ms
from ..message.envelope import strip_memory
from ..message.turn import Message
from ..text.words import ISO_DAY, base_of, bases, denies, is_past, split_sentences, told_words
from .assertions import (
    ASIDE,
    DEPENDENT,
    Assertion,
    addressed,
    begins,
    holds,
    listed,
    pattern,
    read_sentence,
    says_enough,
    without_lead_in,
    written_sentences,
)
from .corrections import (
    Put,
    ShortCorrection,
    contrast,
    corrected_text,
    ended_as_contrast,
    kind_of,
    relocated,
    short_correction,
    without_article,
)
from .drafts import CALLED_OFF, OfflineDraft, OfflineDrafts, tells_act, with_new_words
from .wording import (
    IT_OR_THEM,
    cut_at_clause,
    in_third_person,
    is_detail,
    nearest_weekday,
    order_as_wish,
    priority_of,
    sentence,
    stands_alone,
    title_for,
    type_and_loop,
    with_absolute_dates,
    without_days,
)

if TYPE_CHECKING:
    from ..index.store import Entry

# --- Who speaks in a conversation, and how it stands at its end.
#
# Now goes into the prompt as it is, so it holds only what the user asked for and what the assistant asked back, and
# nothing that a tool returned.


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
                task = f"{who[:1].upper()}{who[1:]} asked: “{clipped_hint(asked)}”"
                state, ahead = "not answered yet", ""
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


OfflineReply = dict[str, Any]

BECAUSE = re.compile(
    r",?\s{1,9}\b(?:because|so that|due to|given that|in order to)\b\s{1,9}(?P<why>.{1,600})$", re.I
)

# no answer in itself
SHORT = re.compile(r"(?:I|it|we|you|my|no|yes|not|none|that|oh|hm+|well|sure|ok)\b|.*\?$", re.I)
FIRST_PERSON = re.compile(r"\b(?:I|I'm|I've|[Mm]y|me)\b")

THEIRS = re.compile(r"(?:his|her|their)\s", re.I)
PLAN = Assertion("episode", "due", loop="open")
QUOTED_LATER = re.compile(r"; on \d{4}-\d\d-\d\d: “.*")

TO_DO = re.compile(r"\b(?:by|before|due|needs? to|ha(?:s|ve) to|must|reminded)\b")
IT = re.compile(r"(?:it|that|this)(?:'s|'d)?\s", re.I)
VAGUE = re.compile(r"\w+(?:ing|ed|able|ful|ous)|able", re.I)  # no title, where feelings are told
# in a correction, beside the day
SAYING_SO = frozenset(("sorry", "mean", "meant", "say", "said", "pm", "am", "clock"))

# Characters of a message that a person surely typed: more may be somebody else's text, and gives no traits. Notes that one
# message gives at the most.
TYPED_CHARS, MOST_OF_A_MESSAGE = 1_500, 20
GROUNDED = 0.6  # of a small model's words that must stand in the message


def observe_offline(
    messages: Sequence[Message],
    known: Sequence[Entry],
    zone: tzinfo,
    before: Sequence[Message] = (),
    recent: Collection[str] = (),
) -> OfflineReply:
    """
    What a model would reply, shown *messages* and the *known* notes. *before*: what was said right before them; *recent*: the
    paths of the notes of what its last person said.
    """
    notes = {f"n{n}": e for n, e in enumerate(known, 1)}
    observer = OfflineObserver(messages, notes, zone)
    observer.recent = frozenset(handle for handle, e in notes.items() if e.path in recent)
    if before:
        observer.hear(before[-1])
    for n, message in enumerate(messages, 1):
        observer.read_message(message, f"m{n}")
    stands = {} if observer.people else now_hints(messages)  # people among themselves have no task
    return {"edits": observer.drafts.edits(), "now": stands}


def derive_edit(
    fact: Mapping[str, Any], handle: str, message: Message, *, notes: Mapping[str, Entry], zone: tzinfo
) -> OfflineReply:
    """
    The edit for a fact (`type`, `text`) that a small model found in *message*; {} if there is nothing to do:
    it is known, or the message does not say it.
    """
    text, who = " ".join(str(fact.get("text") or "").split()), speaker(message)
    words = told_words(text) - told_words(who)
    if not words or len(words & told_words(" ".join(written_sentences(message.spoken)))) < GROUNDED * len(
        words
    ):
        return {}
    observer = OfflineObserver([message], notes, zone)
    found = read_sentence(first_person(text, who), people=True)
    kind = str(fact.get("type") or "fact")
    found = replace(found, type=kind) if found and found.type else Assertion(kind, "stated", text)
    observer.draft_note(found, text, observer.scene(message, handle), as_is=True)
    return next(iter(observer.drafts.edits()), {})


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


def moved_to(said: str) -> str:
    """The day in "it was moved to 10 December"; "" where it says anything else."""
    text = BECAUSE.sub("", without_lead_in(said))
    change = holds("change", text) if IT.match(text) and not denies(text) else None
    return text[change.end() :].strip(" .!") if change else ""


def day_alone(text: str, said: date) -> str | None:
    """The day that *text* names, if it says nothing else."""
    written, event = with_absolute_dates(text, said, ahead=True)
    return None if any(word.isalpha() for word in told_words(written) - SAYING_SO) else event


def is_certain(said: str) -> bool:
    """Whether *said* tells that something is so, and does not ask, guess or suppose it."""
    text = without_lead_in(said)
    leaves_open = DEPENDENT.match(text) or begins("maybe", text) or begins("question", text)
    return not (leaves_open or said.endswith("?"))


@dataclass(frozen=True, slots=True)
class Scene:
    """Around a sentence: who says it to whom, when, and in which message; *long*: one that may be pasted or dictated."""

    handle: str
    who: str
    whom: str  # "" if that cannot be told
    day: date
    long: bool = False


class OfflineObserver:
    """A conversation, read message by message, and the drafts it comes to."""

    def __init__(self, messages: Sequence[Message], known: Mapping[str, Entry], zone: tzinfo) -> None:
        self.zone = zone
        self.speakers = list(dict.fromkeys(speaker(m) for m in messages if m.sender))
        self.people = len(self.speakers) > 1 or any(m.sender and m.role == "assistant" for m in messages)
        self.drafts = OfflineDrafts(known, self.speakers)
        self.asked = ""  # the question that the message before ended with
        self.acted = False  # a tool was used since a person spoke
        self.before: dict[str, str] = {}  # speaker → the message of theirs before
        self.recent: frozenset[str] = frozenset()  # handles of known notes, of what was said right before

    def scene(self, m: Message, handle: str) -> Scene:
        who = speaker(m)
        others = [s for s in self.speakers if s != who]
        whom = (others[0] if len(others) == 1 else "") if self.people else "the assistant"
        return Scene(handle, who, whom, day_of_ms(m.timestamp, self.zone), len(m.spoken) > TYPED_CHARS)

    def read_message(self, m: Message, handle: str) -> None:
        self.acted = self.acted or m.role == "tool" or bool(m.calls)
        text = strip_memory(m.spoken)
        if m.role == "tool" or not text:
            return
        if m.role == "assistant" and not m.sender:
            if self.acted:
                self.read_outcome(text, replace(self.scene(m, handle), who="the user"))
        else:
            self.read_statements(text, self.scene(m, handle))
            self.acted = False
        self.hear(m)

    def hear(self, m: Message) -> None:
        """Know what the next message may answer."""
        text = strip_memory(m.spoken).rstrip()
        self.asked = text[-400:] if m.role != "tool" and text.endswith("?") else ""

    # --- what people say

    def read_statements(self, text: str, scene: Scene) -> None:
        """The statements of one message become drafts; asides join the one before them."""
        here: int | None = None  # where the draft is that an aside belongs to
        thing = ""  # what "it" is
        loose: list[str] = []
        unnoted: list[str] = []  # sentences of it that became no note
        whose = ""  # "his" or "her", as the sentence before names them
        names = [s for s in self.speakers if s != scene.who]
        before = len(self.drafts.all)
        for n, said in enumerate(written_sentences(text)):
            if len(self.drafts.all) - before >= MOST_OF_A_MESSAGE:
                break
            said = ended_as_contrast(addressed(said, names))
            if n == 0:
                said = self.completed_answer(said) or said
            if begins("undo", without_lead_in(said)):
                self.drafts.take_back(scene.who)
                here = None
                continue
            if (
                self.corrects_day(said, scene)
                or self.corrects_value(said, scene, answers=bool(n == 0 and self.asked), unnoted=unnoted)
                or self.turns_plan(said, scene)
            ):
                continue
            said = self.with_it_named(said, thing, scene)
            text = without_lead_in(said)
            theirs = None if self.people else THEIRS.match(text)
            if not theirs:
                whose = m[0] if (m := begins("someone", text)) else ""
            said = f"{whose}'s {text[theirs.end() :]}" if theirs and whose else said
            found = read_sentence(said, self.people)
            found = ASIDE if found and theirs and not whose else found
            if found and stands_alone(found, said) and not (here is not None and is_detail(found, said)):
                where = self.draft_note(found, said, scene)
                thing = found.slot if found.cue == "own" else thing
                if where is not None or not self.people:
                    here = here if where is None else where
                    continue
            # no note of its own, but it may help another
            unnoted.append(said)
            reason = here is not None and self.drafts.all[here].type == "decision" and BECAUSE.search(said)
            if here is not None and (found or reason):
                self.add_aside(here, said, scene)
            elif found:
                loose.append(said)
        if loose:
            self.place_asides(here, loose, scene)
        self.before[scene.who] = scene.handle

    def add_aside(self, here: int, said: str, scene: Scene) -> None:
        self.drafts.add_aside(here, self.worded(Assertion("", "aside"), said, scene)[0], scene.handle)

    def place_asides(self, here: int | None, asides: Sequence[str], scene: Scene) -> None:
        """Asides that found no note before them: they go to one after them; to a plan; or make a small note."""
        if not self.people:
            if here is not None:
                return
            here = self.drafts.open_plan_of(scene.who)
            asides = [a for a in asides if FIRST_PERSON.search(a) and re.search(r"\d", a)]
        elif here is None:
            best = max(asides, key=lambda a: (bool(FIRST_PERSON.search(a)), len(told_words(a))))
            if FIRST_PERSON.search(best) and says_enough(" ".join(asides), 6):
                here = self.draft_note(Assertion("fact", "aside", without_lead_in(best)), best, scene)
        if here is not None:
            for aside in asides:
                self.add_aside(here, aside, scene)

    def completed_answer(self, said: str) -> str:
        """The statement that a short answer makes of the question before it; "" if it makes none."""
        last = split_sentences(self.asked)[-1] if self.asked else ""
        if len(said.split()) > 8 or begins("reaction", said) or begins("undo", said) or SHORT.match(said):
            return ""
        if m := re.search(r"(?:what|which|who|when)(?:'s| is) your ((?:\w+ ){0,3}\w+)\?$", last, re.I):
            return f"My {m[1]} is {said}"
        if re.search(r"where (?:do you live|are you based)\?$", last, re.I):
            return f"I live in {re.sub('^in ', '', said, flags=re.I)}"
        if re.search(r"what should I call you\?$", last, re.I):
            return f"My name is {said}"
        return ""

    def with_it_named(self, said: str, thing: str, scene: Scene) -> str:
        """*said* with "it" or "them" replaced by what an earlier statement names."""
        m = IT_OR_THEM.search(said)
        if not m:
            return said
        verb = base_of(m["verb"])
        if verb in listed("light"):  # "get it", "make it" say anything
            return said
        for _, d in self.drafts.drafts_of(scene.who):
            if d.topic.lower().startswith(f"{verb} "):
                thing = cut_at_clause(d.topic[len(verb) + 1 :]).rstrip(".!")
                break
        known = says_enough(thing, 1) and not re.match(r"(?:about|to|for|with|on|this|that|it)\b", thing)
        return f"{said[: m.start('it')]}{thing}{said[m.end('it') :]}" if known else said

    def draft_note(self, found: Assertion, said: str, scene: Scene, *, as_is: bool = False) -> int | None:
        """Draft what *said* states; *as_is*: in its words. Where the draft is; None if it is known, or cannot be worded."""
        if as_is:
            description, event = with_absolute_dates(sentence(said), scene.day, ahead=found.loop == "open")
        else:
            description, event = self.worded(found, said, scene)
        why = BECAUSE.search(description) if found.type == "decision" else None
        if why:
            description = sentence(description[: why.start()])
        kind, loop = type_and_loop(found, event, scene.day, self.people)
        if scene.long and kind not in ("fact", "episode"):
            kind = "fact"
        owner = scene.who if self.people else ""
        undated = replace(found, topic=without_days(found.topic, scene.day))
        name = title_for(undated, owner) or title_for(found, owner)
        if (
            not name
            or not says_enough(description, 2)
            or (self.people and not event and VAGUE.fullmatch(name))
        ):
            return None
        draft = OfflineDraft(
            kind,
            name,
            description,
            who=scene.who,
            day=scene.day,
            slot=found.slot,
            topic=found.topic,
            cue=found.cue,
            asides=(sentence(f"Because {why['why']}"),) if why else (),
            priority=priority_of(kind, found.cue, bool(loop and (event or found.cue == "remind")), said),
            event=event,
            loop=loop,
            sources=(scene.handle,),
            shared=scene.long,
        )
        return self.drafts.add_statement(draft, said)

    def worded(self, found: Assertion, said: str, scene: Scene) -> tuple[str, str | None]:
        """*said* as a note says it, and its day."""
        text, lead = without_lead_in(said), begins("adverbial", without_lead_in(said))
        if lead and holds("addressed", lead[0]) and not begins("order", text):
            text = text[lead.end() :]  # "since you're going to write for me: …"
        text, event = with_absolute_dates(text, scene.day, ahead=found.loop == "open")
        text = order_as_wish(found.cue, text)
        if found.type in ("decision", "identity") and not self.people:
            # with an assistant, "we" decide what the user decides
            text = re.sub(r"^we\b", "I", text, flags=re.I)
        return sentence(in_third_person(text, scene.who, scene.whom)), event

    # --- what the assistant did

    def read_outcome(self, text: str, scene: Scene) -> None:
        """ "Booked, a table for two on Friday": what it did in the world for the person who asked."""
        for said in written_sentences(text):
            m = begins("outcome", said)
            if m and not said.endswith("?") and not holds("workshop", said) and says_enough(m["what"], 2):
                found = Assertion("episode", "outcome", m["what"])
                self.draft_note(found, f"The assistant {m['verb'].lower()} {m['what']}", scene, as_is=True)

    # --- what changes what was said before

    def corrects_day(self, said: str, scene: Scene) -> bool:
        """ "No, I meant Thursday": set the day of what the same person said last right. True if that is what it was."""
        m = begins("correction", said)
        said = (m and (m["what"] or m["what2"])) or moved_to(said)
        # A day, and nothing but a day; after a comma there may be more: "no, Monday, Friday is a holiday".
        commas = [*(c.start() for c in re.finditer(",", said)), len(said)]
        heads = (said[:end] for end in reversed(commas))
        rest, event = next(((head, day) for head in heads if (day := day_alone(head, scene.day))), ("", None))
        if event is None:
            return False
        dated = [(i, d) for i, d in self.drafts.newest(scene.who) if d.event and d.day == scene.day]
        here = [i for i, d in dated if (d.who == scene.who if d.sources else d.node in self.recent)]
        known = [i for i, d in dated if d.loop == "open"]
        old = here[0] if here else known[0] if len(known) == 1 else None
        if old is None:
            return False
        draft = self.drafts.all[old]
        assert draft.event
        # a bare weekday: that of the week it was about
        if re.fullmatch(r"(?:on )?\w{1,20}day\W*(?:sorry\W*)?", rest, re.I):
            event = str(nearest_weekday(date.fromisoformat(event[:10]), date.fromisoformat(draft.event[:10])))
        was, now = draft.event.split(".."), event.split("..")
        if len(was) != len(now):  # nothing tells which end of a span it is
            return False
        days = dict(zip(was, now, strict=True))
        text = re.sub("|".join(map(re.escape, was)), lambda m: days[m[0]], draft.description)
        sources = (*draft.sources, scene.handle)
        corrected = replace(draft, who=scene.who, event=event, description=text, sources=sources)
        self.drafts.replace_at(old, corrected)
        return True

    def corrects_value(self, said: str, scene: Scene, *, answers: bool, unnoted: Sequence[str]) -> bool:
        """
        "She lives in Tromsø, not Trondheim": put right the newest note that says the wrong value. "No, it is 555-4321": put
        right what the same person said in this message or the one before. Where nothing tells what is wrong, and where it
        *answers* a question, the words are kept beside the note. A sentence of *unnoted* before it may be what it puts right.
        True if something was done.
        """
        if " moved to " in said and is_certain(said):
            text, _ = self.worded(ASIDE, said, scene)
            for i, d in self.drafts.newest(scene.who):
                if at_new := relocated(text, d.description, scene.who):
                    self.put_right(i, at_new, scene)
                    return True
        if self.moves_time(said, scene):
            return True
        made = contrast(said)
        if made is not None:
            dated, _ = with_absolute_dates(said, scene.day, ahead=True)
            for i, d in self.drafts.newest(scene.who):
                alone = not answers and d.day == scene.day and "instead of" not in said
                for each in (made, contrast(dated)):
                    puts = each and each.applied(d.description, d.title, scene.who, alone=alone)
                    if puts:
                        self.put_right(i, puts, scene)
                        return True
            if not made.framed or not (kind_of(made.clause) or begins("pointing", made.clause)):
                return False
            return self.keep_beside(said, scene)
        short = short_correction(said)
        if short is None or any(short.applied(sentence) for sentence in unnoted):
            return False
        for i, d in self.drafts.newest(scene.who) if short.wrong else self.said_last(scene):
            if answers or (short.bare and scene.handle not in d.sources):
                continue
            if puts := short.applied(d.description):
                self.put_right(i, puts, scene)
                return True
        return (short.kind != "word" or short.meant) and self.keep_beside(said, scene)

    def moves_time(self, said: str, scene: Scene) -> bool:
        """ "The dentist is at 11:45", "My lesson is on Thursdays now": another time of what a note tells. True if one does."""
        at, weekly = begins("at_time", without_lead_in(said)), holds("weekly", said)
        phrase = weekly[0] if weekly and (holds("drift", said) or holds("change", said)) else ""
        if not (at or phrase) or not is_certain(said):
            return False
        rest = at["what"] if at else said.replace(phrase, "")
        told, numbers = told_words(rest) - told_words("instead"), set(re.findall(r"\d+", rest))
        for i, d in self.drafts.newest(scene.who):
            puts: list[Put] | None = None
            if at and d.loop == "open" and (at["verb"] or "is") in {"is", *d.description.split()}:
                puts = ShortCorrection(at["time"], "number", after="at").applied(d.description)
            elif not at and len(was := [*pattern("weekly").finditer(d.description)]) == 1:
                puts = [(slice(*was[0].span()), phrase)]
            if told and told <= d.words and numbers <= set(re.findall(r"\d+", d.description)) and puts:
                self.put_right(i, puts, scene)
                return True
        return False

    def said_last(self, scene: Scene) -> list[tuple[int, OfflineDraft]]:
        """The notes of what the same person said in this message or the one before, the latest first."""
        recent = (scene.handle, self.before.get(scene.who))
        drafts = [(i, d) for i, d in self.drafts.drafts_of(scene.who) if d.sources[-1] in recent]
        if drafts or scene.who in self.before:
            return drafts
        return [(i, d) for i, d in self.drafts.newest(scene.who) if d.node in self.recent and not d.sources]

    def put_right(self, i: int, puts: Sequence[Put], scene: Scene) -> None:
        """Replace what is wrong in the draft at *i*, and in its title and its days."""
        d = self.drafts.all[i]
        title, event, wrong = d.title, d.event, []
        for place, right in puts:
            was = d.description[place]
            wrong.append(f"“{was}”")
            named = re.escape(without_article(was))
            title = without_article(right).join(re.split(rf"(?<!\w){named}(?!\w)", title, flags=re.I))
            day = ISO_DAY.search(right)
            event = event and event.replace(was, day[0]) if day else event
        # the History of a note that exists keeps what it said
        asides = d.asides if d.node else (*d.asides, f"Corrected on {scene.day}: not {' or '.join(wrong)}.")
        text, title = corrected_text(d.description, puts), title[:1].upper() + title[1:]
        new = replace(
            d, title=title, description=text, asides=asides, event=event, who=scene.who, day=scene.day
        )
        self.drafts.replace_at(i, replace(new, sources=(*d.sources, scene.handle)))

    def keep_beside(self, said: str, scene: Scene) -> bool:
        """Keep *said* beside the note made last, as nothing tells what it puts right. True if there is such a note."""
        i, d = next(iter(self.said_last(scene)), (0, None))
        if d is None or d.node:  # the text of a note that exists is not known here
            return False
        line = f"{scene.who[0].upper()}{scene.who[1:]} then said: “{said.strip()}”"
        self.drafts.replace_at(i, replace(d, asides=(*d.asides, line), sources=(*d.sources, scene.handle)))
        return True

    def turns_plan(self, said: str, scene: Scene) -> bool:
        """
        "Hamburg was great!", "I handed in the report", "The barbecue is off", "The workshop takes place after all": a plan came
        true, was called off, or is on again. True if there is one of which that can be said.
        """
        told = without_lead_in(said)
        again, went, did = (begins(kind, told) for kind in ("on_again", "went", "did"))
        if did and not (
            is_past(did["verb"] or did["be"]) and tells_act(did["act"] or "") and not denies(told)
        ):
            did = None
        if not (m := again or went or did) or not is_certain(said):
            return False
        off = went is m and m["off"]
        words = told_words(m[0] if m is did else m.groupdict().get("where") or m["what"])
        for i, d in reversed(list(enumerate(self.drafts.all))):
            if not words or not words <= d.words or self.drafts.is_about_another(d, scene.who):
                continue
            if (off and not d.takes_place(words)) or (m is did and scene.handle in d.sources):
                continue
            ahead = d.event and d.event[:10] > str(scene.day)
            to_come = ahead and not (
                off or CALLED_OFF.search(said) or (m is did and TO_DO.search(d.description))
            )
            if not d.can_be_on_again(scene.day) if again else d.loop != "open" or to_come:
                continue
            if m is did:
                text, event = self.worded(ASIDE, said, scene)
                done = replace(d, who=scene.who, day=scene.day, description=text, event=event, loop="done")
                done = replace(done, asides=(), cue="went", sources=(scene.handle,))
                self.drafts.replace_at(i, with_new_words(d, done))
                return True
            was = QUOTED_LATER.sub("", d.description).rstrip(".")
            text, event = f"{was}; on {scene.day}: “{sentence(told)}”", d.event
            if again and (says := self.worded(PLAN, said, scene)) and (says[1] or denies(was)):
                text, event = says[0], says[1] or event
            new = replace(d, who=scene.who, day=scene.day, description=text, event=event, cue="went")
            loop, sources = "open" if again else "done", (*d.sources, scene.handle)
            self.drafts.replace_at(i, replace(new, loop=loop, sources=sources))
            return True
        return False
