"""Credentials in URLs, commands and calls: their place tells them, not a label."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .formats import Span
from .looks import is_key, is_stand_in, is_typed

# What has to be in the text, whether the value has to look like a password, and the expression.
PLACES = tuple(
    (hint, strict, re.compile(pattern))
    for hint, strict, pattern in (
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
# A part of a URL behind which a token stands: a host or a path.
OPENS = re.compile(
    r"://[\w.-]{0,60}hook[\w.-]{0,60}/|/[\w-]{0,20}?(?:hook|reset|verify|confirm|invite|magic|token|key|secret|activate|join"
    r"|login|auth|sign_?in|private|feed|ical)\w{0,6}[/-]",
    re.I,
)
PART = re.compile(r"[\w~.-]{16,}")


def placed_secrets(text: str) -> Iterator[Span]:
    """Yield what stands where URLs, commands and calls have a password or a token."""
    lowered = text.lower()
    for hint, strict, pattern in PLACES:
        for m in pattern.finditer(text) if hint in lowered else ():
            value = m["value"].rstrip(".,;")
            typed = not strict or is_typed(value) or is_key(value, shortest=16)
            if is_stand_in(value) or value.isdigit() or not typed:
                continue
            if hint != "(" or LOGIN.search(text, max(0, m.start() - 24), m.start()):
                yield m.start("value"), m.start("value") + len(value), "password"
    for url in URL.finditer(text):
        if (user := USER.match(url[0])) and is_key(user[1], shortest=20):
            yield url.start() + 3, url.start() + user.end(1), "token"
        parts = PART.finditer(url[0], opened.end()) if (opened := OPENS.search(url[0])) else iter(())
        if part := next((p for p in parts if is_key(p[0].strip("."), shortest=16)), None):
            yield url.start() + part.start(), url.start() + len(url[0].rstrip(".,;:!?)]}\\")), "token"
