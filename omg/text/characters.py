"""
Removes or replaces characters: invisible ones, accents, and letters with several forms in Unicode.

    visible      removes invisible characters from text that is kept
    fold_text    prepares text for the full-text index, whose tokenizer removes accents and splits words at spaces
    plain_form   prepares words for comparison: letters that differ by an accent become equal

Patterns name Unicode properties of characters, which `regex` supports and `re` does not.
"""

from __future__ import annotations

import re
import unicodedata

import regex

# Default_Ignorable_Code_Point: soft hyphens, zero-width characters, direction marks, variation selectors, fillers, tags.
UNSEEN = r"\p{Default_Ignorable_Code_Point}"
UNSEEN_RUN = regex.compile(f"{UNSEEN}+")
# Invisible characters that words and emoji need: a variation selector, then a joiner or non-joiner, as in
# Persian words and emoji of families. Longer runs could hide a text.
JOINED = regex.compile(r"\p{Variation_Selector}?[\u200c\u200d]?")

# Han, kana, Hangul (whose particles stick to the noun), Thai, Lao, Burmese, Khmer. "ー" belongs to no script.
UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}ー\p{Hangul}\p{Thai}\p{Lao}\p{Myanmar}\p{Khmer}"
UNSPACED_RUN = regex.compile(f"[{UNSPACED}]+")
SPACED_OUT = regex.compile(f"(?<=[{UNSPACED}]) (?=[{UNSPACED}])")

ARABIC = regex.compile(r"\p{Block=Arabic}+")
ARABIC_FORMS = {ord(a): b for a, b in zip("أإآٱىةؤئ", "اااايهوي", strict=True)} | {0x640: None}
# The Arabic article, alone or joined with "and", "with", "like", "so", "for": light10 of Larkey et al.
ARTICLE = regex.compile("^(?:وال|بال|كال|فال|لل|ال)(?=..)")
VOWEL_POINTS = regex.compile(r"(?V1)[[\p{Block=Hebrew}\p{Block=Arabic}]&&\p{Mn}]")

# Letters that Unicode does not split into a keyboard's letter and a mark: Łukasz, Straße, Þórshöfn.
LATIN_LETTERS = dict(zip("łŁøØđĐðÐħĦıŧŦ", "lLoOdDdDhHitT", strict=True))
LATIN_LETTERS |= {"ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "þ": "th", "Þ": "Th"}
KEYBOARD = str.maketrans(LATIN_LETTERS)
ACCENTS = regex.compile(r"\p{Block=Combining_Diacritical_Marks}")


def visible(text: str) -> str:
    """Return *text* without invisible characters, except those that words and emoji need."""
    text = UNSEEN_RUN.sub(lambda run: JOINED.match(run[0])[0], text)
    return text


def without_unseen(text: str) -> str:
    """Return *text* without any invisible character."""
    text = UNSEEN_RUN.sub("", text)
    return text


def fold_text(text: str) -> str:
    """
    Return *text* as the index stores it.

    Compatible characters become equal, and letters such as "ł" and "ß" become "l" and "ss". Arabic loses its
    vowel points and article. In scripts without spaces, each character gets a space on both sides.
    """
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", text).replace("’", "'").translate(KEYBOARD)
    text = ARABIC.sub(
        lambda word: ARTICLE.sub("", word[0].translate(ARABIC_FORMS)), VOWEL_POINTS.sub("", text)
    )
    text = UNSPACED_RUN.sub(lambda run: f" {' '.join(run[0])} ", text)
    return text


def unfolded(folded: str) -> str:
    """Return *folded* without the spaces that `fold_text` put between characters."""
    folded = SPACED_OUT.sub("", folded)
    return folded


def plain_form(text: str) -> str:
    """Return *text* without accents and invisible characters."""
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", without_unseen(text)).replace("’", "'")
    return unicodedata.normalize("NFC", ACCENTS.sub("", unicodedata.normalize("NFD", text)))


# --- Wikilinks as a reader sees them. node/markdown.py reads the targets of links.


WIKILINK = re.compile(r"\[\[([^\[\]\n]*)\]\]")
# links in brackets after a claim, as reflections have them
CITED = re.compile(rf"\s{{0,9}}\((?:{WIKILINK.pattern}(?:, )?)+\)")


def link_label(link: str) -> str:
    """Return the part of `path/name|label` that a reader sees: the label, or without a label the name."""
    _, bar, label = link.rpartition("|")
    return label if bar else link.rpartition("/")[2]


def with_labels(text: str) -> str:
    """Return *text* with each link replaced by its label."""
    return WIKILINK.sub(lambda link: link_label(link[1]), text) if "[[" in text else text


def without_citations(text: str) -> str:
    """Remove links in brackets from *text*, and replace every other link by its label."""
    return with_labels(CITED.sub("", text))
