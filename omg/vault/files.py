"""
Writes one file atomically, and keeps the former one while an editor may still save into it.

A reader, or a crash, finds either the old bytes or the new ones. A file that the caller has not seen is never
overwritten. Notes and late saves are handled in vault.py.

Dotfiles beside the file, which Obsidian and our watcher pass over:

    .omg-<token>.tmp                       new bytes on their way
    .omg-<token>-<hash>-<hash>~<name>      the replaced or removed inode, into which an editor that has it open
    still saves; with hashes of its old and new content
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
    """Whether a note or its folder may have this name: it is visible, in UTF-8, and leads nowhere else."""
    if not name or name.startswith(".") or "\0" in name or "\\" in name or "/" in name:
        return False
    # Python shows bytes of a name that are not UTF-8 as half characters.
    return name.isascii() or not re.search("[\ud800-\udfff]", name)


def file_contents(file: Path) -> bytes | None:
    """The bytes of a regular file; None if there is none. Raises OSError for anything else, also for links."""
    try:
        # A pipe of that name must not make us wait.
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
    Make *data* the content of *file*: a reader, or a crash, sees what was or what is. Raises Stale.

    An existing file keeps its mode; a new one gets *mode*, by default readable by its owner only.
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
            with suppress(OSError):  # it was not made, or is in use already
                folder.rmdir()
        raise
    for folder in missing:
        flush_folder(folder.parent)


def swap_file(new: Path, data: bytes, file: Path, was: bytes | None) -> None:
    """Move *new*, whose content is *data*, over *file*, whose content is *was*, and keep the old inode. Raises
    Stale."""
    if was is None:
        place_new(new, file)
    else:
        held = held_name(file, was, data)
        try:
            if hold_inode(file, held) and not (file_contents(held) == was and held.samefile(file)):
                raise Stale(f"{file} was saved just now")
            # An editor that saves by renaming can still lose in the microseconds between these two
            # lines; one that saves in place cannot.
            new.replace(file)
        except BaseException as e:
            held.unlink(missing_ok=True)
            if isinstance(e, FileNotFoundError):
                raise Stale(f"{file} was removed just now") from e
            raise
    flush_folder(file.parent)


def place_new(new: Path, file: Path) -> None:
    """Move *new* to *file*, where there must be none. Raises Stale if there is; then *new* stays."""
    try:
        os.link(new, file)  # a rename would overwrite
        new.unlink()
    except OSError as e:
        if file.exists():
            raise Stale(f"{file} was made just now") from e
        if e.errno not in NO_LINKS:
            raise
        new.rename(file)


def hold_inode(file: Path, held: Path) -> bool:
    """Give the inode of *file* a second name. False where the file system cannot: FAT, some mounts."""
    try:
        os.link(file, held)
    except OSError as e:
        if e.errno not in NO_LINKS:
            raise
        return False
    return True


def held_name(file: Path, was: bytes, new: bytes | None) -> Path:
    """Not ending in .md: OpenClaw's own memory search reads hidden files that do."""
    name = file.name.removesuffix(".md")
    if len(os.fsencode(name)) > 200:  # of the 255 that file systems allow; a late save goes to the inbox then
        name = ""
    return file.with_name(f".omg-{secrets.token_hex(4)}-{short_hash(was)}-{short_hash(new)}~{name}")


def short_hash(data: bytes | None) -> str:
    """A short hash that tells versions of a note apart; None (no file) has one too."""
    return "0" * 16 if data is None else digest(data)[:16]


def case_twin(file: Path) -> str | None:
    """A file in the same folder whose name differs only in case or in how accents are composed."""
    with suppress(FileNotFoundError, NotADirectoryError):
        for other in file.parent.iterdir():
            if other.name != file.name and folded_name(other.name) == folded_name(file.name):
                return other.name
    return None


def folded_name(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def flush_folder(folder: Path) -> None:
    """Flush the folder's entries to the disk, if its file system supports this."""
    with suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def read_if_changed(file: Path, seen: tuple[int, int] | None) -> tuple[bytes, tuple[int, int]] | None:
    """Bytes, and (inode, size) to compare the next time; None if there is no *file*, or it is still as *seen*."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return None
    if (found.st_ino, found.st_size) == seen:
        return None
    data = file.read_bytes()
    return data, (found.st_ino, len(data))


# --- Private files: replaced atomically, appended to durably. After a crash a file is the old one or the new one.


TEMPORARY = re.compile(r"\..+\.(\d+)\.[0-9a-f]{8}")  # of write_private: whose it is, and a token


_refused: set[Path] = set()  # temporary files that could not be removed; they may hold conversation text


def remove_refused() -> None:
    """Try again to remove the temporary files that could not be removed when their writing failed."""
    for tmp in list(_refused):
        with suppress(OSError):
            tmp.unlink(missing_ok=True)
            _refused.discard(tmp)


def write_new(file: Path, data: bytes, mode: int | None = None) -> os.stat_result:
    """
    Write a file that is not there yet, durably, by default readable by its owner alone; returns how it looks. Raises
    FileExistsError.
    """
    with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as f:
        if mode is not None:
            os.fchmod(f.fileno(), mode)
        f.write(data)
        f.flush()
        os.fsync(f.fileno())
        return os.fstat(f.fileno())


def write_private(file: Path, text: str) -> os.stat_result:
    """Replace *file* atomically and durably, readable by its owner alone; returns how it looks now."""
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
    """Add *lines*; returns how the file looks now. A line that a crash left torn is ended first, so that ours stay whole."""
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
SLACK = 1_000  # lines beyond one an entry before a file is made short again: at most some 350 kB


class Entries(Generic[V]):
    """
    Keys and their values, kept in *file*: a JSON line for each change, and for a key the last line counts. *file* of None
    keeps them in memory only.

    *parse* makes a key and a value of a line's JSON (None: the key is gone), *line* the JSON of both. A line that *parse*
    refuses was torn by a crash; it stays until the file is made short. Threads and processes may share a file.
    """

    def __init__(
        self,
        file: Path | None,
        parse: Callable[[Any], tuple[str, V | None]],
        line: Callable[[str, V | None], Any],
    ) -> None:
        self.file, self._parse, self._line = file, parse, line
        self.guard = threading.RLock()
        self._entries: dict[str, V] = {}  # the latest last
        self._seen: tuple[int, int] | None = None  # inode and size of the file as we know it
        self._lines = 0

    def all(self) -> dict[str, V]:
        """To be read only; it keeps changing. The file is read again if another process has written to it."""
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
        """Set these values, or with None remove the keys. Not durable: a crash may lose the lines."""
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
        """Remove the keys in *gone*, and every line that names them, also one that a crash left torn."""
        with self.guard:
            self._entries = {key: value for key, value in self.all().items() if not gone(key)}
            self.shorten()

    def shorten(self) -> None:
        """Rewrite the file with a line for each entry, if it has more."""
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
    """Set *key* as the last of *entries*; None removes it."""
    entries.pop(key, None)
    if value is not None:
        entries[key] = value


# --- Records what OMG wrote: for each path a hash of the bytes, and for a note the marks of its parts. Each write adds a line.
#
# In doubt, bytes count as a person's: after a lost or torn line OMG no longer rewrites that file.


@dataclass(frozen=True, slots=True)
class Record:
    """What we wrote to one path."""

    hash: str
    # "part=mark part=mark"; "" for what is no note
    parts: str = ""
    theirs: frozenset[str] = frozenset()  # the parts with a person's value, which OMG wrote back unchanged

    @property
    def marks(self) -> dict[str, str]:
        return dict(part.split("=", 1) for part in self.parts.split())

    @property
    def id(self) -> str:
        """The mark of the note's id; "" if unknown."""
        return self.marks.get("id", "")


def keys(record: Record | None) -> list[str]:
    return [key for key in (record.hash, record.id) if key] if record else []


def joined(marks: Mapping[str, str]) -> str:
    return " ".join(f"{part}={mark}" for part, mark in marks.items())


class Written:
    """
    Path → Record, in *file*. Reading changes nothing. Only the holder of the vault's lock writes; others see the change at
    their next read.
    """

    def __init__(self, file: Path | None) -> None:
        self._kept = Entries(file, read_line, written_line)
        self._paths: dict[str, dict[str, None]] = {}  # hash, or mark of an id → paths, the latest last
        self._indexed: object = None  # the records that `_paths` is of

    def __bool__(self) -> bool:
        return bool(self._kept.all())

    def get(self, path: str) -> Record | None:
        return self._kept.all().get(path)

    def find(self, key: str) -> Record | None:
        """The record with that hash, or the newest one of the note whose id has that mark."""
        with self._kept.guard:
            records = self._kept.all()
            if records is not self._indexed:
                self._indexed, self._paths = records, {}
                for path, record in records.items():
                    self._index(path, None, record)
            return next((records[path] for path in reversed(self._paths.get(key, {}))), None)

    def note(self, path: str, record: Record | None) -> None:
        """Record what *path* holds now; None: nothing that OMG wrote."""
        with self._kept.guard:
            if (before := self.get(path)) != record:
                self._index(path, before, record)  # first: the disk may be full, but the two agree
                self._kept.put({path: record})

    def compact(self) -> None:
        """Remove the records of paths that are gone."""
        self._kept.shorten()

    def _index(self, path: str, before: Record | None, record: Record | None) -> None:
        for key in keys(before):
            self._paths.get(key, {}).pop(path, None)
        for key in keys(record):
            self._paths.setdefault(key, {})[path] = None


def read_line(entry: Mapping[str, Any]) -> tuple[str, Record | None]:
    """Path and record. Raises KeyError or TypeError for a line that OMG did not write."""
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
