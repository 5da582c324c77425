"""Secrets with a known format: the keys of about 400 services by Kingfisher's rules, private key blocks, password hashes."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from functools import cache
from threading import Lock
from typing import Any

from .looks import STAND_IN

Span = tuple[int, int, str]  # start, end, kind

# What ends a key in prose. Most rules ask for a blank, a quote or the end of the text behind a key.
ENDS = re.compile(r"[,()\[\]<>!]|[.:?](?=\s|$)")
codecs.register_error("omg.blank", lambda e: (" " * (e.end - e.start), e.end))  # type: ignore[attr-defined]

PEM_LINE = (
    r"[>\s|+\d\"']{0,24}(?:[\w-]{1,20}: [^\n]{1,80}|=?[A-Za-z0-9+/=]{4,100})(?:\\{0,4}[nr]|[\\\"', ]){0,4}"
)
PEM = re.compile(
    r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY(?: BLOCK)?-----(?:\\{0,4}[nr]|\s){0,4}"
    rf"(?:[A-Za-z0-9+/=]{{4,20000}}+(?:\\{{0,4}}[nr])?+|{PEM_LINE}\n?){{0,400}}+\s{{0,40}}(?:-----END [A-Z ]{{0,30}}PRIVATE KEY(?: BLOCK)?-----)?"
)
HASH = re.compile(
    r"\$(?:apr1|[156y7]|2[abxy]?|P|H|argon2\w{1,2}|scrypt|pbkdf2[\w-]{0,10})\$[./\w$=,+-]{20,300}|\{(?:SSHA|SHA|PBKDF2|CRYPT)\d{0,3}\}[A-Za-z0-9+/$.]{24,200}={0,2}"
)

# Telegram's: Kingfisher's rule wants the word "telegram" near it.
BOT = re.compile(r"(?<![A-Za-z0-9_])\d{8,12}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])")


LOADING = Lock()  # `cache` lets each thread that comes meanwhile load them for itself


@cache
def scanner() -> Any:
    """Kingfisher with its own rules. The first call on a machine compiles them (4 s of CPU); later ones read a cache (0.4 s)."""
    from kingfisher_sdk import Rules, Scanner

    return Scanner(Rules(confidence="low"), base64=False)


def formatted_secrets(text: str) -> Iterator[Span]:
    """Yield what has the format of a known kind of secret."""
    plain = ENDS.sub(" ", text).encode("ascii", "omg.blank")  # one byte for each character: places agree
    with LOADING:
        kingfisher = scanner()
    for found in kingfisher.scan(plain):
        place = found.location
        start, end = place["start_offset"], place["end_offset"]
        if found.visible and not STAND_IN.match(text, start, end):
            yield start, end, found.rule_id.rpartition(".")[2].rpartition("/")[2].replace("-", " ")
    if "PRIVATE KEY" in text:
        yield from ((*m.span(), "private key") for m in PEM.finditer(text))
    if ":AA" in text:
        yield from ((*m.span(), "telegram bot token") for m in BOT.finditer(text))
    if "$" in text or "}" in text:
        yield from ((*m.span(), "password hash") for m in HASH.finditer(text))
