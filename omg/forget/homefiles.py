"""
What of a forgotten thing stands in the files of the home: drops, logs, cursors, temporary files.

Not here: a graph's own files (erase.py, traces.py). One rule: every step may be repeated, and what another process
goes on writing to is changed in place.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from ..graph.files import TEMPORARY, process_alive, write_private
from .traces import Trace
from .words import blanked

FORGOTTEN_MARK = "forgotten.json"  # the plugin serves nothing that it was given before


def raise_mark(home: Path) -> None:
    """Tell the plugin, which serves the last `system` part where the daemon is late, that it is not to be served."""
    write_private(home / FORGOTTEN_MARK, json.dumps({"at": time.time_ns() // 1_000_000}))


def remove_drops(home: Path, trace: Trace) -> None:
    """Drops set aside because they could not be read may hold it, too, and those that a killed hook left half made."""
    for file in sorted((*(home / "spool" / "bad").glob("*"), *(home / "spool").glob(".*"))):
        if trace.in_line(text_of(file)):
            file.unlink(missing_ok=True)


def remove_temporary(home: Path, graph: Path, trace: Trace) -> None:
    """
    Files that a writer who died was about to put in place: by what is in them, for a process of today may have the
    number that the dead one had.
    """
    for file in temporary_files(home, graph):
        named = TEMPORARY.fullmatch(file.name)
        if (named and not process_alive(int(named[1]))) or trace.in_line(text_of(file)):
            file.unlink(missing_ok=True)


def temporary_files(home: Path, graph: Path) -> Iterable[Path]:
    for folder in (home, home / "cursors", home / "runs"):
        yield from (f for f in folder.glob(".*") if f.is_file())
    for parent in (graph, home / "joined"):
        yield from (
            f for f in parent.rglob(".*") if f.is_file() and "vault" not in f.relative_to(parent).parts
        )


def text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:  # put in place meanwhile
        return ""


def remove_keys(home: Path, keys: Iterable[str]) -> None:
    """The sessions *keys* go from where is kept who speaks in them, and how far they were read."""
    gone = set(keys)
    for file in sorted((home / "cursors").glob("*.json")):
        if json_object(file).get("sessionKey") in gone:
            file.unlink()
    owners = json_object(home / "owners.json")
    if gone & owners.keys():
        write_private(
            home / "owners.json", json.dumps({key: own for key, own in owners.items() if key not in gone})
        )


def json_object(file: Path) -> dict[str, object]:
    try:
        value = json.loads(text_of(file))
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def scrub_logs(home: Path, trace: Trace) -> None:
    """Take out the lines of the logs that name one of the notes."""
    names = Trace(trace.names, frozenset(), frozenset(), trace.text, trace.keys)

    def scrubbed(text: str) -> str:
        kept = "".join(line for line in text.splitlines(keepends=True) if not names.in_line(line))
        return blanked(kept, trace.text)  # over the end of a line

    change_logs(home, scrubbed)


def change_logs(home: Path, changed: Callable[[str], str]) -> None:
    """In place: a daemon goes on writing to the file it has open."""
    for file in sorted({*home.glob("omg.log*"), *home.glob("events*.jsonl"), *home.glob("writes.jsonl")}):
        text = text_of(file)
        if (clean := changed(text)) != text:
            with suppress(FileNotFoundError), file.open("r+", encoding="utf-8") as f:
                f.write(clean)
                f.truncate()
