"""
A title for what a sentence says: a noun phrase of at most six words, which becomes the name of a file.

    "went to a support group yesterday" → "Support group"
    "take photos of the prints on Monday" → "Photos of prints"

Not here: whether there is a file of that name already (plan/drafts.py). One rule: where no phrase can be made, there
is no title.
"""

from __future__ import annotations

import re

from ..text.english import base_of, bases, is_past
from .cues import holds, language, listed, says_enough

TITLE_WORDS = 6
# Cues whose topic begins with a verb's base; may begin with a past form; may be what someone does not want.
BASE_FIRST = frozenset("plan must remind wish former choice standing style habit calendar project".split())
PAST_FIRST = frozenset(("past", "ongoing", "habit", "aside", ""))
REFUSED = frozenset(("choice", "prefer", "dislike", "style", "standing"))
NAMED = re.compile(r"\b(?:called|named|titled) \"?([^\",.;:!?]{2,40}?)(?=[\",.;:!?]|$| and | which | that )")
EMPTY_PHRASE = re.compile(  # "It's important to me to …", "I think that …"
    r"^(?:it|that|this|there|they|i|we)(?:'\w+)?(?: \w+){0,3}?(?: (?:to|for) me)? (?:to|that|how|when|for|of|about|by|with) "
    r"|^(?:i|we)(?:'\w+)? \w+ ",
    re.I,
)
KEPT_WORDS = re.compile(
    r"(?:keep|make) (?:your |the |all )*(\w+) ((?:\w+er )?\w+)(?: and \w+)?(?:,| from| when| please|[.!]*$)",
    re.I,
)
QUOTE = re.compile(r'"([^"]*)"')
PARTICLE = re.compile(
    r"(?:up|out|off|back|away|down|over|on|into|through|around|along)\b\s*(?:(?:to|for|with|of|at|in|from)\b\s*)?",
    re.I,
)
PLACE = re.compile(r"(?:back )?to (?=(?-i:[A-Z]))(.+)", re.I)


def title_of_topic(topic: str, cue: str = "") -> str:
    """The title of what *cue* found to be about *topic*, the words after it; "" if none can be made."""
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
    """*text* up to its first clause and of at most six words, without articles, and no small word at an end."""
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
    """*text* without what the pattern *what* stands for: fillers anywhere, a determiner at its beginning."""
    return " ".join(language("en").patterns[what].sub(" ", text).split())


def cut_at_clause(text: str) -> str:
    """*text* up to where a clause, or a second verb, begins."""
    m = holds("tail", text)
    text = text[: m.start()] if m else text
    verb = next((m for m in re.finditer(r" (?:and|or) (\w+) (?=\w)", text) if m[1].lower() in bases()), None)
    return text[: verb.start()] if verb else text


def gerund(verb: str) -> str:
    if verb.endswith("ing"):
        return verb
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    if verb.endswith("e") and not verb.endswith(("ee", "ye", "oe")) and verb != "be":
        return verb[:-1] + "ing"
    doubled = re.fullmatch(r"(?:qu|[^aeiou])*[aeiou][bdgmnprt]", verb) or verb.endswith(
        ("mit", "fer", "cur", "gin", "get")
    )
    return verb + (verb[-1] if doubled else "") + "ing"
