"""
Secrets that nothing tells but that they are drawn: a long word of letters and digits in no order is nobody's writing.

Not here: what a service begins its keys with (forms.py). One rule: what has capitals, small letters and digits by turns is
a secret, unless its line calls it public (a hash, an id, an address); what has only two of these needs a prefix or a word beside it
that speaks of keys, for so are checksums.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from .looks import UUID, entropy, is_random

DrawnSpan = tuple[int, int, str]  # start, end, kind

LONG = 20  # chars of a word that needs no name
LONG_RUN = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_/+-]{20,}")  # sought first: there is hardly one in talk


def drawn_secrets(text: str) -> Iterator[DrawnSpan]:
    """Where in *text* a long word was drawn."""
    for run in LONG_RUN.finditer(text):
        at = run.start()
        if (m := PREFIXED.match(text, at)) and _is_drawn_behind(m[0], m["sep"], m["rest"]):
            yield *m.span(), "token"
        elif (m := BESIDE.match(text, at)) and _is_beside_its_name(text, m):
            yield *m.span(), "key"
        elif (m := ALONE.match(text, at)) and is_shuffled(m[0]) and not _is_public(text, m):
            yield *m.span(), "token"


# --- behind a prefix: `abcd_…`, `ABCD-…`, as today's tokens are

PREFIXED = re.compile(
    # not what names a thing of a service's: answers, calls, files, builds
    r"(?<![\w/+.@#-])(?!(?i:sha\d|md5|uuid|urn|rev|diff|commit|build|img|image|data|http|chat|cmpl|resp|msg|call|tool|req|run|thread|file|asst|evt"
    r"|session|conv|trace|span|user|org|proj|batch|step|item|obj|doc|key_|task|job|pod|node|ip|vol|snap|ami|subnet|vpc|sg|eni|layer|blob|tree|cache|container|digest|block|tx|ref|style|chunk|vendor|main|index|bundle|asset|release|pr|branch|tag|hash|check|etag|instance|device|guid|id|uid|pid|test|model|dataset|exp|css|js|svg|font|icon)[a-z]{0,8}[_-])[A-Za-z]{2,10}[0-9]?(?P<sep>[_-])(?P<rest>[A-Za-z0-9][\w-]{28,250})(?![\w.-]*\.[a-z]{2,5}\b)",
)
HEX = re.compile(r"[0-9a-f]{32,128}")  # behind a prefix: by itself it is a checksum


def _is_drawn_behind(word: str, sep: str, rest: str) -> bool:
    letters = sum(c.isalpha() for c in rest)
    digits = sum(c.isdigit() for c in rest)
    runs = re.split(r"[_-]", rest)
    longest = max(map(len, runs))
    upper, lower = any(c.isupper() for c in rest), any(c.islower() for c in rest)
    drawn = (upper and lower and digits >= 3 and entropy(rest) >= 4.0 and longest >= 10) or (
        word[:2].isupper() and digits >= 6 and letters >= 4 and longest >= 20 and entropy(rest) >= 3.0
    )
    # behind a hyphen it is the key of a cache, a build, a file
    hexadecimal = sep == "_" and any(map(HEX.fullmatch, runs)) and digits >= 6 and letters >= 4
    return (drawn or hexadecimal) and not UUID.search(rest)


# --- in a line that speaks of a key before it: "here is the aws key: …"

BESIDE = re.compile(r"(?<![\w/+.=-])(?:0x)?[A-Za-z0-9+/_-]{32,200}={0,2}(?![\w/+=-])")
CODES_SPOKEN_OF = re.compile(
    r"\b(?:api|aws|access|secret|private|deploy|auth|bot|[a-z]{3,20})[ _-](?:keys?|tokens?|secrets?)\b|\b(?:token|secret|credentials?|schlüssel)\b",
    re.I,
)
NO_SECRET = re.compile(
    r"\b(?:cache|gpg|using|signed|keyserver|restored|sha\d*|hash|checksum|fingerprint|commit|digest|primary|foreign|public|idempotency|etag|md5)\b",
    re.I,
)
NEAR_WORD = 110  # chars before it in which a secret is spoken of


def _is_beside_its_name(text: str, m: re.Match[str]) -> bool:
    if not is_random(m[0]) or m[0].count("/") > 4 or UUID.fullmatch(m[0]):
        return False
    line = text[max(0, m.start() - NEAR_WORD) : m.start()].rpartition("\n")[2]
    if text[m.start() - 1 : m.start()] in ("'", '"') and m.start():  # a comment may say behind it what it is
        line += " " + text[m.end() : m.end() + NEAR_WORD].partition("\n")[0]
    return CODES_SPOKEN_OF.search(line) is not None and not NO_SECRET.search(line)


# --- by itself

ALONE = re.compile(
    r"(?<![\w/+.@#%~:\\$&?-])(?:(?<!=)|(?<=[A-Z]=))"
    # no certificate or public key, picture, address of a wallet, content of IPFS, checksum
    r"(?!AAAA|MII|LS0tLS1CRUdJTiBDRV|iVBOR|R0lGOD|/9j/|UklGR|JVBER|PHN2Z|Qm[1-9A-Za-z]{44}\b|[13T][1-9A-HJ-NP-Za-km-z]{25,33}\b|sha\d|EXAMPLE)"
    r"[A-Za-z0-9][A-Za-z0-9+/_-]{19,200}={0,2}(?![\w/+=@%(:-]|\.[a-z])"
)
PUBLIC = re.compile(
    r"sha-?\d|\bmd5|blake|finger ?print|thumbprint|digest|checksum|prüfsumme|hash|e-?tag\b|integrity|public|pub_?key|p256dh|signatu?r|nonce|commit|revision"
    r"|address|adresse|contract|(?<!paper )wallet|\bcid\b|ipfs|video|playlist|track|album|voice|channel|docum|\bdoc\b|sheet|drive|folder|file|image|base64|trace|span\b|request"
    r"|uuid|(?:\b|[_-])[iu]?ids?\b|[a-z]Ids?\b|certificat|zertifikat|ssh-|known_hosts|host ?key|EXAMPLE",
    re.IGNORECASE,
)
WRITTEN = re.compile(r"[A-Z][a-z]{3,}")  # the words of "Wav2Vec2BaseModelOutput"
HEXADECIMAL_RUN = re.compile(r"[0-9a-fA-F]{16,}")
NEAR_PUBLIC = 60  # chars before it in which its line calls it public
CLASSES = {**dict.fromkeys("abcdefghijklmnopqrstuvwxyz", 0), **dict.fromkeys("ABCDEFGHIJKLMNOPQRSTUVWXYZ", 1)}
CLASSES |= dict.fromkeys("0123456789", 2)
SIGN = 3


def is_shuffled(word: str) -> bool:
    """
    Whether capitals, small letters and digits follow each other in *word* as they do where each is drawn.

    Of characters drawn from 62, three of five are of another class than the one before; in names of programs, one of four.
    """
    classes = [CLASSES.get(c, SIGN) for c in word.rstrip("=")]
    if min(classes.count(0), classes.count(1)) < 3 or classes.count(2) < 2:
        return False
    if sum(a != b for a, b in pairwise(classes)) < 0.42 * len(classes):
        return False
    if SIGN in classes:
        first = re.split("[-_/+]", word)[0]
        if len(word) < 32 or 9 * classes.count(SIGN) > len(word) or (first.isalpha() and first.islower()):
            return False
    return not HEXADECIMAL_RUN.search(word) and 5 * sum(map(len, WRITTEN.findall(word))) < 2 * len(word)


def _is_public(text: str, m: re.Match[str]) -> bool:
    line = text[max(0, m.start() - NEAR_PUBLIC) : m.start()].rpartition("\n")[2]
    return PUBLIC.search(line) is not None or _is_in_a_block(text, m)


def _is_in_a_block(text: str, m: re.Match[str]) -> bool:
    """Whether the word is a line of many such: of a certificate, a picture. What a private key has is known by its head."""
    before, after = text[max(0, m.start() - 40) : m.start()], text[m.end() : m.end() + 40]
    return len(m[0]) >= 60 and any(BLOCK_LINE.fullmatch(part) for part in (before[-30:], after[:30]))


BLOCK_LINE = re.compile(r"\s*\n\s*[A-Za-z0-9+/]{20,}={0,2}|[A-Za-z0-9+/]{20,}={0,2}\s*\n\s*")
