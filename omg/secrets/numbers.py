"""Numbers that their check digits tell: payment cards, IBANs, and personal numbers of states (python-stdnum)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module

from .formats import Span

# 4-4-4-4 and up to 19 digits, 4-6-5, 4-6-4, or without groups
CARD = re.compile(
    r"[2-6](?<![\w.+-].)\d{3}(?:[ -]?\d{4}){2}[ -]?\d{1,4}(?:[ -]?\d{1,3})?(?![\w-]|\.\d)|3(?<![\w.+-].)\d{3}[ -]\d{6}[ -]\d{4,5}(?![\w-])",
    re.ASCII,
)
ISSUERS = re.compile(  # first digits and lengths, after ISO/IEC 7812
    r"4\d{15}(?:\d{3})?|5[1-5]\d{14}|2[2-7]\d{14}|3[47]\d{13}|3[068]\d{12}|35\d{14}|(?:6\d|5[0678])\d{14,17}"
)
IBAN = re.compile(
    r"\d(?<=(?<![A-Za-z0-9])[A-Z][A-Z].)\d(?:[ -]?[A-Z0-9]{4}){2,7}(?:[ -]?[A-Z0-9]{1,3})?(?![A-Za-z0-9])"
    r"|\d(?<=(?<![A-Za-z0-9-])[a-z][a-z].)\d(?: ?[a-z0-9]{4}){2,7}(?: ?[a-z0-9]{1,3})?(?![A-Za-z0-9-])"
)
# Personal numbers that are known by how they are written and by their check digits together.
PERSONAL = {
    name: re.compile(rf"{pattern}(?![\w-]|\.\d)", re.ASCII)
    for name, pattern in (
        ("us.ssn", r"\d{3}-\d\d-\d{4}"),
        ("br.cpf", r"\d{3}\.\d{3}\.\d{3}-\d\d"),
        ("ch.ssn", r"756\.\d{4}\.\d{4}\.\d\d"),
        ("cl.rut", r"\d{1,2}\.\d{3}\.\d{3}-[\dK]"),
        ("ar.cuit", r"\d\d-\d{8}-\d"),
        ("kr.rrn", r"\d{6}-\d{7}"),
        ("se.personnummer", r"\d{6}-\d{4}"),
        ("fi.hetu", r"\d{6}[-+A]\d{3}[0-9A-Z]"),
        ("cn.ric", r"\d{17}[\dX]"),
        ("fr.nir", r"[12] \d\d \d\d \d\d \d{3} \d{3} \d\d"),
        ("de.idnr", r"\d\d \d{3} \d{3} \d{3}"),
        ("es.dni", r"\d{8}-?[A-Z]"),
        ("es.nie", r"[XYZ]-?\d{7}-?[A-Z]"),
        ("it.codicefiscale", r"[A-Z]{6}\d\d[A-Z]\d\d[A-Z]\d{3}[A-Z]"),
        ("mx.curp", r"[A-Z]{4}\d{6}[HM][A-Z]{5}[0-9A-Z]\d"),
    )
}
# Where one may begin. (An expression that begins with a class of characters is the fastest.)
BEGINS = re.compile(r"[0-9A-Z](?<![\w.+-].)(?=[A-Z]{0,5}[0-9 .-])(?=[0-9A-Z. -]{8})", re.ASCII)


@cache
def valid(name: str) -> Callable[[str], bool]:
    """stdnum's test of a number of the kind *name*."""
    return import_module(f"stdnum.{name}").is_valid  # type: ignore[no-any-return]


def account_numbers(text: str) -> Iterator[Span]:
    """Yield card numbers, IBANs and personal numbers."""
    for m in CARD.finditer(text):
        digits = re.sub(r"\D", "", m[0])
        if ISSUERS.fullmatch(digits) and len(set(digits)) > 1 and valid("luhn")(digits):
            yield *m.span(), "card number"
    for m in IBAN.finditer(text):
        start = m.start() - 2
        if length := iban_length(text[start : m.end()]):
            yield start, start + length, "IBAN"
    for begin in BEGINS.finditer(text):
        for name, pattern in PERSONAL.items():
            if (found := pattern.match(text, begin.start())) and valid(name)(found[0]):
                yield *found.span(), "personal number"


def iban_length(text: str) -> int:
    """How many characters of *text* are an IBAN; 0 if it begins with none. A word may stand behind it."""
    ends = (m.start() for m in re.finditer(r"(?=[ -]|$)", text))
    valid_ends = (
        end for end in sorted(ends, reverse=True) if end > 14 and valid("iban")(text[:end].replace("-", ""))
    )
    return next(valid_ends, 0)
