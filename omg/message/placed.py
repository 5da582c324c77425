"""
Secrets that are known by where they stand: in commands, files of credentials, addresses, headers, tables, lists.

Not here: what a key looks like by itself (redaction.py), and what stands behind a name (passwords.py). One rule: each
place has an expression with an end, so that no text is read twice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .passwords import STAND_IN, WORD_LETTER, entropy

PlacedSpan = tuple[int, int, str]  # start, end, kind
SECRET_VALUE = r"(?P<q>[\"'])?(?P<value>(?(q)[^\n\"']{3,200}|[^\s\"'|;&<>$(){}]{3,200}))"

# (hints in lower case of which there is one, kind, expression)
SECRET_PLACES = tuple(
    (hint, kind, re.compile(pattern, flags))
    for hint, kind, pattern, flags in (
        # commands
        (
            "mysql",
            "password",
            r"\b(?:mysql\w{0,12})\b[^\n|;]{0,200}?\s-p" + SECRET_VALUE,
            0,
        ),
        ("mariadb", "password", r"\bmariadb[\w-]{0,12}\b[^\n|;]{0,200}?\s-p" + SECRET_VALUE, 0),
        ("sqlcmd", "password", r"\bsqlcmd\b[^\n|;]{0,200}?\s-P ?" + SECRET_VALUE, 0),
        ("bcp ", "password", r"\bbcp\b[^\n|;]{0,200}?\s-P ?" + SECRET_VALUE, 0),
        ("redis-cli", "password", r"\bredis-cli\b[^\n|;]{0,200}?\s(?:-a|--pass) ?" + SECRET_VALUE, 0),
        ("mongo", "password", r"\bmongo\w{0,9}\b[^\n|;]{0,200}?\s-p ?" + SECRET_VALUE, 0),
        ("ldap", "password", r"\bldap\w{3,9}\b[^\n|;]{0,200}?\s-w ?" + SECRET_VALUE, 0),
        (" login", "password", r"\b(?:docker|podman|helm|az|oc|cf) [^\n|;]{0,60}?login\b[^\n|;]{0,200}?\s-p ?" + SECRET_VALUE, 0),
        ("htpasswd", "password", r"\bhtpasswd\s+-[a-zA-Z]{0,5}b[a-zA-Z]{0,5}\s+(?:-\w+\s+){0,3}\S{1,100}\s+\S{1,60}\s+" + SECRET_VALUE, 0),
        ("smbclient", "password", r"\bsmbclient\b[^\n|;]{0,200}?\s-U ?[^\s%]{1,60}%" + SECRET_VALUE, 0),
        ("chpasswd", "password", r"[\"']?[\w.-]{1,40}:(?P<value>[^\s\"':]{3,100})[\"']?\s*\|\s*(?:sudo\s+)?chpasswd", 0),
        ("pass:", "password", r"\s-?-pass(?:in|out)?[ =]pass:" + SECRET_VALUE, 0),
        ("--", "password", r"(?<!\S)--(?:[a-z]{1,12}-){0,2}(?:password|passwd|passphrase|pass|token|secret|api-?key|auth-?key)(?:=|\s{1,3})(?!-)" + SECRET_VALUE, 0),
        ("identified by", "password", r"\bidentified\s+by\s+(?:password\s+)?[\"'](?P<value>[^\"'\n]{3,200})", re.I),
        ("password ", "password", r"\bpassword\s{1,3}'(?P<value>[^'\n]{3,200})'", re.I),
        # files of credentials
        ("pass", "password", r"\b(?:user(?:name)?|login|account|admin|benutzer|usuario|utilisateur)[ \t:=]{1,3}[^\s,]{1,60}[\s,]{1,9}(?:pass(?:word|wd|wort)?|pw|pwd)[ \t:=]{1,3}(?P<value>[^\s,]{4,200})", re.I),
        ("$", "password hash", r"\$(?:apr1|[156y]|2[abxy]?|argon2\w{1,2}|scrypt|pbkdf2[\w-]{0,10})\$[./\w$=,+-]{20,300}", 0),
        ("{s", "password hash", r"\{(?:SSHA|SHA)\d{0,3}\}[A-Za-z0-9+/]{24,200}={0,2}", 0),
        (":", "password", r"(?m)^[^\s:#]{1,100}:(?:\d{2,5}|\*):[^\s:]{1,60}:[^\s:]{1,60}:(?P<value>[^\s:]{4,200})$", 0),
        ('"auth"', "token", r'"auth"\s{0,3}:\s{0,3}"(?P<value>[A-Za-z0-9+/=]{12,400})"', 0),
        # addresses
        (
            "=",
            "token",
            r"[?&;](?:amp;)?(?:[\w.-]{0,30}[_.-])?(?:sig|signature|token|key|apikey|secret|password|passwd|pwd|auth|code|ticket|hmac|jwt|session|sid|credential)="
            r"(?=[^\s&#\"'<>]{0,60}\d)(?P<value>[^\s&#\"'<>\\)\]]{10,1000})",
            re.I,
        ),
        ("@", "token", r"(?<=://)(?=[A-Za-z_-]{0,40}\d)(?P<value>[\w-]{20,200}(?::[\w-]{0,200})?)@", 0),
        (
            "@",
            "password",
            r"(?<![\w:/.@=-])(?!mailto|to:|from:|cc:|bcc:|sip|xmpp|acct|e?-?mail)[\w.-]{2,40}:(?=[^\s:@/]{0,60}[^A-Za-z\s])(?P<value>[^\s:@/\"'<>]{5,60})@(?!sha\d)[\w-]{2,60}(?:\.[\w.-]{2,60}|:\d{2,5})",
            re.I,
        ),
        # talk
        ("password|pass|pin", "password", r"(?<!\S)(?=\S{0,60}\d)(?P<value>[^\s,;:]{6,80})\s+as\s+(?:the|my|your|our|a|an)?\s{0,2}(?:new\s+)?(?:\w{1,12}\s+)?(?:password|passcode|passphrase|pin)\b", re.I),
        ("code", "code", r"\b(?:door|gate|alarm|entry|access|garage|lockbox|safe|verification|security|login|sign-?in|confirmation|sms|otp|2fa|one-time)[ -](?:pin\s)?(?:pass)?code\s{0,2}(?:is|:|=|\s)\s{0,2}(?P<value>[#*]?\d{4,8}[#*]?)(?![\w-])", re.I),
        (
            "zugang|cred|log|identif|accesso",
            "password",
            r"\b(?:zugangsdaten|credentials?|creds|logins?|log-in|identifiants|credenciales|accesso|zugang)\b[^\n:=]{0,30}[:=]\s{0,3}[^\s/|]{1,60}\s{0,2}[/|]\s{0,2}(?=\S{0,60}\d)(?P<value>[^\s/|,;]{5,80})",
            re.I,
        ),
    )
)  # fmt: skip


def placed_secrets(text: str, lowered: str, longest: int) -> Iterator[PlacedSpan]:
    """Where secrets stand in *text* by their place; its longest word has *longest* chars."""
    for hints, kind, pattern in SECRET_PLACES:
        if not [hint for hint in hints.split("|") if hint in lowered]:
            continue
        for m in pattern.finditer(text):
            named = "value" in pattern.groupindex
            start, end = m.span("value") if named else m.span()
            if named:
                end = start + len(text[start:end].rstrip(".,;)"))
            if not (named and is_stand_in(text[start:end])):
                yield start, end, kind
    if "hook" in lowered:
        yield from hook_secrets(text)
    if "cookie" in lowered:
        yield from cookie_secrets(text)
    if "-----END " in text:
        yield from key_ends(text)
    if longest >= LONG:
        yield from words_beside(text)


def is_stand_in(value: str) -> bool:
    """Whether *value* stands where a secret would, and is none."""
    low = value.strip("\"'`").lower()
    return (
        STAND_IN.match(low) is not None
        or low in ("pass", "user", "pw", "pwd", "username", "hunter", "postgres", "root", "admin")
        or low.startswith(("$", "<", "[", "{", "%", "*", "your", "my-", "env", "/", "./", "~", "…", "..."))
        or set(low) <= set("x*.-_•")
    )


TWO_DIGITS = re.compile(r"\d\D*\d")


def is_random(value: str) -> bool:
    """Does *value* look drawn, and not written: letters and digits mixed, no word among hyphens?"""
    return (
        TWO_DIGITS.search(value) is not None
        and WORD_LETTER.search(value) is not None
        and entropy(value) >= 3.0
    )


# --- addresses and headers

HOOK = re.compile(r"https?://[^\s\"'`<>/]{1,200}/[^\s\"'`<>\\]{1,1000}", re.I)


def hook_secrets(text: str) -> Iterator[PlacedSpan]:
    """In an address with a hook in it, all from the first part on that was drawn."""
    for m in HOOK.finditer(text):
        if "hook" not in m[0].lower():
            continue
        at = m.start() + 8
        for part in re.finditer(r"[\w.%@-]+", m[0][8:], re.ASCII):
            if len(part[0]) >= 16 and part.start() > 0 and is_random(part[0]):
                address = re.match(r"[!-~]+", m[0])
                end = len(address[0].rstrip(".,;:!?)]}\\")) if address else 0
                yield at + part.start(), max(at + part.end(), m.start() + end), "webhook"
                break


COOKIE = re.compile(r"\b(?:set-)?cookie[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?P<pairs>[^\n]{1,4000})", re.I)
PAIR = re.compile(r"(?<![^\s;\"'])(?P<name>[\w.$-]{1,60})=(?P<value>[^\s;,\"']{8,3000})")


def cookie_secrets(text: str) -> Iterator[PlacedSpan]:
    for m in COOKIE.finditer(text):
        for pair in PAIR.finditer(text, m.start("pairs"), m.end("pairs")):
            if is_random(pair["value"]):
                yield *pair.span("value"), "cookie"


# --- what is left of keys

KEY_LINE = re.compile(r"[>\s]*[A-Za-z0-9+/=]{8,100}\\?\s*")


def key_ends(text: str) -> Iterator[PlacedSpan]:
    """The lines of a private key above its end, where its beginning is missing."""
    at = text.find("-----END ")
    while at >= 0:
        end = text.find("PRIVATE KEY", at, at + 40)
        if end >= 0:
            start = at
            while start > 0:
                begin = text.rfind("\n", 0, start - 1) + 1
                if start - begin > 200 or not KEY_LINE.fullmatch(text, begin, start):
                    break
                start = begin
            if start < at:
                yield start, at, "private key"
        at = text.find("-----END ", at + 9)


# --- by what is said before it, and by nothing

CODES_SPOKEN_OF = re.compile(
    r"\b(?:api|aws|access|secret|private|deploy|auth|bot|[a-z]{3,20})[ _-](?:keys?|tokens?|secrets?)\b|\b(?:token|secret|credentials?|schlüssel)\b",
    re.I,
)

NO_SECRET = re.compile(
    r"\b(?:cache|sha\d*|hash|checksum|fingerprint|commit|digest|primary|foreign|public|idempotency|etag|md5)\b",
    re.I,
)

DRAWN = re.compile(r"(?<![\w/+.=-])(?:0x)?[A-Za-z0-9+/_-]{32,200}={0,2}(?![\w/+=-])")
LONG = 30  # chars of a word that needs no name
LONG_RUN = re.compile(r"(?<![A-Za-z0-9_-])[A-Za-z0-9_/+-]{30,}")  # sought first: there is hardly one in talk
NEAR_WORD = 110  # chars before it in which a secret is spoken of


def words_beside(text: str) -> Iterator[PlacedSpan]:
    """A long drawn word in a line that speaks of a key before it: "here is the aws key: …"."""
    for m in DRAWN.finditer(text):
        if not is_random(m[0]) or m[0].count("/") > 4 or UUID.fullmatch(m[0]):
            continue
        line = text[max(0, m.start() - NEAR_WORD) : m.start()].rpartition("\n")[2]
        if CODES_SPOKEN_OF.search(line) and not NO_SECRET.search(line):
            yield *m.span(), "key"


UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.I)
