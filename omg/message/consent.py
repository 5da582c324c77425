"""
Decides whether a message gives consent: a plain yes, or a confirmation code alone.

A message that says anything else gives no consent.
"""

from __future__ import annotations

import regex

from ..text.words import denies, english_words, phrases
from .statements import CLOSERS, REMEMBERING
from .turn import Message

# How a sentence ends, and the marks that may stand around a code, in pairs. Other marks may mean no: "🚫", "!", "~~".
ENDS = " \t\n.!。！"
PAIRS = {**CLOSERS, **{mark: mark for mark in "*_`"}}
BETWEEN = regex.compile(
    r"[\s,.!…，。！、-]+|[\N{EMOJI MODIFIER FITZPATRICK TYPE-1-2}-\N{EMOJI MODIFIER FITZPATRICK TYPE-6}\uFE0F]"
)
# marks of a question, or of somebody else's words
NOT_PLAIN = regex.compile(r"[?？؟¿\"“”„«»「」『』>]|…|\.\.")
LONGEST_YES = 5  # words
CHANGING = frozenset("correct fix change update don't forget vergiss vergeet".split())  # "yes, change that"


def is_yes(message: Message) -> bool:
    """
    Whether the whole *message* accepts a proposal, in one of several languages. The message begins with a yes, and
    its rest is only another yes, thanks, or a request to keep the proposal ("yes, note that").
    """
    if NOT_PLAIN.search(message.text) or denies(message.text):
        return False
    words = BETWEEN.sub(" ", message.text.replace("’", "'").lower()).split()
    at = 0
    while at < len(words):
        sizes = range(min(LONGEST_YES, len(words) - at), 0, -1)
        size = next((n for n in sizes if " ".join(words[at : at + n]) in phrases("yes")), 0)
        if not size and (
            not at
            or words[at] in CHANGING
            or not (words[at] in english_words("around") or REMEMBERING.match(words[at]))
        ):
            return False
        at += size or 1
    return bool(words)


def is_code(message: Message, code: str) -> bool:
    """
    Whether *message* holds the confirmation *code* and nothing else.

    The message may have the code in quotation marks, or after the words `/omg forget`.
    """
    said = message.text.strip().lower().removeprefix("/omg forget ").rstrip(ENDS)
    while len(said) > 1 and said[-1] in PAIRS.get(said[0], ""):
        said = said[1:-1].strip().rstrip(ENDS)
    return not message.material and said == code
