"""
How a conversation stands, as far as that rests on what was said in it, and what of it other conversations may see.

One rule: what a tool said sets nobody a task; another conversation sees only what the person themselves speaks of.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..text.sentences import split_sentences
from ..text.words import Words, told_words
from .judge import BETTER, FOLLOWS
from .sight import Sight
from .statements import proposal_in

HEARD = 0.34  # of a hint's words that were said in the conversation, if a tool was heard in it
SHARED = 0.5  # of the words of what others see that were said
HINT_PART = re.compile(r"(?<=;)\s{1,9}")


def hints_that_were_said(hints: Mapping[str, str], sight: Sight, before: str) -> dict[str, str]:
    """*hints* without what only a tool said. *before*: how the conversation stood until then."""
    if not sight.foreign:
        return dict(hints)
    said = Words(
        told_words(before).union(
            *map(told_words, sight.own.values()),
            *(told_words(m.text) for m in sight.messages if m.role == "assistant"),
        )
    )

    def stands(part: str) -> bool:
        words = told_words(part)
        if others_alone(words, said, sight):
            return False
        return len(words) < 2 or len(said.of(words)) >= HEARD * len(words)

    return {key: " ".join(filter(stands, parts_of(text))) for key, text in hints.items()}


def hints_for_others(hints: Mapping[str, str], sight: Sight, before: str) -> list[str]:
    """
    Names of those *hints* that other conversations may see: where nothing foreign is in sight all that has to do
    with what the person said. *before*: what of the former ones they might.
    """
    own = Words(told_words(before).union(*map(told_words, (*sight.own.values(), *taken_up(sight)))))
    answers = [told_words(m.text) for m in sight.messages if m.role == "assistant"]
    said = own | Words(word for words in answers for word in words if word not in sight.others)
    every = told_words(" ".join(hints.values()))
    if not sight.foreign:
        heard = Words(frozenset().union(*answers))
        theirs, mine = len(heard.of(every)), len(own.of(every))
        if theirs >= FOLLOWS * len(every) and theirs > mine + BETTER * len(every):
            return []
        return [key for key, text in hints.items() if text]
    if len(own.of(every)) < HEARD * len(every):
        return []

    def may_be_seen(text: str) -> bool:
        words = told_words(text)
        return not others_alone(words, own, sight) and len(said.of(words)) >= SHARED * len(words)

    return [key for key, text in hints.items() if text and may_be_seen(text)]


def taken_up(sight: Sight) -> list[str]:
    """What the assistant proposed and the person took up."""
    answered = (sight.answered(m) for m in sight.messages if m.role == "user")
    return [proposal_in(m.text, strict=sight.foreign) for m in answered if m is not None]


def others_alone(words: frozenset[str], said: Words, sight: Sight) -> bool:
    """Whether one of *words* is another's, and nobody said it here."""
    return any(
        word in sight.others and (word not in said or (word in sight.others.all and word not in said.all))
        for word in words
    )


def parts_of(text: str) -> list[str]:
    return [part for sentence in split_sentences(text) for part in HINT_PART.split(sentence)]
