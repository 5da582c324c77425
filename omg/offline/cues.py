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

from ..text.english import english_words
from ..text.words import WORD_OR_NUMBER

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


@cache
def listed(name: str) -> frozenset[str]:
    """The words of an English list, such as "light"."""
    return frozenset(read_words("en")["lists"][name].split())


def says_enough(text: str, least: int) -> bool:
    """Whether *text* has at least *least* words that say something."""
    words = (m[0].lower() for m in WORD_OR_NUMBER.finditer(text))
    return sum(word not in english_words("stop") for word in words) >= least
