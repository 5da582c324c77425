"""
What a secret looks like: drawn and not written, and nothing that stands in a secret's place.

Not here: names and places. One rule: what is judged is the value alone, for whoever found it knows why it was asked.
"""

from __future__ import annotations

import math
import re
from collections import Counter

from .names import STAND_IN

# What stands where a secret would stand: something in its place, or a word about it.
PLACEHOLDER = re.compile(
    r"\$(?:[\w:.]*(?:$|\[|->)|[{(])|![a-z]+$|[A-Z]{2,8}\[|\S*[-_](?:your[-_]|here$)|%\w+%|[{\[<]|\*{3,}|x{4,}$|\.{3}|[…•]|env[.(\[]|process\.env|os\.environ|getenv|your[-_ ]"
    r"|(?:my|the|some)[-_](?:api|key|token|pass|secret)",
    re.IGNORECASE,
)

PROGRAM_CODE = re.compile(  # "Rohr.Zange4" is none: a word is written large, and a digit ends it
    r"(?![A-Z][a-z]+\.[A-Z][a-z]+_?\d)[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)*(?:\.|::|->)[A-Za-z_]+\d?$|[\w.]+\(|(?=\w*_)(?=[A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD))[A-Z0-9_]+$"
    r"|[A-Z_]{3,40}=\S*[a-z]|[a-z_]{2,40}=(?:\d+|None|True|False)\b|[\w.]+\[$|(?:Read|Get|New|Set|ConvertTo|ConvertFrom|Import)-[A-Z]|[^$]*\$[{(]|https?://|[./~]|[A-Za-z]+/[A-Za-z]+$|&(?:mut )?[a-z_]+$|[A-Z]\w*(?:String|Str|Type|Field|Input|Schema|Ref)\b|\w:\\|\d{4}-\d\d-\d\d|\d{1,2}[:.]\d\d$"
)

TWO_DIGITS = re.compile(r"\d\D*\d")
DIGIT, WORD_LETTER = re.compile(r"\d"), re.compile(r"[^\W\d_]")
# a file, a version, "15th"
FILE = re.compile(
    r"\.(?:py|[jt]sx?|txt|md|json[lc]?|ya?ml|toml|pdf|png|jpe?g|gif|svg|html?|css|csv|xlsx?|docx?|pptx?|zip|t?gz|tar|sh|conf|cfg|ini|log|xml"
    r"|com|org|net|de|io|dev|app|example|test|local|key|pem|crt|kdbx?|db|sql|go|rs|rb|php|java|cpp|exe|mp[34]|env|lock|bak|so|lib|whl|ipynb)\d?$|^v?\d+(?:\.\d+)+|^\d+[a-z]{1,5}$"
)
HYPHENATED = re.compile(r"[A-Za-z]+(?:[-'’][A-Za-z]+)+$")
TYPED = re.compile(r"[!-~]{5,}")  # what a password before "です" is made of


UUID = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.I)


def is_talk(value: str) -> bool:
    """Whether *value* stands in a secret's place, or is code, or too short for one."""
    return len(value) < 4 or any(p.match(value) for p in (PLACEHOLDER, STAND_IN, PROGRAM_CODE))


PRODUCT = re.compile(  # a thing with a number, a code of a room or a standard, "12-char"
    r"\A(?:(?:windows|win|iphone|ipad|pixel|galaxy|ubuntu|debian|fedora|macos|ios|android|python|node|java|php|postgres\w{0,8}|mysql|sha|md|utf"
    r"|base|https?|oauth|ipv|rfc|iso|cve|gpt|claude|llama|room|area|chapter|page|section|figure|version|step|level|covid|office|server"
    r"|router|fritz!?box|xbox|rtx|usb|wpa|aes|rsa|ed|bcrypt|argon|scrypt|pbkdf|route|user|admin|test|line|port|type|part|model|version|vlan)"
    r"[-_ ]?\d{1,5}[a-z]{0,2}$|[A-Z]{1,4}-?\d{1,5}$|\d{1,3}[-–]?[a-z]{1,9}s?$|\d+(?:st|nd|rd|th|am|pm)\b|[0-9a-f]{32,128}$|#?\d{1,20}[.,]\d)",
    re.IGNORECASE,
)

EXPRESSION = re.compile(r"\\[swdbWSD]|\(\?|[\])]\{|\{\d+,|\[\^")  # a regular one
SYMBOLS = re.compile(r"[!#$%^&*?@+=_~|\\-]")
MAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,60}\.[\w.]{2,60}$")


def looks_drawn(value: str) -> bool:
    """Whether *value* looks like a password by itself: letters and digits, and no word, product, file or date."""
    if not 6 <= len(value) <= 64 or not DIGIT.search(value) or not WORD_LETTER.search(value):
        return False
    if (
        is_talk(value)
        or EXPRESSION.search(value)
        or PRODUCT.match(value)
        or MAIL.match(value)
        or UUID.match(value)
        or FILE.search(value)
    ):
        return False
    return (
        TWO_DIGITS.search(value) is not None or SYMBOLS.search(value) is not None or not value[1:].islower()
    )


def is_stand_in(value: str) -> bool:
    """Whether *value* stands where a secret would, and is none."""
    low = value.strip("\"'`").lower()
    return (
        STAND_IN.match(low) is not None
        or low in ("pass", "user", "pw", "pwd", "username", "hunter", "postgres", "root", "admin")
        or low.startswith(("$", "<", "[", "{", "%", "*", "your", "my-", "env", "/", "./", "~", "…", "..."))
        or set(low) <= set("x*.-_•")
    )


def is_random(value: str) -> bool:
    """Does *value* look drawn, and not written: letters and digits mixed, no word among hyphens?"""
    return (
        TWO_DIGITS.search(value) is not None
        and WORD_LETTER.search(value) is not None
        and entropy(value) >= 3.0
    )


SCHEME = re.compile(r"(?:bearer|basic|token|apikey|api-key|ssws|flyv1|splunk|digest|key) \S+$", re.I)


def is_key(value: str, qualified: bool) -> bool:
    """Does *value* look like a key? Less is asked where the name says what for: `api_key`, not `token`."""
    if " " in value and not SCHEME.match(value):
        return False
    if DIGIT.search(value) and WORD_LETTER.search(value):
        return len(value) >= (10 if qualified else 16) and entropy(value) >= (2.5 if qualified else 3.0)
    return len(value) >= 24 and value.isalpha() and not value.islower() and entropy(value) >= 3.5


def entropy(text: str) -> float:
    """Bits a char, after Shannon: English words 2–3, hex below 4, base64 above 4."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())
