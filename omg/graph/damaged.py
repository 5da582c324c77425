"""
What cannot be read is not thrown away, and stops nothing: it is set aside, with a line that says what to do.

    <graph>/damaged/<name>        as it was found
    <graph>/damaged/<name>.txt    the line, for `omg doctor` and the log

Not here: telling what is damaged. One rule: nothing is deleted but what is to be forgotten (forget/traces.py).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

log = logging.getLogger(__name__)

DAMAGED_FOLDER = "damaged"


def set_aside_damaged(graph: Path, file: Path, why: str, mend: str) -> None:
    """Move *file* out of the way, below the folder *graph*; nothing is done if it is gone already."""
    target = free_name(graph, file.name)
    note_damage(target, f"{file}: {why}; set aside as {target}; {mend}")
    try:
        file.rename(target)
    except FileNotFoundError:
        target.with_name(f"{target.name}.txt").unlink()


def keep_damaged(graph: Path, file: Path, data: bytes, why: str, mend: str) -> None:
    """Put down *data*, a part of *file*, that its owner goes on without."""
    target = free_name(graph, file.name)
    note_damage(target, f"{file}: {why}; set aside as {target}; {mend}")
    write_damaged(target, data)


def damaged_files(graph: Path) -> Iterator[tuple[Path, str]]:
    """What was set aside, and the line on each."""
    for file in sorted((graph / DAMAGED_FOLDER).glob("*.txt")):
        yield file.with_suffix(""), file.read_text(encoding="utf-8")


def free_name(graph: Path, name: str) -> Path:
    folder = graph / DAMAGED_FOLDER
    folder.mkdir(exist_ok=True, mode=0o700)
    target, n = folder / name, 1
    while target.exists() or target.with_name(f"{target.name}.txt").exists():
        n += 1
        target = folder / f"{n}-{name}"
    return target


def note_damage(target: Path, line: str) -> None:
    write_damaged(target.with_name(f"{target.name}.txt"), line.encode("utf-8", "replace"))
    log.warning("%s", line)


def write_damaged(file: Path, data: bytes) -> None:
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as f:
        f.write(data)
        f.flush()
        os.fsync(f.fileno())
