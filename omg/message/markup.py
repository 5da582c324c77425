"""
The value that stands behind a secret's name in a file: XML, JSON in JSON, pairs of key and value, calls, Markdown.

Not here: `name: value` and `name = value` as all files have them (passwords.py). One rule: the expressions begin behind the name.
"""

from __future__ import annotations

import re

from ..text.characters import UNSPACED_RUN
from .looks import DIGIT, is_key, is_talk, looks_drawn

# (only what looks drawn, expression)
MARKUPS = tuple(
    (strict, re.compile(pattern, re.IGNORECASE))
    for strict, pattern in (
        # <password>x</password>, <entry key="password">x</entry>, <key>Password</key><string>x</string>
        (
            False,
            r"""[\w.-]{0,20}+\\?["']?(?:\s[^<>\n]{0,80})?(?:>|</\w{1,20}>)\s{0,20}(?:</?\w{1,20}>\s{0,20}){0,2}(?:<!\[CDATA\[)?(?P<value>[^<>\s\]]{3,400})(?:\]\]>)?\s{0,20}</""",
        ),
        # define('DB_PASSWORD', 'x'), setenv("TOKEN", "x")
        (True, r"""\w{0,12}+\\?["']\s{0,20},\s{0,20}\\?(?P<q>["'])(?P<value>[^"'\n\\]{4,300})\\?(?P=q)"""),
        # {"key": "TOKEN", "value": "x"}, <add key="Password" value="x"/>, - name: TOKEN\n  value: x
        (
            False,
            r"""\w{0,12}+\\?["']?[\s,;]{1,24}\\?["']?(?:value|val|text|content|data|default)\\?["']?\s{0,3}[:=]\s{0,3}\\?(?:(?P<q>["'])(?P<value>[^"'\n\\]{4,400})|(?P<bare>[^\s"'`<>,]{4,400}))""",
        ),
        # {\"password\": \"x\"}
        (False, r"""\w{0,12}+\\{1,7}["']\s{0,3}[:=]\s{0,3}\\{1,7}["'](?P<value>[^"'\\\n]{4,400})\\{1,7}["']"""),
        # **Password:** `x`, Password (new): x, <b>Password</b>: x
        (
            False,
            r"""[\\"'`*_~)\]]{0,6}(?:</\w{1,10}>)?(?:\s?\([^()\n]{1,30}\))?\s{0,3}(?::|=|->|→|=>|\|)[`*_~\s\\"'>|]{1,8}(?P<value>[^\s"'`<>*|]{4,200})""",
        ),
        # a name on a line of its own, and the value below
        (True, r"""[ \t*:]{0,4}\r?\n[ \t*>-]{0,8}(?P<value>[^\s"'`<>]{6,400})[ \t]*(?:\r?\n|\Z)"""),
    )
)  # fmt: skip


def value_in_markup(text: str, behind: int, *, password: bool, qualified: bool) -> tuple[int, int] | None:
    """Where the value stands of the name that ends at *behind*; None if there is none that looks like a secret."""
    for strict, form in MARKUPS:
        if not (m := form.match(text, behind)):
            continue
        group = "value" if m["value"] else "bare"
        start, end = m.span(group)
        value = text[start:end].rstrip(".,;:!?)]}…")
        if not value or is_talk(value) or UNSPACED_RUN.search(value):
            continue
        if not password:
            secret = is_key(value, qualified)
        else:
            secret = looks_drawn(value) if strict else len(value) >= 5 and _not_a_word(value)
        if secret:
            return start, start + len(value)
    return None


def _not_a_word(value: str) -> bool:
    return bool(DIGIT.search(value)) or not value.replace("-", "").replace("_", "").isalpha()
