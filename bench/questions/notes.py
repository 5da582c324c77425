"""
The notes of a vault as plain text, read without omg: any checkout's vault is read the same way.

`as_read` is the form in which texts are compared: links as their labels, one space for several, small letters. A
sentence ends at ".", "!" or "?" before a space, also at a list's number ("1."); what has fewer than ten characters is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

LINK = re.compile(r"\[\[([^\[\]\n]+)\]\]")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
SHORTEST, MARKS = 10, ".!?…;, "
HEADING = re.compile(r"\A\s*# (.+)$", re.M)
HISTORY = "## History\n"


@dataclass(frozen=True)
class Note:
    path: str  # nodes/fact/…
    head: dict[str, Any]
    text: str  # below the title, without the history
    history: str
    title: str

    @property
    def description(self) -> str:
        return str(self.head.get("description") or "")

    @property
    def names(self) -> set[str]:
        """What it is or was called, as `slug` writes it."""
        aliases = [str(alias).rpartition("/")[2] for alias in self.head.get("aliases") or ()]
        return {slug(name) for name in (self.title, self.path.rpartition("/")[2], *aliases)}

    @property
    def all(self) -> str:
        return as_read(f"{self.description}\n{self.text}\n{self.history}")

    def links(self) -> set[str]:
        """Paths that its head and its text lead to."""
        given = " ".join(map(str, self.head.get("links") or ())) + self.text + self.history
        return {target.partition("|")[0] for target in LINK.findall(given)}


def read_notes(vault: Path) -> list[Note]:
    return [note_at(file, vault) for file in sorted(vault.glob("nodes/*/[!.]*.md"))]


def note_at(file: Path, vault: Path) -> Note:
    _, head, body = file.read_text(encoding="utf-8").split("---\n", 2)
    text, _, history = body.partition(HISTORY)
    heading = HEADING.search(text)
    path = str(file.relative_to(vault).with_suffix(""))
    title = heading[1] if heading else file.stem.replace("-", " ")
    below = text[heading.end() :] if heading else text
    return Note(path, yaml.safe_load(head) or {}, below.strip(), history.strip(), title)


def called(notes: Iterable[Note], title: str) -> list[Note]:
    """The notes that are or were called *title*, those that are first."""
    name = slug(title)
    found = [note for note in notes if name in note.names]
    return sorted(found, key=lambda note: slug(note.title) != name)


def slug(text: str) -> str:
    return re.sub(r"\W+", "-", text.lower()).strip("-")


def as_read(text: str) -> str:
    plain = LINK.sub(lambda m: m[1].rpartition("|")[2].rpartition("/")[2], text)
    return " ".join(plain.split()).lower()


def sentences(text: str) -> list[str]:
    parts = (part.strip() for part in SENTENCE_END.split(text.strip()))
    return [part for part in parts if len(part) >= SHORTEST]


def stands_in(sentence: str, text: str) -> bool:
    """Whether *sentence* stands, in its words, in *text*, which is `as_read`."""
    return as_read(sentence).rstrip(MARKS) in text
