"""The sentences in a message that a person wrote: without code, quotations, logs, markup and emoji."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from ..message.material import HEADER
from ..text.characters import without_unseen
from ..text.sentences import LIST_MARK, split_sentences, without_list_mark
from .assertions import OWN_LINES, PASTED_LINES, clauses, language_of, read_sentence
from .cues import holds

STRAIGHT_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "\u00a0": " "})
MARKER = re.compile(
    r"\[(?:image|photo|picture|file|audio|video|document|media|part|sticker|shares?)\b[^\[\]\n]{0,300}\]",
    re.I,
)
NOISE = re.compile(  # how a line begins that a program wrote, or that someone quotes
    r"\s*(?:[>|$#%{}]|\+{3} |-{3,}|={3,}|@@|at [\w.$<>]+\(|File \"|Traceback|diff --git|import \w+$|from \w+ import"
    r"|def \w|class \w+[(:]|(?:const|let|var|function|return|export|SELECT|INSERT|UPDATE|GET|POST|curl|npm|pip|git|cd"
    r"|sudo|docker) [\w./-]+\s*[\w=({\"'*-]|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d"
    r"|(?:INFO|WARN(?:ING)?|ERROR|DEBUG|FATAL|TRACE)\b|</?\w|[\w./-]+\.\w{1,4}:\d+)"
)
CODE_MARKS = frozenset("{}[]<>=|\\;$#_/~^")
MARKUP = re.compile(r"\*\*|__|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)|`")
PICTURES = r"\U0001F000-\U0001FAFF☀-➿⬀-⯿"
EMOJI = re.compile(rf"[{PICTURES}]|(?<!\w)[:;]-?[)(DPp](?!\w)|<3")
HEART = re.compile(r"(?<=\bI )(?:[❤♥💙-💜🖤🤍🤎🧡]|<3)\s*(?=\w)")
LIKED = re.compile(  # food, animals, what people do: pictures that stand for a noun
    r"\b(I (?:\w+ )?(?:love|like|prefer|enjoy|adore|hate)) ([☕⚽\U0001F32D-\U0001F37F\U0001F3A3-\U0001F3FA"
    r"\U0001F400-\U0001F43E\U0001F950-\U0001F96F\U0001F980-\U0001F9AE])"
)
PAUSE = re.compile(  # parts a sentence from the next where no mark does
    rf"\s{{0,9}};\s+|\s{{1,9}}(?=[{PICTURES}]|[:;]-?[)(DP](?!\w))"
    r"|(?:\.{2,9}|…)\s{1,9}(?=no,)"  # "tomorrow... no, Monday"
    r"|\s{0,9}[\u2028\u2029\x85]\s{0,9}+(?=[A-ZÀ-ÖØ-Þ])"  # no end of a line, but where a capital follows they are meant as one
)
# beyond it only a message's beginning and end may be its sender's own words; likewise lines
OWN_CHARS = 4_000
SAYING_WORDS = 5
QUOTATION = re.compile(
    r"“[^“”]{0,2000}”|„[^“”„]{0,2000}[“”]|«[^«»]{0,2000}»|「[^「」]{0,2000}」|『[^『』]{0,2000}』|`[^`\n]{0,2000}`"
    r"|(?<![\w\"])\"(?=\S)[^\"]{0,2000}\"(?!\w)"
    r"|(?<![\w'])'(?=\S)(?:[^'\n]|(?<=\w)'(?=\w)){0,500}'(?!\w)"
)
LONGEST_SENTENCE = 400  # characters; what is longer is pasted or dictated, and no sentence


def written_sentences(text: str) -> Iterator[str]:
    """
    The sentences in *text* that a person may have written, in order: straight quotes, no emoji, no markup. A quotation is
    somebody else's, unless it is as short as a title or a saying of one's own.
    """
    text = QUOTATION.sub(lambda m: m[0] if is_saying(m[0]) else '"…"', text)
    if len(text) > 2 * OWN_CHARS:
        text = f"{text[:OWN_CHARS]}\n{text[-OWN_CHARS:]}"
    text = with_pictures_named(MARKER.sub(" ", without_unseen(text).translate(STRAIGHT_QUOTES)))
    lines = list(lines_before_a_text(text.split("\n")))
    if len(lines) > PASTED_LINES:
        lines = [*lines[:OWN_LINES], *lines[-OWN_LINES:]]
    for line in map(without_introduced, filter(is_written_by_person, lines)):
        plain = MARKUP.sub("", without_list_mark(line))
        for sentence in split_sentences(plain):
            for part in PAUSE.split(sentence):
                yield from cleaned_sentences(part)


def is_saying(quotation: str) -> bool:
    """Whether a quotation is a title or a saying of one's own, and states nothing."""
    inner = quotation[1:-1].strip()
    return len(inner.split()) <= SAYING_WORDS and not states(inner)


def states(text: str) -> bool:
    found = read_sentence(text)
    return found is not None and bool(found.type)


def lines_before_a_text(lines: Sequence[str]) -> Iterator[str]:
    """*lines* that are not empty, up to one that hands a text over; those behind one that works on "the text above"."""
    above = max((n for n, line in enumerate(lines) if holds("works_on_above", line)), default=-1)
    head = 0  # lines in a row like those of a mail's head
    for n, line in enumerate(lines):
        if n < above or not line.strip():
            continue
        below = next((x for x in lines[n + 1 :] if x.strip()), "")
        head = head + 1 if HEADER.match(line) and below else 0
        if head > 1 and not lines[n + 1].strip():
            return
        hands = line.rstrip().endswith((":", "：")) and introduces(line)
        if below and (holds("works_on_below", line) or (hands and not LIST_MARK.match(below))):
            return
        yield line


def introduces(head: str) -> bool:
    """Whether *head*, which stands before a colon, leads to somebody else's text; in doubt where it is not English."""
    return language_of(head) != "en" or holds("introduces", head) is not None


def without_introduced(line: str) -> str:
    """*line* without what it introduces by a colon, if that states something: "Tom wrote: I moved to Oslo"."""
    head, colon, rest = line.partition(": ")
    if not colon or not states(MARKUP.sub("", rest).strip()) or not introduces(head):
        return line
    return head + colon


def with_pictures_named(text: str) -> str:
    """*text* with pictures that stand for words in words: "I ❤️ hiking", "I love 🍕"."""
    return LIKED.sub(lambda m: f"{m[1]} {unicodedata.name(m[2]).lower()}", HEART.sub("love ", text))


def is_written_by_person(line: str) -> bool:
    """Whether a person wrote *line*, and no program did."""
    return not NOISE.match(line) and sum(c in CODE_MARKS for c in line) <= 0.06 * len(line) + 2


def cleaned_sentences(sentence: str) -> Iterator[str]:
    sentence = " ".join(EMOJI.sub(" ", sentence).split())
    if any(c.isalpha() for c in sentence) and len(sentence) <= LONGEST_SENTENCE:
        yield from clauses(sentence)
