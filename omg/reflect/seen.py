"""
What the Reflector has seen, so that its cost follows what changed since: a file `reflected.json` of a graph.

    notes     path → [hash of its bytes, whether a model has answered all there is to ask about it as it is]
    matters   kind and paths of what a model was asked → hashes of its notes as they were shown; "?" before them
              where it was silent
    periods   reflection → hash of what it is made of, or was last refused for

A cycle writes it beside its receipt and takes it over once the receipt is done, so that a crash in between
neither forgets what a model was paid for nor claims what was never written. One rule: losing this file costs
model calls and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import BadInput
from ..graph.files import write_private
from ..graph.graph import Graph
from ..journal import read_receipt
from .groups import Matter

UNDONE = "undid "  # begins the summary of an undo's receipt


@dataclass(slots=True)
class Seen:
    notes: dict[str, tuple[str, bool]] = field(default_factory=dict)
    periods: dict[str, str] = field(default_factory=dict)
    matters: dict[str, str] = field(default_factory=dict)

    def is_answered(self, matter: Matter, digest: str) -> bool:
        """Whether a model has answered *matter*, or was silent on it twice, with its notes as they read now."""
        return self.matters.get(matter.key) == digest

    def note_answer(self, matter: Matter, digest: str, *, answered: bool) -> None:
        """A model was asked about *matter*. Silence counts the second time: some models leave out what stays as it is."""
        before = self.matters.get(matter.key, "")
        silent = f"?{digest}"
        self.matters[matter.key] = digest if answered or before == silent else silent

    def drop_gone(self) -> None:
        """Forget what was asked of notes that are not there any more."""
        there = self.notes.keys()
        self.matters = {key: kept for key, kept in self.matters.items() if there >= {*key.split("\n")[1:]}}

    def changed(self, hashes: Mapping[str, str]) -> set[str]:
        """Paths that are not as they were seen."""
        return {p for p, hash in hashes.items() if p not in self.notes or self.notes[p][0] != hash}

    def unasked(self, hashes: Mapping[str, str]) -> set[str]:
        """Paths of which there may be something to ask a model."""
        return {p for p, hash in hashes.items() if self.notes.get(p, ("", False)) != (hash, True)}


def load_seen(graph: Graph) -> Seen:
    """What the last finished cycle saw. Takes over, or drops, what a crash left beside it."""
    file, open_file = seen_files(graph)
    if open_file.exists():
        cycle = read_seen(open_file).get("cycle")
        if cycle and (graph.folder / "receipts" / f"{cycle}.json").exists():
            open_file.replace(file)
        else:
            open_file.unlink()
    raw = read_seen(file)
    try:
        notes = {path: (str(hash), bool(asked)) for path, (hash, asked) in raw.get("notes", {}).items()}
        return Seen(notes, dict(raw.get("periods", {})), dict(raw.get("matters", {})))
    except (TypeError, ValueError, AttributeError):
        return Seen()


def stage_seen(graph: Graph, seen: Seen, cycle: str) -> None:
    """Write *seen* down as what will be true once the receipt *cycle* is done."""
    value = {"cycle": cycle, "notes": seen.notes, "periods": seen.periods, "matters": seen.matters}
    write_private(seen_files(graph)[1], json.dumps(value, ensure_ascii=False))


def commit_seen(graph: Graph) -> None:
    """The receipt is done, or there was none to write: what was promised is true."""
    file, open_file = seen_files(graph)
    open_file.replace(file)


def seen_files(graph: Graph) -> tuple[Path, Path]:
    return graph.folder / "reflected.json", graph.folder / "reflected.open.json"


def read_seen(file: Path) -> dict[str, Any]:
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def undone_notes(graph: Graph) -> dict[str, str | None]:
    """
    Path → text (None: no file) of what a person's undo of a cycle put back, whether or not it is still so.

    They did not want what that cycle did; until such a note changes, it is not done again.
    """
    texts: dict[str, str | None] = {}
    for file in sorted((graph.folder / "receipts").glob("*-undo-*.json")):
        with suppress(BadInput):  # damaged, which is for the doctor to say
            receipt = read_receipt(file)
            if any(line.startswith(UNDONE) and "-reflection-" in line for line in receipt.summary):
                texts |= {c.path: c.after for c in receipt.changes}
    return texts
