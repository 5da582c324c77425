"""
Every place where a graph and its home keep text, and one way to change what stands there.

    <graph>                  pending/, archive/, receipts/, damaged/     change_folder
    <graph>/replaced/<stamp> the graph before `omg rebuild`              copies_of
    <home>/joined/<folder>   another account of the same person, before it was merged into this graph; joined.json names
                             that graph, and the vault if it lies elsewhere
    <home>                   drops that cannot be read, logs, cursors, owners.json, temporary files

An Edit says what becomes of each text: the erasing of a Selection (erase.py) or the redacting of words (redacting.py).
Every step may be repeated. Notes of the living vault are changed through the vault, not here.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

from ..errors import BadInput
from ..graph.files import TEMPORARY, process_alive, write_private
from ..graph.graph import Graph
from ..graph.state import State
from ..journal import Receipt, read_receipt
from ..message.stored import message_from_json, message_to_json, turn_from_json, turn_to_json
from ..message.turn import Message
from .traces import Trace
from .words import blanked

JOINED = "joined.json"
FORGOTTEN_MARK = "forgotten.json"  # the plugin serves nothing that it was given before
# What the Reflector has seen, and what a model answered about a batch that is still to be observed (observe/run.py)
SEEN = ("reflected.json", "reflected.open.json", "replies.json")
INDEX = ("index.db", "index.db-wal", "index.db-shm", "index.db-journal")
DERIVED = ("state.json", "written.jsonl", "uses.jsonl", *INDEX, *SEEN)


class Edit(Protocol):
    """What becomes of each text. None: it goes."""

    @property
    def trace(self) -> Trace: ...
    def tombstones(self, graph: Graph) -> None: ...
    def notes(self, graph: Graph) -> None:
        """The living vault and its .trash."""

    def copy(self, folder: Path, vault: Path) -> None:
        """A graph that was replaced or joined."""

    def message(self, m: Message) -> Message | None: ...
    def torn(self, line: str) -> str | None:
        """A line of the archive that a crash has torn."""

    def unread(self, text: str) -> str | None:
        """A file that cannot be parsed."""

    def receipt(self, receipt: Receipt) -> Receipt: ...
    def state(self, state: State) -> None: ...
    def uses(self, graph: Graph) -> None: ...
    def keys(self, home: Path) -> None:
        """What the home keeps of sessions."""

    def log(self, text: str) -> str: ...


# --- the files of a graph or of a copy


def change_folder(folder: Path, edit: Edit) -> None:
    for file in sorted((folder / "pending").glob("*.json")):
        change_file(file, partial(changed_turn, edit=edit))
    for file in sorted((folder / "archive").glob("*.jsonl")):
        change_file(file, partial(changed_lines, edit=edit))
    for file in sorted((folder / "receipts").glob("*.json")):
        try:
            receipt = read_receipt(file)
        except BadInput:
            change_file(file, edit.unread)
            continue
        if (clean := edit.receipt(receipt)) != receipt:
            write_private(file, clean.dumps())
    change_files((folder / "damaged").glob("*"), edit.unread)


def change_file(file: Path, changed: Callable[[str], str | None]) -> None:
    text = text_of(file)
    clean = changed(text)
    if clean is None:
        file.unlink(missing_ok=True)
        file.with_name(f"{file.name}.txt").unlink(missing_ok=True)  # why it was set aside
    elif clean != text:
        write_private(file, clean)


def change_files(files: Iterable[Path], changed: Callable[[str], str | None]) -> None:
    for file in sorted(f for f in files if f.is_file()):
        change_file(file, changed)


def text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:  # put in place meanwhile
        return ""


def changed_turn(text: str, edit: Edit) -> str | None:
    try:
        turn = turn_from_json(text)
    except BadInput:
        return edit.unread(text)
    kept = tuple(clean for m in turn.messages if (clean := edit.message(m)) is not None)
    left = replace(turn, messages=kept, sender=blanked(turn.sender, edit.trace.text))
    if left == turn:
        return text
    return turn_to_json(left) if kept else None


def changed_lines(text: str, edit: Edit) -> str:
    changed = (changed_line(line, edit) for line in text.split("\n") if line)
    return "".join(f"{line}\n" for line in changed if line is not None)


def changed_line(line: str, edit: Edit) -> str | None:
    try:
        message, session = message_from_json(line)
    except BadInput:
        return edit.torn(line)
    clean = edit.message(message)
    if clean == message:
        return line
    return None if clean is None else message_to_json(clean, session)


def archived_messages(folder: Path) -> Iterator[tuple[str, Message]]:
    """`(session, message)` of every line in the archive *folder*, except those that a crash has torn."""
    for file in sorted(folder.glob("*.jsonl")):
        for line in text_of(file).split("\n"):
            with suppress(BadInput):
                message, session = message_from_json(line)
                yield session, message


def every_message(graph: Graph) -> list[tuple[str, Message]]:
    """`(session, message)` of the archive, of what is pending, and of graphs that were merged into this one."""
    folders = (graph.folder, *joined_folders(graph))
    found = [said for folder in folders for said in archived_messages(folder / "archive")]
    turns = [p.turn() for p in graph.intact()]
    return found + [(turn.session, m) for turn in turns for m in turn.messages]


# --- copies of a graph


def copies_of(graph: Graph, trace: Trace) -> Iterator[tuple[Path, Path]]:
    """Folder and vault of each copy. A graph that is being rebuilt is removed: it is begun anew."""
    joined = joined_folders(graph, trace.messages)
    for folder in (graph.folder, *joined):
        shutil.rmtree(folder / "rebuild", ignore_errors=True)
        for old in sorted((folder / "replaced").glob("*/")):
            yield old, old / "vault"
    for folder in joined:
        yield folder, Path(str(json_object(folder / JOINED).get("vault") or folder / "vault"))


def joined_folders(graph: Graph, messages: Collection[str] = ()) -> list[Path]:
    """Of the graphs that were merged into *graph*. Also one that has some of *messages*, which it has no more."""
    folders = sorted((graph.folder.parents[1] / "joined").glob("*/"))
    return [folder for folder in folders if joined_into(graph, folder, messages)]


def joined_into(graph: Graph, folder: Path, messages: Collection[str]) -> bool:
    if into := json_object(folder / JOINED).get("into"):
        return into == graph.identity.key
    # An earlier version wrote down nothing.
    ids = {m.id for _, m in archived_messages(folder / "archive")}
    return not ids.isdisjoint(messages) or bool(graph.index.seen(ids))


def remove_derived(folder: Path) -> None:
    """Nobody but a person reads a copy: what is derived in it goes whole."""
    for name in DERIVED:
        (folder / name).unlink(missing_ok=True)


# --- the home


def raise_mark(home: Path) -> None:
    """Tell the plugin, which serves the last `system` part where the daemon is late, that it is not to be served."""
    write_private(home / FORGOTTEN_MARK, json.dumps({"at": time.time_ns() // 1_000_000}))


def change_home(home: Path, graph: Path, edit: Edit) -> None:
    """Drops that cannot be read, temporary files, and logs."""
    change_files((home / "spool" / "bad").glob("*"), edit.unread)
    for file in temporary_files(home, graph):
        # By what is in it, too: a process of today may have the number that the dead writer had.
        named = TEMPORARY.fullmatch(file.name)
        if (named and not process_alive(int(named[1]))) or edit.trace.in_line(text_of(file)):
            file.unlink(missing_ok=True)
    change_logs(home, edit)


def temporary_files(home: Path, graph: Path) -> Iterable[Path]:
    for folder in (home, home / "cursors", home / "runs"):
        yield from (f for f in folder.glob(".*") if f.is_file())
    for parent in (graph, home / "joined"):
        hidden = (f for f in parent.rglob(".*") if "vault" not in f.relative_to(parent).parts)
        yield from (f for f in hidden if f.is_file())


def change_logs(home: Path, edit: Edit) -> None:
    """In place: a daemon goes on writing to the file it has open."""
    for file in sorted({*home.glob("omg.log*"), *home.glob("events*.jsonl"), *home.glob("writes.jsonl")}):
        text = text_of(file)
        if (clean := edit.log(text)) != text:
            with suppress(FileNotFoundError), file.open("r+", encoding="utf-8") as f:
                f.write(clean)
                f.truncate()


def remove_keys(home: Path, keys: Collection[str]) -> None:
    """The sessions *keys* go from where is kept who speaks in them, and how far they were read."""
    for file in sorted((home / "cursors").glob("*.json")):
        if json_object(file).get("sessionKey") in keys:
            file.unlink()
    owners = json_object(home / "owners.json")
    left = {key: own for key, own in owners.items() if key not in keys}
    if left != owners:
        write_private(home / "owners.json", json.dumps(left))


def json_object(file: Path) -> dict[str, object]:
    """The object in *file*; empty where there is none."""
    try:
        value = json.loads(text_of(file))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
