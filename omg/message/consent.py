"""Consent is a whole message: a plain yes, or a code alone. A message that says more agrees to nothing."""

from __future__ import annotations

import regex

from ..text.words import phrases
from .turn import Message

AROUND = regex.compile(r"^[\p{P}\p{S}\s]+|[\p{P}\p{S}\s]+$")
BETWEEN = regex.compile(r"[\s,.!…，。！、]+")
# of a question, or of words that somebody else wrote
NOT_PLAIN = regex.compile(r"[?？؟¿\"“”„«»「」『』>]")


def is_yes(message: Message) -> bool:
    """Whether *message* as a whole accepts what was proposed, in one of several languages."""
    said = message.text.replace("’", "'").lower()
    return not NOT_PLAIN.search(said) and BETWEEN.sub(" ", said).strip() in phrases("yes")


def is_code(message: Message, code: str) -> bool:
    """Whether *message* is *code*, perhaps with marks around it or behind `/omg forget`, and nothing else."""
    said = message.text.strip().lower().removeprefix("/omg forget ")
    return not message.material and not regex.search("[?？؟]", said) and AROUND.sub("", said) == code
