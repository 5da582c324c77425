"""
Turns a sentence into tokens, to compare two sentences: words in lower case, days as digits, "I" and "the user" alike.
Sentences that differ in a tense, a number, a currency or a sign are not the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from functools import cache

import regex

from ..dates.rules import resolve_dates
from ..text.characters import UNSPACED, without_unseen
from ..text.words import STOP, WORD_OR_MARK, denies, english_words, phrases

Tokens = tuple[str, ...]

USER, USERS = "§", "§'s"
PERSON = dict.fromkeys("i me ich je yo io eu ik user я 我 私".split(), USER)
POSSESSIVES = "my mine user's our mein meine meiner meinem meinen unser unsere mon ma mes notre mi mis mio mia meu minha mijn"
PERSON |= dict.fromkeys(POSSESSIVES.split(), USERS)
SHORT_FORMS = {"won't": "will not", "can't": "can not", "cannot": "can not", "i'm": "i am", "let's": "let us"}
BEFORE_NOT = "ca wo do does did is was have has had would could should"
SHORT_FORMS |= {f"{v}nt": SHORT_FORMS.get(f"{v}n't", f"{v} not") for v in BEFORE_NOT.split()}
ENDINGS = {"'re": "are", "'ve": "have", "'ll": "will", "'d": "would"}
IS = {"it's": "it is", "that's": "that is", "he's": "he is", "she's": "she is", "there's": "there is"}
THIRD = {"is": "am", "are": "am", "has": "have", "does": "do"}
UNSPACED_TOKEN = regex.compile(f"[{UNSPACED}]")
ELISION = regex.compile(r"\b(j|n|l|d|c|m|t|s|qu)'(?=\p{L}{2})")


def tokens_of(text: str, day: date | None = None) -> Tokens:
    """The tokens of *text*, said on *day*. Without *day*, the days that *text* names stay as they are written."""
    found: list[str] = []
    text = without_unseen(text).replace("’", "'")
    plain = ELISION.sub(r"\1e ", (dated(text, day) if day else text).lower())
    for m in WORD_OR_MARK.finditer(plain):
        word = SHORT_FORMS.get(m[0], IS.get(m[0], m[0]))
        if word.endswith("n't"):
            word = f"{word[:-3]} not"
        for end, full in ENDINGS.items():
            word = f"{word.removesuffix(end)} {full}" if word.endswith(end) else word
        parts = word.split()
        found += [c for part in parts for c in (part if UNSPACED_TOKEN.search(part) else [part])]
    return tuple(folded(found))


def folded(words: Sequence[str]) -> Iterator[str]:
    """
    *words* with "I" and "the user" alike, verbs without the -s of the third person, and days without "on the" before
    them.
    """
    near = 0  # how many of the next words may be the verb of "I"
    for n, word in enumerate(words):
        after = words[n + 1] if n + 1 < len(words) else ""
        if (word == "the" and after in ("user", "user's")) or (word in ("on", "the") and is_day(after)):
            continue
        if word in PERSON:
            near = 3 if PERSON[word] == USER else 0
            yield PERSON[word]
            continue
        near -= 1
        yield (THIRD.get(word, word) if near > 0 else word) if word in THIRD else without_s(word)


def without_s(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("sses", "shes", "ches", "xes", "oes")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "'s")) else word


def dated(text: str, day: date) -> str:
    """*text* with each day in it written as eight digits. *day*: the day on which *text* was said."""
    done, at = "", 0
    for when in resolve_dates(text, day, ahead=True):
        start = text.find(when.phrase, at)
        if start >= 0:
            digits = f"{when.start:%Y%m%d}" + f" {when.end:%Y%m%d}" * (when.end != when.start)
            done, at = done + text[at:start] + digits, start + len(when.phrase)
    return done + text[at:]


def is_day(token: str) -> bool:
    return token.isdigit() and len(token) == 8


SIGN = regex.compile(r"\.{2,}|-{2,}|[^\w\s\p{M}.,:!'’。，、：！·・-]")
QUOTATION_MARKS = str.maketrans(dict.fromkeys("“”„«»「」『』", '"'))


def signs_of(text: str) -> set[str]:
    """
    Return the signs in *text* that may change its meaning: "?", "~~", "🚫".

    All styles of double quotation marks are returned as one sign.
    """
    return set(SIGN.findall(text.translate(QUOTATION_MARKS)))


# --- What tokens tell.


PRONOUNS = frozenset(
    "it he she they er sie es il elle ella lui lei hij zij this that ce das eso questo".split()
)
VERBS = frozenset("is are was were am".split())
LEFT_OUT = (VERBS - {"was", "were"}) | frozenset("a an the now ist sind est es è é は".split())
BESIDE_MARKS = frozenset(
    f"{USER} not s have got correct true wahr vrai verdad cierto vero verdade waar правда い ま す え で し".split()
)
HIRAGANA = regex.compile(r"\p{Hiragana}")


def telling(tokens: Iterable[str]) -> set[str]:
    """
    Return the *tokens* that carry meaning.

    Stop words, negations and "the user" are left out. So is Hiragana, the script of Japanese particles and endings.
    """
    idle = STOP | {USER, USERS}
    return {t for t in tokens if t not in idle and not denies(t) and not HIRAGANA.fullmatch(t)}


@cache
def around() -> frozenset[str]:
    """
    Return filler words ("well", "thanks"): tokens that do not change a statement next to them.

    The words of `marks` are included.
    """
    return marks() | frozenset(map(without_s, english_words("around")))


@cache
def marks() -> frozenset[str]:
    """The tokens that say that something was wrong, or has changed."""
    return frozenset(map(without_s, english_words("correcting")))


@cache
def change_phrases() -> regex.Pattern[str]:
    """Phrases of change ("moved", "went up") that stand before the new value."""
    found = sorted(phrases("changed"), key=len, reverse=True)
    return regex.compile(
        rf"\b(?:{'|'.join(p for p in found if not UNSPACED_TOKEN.match(p))})\b|{'|'.join(filter(UNSPACED_TOKEN.match, found))}",
        regex.I,
    )


def only_marks(tokens: Sequence[str]) -> bool:
    """Whether *tokens* only object: "No.", "That is wrong.", "Sorry"."""
    idle = around() | LEFT_OUT | VERBS | PRONOUNS | BESIDE_MARKS
    return not (marks() | {"not"}).isdisjoint(tokens) and idle.issuperset(tokens)
