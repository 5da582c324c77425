"""Decides which statements earn a note: wishes, decisions, projects, traits, likes, events, requests to remember.

rules/words.toml has the patterns for each language. No language is detected: any pattern may match any statement."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path

from ..dates.rules import MONTHS, When
from ..message.statements import ABOUT_ME, FIRST, Statement, is_idle, is_persons, statements_in
from ..message.turn import HEADER, Span
from ..text.words import told_words

TYPES = {  # kind → type of note
    "wish": "preference",
    "decision": "decision",
    "project": "project",
    "identity": "identity",
    "like": "preference",
    "event": "episode",
    "fact": "fact",  # something to remember, on request
}
SPACED = ("en", "de", "es", "fr")
WHOLE_WORDS = frozenset(("me", "subject", "yearly", "length", "closing", "not", "condition", "back"))
LONGEST_SENTENCE = 400  # characters; a longer text was pasted or dictated, and is no sentence
# In a longer message, the sender's own words are looked for in so many characters at the beginning and at the end.
OWN_CHARS = 4_000
MOST_CLAUSES = 12  # only so many clauses of a sentence are read
EMOTICON = re.compile(r"\s[:;]-?[)(DP]\s+|[\U0001F000-\U0001FAFF☀-➿]\s+")
CLAUSE = re.compile(
    EMOTICON.pattern
    + r"|[,;:—–]\s+|\s-\s|[.…]{2,}\s+|[，；：、]|\b(?:and|but|so|und|aber|y|pero|et|mais)\s+",
    re.I,
)
QUOTED_NAME = re.compile(r"[“\"«„「『《*_][^“”\"«»„「」『』《》*_\n]{2,60}[”\"»“」』》*_]")
NAMED_NOUN = re.compile(
    r"\b(?:project|app|book|novel|film|company|shop|game|website|podcast),? (?-i:[A-Z])\w", re.I
)
STRAIGHT = str.maketrans({"’": "'", "‘": "'", "\u00a0": " "})


@cache
def cue(name: str, *, anywhere: bool = False) -> re.Pattern[str]:
    """
    Return the pattern *name* of words.toml, for all languages in one.

    By default the pattern is made for `match`, at a place that the caller knows: the beginning of a clause. With
    *anywhere*, the pattern is made for `search`, and matches only where a word begins.
    """
    with (Path(__file__).parent / "words.toml").open("rb") as f:
        tables = tomllib.load(f)
    parts = []
    for language, table in tables.items():
        if name not in table:
            continue
        text = "".join(str(table[name]).splitlines())
        for part in ("adverb", "people"):
            text = text.replace(f"<{part}>", "".join(str(table.get(part, "")).splitlines()))
        parts.append(
            rf"(?:{text})(?![^\W_])" if language in SPACED and name in WHOLE_WORDS else f"(?:{text})"
        )
    whole = "|".join(parts)
    return re.compile(rf"(?<![^\W_])(?:{whole})" if anywhere else whole, re.I)


def holds(name: str, text: str) -> re.Match[str] | None:
    """The first match of the patterns called *name* in *text*."""
    return cue(name, anywhere=True).search(text)


def holds_at(text: str, at: int) -> bool:
    """Whether a word for the speaker ("I", "my") begins at *at* in *text*, and is a whole word."""
    m = cue("me").match(text, at)
    return bool(m) and not text[m.end() : m.end() + 1].isalpha()  # type: ignore[union-attr]


def straight(text: str) -> str:
    """*text* with straight apostrophes and with spaces in place of line ends. Its length stays the same."""
    return text.translate(STRAIGHT).replace("\n", " ")


def after_lead(text: str, at: int = 0) -> int:
    """The position where the statement begins, after words such as "Hey, by the way"."""
    for _ in range(4):
        m = re.compile(rf"(?:{cue('lead').pattern})[,.:;!\s—–-]+|[\s,.:;!\"'“„«(*_-]+", re.I).match(text, at)
        if not m or m.end() >= len(text):
            break
        at = m.end()
    return at


def clause_starts(text: str) -> Iterator[int]:
    """Yield the position where each clause of *text* begins, after words such as "Hey, by the way"."""
    found = [0, *(m.end() for m in CLAUSE.finditer(text))][:MOST_CLAUSES]
    yield from dict.fromkeys(after_lead(text, at) for at in found)


def without_question(text: str) -> str:
    """The part before the question, as in "I moved to Oslo, can you …?"; "" if all of *text* is a question."""
    said = straight(text)
    if cue("remind").match(said, after_lead(said)):
        return text
    asked = text.rstrip(" \"')*_”»").endswith(("?", "？"))
    for m in re.finditer(r"[,;:.—–]\s*|\s-\s|[，；]|\s(?=(?:and|so|but|und|y|et)\s)", said):
        if cue("asking" if asked else "tail").match(said, m.end()) and len(said[: m.start()].split()) > 3:
            behind = () if asked else OWN_CLAUSE.split(text[m.end() :])
            if any(kind_of(part)[0] for part in behind):  # "can you show me, I'm Jamie, a nurse"
                continue
            return text[: m.start()].rstrip()
    return "" if asked else text


def is_question(text: str) -> bool:
    """Whether *text* begins like a question or a condition."""
    said = straight(text)
    return bool(cue("asking").match(said, after_lead(said)))


TWO = re.compile(
    rf"(?:{cue('person').pattern}|(?-i:[A-Z])[\w-]+)\s+(?:and|und|y|et)\s+", re.I
)  # "Ann and I met"
OWN_CLAUSE = re.compile(r"(?:[,;:—–-]\s+|\s)(?:and|but|so|und|aber|y|pero|et|mais)\s+|[,;:—–]\s+|\s-\s", re.I)


def earning_span(text: str, tells: Callable[[str], bool]) -> tuple[int, int]:
    """
    Find the part of *text* that is worth a note. Returns its start and end.

    A clause is worth a note if `kind_of` finds a kind, or if *tells* returns True. The part reaches from the first such
    clause to the last. Without such a clause, the part is all of *text*.

    Example: "I moved to Oslo on May 8" in "I'm trying to finish it, and I moved to Oslo on May 8, but I'm not sure".
    """
    said = straight(text)
    starts = [m.end() for m in OWN_CLAUSE.finditer(said) if holds_at(said, m.end())]
    starts = [at for at in starts if not is_led(said, at) and not TWO.fullmatch(said, 0, at)]
    edges = sorted({0, *starts, *(m.end() for m in EMOTICON.finditer(said)), len(text)})
    parts = [(a, b) for a, b in pairwise(edges) if said[a:b].strip()]
    earning = [(a, b) for a, b in parts if kind_of(text[a:b])[0] or tells(text[a:b])]
    if not earning:
        return 0, len(text)
    start, end = earning[0][0], earning[-1][1]
    return start, start + len(OWN_END.sub("", text[start:end])) if end < len(text) else end


def is_led(text: str, at: int) -> bool:
    """
    Whether the "I" at index *at* may be another speaker, named before a colon.

    True for "My brother: I am vegan.", because the brother may have said "I am vegan".
    """
    lead = text[:at].rstrip()
    if not lead.endswith((":", "：")) or not FIRST.match(text, at):
        return False
    return not (is_idle(lead) or is_persons(lead) or ABOUT_ME.search(lead))


OWN_END = re.compile(r"(?:\s+-|[\s,;:—–])*(?:\b(?:and|but|so|und|aber|y|pero|et|mais)\s*)?$", re.I)


# The head of a mail: two or more header lines, an empty line, and the first character of the text.
HEADS = re.compile(rf"^(?:{HEADER.pattern}.*\n){{2,12}}[^\S\n]*\n\s*\S", re.M)


@lru_cache(maxsize=256)
def own_statements(text: str, material: tuple[Span, ...] | None = None) -> tuple[Statement, ...]:
    """
    The sender's own statements in *text* (message/statements.py), without those inside a long text or a quoted mail.
    """
    end = m.start() if (m := HEADS.search(text)) else len(text)
    return tuple(
        s
        for s in statements_in(text, material)
        if s.governed in ("", "asked")
        and s.start < end
        and len(s.text) <= LONGEST_SENTENCE
        and (s.start < OWN_CHARS or s.start > len(text) - OWN_CHARS)
    )


@lru_cache(maxsize=1024)
def kind_of(text: str) -> tuple[str, int]:
    """
    Return the kind of note to make from *text*, and where the deciding clause begins.

    Returns ("", 0) if no clause is worth a note. Days in *text* are not looked at here: see `is_event`.
    """
    said = straight(text)
    if len(said) > LONGEST_SENTENCE or is_question(said):
        return "", 0
    starts = list(clause_starts(said))
    for kind in ("wish", "decision", "making", "identity", "like"):
        for at in starts:
            m = cue(kind).match(said, at)
            if not m or (kind == "making" and not has_name(said[m.start() :])):
                continue
            if len(told_words(said[at:])) >= (2 if kind in ("decision", "making") else 1):
                if is_led(said, at):
                    return "fact", 0
                return "project" if kind == "making" else kind, at
    if cue("remember").match(said) and len(told_words(said)) > 1:
        return "fact", after_lead(said)
    return "", 0


def has_name(text: str) -> bool:
    return bool(holds("named", text) or QUOTED_NAME.search(text) or NAMED_NOUN.search(text))


def is_event(text: str, days: Sequence[When], day: date, *, people: bool = False) -> bool:
    """
    Whether *text* tells a plan or an event of its speaker: *text* names a day, and speaks of the speaker or of the
    future.

    Only these days count:
    - a day in the future
    - a day or time that is written with a digit or a month's name, unless it ends on *day*
    - a past time of several days ("last week")
    - any past day, if several *people* speak

    "Today" and "this week" do not count. *day*: when the text was said.
    """
    said, begin = straight(text), after_lead(straight(text))
    no_statement = is_question(text) or any(cue(kind).match(said, begin) for kind in ("order", "unsettled"))
    if no_statement and not cue("remind").match(said, begin):
        return False
    days = [d for d in days if d.start > day or tells_day(d, day) or (people and d.end < day)]
    if not days or len(text) > LONGEST_SENTENCE or not told_words(text[begin:]):
        return False
    return bool(holds("me", said)) or any(d.end > day for d in days)


def tells_day(when: When, day: date) -> bool:
    """
    Whether *when* is precise enough to be the day of an event.

    *day*: when the text was said; the caller handles later days itself.
    - True: a date, or a past time of several days ("last week")
    - False: "yesterday", *day* itself, and "this week"
    """
    dated = bool(re.search(r"\d", when.phrase)) or any(m[:3].lower() in when.phrase.lower() for m in MONTHS)
    if when.end < day:
        return dated or when.start != when.end
    return dated and when.end > day
