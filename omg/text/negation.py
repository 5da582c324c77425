"""Whether a text says that something is not so, or ends. Words of some twenty languages, without grammar."""

from __future__ import annotations

import re

NOT = re.compile(
    r"\b(?:no|not|never|none|neither|nor|nobody|nothing|nowhere|cannot|without|hardly|isnt|arent|wasnt|dont|doesnt|didnt|wont|cant|havent|hasnt"
    r"|instead of|rather than|no longer|any ?more|stop(?:s|ped)?|avoid(?:s|ed)?|refuse[sd]?|drop(?:s|ped)?|quit|off|against|reject(?:s|ed)?|deny|denie[sd]"
    r"|nicht|kein\w{0,2}|nie|niemals|nichts|ohne|pas|jamais|aucune?|rien|sans|plus|nunca|jamás|nada|sin|non|niente|senza|não|sem|niet|geen|nooit"
    r"|inte|aldrig|ikke|aldri|nie|nigdy|bez|не|нет|ни|никогда|без|немає|ні|değil|hiç|yok|δεν|όχι|ποτέ|μην|لا|ليس|لم|لن|ما|غير|بدون|לא|אין|בלי|אף"
    r"|نه|نیست|بدون|नहीं|न|मत|không|chưa|đừng|tidak|bukan|jangan|ei|eivät|ilman)\b|n't\b|\bn'|[不没沒無无非别未]|ない|ません|なく|ず(?:に|、)"
    r"|苦手|안 |못|않|아니|없|ไม่",
    re.I,
)


def denies(text: str) -> bool:
    """Whether *text* says that something is not so, or ends: "no", "never", "without", "stopped"."""
    return bool(NOT.search(text))
