"""Finds random-looking tokens that have no label."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .formats import Span
from .looks import is_mangled, is_random

LONG = re.compile(r"[A-Za-z0-9_+/-]{20,}={0,2}")
SHORT = re.compile(r"[A-Za-z0-9!#$%^&*?+~@._-]{7,}")
# What stands around a short one, so that it is not a part of an address, a path or a program.
BEFORE_SHORT, AFTER_SHORT = re.compile(r"[/@\\(<>{}\[]\Z"), re.compile(r"[/=({}\\]")
# What services call their things: run_…, chatcmpl-…; keys are longer.
PREFIXED = re.compile(r"[a-z]{2,10}[_-](?=.{10,29}$)")
# A certificate, a public key, a picture, a file of IPFS.
BLOCK = re.compile(r"AAAA|MII|LS0t|iVBOR|R0lGOD|/9j/|JVBER|Qm\w{44}$")
# What a line calls public: hashes, ids, addresses.
PUBLIC = re.compile(
    r"sha-?\d|\bmd5|\bgpg|\brsa\b|\bcache|finger ?print|digest|checksum|hash|e-?tag\b|integrity|public|pub_?key|signature|nonce|commit|revision"
    r"|address|contract|video|track|channel|docum|sheet|folder|file|image|base64|trace|span|request"
    r"|uuid|(?:\b|[_-])[iu]?ids?\b|(?-i:[a-z]Ids?\b)|certificat|ssh-|known_hosts|host ?key",
    re.I,
)
PUBLIC_CHARS = 80  # before a token, on its line
NO_BEFORE, NO_AFTER = re.compile(r"(?:[/@#%~\\$&?]|(?<!\d{6}):)\Z"), re.compile(r"[@%(:.][A-Za-z0-9]")
# Product and recovery keys: groups of one length. And Google's and Apple's passwords for one app.
GROUPS = re.compile(
    r"(?=.*\d)(?=.*[A-Z])(?:[A-Z0-9]{4}(?:-[A-Z0-9]{4}){3,7}|[A-Z0-9]{5}(?:-[A-Z0-9]{5}){3,7}|[A-Z0-9]{6}(?:-[A-Z0-9]{6}){3,7})"
    r"|\d{6}(?:-\d{6}){7}|[a-z]{4}(?:-[a-z]{4}){3}"
)
# As many services begin their keys.
SECRET_HEX = re.compile(r"(?:[sr]k\d?|[a-z]*(?:sec|key|tok)[a-z]{0,3})[_-][0-9a-f]{32,}", re.I)
# Assigned to something: a checksum says that it is one.
ASSIGNED_HEX = re.compile(r"(?:=|: |[:=] ?[\[(]?[\"'])(?P<value>(?:[0-9a-f]{16}){2,4}(?:-us\d+)?)(?![\w/.-])")


def random_tokens(text: str) -> Iterator[Span]:
    """Yield tokens of 20 and more characters that look drawn, and short ones as only passwords are, unless their line calls them public."""
    for m in LONG.finditer(text):
        if (is_random(m[0]) or SECRET_HEX.match(m[0])) and not (
            BLOCK.match(m[0]) or PREFIXED.match(m[0]) or NO_AFTER.match(text, m.end())
        ):
            before = text[max(0, m.start() - PUBLIC_CHARS) : m.start()]
            open_to_all = NO_BEFORE.search(before) or is_public(before + m[0][:8])
            if not open_to_all and (before.endswith("=") or not in_url(before)):
                yield *m.span(), "token"
    for m in ASSIGNED_HEX.finditer(text):
        before = text[max(0, m.start() - PUBLIC_CHARS) : m.start()]
        if not is_public(before) and len(set(m["value"])) > 8:
            yield *m.span("value"), "key"
    for m in SHORT.finditer(text):
        word = m[0].rstrip(".!?")
        if GROUPS.fullmatch(word):
            yield m.start(), m.start() + len(word), "key"
        elif len(word) > 40 or PREFIXED.match(word) or AFTER_SHORT.match(text, m.end()):
            continue
        elif is_mangled(word):
            before = text[max(0, m.start() - PUBLIC_CHARS) : m.start()]
            if not BEFORE_SHORT.search(before) and not is_public(before) and not in_url(before):
                yield m.start(), m.start() + len(word), "password"


def is_public(before: str) -> bool:
    """Whether the line that ends with *before* calls public what comes next."""
    return PUBLIC.search(before.rpartition("\n")[2]) is not None


def in_url(before: str) -> bool:
    """Whether *before* ends within a URL."""
    return "://" in before.rpartition("\n")[2].rpartition(" ")[2]
