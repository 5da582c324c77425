"""
Reads short corrections, and finds what they put right.

"No, it is 555-4321.", "Wait, not nuts, shellfish.", "I meant Ola, not Olav.": a number takes the place of the number in
the statement before, a name that of the name, a word that of the word. Where the statement has several of the kind, or
none, nothing tells which is meant, and the caller keeps the words as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import regex

from ..text.words import base_of, bases, english_words, is_past
from .assertions import begins, listed

LONGEST_VALUE = 4  # words; what is longer is a statement
NUMBER = re.compile(r"(?<![\w.+-])\+?\d(?:[\d.,:/ -]{0,30}\d)?[a-z%]{0,3}(?!\w)")
ISO_DAY = re.compile(r"\d{4}-\d\d")
NAME = regex.compile(r"\p{Lu}[\w.'’-]*(?:\s\p{Lu}[\w.'’-]*){0,3}")
IS = frozenset(("is", "are", "was", "were"))


@dataclass(frozen=True, slots=True)
class ShortCorrection:
    right: str
    kind: str  # of `right`: "number", "name" or "word"
    wrong: str = ""  # what it says is not so
    meant: bool = False  # "I meant …" can be nothing else
    verb: str = ""  # "it costs …": that of the statement before
    after: str = ""  # "in Bodø": the word that the value follows there, too

    def applied(self, text: str) -> tuple[slice, str] | None:
        """Where in *text* something is wrong, and what is to stand there; None where that cannot be told."""
        if self.verb and self.verb not in text.lower().split():
            return None
        places = list(self.places(text))
        if len(places) != 1:
            return None
        right, place = self.right, places[0]
        if self.kind == "number" and not self.wrong:
            # "5,400 NOK" for "4,500 NOK": the same unit
            unit = NUMBER.sub("", right).lower().split()
            if not set(unit) <= set(text.lower().rstrip(".").split()):
                return None
            found = NUMBER.search(right)
            right = found[0] if found else right
        return None if text[place] == right else (place, right)

    def places(self, text: str) -> Iterator[slice]:
        """Where in *text* stands what may be wrong."""
        for place in self.places_of_kind(text):
            if self.after in ("", word_before(text, place.start)):
                yield place

    def places_of_kind(self, text: str) -> Iterator[slice]:
        if self.wrong:
            said = re.finditer(rf"(?<!\w){re.escape(self.wrong)}(?!\w)", text, re.I)
            yield from (slice(*m.span()) for m in said)
        elif self.kind == "number":
            yield from (slice(*m.span()) for m in NUMBER.finditer(text) if not ISO_DAY.search(m[0]))
        elif self.kind == "name":
            for m in NAME.finditer(text):
                if leads_to_value(word_before(text, m.start())):
                    yield slice(m.start(), m.start() + len(m[0].rstrip(".")))
        elif place := self.place_of_word(text.rstrip(".")):
            yield place

    def place_of_word(self, text: str) -> slice | None:
        """The one or two words that *text* ends with, if they stand behind an article where what is right does."""
        words = text.split(" ")
        last = max((n for n, word in enumerate(words[:-1]) if leads_to_value(word.lower())), default=0)
        value = words[last + 1 :]
        behind_article = words[last].lower() in listed("articles")
        verb = words[last - 1 if behind_article else last]
        if not last or len(value) > 2 or not all(word.islower() and word.isalpha() for word in value):
            return None
        if behind_article != (without_article(self.right) != self.right) or not (self.meant or verb in IS):
            return None
        start = last if behind_article else last + 1
        return slice(len(text) - len(" ".join(words[start:])), len(text))


def word_before(text: str, at: int) -> str:
    return text[:at].rstrip(" ").rpartition(" ")[2].lower()


def leads_to_value(word: str) -> bool:
    """Whether a value may follow *word*: "in Oslo", "is Dr. Lund", "called Olav", and not "sister Astrid"."""
    return word in english_words("stop") | bases() or is_past(word) or base_of(word[:-1]) in bases()


def short_correction(said: str) -> ShortCorrection | None:
    """What *said* puts right; None if it is no correction, or one that is a statement itself."""
    m = begins("correction", said)
    if not m:
        return None
    opener = m["opener"] or ""
    framed = begins("put_right", said[len(opener) :].strip())
    if not framed:
        return None
    meant = bool(framed["meant"]) or "mean" in opener.lower()
    told = meant or bool(framed["it"])
    if not told and not opener.rstrip().endswith(tuple(",.:!;-")):  # "no sugar", "no 5 is open"
        return None
    value = framed["value"].strip(" .!,;:-")
    pair = begins("not_but", value)
    right = (pair and (pair["right"] or pair["right2"])) or value
    wrong = (pair and (pair["wrong"] or pair["wrong2"])) or ""
    after, _, rest = right.partition(" ")
    after = after.lower() if after.lower() in english_words("stop") - listed("articles") else ""
    right = rest if after else right
    kind = kind_of(right)
    if not kind or (wrong and kind_of(wrong) != kind) or begins("reaction", right) or begins("agreed", right):
        return None
    if kind == "word" and not (told or wrong):
        return None
    verb = (framed["verb"] or "").lower()
    return ShortCorrection(right.strip(), kind, wrong.strip(), meant, "" if verb in IS else verb, after)


def kind_of(value: str) -> str:
    """ "number", "name" or "word"; "" for what is more than a value."""
    words = without_article(value).split()
    if not 1 <= len(words) <= LONGEST_VALUE or any(w.lower() in english_words("stop") for w in words):
        return ""
    if NUMBER.search(value):
        return "number"
    if NAME.fullmatch(value):
        return "name"
    return "word" if len(words) <= 2 and all(w.islower() and w.isalpha() for w in words) else ""


def without_article(value: str) -> str:
    first, _, rest = value.partition(" ")
    return rest if rest and first.lower() in listed("articles") else value
