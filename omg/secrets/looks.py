"""
What a value looks like: random, typed as a password, or standing in for a secret.

These functions judge a value by its characters. They do not look at the text around it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise
from string import ascii_lowercase, ascii_uppercase, digits

UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.I)
TWO_DIGITS = re.compile(r"\d\D*\d")
JUDGED_CHARS = 80  # of a longer value, the first
DIGIT, LETTER = re.compile(r"\d"), re.compile(r"[^\W\d_]")

# What stands where a secret would: a variable, a mask, a type, or a word about the secret.
STAND_IN = re.compile(
    r"[$<{%\[?]|&\w|.?\*{3,}|[•…]|[-_.x*]{4,}$|!\w+$|(?-i:[A-Z][A-Z_]*$)"
    r"|(?:\w+[-_. ])?(?:your|my|some|the)[-_ ]|.*(?:[-_](?:here|goes)\b|placeholder|example|change[-_]?me|x{6,}|\.{3}$|…$)"
    r"|(?:null|none|nil|true|false|undefined|required|optional|default|empty|missing|invalid|wrong|incorrect|expired"
    r"|reset|changed|updated|hidden|stored|saved|protected|masked|redacted|needed|unknown|same"
    r"|str(?:ing)?|text|int(?:eger)?|bool(?:ean)?|bytes|number|object|any|void|(?:var)?char"
    r"|user(?:name)?|root|admin|test|pass(?:word|wd|phrase|code)?s?|pwd?|pin|secrets?|tokens?|keys?)\d{0,3}$",
    re.IGNORECASE,
)
# Source code, a path, an address, bytes, a date, a time, a version or a file name.
CODE = re.compile(
    r"[A-Za-z_]+\d?(?:(?:\.|::|->)[A-Za-z_]+\d?)+$|(?:[A-Za-z_]\w*\.){2,}[A-Za-z_]\w*$|[\w.:]*\w[(\[]|_?[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+$"
    r"|[A-Z_]{3,40}=\S*[a-z]|[A-Za-z]*_[A-Za-z_]+$|.*\)[.\[]|\w+=(?:=|$|-?\d+$|None|True|False|[\"'(])|\w{1,8}://|[./~\\]|\w:[\\/]|(?:[A-Z]?[a-z0-9_-]+/)+[A-Z]?[a-z0-9_.-]+$|(?:[0-9A-Fa-f]{2}:){3}|\d{4}-\d\d|v?\d+(?:[.:,]\d+)+\w*$"
    r"|[\w-]+\.[a-z]{2,5}\d?$|.*@[\w-]+\.\w|\\[swdbn]|.*(?:\$?\{\w*\}|\(\w*\))$"
)
# A thing with a number: "iPhone15", "sha256", "RTX-4090", "12px", "A1", a short checksum.
NUMBERED = re.compile(
    r"[A-Za-z]{1,6}[-_ ]?\d{1,4}[A-Za-z]{0,2}$|\d{1,4}[-–]?[A-Za-z]{1,10}$|[A-Z0-9]{1,6}-[A-Z0-9]{1,6}$|[A-Z0-9]{1,8}$|#?[0-9a-f]{6,}$"
)
HEX = re.compile(r"(?:0x)?[0-9a-fA-F]{16,}$")


def is_stand_in(value: str) -> bool:
    """Whether *value* is a placeholder, source code or a file name rather than a secret."""
    value = value[:JUDGED_CHARS]
    return STAND_IN.match(value) is not None or CODE.match(value) is not None


def entropy(text: str) -> float:
    """Shannon entropy in bits per character: English words have 2 to 3, hexadecimal under 4, base64 over 4."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())


def is_key(value: str, *, shortest: int) -> bool:
    """Whether *value* looks like a generated key of at least *shortest* characters; checksums do as well."""
    value = value[: max(shortest, JUDGED_CHARS)]
    if len(value) < shortest or (is_stand_in(value) and not is_random(value)):
        return False
    return bool(DIGIT.search(value) and LETTER.search(value)) and entropy(value) >= 2.9


def is_typed(value: str) -> bool:
    """Whether *value* looks like a password that somebody chose: letters with digits, and no product, file or date."""
    if not 6 <= len(value) <= 64 or not (DIGIT.search(value) and LETTER.search(value)):
        return False
    return not (is_stand_in(value) or NUMBERED.match(value) or UUID.fullmatch(value) or HEX.match(value))


# Classes of characters; a sign is 3.
CLASS = {c: n for n, chars in enumerate((ascii_lowercase, ascii_uppercase, digits)) for c in chars}
HEX_INSIDE = re.compile(r"[0-9a-f]{16}")
WORDS = re.compile(r"[A-Z][a-z]{3,}")  # the words of "Wav2Vec2BaseModelOutput"


def is_random(token: str) -> bool:
    """
    Whether the characters of *token* look drawn one by one from small letters, capitals and digits.

    Of characters drawn from 62, three in five are of another class than the one before; in identifiers, one in four.
    """
    token = token[:JUDGED_CHARS].rstrip("=")
    classes = [CLASS.get(c, 3) for c in token]
    if min(classes.count(0), classes.count(1)) < 3 or classes.count(2) < (1 if len(token) >= 30 else 2):
        return False
    if HEX_INSIDE.search(token) or (3 in classes and len(token) < 32):
        return False
    if sum(a != b for a, b in pairwise(classes)) < 0.42 * len(classes) or 9 * classes.count(3) > len(classes):
        return False
    return 5 * sum(map(len, WORDS.findall(token))) < 2 * len(token)


# Words and a number, joined by signs, as password managers make them: "Turnip-Cellar-2040".
JOINED = re.compile(r"(?=.*[A-Z])[A-Z]?[a-z]{2,}(?:[-._+*@!#][A-Z]?[a-z]{2,})+[-._+*@!#]?\d{1,4}[a-z]?!?")
# A part of a token: shorter ones are names of products and formulas.
SEGMENT = re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]{7,19}(?![A-Za-z0-9])")
WORD_INSIDE = re.compile(
    r"[a-z]{3}|\A(?!.*[A-Za-z]{3})|0x|\A(?:[A-Z][a-z]+)+\d+$|(?:[A-Z][a-z]{2}.*){2}|(?:[A-Z][a-z]+\d){2}"
)
SIGN_INSIDE = re.compile(r"[A-Za-z0-9]{2}(?:[!~*^]+[A-Za-z0-9]|[#&][A-Za-z])[A-Za-z0-9]")


def is_mangled(value: str) -> bool:
    """
    Whether *value* is written as nothing but a password is: "Rover-s2aGQ46", "Tulpe!Nq68".

    It has capitals, small letters and digits, and a part in which they alternate without a word, or a sign inside.
    Of 3.9 MB of chats none is; of 12 MB of Python sources, about ten names.
    """
    if not (DIGIT.search(value) and any(map(str.isupper, value)) and any(map(str.islower, value))):
        return False
    if SIGN_INSIDE.search(value):
        return len(value) >= 8
    if JOINED.fullmatch(value):
        return len(value) >= 10
    return any(map(_is_drawn, SEGMENT.findall(value)))


def _is_drawn(segment: str) -> bool:
    classes = [CLASS[c] for c in segment]
    return (
        2 <= classes.count(2) <= len(classes) / 2 + 1
        and {0, 1} <= set(classes)
        and sum(a != b for a, b in pairwise(classes)) >= 3
        and not WORD_INSIDE.search(segment)
    )
