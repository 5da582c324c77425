"""
Which characters nobody sees, and which scripts put no spaces between words.

Both are properties that Unicode gives each character; `regex` knows them, `re` does not.
"""

from __future__ import annotations

import regex

# Default_Ignorable_Code_Point: soft hyphens, zero-width characters, direction marks, variation selectors, fillers, tags.
UNSEEN = r"\p{Default_Ignorable_Code_Point}"
UNSEEN_RUN = regex.compile(f"{UNSEEN}+")
# What belongs to the character before it: the variant of a picture or a Han character, then a (non-)joiner,
# as in Persian words and pictures of families. Longer runs hide a text.
JOINED = regex.compile(r"\p{Variation_Selector}?[\u200c\u200d]?")

# Han, kana, Hangul (whose particles stick to the noun), Thai, Lao, Burmese, Khmer. "ー" is of no script.
UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}ー\p{Hangul}\p{Thai}\p{Lao}\p{Myanmar}\p{Khmer}"
UNSPACED_RUN = regex.compile(f"[{UNSPACED}]+")


def visible(text: str) -> str:
    """*text* without invisible characters, but for those that belong to words and pictures. For what is kept."""
    text = UNSEEN_RUN.sub(lambda run: JOINED.match(run[0])[0], text)
    return text


def without_unseen(text: str) -> str:
    """*text* without any invisible character. For what is compared."""
    text = UNSEEN_RUN.sub("", text)
    return text
