"""
Private files: replaced atomically, appended durably, locked by the kernel, set aside where they cannot be read.

After a crash a file is the old one or the new one, readable by its owner alone. Not here: what is in them; and notes
(vault/files.py).
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import Locked

TEMPORARY = re.compile(r"\..+\.(\d+)\.[0-9a-f]{8}")  # of write_private: whose it is, and a token


_refused: set[Path] = set()  # temporary files that the disk would not let go; they may hold what was said


def remove_refused() -> None:
    """Try again to remove the temporary files that could not be removed when their writing failed."""
    for tmp in list(_refused):
        with suppress(OSError):
            tmp.unlink(missing_ok=True)
            _refused.discard(tmp)


def write_private(file: Path, text: str) -> os.stat_result:
    """Replace *file* atomically and durably, readable by its owner alone; returns how it looks now."""
    remove_refused()
    tmp = file.with_name(f".{file.name}.{os.getpid()}.{secrets.token_hex(4)}")
    fd = os.open(tmp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as f:
            f.write(text)
            f.flush()
            os.fsync(f.fileno())
            found = os.fstat(f.fileno())
        tmp.replace(file)
    except BaseException:
        _refused.add(tmp)
        remove_refused()
        raise
    return found


def process_alive(pid: int) -> bool:
    """Whether that process is there; one of a restarted machine may have its number, which only means later."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True


@contextmanager
def flock(file: Path, what: str, timeout_s: float = 30.0) -> Iterator[None]:
    """Hold an exclusive lock on *file*. Raises Locked if another holder keeps it longer than *timeout_s*."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with file.open("a+") as f:
        until = time.monotonic() + timeout_s
        while True:
            try:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise Locked(
                        f"{what} is locked by another process ({file}); try again when it is done"
                    ) from None
                time.sleep(0.02)
        yield  # closing the file lets go of the lock


def append_lines(file: Path, lines: list[str]) -> None:
    """Add *lines* durably. A line that a crash left torn is ended first, so that ours stay whole."""
    with file.open("ab+") as f:
        os.fchmod(f.fileno(), 0o600)
        if f.tell():
            f.seek(-1, os.SEEK_END)
            if f.read(1) != b"\n":
                f.write(b"\n")
        f.write("".join(line + "\n" for line in lines).encode())
        f.flush()
        os.fsync(f.fileno())


# --- what cannot be read: set aside as damaged/<name>, with a line that says what to do in damaged/<name>.txt

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
