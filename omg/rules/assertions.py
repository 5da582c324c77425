"""
The sentences of a message, and what each asserts.

The English words and patterns are in words/en.toml, which can be changed without reading Python.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from ..message.turn import HEADER
from ..text.characters import without_unseen
from ..text.words import (
    LIST_MARK,
    WORD_OR_NUMBER,
    base_of,
    bases,
    english_words,
    is_past,
    split_sentences,
    without_list_mark,
)

# --- words/en.toml: patterns and word lists.


@dataclass(frozen=True, slots=True)
class Cue:
    """Patterns for one kind of note. `type` "" is an aside: no note of its own, but worth a line in another."""

    name: str
    type: str
    loop: str | None
    patterns: tuple[re.Pattern[str], ...]
    examples: tuple[str, ...]


@cache
def word_lists() -> dict[str, Any]:
    """The parsed words/en.toml."""
    with (Path(__file__).parent / "words" / "en.toml").open("rb") as f:
        return tomllib.load(f)


@cache
def compiled_words() -> tuple[dict[str, re.Pattern[str]], tuple[Cue, ...]]:
    """The patterns under [says] by name, and the cues. In a pattern `<other>` stands for another entry, a list for its alternatives."""
    table = word_lists()
    words: dict[str, Any] = {**table["words"], **table["says"]}

    def expanded(value: str | list[str]) -> str:
        if isinstance(value, list):
            text = f"(?:{'|'.join(value)})"
        else:
            text = "".join(line.strip() for line in value.splitlines())
        return re.sub(r"(?<!\?P)<(\w+)>", lambda m: expanded(words[m[1]]), text)

    def compiled(value: str) -> re.Pattern[str]:
        return re.compile(expanded(value), re.IGNORECASE)

    return (
        {k: compiled(v) for k, v in table["says"].items() if isinstance(v, str)},
        tuple(
            Cue(
                c["cue"],
                c.get("type", ""),
                c.get("loop"),
                patterns=tuple(map(compiled, c["patterns"])),
                examples=tuple(c["examples"]),
            )
            for c in table["cue"]
        ),
    )


def pattern(name: str) -> re.Pattern[str]:
    """The [says] pattern of this name: "question", "undo", …"""
    return compiled_words()[0][name]


def begins(what: str, text: str) -> re.Match[str] | None:
    """Whether *text* begins with the [says] pattern *what*."""
    return pattern(what).match(text)


def holds(what: str, text: str) -> re.Match[str] | None:
    """Whether the [says] pattern *what* matches anywhere in *text*."""
    return pattern(what).search(text)


@cache
def listed(name: str) -> frozenset[str]:
    """The words of a list, such as "light"."""
    return frozenset(word_lists()["lists"][name].split())


def says_enough(text: str, least: int) -> bool:
    """Whether *text* has at least *least* meaningful words."""
    words = (m[0].lower() for m in WORD_OR_NUMBER.finditer(text))
    return sum(word not in english_words("stop") for word in words) >= least


# --- What a sentence asserts: a preference, a plan, a fact, or nothing that a memory is for.
# In doubt it is small talk.


@dataclass(frozen=True, slots=True)
class Assertion:
    """What a sentence asserts. `type` "" is an aside: worth a line in the body of another note, but no note itself."""

    type: str
    cue: str  # which one matched: "prefer", "plan", …
    topic: str = ""  # the words a title can be made of
    slot: str = ""  # what can have one value only: "home", "my dentist"; another value is a change
    loop: str | None = None


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
    r"|,\s{0,9}(?:and|but)\s{1,9}(?=(?:the|their|his|her|[A-Z]\w+)\s)|(?P<colon>:)\s{1,9}(?=(?:my|our)\s)"
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
    r"|morning|night|spring|summer|autumn|fall|winter)|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w* \d+"
    r"|\d{1,2}(?:st|nd|rd|th)?(?: of)? (?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\w*|(?:end|middle|beginning) of"
    r"|\d{4}-\d\d)\b",
    re.I,
)
TO_DAY = re.compile(  # "to Friday", "to 9:00 on Friday", "to the 12th", and not "to the 2nd floor"
    r"\b(?:to|until|till) (?:the |\d[\d:.]*(?: ?[ap]\.?m\.?)? (?:on )?)?"
    rf"(?:{DAY_WORDS.pattern}|\d{{1,2}}(?:st|nd|rd|th)\b(?! (?!(?:at|of|in)\b)\w))",
    re.I,
)


def clauses(sentence: str) -> Iterator[str]:
    """
    *sentence*, or its parts where it says two things: "I moved to Oslo in May and I prefer tea" is two.

    Only parts that make different notes are split; an assertion is split from a question that follows it.
    """
    if sentence.endswith("?") and (ask := QUESTION_WORDS.search(sentence)):
        head = sentence[: ask.start()]
        if len(head.split()) >= 4 and (found := read_sentence(head)) and found.type:
            yield from clauses(head)
            return
    ended = begins("ended", sentence)
    for join in () if ended and ended["past"] is not None else JOIN.finditer(sentence):
        head, tail = sentence[: join.start()], sentence[join.end() :]
        if min(len(head.split()), len(tail.split())) < 2 or DEPENDENT.match(head):
            continue
        if join["and"] and not SUBJECT.search(head):  # "my wife and I"
            continue
        if join["colon"] and not holds("change", head):  # "I changed bank: my bank is …"
            continue
        first, second = read_sentence(head), read_sentence(tail)
        if second and second.type and are_two_notes(first, second, head, tail):
            yield head
            yield from clauses(tail[0].upper() + tail[1:])
            return
    two = TWO_PLANS.match(sentence)
    dated = two and DAY_WORDS.search(two["one"]) and DAY_WORDS.search(two["two"])
    if two and dated and two["two"].split()[0].lower() in bases():
        yield from (f"{two['head']} {two[plan]}" for plan in ("one", "two"))
        return
    yield sentence


def are_two_notes(first: Assertion | None, second: Assertion, head: str, tail: str) -> bool:
    """Whether two clauses make two notes: they are of different kinds, or each has a day."""
    if not first or not first.type:
        return second.cue != "stated"
    return (
        first.cue != second.cue
        or first.type == second.type == "identity"
        or bool(DAY_WORDS.search(head) and DAY_WORDS.search(tail))
    )


def addressed(sentence: str, names: Iterable[str]) -> str:
    """*sentence* without the addressee's name: "Hey Mel, I moved" → "Hey, I moved"."""
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
    if not is_english(sentence):
        return None
    text = without_lead_in(sentence)
    if text.endswith(":"):  # leads to what somebody else says
        return None
    order = begins("order", text)
    wished = order or holds("standing", text) or holds("style", text)
    asks = sentence.rstrip("\"')").endswith("?") and not begins("told", sentence)
    asks = asks and (people or not holds("wished", sentence))
    if not order and (asks or begins("question", text)):
        return None
    if begins("undo", text) or holds("agent", text) or begins("maybe", text):
        return None
    if not wished and (begins("asked", text) or begins("command", text) or begins("reaction", text)):
        return None
    if begins("pointing", text) and not DAY_WORDS.search(text):
        return ASIDE if says_enough(text, 3 if people else 1) and not holds("addressed", text) else None
    if m := begins("off", text):
        return Assertion("fact", "off", m["what"])
    if (to := TO_DAY.search(text)) and (m := begins("moved", text[: to.start()])):
        what = m["what"] or m["itself"]
        by_other = m["what"] and says_enough(text[: m.start("what")], 2)  # and not "They moved …"
        return Assertion("episode", "moved", text if by_other else what, what, loop="open")
    core = None if order else begins("adverbial", text)
    core_text = text[core.end() :] if core else text
    for cue in compiled_words()[1]:
        if people and cue.name in ("standing", "style", "remind", "calendar"):  # orders to an assistant
            continue
        for wording in cue.patterns:
            if (m := wording.match(core_text)) and (found := assertion_of(cue, m, text, people)):
                return found if found.type or people else None
    if (m := begins("remember", sentence)) and says_enough(sentence[m.end() :], 2):
        return Assertion("fact", "remember", text)
    if people:
        return ASIDE if says_enough(text, 3) and not holds("addressed", text) else None
    return fact_stated(core_text)


LONG_ENOUGH = 5  # words: shorter notes such as "Booked flight to Lisbon" may have no common word


@lru_cache(maxsize=512)
def is_english(sentence: str) -> bool:
    """Whether the rules may read *sentence*: most letters are Latin, and one that is long enough has a common English word."""
    letters = sum(c.isalpha() for c in sentence)
    if 2 * sum(c.isascii() and c.isalpha() for c in sentence) < letters:
        return False
    words = WORD_OR_NUMBER.findall(sentence.lower())
    return len(words) < LONG_ENOUGH or not english_words("stop").isdisjoint(words)


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
    while len(words) > 1 and pattern("just").fullmatch(words[0]):
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
THAT = re.compile(r"(?:that|how|it|out|like)\b")  # "I realized that …"
# Words that say something.
LEAST_WORDS = {"past": 3, "habit": 3, "ongoing": 3} | dict.fromkeys(
    ("own", "wish", "former", "plan", "must"), 2
)


def assertion_of(cue: Cue, m: re.Match[str], text: str, people: bool) -> Assertion | None:
    """The assertion of a cue that matched; None if the sentence asserts nothing after all."""
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
    if says_too_little(cue.name, slot if cue.name == "own" and not people else verb, what, text):
        return ASIDE if people else None
    if cue.name in ("standing", "style", "dislike") and UNWANTED.match(m[0]):
        what = f"not {what}"
    if cue.name == "habit" and re.match(r"\w+ never\b", m[0]):
        verb = f"never {verb}"
    if cue.name in ("name", "home", "job", "status", "age", "birth", "height", "weight"):
        slot = cue.name
    elif slot or cue.name == "due":
        slot = f"my {slot}" if slot else what
    return Assertion(cue.type, cue.name, f"{verb} {what}".strip(), slot=slot, loop=cue.loop)


def tells_event(verb: str, what: str) -> bool:
    """Whether "I <verb> <what>" tells of something that happened, and not how someone is."""
    if not is_past(verb) or verb in listed("feelings"):
        return False
    return base_of(verb) != "be" or says_enough(what, 3)


def says_too_little(cue: str, verb: str, what: str, text: str) -> bool:
    """Whether what a cue found is too little for a note: "I did that", "I'll see", "we have to go"."""
    least = LEAST_WORDS.get(cue, 0) - (cue == "habit" and bool(SPECIFIC.search(text)))
    if not says_enough(
        f"{verb} {what}" if cue != "name" else text, max(least, cue not in ("name", "contact", "status"))
    ):
        return True
    match cue:
        case "past":
            return bool(THAT.match(what))
        case "habit":
            return not (verb.endswith("ing") or base_of(verb) in bases())
        case "plan" | "must":
            return bool(begins("passing", what)) and not DAY_WORDS.search(text)
        case "prefer":
            return "rather" in text.lower() and not says_enough(what, 2)
    return False


def is_about_everyone(cue: str, verb: str, matched: str, text: str) -> bool:
    """Whether the sentence is about people in general: "we can make a difference"."""
    broad = cue in ("own", "plan", "must", "wish") or (cue == "habit" and not verb.endswith("ing"))
    return (
        broad
        and bool(re.match(r"(?:we|our)\b", matched, re.I))
        and not (DAY_WORDS.search(text) or SPECIFIC.search(text))
    )


SPECIFIC = re.compile(r"\d|(?<!^)\b(?!I\b)[A-Z][\w-]+|\w[.@]\w")
CLOCK = re.compile(r"\b\d{1,2}(?::\d\d| ?[ap]\.?m\b)", re.I)
SLOT = re.compile(
    r"(?P<slot>(?:the |[A-Z])[\w'. -]{2,40}?)(?:'s)? (?:is|are|was|were|should be|costs?)(?: now)? (?P<what>.+)"
)


def subject_stated(text: str) -> str:
    """What *text* is about, before a verb of the present: "The plumber" of "The plumber comes …"; "" if it has no such verb."""
    words = text.split()
    first = words[0].lower()
    if first not in listed("articles") and (first in english_words("stop") or not text[0].isupper()):
        return ""
    for n, word in enumerate(words[1:6], 1):
        third = word.endswith("s") and (word[:-1] in bases() or word[:-2] in bases())
        rest = " ".join(words[n + 1 :])
        if third or (word in ("is", "are") and (re.match(r"\w+ing\b", rest) or DAY_WORDS.match(rest))):
            return " ".join(words[:n])
        if not word.replace("'s", "").removesuffix(".").isalpha():  # "Mr."
            break
    return ""


def fact_stated(text: str) -> Assertion | None:
    """
    A fact about the world told to an agent; only a sentence with a name or a number counts. What happens on a day or at a time is a
    plan: "The plumber comes on 30 November."
    """
    if holds("workshop", text) or not says_enough(text, 3):
        return None
    subject = subject_stated(text)
    when = DAY_WORDS.search(text) or CLOCK.search(text)
    if subject and when and not text[: when.start()].endswith("every "):
        return Assertion("episode", "due", subject, subject, loop="open")
    if begins("transient", text) or not (SPECIFIC.search(text) and holds("states", text)):
        return None
    m = SLOT.match(text)
    if not m:
        return Assertion("fact", "stated", text)
    return Assertion(
        "fact", "stated", m["slot"] if says_enough(m["slot"], 2) else f"{m['slot']} {m['what']}", m["slot"]
    )


STRAIGHT_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "\u00a0": " "})
MARKER = re.compile(
    r"\[(?:image|photo|picture|file|audio|video|document|media|part|sticker|shares?)\b[^\[\]\n]{0,300}\]",
    re.I,
)
NOISE = re.compile(  # how a line begins that a program wrote, or that someone quotes
    r"\s*(?:[>|$#%{}]|\+{3} |-{3,}|={3,}|@@|at [\w.$<>]+\(|File \"|Traceback|diff --git|import \w+$|from \w+ import"
    r"|def \w|class \w+[(:]|(?:const|let|var|function|return|export|SELECT|INSERT|UPDATE|GET|POST|curl|npm|pip|git|cd"
    r"|sudo|docker) [\w./-]+\s*[\w=({\"'*-]|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d"
    r"|(?:INFO|WARN(?:ING)?|ERROR|DEBUG|FATAL|TRACE)\b|</?\w|[\w./-]+\.\w{1,4}:\d+)"
)
CODE_MARKS = frozenset("{}[]<>=|\\;$#_/~^")
MARKUP = re.compile(r"\*\*|__|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)|`")
PICTURES = r"\U0001F000-\U0001FAFF☀-➿⬀-⯿"
EMOJI = re.compile(rf"[{PICTURES}]|(?<!\w)[:;]-?[)(DPp](?!\w)|<3")
PAUSE = re.compile(  # parts a sentence from the next where no mark does
    rf"\s{{0,9}};\s+|\s{{1,9}}(?=[{PICTURES}]|[:;]-?[)(DP](?!\w))"
    r"|(?:\.{2,9}|…)\s{1,9}(?=no,)"  # "tomorrow... no, Monday"
    r"|\s{0,9}[\u2028\u2029\x85]\s{0,9}+(?=[A-ZÀ-ÖØ-Þ])"  # no end of a line, but where a capital follows they are meant as one
)
# beyond it only a message's beginning and end may be its sender's own words; likewise lines
OWN_CHARS = 4_000
SAYING_WORDS = 5
QUOTATION = re.compile(
    r"“[^“”]{0,2000}”|„[^“”„]{0,2000}[“”]|«[^«»]{0,2000}»|「[^「」]{0,2000}」|『[^『』]{0,2000}』|`[^`\n]{0,2000}`"
    r"|(?<![\w\"])\"(?=\S)[^\"]{0,2000}\"(?!\w)"
    r"|(?<![\w'])'(?=\S)(?:[^'\n]|(?<=\w)'(?=\w)){0,500}'(?!\w)"
)
LONGEST_SENTENCE = 400  # characters; what is longer is pasted or dictated, and no sentence


def written_sentences(text: str) -> Iterator[str]:
    """
    The sentences in *text* that a person may have written, in order: straight quotes, no emoji, no markup. A quotation is
    somebody else's, unless it is as short as a title or a saying of one's own.
    """
    text = QUOTATION.sub(lambda m: m[0] if is_saying(m[0]) else '"…"', text)
    if len(text) > 2 * OWN_CHARS:
        text = f"{text[:OWN_CHARS]}\n{text[-OWN_CHARS:]}"
    text = MARKER.sub(" ", without_unseen(text).translate(STRAIGHT_QUOTES))
    lines = list(with_list_heads(lines_before_a_text(text.split("\n"))))
    if len(lines) > PASTED_LINES:
        lines = [*lines[:OWN_LINES], *lines[-OWN_LINES:]]
    for line in map(without_introduced, filter(is_written_by_person, lines)):
        plain = MARKUP.sub("", without_list_mark(line))
        for sentence in split_sentences(plain):
            for part in PAUSE.split(sentence):
                yield from cleaned_sentences(part)


def is_saying(quotation: str) -> bool:
    """Whether a quotation is a title or the speaker's own saying, and states nothing."""
    inner = quotation[1:-1].strip()
    return len(inner.split()) <= SAYING_WORDS and not states(inner)


def states(text: str) -> bool:
    found = read_sentence(text)
    return found is not None and bool(found.type)


def lines_before_a_text(lines: Sequence[str]) -> Iterator[str]:
    """*lines* that are not empty, up to one that hands a text over; those behind one that works on "the text above"."""
    above = max((n for n, line in enumerate(lines) if holds("works_on_above", line)), default=-1)
    head = 0  # lines in a row like those of a mail's head
    for n, line in enumerate(lines):
        if n < above or not line.strip():
            continue
        below = next((x for x in lines[n + 1 :] if x.strip()), "")
        head = head + 1 if HEADER.match(line) and below else 0
        if head > 1 and not lines[n + 1].strip():
            return
        hands = line.rstrip().endswith((":", "：")) and introduces(line)
        if below and (holds("works_on_below", line) or (hands and not LIST_MARK.match(below))):
            return
        yield line


IN_A_ROW = re.compile(r"[,;]? (?=\d[.)] )")  # "I need to: 1. call Ann, 2. pay Bob"


def with_list_heads(lines: Iterable[str]) -> Iterator[str]:
    """*lines*, each item of a list with the words that it goes on from: "I need to:", "1. call Ann" → "I need to call Ann"."""
    head = ""
    for line in (part for row in lines for part in (IN_A_ROW.split(row) if ": 1" in row else [row])):
        item = without_list_mark(line)
        if item == line:
            head = open_head(line)
        yield f"{head} {item}" if head and item != line and states(f"{head} {item}") else line


def open_head(line: str) -> str:
    """What of a person's own sentence stands before the colon that *line* ends with, if it is to go on behind it."""
    if not line.rstrip().endswith(":"):
        return ""
    head = line.strip().rstrip(": ")
    if begins("todo", head):
        return "I need to"
    goes_on = head.split()[-1].lower() in {"to"} | bases() if head else False
    return head if goes_on and re.match(rf"{SPEAKING}\b", without_lead_in(head), re.I) else ""


def introduces(head: str) -> bool:
    """Whether *head*, before a colon, introduces somebody else's text; assumed if *head* is not English."""
    return not is_english(head) or holds("introduces", head) is not None


def without_introduced(line: str) -> str:
    """*line* up to its colon, if somebody else's statement follows: "Tom wrote: I moved to Oslo"."""
    head, colon, rest = line.partition(": ")
    if not colon or not states(MARKUP.sub("", rest).strip()) or not introduces(head):
        return line
    return head + colon


def is_written_by_person(line: str) -> bool:
    """Whether a person, not a program, wrote *line*."""
    return not NOISE.match(line) and sum(c in CODE_MARKS for c in line) <= 0.06 * len(line) + 2


def cleaned_sentences(sentence: str) -> Iterator[str]:
    sentence = " ".join(EMOJI.sub(" ", sentence).split())
    if any(c.isalpha() for c in sentence) and len(sentence) <= LONGEST_SENTENCE:
        yield from clauses(sentence)
