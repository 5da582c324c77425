"""
Secrets that are known by the name beside them: `password: …`, `API_KEY=…`, `Authorization: …`, `пароль: …`.

What stands behind a name is a secret only if it looks like one: no word about secrets, no code, no prose. Not here:
unmasking the text (redaction.py). One rule: entropy is asked only where a name has been found.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator

SecretSpan = tuple[int, int, str]  # start, end, kind

PHRASES = (
    "passphrase",
    "seed phrase",
    "recovery phrase",
    "mnemonic phrase",
)  # several words are to be expected

WEAK = ("clave", "parola", "schlüssel", "pass", "psk")  # words of everyday speech as well

PASSWORDS = (
    *("password", "passwd", "passcode", "pwd", "pw", "pin"),
    *("passwort", "kennwort", "wachtwoord", "lösenord", "passord", "adgangskode", "salasana"),
    *("contraseña", "contrasen\u0303a", "contrasena", "mot de passe", "senha", "palavra-passe", "kata sandi"),
    *(
        "пароль",
        "hasło",
        "heslo",
        "jelszó",
        "şifre",
        "κωδικός",
        "mật khẩu",
        "كلمة المرور",
        "كلمة السر",
        "סיסמה",
    ),
    *("密码", "密碼", "口令", "パスワード", "暗証番号", "비밀번호", "पासवर्ड", "รหัสผ่าน"),
    *PHRASES,
    *WEAK,
)


SECRET_NAMES = (*PASSWORDS, "key", "token", "secret", "credential", "credentials", "authorization")
ASCII_NAMES = tuple(name for name in SECRET_NAMES if name.isascii())

QUALIFIED = re.compile(
    r"(?:api|access|secret|private|auth|service|account|client|encryption|signing|master|storage|subscription"
    r"|webhook|deploy|app|bot|refresh|bearer|license)[ _.-]?$"
)

ASSIGNED = re.compile(
    r"""(?:_(?:base|value|data|b64|base64|string|default|prod|production|dev|test|live|staging|\d{1,2}))?"""
    r"""["'\])]{0,2}(?:[ ](?:for|to|of|on|at|für|zum|vom|para|del?|d[aeo]l?|della|pour|du|от|для)[ ][^\n:=.,;"']{1,40}?)?\s{0,3}"""
    r"""(?P<sep>:=|=>|={1,2}|:|\b(?:is|was|to|as|lautet|ist|war|es|est|é|è|este|jest|är|er)\b:?|[は是为為])"""
    r"""\s{0,3}(?:(?:bearer|basic)[ ]+)?"""
    r"""(?:(?P<q>["'`])(?P<quoted>(?:\\[^\n]|(?!(?P=q))[^\n\\]){4,400}+)(?P=q)|(?P<bare>[^\s"'`<>]{1,400}))""",
    re.IGNORECASE,
)

FOLLOWED = re.compile(
    r"""[ ]{1,3}(?P<sep>)(?:(?P<q>["'`])(?P<quoted>[^\s"'`]{4,400})(?P=q)|(?P<bare>[^\s"'`<>]{1,400}))"""
)

# What stands where a secret would stand: something in its place, or a word about it.
PLACEHOLDER = re.compile(
    r"\$|%\w+%|[{\[<]|\*{3,}|x{4,}$|\.{3}|[…•]|env[.(\[]|process\.env|os\.environ|getenv|your[-_ ]"
    r"|(?:my|the|some)[-_](?:api|key|token|pass|secret)",
    re.IGNORECASE,
)

STAND_IN = re.compile(
    r"(?:example|dummy|placeholder|null|none|nil|true|false|undefined|required|optional|string|text|secret"
    r"|passwords?|tokens?|keys?|changed|unchanged|updated|reset|protected|expired|incorrect|invalid|wrong|missing"
    r"|empty|hidden|redacted|stored|saved|correct|needed|here|there|what|that|this|something|nothing|same|still"
    r"|also|only|just|important|weak|strong|long|short|managers?|field|and|with|from|have|will|when|where|which"
    r"|they|your|str|void|int|bool|bytes|any|object|number|char|varchar|files|easy|hard)$",
    re.IGNORECASE,
)

PROGRAM_CODE = re.compile(
    r"[A-Za-z_]\w*(?:(?:\.|::|->)[A-Za-z_]\w*)*(?:\.|::|->)[A-Za-z_]+\d?$|[\w.]+\(|(?=\w*_)(?=[A-Z0-9_]*(?:KEY|TOKEN|SECRET|PASSWORD))[A-Z0-9_]+$"
    r"|[^$]*\$[{(]|https?://|[./~]|[A-Za-z]+/[A-Za-z]+$|\w:\\|\d{4}-\d\d-\d\d|\d{1,2}[:.]\d\d$"
)

DIGIT, WORD_LETTER = re.compile(r"\d"), re.compile(r"[^\W\d_]")
FILE = re.compile(r"\.[a-z]{2,4}\d?$|^v?\d+(?:\.\d+)+|^\d+[a-z]{1,5}$")  # a file, a version, "15th"
HYPHENATED = re.compile(r"[A-Za-z]+(?:[-'’][A-Za-z]+)+$")
CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
TYPED = re.compile(r"[!-~]{5,}")  # what a password before "です" is made of

PASSWORD_WORDS = re.compile(
    r"""[^\s,;:.!?"'`<>\[\](){}]{1,40}(?:[ ][^\s,;:.!?"'`<>\[\](){}]{1,40}){1,23}(?=[ ]*(?:[.!?,;]?[ \t]*(?:[\r\n]|\Z)|[.!?,;]\s))"""
)

# Words of talk about passwords, and small words that a passphrase does without.
PROSE_WORDS = frozenset(
    """
    a about above again easy hard remember guess files systemd compat all already always an and any are as ask at be because been before below but by can change
    changed characters check click combination contact default did digits do does enter every expected expired fields for forgot
    forgotten from get had has have he her here his how i if in into is it its keep letters like link long login longer
    made manager me minimum must my need needs never new no not numbers of off on only or our out page per please policy
    prompt protected provided required reset rules same screen see sent set she should show so some stored strength
    strong than that the their them then there these they this to too type unchanged under until up use used user
    username using dummy empty example expired hidden important incorrect invalid key keys missing needed none nothing
    null optional placeholder redacted saved secret something still string text token tokens true false undefined
    updated wrong password passwords vault was we weak were what when where which who will with would you your
    als am an auf aus bei bitte das dem den der die du ein eine er es für habe hat ich im in ist liegt man mein meine mit
    nicht noch nur oder per sein sich sie siehe steht und unter vergessen von war wie wird wir zu zum
    al con como cuando de del el en es esta está la las le les lo los mi no para pero por que se si sin su un una ver y yo
    au avec ce dans des du elle est et il je mon ne ou pas pour qui sur une voir à da do em esqueci foi minha na não o os
    um в и из к на не он она по с у это я забыл где как мой
    """.split()
)

TALKED_OF = re.compile(
    r"(?:forg[eo]t\w{0,9}|reset\w{0,9}|lost|los[et]|chang\w{1,9}|vergessen|olvid\w{1,9}|oubli\w{1,9})\s(?:\w{1,30}\s)?$"
)


def named_secrets(text: str, lowered: str) -> Iterator[SecretSpan]:
    """Values that stand behind a name such as `password:` and look like what the name says."""
    for name in ASCII_NAMES if lowered.isascii() else SECRET_NAMES:
        if name not in lowered:
            continue
        at = lowered.find(name)
        while at >= 0:
            span = None
            behind = at + len(name)
            if name == "key" and not (
                text.startswith("_KEY", at - 1) or QUALIFIED.search(lowered, max(0, at - 16), at)
            ):
                at = lowered.find(name, behind)
                continue
            if m := ASSIGNED.match(text, behind) or FOLLOWED.match(text, behind):
                span = (_password if name in PASSWORDS else _key)(text, lowered, name, at, m)
            if span:
                yield span
            at = lowered.find(name, span[1] if span else at + 1)


def _value(m: re.Match[str], *, whole: bool) -> tuple[int, int]:
    """Where the value stands that *m* assigns, without what ends a sentence; *whole*: it may hold commas."""
    if m["quoted"]:
        return m.span("quoted")
    bare = m["bare"] if whole else re.split(r"[,;&|]", m["bare"])[0]
    return m.start("bare"), m.start("bare") + len(bare.rstrip(".,;:!?)]}…"))


def _talk(value: str) -> bool:
    """Whether *value* stands in a secret's place, or is code, or too short for one."""
    return len(value) < 4 or any(p.match(value) for p in (PLACEHOLDER, STAND_IN, PROGRAM_CODE))


def _password(text: str, lowered: str, name: str, at: int, m: re.Match[str]) -> SecretSpan | None:
    """The password that *m* assigns to *name*, which stands at *at*; None if it is no secret."""
    inside = at > 0 and (text[at - 1].isalnum() or text[at - 1] == "-")
    if inside and (len(name) <= 4 or text[at - 1] == "1"):  # the "pin" in "shopping: …"; 1Password
        return None
    start, end = _value(m, whole=True)
    said = m["sep"][:1].isalpha() or not m["sep"]  # "is", not ":"
    if not m["sep"] or m["sep"].lower() in ("to", "as"):  # nothing says that a value follows but the value
        value = text[start:end]
        drawn = DIGIT.search(value) and WORD_LETTER.search(value)
        if name == "pin" or len(value) < 6 or not drawn or _talk(value) or "/" in value or FILE.search(value):
            return None
        return start, end, "password"
    words = not m["quoted"] and name != "pin" and not TALKED_OF.search(lowered[max(0, at - 30) : at])
    if words and (phrase := _phrase(text, start, name, said=said)):
        return start, phrase, "password"
    if _talk(text[start:end]):
        return None
    if CJK.search(text, start, end):  # a sentence without blanks, or one that goes on behind the password
        typed = TYPED.match(text, start, end)
        if not typed:
            return None
        end = typed.end() if said else end
    alone = bool(m["quoted"]) or not text[end : end + 12].split("\n")[0].strip(" .,;:!)]}\r")
    return (start, end, "password") if _typed(text[start:end], name, said=said, alone=alone) else None


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


def _typed(value: str, name: str, *, said: bool, alone: bool) -> bool:
    """Does *value* look like a password? *alone*: in quotes, or the last on its line."""
    if name == "pin":
        return value.isdigit() and len(value) <= 8
    if said or name in WEAK:
        return len(value) >= 5 and not value.isalpha() and not HYPHENATED.match(value)
    return alone or not value.isalpha()


def _key(text: str, lowered: str, name: str, at: int, m: re.Match[str]) -> SecretSpan | None:
    """The key or token that *m* assigns to *name*, which stands at *at*; None if it is no secret."""
    start, end = _value(m, whole=False)
    value = text[start:end]
    if _talk(value):
        return None
    header = name == "authorization"
    if not m["sep"] or m["sep"].lower() in ("to", "as"):
        named_so = QUALIFIED.search(lowered[max(0, at - 16) : at])
        return (start, end, "key") if named_so and len(value) >= 20 and _random(value, True) else None
    qualified = header or bool(QUALIFIED.search(lowered[max(0, at - 16) : at]))
    written = m["sep"] == "=" and m.end("sep") in (start, start - 1) and len(value) >= 8  # `secret=word-word`
    if (written and HYPHENATED.match(value)) or _random(value, qualified):
        return start, end, "token" if header or name == "token" else "key"
    return (start, end, "token") if header and len(value) >= 12 and not value[1:].islower() else None


def _random(value: str, qualified: bool) -> bool:
    """Does *value* look like a key? Less is asked where the name says what for: `api_key`, not `token`."""
    if " " in value and not value.lower().startswith(("bearer ", "basic ")):
        return False
    if DIGIT.search(value) and WORD_LETTER.search(value):
        return len(value) >= (10 if qualified else 16) and entropy(value) >= (2.5 if qualified else 3.0)
    return len(value) >= 24 and value.isalpha() and not value.islower() and entropy(value) >= 3.5


def entropy(text: str) -> float:
    """Bits a char, after Shannon: English words 2–3, hex below 4, base64 above 4."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values())
