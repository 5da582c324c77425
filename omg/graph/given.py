"""
What recent prompts were given and why: a line for each prompt, in `given.jsonl` of a graph.

A line holds paths of notes, times of the quoted messages, scores and reasons. It quotes only the words by which a note
was found. The texts are read from the vault and the archive when a person looks. A forgetting takes out the lines that
name something of it (forget/erase.py). A crash may lose a line; no prompt waits for the disk.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .state import append_lines, parsed_object, write_private

GIVEN = "given.jsonl"
KEPT = 200  # prompts
LONGEST_BYTES = 600_000  # size of the file at which all but the last KEPT lines are removed


def note_given(graph: Path, record: Mapping[str, Any]) -> None:
    """Append *record* to the file in the folder *graph*."""
    file = graph / GIVEN
    line = json.dumps(record, ensure_ascii=False)
    if append_lines(file, [line], durable=False).st_size > LONGEST_BYTES:
        write_private(file, "".join(f"{line}\n" for line in given_lines(graph)[-KEPT:]))


def given_lines(graph: Path) -> list[str]:
    try:
        return (graph / GIVEN).read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []


def given_lately(graph: Path) -> Iterator[dict[str, Any]]:
    """The last records, newest first, without lines that a crash left torn."""
    for line in reversed(given_lines(graph)[-KEPT:]):
        if (record := parsed_object(line)) is not None and isinstance(record.get("at"), int):
            yield record
