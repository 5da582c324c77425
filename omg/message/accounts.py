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

from .hints import DIGITS, Found, rule, rules_by_line

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
    r"\b(?:c[vc][vc]2?|csc|(?:karten)?prüf(?:ziffer|nummer|zahl)|card security code|cryptogramme)\b\W{0,4}(?:(?:code|number)\W{1,3})?(?:is\W{1,3})?(?P<code>\d{3,4})\b",
    re.I,
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

# by their names, for in form they are any number: hints, names, number
NAMED_NUMBERS = tuple(
    rule(
        f"{hints} & 0-9",
        "personal number",
        (rf"\b(?:{names})\b[^\n\d;]{{0,14}}?" if names[0] < "\u2000" else rf"(?:{names})[^\n\dA-Za-z;]{{0,12}}")
        + rf"(?<![A-Za-z0-9])(?P<value>{number})(?![A-Za-z0-9_-]|\.\d)",
        re.I,
    )
    for hints, names, number in (
        ("account|acct|konto|cuenta|compte", r"(?:bank |checking |savings )?(?:account|acct\.?) ?(?:number|no\.?|nr\.?|#)|kontonummer|konto-?nr\.?|número de cuenta|numéro de compte", r"\d{6,17}"),
        ("dni|nie|nif", r"dni|nie|nif", r"[XYZ]?\d{7,8}[ -]?[A-Z]"),
        ("codice", r"codice fiscale", r"[A-Z]{6}\d\d[A-Z]\d\d[A-Z]\d{3}[A-Z]"),
        ("cpf", r"cpf", r"\d{3}\.?\d{3}\.?\d{3}-?\d\d"),
        ("steuer|idnr|tax id", r"steuer-?id\w{0,8}|steuer-?identifikationsnummer|idnr\.?|tax id", r"\d\d ?\d{3} ?\d{3} ?\d{3}"),
        ("steuernummer", r"steuernummer", r"\d{2,3}[/ ]\d{3,4}[/ ]\d{4,5}"),
        ("nino|ni n|insurance", r"nino|(?:ni|national insurance)(?: number| no\.?)?", r"[A-Z]{2} ?\d\d ?\d\d ?\d\d ?[A-D]"),
        ("versicherung|sv-nummer", r"sozialversicherungsnummer|sv-nummer|rentenversicherungsnummer", r"\d\d ?\d{6} ?[A-Z] ?\d{3}|\d{4} ?\d{6}"),
        ("versicherten|kvnr", r"(?:krankenv|v)ersicherten(?:nummer|-?nr\.?)|kvnr", r"[A-Z]\d{9}"),
        ("insee|nir|sécu", r"insee|nir|numéro de sécurité sociale|sécurité sociale|sécu", r"[12] ?\d\d ?\d\d ?\w\w ?\d{3} ?\d{3}(?: ?\d\d)?"),
        ("ahv|avs", r"ahv(?:-nummer|-nr\.?)?|avs|navs", r"756\.\d{4}\.\d{4}\.\d\d"),
        ("pesel|bsn|burgerservice|sin|curp|personnummer|cpr|aadhaar|nhs", r"pesel|bsn|burgerservicenummer|sin|curp|personnummer|cpr|aadhaar|nhs(?: number| no\.?)?", r"\d{2,6}(?:[ -]?\d{2,4}){1,3}"),
        ("kimlik|oib|emšo|jmbg|cnp|егн|инн|αφμ|αμκα|amka|kennitala|fødselsnummer|isikukood", r"tc kimlik(?: no)?|kimlik no|oib|emšo|jmbg|cnp|егн|инн|αφμ|αμκα|amka|kennitala|fødselsnummer|isikukood", r"\d{6}[ -]?\d{3,7}"),
        ("tax file|tfn", r"tfn|tax file number", r"\d{3} ?\d{3} ?\d{3}"),
        ("pan ", r"pan(?: card)?(?: number| no\.?)?", r"[A-Z]{5}\d{4}[A-Z]"),
        ("nric", r"nric(?:/fin)?", r"[STFGM]\d{7}[A-Z]"),
        ("rut", r"rut", r"\d{1,2}\.?\d{3}\.?\d{3}-?[\dK]"),
        ("cuil|cuit|nss|imss", r"cui[lt]|nss|imss", r"\d{2}-?\d{8}-?\d"),
        ("rodné č|rodne c", r"rodné číslo|rodne cislo", r"\d{6}/?\d{3,4}"),
        ("henkilötunnus|hetu", r"henkilötunnus|hetu", r"\d{6}[-+A]\d{3}[0-9A-Y]"),
        ("снилс", r"снилс", r"\d{3}-?\d{3}-?\d{3}[ -]?\d\d"),
        ("паспорт", r"паспорт\w{0,3}", r"\d\d ?\d\d ?\d{6}"),
        ("passport|passeport|passaporto|paspoort|pasaporte|ausweis|reisepass|id card|licen|führerschein", r"passport|reisepass\w{0,8}|passeport|pasaporte|passaporto|paspoort|personalausweis\w{0,8}|ausweis\w{0,8}|id card|driver'?s? licen[cs]e|driving licen[cs]e|führerschein\w{0,8}", r"(?=[A-Z]{0,9}\d[A-Z]{0,9}\d[A-Z]{0,9}\d)[A-Z0-9]{6,12}"),
        # scripts without blanks
        ("身份证|身份證", r"身份证|身份證", r"\d{17}[\dX]"),
        ("护照|護照|パスポート|여권", r"护照|護照|パスポート|여권", r"[A-Z]{1,2}\d{7,8}"),
        ("マイナンバー|個人番号", r"マイナンバー|個人番号", r"\d{4}[ -]?\d{4}[ -]?\d{4}"),
        ("주민등록번호|주민번호", r"주민등록번호|주민번호", r"\d{6}-?\d{7}"),
    )
)  # fmt: skip

NAMED_HINTS = frozenset(hint for number in NAMED_NUMBERS for group in number.hints for hint in group)
CODE_HINTS = frozenset(("cvv", "cvc", "ccv", "csc", "prüf", "security code", "cryptogramme"))
NUMBER_HINTS = NAMED_HINTS | CODE_HINTS
SSN_OF = re.compile(r"\bssn\b|social|itin", re.I)
SHORTEST_IBAN = 15  # Norway's


def account_numbers(text: str, found: Found) -> Iterator[NumberSpan]:
    """Where a card's number, its code, or an IBAN stands in *text*."""
    if DIGITS not in found.words:
        return
    for m in CARD.finditer(text):
        digits = re.sub(r"\D", "", m[0])
        around = text[max(0, m.start() - NEAR_CARD) : m.end() + NEAR_CARD]
        known = ISSUERS.fullmatch(digits) or (len(digits) >= 13 and SPOKEN_OF.search(around))
        if known and is_luhn(digits) and len(set(digits)) > 1:
            yield *m.span(), "card number"
    for m in () if CODE_HINTS.isdisjoint(found.words) else CARD_CODE.finditer(text):
        yield *m.span("code"), "card code"
    for number, begin, last in rules_by_line(NAMED_NUMBERS, text, found):
        for m in number.pattern.finditer(text, begin, last):
            yield *m.span("value"), number.kind
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
