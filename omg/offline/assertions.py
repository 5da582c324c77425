"""
What a sentence asserts: a preference, a plan, a fact, or nothing that a memory is for.

The patterns that tell are in words/. One rule: in doubt it is small talk; a few good notes are worth more than a
transcript.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from ..text.english import base_of, bases, is_past
from .cues import LATIN_LANGUAGES, Cue, begins, holds, language, listed, says_enough


@dataclass(frozen=True, slots=True)
class Assertion:
    """What a sentence asserts. `type` "" is an aside: worth a line in the body of another note, but no note itself."""

    type: str
    cue: str  # which one matched: "prefer", "plan", …
    topic: str = ""  # the words a title can be made of
    slot: str = ""  # what can have one value only: "home", "my dentist"; another value is a change
    loop: str | None = None
    language: str = "en"


ASIDE = Assertion("", "aside")
PASTED_LINES, OWN_LINES = 40, 8


QUESTION_WORDS = re.compile(
    r"[,;:—–-]{1,9}\s{1,9}(?:(?:and|so|but)\s{1,9})?(?=(?:can|could|would|will|do|does|did|is|are|have|has|should|shall|what|how|where|who"
    r"|which|when|why|any)\b)|\s{1,9}(?:and|so|but)\s{1,9}(?=(?:can|could|would|will|do|did|should|shall) (?:you|I|we)\b)",
    re.I,
)
SPEAKING = r"(?:I|I'm|I've|I'll|I'd|we|we're|we've|we'll|my|our|let's)"
JOIN = re.compile(
    rf"(?:,\s{{0,9}}(?:and|but|so|plus)|(?P<and>\s{{1,9}}(?:and|but))|\s{{1,9}}[—–-])\s{{1,9}}(?={SPEAKING}\s)|,\s{{1,9}}(?={SPEAKING}\s)"
    r"|,\s{0,9}(?:and|but)\s{1,9}(?=(?:the|their|his|her|[A-Z]\w+)\s)"
)
SUBJECT = re.compile(  # "my wife and I" is no clause and another
    r"\b(?:I|we|it|they|he|she|there|is|are|was|were|has|have|had|will|can|keep)\b|'(?:m|s|re|ve|ll)\b", re.I
)
DEPENDENT = re.compile(
    r"(?:if|when|while|although|though|unless|since|because|before|after|once|as|whether)\b", re.I
)
TWO_PLANS = re.compile(
    r"(?P<head>.{0,400}?\b(?:I|we)(?:'ll| will|'m going to| am going to|'re going to| have to| need to)) (?P<one>.{1,400}?),? and (?P<two>[a-z]+ .+)",
    re.I,
)
DAY_WORDS = re.compile(
    r"\b(?:yesterday|tomorrow|tonight|today|(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?:last|next|this) (?:week|month|year|weekend"
    r"|morning|night|spring|summer|autumn|fall|winter)|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w* \d+|(?:end|middle|beginning) of"
    r"|\d{4}-\d\d)\b",
    re.I,
)


def clauses(sentence: str) -> Iterator[str]:
    """
    *sentence*, or its parts where it says two things: "I moved to Oslo in May and I prefer tea" is two.

    Only parts that read as different notes are taken apart; an assertion is parted from the question behind it.
    """
    if sentence.endswith("?") and (ask := QUESTION_WORDS.search(sentence)):
        head = sentence[: ask.start()]
        if len(head.split()) >= 4 and (found := read_sentence(head)) and found.type:
            yield from clauses(head)
            return
    for join in JOIN.finditer(sentence):
        head, tail = sentence[: join.start()], sentence[join.end() :]
        if min(len(head.split()), len(tail.split())) < 2 or DEPENDENT.match(head):
            continue
        if join["and"] and not SUBJECT.search(head):  # "my wife and I"
            continue
        first, second = read_sentence(head), read_sentence(tail)
        if second and second.type and are_two_notes(first, second, head, tail):
            yield head
            yield from clauses(tail[0].upper() + tail[1:])
            return
    two = TWO_PLANS.match(sentence)
    if (
        two
        and DAY_WORDS.search(two["one"])
        and DAY_WORDS.search(two["two"])
        and two["two"].split()[0].lower() in bases()
    ):
        yield f"{two['head']} {two['one']}"
        yield f"{two['head']} {two['two']}"
        return
    yield sentence


def are_two_notes(first: Assertion | None, second: Assertion, head: str, tail: str) -> bool:
    """Whether two clauses are better told in two notes: of different kinds, or with a day each."""
    if not first or not first.type:
        return second.cue != "stated"
    return (
        first.cue != second.cue
        or first.type == second.type == "identity"
        or bool(DAY_WORDS.search(head) and DAY_WORDS.search(tail))
    )


def addressed(sentence: str, names: Iterable[str]) -> str:
    """*sentence* without the name of whom it is said to: "Hey Mel, I moved" → "Hey, I moved"."""
    called = "|".join(re.escape(name[:n]) for name in names for n in range(len(name), 1, -1))
    if not called:
        return sentence
    greeting = r"\b(?i:hey|hi|hello|thanks|thank you|sure|yeah|yes|wow|yep|sorry|oh|ok)"
    sentence = re.sub(rf"(^|[,!.]|{greeting}) ?(?:{called})(?=[,!.?]|$)", r"\1", sentence)
    return re.sub(r"^[\s,!.:]+|(?<=,)[,\s]*,", "", sentence).strip()


@lru_cache(maxsize=512)  # a clause is read to see whether it stands alone, and again if it does
def read_sentence(sentence: str, people: bool = False) -> Assertion | None:
    """
    What *sentence* asserts.

    *people*: a conversation among people, where opinions and feelings are news; with an agent, they are mostly
    about its work.
    """
    name = language_of(sentence)
    if name != "en":
        return assertion_in(sentence, name) if name else None
    text = without_lead_in(sentence)
    if text.endswith(":"):  # leads to what somebody else says
        return None
    order = begins("order", text)
    wished = order or holds("standing", text) or holds("style", text)
    asks = sentence.rstrip("\"')").endswith("?") and not begins("told", sentence)
    if not order and (asks or begins("question", text)):
        return None
    if begins("undo", text) or holds("agent", text) or begins("maybe", text):
        return None
    if not wished and (begins("asked", text) or begins("command", text) or begins("reaction", text)):
        return None
    if begins("pointing", text) and not DAY_WORDS.search(text):
        return ASIDE if says_enough(text, 3 if people else 1) and not holds("addressed", text) else None
    core = None if order else begins("adverbial", text)
    core_text = text[core.end() :] if core else text
    for cue in language("en").cues:
        if people and cue.name in ("standing", "style", "remind", "calendar"):  # orders to an assistant
            continue
        for pattern in cue.patterns:
            if (m := pattern.match(core_text)) and (found := assertion_of(cue, m, text, people)):
                return found if found.type or people else None
    if (m := begins("remember", sentence)) and says_enough(sentence[m.end() :], 2):
        return Assertion("fact", "remember", text)
    if people:
        return ASIDE if says_enough(text, 3) and not holds("addressed", text) else None
    return fact_stated(core_text)


TELLS_ENGLISH = re.compile(
    r"\b(?:I|I'm|I've|I'll|the|a|an|and|is|are|was|my|we|to|of|in|that|it|you|for|with|on|have|be|this|at|not|do|don't|from|by|please)\b",
    re.I,
)


ENGLISH_OWN = re.compile(r"\b(?:I|my|we|our)\b", re.I)


@lru_cache(maxsize=512)
def language_of(sentence: str) -> str:
    """ "en" or another that has cues; "" for a script or a language that has none."""
    if language("cjk").patterns["telling"].search(sentence):
        return "cjk"
    if 2 * sum(c.isascii() and c.isalpha() for c in sentence) < sum(c.isalpha() for c in sentence):
        return ""
    counts = {name: len(language(name).patterns["telling"].findall(sentence)) for name in LATIN_LANGUAGES}
    best = max(counts, key=lambda name: counts[name])
    english = len(TELLS_ENGLISH.findall(sentence))
    first = language(best).patterns["own"].search(sentence) and not ENGLISH_OWN.search(sentence)
    return best if counts[best] > max(english, 1) or (first and counts[best] >= max(english, 1)) else "en"


@lru_cache(maxsize=512)
def without_lead_in(sentence: str) -> str:
    """*sentence* without what leads in, and with the subject it leaves out: "Hey, just got back" is "I just got back"."""
    text = sentence.strip(" \"'()-–—…,")
    for _ in range(4):
        if not (m := begins("lead", text)) or len(text) - m.end() < 4:
            break
        text = text[m.end() :]
    return with_subject(re.sub(r",? please(?=[.!]*$)", "", text, flags=re.I))


def with_subject(text: str) -> str:
    """Put in the "I" that people leave out of notes: "Booked a flight", "Been painting", "Working on a novel"."""
    small = text[:1].lower() + text[1:]
    if begins("unfinished", text) and not re.search(
        r"\b(?:is|are|was|were|has|have|makes|gives|helps|means)\b", text
    ):
        return f"I'm {small}"
    if begins("wordless", text):
        return f"I {small}"
    if re.match(
        r"(?:always |never |recently |lately |just )?been (?!there\b|an?\b|quite\b|so\b)\w+", text, re.I
    ):
        return f"I've {small}"
    words = text.split()
    while len(words) > 1 and language("en").patterns["just"].fullmatch(words[0]):
        del words[0]
    if len(words) < 2:
        return text
    first = words[0].lower()
    finite = is_past(first) and first not in listed("feelings") and base_of(first) in bases() - {first, "be"}
    if finite and not re.match(r"(?:is|are|was|were|and|by|with|it's)\b", words[1], re.I):
        return f"I {small}"
    return text


UNWANTED = re.compile(  # but not "I hate", which needs no other title than what is liked
    r"(?:please )?(?:don't|do not|no|never|avoid|stop)\b|(?:I|we) (?:\w+ )?(?:(?:don't|do not) (?:need|want)|no longer|stopped|gave up)\b",
    re.I,
)
THIS = re.compile(  # what was shown, and not told
    r"(?:[a-z]+ )?(?:(?:at|in|on|to|with) )?(?:this|that|it|these|those|some|something|one)(?: \w+)?\W*$",
    re.I,
)
THAT = re.compile(r"(?:that|how|it|out|like)\b")  # "I realized that …"
# Words that say something.
LEAST_WORDS = {"past": 3, "habit": 3, "ongoing": 3} | dict.fromkeys(
    ("own", "wish", "former", "plan", "must"), 2
)


def assertion_of(cue: Cue, m: re.Match[str], text: str, people: bool) -> Assertion | None:
    """What a cue that matched asserts; None if it is nothing after all."""
    found = {k: (v or "").strip() for k, v in m.groupdict().items()}
    verb, what, slot = found.get("verb", "").lower(), found.get("what", ""), found.get("slot", "")
    if cue.name == "past" and not tells_event(verb, what):
        return None
    if cue.name in ("habit", "own", "feeling", "like") and holds("addressed", text):
        return None
    if cue.type in ("episode", "fact", "project") and not people and holds("workshop", text):
        return None
    if not cue.type or (people and is_about_everyone(cue.name, verb, m[0], text)):
        return ASIDE
    if says_too_little(cue.name, verb, what, text):
        return ASIDE if people else None
    if cue.name in ("standing", "style", "dislike") and UNWANTED.match(m[0]):
        what = f"not {what}"
    if cue.name == "habit" and re.match(r"\w+ never\b", m[0]):
        verb = f"never {verb}"
    if cue.name in ("name", "home", "job", "status"):
        slot = cue.name
    elif slot:
        slot = f"my {slot}"
    return Assertion(cue.type, cue.name, f"{verb} {what}".strip(), slot=slot, loop=cue.loop)


def tells_event(verb: str, what: str) -> bool:
    """Whether "I <verb> <what>" tells of something that happened, and not how someone is."""
    if not is_past(verb) or verb in listed("feelings"):
        return False
    return base_of(verb) != "be" or says_enough(what, 3)


def says_too_little(cue: str, verb: str, what: str, text: str) -> bool:
    """Whether what a cue found is too little for a note: "I did that", "I'll see", "we have to go"."""
    least = LEAST_WORDS.get(cue, 0) - (cue == "habit" and any(c.isdigit() for c in what))
    if not says_enough(
        f"{verb} {what}" if cue != "name" else text, max(least, cue not in ("name", "contact", "status"))
    ):
        return True
    match cue:
        case "past":
            return bool(THAT.match(what) or THIS.match(what))
        case "habit":
            return not (verb.endswith("ing") or base_of(verb) in bases()) or bool(THIS.match(what))
        case "plan" | "must":
            return bool(begins("passing", what)) and not DAY_WORDS.search(text)
        case "prefer":
            return "rather" in text.lower() and not says_enough(what, 2)
    return bool(THIS.match(what)) and cue in ("wish", "ongoing", "choice")


def is_about_everyone(cue: str, verb: str, matched: str, text: str) -> bool:
    """Whether it is said of people at large: "we can make a difference"."""
    broad = cue in ("own", "plan", "must", "wish") or (cue == "habit" and not verb.endswith("ing"))
    return (
        broad
        and bool(re.match(r"(?:we|our)\b", matched, re.I))
        and not (DAY_WORDS.search(text) or SPECIFIC.search(text))
    )


SPECIFIC = re.compile(r"\d|(?<!^)\b(?!I\b)[A-Z][\w-]+|\w[.@]\w")
SLOT = re.compile(
    r"(?P<slot>(?:the |[A-Z])[\w' -]{2,40}?)(?:'s)? (?:is|are|was|were|should be|costs?)(?: now)? (?P<what>.+)"
)


def fact_stated(text: str) -> Assertion | None:
    """A fact about the world, told to an agent: only with a name or a number in it."""
    if (
        holds("workshop", text)
        or begins("transient", text)
        or not (SPECIFIC.search(text) and holds("states", text) and says_enough(text, 3))
    ):
        return None
    m = SLOT.match(text)
    if not m:
        return Assertion("fact", "stated", text)
    return Assertion(
        "fact", "stated", m["slot"] if says_enough(m["slot"], 2) else f"{m['slot']} {m['what']}", m["slot"]
    )


def assertion_in(sentence: str, name: str) -> Assertion | None:
    """In a language of few cues: what is in the first person and no question. Near-verbatim is all it can be."""
    known = language(name)
    text = sentence.strip(" \"'()-–—…¡¿「」")
    length = len(text) // 2 + 1 if name == "cjk" else len(text.split())
    if (
        length < 3
        or text.endswith(("?", "？"))
        or sentence.startswith("¿")
        or known.patterns["drop"].match(text)
    ):
        return None
    mine = known.patterns["own"].search(text)
    for cue in known.cues:
        if any(p.search(text) for p in cue.patterns) and (
            mine or name == "cjk" or cue.type in ("preference", "decision")
        ):
            short = length < 4 and cue.type not in ("preference", "decision", "identity")
            return None if short else Assertion(cue.type, cue.name, text, loop=cue.loop, language=name)
    return Assertion("fact", "stated", text, language=name) if mine and length >= 4 else None
