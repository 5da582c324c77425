"""Secrets without a label: keys of known services, random-looking tokens, numbers with check digits."""

from __future__ import annotations

import codecs
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import cache
from importlib import import_module
from itertools import pairwise
from string import ascii_lowercase, ascii_uppercase, digits
from threading import Lock
from typing import Any

from ..text.words import WORD

# --- What a value looks like: a random key, a chosen password, or a placeholder for a secret.
#
# These functions judge a value by its characters. They do not look at the text around it.


UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.I)
TWO_DIGITS = re.compile(r"\d\D*\d")
JUDGED_CHARS = 80  # characters of a value that are judged
DIGIT, LETTER = re.compile(r"\d"), re.compile(r"[^\W\d_]")

# A placeholder for a secret: a variable, a mask, a type, or a word about the secret.
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
    """Return whether *value* is a placeholder, source code or a file name rather than a secret."""
    value = value[:JUDGED_CHARS]
    return STAND_IN.match(value) is not None or CODE.match(value) is not None


def entropy(text: str) -> float:
    """
    Return the Shannon entropy in bits per character: English words have 2 to 3, hexadecimal under 4, base64
    over 4.
    """
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())


def is_key(value: str, *, shortest: int) -> bool:
    """
    Return whether *value* looks like a generated key of at least *shortest* characters. Checksums look the
    same.
    """
    value = value[: max(shortest, JUDGED_CHARS)]
    if len(value) < shortest or (is_stand_in(value) and not is_random(value)):
        return False
    return bool(DIGIT.search(value) and LETTER.search(value)) and entropy(value) >= 2.9


def is_typed(value: str) -> bool:
    """
    Return whether *value* looks like a password that somebody chose: letters with digits, but no product, file
    or date.
    """
    if not 6 <= len(value) <= 64 or not (DIGIT.search(value) and LETTER.search(value)):
        return False
    return not (is_stand_in(value) or NUMBERED.match(value) or UUID.fullmatch(value) or HEX.match(value))


# The class of a character: 0 small letter, 1 capital, 2 digit; every other character is 3.
CLASS = {c: n for n, chars in enumerate((ascii_lowercase, ascii_uppercase, digits)) for c in chars}
HEX_INSIDE = re.compile(r"[0-9a-f]{16}")
WORDS = re.compile(r"[A-Z][a-z]{3,}")  # the words of "Wav2Vec2BaseModelOutput"


def is_random(token: str) -> bool:
    """
    Return whether *token* looks like random small letters, capitals and digits.

    In random tokens, three in five characters are of another class than the character before; in identifiers,
    one in four.
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


# Measured: is_mangled is true for no word in 3.9 MB of chats, and for about ten names in 12 MB of Python sources.
def is_mangled(value: str) -> bool:
    """
    Return whether *value* mixes its characters like a password: "Rover-s2aGQ46", "Tulpe!Nq68".

    *value* has capitals, small letters and digits, and one of these is true:
    - The characters alternate without forming words.
    - A sign such as "!" or "#" stands between the characters, and *value* has 8 characters or more.
    - Words and a number are joined by signs ("Turnip-Cellar-2040"), and *value* has 10 characters or more.
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


LONG = re.compile(r"[A-Za-z0-9_+/-]{20,}={0,2}")
SHORT = re.compile(r"[A-Za-z0-9!#$%^&*?+~@._-]{7,}")
# Signs beside a short token which show that it is part of an address, a path or a program.
BEFORE_SHORT, AFTER_SHORT = re.compile(r"[/@\\(<>{}\[]\Z"), re.compile(r"[/=({}\\]")
# Ids of services, such as run_… and chatcmpl-…; keys are longer.
PREFIXED = re.compile(r"[a-z]{2,10}[_-](?=.{10,29}$)")
# A certificate, a public key, a picture, a file of IPFS.
BLOCK = re.compile(r"AAAA|MII|LS0t|iVBOR|R0lGOD|/9j/|JVBER|Qm\w{44}$")
# Words which show that the token after them is public: a hash, an id, an address.
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
# Prefixes of many services' keys.
SECRET_HEX = re.compile(r"(?:[sr]k\d?|[a-z]*(?:sec|key|tok)[a-z]{0,3})[_-][0-9a-f]{32,}", re.I)
# Hexadecimal digits that are assigned to a name. The name of a checksum shows that it is public.
ASSIGNED_HEX = re.compile(r"(?:=|: |[:=] ?[\[(]?[\"'])(?P<value>(?:[0-9a-f]{16}){2,4}(?:-us\d+)?)(?![\w/.-])")


def random_tokens(text: str) -> Iterator[Span]:
    """
    Yield tokens of 20 or more characters that look random, and shorter tokens that look like passwords. Leaves
    out a token if its line calls it public, such as an id or a checksum.
    """
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
        if word.isalpha():  # as nearly all words are
            continue
        if GROUPS.fullmatch(word):
            yield m.start(), m.start() + len(word), "key"
        elif len(word) > 40 or PREFIXED.match(word) or AFTER_SHORT.match(text, m.end()):
            continue
        elif is_mangled(word):
            before = text[max(0, m.start() - PUBLIC_CHARS) : m.start()]
            if not BEFORE_SHORT.search(before) and not is_public(before) and not in_url(before):
                yield m.start(), m.start() + len(word), "password"


def is_public(before: str) -> bool:
    """
    Return whether the last line of *before* says that the next word is public, such as an id or a checksum.
    """
    return PUBLIC.search(before.rpartition("\n")[2]) is not None


def in_url(before: str) -> bool:
    """Return whether *before* ends within a URL."""
    return "://" in before.rpartition("\n")[2].rpartition(" ")[2]


# --- Numbers that are recognised by their check digits: payment cards, IBANs, and personal numbers of states (python-stdnum).


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
# Personal numbers, recognised by their format and their check digits together.
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
# Where a personal number may begin. (An expression that begins with a class of characters is the fastest.)
BEGINS = re.compile(r"[0-9A-Z](?<![\w.+-].)(?=[A-Z]{0,5}[0-9 .-])(?=[0-9A-Z. -]{8})", re.ASCII)


@cache
def valid(name: str) -> Callable[[str], bool]:
    """Return stdnum's test for numbers of the kind *name*."""
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
    """
    Return the length of the IBAN at the beginning of *text*; 0 without an IBAN. Other words may follow the
    IBAN.
    """
    ends = (m.start() for m in re.finditer(r"(?=[ -]|$)", text))
    valid_ends = (
        end for end in sorted(ends, reverse=True) if end > 14 and valid("iban")(text[:end].replace("-", ""))
    )
    return next(valid_ends, 0)


# --- Secrets with a known format: the keys of about 400 services by Kingfisher's rules, private key blocks, password hashes.


Span = tuple[int, int, str]  # start, end, kind

# Punctuation after a key in prose. The scan sees blanks instead, because most rules require a blank, a quote or the end
# of the text after a key.
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

# A code that joins a wireless network
WIFI = re.compile(
    r"\bWIFI:(?:[TSHREAI]\w*:(?:\\.|[^;\n]){0,80};){0,6}P:(?P<value>(?:\\.|[^;\n]){3,80});", re.I
)
AGE_KEY = re.compile(r"\bAGE-SECRET-KEY-(?:PQ-)?1[A-Z0-9]{50,}")

# The values of a Secret of Kubernetes: lines below "data:", or the fields in its braces.
MANIFEST = re.compile(
    r"(?m)^[^\n\w]*kind[\"']?:\s{0,3}[\"']?Secret\b|[{,]\s*[\"']kind[\"']:\s{0,3}[\"']Secret\b"
)
SECRET_DATA = re.compile(
    r"(?m)(?:^(?P<in>[ \t>]*)|[{,]\s*)[\"']?(?:data|stringData)[\"']?:\s*?(?:\{(?P<fields>[^{}]*)\}|\n(?P<lines>(?:(?P=in)[ \t]+\S[^\n]*(?:\n|\Z))+))"
)
FIELD = re.compile(  # the name is missing on further lines of a long value
    r"(?m)(?:^|,)[ \t>]*+(?:[\"']?[\w.-]{1,80}[\"']?:[ \t]*(?:[|>][-+]?)?)?+[ \t]*[\"']?(?P<value>[^\s\"',}<][^\n\"',}]*)"
)

# Words of a wallet: twelve or more in a row from one of BIP-39's lists. No list has "the".
SEED = re.compile(r"\b(?:(?:\d{1,2}[.):]?\s{1,3})?+(?![Tt]he\b)\w{3,8}+(?:,?\s{1,3}|(?![\w'-])))++")
SEED_COUNT = 12
SEED_CHARS = 4 * SEED_COUNT - 1  # of words of three letters, the shortest

# The token of a Telegram bot. Kingfisher's rule requires the word "telegram" near the token.
BOT = re.compile(r"(?<![A-Za-z0-9_])\d{8,12}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])")
# Keys for which Kingfisher has no rule, or a rule that requires more text than the key.
SERVICE_KEY = re.compile(
    r"(?<![A-Za-z0-9_])(?:tvly-(?:[a-z]{3,4}-)?[A-Za-z0-9]{32}|whsec_[A-Za-z0-9]{32}|ntn_[A-Za-z0-9]{40,60}"
    r"|sk-(?:proj|svcacct|admin)-(?=[a-z_-]{0,40}[A-Z0-9])[A-Za-z0-9_-]{40,200})(?![A-Za-z0-9_-])"
)
# The beginnings in SERVICE_KEY: a text without one of them is not searched for keys.
SERVICE = re.compile("tvly-|whsec_|ntn_|sk-")


LOADING = Lock()  # `cache` alone would let several threads load the rules at once


@cache
def seed_words() -> Mapping[str, Set[str]]:
    """Return word → the languages whose BIP-39 list has the word."""
    from mnemonic import Mnemonic

    found: dict[str, set[str]] = {}
    for language in Mnemonic.list_languages():
        for word in Mnemonic(language).wordlist:
            found.setdefault(word, set()).add(language)
    return found


def seed_phrases(text: str) -> Iterator[Span]:
    """Yield the words of wallets: runs of at least SEED_COUNT words from one BIP-39 list."""
    for stretch in SEED.finditer(text):
        if stretch.end() - stretch.start() < SEED_CHARS:
            continue
        if sum(word.lower() in seed_words() for word in WORD.findall(text, *stretch.span())) < SEED_COUNT:
            continue
        # A number is a word's place in a list.
        words = [m for m in WORD.finditer(text, *stretch.span()) if not m[0].isdigit()]
        run, shared = list[re.Match[str]](), set[str]()
        for m in words:
            known = seed_words().get(m[0].lower(), set())
            if not shared & known:
                yield from phrase_of(run)
                run, shared = [], set(known)
            if known:
                run, shared = [*run, m], shared & known
        yield from phrase_of(run)


def phrase_of(run: Sequence[re.Match[str]]) -> Iterator[Span]:
    """
    Yield the span of the seed words in *run* if they can be a wallet's recovery phrase.

    A phrase has at least SEED_COUNT words, and at least SEED_COUNT - 1 different words.
    """
    if len({m[0].lower() for m in run}) >= SEED_COUNT - 1 and len(run) >= SEED_COUNT:
        yield run[0].start(), run[-1].end(), "recovery phrase"


def manifest_values(text: str) -> Iterator[Span]:
    """Yield the values in manifests of Kubernetes' Secrets."""
    at = 0
    for document in re.split(r"(?m)(?<=\n)(?=---)", text):
        if MANIFEST.search(document):
            for block in SECRET_DATA.finditer(document):
                name = "fields" if block["fields"] is not None else "lines"
                for m in FIELD.finditer(document, *block.span(name)):
                    if not STAND_IN.match(m["value"]):
                        yield (
                            at + m.start("value"),
                            at + m.start("value") + len(m["value"].rstrip()),
                            "secret",
                        )
        at += len(document)


@cache
def scanner() -> Any:
    """
    Return Kingfisher's scanner with its own rules. The first call on a machine compiles the rules (4 s of CPU);
    later calls read a cache (0.4 s).
    """
    from kingfisher_sdk import Rules, Scanner

    return Scanner(Rules(confidence="low"), base64=False)


def formatted_secrets(text: str) -> Iterator[Span]:
    """Yield secrets with a known format: keys of services, private keys, wallet words, password hashes."""
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
    if "WIFI:" in text.upper():
        yield from (
            (*m.span("value"), "password") for m in WIFI.finditer(text) if not STAND_IN.match(m["value"])
        )
    if "AGE-SECRET" in text:
        yield from ((*m.span(), "private key") for m in AGE_KEY.finditer(text))
    if "Secret" in text:
        yield from manifest_values(text)
    yield from seed_phrases(text)
    if ":AA" in text:
        yield from ((*m.span(), "telegram bot token") for m in BOT.finditer(text))
    if SERVICE.search(text):
        yield from ((*m.span(), "key") for m in SERVICE_KEY.finditer(text) if not STAND_IN.match(m[0]))
    if "$" in text or "}" in text:
        yield from ((*m.span(), "password hash") for m in HASH.finditer(text))
