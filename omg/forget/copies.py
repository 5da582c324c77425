"""
Graphs that are kept beside the living one, and what of them is forgotten with it.

    replaced/<stamp>         of this graph, before `omg rebuild`
    <home>/joined/<folder>   of another account of the same person, before it was merged into this one; joined.json says
                             into which, and where its vault lies if that is not in the folder
    damaged/<name>           what could not be read

One rule: nobody reads them but a person, so what can be derived goes whole; their other notes stay.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ..errors import BadInput
from ..graph.files import write_private
from ..graph.graph import Graph
from ..graph.pending import Pending
from ..message.stored import turn_to_json
from ..node.maptable import LOG_FOLDER
from .traces import SEEN, Trace, archived_messages, remove_archived, scrub_receipts, went_into
from .words import blanked

JOINED = "joined.json"
DERIVED = (
    "state.json",
    "written.jsonl",
    "uses.jsonl",
    "index.db",
    "index.db-wal",
    "index.db-shm",
    "index.db-journal",
    *SEEN,
)


def scrub_copies(graph: Graph, trace: Trace) -> None:
    """Copies keep their other notes; a graph under construction is begun anew."""
    for folder, vault in copies_of(graph, trace):
        merged = folder_key(folder) in trace.keys  # all that it holds is in the living graph
        # a vault elsewhere is not in the folder, and stays
        if not merged or not vault.is_relative_to(folder):
            scrub_copy(folder, vault, trace)
        if merged:
            shutil.rmtree(folder)


def copies_of(graph: Graph, trace: Trace) -> Iterator[tuple[Path, Path]]:
    """Folder and vault of each copy; what was being rebuilt is removed."""
    joined = joined_folders(graph, trace.messages)
    for folder in (graph.folder, *joined):
        shutil.rmtree(folder / "rebuild", ignore_errors=True)
        for old in sorted((folder / "replaced").glob("*/")):
            yield old, old / "vault"
    for folder in joined:
        yield folder, Path(str(read_mark(folder / JOINED).get("vault") or folder / "vault"))


def joined_folders(graph: Graph, messages: Collection[str] = ()) -> list[Path]:
    """Of the graphs that were merged into *graph*. Also one that has some of *messages*, which it has no more."""
    folders = sorted((graph.folder.parents[1] / "joined").glob("*/"))
    return [folder for folder in folders if joined_into(graph, folder, messages)]


def joined_into(graph: Graph, folder: Path, messages: Collection[str]) -> bool:
    if into := read_mark(folder / JOINED).get("into"):
        return into == graph.identity.key
    # An earlier version wrote down nothing.
    ids = {m.id for _, m in archived_messages(folder / "archive")}
    return not ids.isdisjoint(messages) or bool(graph.index.seen(ids))


def read_mark(file: Path) -> dict[str, object]:
    with suppress(OSError, ValueError):
        value = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(value, dict):
            return value
    return {}


def folder_key(folder: Path) -> str:
    return str(read_mark(folder / "identity.json").get("key") or "")


def remove_derived(folder: Path) -> None:
    for name in DERIVED:
        (folder / name).unlink(missing_ok=True)


def scrub_copy(folder: Path, vault: Path, trace: Trace) -> None:
    remove_derived(folder)
    found = notes_telling(vault, trace)
    wider = replace(trace, names=trace.names.union(*found.values()))
    remove_archived(folder / "archive", trace)
    scrub_pending([Pending(f) for f in sorted((folder / "pending").glob("*.json"))], trace)
    scrub_receipts(folder / "receipts", wider)
    remove_damaged(folder / "damaged", wider)
    for file in sorted(vault.rglob("*.md")):
        text = file.read_text(encoding="utf-8", errors="replace")
        if file not in found and wider.in_note(text):  # a page that we made of others
            kept = [line for line in text.splitlines(keepends=True) if not wider.in_note(line)]
            write_private(file, "" if file.stem == "now" else blanked("".join(kept), trace.text))
    for file in reversed(found):  # a crash in between leaves what leads to the others
        file.unlink()


def scrub_pending(pending: list[Pending], trace: Trace) -> None:
    """Take messages out of turns that wait; one that cannot be read goes if it may tell of it."""
    for p in pending:
        try:
            turn = p.turn()
        except BadInput:
            if trace.in_line(p.file.read_text(encoding="utf-8", errors="replace")):
                p.file.unlink()
            continue
        except FileNotFoundError:
            continue
        kept = tuple(m for m in turn.messages if not trace.in_message(m))
        if not kept:
            p.file.unlink()
        elif len(kept) < len(turn.messages):
            sender = "" if trace.in_words(turn.sender) else turn.sender
            write_private(p.file, turn_to_json(replace(turn, messages=kept, sender=sender)))


def notes_telling(vault: Path, trace: Trace) -> dict[Path, set[str]]:
    """The notes below *vault* that tell of it, and what was made of them in turn: file → its names there."""
    files = {
        file: (path, file.read_text(encoding="utf-8", errors="replace"))
        for file in sorted(vault.rglob("*.md"))
        if not (path := file.relative_to(vault).as_posix().removesuffix(".md")).startswith(LOG_FOLDER)
    }
    found: dict[Path, set[str]] = {}
    names, more = set(trace.names), True
    while more:
        more = False
        trace = replace(trace, names=frozenset(names))
        for file, (path, text) in files.items():
            made = path.startswith("mocs/") or path in ("index", "now")
            if file not in found and (path in names or (not made and trace.in_note(text))):
                found[file] = {path, *went_into(text, path)}
                names |= found[file]
                more = True
    return found


def remove_damaged(folder: Path, trace: Trace) -> None:
    """What could not be read goes whole if it may tell of it: nobody can say which part does."""
    for file in sorted(f for f in folder.glob("*") if f.suffix != ".txt"):
        if trace.in_line(file.read_text(encoding="utf-8", errors="replace")):
            file.unlink()
            file.with_name(f"{file.name}.txt").unlink(missing_ok=True)
