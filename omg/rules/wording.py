"""
How a note is worded: in the third person, with absolute dates.

    in_third_person        "I prefer tea, my wife doesn't" → "Maya prefers tea, their wife doesn't"
    with_absolute_dates    "tomorrow at 10" → "on 2026-03-05 at 10", and the days that are meant
    order_as_wish          "never use emojis" → "I want you never to use emojis"

Pure, and English. Names, numbers and quoted words come out as they went in.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta
from functools import cache

from ..dates.days import event_span
from ..dates.rules import ARRANGED, MONTHS, MOVED, When, resolve_dates, tense_of
from ..text.words import base_of, bases, english_words, is_past
from .assertions import DAY_WORDS, TO_DAY, Assertion, begins, listed, pattern, says_enough, states, word_lists

# --- A title for what a sentence says: a noun phrase of at most six words, which becomes the name of a file.
#
#     "went to a support group yesterday" → "Support group"
#     "take photos of the prints on Monday" → "Photos of prints"
#
# Not here: whether there is a file of that name already (plan/drafts.py). Where no phrase can be made, there
# is no title.


TITLE_WORDS = 6
# Cues whose topic begins with a verb's base; may begin with a past form; may be what someone does not want.
BASE_FIRST = frozenset("plan must remind wish former choice standing style habit calendar project".split())
PAST_FIRST = frozenset(("past", "ongoing", "habit", "off", "aside", ""))
REFUSED = frozenset(("choice", "prefer", "dislike", "style", "standing"))
NAMED = re.compile(r"\b(?:called|named|titled) \"?([^\",.;:!?]{2,40}?)(?=[\",.;:!?]|$| and | which | that )")
EMPTY_PHRASE = re.compile(  # "It's important to me to …", "I think that …"
    r"^(?:it|that|this|there|they|i|we)(?:'\w+)?(?: \w+){0,3}?(?: (?:to|for) me)? (?:to|that|how|when|for|of|about|by|with) "
    r"|^(?:i|we)(?:'\w+)? \w+ ",
    re.I,
)
KEPT_WORDS = re.compile(r"(?:keep|make) (?:your |the |all )*(\w+) (\w+)(?:,| from| please|[.!]*$)", re.I)
QUOTE = re.compile(r'"([^"]*)"')
PARTICLE = re.compile(
    r"(?:up|out|off|back|away|down|over|on|into|through|around|along)\b\s*(?:(?:to|for|with|of|at|in|from)\b\s*)?",
    re.I,
)
PLACE = re.compile(r"(?:back )?to (?=(?-i:[A-Z]))(.+)", re.I)


def title_of_topic(topic: str, cue: str = "") -> str:
    """A title made from *topic*, the words after *cue*; "" if none can be made."""
    if cue == "aside":
        topic = EMPTY_PHRASE.sub("", topic)
    text = without_pattern("determiner", without_pattern("filler", QUOTE.sub(r"\1", topic)).strip(" ,."))
    if cue in ("style", "standing") and (kept := KEPT_WORDS.match(text)):
        return f"{kept[2]} {kept[1]}".capitalize()
    if cue == "project" and (name := NAMED.search(text)):
        return name[1].strip()
    refused = cue in REFUSED and re.match(r"(?:against|not to|not|no)\s+", text, re.I)
    if refused:
        text = without_pattern("determiner", text[refused.end() :])
    phrase = trimmed(as_noun(text, cue))
    return f"No {phrase}" if refused and phrase else phrase[:1].upper() + phrase[1:]


def as_noun(text: str, cue: str) -> str:
    """*text* as a noun phrase, if it begins with a verb."""
    first, _, rest = text.partition(" ")
    verb = first.lower().strip(",.")
    if cue in PAST_FIRST and verb.endswith("ing"):
        verb = next((b for b in (verb[:-3], verb[:-3] + "e", verb[:-4]) if b in bases()), verb)
    rest = re.sub(r"^(?:you|them|her|him|me|us|it)\s+(?=\w)", "", rest)
    if cue == "plan" and text[:1].isupper():  # "going to Hamburg"
        return f"trip to {text}"
    if not rest:
        return text
    if verb == "never":
        verb, _, rest = rest.partition(" ")
        return f"never {noun_phrase(base_of(verb), rest, cue)}"
    if (is_past(verb) and cue in PAST_FIRST) or (base_of(verb) in bases() and cue in BASE_FIRST | PAST_FIRST):
        return noun_phrase(base_of(verb), rest, cue)
    return text


def noun_phrase(verb: str, rest: str, cue: str) -> str:
    """ "paint", "a lake sunrise" → "lake sunrise"; "run", "in the park" → "running in the park"."""
    if place := PLACE.match(rest):
        return (
            f"trip to {place[1]}"
            if verb in ("go", "travel", "fly", "drive")
            else f"{gerund(verb)} to {place[1]}"
        )
    if verb in listed("refuses"):
        return f"{gerund(verb)} {rest}"
    particle = PARTICLE.match(rest)
    thing = rest[particle.end() :] if particle else rest
    light = verb in listed("light") or cue == "project"
    if light:
        thing = re.sub(r"^(?:to|for|with|at|on|in)\s+", "", thing, flags=re.I)
    named = without_pattern("determiner", thing)
    if (
        says_enough(cut_at_clause(named), 1)
        if light
        else named != thing and says_enough(cut_at_clause(named), 2)
    ):
        return named
    return f"{gerund(verb)} {rest if particle else named}"


def trimmed(text: str) -> str:
    """At most six words of *text*, up to its first clause, without articles and without a small word at either end."""
    small, articles = listed("small"), listed("articles")
    words = [w.strip(',;:"“”()!?') for w in cut_at_clause(text).split()]
    words = [w for w in words if w and w.lower() not in articles]
    while words and words[0].lower() in small:
        del words[0]
    if len(words) > TITLE_WORDS:  # rather without the last phrase than in the middle of it
        del words[max((i for i in range(2, TITLE_WORDS) if words[i].lower() in small), default=TITLE_WORDS) :]
    while words and words[-1].lower() in small:
        words.pop()
    return " ".join(words).rstrip(".'")


def without_pattern(what: str, text: str) -> str:
    """*text* without the matches of the pattern *what*: fillers anywhere, a determiner at the beginning."""
    return " ".join(pattern(what).sub(" ", text).split())


def cut_at_clause(text: str) -> str:
    """*text* up to where a clause, or a second verb, begins."""
    m = pattern("tail").search(text)
    text = text[: m.start()] if m else text
    verb = next((m for m in re.finditer(r" (?:and|or) (\w+) (?=\w)", text) if m[1].lower() in bases()), None)
    return text[: verb.start()] if verb else text


def gerund(verb: str) -> str:
    if verb.endswith("ing"):
        return verb
    if verb.endswith("e") and not verb.endswith(("ee", "ye", "oe")) and verb != "be":
        return verb[:-1] + "ing"
    doubled = re.fullmatch(r"(?:qu|[^aeiou])*[aeiou][bdgmnprt]|.*(?:mit|fer|cur|gin|get)", verb)
    return verb + (verb[-1] if doubled else "") + "ing"


# --- What note an assertion makes: whether it makes one at all, its type, loop, title and priority.


IT_OR_THEM = re.compile(r"\b(?P<verb>[a-z]+) (?P<it>it|them)\b(?!'| (?:is|was|will)\b)", re.I)
FIRST_PART = re.compile(r"[,:;]| because ")
UNCLEAR = ("plan", "must", "wish", "past", "remind", "choice")  # with an object that is only "it", no note


def stands_alone(found: Assertion, said: str) -> bool:
    """Whether the assertion names what it is about: "I'll order them" does not."""
    unclear = found.cue in UNCLEAR and IT_OR_THEM.search(FIRST_PART.split(said, maxsplit=1)[0])
    return bool(found.type) and not unclear


def is_detail(found: Assertion, said: str) -> bool:
    """Whether the sentence continues what was said before: "The meeting is at 11"."""
    return found.cue == "stated" and found.slot.lower().startswith("the ") and not DAY_WORDS.search(said)


def type_and_loop(found: Assertion, event: str | None, said: date, people: bool) -> tuple[str, str | None]:
    """Type and loop of the note, which depend on whether its day is past."""
    days = event_span(event)
    if days and days[1] < said:
        return found.type, None
    if days and days[0] > said and found.type in ("episode", "fact") and found.cue not in ("stated", "off"):
        return "episode", "open"
    if found.cue in ("due", "date", "moved") and not days:
        return ("fact" if found.cue == "due" else found.type), None
    if found.cue in ("must", "plan") and not days and people:
        return "fact", None  # what people say they will do, some day
    return found.type, found.loop


def title_for(found: Assertion, person: str) -> str:
    """A title; among people, one that says whose home or name it is."""
    if found.slot == found.cue:  # what everybody has one of
        name = "Personal status" if found.cue == "status" else found.cue.title()
    elif found.slot and found.cue != "stated":
        name = title_of_topic(found.slot.removeprefix("my "))
    else:
        return title_of_topic(found.topic, found.cue)
    return (
        f"{person}'s {name[:1].lower()}{name[1:]}" if person and found.type == "identity" and name else name
    )


def priority_of(type: str, cue: str, due: bool, said: str) -> str:
    if type in ("decision", "identity") or due or cue in ("standing", "style"):
        return "high"
    if begins("remember", said):
        return "high"
    return "low" if cue == "aside" else "medium"


def nearest_weekday(day: date, around: date) -> date:
    """The day of *day*'s weekday that is nearest to *around*."""
    return around + timedelta(days=(day.weekday() - around.weekday() + 3) % 7 - 3)


# --- dates

TELLS_DAY = re.compile(
    r"day|night|tomorrow|week|month|year|morning|evening|weekend|spring|summer|autumn|fall|winter|quarter|decade|\d|\b(?:mon|tue|wed|thu|fri|sat|sun"
    r"|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)",
    re.I,
)
BEFORE = re.compile(
    r"\b(on|by|until|till|before|after|since|from|for|around|in|at|to|of|during|over|between|and|through|than|about|not|within)\s+(the\s+)?$",
    re.I,
)
LAST_DAY = frozenset(("by", "until", "till"))
END = re.compile(r"(?:the\s+)?end of\b", re.I)  # "before the end of March" ends with March
UP_TO = re.compile(r"(?<!not )\bbefore\s+(?:the\s+)?$", re.I)  # "before March" ends with February
NOT_THE_DAY = re.compile(
    r"(?:\b(?:since|not|instead of|rather than|from|after)|n't)\s+(?:on\s+)?(?:the\s+)?$", re.I
)
YEARLY = re.compile(r"\b(?:birthdays?|anniversary|every year|each year)\b", re.I)
BORN = re.compile(r"\bborn\b", re.I)
IS_NAME = re.compile(
    r"\b(?:called|named|name(?:'s| is))\s+$|^\s+is the name\b", re.I
)  # "Our boat is called Friday"
OR = re.compile(r",?\s+or\s+(?:on\s+)?", re.I)
# a day of no year
BIRTHDAY = re.compile(r"(?:\d{1,2}\w*\s+(?:of\s+)?)?[A-Za-z]{3,9}\.?(?:\s+\d{1,2}(?:st|nd|rd|th)?)?")
PART_OF_DAY = re.compile(r"\s{1,9}(morning|afternoon|evening|night)\b", re.I)
TO_A_DAY = re.compile(  # "the call was moved to Friday", that is to come
    rf"{MOVED.pattern}.{{0,400}}(?:{TO_DAY.pattern}|\bto (?:the week|\d+[./-]\d|(?:{'|'.join(m[:3] for m in MONTHS)})))"
    r"|\bmeant\b|\binstead of\b",
    re.I,
)


def with_absolute_dates(text: str, said: date, ahead: bool = False) -> tuple[str, str | None]:
    """
    *text* with every day as a date, and its `event` day, if it names one.

    *ahead*: the sentence is about the future, whatever the tense of its verbs.
    """
    if not TELLS_DAY.search(text):
        return text, None
    moved = bool(TO_A_DAY.search(text))
    ahead = ahead or moved
    out, at = "", 0
    days: list[When] = []
    # A day that the sentence begins with goes with the verb behind it: "On Monday I booked a test for 2 December".
    lead = begins("adverbial", text)
    meant_ahead = ahead and not (lead and TELLS_DAY.search(lead[0]))
    for when in resolve_dates(f"will {text}" if meant_ahead else text, said, ahead=moved):
        start = text.find(when.phrase, at)
        if start < 0 or (is_yearly(text, start) and BIRTHDAY.fullmatch(when.phrase)):
            continue
        if when.phrase.isalpha() and any(
            map(IS_NAME.search, (text[:start], text[start + len(when.phrase) :]))
        ):
            continue
        if days and OR.fullmatch(text, at, start):  # "Thursday or Friday" is neither of the two
            one = days[-1]
            days[-1] = one._replace(start=min(one.start, when.start), end=max(one.end, when.end))
        elif when.start != when.end and when.end >= said and UP_TO.search(text[:start]):
            last = when.end if END.match(when.phrase) else when.start - timedelta(days=1)
            days.append(when._replace(start=last, end=last))
        elif when.start != when.end or not NOT_THE_DAY.search(text[:start]):
            days.append(when)
        out += text[at:start]
        written, at = in_words(when, out, text, start + len(when.phrase))
        if written != when.phrase:
            out = re.sub(r"\b(?:(?:on|at)\s+)?(?:the|this|that|on)\s+$", "", out, flags=re.I)
        out += written
    return out + text[at:], event_of(days, said, ahead, bool(ARRANGED.search(text)))


def without_days(text: str, said: date) -> str:
    """*text* without the days that it names and the preposition before each."""
    at = 0
    for when in resolve_dates(text, said):
        start = text.find(when.phrase, at)
        at = len(BEFORE.sub("", text[:start]).rstrip())
        text = text[:at] + text[start + len(when.phrase) :]
    return text


def is_yearly(text: str, at: int) -> bool:
    """Whether the day at *at* comes every year: a birthday, unless the text tells of one celebration."""
    return bool(BORN.search(text) or (YEARLY.search(text) and tense_of(text, at, at) != "behind"))


def event_of(days: list[When], said: date, ahead: bool, arranged: bool = False) -> str | None:
    """
    The first of *days* that can be the event's; for a plan, one that has not passed. A span of more than a year is not
    an event. *arranged*: the sentence says that something was booked or the like; its own day, if ahead, is the event.
    """
    days = [d for d in days if (d.end - d.start).days <= 366]
    if arranged and (to_come := [d for d in days if d.start > said]):
        days = to_come
    elif ahead:
        days = [d for d in days if d.end >= said]
    if not days:
        return None
    day = days[0]
    return f"{day.start}" if day.start == day.end else f"{day.start}..{day.end}"


def in_words(when: When, out: str, text: str, end: int) -> tuple[str, int]:
    """
    The date that stands for the phrase which ends at *end*, and where *text* goes on. *out* is what stands before it.
    """
    plain, preposition = dates_in_words(when)
    if plain == when.phrase:
        return plain, end
    if text.startswith("'s", end):
        return f"{when.phrase}'s ({plain})", end + 2
    found = BEFORE.search(out)
    before = found[1].lower() if found else ""
    if before == "to" and not MOVED.search(out):  # "a parade I went to a few weeks ago"
        before = ""
    if before in LAST_DAY and preposition == "between":
        plain = f"{when.end}"
    if before == "before" and preposition == "between":
        plain = f"{when.end if END.match(when.phrase) else when.start}"
    if before in ("from", "for") and preposition == "between":
        plain = plain.replace(" and ", " to ")
    if before in ("in", "during") and preposition == "between":
        plain = "the days from " + plain.replace(" and ", " to ")
    part = PART_OF_DAY.match(text, end) if preposition == "on" else None
    if hour := part or re.search(r"(morning|afternoon|evening|night)$", when.phrase, re.I):
        name = "evening" if when.phrase.lower() == "tonight" else hour[1].lower()
        plain += " at night" if name == "night" else f" in the {name}"
    if before in ("", "on") or (before == "at" and found and found[2]):
        plain = f"{preposition} {plain}"
    return plain, part.end() if part else end


def dates_in_words(when: When) -> tuple[str, str]:
    """The days of *when* in writing, and the preposition that goes with them."""
    start, end, phrase = when
    n = (end - start).days + 1
    season = re.search(r"\b(spring|summer|autumn|fall|winter)\b", phrase, re.I)
    if n == 1:
        return str(start), "on"
    if two := re.search(r"\b(?:(to|through|until|till)|and|or)\b", phrase, re.I):
        return f"{start} {'and' if two[1] else two[0]} {end}", "between" if two[1] else "on"
    if season:
        return f"the {season[1].lower()} of {start.year}", "in"
    if re.search(r"weekend", phrase, re.I) and n == 2:
        return f"the weekend of {start}", "on"
    if n == 7 and start.weekday() == 0:
        return f"the week of {start}", "in"
    if (start.day, (end + timedelta(days=1)).day) == (1, 1):
        if re.search(r"\bq[1-4]\b|quarter", phrase, re.I):
            return f"Q{(start.month + 2) // 3} {start.year}", "in"
        if n <= 31:
            return f"{MONTHS[start.month - 1].title()} {start.year}", "in"
        if (start.month, end.month) == (1, 12):
            return (
                (f"{start.year}", "in")
                if start.year == end.year
                else (f"{start.year} and {end.year}", "between")
            )
    return f"{start} and {end}", "between"


# --- the third person

QUOTED = re.compile(r'("[^"]*")')
CONTRACTED = {"m": "am", "ve": "have", "d": "would", "ll": "will", "re": "are"}
PRONOUN_PATTERN = (
    r"\b(?P<word>I'm|I've|I'd|I'll|I|we're|we've|we'd|we'll|we|my|mine|me|myself|our|ours|us|ourselves"
    r"|you're|you've|you'd|you'll|your|yours|yourself|you)(?![\w'])(?P<adverbs>(?:\s+(?:<adverb>))*)(?P<next>\s+[a-z]+(?:'t)?)?"
)
SINGULAR = {"am": "is", "are": "is", "have": "has", "do": "does", "were": "was", "go": "goes"} | {
    "don't": "doesn't", "haven't": "hasn't", "aren't": "isn't", "weren't": "wasn't",
}  # fmt: skip
PLURAL = {
    "am": "are",
    "is": "are",
    "was": "were",
    "has": "have",
    "does": "do",
    "doesn't": "don't",
    "wasn't": "weren't",
}
POSSESSIVES = {"my": "their", "our": "their", "mine": "theirs", "ours": "theirs", "me": "them", "us": "them"}
ANYONE = re.compile(  # "when you love someone" is about no one in particular
    r"\b(?:when|if|how|what|where|once|that|because|as|whatever|whenever|before|after|thank|know)\s+$", re.I
)
SECOND_VERB = re.compile(  # "wakes up at six and run …", and no noun: "tea and run" would be one
    r"^([^,.;]*? and (?:then |often |usually |sometimes )?)([a-z]+)"
    r"(?= (?:an?|the|my|their|his|her|up|to|in|on|at|with|for|it|them|\d|\w+ing)\b)"
)
# the verb beside it may depend on it
TAKES_A_VERB = frozenset(("want", "need", "hope", "have", "plan", "like"))


@cache
def pronoun() -> re.Pattern[str]:
    return re.compile(PRONOUN_PATTERN.replace("<adverb>", "|".join(word_lists()["words"]["adverb"])), re.I)


def in_third_person(text: str, who: str, whom: str) -> str:
    """
    *text*, said by *who* to *whom*, in the third person: by name first, then as "they".

    *whom* "" leaves "you" alone. What stands in quotation marks stays as it is.
    """
    retold = ThirdPerson(who, whom)
    told = "".join(
        part if part.startswith('"') else pronoun().sub(retold.replaced, part)
        for part in QUOTED.split(with_company_named(text, who))
    )
    return SECOND_VERB.sub(lambda m: m[1] + singular(m[2]), told, count=1) if retold.present else told


def with_company_named(text: str, who: str) -> str:
    """ "My wife and I went" → "Maya and their wife went"."""
    text = re.sub(r"^me and (my \w+|[A-Z]\w+)\b", r"\1 and I", text, flags=re.I)
    both = re.match(r"(my |our )?(\w+(?: [A-Z]\w+)?) and I\b", text, re.I)
    return f"{who} and {'their ' if both[1] else ''}{both[2]}{text[both.end() :]}" if both else text


class ThirdPerson:
    """One sentence while it is put into the third person, and who was named so far."""

    def __init__(self, who: str, whom: str) -> None:
        self.who, self.whom = who, whom
        self.named = self.owned = self.addressed = False
        self.present = False  # the first verb stands in the present, and takes an -s; so does one beside it

    def replaced(self, m: re.Match[str]) -> str:
        word, adverbs, after = m["word"].lower(), m["adverbs"], m["next"] or ""
        if word.startswith("you"):
            return self.you(m, word, adverbs, after)
        if word in ("myself", "ourselves"):
            return f"themselves{adverbs}{after}"
        if word in POSSESSIVES:
            return self.object(word) + adverbs + after
        verb, rest = finite(word, after)
        if self.named:
            return "they" + placed_after(PLURAL.get(verb, verb), adverbs, word) + rest
        self.named = True
        if word.startswith("we"):
            return f"{self.who} and others" + placed_after(PLURAL.get(verb, verb), adverbs, word) + rest
        told = singular(verb, adverbs)
        self.present = told != verb and verb in bases() - TAKES_A_VERB
        return self.who + placed_after(told, adverbs, word) + rest

    def object(self, word: str) -> str:
        """ "me", "my" and the like."""
        owner = word not in ("me", "us")
        if self.named or (owner and self.owned):
            return POSSESSIVES[word]
        if owner:
            self.owned = True
            return f"{self.who}'s"
        self.named = True
        return self.who + (" and others" if word == "us" else "")

    def you(self, m: re.Match[str], word: str, adverbs: str, after: str) -> str:
        before, assistant = m.string[: m.start()], self.whom == "the assistant"
        if not self.whom or word == "yourself" or (ANYONE.search(before) and not assistant):
            return m[0]
        again, self.addressed = self.addressed, True
        if word in ("your", "yours"):
            return ("its" if again and assistant else f"{self.whom}'s") + adverbs + after
        verb, rest = finite(word, after)
        subject = not before or re.search(r"(?:,|\band|\bbut)\s*$", before)
        if (
            "'" in word
            or subject
            or (ANYONE.search(before) and verb and verb not in english_words("stop") - bases())
        ):
            return self.whom + placed_after(singular(verb, adverbs), adverbs, word) + rest
        return self.whom + adverbs + after


def finite(word: str, after: str) -> tuple[str, str]:
    """The verb in *after* that belongs to the pronoun *word*, and the rest of *after*."""
    _, contraction, short = word.partition("'")
    if not contraction:
        return after.strip().lower(), ""
    if short == "d" and (
        after.strip() in ("been", "better", "already", "never") or is_past(after.strip() or "-")
    ):
        return "had", after
    return CONTRACTED[short], after


def singular(verb: str, adverbs: str = "") -> str:
    """*verb* in the third person singular: "prefer" → "prefers"."""
    if verb in SINGULAR:
        return SINGULAR[verb]
    if (
        not verb
        or verb.endswith("n't")
        or (verb.endswith(("ing", "ly")) and verb not in bases())  # "going", and not "sing"
        or verb in listed("modal") | (english_words("stop") - bases())
    ):
        return verb
    if verb in listed("either"):
        if not re.search(r"always|usually|never|often", adverbs):
            return verb
    elif is_past(verb):
        return verb
    return re.sub(
        r"(?<=[^aeiou])ys$", "ies", verb + ("es" if re.search(r"(?:s|x|z|ch|sh|o)$", verb) else "s")
    )


def placed_after(verb: str, adverbs: str, word: str) -> str:
    """*verb* and its adverbs in the order they had: it stood before them if it was part of *word*, or a form of "be"."""
    if not verb:
        return adverbs
    return f" {verb}{adverbs}" if "'" in word or verb in ("is", "are") else f"{adverbs} {verb}"


def sentence(text: str) -> str:
    """*text* as a sentence: a capital, one full stop."""
    text = " ".join(text.split()).rstrip("!.…?;:,").rstrip("-– ")
    if not text:
        return ""
    stop = "" if text.endswith(("。", "！", '."', "”", "』", "」")) else "."
    return text[0].upper() + text[1:] + stop


# --- orders

WHILE = re.compile(
    r"(from now on|going forward|in (?:the )?future|by default|every time|each time|whenever|when)\b(.*?),\s*(.+)",
    re.I,
)


# Cue → how such an order begins, and what it says of who gives it.
ORDERS: dict[str, tuple[str, Callable[[re.Match[str]], str]]] = {
    "name": (
        r"(?:my (?:full |first |last )?name(?:'s| is)|(?:please )?call me|I go by|I'm called|I(?:'m| am)) (.+)",
        lambda m: f"My name is {re.split(' but |, ', m[1])[0]}",
    ),
    "remind": (
        r".*?(?:remind me|don't let me forget|don't forget|remember(?= to))\s{0,9}(to|that|about)?:?\s{0,9}(.+)",
        lambda m: f"I want to be reminded {m[1] or ('that' if states(m[2]) else 'of')} {m[2]}",
    ),
    "calendar": (
        r".{0,400}?\b(?:put|add|enter|note|block|mark) (.{1,400}?) (?:in|into|to|on) (?:my|the|our) \w+[:,]?\s*(.*)",
        lambda m: f"I have {m[1]} {m[2]}",
    ),
}


def order_as_wish(cue: str, text: str) -> str:
    """An order as a wish of its speaker: "Never use emojis" → "I want you never to use emojis"."""
    if cue in ORDERS:
        pattern, statement = ORDERS[cue]
        return statement(m) if (m := re.match(pattern, text, re.I)) else text
    if cue == "choice":
        return re.sub(r"^let's\b", "I decided to", text, flags=re.I)
    if cue not in ("standing", "style") or re.match(r"(?:I|we)\b", text, re.I):
        return text
    text = re.sub(r"^(?:(?:please|you should|you can|and)\s+)+", "", text.strip(), flags=re.I)
    if m := WHILE.match(text):
        text = f"{m[3].rstrip('.! ')} {m[1].lower()}{m[2]}"
    text = re.sub(r"^please\s+", "", text, flags=re.I)
    if m := re.match(r"(?:don't|do not)\s+(.+)", text, re.I):
        return f"I want you not to {m[1]}"
    if m := re.match(r"(always|never)\s+(.+)", text, re.I):
        return f"I want you {m[1].lower()} to {m[2]}"
    if m := re.match(r"no\s+(.+)", text, re.I):
        return f"I want no {m[1]}"
    return f"I want you to {text[:1].lower()}{text[1:]}"
