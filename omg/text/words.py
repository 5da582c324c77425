"""
Splits a text into words and sentences; finds stems and negations.

    words_in       all words, as written
    written_words  the words in lower case, without stop words; shows whether a text adds a word to another text
    stems_of       stems of the words that carry meaning; shows whether two texts say the same
    told_words     the same stems without days and dates, because writers give the same date in different forms
    is_english     whether a text is in English, by its stop words
    prefix_of      the beginning that the forms of a word share, for a plain text search
    split_sentences, sentence_spans, text_pieces    sentences, or the spans of sentences

To compare words, use `stem_of`, which knows English verbs. To search a text, use `prefix_of`, because the
forms of a word begin with the prefix, but often not with the stem.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path

import regex

from .characters import UNSPACED, UNSPACED_RUN, fold_text, plain_form

# --- Negation: whether a text says that something is not true, or ends. By words of some twenty languages, without grammar.


NOT = re.compile(
    r"\b(?:no|not|never|none|neither|nor|nobody|nothing|nowhere|cannot|without|hardly|isnt|arent|wasnt|dont|doesnt|didnt|wont|cant|havent|hasnt"
    r"|instead of|rather than|no longer|any ?more|stop(?:s|ped)?|avoid(?:s|ed)?|refuse[sd]?|drop(?:s|ped)?|quit|off|against|reject(?:s|ed)?|deny|denie[sd]"
    r"|nicht|kein\w{0,2}|nie|niemals|nichts|ohne|pas|jamais|aucune?|rien|sans|plus|nunca|jamás|nada|sin|non|niente|senza|não|sem|niet|geen|nooit"
    r"|inte|aldrig|ikke|aldri|nie|nigdy|bez|не|нет|ни|никогда|без|немає|ні|değil|hiç|yok|δεν|όχι|ποτέ|μην|لا|ليس|لم|لن|ما|غير|بدون|לא|אין|בלי|אף"
    r"|نه|نیست|بدون|नहीं|न|मत|không|chưa|đừng|tidak|bukan|jangan|ei|eivät|ilman)\b|n't\b|\bn'|[不没沒無无非别未]|ない|ません|なく|ず(?:に|、)"
    r"|苦手|안 |못|않|아니|없|ไม่",
    re.I,
)


def denies(text: str) -> bool:
    """Return whether *text* denies something, or says that something ends: "no", "never", "without", "stopped"."""
    return bool(NOT.search(text))


# Letters as the index's tokenizer counts them, with marks: Indic words are full of marks.
LETTER = r"[\p{L}\p{M}\p{N}]"
WORD = regex.compile(f"{LETTER}+")
WORD_OR_RUN = regex.compile(f"[{UNSPACED}]+|(?:(?![{UNSPACED}]){LETTER})+")  # as the index splits a text
# "don't", "3.5", "16:00"
WORD_OR_NUMBER = regex.compile(rf"\d+(?:[.,:]\d+)*+(?!\p{{L}})|{LETTER}+(?:'{LETTER}+)*+")
# Also the marks that change a value: "$50", "5%", "-5", "C#"
WORD_OR_MARK = regex.compile(rf"{WORD_OR_NUMBER.pattern}|[\p{{Sc}}%‰°]|(?<=\w)[#+]+|(?<![\w.,:)])[-−](?=\d)")
THOUSANDS = re.compile(r"\d{1,3}(?:[.,]\d{3})+")
ISO_DAY = re.compile(r"(?<!\d)\d{4}-\d\d(?:-\d\d)?(?!\d)")


@cache
def _lists() -> dict[str, str]:
    with Path(__file__).with_name("words.toml").open("rb") as file:
        lists: dict[str, str] = tomllib.load(file)
    return lists


@cache
def english_words(name: str) -> frozenset[str]:
    """Return the words of the list *name* in words.toml: "stop", "regular", "not_past"."""
    return frozenset(_lists()[name].split())


@cache
def phrases(name: str) -> frozenset[str]:
    """
    Return the phrases of the list *name* (such as "yes") in words.toml, where `|` and line ends separate
    phrases.
    """
    return frozenset(_lists()[name].strip().replace("\n", "|").split("|"))


# Words that occur in questions about anything. Dropping them gains .06 of recall@5 on LoCoMo.
STOP = frozenset(_lists()["asking"].split())
UNSPACED_IDLE = frozenset(_lists()["idle_pairs"].split())
NUMBERS = {
    word: str(n)
    for line in _lists()["numbers"].split("\n")
    for n, word in enumerate(line.split())
    if word != "-"
} | {"twice": "2", "hundred": "100", "thousand": "1000"}


def words_in(text: str) -> list[str]:
    """Return the words of *text*: runs of letters and digits."""
    found: list[str] = WORD.findall(text)
    return found


def written_words(text: str) -> frozenset[str]:
    """Return the words of *text* in lower case, without stop words."""
    return frozenset(words_in(text.lower())) - STOP


@cache
def idle_words() -> frozenset[str]:
    """Return words that carry no meaning by themselves, such as stop words."""
    words = STOP | english_words("stop") | {*_lists()["narrating"].split()}
    words |= {f"{verb}s" for verb in words & bases()}
    return with_plain_forms(words)


@cache
def untold_words() -> frozenset[str]:
    """
    Return the words that `told_words` leaves out: `idle_words`, and the names of days and months.

    Number words ("one") are not in the result, because `told_words` treats them like digits ("1").
    """
    return (idle_words() | with_plain_forms(_lists()["days"].split())) - NUMBERS.keys()


def with_plain_forms(words: Iterable[str]) -> frozenset[str]:
    return frozenset(form for word in words for form in (word, plain_form(word).lower()))


@lru_cache(maxsize=2048)
def told_words(text: str) -> frozenset[str]:
    """Return the stems of the words in *text* that carry meaning, without dates."""
    return frozenset(telling_words(ISO_DAY.sub(" ", plain_form(text)), untold_words()))


@lru_cache(maxsize=2048)
def stems_of(text: str) -> Mapping[str, str]:
    """Return stem → word in lower case, for each word in *text* that carries meaning, dates included."""
    return telling_words(plain_form(text), idle_words())


def telling_words(text: str, idle: Collection[str]) -> dict[str, str]:
    """
    Return stem → word, for the words of *text* that are not in *idle*. The stem of a number is its digits. In
    scripts without spaces, each pair of characters counts as a word.
    """
    found: dict[str, str] = {}
    if not text.isascii():
        for run in UNSPACED_RUN.findall(text):
            pairs = (run[i : i + 2] for i in range(max(len(run) - 1, 1)))
            found |= {pair: pair for pair in pairs if pair not in UNSPACED_IDLE}
        text = UNSPACED_RUN.sub(" ", text)
    for written in WORD_OR_NUMBER.findall(text):
        word = written.lower()
        if word[0].isdigit():
            found.setdefault(number_of(word), word)
        elif word in NUMBERS and word not in idle:
            found.setdefault(NUMBERS[word], word)
        elif word not in idle and (len(word) > 1 or written.isupper()):
            found.setdefault(fold_text(stem_of(word)), word)
    return found


def number_of(word: str) -> str:
    if THOUSANDS.fullmatch(word):
        return re.sub("[.,]", "", word)
    return word.replace(",", ".").removesuffix(".00").removesuffix(".0") if "," in word else word


def prefix_of(word: str) -> str:
    """Return the letters with which a word and, as a rule, its inflected forms begin."""
    return word if len(word) < 5 or not word.isalpha() else word[: max(4, len(word) - 2)]


def has_prefix(text: str, prefix: str) -> bool:
    """
    Return whether a word of *text* begins with *prefix* (both in lower case). In scripts without spaces,
    *prefix* may stand anywhere in *text*.
    """
    at = text.find(prefix)
    while at > 0 and prefix.isascii() and text[at - 1].isalnum():
        at = text.find(prefix, at + 1)
    return at >= 0


def is_english(text: str) -> bool:
    """
    Return whether *text* is in English: whether at least a quarter of its words are English stop words. This is
    true for 99 % of 3,000 English lines, and for 3 % of German and Spanish lines.
    """
    words = words_in(text.lower())
    return 4 * sum(word in STOP for word in words) >= max(1, len(words))


# --- English verbs and stems, from a small list (words.toml). Words of other languages hardly change.


ENDINGS = (("ies", "y"), ("ied", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""))


@cache
def irregular() -> dict[str, str]:
    """Return past form or participle → base form of the verb, for irregular English verbs."""
    groups = _lists()["irregular"].strip().replace("\n", "|").split("|")
    return {form: group.split()[0] for group in groups for form in group.split()[1:]}


@cache
def bases() -> frozenset[str]:
    """Return the base forms of common English verbs."""
    return frozenset((*irregular().values(), *english_words("regular")))


def is_past(word: str) -> bool:
    word = word.lower()
    return word in irregular() or (
        word.endswith("ed") and len(word) > 3 and word not in english_words("not_past")
    )


def singular_form(word: str) -> str:
    """
    Return the singular of a plural or possessive, for words that are shown or linked: "garden's" → "garden".
    """
    word = re.sub(r"['’]\w+$", "", word)
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


@lru_cache(maxsize=8192)
def stem_of(word: str) -> str:
    """Return the stem of a word, for words that are compared: "ran", "running", "runs" → "run"."""
    word = word.lower().removesuffix("'s").strip("'")
    word = irregular().get(word, word)
    for end, put in ENDINGS:
        if word.endswith(end) and len(word) - len(end) >= 3 and not word.endswith("ss"):
            word = word[: -len(end)] + put
            break
    if len(word) == 4 and word[-1] == word[-2]:
        return word[:-1]
    if len(word) <= 4:
        return word
    return word[:-1] if word[-1] == word[-2] else word.removesuffix("e")


@cache
def common_stems() -> frozenset[str]:
    """Return the stems of common English verbs."""
    return frozenset(map(stem_of, bases()))


def cut_text(text: str, chars: int) -> str:
    """Return *text*; if it is longer than *chars*, return its beginning in whole words, with an ellipsis."""
    if len(text) <= chars:
        return text
    begun = text[: chars - 1]
    return (begun.rpartition(" ")[0] or begun) + "…"


# --- The sentences of a text, and the marks of its lists.
#
# A sentence ends at a line end, and at a Unicode sentence terminal before a space (in scripts without spaces,
# at any terminal). rules/kinds.py finds clauses.


LIST_MARK = regex.compile(r"[ \t]*(?:[-*+•–]|\d{1,3}[.)])[ \t]+(?:\[(?:[xX]|[^\w\[\]])\][ \t]+)?")
# Each branch begins at one character only, so that a run of spaces or marks costs no more than its length.
SENTENCE_END = regex.compile(
    r"(?<![\p{STerm}…])[\p{STerm}…]++[\p{Pe}\p{Pf}\p{Pi}\"'*_]*+(?P<space>\s++)"
    r"|[。！？｡]++(?![\p{Pe}\p{Pf}])(?P<space>\s*+)|\n(?P<space>\s*+)"
)
# Marks that end no sentence, matched at the space after the mark: "Dr. Ito", an initial, "No. 3", "etc. and", "well… yes". "No. I moved" is two
# sentences. "three steps: 1. measure, 2. cut" is one; so are "I see that 3! equals 6", "I use Yahoo! mail",
# '"Why?" or "How?"', "am 3. Mai" and "der 2. Versuch".
NO_END = regex.compile(
    r"(?<=\b(?:e\.g|i\.e|vs|Dr|Mrs?|Ms|Prof|St|approx|ca|z\.B|bzw|Sra?|Mme|U\.S|\p{Lu}\.\p{Lu})\."
    r"|(?:^|\s)(?!I\.)\p{Lu}\.)"
    r"|(?<=:\s1\.|[,;]\s\d{1,2}\.|\b(?:der|den|dem|des|vom|zum|beim)\s\d{1,2}\.)"
    r"|(?<=\b\d{1,2}\.)\s{1,9}(?=(?i:jan(?:uar)?|feb(?:ruar)?|märz|mars|apr(?:il)?|ma[ij]|juni?|juli?|aug(?:ust)?"
    r"|sept?(?:ember)?|okt(?:ober)?|nov(?:ember)?|de[zs](?:ember)?)\b)"
    r"|(?<=(?:\p{N}|\b\p{L})![\p{Pe}]*)\s{1,9}(?!\p{Lu})|(?<=\b\p{Lu}\w*!|[!?][\p{Pf}\p{Pi}\"])\s{1,9}(?=\p{Ll})"
    r"|(?<=\b(?:No|Nr|pp?|Jan|Feb|Aug|Sept?|Oct|Nov|Dec)\.)\s{1,9}(?=\d)"
    r"|(?<=\b(?:etc|[ap]\.m)\.|\.\.|…)\s{1,9}(?=[\p{Ll}\d])"
)
ANY_LETTER = regex.compile(r"\p{L}")


def without_list_mark(line: str) -> str:
    """Return *line* without a list mark at its beginning."""
    mark = LIST_MARK.match(line)
    return line[mark.end() :] if mark else line


def sentence_parts(text: str) -> list[str]:
    """Return *text* split before each sentence. The joined parts are *text*."""
    starts = [0, *sentence_starts(text), len(text)]
    return [text[a:b] for a, b in pairwise(starts) if a < b]


def split_sentences(text: str) -> list[str]:
    """Return the sentences of *text*, without the spaces around them."""
    return [part for part in map(str.strip, sentence_parts(text)) if part]


def sentence_spans(text: str) -> list[slice]:
    """Return the spans of the sentences in *text*, without list marks and surrounding spaces."""
    spans, at = [], 0
    for part in sentence_parts(text):
        mark = LIST_MARK.match(part)
        start = mark.end() if mark else len(part) - len(part.lstrip())
        if said := part[start:].rstrip():
            spans.append(slice(at + start, at + start + len(said)))
        at += len(part)
    return spans


def text_pieces(text: str, most: int) -> list[slice]:
    """
    Return the spans of the sentences in *text*, without gaps. A sentence longer than *most* characters is
    split.
    """
    sentences = pairwise([0, *sentence_starts(text), len(text)])
    return [part for start, end in sentences for part in split_span(text, start, end, most)]


def split_span(text: str, start: int, end: int, most: int) -> Iterator[slice]:
    """
    Yield the spans of pieces of at most *most* characters, from *start* to *end* of *text*. Words stay whole if
    they fit.
    """
    while end - start > most:
        cut = max(text.rfind(mark, start, start + most) for mark in (" ", "\n")) + 1 or start + most
        yield slice(start, cut)
        start = cut
    if start < end:
        yield slice(start, end)


def sentence_starts(text: str) -> Iterator[int]:
    looked, lettered = 0, False
    for end in SENTENCE_END.finditer(text):
        lettered = lettered or ANY_LETTER.search(text, looked, end.start()) is not None
        looked = end.end()
        if "\n" not in end[0] and (not lettered or NO_END.match(text, end.start("space"))):
            continue  # without a letter, "1." is the mark of a list
        yield end.end()
        lettered = False
