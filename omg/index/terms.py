"""
Text as the full-text index holds it, and a question as the terms it is asked with.

    fold_text    text → text       one form for what is written in several; a token a character where no spaces part words
    terms_of     question → terms  all that may tell one note from another; joined by OR, rarest first (scores.py)

Not here: how much a term weighs, which depends on how rare it is. One rule: a question in any script that has words
in it has terms, and no character in it is syntax.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from itertools import pairwise

# The FTS5 tokenizer that `fold_text` is made for. Marks (Mn, Mc) belong to their letters, or Hindi falls apart.
TOKENIZER = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"

# Words that a question has whatever it is about. Dropping them is worth .06 of recall@5 on LoCoMo.
STOP = frozenset(
    """
    a about above after again against ago all also am an and any anyone anything are as at be because been before
    being below between both but by can could d did do does doing done down during each ever few for from further
    get gets getting go goes going got had has have having he her here hers herself him himself his how i if in
    into is it its itself just kind let like ll m many may me might mine more most much must my myself no nor not
    now of off on once one only or other our ours ourselves out over own please re s same shall she should so some
    someone something such sure t tell than that the their theirs them themselves then there these they thing
    things this those through to too under until up us ve very want was we were what when where whether which
    while who whom whose why will with would yes yet you your yours yourself yourselves
    """.split()
)

# Of a date phrase that is resolved to days, what says nothing once it is.
CALENDAR = frozenset(
    """
    ago coming couple day days few fortnight last month months next night past previous quarter several this today
    tomorrow tonight week weekend weekends weeks year years yesterday
    """.split()
)

# What is asked for, of what the next words name: hardly anybody who said it said so.
ASKED_FOR = re.compile(r"\bthe (?:names?|numbers?|dates?|amounts?|kinds?|types?) of\b", re.I)

CHUNK = re.compile(r"\S+")

# Scripts that put no spaces between words: Han, kana, Hangul (whose particles stick to the noun), Thai, Lao, Burmese, Khmer.
UNSPACED = "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"

UNSPACED += "\u1100-\u11ff\uac00-\ud7af\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"

RUN = re.compile(f"[{UNSPACED}]+")
SPACED = re.compile(f"(?<=[{UNSPACED}]) (?=[{UNSPACED}])")

# Letters and digits, as the tokenizer sees them; Python's \w leaves out the marks that Indic words are full of.
LETTER = rf"[^\W_{UNSPACED}]|[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0963\u0966-\u0dff]"
WORD_PATTERN = re.compile(f"(?:{LETTER})+")
PART = re.compile(f"[{UNSPACED}]+|(?:{LETTER})+")
ARABIC = re.compile("[\u0600-\u06ff]+")
ARABIC_FORMS = {ord(a): b for a, b in zip("أإآٱىةؤئ", "ااااييوي", strict=True)} | {0x640: None}

ARABIC_FORMS[ord("ة")] = "ه"

# "the", and with and, with, like, so, for the: light10 of Larkey et al.
ARTICLE = re.compile("^(?:وال|بال|كال|فال|لل|ال)(?=..)")

# vowel points of Hebrew and Arabic
ARABIC_MARKS = re.compile("[\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed]")

# Letters that Unicode does not take apart into one of a keyboard's and a mark: Łukasz, Straße, Þórshöfn.
LATIN_LETTERS = dict(zip("łŁøØđĐðÐħĦıŧŦ", "lLoOdDdDhHitT", strict=True))

LATIN_LETTERS |= {"ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "þ": "th", "Þ": "Th"}

KEYBOARD = str.maketrans(LATIN_LETTERS)

# Scripts whose words end in cases that Porter, which is for English, does not know.
INFLECTED = re.compile("[\u0370-\u03ff\u0400-\u052f\u0531-\u058f\u0590-\u06ff\u0900-\u0dff\u10a0-\u10ff]")


def fold_text(text: str) -> str:
    """
    *text* in one form: compatible characters made equal, Latin letters a keyboard has, Arabic without points and
    article, Han and the like spaced.
    """
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", text).replace("’", "'").translate(KEYBOARD)
    text = ARABIC.sub(
        lambda word: ARTICLE.sub("", ARABIC_MARKS.sub("", word[0]).translate(ARABIC_FORMS)),
        ARABIC_MARKS.sub("", text),
    )
    return RUN.sub(lambda run: f" {' '.join(run[0])} ", text)


def unfolded(folded: str) -> str:
    """*folded* as a person reads it: what `fold_text` took apart in one piece again."""
    return SPACED.sub("", folded)


@dataclass(frozen=True, slots=True)
class Term:
    match: str  # an FTS5 expression: a quoted string, or a prefix
    shown: str  # as it was written


def terms_of(question: str, dates: tuple[str, ...] = ()) -> tuple[Term, ...]:
    """
    What to look for, in the order asked; *dates* are phrases in it whose days are known.

    A stop word is kept where it is written as a name ("Will") or stands in a compound ("to-do"); where there
    are none but stop words, all are kept, unless the question is about days.
    """
    text = unicodedata.normalize("NFKC", question).replace("’", "'")
    found: dict[str, Term] = {}
    for n, chunk in enumerate(CHUNK.findall(ASKED_FOR.sub("the", text))):
        for term in terms_of_chunk(chunk, first=n == 0):
            found.setdefault(term.match.lower(), term)
    said = {word.lower() for phrase in dates for word in WORD_PATTERN.findall(phrase)} & CALENDAR
    kept = [t for t in found.values() if t.shown.lower() not in said]
    if not kept and not dates:
        kept = [Term(quoted_terms(w), w) for w in dict.fromkeys(WORD_PATTERN.findall(text))]
    return tuple(kept)


def terms_of_chunk(chunk: str, first: bool) -> list[Term]:
    """The terms of what stands between two spaces."""
    if re.search(r"n't\b", chunk, re.I):
        return []
    chunk = re.sub(r"'\w{1,2}\b", "", chunk)  # Caroline's, I'll
    parts = PART.findall(chunk)
    found = []
    for part in parts:
        if RUN.match(part):
            found += unspaced_terms(part)
        elif not is_dropped(part, chunk, first):
            found.append(Term(match_form(fold_text(part)), part))
    if len(parts) > 1 and "/" not in chunk and not RUN.search(chunk):  # socket.io, 3.5, to-do: also as one
        found.append(Term(quoted_terms(fold_text(" ".join(parts))), chunk.strip(".,;:!?()\"'")))
    return found


def is_dropped(word: str, chunk: str, first: bool) -> bool:
    low = word.lower()
    if low in STOP:
        name = word[0].isupper() and not first and low not in ("i", "a") and not word.isupper()
        return not name
    # A letter alone is left over from something, unless it is a thing's name: C++, plan B.
    return (
        len(word) == 1
        and word.isascii()
        and not word.isdigit()
        and not (word.isupper() or "+" in chunk or "#" in chunk)
    )


def match_form(word: str) -> str:
    if INFLECTED.search(word) and len(word) >= 5:
        return f"{quoted_terms(word[: max(4, len(word) - 2)])}*"
    return quoted_terms(word)


def unspaced_terms(run: str) -> list[Term]:
    """Pairs of neighbouring characters; one that stands alone is a word."""
    if len(run) == 1:
        return [Term(quoted_terms(run), run)]
    return [Term(quoted_terms(f"{a} {b}"), a + b) for a, b in pairwise(run)]


def singular_form(word: str) -> str:
    """As much as makes singular and plural, "garden's" and "garden" one. English; others stay as they are."""
    word = re.sub(r"['’]\w+$", "", word)
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def quoted_terms(words: str) -> str:
    return f'"{words}"'
