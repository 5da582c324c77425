"""
Where an agent may have written files: read from the calls of a transcript, before anything of it is left out.

A tool that is known to write names its file; one that is known to write none counts for nothing; any other, such
as a shell, may hide a write to any file, until its run is over. Times and names of inbox files only, no
conversation text.
"""

from __future__ import annotations

import json
import posixpath
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .drop import DropEntry, content_of
from .turn import Call

WRITERS = frozenset(("write", "edit", "apply_patch", "write_file", "edit_file", "multi_edit"))

HARMLESS = frozenset(
    """
    agents_list find glob grep image ls memory_get memory_search message read session_status sessions_history
    sessions_list sessions_search sessions_send sessions_spawn subagents tool_describe tool_search tts update_plan
    web_fetch web_search
    """.split()
)

FILE_KEYS = ("path", "file_path", "filePath", "file", "filename")
NAMED_PATH = re.compile(r"(?<![^\s\"'`|<>*])[^\s\"'`|<>*]{1,1000}\.md\b", re.IGNORECASE)
OUR_TOOLS = re.compile(r"omg_\w+$")
SLACK_MS = 5_000  # a file's time and a message's come from one clock, and are not taken at one moment


@dataclass(frozen=True, slots=True)
class Writes:
    """From when to when a run may have written: the files of inboxes that it *named*, or any where that is None."""

    begin_ms: int
    end_ms: int
    named: tuple[str, ...] | None


def writes_of(entries: Iterable[Any]) -> list[Writes]:
    """What each run in *entries* may have written, by its calls; a run that called nothing of the kind has none."""
    return [found for run in runs_of(entries) for found in writes_in_run(run)]


def runs_of(entries: Iterable[Any]) -> Iterator[list[DropEntry]]:
    """Readable entries, cut where somebody, or the gateway in their place, begins to speak."""
    run: list[DropEntry] = []
    for raw in entries:
        try:
            entry = DropEntry.model_validate(raw)
        except ValueError:
            continue
        if entry.message.role == "user" and run:
            yield run
            run = []
        run.append(entry)
    if run:
        yield run


def writes_in_run(run: list[DropEntry]) -> Iterator[Writes]:
    at = [entry.message.timestamp or entry.created or 0 for entry in run]
    end = max(at) + SLACK_MS
    made = [
        (ms, call) for ms, entry in zip(at, run, strict=True) for call in content_of(entry.message.content)[1]
    ]
    hidden = [
        ms for ms, call in made if call.name not in WRITERS | HARMLESS and not OUR_TOOLS.match(call.name)
    ]
    if hidden:
        yield Writes(min(hidden) - SLACK_MS, end, None)
    for ms, call in made:
        if call.name in WRITERS and (names := tuple(inbox_files(call))):
            yield Writes(ms - SLACK_MS, end, names)


def inbox_files(call: Call) -> Iterator[str]:
    """Names of the inbox files that a writing tool's arguments say, as `folded_path` has them."""
    for path in file_arguments(call.arguments):
        folder, name = posixpath.split(posixpath.normpath(path.replace("\\", "/")))
        if folded_path(posixpath.basename(folder)) == "inbox" and folded_path(name).endswith(".md"):
            yield folded_path(name)


def file_arguments(arguments: str) -> list[str]:
    try:
        made = json.loads(arguments)
    except ValueError:
        made = None
    paths = [made[key] for key in FILE_KEYS if key in made] if isinstance(made, Mapping) else []
    return [str(path).strip() for path in paths] or NAMED_PATH.findall(arguments.replace("\\n", "\n"))


def folded_path(name: str) -> str:
    """As two names are one file on the most lenient file system."""
    return unicodedata.normalize("NFC", name).casefold()
