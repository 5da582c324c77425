"""
Whether a text says that something is not so, or ends. Words of some twenty languages, without grammar.
"""

from __future__ import annotations

import re

from .words import word_stem

NOT = re.compile(
    r"\b(?:no|not|never|none|neither|nor|nobody|nothing|nowhere|cannot|without|hardly|isnt|arent|wasnt|dont|doesnt|didnt|wont|cant|havent|hasnt"
    r"|instead of|rather than|no longer|any ?more|stop(?:s|ped)?|avoid(?:s|ed)?|refuse[sd]?|drop(?:s|ped)?|quit|off|against|reject(?:s|ed)?|deny|denie[sd]"
    r"|nicht|kein\w{0,2}|nie|niemals|nichts|ohne|pas|jamais|aucune?|rien|sans|plus|nunca|jamás|nada|sin|non|niente|senza|não|sem|niet|geen|nooit"
    r"|inte|aldrig|ikke|aldri|nie|nigdy|bez|не|нет|ни|никогда|без|немає|ні|değil|hiç|yok|δεν|όχι|ποτέ|μην|لا|ليس|لم|لن|ما|غير|بدون|לא|אין|בלי|אף"
    r"|نه|نیست|بدون|नहीं|न|मत|không|chưa|đừng|tidak|bukan|jangan|ei|eivät|ilman)\b|n't\b|\bn'|[不没沒無无非别未]|ない|ません|なく|ず(?:に|、)"
    r"|苦手|안 |못|않|아니|없|ไม่",
    re.I,
)
REAL_NOT = re.compile(r"\b(?:stop|drop|quit|off|plus|avoid|refuse|against|any ?more|hardly)\w{0,3}\b", re.I)


def denies(clause: str) -> bool:
    """Whether *clause* says that something is not so."""
    return any(not is_verb_of_ending(m[0]) for m in NOT.finditer(clause))


def is_verb_of_ending(word: str) -> bool:
    """Whether *word* says "not" of what goes on, as "stop" does, and can itself be denied: "I never stopped"."""
    return bool(REAL_NOT.fullmatch(word))


def negations(text: str) -> frozenset[str]:
    """The words by which *text* says that something is not so, or ends."""
    return frozenset(word_stem(m[0].lower()) for m in NOT.finditer(text))
