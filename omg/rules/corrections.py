"""Finds explicit corrections: "Correction: she lives in Tromsø, not Trondheim", "no, I meant Thursday".

The right value replaces the wrong value in the note. Nothing else in the note changes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from ..dates.days import span_text
from ..dates.rules import MOVED, When
from ..text.words import told_words
from .kinds import cue, holds, straight
from .quotes import in_brackets, named_days

MARKS = " .,;:!?\"'“”„«»()"
LONGEST_VALUE = 60  # characters of a wrong value


@dataclass(frozen=True, slots=True)
class Correction:
    """
    A correction from a person's message: *right* replaces *wrong* in a note.

    If the correction changes a day, *wrong* is "". *right* then replaces the words in the note that name the day of the
    event.
    """

    right: str
    wrong: str = ""
    day: When | None = None
    was: str | None = None  # the former event: March 16 in "on March 23 instead of March 16"
    told: frozenset[str] = frozenset()  # set together with `was`: the words of the sentence

    def applied(
        self, title: str, description: str, event: str | None, said: date, *, near: bool
    ) -> tuple[str, str, str | None] | None:
        """
        The title, description and event of a note after this correction; None if the correction is not about the
        note.

        *said*: the day on which the note was said. *near*: whether the note was said in the message of the
        correction, or in the message before.
        """
        if self.day is None:
            value = self.value_for(description)
            put = replaced_once(description, self.wrong, value)
            return (replaced_once(title, self.wrong, value) or title, put, event) if put else None
        was = named_days(description, said)
        bracket = re.compile(r" \([\d.-]+\)")
        stated = [d for d in was if not bracket.fullmatch(f" ({d.phrase})") or description[d.at - 1] != "("]
        meant = [d for d in stated if span_text(d.start, d.end) == event]
        about = near or bool(self.told & told_words(description))
        about = about and self.was in (None, event)
        if not about or len(meant) != 1:
            return None
        old = meant[0]
        end = m.end() if (m := bracket.match(description, old.after)) else old.after
        right = (
            self.right
            if str(self.day.start.year) in self.right
            else f"{self.right} ({in_brackets(self.day)})"
        )
        description = f"{description[: old.at]}{right}{description[end:]}"
        return title, description, span_text(self.day.start, self.day.end)

    def value_for(self, description: str) -> str:
        """
        Return the words of the correction that replace *wrong* in *description*.

        The word before *wrong*, such as "in", marks the place in the correction:
        - If the correction has this word, the words behind it are returned: "Tromsø" from "she lives in Tromsø".
        - Otherwise the last words of the correction are returned, as many words as *wrong* has.
        """
        at = description.casefold().find(self.wrong.casefold())
        before = description[:at].split()[-1:] if at > 0 else []
        told = self.right.split()
        places = [n for n, word in enumerate(told) if before and word.casefold() == before[0].casefold()]
        if places and places[-1] + 1 < len(told):
            return " ".join(told[places[-1] + 1 :])
        return " ".join(told[-len(self.wrong.split()) :])


def replaced_once(text: str, wrong: str, right: str) -> str:
    """*text* with *right* in place of *wrong*; "" unless *wrong* occurs in *text* exactly once, as whole words."""
    found = [*re.finditer(rf"(?<!\w){re.escape(wrong)}(?!\w)", text, re.I)]
    return f"{text[: found[0].start()]}{right}{text[found[0].end() :]}" if len(found) == 1 else ""


def correction_in(text: str, said: date) -> Correction | None:
    """
    The correction that *text* makes, or None. *text* opens with a word like "no", "correction" or "I meant", or it
    moves a day.
    """
    if made := moved_day(text, said):
        return made
    said_plainly = straight(text)
    days = named_days(said_plainly, said)
    says_so = re.compile(rf"{MOVED.pattern}|\b(?:{cue('right').pattern})\b", re.I)
    rest = says_so.sub("", without(said_plainly, days[0])) if len(days) == 1 else said_plainly
    if rest != said_plainly and says_so.search(said_plainly) and not told_words(rest):
        return Correction(days[0].phrase, day=days[0])  # "It was moved to 10 December", "Thursday, sorry!"
    opened = re.compile(rf"(?:(?:{cue('right').pattern})[,.:;!\s—–-]+)+", re.I)
    opener = opened.match(said_plainly)
    if not opener:
        return None
    rest = said_plainly[opener.end() :].strip(MARKS)
    nots = cue("not").pattern
    pair = re.match(
        rf"(?P<right>.+?),? (?:and )?(?:{nots}) (?P<wrong>[^,;]+)$|(?:{nots}) (?P<wrong2>[^,;]+?)(?:,| but) (?:but )?(?P<right2>.+)$",
        rest,
        re.I,
    )
    wrong = (pair["wrong"] or pair["wrong2"] or "").strip(MARKS) if pair else ""
    right = (pair["right"] or pair["right2"] or "").strip(MARKS) if pair else rest
    days = named_days(right, said)
    if len(days) == 1 and not told_words(without(right, days[0]).partition(",")[0]):
        return Correction(days[0].phrase, day=days[0])
    return Correction(right, wrong) if 0 < len(wrong) <= LONGEST_VALUE and right else None


def without(text: str, day: When) -> str:
    return text[: day.at] + text[day.after :]


def moved_day(text: str, said: date) -> Correction | None:
    """
    The correction of a day: "the sketches are due on March 23 now instead of March 16", "it's the 15th, not the 1st".
    """
    if (
        m := holds("instead", text) or re.search(rf",? (?:{cue('not').pattern}) ", straight(text), re.I)
    ) is None:
        return None
    days = named_days(text, said)
    new, old = ([d for d in days if (d.at < m.start()) is before] for before in (True, False))
    if len(new) != 1 or len(old) != 1:
        return None
    return Correction(
        new[0].phrase, day=new[0], was=span_text(old[0].start, old[0].end), told=told_words(text)
    )
