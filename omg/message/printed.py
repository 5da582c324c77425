"""
Secrets that a program prints: the word below a command that shows one, and a key in numbers.

Not here: what stands behind a name on its line (passwords.py). One rule: only a line that is a single word is taken, for a
program that fails answers in sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .looks import is_random, is_stand_in, is_talk, looks_drawn

PrintedSpan = tuple[int, int, str]  # start, end, kind

SHOWS = re.compile(
    "|".join((
        r"\b(?:go)?pass\s+show\s|\bpass\s+(?:generate\s+)?[\w-]+/[\w./-]+$|\blpass\s+show\b[^\n]{0,60}--pass",
        r"\bop\s+read\s|\bop\s+item\s+get\b[^\n]{0,100}--(?:fields?|reveal)|\bbw\s+get\s+(?:password|totp)\s|\bbw\s+unlock\b[^\n]{0,60}--raw",
        r"\bsecurity\s+find-(?:generic|internet)-password\b[^\n]{0,200}?\s-\w{0,3}w|\bsecret-tool\s+lookup\s|\bkeyring\s+get\s",
        r"\bvault\s+(?:kv\s+get|read|print|token)\b[^\n]{0,100}?(?:-field[= ]|\btoken\b)|\bgcloud\s+secrets\s+versions\s+access\s",
        r"\bget-secret-value\b[^\n]{0,200}--output\s+text|\bget-parameters?\b[^\n]{0,200}--with-decryption|\bkeyvault\s+secret\s+show\b",
        r"\bprint-(?:access|identity)-token\b|\bget-access-token\b|\bget-login-password\b|\bauth[: ]token\b|\bcreate\s+token\s|\bwhoami\s+-t\b",
        r"\binitial-password\b|\binitial(?:Admin)?_?[Pp]assword\b|\breset-password\b|\bgen(?:erate)?[-_: ](?:password|secret|token|key)\b",
        r"\bkubectl\b[^\n]{0,60}\bget\s+secrets?\b[^\n]{0,300}base64\s+(?:-d|-D|--decode)",
        r"\b(?:pwgen|apg|makepasswd|xkcdpass|diceware)\b|\bopenssl\s+rand\b|\bwg\s+gen(?:key|psk)\b|/dev/u?random\b|\b(?:rake|rails)\s+secret\b|\bphx\.gen\.secret\b",
        r"\b(?:cat|less|more|type|head|tail|Get-Content)\s[^\n|;&>]{0,150}(?:passw(?:or)?d|passphrase|[._-]pass\b|secret|token|credential|master\.key|private_?key|privatekey|\bpsk)(?![\w.-]{0,20}\.(?:py|[jt]sx?|go|rs|rb|php|java|md|html?|css|sh|ya?ml|toml|service)\b)[\w.-]{0,20}",
        r"\b(?:echo|printf|printenv)\s[\"']?\$?\{?\w{0,40}(?:PASS(?:WORD|WD|PHRASE)?|SECRET|TOKEN|API_?KEY)\}?[\"']?\s*$",
    )),
    re.MULTILINE,
)  # fmt: skip

SHOWN_HINTS = frozenset(
    ("pass", "op read", "op item", "bw get", "bw unlock", "lookup", "keyring", "vault", "secret", "token", "parameter", "gen", "rand", "passw", "key", "psk", "apg")
)  # fmt: skip

ONE_WORD = re.compile(r"\s{0,20}(?P<value>[^\s\"'`]{6,400})[ \t]*(?:\r?\n|\Z)")
KEY_RUN = re.compile(r"[0-9a-f]{16,128}|[A-Za-z0-9+/]{20,200}={0,2}")
BELOW_A_LINE = re.compile(r"\r?\n(?=(?:[ \t]*\r?\n){0,2}[^\s\"'`]{6,400}[ \t]*(?:\r?\n|\Z))")
LONGEST_COMMAND_LINE = 500  # chars


def shown_secrets(text: str) -> Iterator[PrintedSpan]:
    """The word below each command in *text* that shows a secret."""
    for m in BELOW_A_LINE.finditer(text):
        line = text[max(0, m.start() - LONGEST_COMMAND_LINE) : m.start()].rpartition("\n")[2]
        if " " in line.strip() and SHOWS.search(line) and (span := _word_at(text, m.end())):
            yield span


def result_of(arguments: str, text: str) -> PrintedSpan | None:
    """Where in *text*, the result of a call with *arguments*, the secret stands that these ask for."""
    command = arguments.replace('"', "\n").replace("\\n", "\n")
    return _word_at(text, 0) if SHOWS.search(command) else None


def _word_at(text: str, at: int) -> PrintedSpan | None:
    m = ONE_WORD.match(text, at)
    if not m or is_stand_in(value := m["value"]) or is_talk(value) or value.endswith((":", "…")):
        return None
    alone = not text[m.end() :].strip()
    drawn = looks_drawn(value) or is_random(value) or KEY_RUN.fullmatch(value)
    return (*m.span("value"), "password") if alone or drawn else None


KEY_BYTES = re.compile(r"\[\s{0,4}(?P<value>\d{1,3}(?:,\s{0,4}\d{1,3}){63})\s{0,4}\]")


def key_bytes(text: str) -> Iterator[PrintedSpan]:
    """A key as 64 numbers below 256, as wallets keep it."""
    for m in KEY_BYTES.finditer(text):
        numbers = [int(n) for n in m["value"].split(",")]
        if max(numbers) < 256 and len(set(numbers)) > 40 and numbers != sorted(numbers):
            yield *m.span("value"), "private key"
