"""
Exports everything that is remembered, as a folder or as JSON lines. `omg import` reads both back.

    omg-export.json          {"omg": "export", "v": 1, "identity": …, "at": …}
    notes/nodes/….md         the notes as they are in the vault, with their properties and History
    messages/YYYY-MM.jsonl   what was said: a line for each message, with its id, role, time, session and text

As JSON lines, the first line is the content of omg-export.json. Then come {"note": path, "text": …, "by_hand": …} for each
note and {"message": …} for each message. Maps, the index and Now are not exported, because they can be made anew.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from .curate import merge_graphs
from .errors import BadInput, BadNode, OutsideVault
from .graph.graph import Graph
from .graph.state import parsed_object
from .index.index import Index
from .message.turn import message_from_json
from .node.note import parse_node
from .vault.vault import Vault
from .worker.registry import Registry

HEAD = "omg-export.json"
TAKEN = ("nodes/", "reflections/", "inbox/")  # the folders of a vault that are exported


def head_of_export(graph: Graph) -> dict[str, Any]:
    return {
        "omg": "export",
        "v": 1,
        "identity": graph.identity.key,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def exported_notes(graph: Graph) -> Iterator[dict[str, Any]]:
    for path in graph.vault.paths():
        data = graph.vault.bytes(path)
        if path.startswith(TAKEN) and data is not None:
            yield {
                "note": path,
                "text": data.decode("utf-8", "replace"),
                "by_hand": bool(graph.vault.theirs(data)),
            }


def archived_lines(graph: Graph) -> Iterator[tuple[str, str]]:
    """Yield each archived message: the name of its file, and its line."""
    for file in sorted((graph.folder / "archive").glob("*.jsonl")):
        with file.open(encoding="utf-8", errors="replace") as lines:
            yield from ((file.name, line.rstrip("\n")) for line in lines if parsed_object(line))


def write_lines(graph: Graph, out: Path) -> None:
    """Write the export as JSON lines, in a file that only its owner can read."""
    messages = ({"message": json.loads(line)} for _, line in archived_lines(graph))
    with private(out) as file:
        for value in chain([head_of_export(graph)], exported_notes(graph), messages):
            file.write(json.dumps(value, ensure_ascii=False) + "\n")


def write_folder(graph: Graph, out: Path) -> None:
    """Write the export as a folder. Raises BadInput if *out* exists and is not an empty folder."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise BadInput(f"{out} is there already; name a new folder")
    by_hand = []
    for note in exported_notes(graph):
        by_hand += [note["note"]] if note["by_hand"] else []
        with private(out / "notes" / f"{note['note']}.md") as file:
            file.write(note["text"])
    (out / "messages").mkdir(parents=True, exist_ok=True, mode=0o700)
    for name, line in archived_lines(graph):
        with private(out / "messages" / name, add=True) as file:
            file.write(line + "\n")
    with private(out / HEAD) as file:  # last, because without this file the folder is no export
        file.write(json.dumps({**head_of_export(graph), "by_hand": by_hand}, ensure_ascii=False, indent=1))


def private(file: Path, *, add: bool = False) -> Any:
    """Open *file* for writing, so that only its owner can read it, and without translating line ends."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    mode = os.O_WRONLY | os.O_CREAT | (os.O_APPEND if add else os.O_TRUNC)
    try:
        return os.fdopen(os.open(file, mode, 0o600), "w", encoding="utf-8", newline="")
    except OSError as e:
        raise BadInput(f"{file} cannot be written ({e.strerror}); name another place") from e


def is_own_export(path: Path) -> bool:
    """Whether `omg export` wrote the file or folder *path*."""
    if path.is_dir():
        return (path / HEAD).is_file()
    if path.suffix == ".zip" or not path.is_file():
        return False
    with path.open("rb") as file:
        return (parsed_object(file.readline(10_000)) or {}).get("omg") == "export"


def values_of(path: Path) -> Iterator[dict[str, Any]]:
    """
    Yield the values of the export at *path*, in the form of its JSON lines. A line that cannot be read gives an empty
    value.
    """
    if path.is_dir():
        head = parsed_object((path / HEAD).read_bytes()) or {}
        yield head
        for file in sorted((path / "notes").rglob("*.md")):
            name = file.relative_to(path / "notes").with_suffix("").as_posix()
            by_hand = name in (head.get("by_hand") or ())
            yield {"note": name, "text": file.read_bytes().decode("utf-8", "replace"), "by_hand": by_hand}
        for file in sorted((path / "messages").glob("*.jsonl")):
            with file.open(encoding="utf-8", errors="replace") as lines:
                yield from ({"message": parsed_object(line)} for line in lines if line.strip())
        return
    with path.open(encoding="utf-8-sig", errors="replace", newline="\n") as lines:
        yield from (parsed_object(line) or {} for line in lines if line.strip())


@dataclass(slots=True)
class Taken:
    """
    Counts what an import did: notes and messages added, entries left out.

    *forgotten*: entries left out because they were forgotten in the graph that imports. *skipped*: entries that cannot
    be used.
    """

    notes: int = 0
    messages: int = 0
    forgotten: int = 0
    skipped: int = 0


def take_export(registry: Registry, into: Graph, path: Path) -> Taken:
    """
    Add the export at *path* to the graph *into*, as if two memories were joined: one cycle, which can be undone.
    Raises BadInput.
    """
    values, taken = values_of(path), Taken()
    if (version := next(values, {}).get("v")) != 1:
        raise BadInput(f"{path}: an export of version {version}; update OMG to read it")
    with tempfile.TemporaryDirectory(dir=registry.folder) as folder:
        root = Path(folder)
        source = Graph(
            into.identity,
            root,
            Vault(root / "vault", root / "written.jsonl"),
            Index(root / "index.db", None, into.zone),
            into.zone,
        )
        try:
            for value in values:
                place(value, source, into, taken)
            source.index.sync(source.vault)
            with into.lock():
                merge_graphs(registry, source, into)
        finally:
            source.index.close()
    return taken


def place(value: dict[str, Any], source: Graph, into: Graph, taken: Taken) -> None:
    """
    Write *value*, a note or message of an export, to the temporary graph *source*.

    `take_export` merges *source* into the graph *into* afterwards. So these values are not written:

    - a value that was forgotten in *into*
    - a value that cannot be used
    - a value that *into* already has, and a note outside the folders TAKEN; *taken* does not count these

    *taken* counts the notes and messages written, the forgotten values, and the values that cannot be used.
    """
    try:
        if isinstance(value.get("note"), str):
            path, text = value["note"], str(value.get("text") or "")
            node = parse_node(text, path)
            ids = [s.id for s in node.sources if s.id]
            gone = into.tombstones.messages(ids)
            if gone or into.tombstones.blocks(node.id, ids, cited=lambda: False):
                taken.forgotten += 1
            elif path.startswith(TAKEN) and into.vault.bytes(path) != text.encode():
                if value.get("by_hand"):  # the vault does not write it, so that the note counts as a person's
                    with private(source.vault.file(path)) as file:
                        file.write(text)
                else:
                    source.vault.write(path, text.encode(), None)
                    source.vault.remember(path, text.encode())
                taken.notes += 1
        elif isinstance(value.get("message"), dict):
            line = json.dumps(value["message"], ensure_ascii=False)
            message, _ = message_from_json(line)
            if into.tombstones.messages([message.id, message.key]):
                taken.forgotten += 1
            elif not into.index.seen([message.id, message.key]):
                month = datetime.fromtimestamp(message.timestamp / 1000, UTC).strftime("%Y-%m")
                with private(source.folder / "archive" / f"{month}.jsonl", add=True) as file:
                    file.write(line + "\n")
                taken.messages += 1
        else:
            taken.skipped += 1
    except (BadInput, BadNode, OutsideVault, ValueError, OverflowError):
        taken.skipped += 1
