"""
Secrets in lists: the column of a table that is headed "password", recovery codes, the words of a wallet.

Not here: one value behind its name (passwords.py), or in its place (placed.py). One rule: a list is taken out item by
item, and what stands between and around its items stays.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ..text.characters import LETTERS
from .looks import is_stand_in, looks_drawn
from .names import PASSWORDS, PROSE_WORDS

ListedSpan = tuple[int, int, str]  # start, end, kind


def listed_secrets(text: str, lowered: str, present: set[str]) -> Iterator[ListedSpan]:
    """Where the items of a list of secrets stand in *text*; of the hints, these are *present*."""
    if "\n" in text and not SECRET_CELL.isdisjoint(present):
        yield from table_secrets(text, lowered)
    if not CODES_ARE_FOR.isdisjoint(present):
        yield from recovery_codes(text)
    if not SEEDS_ARE_NAMED.isdisjoint(present):
        yield from seed_phrases(text)
    if "\n" in text:
        yield from login_lines(text)
    yield from wallet_words(text, lowered)


# --- tables

SEPARATORS = "|,;\t"
TABLE_HEAD = re.compile(r"\w[\w ./()-]{0,30}")

SECRET_CELL = frozenset(
    (*PASSWORDS, "pass", "token", "secret", "api key", "api_key", "apikey", "api token", "access key", "psk")
) | {"kennwörter", "passwörter", "passwords", "pins", "secret key", "secret_key", "client_secret"}

SECRET_HEADS = (
    "_password",
    " password",
    "_token",
    " token",
    "_secret",
    " secret",
    "_pass",
    "_key",
    " passwort",
)
TABLE_ROWS = 500


def table_secrets(text: str, lowered: str) -> Iterator[ListedSpan]:
    """The cells below a heading such as "password", in tables with bars and in comma- or tab-separated lines."""
    at, left, wide = 0, 0, 0
    columns: list[int] = []
    sep = ""
    for line, low in zip(text.split("\n"), lowered.split("\n"), strict=True):
        begin, at = at, at + len(line) + 1
        if left and sep in line:
            cells = _cells(line, sep)
            if sep == "|" or len(cells) == wide:
                left -= 1
                for column in columns:
                    start, end = cells[column] if column < len(cells) else (0, 0)
                    value = text[begin + start : begin + end]
                    written = (
                        set(value) <= set("-:+= ") or is_stand_in(value) or (sep != "|" and " " in value)
                    )
                    if len(value) >= 3 and not written:
                        yield begin + start, begin + end, "password"
                continue
        elif left and set(line.strip()) <= set("-+|: "):
            continue
        left = 0
        for sep in SEPARATORS if len(line) <= 2000 else ():
            if sep not in line:
                continue
            heads = [cell.strip("*_`\"' \r") for cell in low.split(sep)]
            columns = [
                n for n, head in enumerate(heads) if head in SECRET_CELL or head.endswith(SECRET_HEADS)
            ]
            if columns and (sep == "|" or all(map(TABLE_HEAD.fullmatch, heads))):
                left, wide = TABLE_ROWS, len(heads)
                break


# cells of which some are in quotes, and hold what separates cells
QUOTED_CELLS = {
    sep: re.compile(
        rf'(?:^|(?<={re.escape(sep)}))(?:[ ]{{0,9}}"(?:[^"]|"")*"[ ]{{0,9}}(?={re.escape(sep)}|\r?$)|[^{re.escape(sep)}]*)'
    )
    for sep in ",;\t"
}


def _cells(line: str, sep: str) -> list[tuple[int, int]]:
    """Where the cells of *line* stand, without blanks and quotation marks around them."""
    found, at = [], 0
    line = line[:4000]
    for cell in QUOTED_CELLS[sep].findall(line) if sep != "|" and '"' in line else line.split(sep):
        inner = cell.strip(" \"'`\r")
        start = at + cell.find(inner) if inner else at
        found.append((start, start + len(inner)))
        at += len(cell) + 1
    return found


CODES_OF = re.compile(
    r"\b(?:recovery|backup|scratch|emergency|rescue|2fa|one-time|wiederherstellungs\w{0,6}|notfall|respaldo|secours)[ -]?(?:code|key|kode|código)s?\b",
    re.I,
)

CODES_ARE_FOR = frozenset(
    (
        "recovery",
        "backup",
        "scratch",
        "emergency",
        "rescue",
        "2fa",
        "one-time",
        "wiederher",
        "notfall",
        "respaldo",
        "secours",
    )
)

ONE_CODE = re.compile(
    r"(?<![\w-])(?:\d{4} \d{4}|(?=[A-Za-z-]{0,12}\d)[A-Za-z0-9]{4,12}(?:-[A-Za-z0-9]{3,12}){0,4}|[a-z]{4,6}-[a-z]{4,6}(?:-[a-z]{4,6})?)(?![\w-])"
)

BETWEEN = re.compile(r"[^A-Za-z]{0,20}")
CODES_CHARS = 1_000


def recovery_codes(text: str) -> Iterator[ListedSpan]:
    """A list of recovery codes: three or more behind their name, with nothing said between them."""
    for m in CODES_OF.finditer(text):
        found: list[tuple[int, int]] = []
        for one in ONE_CODE.finditer(text, m.end(), m.end() + CODES_CHARS):
            gap = text[found[-1][1] : one.start()] if found else ""
            if found and not BETWEEN.fullmatch(gap):
                break
            found.append(one.span())
        if len(found) >= 3:
            yield from ((start, end, "recovery code") for start, end in found)


SEEDS_ARE_NAMED = frozenset(("seed", "mnemonic", "phrase", "wallet"))
LIST_HINTS = SECRET_CELL | CODES_ARE_FOR | SEEDS_ARE_NAMED

SEED_OF = re.compile(
    r"\b(?:seed|mnemonic|recovery|secret|wallet|backup)[ -](?:phrase|words?|seed|mnemonic)s?\b|\bseed\b|\bmnemonic\b",
    re.I,
)

SEED = re.compile(
    r"(?<![\w'])(?:\d{1,2}[.):]?\s{0,3})?[a-z]{3,8}(?:[\s,]{1,3}(?:\d{1,2}[.):]?\s{0,3})?[a-z]{3,8}){11,23}(?![\w'])"
)


def seed_phrases(text: str) -> Iterator[ListedSpan]:
    """Twelve to twenty-four words of a wallet, with or without numbers, near their name."""
    for m in SEED_OF.finditer(text):
        for words in SEED.finditer(text, m.end(), min(len(text), m.end() + 500)):
            said = re.findall(r"[a-z]{3,8}", words[0])
            if sum(word in PROSE_WORDS for word in said) <= 1:
                yield *words.span(), "recovery phrase"
                break


FEWEST_SEED_WORDS = 12
BETWEEN_WORDS = re.compile(r"[\s,;|\"'`]{1,8}(?:\(?\d{1,2}[.):]?\s{1,4})?")


@cache
def _word_list() -> frozenset[str]:
    """The words of wallets in the alphabets of Europe, by BIP-39."""
    folder = Path(find_spec("mnemonic").origin).parent / "wordlist"  # type: ignore[union-attr, arg-type]
    names = ("english", "spanish", "french", "italian", "portuguese", "czech", "turkish", "russian", "korean")
    return frozenset(
        unicodedata.normalize("NFC", word)
        for name in names
        for word in (folder / f"{name}.txt").read_text("utf-8").split()
    )


def wallet_words(text: str, lowered: str) -> Iterator[ListedSpan]:
    """Twelve and more words on end that are all of a wallet's list; talk needs small words, which it has not."""
    of_wallets = bytes(map(_word_list().__contains__, LETTERS.findall(lowered)))
    if b"\1" * FEWEST_SEED_WORDS not in of_wallets:
        return
    words = [m.span() for m in LETTERS.finditer(text)]
    for run in re.finditer(rb"\x01{%d,}" % FEWEST_SEED_WORDS, of_wallets):
        first = run.start()
        for at in range(run.start(), run.end()):
            if at + 1 < run.end() and BETWEEN_WORDS.fullmatch(text, words[at][1], words[at + 1][0]):
                continue
            said = {lowered[start:end] for start, end in words[first : at + 1]}
            if len(said) >= FEWEST_SEED_WORDS - 2:
                yield words[first][0], words[at][1], "recovery phrase"
            first = at + 1


# "- ebay: rolf / x", "1) github — mgold — x", "Jellyfin -> admin -> x"
LOGIN_LINE = re.compile(
    r"^[ \t]{0,8}(?:[-*•]|\d{1,2}[.)])?[ \t]{0,3}[\w.&' -]{1,40}?[ ]{0,3}(?P<sep>:|->|→|—|–|\|)[ ]{1,3}[^\s/]{2,60}(?: [a-z]{1,12})?[ ]{1,3}(?:/|->|→|—|–|\|)[ ]{1,3}(?P<value>[^\s/]{6,64})[ \t]*$",
    re.MULTILINE,
)


def login_lines(text: str) -> Iterator[ListedSpan]:
    """The last of three parts in lines of where, who and with what; there are two such lines at the least."""
    if not [sep for sep in ("/", ">", "→", "—", "–", "|") if sep in text]:
        return
    found = [m.span("value") for m in LOGIN_LINE.finditer(text) if looks_drawn(m["value"])]
    if len(found) >= 2:
        yield from ((start, end, "password") for start, end in found)
