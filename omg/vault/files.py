"""
Writes one file atomically, and keeps the old file while an editor may still save into it.

A reader always finds the old bytes or the new bytes, also after a crash. A file that changed since the caller read it is
never overwritten.

Dotfiles beside the file, which Obsidian and our watcher ignore:

    .omg-<token>.tmp                       new bytes, not yet in place
    .omg-<token>-<hash>-<hash>~<name>      the old file after it was replaced or removed: an editor that has it open still
                                           saves into it. The hashes are those of the old and the new content.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import secrets
import stat
import threading
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, Generic, TypeVar

from ..errors import Stale

LEFTOVER = re.compile(
    r"\.omg-[0-9a-f]{8}(?:\.tmp|-(?P<was>[0-9a-f]{16})-(?P<new>[0-9a-f]{16})~(?P<name>.*))", re.S
)

NO_SUCH = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)
NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


def is_ordinary_name(name: str) -> bool:
    """Whether a note or a folder may have this name: not hidden, UTF-8, and without slashes."""
    if not name or name.startswith(".") or "\0" in name or "\\" in name or "/" in name:
        return False
    # Python shows bytes that are not UTF-8 as lone surrogates.
    return name.isascii() or not re.search("[\ud800-\udfff]", name)


def file_contents(file: Path | str) -> bytes | None:
    """Return the bytes of *file*; None if there is no file. Raises OSError for a link, a folder or a pipe."""
    try:
        # O_NONBLOCK: opening a pipe must not wait.
        fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as e:
        if e.errno in NO_SUCH:
            return None
        raise
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        with open(fd, "rb", closefd=False) as f:
            return f.read()
    finally:
        os.close(fd)


def digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def put_file(file: Path, data: bytes, was: bytes | None, mode: int | None = None) -> None:
    """
    Replace *was*, the content of *file* (None: no file), by *data* in one step. Raises Stale if the content is not *was*.

    An existing file keeps its mode. A new file gets *mode*; by default only its owner can read the file.
    """
    missing = list(takewhile(lambda folder: not folder.exists(), file.parents))
    tmp = file.with_name(f".omg-{secrets.token_hex(4)}.tmp")
    try:
        for folder in reversed(missing):
            folder.mkdir(exist_ok=True)
        with suppress(FileNotFoundError):
            mode = stat.S_IMODE(file.stat().st_mode)
        write_new(tmp, data, mode)
        swap_file(tmp, data, file, was)
    except BaseException:
        with suppress(OSError):
            tmp.unlink()
        for folder in missing:
            with suppress(OSError):  # the folder was not made, or holds other files
                folder.rmdir()
        raise
    for folder in missing:
        flush_folder(folder.parent)


def swap_file(new: Path, data: bytes, file: Path, was: bytes | None) -> None:
    """Move *new*, which holds *data*, over *file*, and keep the old file under a second name. Raises Stale if *file* does
    not hold *was* (None: no file)."""
    if was is None:
        place_new(new, file)
    else:
        held = held_name(file, was, data)
        try:
            if hold_inode(file, held) and not (file_contents(held) == was and held.samefile(file)):
                raise Stale(f"OMG did not write {file}, because another program saved it just now; try again")
            # An editor that saves by renaming can still lose in the microseconds between these two
            # lines; one that saves in place cannot.
            new.replace(file)
        except BaseException as e:
            held.unlink(missing_ok=True)
            if isinstance(e, FileNotFoundError):
                raise Stale(
                    f"OMG did not write {file}, because another program removed it just now; try again"
                ) from e
            raise
    flush_folder(file.parent)


def place_new(new: Path, file: Path) -> None:
    """Rename *new* to *file*. If *file* exists, raise Stale and leave both."""
    try:
        os.link(new, file)  # a rename would overwrite
        new.unlink()
    except OSError as e:
        if file.exists():
            raise Stale(
                f"OMG did not write {file}, because another program made it just now; try again"
            ) from e
        if e.errno not in NO_LINKS:
            raise
        new.rename(file)


def hold_inode(file: Path, held: Path) -> bool:
    """Give *file* the second name *held* (a hard link). Return False if the file system has no hard links: FAT, some mounts."""
    try:
        os.link(file, held)
    except OSError as e:
        if e.errno not in NO_LINKS:
            raise
        return False
    return True


def held_name(file: Path, was: bytes, new: bytes | None) -> Path:
    """Return a hidden name for the old *file*, not ending in .md: OpenClaw's memory search reads even hidden .md files."""
    name = file.name.removesuffix(".md")
    if len(os.fsencode(name)) > 200:  # file systems allow 255; a late save then goes to the inbox
        name = ""
    return file.with_name(f".omg-{secrets.token_hex(4)}-{short_hash(was)}-{short_hash(new)}~{name}")


def short_hash(data: bytes | None) -> str:
    """Return a short hash that tells versions of a file apart; zeros for None (no file)."""
    return "0" * 16 if data is None else digest(data)[:16]


def case_twin(file: Path) -> str | None:
    """Return the name of a file in the same folder that differs only in case or composed accents; None: no such file."""
    with suppress(FileNotFoundError, NotADirectoryError):
        for other in file.parent.iterdir():
            if other.name != file.name and folded_name(other.name) == folded_name(file.name):
                return other.name
    return None


def folded_name(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def flush_folder(folder: Path) -> None:
    """Flush the entries of *folder* to the disk, if the file system supports this."""
    with suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def read_if_changed(file: Path, seen: tuple[int, int] | None) -> tuple[bytes, tuple[int, int]] | None:
    """Return the bytes of *file*, and (inode, size) to pass as *seen* next time; None if *file* is missing or unchanged."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    if (found.st_ino, found.st_size) == seen:
        return None
    data = file.read_bytes()
    return data, (found.st_ino, len(data))


# --- Private files: replaced atomically, appended to durably. After a crash a file has its old or its new content.


# Temporary names of `write_private`: they end with the writer's process id and a token.
TEMPORARY = re.compile(r"\..+\.(\d+)\.[0-9a-f]{8}")


_refused: set[Path] = set()  # temporary files that could not be removed; they may hold conversation text


def remove_refused() -> None:
    """Try again to remove the temporary files that failed writes left behind."""
    for tmp in list(_refused):
        with suppress(OSError):
            tmp.unlink(missing_ok=True)
            _refused.discard(tmp)


def write_new(file: Path, data: bytes, mode: int | None = None) -> os.stat_result:
    """
    Write a new file durably and return its `stat`. By default only its owner can read the file. Raises FileExistsError.
    """
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as f:
        if mode is not None:
            os.fchmod(f.fileno(), mode)
        f.write(data)
        f.flush()
        os.fsync(f.fileno())
        return os.fstat(f.fileno())


def write_private(file: Path, text: str) -> os.stat_result:
    """Replace *file* atomically and durably, readable by its owner only. Return the new file's `stat`."""
    remove_refused()
    tmp = file.with_name(f".{file.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        found = write_new(tmp, text.encode("utf-8"))
        tmp.replace(file)
    except BaseException:
        _refused.add(tmp)
        remove_refused()
        raise
    return found


def append_lines(file: Path, lines: Sequence[str], *, durable: bool = True) -> os.stat_result:
    """Append *lines* and return the file's `stat`. First end a line that a crash left torn, so that *lines* stay whole."""
    with file.open("ab+") as f:
        os.fchmod(f.fileno(), 0o600)
        if f.tell():
            f.seek(-1, os.SEEK_END)
            if f.read(1) != b"\n":
                f.write(b"\n")
        f.write("".join(line + "\n" for line in lines).encode("utf-8", "replace"))
        f.flush()
        if durable:
            os.fsync(f.fileno())
        return os.fstat(f.fileno())


V = TypeVar("V")
SLACK = 1_000  # outdated lines before the file is rewritten: at most about 350 kB


class Entries(Generic[V]):
    """
    Keys with values, kept in *file* as a JSON line for each change. The last line of a key counts. Without *file*, the
    entries are in memory only.

    *parse* turns a line's JSON into key and value (None: the key is removed); *line* turns both into JSON. A line that
    *parse* refuses was torn by a crash; the next rewrite drops the line. Threads and processes may share a file.
    """

    def __init__(
        self,
        file: Path | None,
        parse: Callable[[Any], tuple[str, V | None]],
        line: Callable[[str, V | None], Any],
    ) -> None:
        self.file, self._parse, self._line = file, parse, line
        self.guard = threading.RLock()
        self._entries: dict[str, V] = {}  # the last one changed is last
        self._seen: tuple[int, int] | None = None  # inode and size of the file when we last read or wrote it
        self._lines = 0

    def all(self) -> dict[str, V]:
        """Return all entries, read again if another process wrote to the file. The caller must not change them."""
        with self.guard:
            if self.file is not None and (read := read_if_changed(self.file, self._seen)):
                texts, entries = read[0].splitlines(), dict[str, V]()
                for text in texts:
                    with suppress(ValueError, TypeError, LookupError, OverflowError):
                        key, value = self._parse(json.loads(text))
                        set_last(entries, key, value)
                self._entries, self._lines, self._seen = entries, len(texts), read[1]
            return self._entries

    def put(self, changes: Mapping[str, V | None]) -> None:
        """Set the values in *changes*; None removes a key. Not durable: a crash may lose the changes."""
        with self.guard:
            entries = self.all()
            for key, value in changes.items():
                set_last(entries, key, value)
            if self._lines > len(entries) + SLACK:
                self.shorten()
            elif self.file is not None and changes:
                lines = [self._text(*change) for change in changes.items()]
                self._known(append_lines(self.file, lines, durable=False), self._lines + len(lines))

    def drop(self, gone: Callable[[str], bool]) -> None:
        """Remove the keys for which *gone* is true, and every line of the file that names such a key."""
        with self.guard:
            self._entries = {key: value for key, value in self.all().items() if not gone(key)}
            self.shorten()

    def shorten(self) -> None:
        """Rewrite the file with one line for each entry, if the file has more lines."""
        with self.guard:
            entries = self.all()
            if self.file is not None and self._lines > len(entries):
                text = "".join(f"{self._text(*entry)}\n" for entry in entries.items())
                self._known(write_private(self.file, text), len(entries))

    def _text(self, key: str, value: V | None) -> str:
        return json.dumps(self._line(key, value), ensure_ascii=False)

    def _known(self, found: os.stat_result, lines: int) -> None:
        self._seen, self._lines = (found.st_ino, found.st_size), lines


def set_last(entries: dict[str, V], key: str, value: V | None) -> None:
    """Set *key* to *value* and move it to the end of *entries*; None removes *key*."""
    entries.pop(key, None)
    if value is not None:
        entries[key] = value


# --- Records what OMG wrote: for each path a hash of the file, and for a note a hash ("mark") of each of its parts.
#
# A file without a record counts as a person's: after a lost or torn line OMG no longer rewrites that file.


@dataclass(frozen=True, slots=True)
class Record:
    """What OMG last wrote to one path."""

    hash: str
    # "part=mark part=mark"; "" if the file is not a note
    parts: str = ""
    theirs: frozenset[str] = frozenset()  # the parts with a person's value, which OMG wrote back unchanged

    @property
    def marks(self) -> dict[str, str]:
        return dict(part.split("=", 1) for part in self.parts.split())

    @property
    def id(self) -> str:
        """The mark (a hash) of the note's id; "" if unknown."""
        return self.marks.get("id", "")


def keys(record: Record | None) -> list[str]:
    return [key for key in (record.hash, record.id) if key] if record else []


def joined(marks: Mapping[str, str]) -> str:
    return " ".join(f"{part}={mark}" for part, mark in marks.items())


class Written:
    """
    The records of what OMG wrote, path → Record, kept in *file*. Only the holder of the vault's lock may write. Other
    processes see a change at their next read.
    """

    def __init__(self, file: Path | None) -> None:
        self._kept = Entries(file, read_line, written_line)
        self._paths: dict[str, dict[str, None]] = {}  # file hash or mark of an id → paths, the newest last
        self._indexed: object = None  # the records that `_paths` was made from

    def __bool__(self) -> bool:
        return bool(self._kept.all())

    def get(self, path: str) -> Record | None:
        return self._kept.all().get(path)

    def find(self, key: str) -> Record | None:
        """Return the newest record with *key*, the hash of a file or the mark of a note's id; None if there is none."""
        with self._kept.guard:
            records = self._kept.all()
            if records is not self._indexed:
                self._indexed, self._paths = records, {}
                for path, record in records.items():
                    self._index(path, None, record)
            return next((records[path] for path in reversed(self._paths.get(key, {}))), None)

    def note(self, path: str, record: Record | None) -> None:
        """Store *record* as what OMG wrote at *path*. None removes the stored record."""
        with self._kept.guard:
            if (before := self.get(path)) != record:
                self._index(path, before, record)  # first, so that both agree even if the disk is full
                self._kept.put({path: record})

    def compact(self) -> None:
        """Rewrite the file without outdated lines."""
        self._kept.shorten()

    def _index(self, path: str, before: Record | None, record: Record | None) -> None:
        for key in keys(before):
            self._paths.get(key, {}).pop(path, None)
        for key in keys(record):
            self._paths.setdefault(key, {})[path] = None


def read_line(entry: Mapping[str, Any]) -> tuple[str, Record | None]:
    """Read path and record from a line's JSON. Raises KeyError or TypeError for a line that OMG did not write."""
    if entry["hash"] is None:
        return entry["path"], None
    return entry["path"], Record(entry["hash"], entry.get("parts", ""), frozenset(entry.get("theirs", ())))


def written_line(path: str, record: Record | None) -> dict[str, Any]:
    entry: dict[str, Any] = {"path": path, "hash": record and record.hash}
    if record and record.parts:
        entry["parts"] = record.parts
    if record and record.theirs:
        entry["theirs"] = sorted(record.theirs)
    return entry
