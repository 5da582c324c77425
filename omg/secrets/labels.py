"""
Secrets with a label: `password: …`, `API_KEY=…`, table columns, URLs, commands.

A label is one of a few technical words, alone or as part of a name. The value beside a label is a secret only if it
looks like one (tokens.py), because people mention passwords more often than they write them down.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .tokens import (
    DIGIT,
    JUDGED_CHARS,
    PUBLIC_CHARS,
    STAND_IN,
    TWO_DIGITS,
    UUID,
    Span,
    in_url,
    is_key,
    is_public,
    is_random,
    is_stand_in,
    is_typed,
)

# Kind of secret → its labels, in lower case.
LABELS = {
    "password": "password,passwort,passwd,passphrase,passkey,secret,pass,pwd,pw,psk,kennwort,wachtwoord,mot de passe,contraseña,senha"
    ",hasło,şifre,lösenord,пароль,パスワード,密码,密碼,비밀번호",
    "key": "token,login,credential,authorization,apikey,api_key,api-key,key,auth,jwt,bearer,signature,sig,hmac,salt",
    "cookie": "cookie",
    "number": "pin,passcode,puk,otp,cvv,cvc,ssn,social security number,combination,combo,account number,code",
    "phrase": "seed,mnemonic,recovery phrase,secret phrase",
    "codes": "recovery code,backup code,emergency code,recovery key",
}
KINDS = {word: kind for kind, words in LABELS.items() for word in words.split(",")}
SHORT = 5  # labels this short also occur inside other words: "pin" in "shopping"
# Words near "code" that show a secret code; without such a word, the code may be an error code.
CODE_OF = re.compile(
    r"\b(?:access|alarm|box|building|card|confirm|door|entr(?:y|ance)|garage|gate|gym|intercom|keypad|lobby|lock|login"
    r"|phone|safe|secur|sign|sim|sms|unlock|verif|2fa)",
    re.I,
)
# Names whose values are not secrets: token_id, PASSWORD_FILE, public_key.
NO_LABEL = re.compile(
    r"s?[_.-]?(?:id|name|type|file|path|url|uri|len|length|count|hash|hint|prefix|size|limit|min|max)(?![a-z])",
    re.I,
)
OPEN_KEY = re.compile(
    r"(?:public|pub|primary|foreign|sort|partition|idempotency|ssh-\w+)[ _.-]?\Z|cache[^\n:=]{0,20}\Z", re.I
)
OPTION_NAME = re.compile(
    r"(?<!\S)--?[\w-]{0,30}\Z"
)  # the text up to a label that is an option: "-store" of "-storepass"

# An assigned value: after =, :, ->, >, or a comma or blank and a quote; or in a field "value" that follows the label's field.
ASSIGNED = re.compile(
    r"""s?\d?(?:[_-][A-Za-z0-9]{1,12})?\\?["'\])}*_`]{0,3}(?:[ ]?\([^()\n]{1,30}\)|(?P<whose>[ ][^\W\d_]{2,4}[ ]['"]?[\w.@-]{1,40}['"]?)(?=:))?"""
    r"""(?P<sep>[ \t]{0,3}(?::=|=>|->|={1,2}|:|→|>)[*_` \t]{0,8}|,?[ ]{1,3}(?=\\?["'`])|["'\s,]{1,20}value\\?["']?\s?[:=]\s?)"""
    r"""(?P<scheme>(?i:bearer|basic|token|apikey|digest)[ ]+(?=\S{8}))?(?:\\{0,3}(?P<q>["'`“„«])(?:["']{2})?"""
    r"""(?P<quoted>(?:\\[^\n]|[^\n\\"'`”“»]){3,400}+)(?=\\{0,3}(?:(?P=q)(?!\s?:)|[”“»]))|(?P<bare>[^\s"'`<>]{1,400}))"""
)
LONGEST = 400  # characters of a value that are looked at
REST = re.compile(r"[^\s\"'`<>]{1,20000}")  # the rest of a longer value
OPTION = re.compile(
    r"""[= ]{1,3}(?P<q>["'])?(?P<value>(?(q)[^\n"']{3,200}|[^\s"'|;&<>$(){}-][^\s"'|;&<>$(){}]{2,200}))"""
)
PROGRAM = re.compile(r"[(\[{]|=[^=]|,[\w.]+[:=,]|^[_=!,]")  # signs of source code, in a value without quotes
PLAIN_WORDS = re.compile(r"[a-z]{4,}(?: [a-z]{4,}){2,7}(?=[ \t]*(?:[\n(.;]|\Z))")
ENDS = ".,;:!?)]}…"

# A value in a sentence: a few words after the label, on the line below, or before the label.
SENTENCE_CHARS = 80
PART_OF_NAME = re.compile(r"[-_.]\w|\d")
# Characters of scripts without blanks: a password may stand right beside these
NOT_TYPED = "。、\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af"
WORD = re.compile(rf"[^\s\"'`“”„<>「」『』（）(),;{NOT_TYPED}]{{5,200}}")
BELOW = re.compile(  # a value on its own line, below a line that ends with a colon, or below a blank line
    r"(?:[^\n.()]{0,60}:[ \t]*\r?\n(?:```\w*\n)?|[^\n.]{0,60}\n\s*\n)[ \t]{0,20}(?P<value>[^\s\"'`<>]{6,64})[ \t]*(?:\r?\n|\Z)"
)
BEFORE = re.compile(
    r"(?:^|[\s\"'`])(?P<value>[^\s\"'`]{6,64})[\"'`]?(?: [^\W\d_]{1,5}){1,4} (?:\w{1,12} )?\Z"
)

# "The password for my locker is 4411." and "… is Luna-2231.": not "password length is 4096", and not "is 2026 themed".
TOLD = re.compile(
    r"(?i:(?: [^\W\d_]{2,3} [^\n\d.,;:!?]{1,40}?)?(?: (?:is|ist|lautet|es|est|è)\b:?(?: [a-z]{3,7})? |は ?)[\"'“「]?)"
    r"(?P<value>(?:[A-Za-z]{3,20}[-_]?)?\d{4,12})(?=[\"'”」)]{0,2}(?:[.,;!?。](?!\d)| and | und | ?です|\n|\Z))"
)

NUMBER = re.compile(
    r"[^\n\d]{0,30}?(?<![\w.,-])"
    r"(?P<value>\d{3}[ -]\d{2,3}(?:[ -]\d{4})?|[RL]?\d{1,2}(?:-[RL]?\d{1,2}){2,3}|[#*]?\d{3,17}[#*]?)(?![\w-]|[.,:/]\d)"
)
NUMBER_BEFORE = re.compile(  # not the last part of a phone number
    r"(?<![\w.,-])(?<!\d[ /])(?<!\d\) )(?P<value>#?\d{4,8}#?) (?:[^\W\d_]{1,5} ){1,3}(?:\w{1,14} )?\Z"
)
GIVEN = re.compile(r"(?i: is| ist| lautet|:) \[redacted: code\]")  # the number is redacted already
POSTAL = re.compile(r" code\W{1,3}\d{6}\b")  # India's "pin code"
PHRASE = re.compile(  # 12 to 24 words, with or without numbers
    r"[^\n]{0,60}?[\s`\"'](?P<value>(?:\d{1,2}[.):]?\s{0,3})?[a-z]{3,8}(?:[\s,]{1,3}(?:\d{1,2}[.):]?\s{0,3})?[a-z]{3,8}){11,23})(?![\w'])"
)
ONE_CODE = re.compile(
    r"(?<![\w-])(?:\d{4} \d{4}|(?=[A-Za-z-]{0,12}\d)[A-Za-z0-9]{4,12}(?:-[A-Za-z0-9]{3,12}){0,7})(?![\w-])"
)
CODES_CHARS = 1_000
COOKIES = re.compile(r"[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?P<pairs>[^\n]{1,1000})")
COOKIE = re.compile(r"(?<![^\s;\"'])[\w.$-]{1,60}=(?P<value>[\w%.+/=-]{16,3000})")


def find_labels(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield kind, start and end of each label in *text*."""
    lowered = text.replace(
        "İ", "I"
    ).lower()  # the only letter whose lower case is longer: places must stay the same
    for word, kind in KINDS.items():
        at = lowered.find(word)
        while at >= 0:
            end = at + len(word)
            if _is_label(text, at, end):
                before, after = text[max(0, at - 30) : at], text[end : end + 30]
                near = f"{before.rpartition(chr(10))[2]}|{after.partition(chr(10))[0]}"
                if word != "code" or CODE_OF.search(near):
                    yield kind, at, end
            at = lowered.find(word, end)


def _is_label(text: str, start: int, end: int) -> bool:
    """
    Return whether *text* from *start* to *end* is a whole word or a part of a name ("rootPass"), and not just
    letters inside another word.
    """
    short = end - start <= SHORT
    after, before = text[end : end + 2], text[start - 1 : start]
    if after[:1].isalpha() and after[0].isascii() and not (after[0] in "sS" and not after[1:].isalpha()):
        return not short and text[end - 1].islower() and after[0].isupper()
    begins = not (before.isascii() and before.isalpha()) or (text[start].isupper() and before.islower())
    if begins or not short:
        return True
    return OPTION_NAME.search(text, max(0, start - 32), start) is not None


def labelled_secrets(text: str) -> Iterator[Span]:
    """Yield the secrets that a label marks: after the label, before it, or below it in a table."""
    headed, done = False, 0
    for start, end, kind in sorted((start, end, kind) for kind, start, end in find_labels(text)):
        headed = headed or kind in ("password", "key")
        if start >= done:  # a label inside a value does not count
            for span in _of_label(text, start, end, kind):
                done = max(done, span[1])
                yield span
    if headed and "\n" in text:
        yield from columns(text)


def _of_label(text: str, start: int, end: int, kind: str) -> Iterator[Span]:
    m: re.Match[str] | None = None
    if kind in ("password", "key"):
        if not NO_LABEL.match(text, end) and not (
            kind == "key" and OPEN_KEY.search(text, max(0, start - 30), start)
        ):
            yield from _value(text, start, end, kind)
    elif kind == "number" and not POSTAL.match(text, end):
        m = NUMBER.match(text, end)
        if not m and not GIVEN.match(text, end):
            m = NUMBER_BEFORE.search(text, max(0, start - SENTENCE_CHARS), start)
    elif kind == "phrase":
        m = PHRASE.match(text, end)
    elif kind == "codes":
        yield from _codes(text, end)
    elif kind == "cookie" and (line := COOKIES.match(text, end)):
        pairs = COOKIE.finditer(text, line.start("pairs"), line.end())
        yield from ((*pair.span("value"), kind) for pair in pairs if is_key(pair["value"], shortest=16))
    if m:
        yield *m.span("value"), "code" if kind == "number" else "recovery phrase"


def _value(text: str, start: int, end: int, kind: str) -> Sequence[Span]:
    """
    Return the secret of the label from *start* to *end*: an assigned value, else an option's value, else a
    value in a sentence.
    """
    found = _assigned_value(text, start, end, kind)
    if found is None:
        found = _option_value(text, start, end, kind)
    return _value_in_sentence(text, start, end, kind) if found is None else found


def _assigned_value(text: str, start: int, end: int, kind: str) -> Sequence[Span] | None:
    """
    Return the span of the secret that is assigned to a label, as in "password: …".

    - Returns () if the assigned value is no secret, for example a placeholder, or source code.
    - Returns None if nothing is assigned to the label. Also returns None for an ordinary word without an equals sign
      ("my password: well, …"), because a later word of the sentence may be the secret.
    """
    m = ASSIGNED.match(text, end)
    if not m or (not m["sep"].strip() and text[start:end].lower() == "pass"):  # not "pass `--all`"
        return None
    at = m.start("quoted") if m["quoted"] else m.start("bare")
    query = in_url(text[max(0, start - 200) : start])
    value = m["quoted"] or re.split(f"[{NOT_TYPED}{'&;' if query else ';'}]", m["bare"])[0]
    equals = m["sep"].strip() in ("=", ":=")
    if _is_no_secret(m, value, kind, equals):
        return ()
    if found := _secret_chars(text, start, end, kind, m, value):
        rest = REST.match(text, at + found) if found >= LONGEST else None
        return ((at, rest.end() if rest else at + found, kind),)
    return () if equals else None


def _is_no_secret(m: re.Match[str], value: str, kind: str, equals: bool) -> bool:
    """
    Return whether the *value* after a label is no secret. True for:

    - source code and placeholders
    - a value without a digit, if *kind* is "key" and an equals sign (*equals*) stands before the value
    """
    if kind == "password":
        return bool(m["bare"] and PROGRAM.search(value)) or _stands_in(value)
    if equals and not m["scheme"] and not DIGIT.search(value, 0, JUDGED_CHARS):
        return True  # is_key would refuse it, too, but slowly if "api_key=" is repeated often
    return _stands_in(value) and not is_random(value)


def _stands_in(value: str) -> bool:
    bare = value.rstrip(ENDS)
    return is_stand_in(value) or (bare != value and is_stand_in(bare))


def _option_value(text: str, start: int, end: int, kind: str) -> Sequence[Span] | None:
    """
    Return the secret after a command's option, as in `-storepass x`; empty if the value is no secret, None if
    the label is no option.
    """
    if not (OPTION_NAME.search(text, max(0, start - 32), start) and (m := OPTION.match(text, end))):
        return None
    fits = not is_stand_in(m["value"]) and (kind == "password" or is_key(m["value"], shortest=12))
    return ((*m.span("value"), kind),) if fits else ()


def _secret_chars(text: str, start: int, end: int, kind: str, m: re.Match[str], value: str) -> int:
    """
    Return how many characters at the beginning of *value* are a secret. *m* is the match that assigns *value*
    to the label.
    """
    if not m["quoted"]:
        words = PLAIN_WORDS.match(text, m.start("bare")) if kind == "password" else None
        if words and not any(find_labels(words[0])):
            return len(words[0])
        value = (value if kind == "password" else re.split(r"[,|]", value)[0]).rstrip(ENDS)
    if kind == "key":
        drawn = is_key(value, shortest=12) or (m["scheme"] and not value.islower())
        return len(value) if " " not in value and drawn else 0
    if len(value) < 4 or not value.isprintable():
        return 0
    if not value.replace("-", "").isalpha() and value.count(" ") < 3:
        return len(value)
    # A plain word counts as a password only in quotes or assigned in a file (PASSWORD=word).
    ends = text[m.end() : m.end() + 1] in "\n"
    prompted = m["whose"] and m["sep"].strip() == ":" and ends  # "Password for mira: word"
    file = prompted or (m["sep"] == "=" and (ends or text[end - 1].isupper()))
    quoted = m["quoted"] and "," not in m["sep"] and value.count(" ") < 6
    return len(value) if (file or quoted) and text[start:end].lower() != "secret" else 0


def _value_in_sentence(text: str, start: int, end: int, kind: str) -> Sequence[Span]:
    """
    Return the place of a word that looks like a secret: the first such word behind the label. If there is none, and
    the label is a password's, return the place of the last such word before the label.
    """
    if PART_OF_NAME.match(text, end):
        return ()
    if (m := BELOW.match(text, end)) and (
        is_typed(m["value"]) if kind == "password" else is_key(m["value"], shortest=20)
    ):
        return ((*m.span("value"), kind),)
    label = text[start:end].lower()
    if kind == "password" and label not in ("pass", "secret") and (m := TOLD.match(text, end)):
        return ((*m.span("value"), kind),)
    chars = 12 if label == "pass" else SENTENCE_CHARS
    stop = text.find("\n", end, end + chars) % (end + chars + 1)
    for m in WORD.finditer(text, end, stop + 64) if DIGIT.search(text, end, stop + 64) else ():
        value = m[0].strip(ENDS + "-")
        if m.start() >= stop:
            break
        if is_typed(value) if kind == "password" else _is_key_in_sentence(text, value, end, m.start()):
            at = m.start() + m[0].find(value)
            return ((at, at + len(value), kind),)
        if m[0][-1] in ".!?":
            break
    before = BEFORE.search(text, max(0, start - SENTENCE_CHARS), start) if kind == "password" else None
    return ((*before.span("value"), kind),) if before and is_typed(before["value"]) else ()


def _is_key_in_sentence(text: str, value: str, end: int, at: int) -> bool:
    long_enough = is_key(value, shortest=12 if at - end < 6 else 20)
    if not long_enough or not TWO_DIGITS.search(value) or "=" in value[:-2]:
        return False
    return (at - end < 3 or not UUID.fullmatch(value)) and not is_public(text[max(0, at - PUBLIC_CHARS) : at])


def _codes(text: str, end: int) -> Iterator[Span]:
    """Yield three or more recovery codes in a row without words between them, or one long code."""
    found: list[tuple[int, int]] = []
    for m in ONE_CODE.finditer(text, end, end + CODES_CHARS):
        if found and re.search(r"[A-Za-z]", text[found[-1][1] : m.start()]):
            break
        found.append(m.span())
    if len(found) >= 3 or any(b - a > 20 for a, b in found):
        yield from ((*span, "recovery code") for span in found)


# --- tables

SEPARATORS = "|,;\t"
HEADING = re.compile(r"\w[\w ./-]{0,29}")
ROWS = 500


def columns(text: str) -> Iterator[Span]:
    """Yield the cells below a heading such as "password" in tables, and in lines with commas, semicolons or tabs."""
    at, left, wide, separator = 0, 0, 0, ""
    secret: list[int] = []
    lines = text.split("\n")
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        begin, at = at, at + len(line) + 1
        if left and (separator in line or not set(line) - set("-+|: ")):
            left -= 1
            cells = _cells(line, separator)
            whole = separator == "|" or len(cells) == wide
            for start, end in (cells[n] for n in secret if n < len(cells) and whole):
                value = line[start:end]
                if len(value) >= 3 and set(value) - set("-:+= ") and not STAND_IN.match(value):
                    yield begin + start, begin + end, "password"
            continue
        left = 0
        for separator in [s for s in SEPARATORS if s in line] if len(line) <= 2_000 else ():
            # below headings with bars there is a line of dashes; commas between headings have no blank after them
            headed = not set(below) - set("-+|: \r") if separator == "|" else separator + " " not in line
            if headed and (secret := _headings(line, separator)):
                left, wide = ROWS, len(_cells(line, separator))
                break


def _headings(line: str, separator: str) -> list[int]:
    """
    Return the indexes of the cells in *line* that end with a label, such as "Password".

    Returns [] if *line* is no row of headings. A row of headings has two or more cells. Each cell has 1 to 30
    characters: letters, digits, "_", spaces, ".", "/" or "-".
    """
    heads = [line[start:end] for start, end in _cells(line, separator)]
    inner = heads[1:-1] if separator == "|" and not heads[0] else heads
    if len(inner) < 2 or not all(map(HEADING.fullmatch, inner)):
        return []
    return [
        n
        for n, head in enumerate(heads)
        for kind, at, end in find_labels(head)
        if kind in ("password", "key")
        and end >= len(head) - 1
        and (end - at > 4 or at == 0)  # not "must pass"
    ]


def _cells(line: str, separator: str) -> list[tuple[int, int]]:
    """Return start and end of each cell in *line*, without the blanks and quotes around the cell's text."""
    found, at = [], 0
    for cell in line[:4_000].split(separator):
        inner = cell.strip(" \"'`*_\r")
        start = at + cell.find(inner)
        found.append((start, start + len(inner)))
        at += len(cell) + 1
    return found


# --- Credentials in URLs, commands and calls, known by their position rather than by a label.


# For each place: a text that must occur, whether the value must look like a password, and the expression.
PLACES = tuple(
    (needle, strict, re.compile(pattern))
    for needle, strict, pattern in (
        # postgres://user:password@host, user:password@host
        ("://", False, r"://[^\s:/@\[\]\"'<>]{0,80}:(?P<value>[^\s/\[\]\"'<>]{1,200})@(?=[\w\[])"),
        ("@", True, r":(?<=[\w-]:)(?P<value>[^\s:@/\"'<>]{5,60})@(?=[\w-]{1,60}[.:])"),
        # curl -u user:password, smbclient -U user%password
        (" -", False, r" -(?:[a-zA-Z]{0,4}[uU]|-(?:proxy-)?user)[ =]?[\"']?[^\s:%\"'$]{1,80}[:%](?P<value>[^\s\"'$]{2,200})"),
        # mysql -ppassword, 7z -ppassword, sqlcmd -P password
        (" -", True, r" -(?:h?[pPaw]|pw)[ =]?[\"']?(?P<value>[^\s\"'|;&<>$(){}=-][^\s\"'|;&<>$(){}=]{5,80})(?![\w(=])"),
        # echo password | sudo -S
        ("echo ", False, r"echo\s[\"']?(?:[\w.-]{1,40}:)?(?P<value>[^\s\"'|;&<>$(){}\\]{5,80})[\"']?\s{0,3}\|[^|\n]{0,60}?(?:sudo\s+-S|passwd|stdin|login)"),
        # login("anna", "password"), auth=("anna", "password")
        ("(", False, r"[(\[]\s{0,3}\\?[\"'][^\"'\n\\]{1,80}\\?[\"'],\s{0,3}\\?[\"'](?P<value>[^\"'\n\\]{3,200})\\?[\"']\s?[)\]]"),
        # jdbc:oracle:thin:user/password@host
        ("jdbc:", False, r"jdbc:[\w:]{1,40}:[\w.-]{1,60}/(?P<value>[^\s@\"'<>]{2,200})@"),
        # sshpass -p password ssh
        ("sshpass ", False, r"sshpass\s{1,3}-p\s?(?P<q>[\"']?)(?P<value>[^\s\"'$]{3,80})(?P=q)\s{1,3}(?:ssh|scp|sftp|rsync|sudo|git|ansible)"),
        # create user app identified by 'password'
        ("identified by", False, r"(?i:identified by)\s{1,3}['\"](?P<value>[^\"'\n$]{3,200})"),
        # ~/.netrc, ~/.pgpass
        ("login ", False, r"login\s{1,4}\S{1,60}\s{1,9}password\s{1,4}(?P<value>\S{3,200})"),
        (":", False, r"(?m):(?:\d{4,5}|\*):[A-Za-z*][^\s:]{0,60}:[A-Za-z*][^\s:]{0,60}:(?P<value>[^\s:\"']{4,200})(?=$|[\"'])"),
    )
)  # fmt: skip
LOGIN = re.compile(r"(?:log_?in|auth\w{0,12}|sign_?in|credentials?)[\"']?\s?[=:]?\s?\Z", re.I)
URL = re.compile(r"://[^\s\"'`<>\u0080-\U0010ffff]{1,2000}")
USER = re.compile(r"://([\w-]{20,200})[:@][^/]*")
# The part of a URL before a token: a host or a path.
OPENS = re.compile(
    r"://[\w.-]{0,60}hook[\w.-]{0,60}/|/[\w-]{0,20}?(?:hook|reset|verify|confirm|invite|magic|token|key|secret|activate|join"
    r"|login|auth|sign_?in|private|feed|ical)\w{0,6}[/-]",
    re.I,
)
PART = re.compile(r"[\w~.-]{16,}")


def placed_secrets(text: str) -> Iterator[Span]:
    """
    Yield passwords and tokens that are recognized by their place in a URL, command or call.

    Example: "hunter2xyz" in "https://ada:hunter2xyz@example.org/".
    """
    lowered = text.lower()
    for needle, strict, pattern in PLACES:
        for m in pattern.finditer(text) if needle in lowered else ():
            value = m["value"].rstrip(".,;")
            typed = not strict or is_typed(value) or is_key(value, shortest=16)
            if is_stand_in(value) or value.isdigit() or not typed:
                continue
            if needle != "(" or LOGIN.search(text, max(0, m.start() - 24), m.start()):
                yield m.start("value"), m.start("value") + len(value), "password"
    for url in URL.finditer(text):
        if (user := USER.match(url[0])) and is_key(user[1], shortest=20):
            yield url.start() + 3, url.start() + user.end(1), "token"
        parts = PART.finditer(url[0], opened.end()) if (opened := OPENS.search(url[0])) else iter(())
        if part := next((p for p in parts if is_key(p[0].strip("."), shortest=16)), None):
            yield url.start() + part.start(), url.start() + len(url[0].rstrip(".,;:!?)]}\\")), "token"
