"""English verbs and stems, as far as a small list goes (english.toml). Words of other languages pass unchanged, or nearly."""

from __future__ import annotations

import re
import tomllib
from functools import cache, lru_cache
from pathlib import Path

ENDINGS = (("ies", "y"), ("ied", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""))


@cache
def _lists() -> dict[str, str]:
    with Path(__file__).with_suffix(".toml").open("rb") as file:
        lists: dict[str, str] = tomllib.load(file)
    return lists


@cache
def english_words(name: str) -> frozenset[str]:
    """The words of a list: "stop", "regular", "not_past"."""
    return frozenset(_lists()[name].split())


@cache
def irregular() -> dict[str, str]:
    """Past forms and participles, each with its base."""
    groups = _lists()["irregular"].strip().replace("\n", "|").split("|")
    return {form: group.split()[0] for group in groups for form in group.split()[1:]}


@cache
def bases() -> frozenset[str]:
    """Common verbs."""
    return frozenset((*irregular().values(), *english_words("regular")))


def is_past(word: str) -> bool:
    word = word.lower()
    return word in irregular() or (
        word.endswith("ed") and len(word) > 3 and word not in english_words("not_past")
    )


def base_of(word: str) -> str:
    """The base of a past form or participle: "went" → "go", "stopped" → "stop"; any other word unchanged."""
    word = word.lower()
    if word in irregular() or not is_past(word):
        return irregular().get(word, word)
    for base in (word[:-2], word[:-1], word[:-3], word[:-3] + "y"):
        if base in bases():
            return base
    if word.endswith("ied"):
        return word[:-3] + "y"
    stem = word[:-2]
    if re.fullmatch(r"[^aeiou]*[aeiou][^aeiouwxy]|.*[cgsuvz]", stem) and not stem.endswith(("ss", "ng")):
        return stem + "e"  # named, used, danced
    return stem[:-1] if stem[-1:] == stem[-2:-1] and stem[-1] not in "ls" else stem


def singular_form(word: str) -> str:
    """As much as makes singular and plural, "garden's" and "garden" one. For words that are shown or linked."""
    word = re.sub(r"['’]\w+$", "", word)
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


@lru_cache(maxsize=8192)
def stem_of(word: str) -> str:
    """What the forms of a word have in common: "ran", "running", "runs" → "run". For words that are compared."""
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
    """The stems of common verbs."""
    return frozenset(map(stem_of, bases()))
