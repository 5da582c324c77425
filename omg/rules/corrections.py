"""
Reads corrections, and finds what they put right.

A contrast names the wrong value: "Actually she lives in Tromsø, not Trondheim." It belongs to a note that has the wrong
value and the words beside it. A short correction names none: "No, it is 555-4321.", "Sorry, 600 euros for 50 guests." It
belongs to the statement before: a number replaces the number there, a name the name, a word the word. Where the statement
has several of the kind, or none, nothing tells which is meant, and the caller keeps the words as they are.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from difflib import SequenceMatcher

import regex

from ..text.words import (
    ISO_DAY,
    WORD_OR_NUMBER,
    base_of,
    bases,
    denies,
    english_words,
    is_past,
    told_words,
    words_in,
    written_words,
)
from .assertions import CLOCK, DAY_WORDS, SUBJECT, begins, listed, states, without_lead_in, written_sentences
from .wording import in_third_person, with_absolute_dates

LONGEST_VALUE = 4  # words; what is longer is a statement
SHORTEST = 3  # words of a sentence: a shorter text is only part of one
NUMBER = re.compile(r"(?<![\w.+-])\+?\d(?:[\d.,:/ -]{0,30}\d)?[a-z%]{0,3}(?!\w)")
NAME = regex.compile(r"\p{Lu}[\w.'’-]*(?:\s\p{Lu}[\w.'’-]*){0,3}")
DAY = re.compile(rf"{ISO_DAY.pattern}|{DAY_WORDS.pattern}", re.I)
IS = frozenset(("is", "are", "was", "were"))
Put = tuple[slice, str]  # where in a text something is wrong, and what is to stand there


def corrected_text(text: str, puts: Sequence[Put]) -> str:
    for place, right in sorted(puts, key=lambda put: -put[0].start):
        text = f"{text[: place.start]}{right}{text[place.stop :]}"
    return text


# --- A contrast: "My dog is called Bjarne, not Bruno.", "Not 14:20, the flight leaves at 15:40."


@dataclass(frozen=True, slots=True)
class Contrast:
    clause: str  # "she lives in Tromsø": ends with the value that is right
    wrong: str  # the value that is not so
    after: str = ""  # the small word before the wrong value, where it is named: "not in Kiel"
    framed: bool = False  # with "no," or "I meant" before it

    def applied(self, text: str, title: str, who: str, *, alone: bool) -> list[Put] | None:
        """
        What it changes in *text*, a note of what *who* said; None where the note is about something else. *alone*: whether
        the two values are enough, without another word of the note: "it's Tromsø, not Trondheim".
        """
        places = list(value_places(self.wrong, text))
        if len(places) != 1 or not may_follow(self.after, kind_of(self.wrong), text, places[0]):
            return None
        place = places[0]
        words = without_overlap(self.clause.split(), text[place.stop :].strip(" .!").split())
        size, when, tail = len(self.wrong.split()), when_kind(self.wrong), ""
        if when:  # "on 5 December at 18:00, not 4 December": what else is new stands behind it
            ends = (n for n in range(len(words), 0, -1) if when_kind(" ".join(words[:n][-size:])) == when)
            end = next(ends, len(words))
            words, tail = words[:end], " ".join(words[end:])
        if kind_of(self.wrong) == "name":
            sizes = range(min(LONGEST_VALUE, len(words)), 0, -1)
            size = next((n for n in sizes if kind_of(" ".join(words[-n:])) == "name"), size)
        head, right = words[:-size], " ".join(words[-size:])
        if kind_of(right) != kind_of(self.wrong) or right.lower() == self.wrong.lower():
            return None
        if when_kind(right) != when and not (when == "clock" and right.isdigit()):  # "at 9, not 8:30"
            return None
        told = told_words(" ".join(head))
        known = told_words(f"{title} {text[: place.start]} {text[place.stop :]}")
        if not (told or alone) or not told <= known or not same_subject(head, text, who):
            return None
        if not tail:
            return [(place, right)]
        new, other = small_word_apart(tail)[1], CLOCK if when == "day" else ISO_DAY
        was = [slice(*m.span()) for m in other.finditer(text)]
        if not other.fullmatch(new) or len(was) > 1 or (not was and when == "clock"):
            return None
        return [(place, right), (was[0], new)] if was else [(place, f"{right} {tail}")]


def ended_as_contrast(said: str) -> str:
    """ "My dentist isn't Dr Lund any more, it's Dr Berg" as "My dentist is now Dr Berg, not Dr Lund"; else *said*."""
    m = begins("ended", said)
    verb = m and (m["be"] or m["new"])
    if not m or not verb or (m["past"] is None and not are_alike(m["wrong"], m["right"])):
        return said
    now = " now" if m["be"] and m["past"] is not None else ""
    place = "place " if m["verb"] == "take" else ""
    return f"{m['subject']} {verb}{now} {m['right']}, not {m['wrong'].removeprefix(place)}"


def are_alike(wrong: str, right: str) -> bool:
    """Whether both are days, values of a kind, or what becomes of a plan: "cancelled" and "moved to Thursday"."""
    kinds = {kind_of(small_word_apart(v)[1]) for v in (wrong, right)}
    both = all(DAY_WORDS.search(v) or is_past(v.split()[0]) for v in (wrong, right))
    return both or kinds in ({"number"}, {"name"})


def contrast(said: str) -> Contrast | None:
    """The contrast that *said* is; None for any other sentence."""
    m = begins("correction", said)
    opener = (m and m["opener"]) or ""
    rest = said[len(opener) :].strip(" .!,;:-")
    framed = begins("put_right", rest)
    meant = bool(framed and framed["meant"])
    value = framed["value"] if framed and meant else rest
    head, comma, tail = value.rpartition(", ")
    pair = begins("not_but", head if comma and begins("reaction", tail) else value)  # ", sorry"
    if pair is None or said.endswith("?") or begins("maybe", rest):
        return None
    clause, wrong = ((pair[name] or pair[f"{name}2"]).strip(" ,") for name in ("right", "wrong"))
    after, wrong = small_word_apart(wrong)
    if not kind_of(wrong) or denies(clause):
        return None
    return Contrast(clause, wrong, after, meant or bool(opener))


def value_places(value: str, text: str) -> Iterator[slice]:
    """Where *value* stands in *text*, and not as a part of a longer word, number or date."""
    found = re.finditer(rf"(?<![\w+:-]){re.escape(value)}(?![\w:-]|[.,]\d)", text, re.I)
    yield from (slice(*m.span()) for m in found)


def without_overlap(words: list[str], follows: list[str]) -> list[str]:
    """*words* without those at their end that a note has behind the wrong value, too: "it's 2 dogs, not 3"."""
    for n in range(min(len(words) - 1, len(follows)), 0, -1):
        if [w.lower() for w in words[-n:]] == [w.lower().strip(".,;!") for w in follows[:n]]:
            return words[:-n]
    return words


def same_subject(head: list[str], text: str, who: str) -> bool:
    """Whether a clause that begins with *head*, and is said by *who*, may be about whom the note *text* is about."""
    first = re.split(r"['’]", head[0].lower())[0] if head else ""
    about_who = re.search(rf"\b{re.escape(who)}(?!['’]s)\b", text, re.I)
    match first:
        case "i" | "we":
            return bool(about_who)
        case "my" | "our":
            return who.lower() in text.lower()
        case "he" | "she" | "they":
            return not (about_who and about_who.start() == 0)
        case "his" | "her" | "their":  # somebody else's
            others = re.sub(rf"{re.escape(who)}['’]s ", "", text, flags=re.I)
            return bool(re.search(r"['’]s |\b(?:his|her)\b", others))
    return True


def relocated(now: str, text: str, who: str) -> list[Put] | None:
    """What "The user's office moved to Linz" changes in the note *text*, "The user's office is in Graz"; None for another note."""
    new, old = begins("place", now), begins("place", text)
    if not new or not old or not new["moved"] or not place_size(new["place"]):
        return None
    subject, other = (written_words(m["subject"]) - written_words(who) for m in (new, old))
    end = old.start("place") + place_size(old["place"])
    if not subject or subject != other or end == old.start("place"):
        return None
    return [(slice(old.end("subject") + 1, end), now[new.end("subject") + 1 :].rstrip("."))]


def place_size(text: str) -> int:
    """How many characters of *text* name a place: a name, a number or "the ground floor"; 0 if it begins with none."""
    words = text.rstrip(".").split()[:LONGEST_VALUE]
    found = (" ".join(words[:n]).rstrip(",") for n in range(len(words), 0, -1))
    places = (p for p in found if kind_of(p) and (kind_of(p) != "word" or without_article(p) != p))
    return 0 if ISO_DAY.match(text) else len(next(places, ""))


# --- What of a sentence changes: "dentist at 15:30" says that of "the dentist appointment is on Friday at 15:00".


QUOTED = re.compile(r"[\"“”„«»]|(?<!\w)['‘`]")
LEFT_OUT = frozenset(("a", "an", "the", "now")) | IS  # by whom says only what changes
OBJECTION = re.compile(
    r"(?:that|it)(?:(?:['’]s|\s(?:is|was))\s(?:wrong|incorrect|false|outdated)|(?:['’]s\snot|\s(?:isn['’]t|wasn['’]t|(?:is|was)\snot))"
    r"\s(?:right|true|correct))\s*[,.;–—-]+\s*",
    re.I,
)
IT = re.compile(r"^it(?:['’]s)?\s", re.I)


def says_change(said: str, was: str, new: str, day: date, *, alone: bool) -> bool:
    """
    Whether a sentence of *said*, of that *day*, says what makes *new* of *was*, and nothing else. Its words stand in *new*, in
    their order; those that *was* does not have are all among them. It also has a word that both have, or says what is not so.
    "I" and "my" may be "the user" there. An "it" that begins the message may be what *was* is about, where *said* is *alone*:
    nothing was passed on with it.
    A question, a quotation, a "maybe" and a bare "yes" say nothing. What is denied stays denied, and no word goes
    for which none comes, unless the sentence names it as wrong.
    """
    before, after = (tokens_of(text, day) for text in (was, new))
    blocks = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    gone = [w for kind, i, j, _, _ in blocks if kind != "equal" for w in before[i:j]]
    come = [w for kind, _, _, i, j in blocks if kind != "equal" for w in after[i:j]]
    if not come or denies(was) != denies(new):
        return False
    kept = told_words(" ".join(w for w in after if w not in come))
    sentences = list(written_sentences(said))
    firsts = {s for n, s in enumerate(sentences) if alone and all(map(only_objects, sentences[:n]))}
    return any(
        sentence_says(form, after=after, gone=gone, come=come, kept=kept, day=day, denied=denies(new))
        for sentence in sentences
        if not sentence.rstrip().endswith(("?", "？", "؟")) and not QUOTED.search(sentence)
        for told in (sentence, *([without_it(sentence, was)] if sentence in firsts else []))
        for form in (told, in_third_person(told, "the user", "the assistant"))
    )


def without_objection(said: str) -> str:
    """*said* without what only says that something is wrong: "No, that's wrong, it closes at 15:30" is "it closes at 15:30"."""
    m = begins("correction", said)
    rest = said[len(m["opener"]) :] if m and m["opener"] else without_lead_in(said)
    found = OBJECTION.match(rest)
    return rest[found.end() :] if found else rest


def only_objects(said: str) -> bool:
    """Whether *said* is "No." or "That's wrong." and nothing else."""
    return without_objection(f"{said.rstrip('.!')}, x") == "x"


def without_it(said: str, was: str) -> str:
    """*said* without the "it" at its beginning, which may be what the note *was* is about, and no person."""
    rest = without_objection(said)
    about_user = re.match(r"(?:the user|I|we)\b(?!['’]s)", was, re.I)
    return said if about_user else IT.sub("", rest, count=1)


def sentence_says(
    said: str,
    *,
    after: list[str],
    gone: list[str],
    come: list[str],
    kept: frozenset[str],
    day: date,
    denied: bool,
) -> bool:
    text = without_lead_in(said)
    if begins("question", text) or begins("maybe", text):
        return False
    made = contrast(said)
    # behind an "on", which a day would be given else
    named = tokens_of(f"on {made.wrong}", day)[1:] if made else []
    wrong = [w for w in named if w not in LEFT_OUT]
    clause = made.clause if made else text
    words = tokens_of(clause, day)
    # "moved to 15:30"
    moved = [
        n
        for n, (a, b, c) in enumerate(zip(words, words[1:], words[2:], strict=False))
        if is_past(a) and b == "to" and c in come
    ]
    words = [w for n, w in enumerate(words) if n not in moved and n - 1 not in moved]
    # Where all that goes is named as wrong, "my sister" may be "Jonas's sister" there.
    left_out = LEFT_OUT | {"my", "our"} if wrong and set(gone) <= set(wrong) else LEFT_OUT
    told = [w for w in words if w not in left_out or w in come]
    return (
        denies(clause) == denied
        and stands_in_order(told, after, come)
        and set(come) <= set(told)
        and set(wrong) <= set(gone)
        and len(telling(gone) - set(wrong)) <= len(telling(come))
        and bool(wrong or told_words(" ".join(told)) & kept)
    )


def stands_in_order(told: Sequence[str], after: list[str], come: Collection[str]) -> bool:
    """
    Whether the words *told* stand in *after* in their order, and between one of *come* and the word before it there is no
    other value of its shape and no "and": "open from 9:30" does not say "open from 8:00 to 9:30".
    """
    at = 0
    for n, word in enumerate(told):
        if word not in after[at:]:
            return False
        place = after.index(word, at)
        skipped = after[at:place] if n and word in come else []
        if any(w in ("and", "but", "or") or shape_of(w) == shape_of(word) != "word" for w in skipped):
            return False
        at = place + 1
    return True


def shape_of(token: str) -> str:
    if not token[0].isdigit():
        return "word"
    return "clock" if ":" in token else "day" if len(token) == 8 else "number"


def tokens_of(text: str, day: date) -> list[str]:
    """The words of *text* in lower case; a day is one of them, in digits."""
    dated, _ = with_absolute_dates(text, day, ahead=True)
    digits = ISO_DAY.sub(lambda m: m[0].replace("-", ""), dated)
    return [m[0].lower() for m in WORD_OR_NUMBER.finditer(digits)]


def telling(words: Sequence[str]) -> set[str]:
    return set(words) - english_words("stop")


def is_same_but_for_value(was: str, new: str, day: date) -> bool:
    """Whether one stretch of *was* is another in *new*, and the rest is the same: "I live in Lisbon", "I live in Porto"."""
    before, after = (tokens_of(text, day) for text in (was, new))
    blocks = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    same = sum(end - at for kind, at, end, *_ in blocks if kind == "equal")
    changed = [(before[i:j], after[k:end]) for kind, i, j, k, end in blocks if kind != "equal"]
    if len(changed) != 1 or same < SHORTEST or not all(changed[0]):
        return False
    # Numbers and names alone: "I have a question" is no other allergy.
    return all(w[0].isdigit() or w.title() in f"{was} {new}" for words in changed[0] for w in words)


def put_in_place(value: str, text: str) -> str | None:
    """*text* with *value*, such as "15:30" or "in Tromsø", in place of the one of its kind; None where not exactly one is there."""
    after, right = small_word_apart(value.strip(" .!"))
    if when := when_kind(right):
        found = (CLOCK if when == "clock" else DAY).finditer(text)
        places = [slice(*m.span()) for m in found]
        puts = [(places[0], right)] if len(places) == 1 else None
    else:
        puts = ShortCorrection(right, kind_of(right), meant=True, after=after).applied(text)
    return corrected_text(text, puts) if puts else None


def is_fragment(text: str, was: str) -> bool:
    """Whether *text* is a value or so short that it is only part of a sentence, and *was*, in whose place it is to stand, is more."""
    words = len(text.split())
    short = text.isascii() and words < SHORTEST
    value = not SUBJECT.search(text) and kind_of(small_word_apart(text.strip(" .!"))[1])
    return words < len(was.split()) and bool(short or value)


# --- A short correction: "No, it is 555-4321.", "I meant Ola."


@dataclass(frozen=True, slots=True)
class ShortCorrection:
    right: str
    kind: str  # of `right`: "number", "numbers", "name" or "word"
    meant: bool = False  # "I meant …" can be nothing else
    verb: str = ""  # "it costs …": that of the statement before
    after: str = ""  # "in Bodø": the word that the value follows there, too
    bare: bool = False  # a word alone: "No, blue."
    wrong: frozenset[str] = frozenset()  # numbers: "600 for 50, not 500 for 40"

    def applied(self, text: str) -> list[Put] | None:
        """What it changes in *text*; None where that cannot be told."""
        if self.verb and self.verb not in text.lower().split():
            return None
        if self.kind == "numbers":
            return self.numbers_applied(text)
        places = list(self.places(text))
        if len(places) != 1:
            return None
        right, place = self.right if self.kind == "word" else without_article(self.right), places[0]
        if self.kind == "number" and not DAY_WORDS.fullmatch(right):
            # "5,400 NOK" for "4,500 NOK": the same unit
            unit = NUMBER.sub("", right).lower().split()
            if not set(unit) <= set(text.lower().rstrip(".").split()):
                return None
            found = NUMBER.search(right)
            right = found[0] if found else right
        return None if text[place] == right else [(place, right)]

    def numbers_applied(self, text: str) -> list[Put] | None:
        """ "8 people at 20:00": its numbers replace those of *text* in their order, if its words stand in *text* in theirs."""
        there = [slice(*m.span()) for m in NUMBER.finditer(text) if not ISO_DAY.search(m[0])]
        right, rest = NUMBER.findall(self.right), iter(words_in(NUMBER.sub(" ", text).lower()))
        in_order = all(word in rest for word in words_in(NUMBER.sub(" ", self.right).lower()))
        if not in_order or len(right) != len(there) or not self.wrong <= {text[place] for place in there}:
            return None
        return list(zip(there, right, strict=True))

    def places(self, text: str) -> Iterator[slice]:
        """Where in *text* stands what may be wrong."""
        yield from (p for p in self.places_of_kind(text) if may_follow(self.after, self.kind, text, p))

    def places_of_kind(self, text: str) -> Iterator[slice]:
        if self.kind == "number":
            found = DAY_WORDS if DAY_WORDS.fullmatch(self.right) else NUMBER
            yield from (slice(*m.span()) for m in found.finditer(text) if not ISO_DAY.search(m[0]))
        elif self.kind == "name":
            article = without_article(self.right) != self.right
            for m in NAME.finditer(text):
                before = word_before(text, m.start())
                if before in listed("articles") if article else leads_to_value(before):
                    yield slice(m.start(), m.start() + len(m[0].rstrip(".")))
        elif place := self.place_of_word(text.rstrip(".")):
            yield place

    def place_of_word(self, text: str) -> slice | None:
        """The one or two words that *text* ends with, if they stand behind an article where what is right does."""
        words = text.split(" ")
        last = max((n for n, word in enumerate(words[:-1]) if leads_to_value(word.lower())), default=0)
        value, article = words[last + 1 :], without_article(self.right) != self.right
        behind_article = words[last].lower() in listed("articles")
        verb = words[last - 1 if behind_article else last]
        told = self.meant or verb in IS
        if self.bare:
            told = len(value) == len(without_article(self.right).split())
        if not last or kind_of(" ".join(value)) != "word" or behind_article != article or not told:
            return None
        start = last if behind_article else last + 1
        return slice(len(text) - len(" ".join(words[start:])), len(text))


def word_before(text: str, at: int) -> str:
    return text[:at].rstrip(" ").rpartition(" ")[2].lower()


def may_follow(small: str, kind: str, text: str, place: slice) -> bool:
    """Whether *text* has the word *small* before the value at *place*; "on 5 May" is also "their birthday is 5 May"."""
    before = word_before(text, place.start)
    return small in ("", before) or (kind == "number" and before in IS)


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
    right = framed["value"].strip(" .!,;:-")
    pair = begins("not_but", right)
    wrong = frozenset(NUMBER.findall(pair["wrong2"] or "")) if pair else frozenset()
    right = pair["right2"] if pair and len(wrong) > 1 else right
    after, right = small_word_apart(right)
    kind = "numbers" if len(NUMBER.findall(right)) > 1 else kind_of(right)
    if not kind or begins("reaction", right) or begins("agreed", right) or states(framed["value"]):
        return None
    bare = kind == "word" and not told
    if bare and not is_value(right):
        return None
    verb = (framed["verb"] or "").lower()
    return ShortCorrection(right.strip(), kind, meant, "" if verb in IS else verb, after, bare, wrong)


def is_value(words: str) -> bool:
    """Whether *words* behind "no," may be a value, and not "no, wait" or "no, seriously"."""
    return not any(word in bases() or word.endswith("ly") for word in words.lower().split())


def small_word_apart(value: str) -> tuple[str, str]:
    """ "in Kiel" as "in" and "Kiel"; "" and *value* where it begins with no small word."""
    first, _, rest = value.partition(" ")
    small = bool(rest) and first.lower() in english_words("stop") - listed("articles")
    return (first.lower(), rest) if small else ("", value)


def kind_of(value: str) -> str:
    """ "number", "name" or "word"; "" for what is more than a value."""
    words = without_article(value).split()
    number = NUMBER.search(value)
    idle = (
        w.lower() in english_words("stop") for w in words if w.islower() or not number
    )  # "3 May" is a day
    if not 1 <= len(words) <= LONGEST_VALUE or any(idle):
        return ""
    if number:
        return "number"
    if NAME.fullmatch(" ".join(words)):
        return "name"
    return "word" if len(words) <= 2 and all(w.islower() and w.isalpha() for w in words) else ""


def when_kind(value: str) -> str:
    """ "day" or "clock"; "" for what is neither."""
    is_day = ISO_DAY.fullmatch(value) or DAY_WORDS.fullmatch(value)
    return "day" if is_day else "clock" if CLOCK.fullmatch(value) else ""


def without_article(value: str) -> str:
    first, _, rest = value.partition(" ")
    return rest if rest and first.lower() in listed("articles") else value
