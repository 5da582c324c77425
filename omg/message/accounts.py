"""
Numbers that open an account: payment cards, what is printed on their backs, and IBANs.

A card is known by its issuer's digits, its length and its check digit, an IBAN by the remainder of ISO 7064; of
numbers drawn at random fewer than one in fifty passes. One rule: phone numbers, hashes, dates and ids stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stdnum.iban import is_valid as is_iban
from stdnum.iso7064.mod_97_10 import is_valid as is_mod_97
from stdnum.luhn import is_valid as is_luhn
from stdnum.us.ssn import is_valid as is_ssn

NumberSpan = tuple[int, int, str]  # start, end, kind
CARD = re.compile(  # 4-4-4-4 and up to 19 digits, 4-6-5, 4-6-4, or no groups at all
    r"(?:[2-6](?<![\w.+-].)\d{3}[ -]?\d{4}[ -]?\d{4}[ -]?\d{1,4}(?:[ -]?\d{1,3})?|3(?<![\w.+-].)\d{3}[ -]\d{6}[ -]\d{4,5})(?![\w-]|\.\d)",
    re.ASCII,
)

ISSUERS = re.compile(  # first digits and lengths, after ISO/IEC 7812
    r"4\d{15}(?:\d{3})?|5[1-5]\d{14}|2[2-7]\d{14}|3[47]\d{13}|3[068]\d{12}|35\d{14}|(?:6\d|5[0678])\d{14,17}"
)

SPOKEN_OF = re.compile(r"card|visa|amex|debit|credit|karte|carte|tarjeta|cart[aã]o|\bc[vc][vc]", re.I)
NEAR_CARD = 60  # chars around a number in which a card may be spoken of

CARD_CODE = re.compile(
    r"\bc[vc][vc]2?\b\W{0,4}(?:(?:code|number)\W{1,3})?(?:is\W{1,3})?(?P<code>\d{3,4})\b", re.I
)

# an expression begins with what is rare, a digit: the engine skips to it
IBAN = re.compile(
    r"\d(?<=(?<![A-Za-z0-9])[A-Z][A-Z].)\d(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?(?![A-Za-z0-9])"
)

LOWER_IBAN = re.compile(
    r"\d(?<=(?<![A-Za-z0-9])[a-z][a-z].)\d(?: ?[a-z0-9]{4}){2,7}(?: ?[a-z0-9]{1,3})?(?![A-Za-z0-9])"
)

SSN = re.compile(r"\d(?<![\w.+-].)\d{2}([- ])\d{2}\1\d{4}(?![\w-]|\.\d)")

NO_SSN = re.compile(
    r"(?:order|invoice|part|item|ticket|case|ref|article|serial|sku|nr|no|number|bestell\w*)\W{0,3}$|#$", re.I
)

SSN_OF = re.compile(r"\bssn\b|social|itin", re.I)
SHORTEST_IBAN = 15  # Norway's


def account_numbers(text: str, lowered: str) -> Iterator[NumberSpan]:
    """Where a card's number, its code, or an IBAN stands in *text*."""
    if not [digit for digit in "0123456789" if digit in text]:
        return
    for m in CARD.finditer(text):
        digits = re.sub(r"\D", "", m[0])
        around = text[max(0, m.start() - NEAR_CARD) : m.end() + NEAR_CARD]
        known = ISSUERS.fullmatch(digits) or (len(digits) >= 13 and SPOKEN_OF.search(around))
        if known and is_luhn(digits) and len(set(digits)) > 1:
            yield *m.span(), "card number"
    for m in CARD_CODE.finditer(text) if "cv" in lowered or "cc" in lowered else ():
        yield *m.span("code"), "card code"
    for m in IBAN.finditer(text):
        start = m.start() - 2
        if length := iban_length(text[start : m.end()]):
            yield start, start + length, "IBAN"
    for m in LOWER_IBAN.finditer(text):
        if is_iban(text[m.start() - 2 : m.end()]):
            yield m.start() - 2, m.end(), "IBAN"
    for m in SSN.finditer(text):
        before = text[max(0, m.start() - NEAR_CARD) : m.start()]
        if is_ssn(m[0].replace(" ", "-")) and (
            SSN_OF.search(before) or (m[1] == "-" and not NO_SSN.search(before))
        ):
            yield *m.span(), "social security number"


def iban_length(text: str) -> int:
    """How many chars of *text* are an IBAN; 0 if it begins with none. A word in capitals may stand behind it."""
    for m in reversed([*re.finditer(r"(?=[ -]|$)", text)]):
        code = re.sub(r"[ -]", "", text[: m.start()])
        if len(code) >= SHORTEST_IBAN and is_mod_97(code[4:] + code[:4]):
            return m.start()
    return 0
