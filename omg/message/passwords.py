"""
Secrets that are known by the name beside them: `password: …`, `API_KEY=…`, `Authorization: …`, `пароль: …`.

What stands behind a name is a secret only if it looks like one: no word about secrets, no code, no prose. Not here:
unmasking the text (redaction.py). One rule: entropy is asked only where a name has been found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..text.characters import UNSPACED_RUN
from .looks import DIGIT, HYPHENATED, PLACEHOLDER, PROGRAM_CODE, TYPED, is_key, is_talk, looks_drawn
from .markup import value_in_markup
from .names import PASSWORDS, PHRASES, PROSE_WORDS, SECRET_NAMES, WEAK
from .told import FOR_APPS, WITHIN, grouped_secret, password_told

SecretSpan = tuple[int, int, str]  # start, end, kind

PINS = ("pin", "puk", "tunnusluku", "geheimzahl", "пин-код", "пинкод")
QUALIFIED = re.compile(
    r"(?:api|access|secret|private|auth|service|account|client|encryption|signing|master|storage|subscription"
    r"|webhook|deploy|app|bot|refresh|bearer|license|pre-?shared|shared|consumer|admin|root|cipher|jwt|hmac|ingest"
    r"|write|read|restricted|decryption|wpa[23]?|wlan|wifi|recovery|unlock|activation|product|functions|host|connection"
    r"|developer|server|management|integration|wallet|session|aes|crypt|user|team|project|personal|management|key)[ _.-]?$|(?<![a-z])x-$"
)

NAMED_SO = re.compile(r"[a-z0-9]{2}[_-]$")  # new_relic_key
OPEN_KEY = re.compile(
    r"(?:public|pub|primary|foreign|cache|sort|partition|idempotency|dedupe|row|hash|etag|object|file|image|commit"
    r"|build|lookup|index|map|mon|tur|don|mus|hoc|joc|jac|whis|hot|translation|composite|unique|group|range|dict)[ _.-]?$"
)

# of an environment variable or a property: DB_PASSWORD_PROD, not PASSWORD_FILE
MORE_NAME = (
    r"(?:_(?!hash|file|path|len|pol|field|id|name|url|uri|type|count|reset|min|max|expir|valid|ref|store|mask|salt"
    r"|regex|pattern|prompt|hint|label|manager|required|env|arn|version|rot|limit|budget|ttl|prefix|format)[a-z0-9]{1,12}){0,2}"
)

NOW = (
    r"(?:\s(?:now|jetzt|ora|adesso|ahora|maintenant|currently|still|always|nu|nun|teraz|теперь|agora|immer))?"
)
IS = (
    r"\b(?:is|was|are|to|as|lautet|lauten|ist|war|wurde|est|sera|es|era|será|é|foi|è|este|jest|to|je|är|er|on|adalah|equals|reads"
    r"|heißt|heisst|hieß|remains|becomes|becoming|will be|should be|has been|wordt|blijft|là|это|ni"
    r"|(?:(?:is|was|has been|wurde|now|gets?|got)\s)?(?:set|changed|reset|updated|switched|geändert|gesetzt)\s(?:to|auf|in))\b"
)

ASSIGNED = re.compile(
    r"""(?P<end>'s|(?-i:[^\W\d_A-Z]{0,4}))(?P<more>\d{0,2}"""
    + MORE_NAME
    + r""")["'\])]{0,2}(?:[ ](?:for|to|of|on|at|in|from|für|zum|zur|zu|vom|von|im|am|beim|para|del?|d[aeo]l?|della|dell|su|sur|pour|du|des|voor|van|till|til|på|do|na|от|для|к|на|из)[ '’][^\n:=.,;"']{1,40}?)?\s{0,3}"""
    + rf"""(?P<sep>:=|=>|->|={{1,2}}|:|→|⇒|[–—-](?=\s)|{IS}{NOW}:?|[は是为為])"""
    + r"""\s{0,3}(?:[|>][+-]?[ ]{0,3}\n\s{1,20})?(?:(?:bearer|basic|token|apikey|api-key|ssws|flyv1|splunk|key|digest)[ ]+(?=\S{8}))?"""
    r"""(?:(?P<q>["'`])(?P<quoted>(?:\\[^\n]|(?!(?P=q))[^\n\\]){4,400}+)(?P=q)|(?P<bare>[^\s"'`<>]{1,400}))""",
    re.IGNORECASE,
)

FOLLOWED = re.compile(
    r"""(?P<end>'s|(?-i:[^\W\d_A-Z]{0,4}))(?P<more>)[ ]{1,3}(?P<sep>)(?:(?P<q>["'`])(?P<quoted>[^\s"'`]{4,400})(?P=q)|(?P<bare>[^\s"'`<>]{1,400}))"""
)

PASSWORD_WORDS = re.compile(
    r"""[^\s,;:.!?"'`<>\[\](){}]{1,40}(?:[ ][^\s,;:.!?"'`<>\[\](){}]{1,40}){1,23}(?=[ ]*(?:[.!?,;]?[ \t]*(?:[\r\n]|\Z)|[.!?,;]\s))"""
)

TALKED_OF = re.compile(
    r"(?:forg[eo]t\w{0,9}|reset\w{0,9}|lost|los[et]|chang\w{1,9}|vergessen|olvid\w{1,9}|oubli\w{1,9})\s(?:\w{1,30}\s)?$"
)


def named_secrets(text: str, lowered: str, present: set[str]) -> Iterator[SecretSpan]:
    """Values that stand behind a name such as `password:` and look like what the name says."""
    for name in SECRET_NAMES & present:
        at = lowered.find(name)
        while at >= 0:
            span = None if _inside(text, lowered, name, at) else _named(text, lowered, name, at)
            if span:
                yield span
            at = lowered.find(name, span[1] if span else at + len(name))


def _inside(text: str, lowered: str, name: str, at: int) -> bool:
    """Whether *name* is at *at* the end of another word, or says what nobody keeps secret."""
    before = text[at - 1 : at]
    if name == "key":
        if before == " " and text[at - 2 : at - 1] in " \n.,;:s" and not lowered.startswith("access", at - 7):
            return True  # "its key": no name of a key ends so, and talk has many
        near = max(0, at - 16)
        named_so = (
            camel_case(text, at) or QUALIFIED.search(lowered, near, at) or NAMED_SO.search(lowered, near, at)
        )
        return not named_so or OPEN_KEY.search(lowered, near, at) is not None
    if before == "1" or not before or not name.isascii():  # 1Password
        return before == "1"
    after = text[at + len(name) : at + len(name) + 2]
    if camel_case(text, at) and not after[:1].islower():
        return False
    if (
        name.isascii()
        and len(name) <= 4
        and after[:1].isalnum()
        and not (after[:1] in "sS" and not after[1:].isalnum())
    ):
        return True
    if before == "-":
        return len(name) <= 4 and not text.startswith(("PIN", "PUK", "PW"), at)
    return before.isalnum() and before.isascii() and len(name) <= 4  # the "pin" in "shopping: …"


def camel_case(text: str, at: int) -> bool:
    """Whether a part of a name begins at *at*, as in "PresharedKey", "rootPass"."""
    return text[at : at + 1].isupper() and text[at - 1 : at].islower()


def _named(text: str, lowered: str, name: str, at: int) -> SecretSpan | None:
    behind = at + len(name)
    password = name in PASSWORDS
    for form in (ASSIGNED, FOLLOWED):
        m = form.match(text, behind)
        if m and (m["end"] in ("", "s", "'s") or (password and name not in WEAK and len(name) > 3)):
            if span := (_password if password else _key)(text, lowered, name, at, m):
                return span
            break
    found = None
    if MARKED.match(text, behind):
        found = value_in_markup(
            text, behind, password=password, qualified=password or _qualified(lowered, at)
        )
    if not found and name not in ("pass", *PINS) and NAME_ENDS.match(text, behind):
        near = behind + 2 * WITHIN
        if DIGIT.search(text, behind, near):
            found = (password_told(text, behind) if password else None) or grouped_secret(text, behind)
        elif FOR_APPS.search(text, max(0, at - 40), behind + 40):
            found = grouped_secret(text, behind)
    return (*found, "password" if password else "key") if found else None


# what is tried for markup
MARKED = re.compile(r"[\w.-]{0,20}[ ]?(?:[\\\"'`*_~)\]<>,|→\n(]|[:=-]>?[ ]?[^\w\s])")


NAME_ENDS = re.compile(r"(?:'s|[^\W\d_A-Z]{0,4})(?:[^\w.\[(=-]|\Z)|[^\x00-\x7f]")  # no PASSWORD_MIN_LENGTH


def _qualified(lowered: str, at: int) -> bool:
    """Whether the name at *at* says what for: `api_key`."""
    return QUALIFIED.search(lowered, max(0, at - 16), at) is not None


def _value(m: re.Match[str], *, whole: bool) -> tuple[int, int]:
    """Where the value stands that *m* assigns, without what ends a sentence; *whole*: it may hold commas."""
    if m["quoted"]:
        return m.span("quoted")
    bare = m["bare"] if whole else re.split(r"[,;&|]", m["bare"])[0]
    return m.start("bare"), m.start("bare") + len(bare.rstrip(".,;:!?)]}…"))


def _password(text: str, lowered: str, name: str, at: int, m: re.Match[str]) -> SecretSpan | None:
    """The password that *m* assigns to *name*, which stands at *at*; None if it is no secret."""
    start, end = _value(m, whole=True)
    said = m["sep"][:1].isalpha() or not m["sep"]  # "is", not ":"
    if not m["sep"] or m["sep"].lower() in ("to", "as"):  # nothing says that a value follows but the value
        value = text[start:end]
        if name in PINS:
            own = (
                (name not in ("pin", "puk") or text.startswith(("PIN", "PUK"), at) or m["end"])
                and value.isdigit()
                and 4 <= len(value) <= 8
            )
            return (start, end, "password") if own else None
        typed = (
            not name.isascii()
            and len(value) >= 6
            and value.isascii()
            and value.isalnum()
            and DIGIT.search(value)
        )
        return (start, end, "password") if name != "pass" and (looks_drawn(value) or typed) else None
    words = not m["quoted"] and name not in PINS and not TALKED_OF.search(lowered[max(0, at - 30) : at])
    if words and (phrase := _phrase(text, start, name, said=said)):
        return start, phrase, "password"
    if is_talk(text[start:end]):
        return None
    if UNSPACED_RUN.search(
        text, start, end
    ):  # a sentence without blanks, or one that goes on behind the password
        typed = TYPED.match(text, start, end)
        if not typed:
            return None
        end = typed.end() if said else end
    alone = bool(m["quoted"]) or not text[end : end + 12].split("\n")[0].strip(" .,;:!)]}\r")
    # X_PASSWORD=word
    alone |= m["sep"] == "=" and m.end("sep") == start and text[at : at + len(name)].isupper()
    return (start, end, "password") if _is_typed(text[start:end], name, said=said, alone=alone) else None


def _phrase(text: str, start: int, name: str, *, said: bool) -> int | None:
    """The end of the passphrase that begins at *start*, which is that of the line or sentence; None for prose."""
    m = PASSWORD_WORDS.match(text, start)
    if not m or PLACEHOLDER.match(m[0]) or PROGRAM_CODE.match(m[0].split()[0]):
        return None
    words = m[0].casefold().split()
    small = sum(word in PROSE_WORDS for word in words)
    if name in PHRASES:
        return m.end() if len(words) >= 12 or (len(words) >= 3 and 2 * small <= len(words)) else None
    return m.end() if not small and name not in WEAK and len(words) >= (4 if said else 2) else None


def _is_typed(value: str, name: str, *, said: bool, alone: bool) -> bool:
    """Does *value* look like a password? *alone*: in quotes, or the last on its line."""
    if name in PINS:
        return value.isdigit() and len(value) <= 8
    if said or name in WEAK:
        return len(value) >= 5 and not value.isalpha() and not HYPHENATED.match(value)
    return alone or not value.isalpha()


def _key(text: str, lowered: str, name: str, at: int, m: re.Match[str]) -> SecretSpan | None:
    """The key or token that *m* assigns to *name*, which stands at *at*; None if it is no secret."""
    start, end = _value(m, whole=False)
    value = text[start:end]
    if is_talk(value):
        return None
    header = name == "authorization"
    if not m["sep"] or m["sep"].lower() in ("to", "as"):
        named_so = _qualified(lowered, at)
        return (start, end, "key") if named_so and len(value) >= 20 and is_key(value, True) else None
    qualified = header or _qualified(lowered, at)
    written = m["sep"] == "=" and m.end("sep") in (start, start - 1) and len(value) >= 8  # `secret=word-word`
    if (written and (HYPHENATED.match(value) or (name == "secret" and looks_drawn(value)))) or is_key(
        value, qualified
    ):
        return start, end, "token" if header or name == "token" else "key"
    return (start, end, "token") if header and len(value) >= 12 and not value[1:].islower() else None
