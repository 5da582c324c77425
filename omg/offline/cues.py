"""
The words the offline Observer knows, one file for each language: words/en.toml, words/de.toml, …

One rule: what is a word or a pattern of a language stands in its file, and can be changed there by someone who
does not read Python.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

LATIN_LANGUAGES = ("de", "fr", "es")  # with a few cues each; English, and CJK, which its script tells


@dataclass(frozen=True, slots=True)
class Cue:
    """Patterns that make a sentence one kind of note. `type` "" is an aside: no note, but worth a line in another."""

    name: str
    type: str
    loop: str | None
    patterns: tuple[re.Pattern[str], ...]
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Language:
    patterns: dict[str, re.Pattern[str]]
    cues: tuple[Cue, ...]


@cache
def read_words(name: str) -> dict[str, Any]:
    """The file as it is. Lists need no pattern compiled."""
    with (Path(__file__).parent / "words" / f"{name}.toml").open("rb") as f:
        return tomllib.load(f)


@cache
def language(name: str) -> Language:
    """The words of `words/<name>.toml`. In its patterns `<other>` stands for another entry, a list for its alternatives."""
    table = read_words(name)
    words: dict[str, Any] = {**table.get("words", {}), **table.get("says", {})}
    if twice := table.get("words", {}).keys() & table.get("says", {}).keys():
        raise ValueError(f"words/{name}.toml: {min(twice)} stands under both [words] and [says]")

    def expanded(value: str | list[str]) -> str:
        if isinstance(value, list):
            text = f"(?:{'|'.join(value)})"
        else:
            text = "".join(line.strip() for line in value.splitlines())
        return re.sub(r"(?<!\?P)<(\w+)>", lambda m: expanded(words[m[1]]), text)

    def compiled(value: str) -> re.Pattern[str]:
        return re.compile(expanded(value), re.IGNORECASE)

    return Language(
        {k: compiled(v) for k, v in table.get("says", {}).items() if isinstance(v, str)},
        tuple(
            Cue(
                c["cue"],
                c.get("type", ""),
                c.get("loop"),
                patterns=tuple(map(compiled, c["patterns"])),
                examples=tuple(c["examples"]),
            )
            for c in table["cue"]
        ),
    )


def begins(what: str, text: str) -> re.Match[str] | None:
    """Whether *text* begins as a [says] pattern of English has it: "question", "undo", …"""
    return language("en").patterns[what].match(text)


def holds(what: str, text: str) -> re.Match[str] | None:
    """Whether it stands anywhere in *text*."""
    return language("en").patterns[what].search(text)


TOKEN = re.compile(r"\d+(?:[.:]\d+)+|[^\W_]+(?:['-][^\W_]+)*")


@cache
def listed(name: str) -> frozenset[str]:
    """The words of an English list, such as "stop"."""
    return frozenset(read_words("en")["lists"][name].split())


def says_enough(text: str, least: int) -> bool:
    """Whether *text* has at least *least* words that say something."""
    stop = listed("stop")
    return sum(m[0].lower() not in stop for m in TOKEN.finditer(text)) >= least


@cache
def irregular() -> dict[str, str]:
    """Past forms and participles, each with its base."""
    groups = re.split(r"[|\n]", read_words("en")["lists"]["irregular"].strip())
    return {form: group.split()[0] for group in groups for form in group.split()[1:]}


@cache
def bases() -> frozenset[str]:
    """Common verbs."""
    return frozenset((*irregular().values(), *listed("regular")))


def is_past(word: str) -> bool:
    word = word.lower()
    return word in irregular() or (word.endswith("ed") and len(word) > 3 and word not in listed("not_past"))


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
