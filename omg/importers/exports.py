"""Opens exports (a zip, a zip in a zip, a folder, a JSON file), and reads their items, branches and quotations.

The limits here keep a damaged or hostile archive from filling the memory or the disk. Files that macOS adds
(`__MACOSX`, `._*`) are ignored."""

from __future__ import annotations

import codecs
import json
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any

from ..errors import BadInput
from ..inbox import inbox_entry
from ..message.envelope import cut_middle
from ..text.words import without_list_mark
from .drops import JsonObject, ReadingProgress, Session, key_of, text_part

ZIP = b"PK\x03\x04"
NESTED = 2  # levels of zips in zips
MOST_MEMBERS = 200_000
# Chats pack to a tenth of their size, the most repetitive chats that we made to a sixtieth, and a zip bomb to a thousandth.
MOST_TIMES, ALWAYS_BYTES = 250, 50_000_000
ITEM_CHARS = 256_000_000  # of one conversation; the longest ones reported have a twentieth of this
CHUNK = 1 << 20
LOOKED_AT = 10  # first items of a file, which tell what the file is


@dataclass(frozen=True, slots=True)
class Member:
    """A file of an export. *packed*: its size on the disk, in bytes."""

    name: str
    size: int
    packed: int
    at_ms: int  # when it was written
    open: Callable[[], IO[bytes]]


@contextmanager
def members_of(path: Path) -> Iterator[list[Member]]:
    """List the files of the export at *path*; they can be opened inside the `with` block. Raises BadInput."""
    with ExitStack() as opened:
        if path.is_dir():
            files = [f for f in sorted(path.rglob("*")) if f.is_file() and not f.is_symlink()]
            yield [of_file(f, f.relative_to(path).as_posix()) for f in files if not is_macos(f.name)]
        elif is_zip(path):
            yield list(unzipped(path, str(path), opened))
        else:
            yield [of_file(path, path.name)]


def is_zip(file: Path) -> bool:
    """Whether *file* begins like a zip. `zipfile.is_zipfile` reads the end, which a zip that was cut short has lost."""
    with file.open("rb") as opened:
        return opened.read(len(ZIP)) == ZIP


def of_file(file: Path, name: str) -> Member:
    look = file.stat()
    return Member(name, look.st_size, look.st_size, round(look.st_mtime * 1000), lambda: file.open("rb"))


def is_macos(name: str) -> bool:
    return name.startswith("__MACOSX/") or name.rpartition("/")[2].startswith("._")


def unzipped(source: Path | IO[bytes], where: str, opened: ExitStack, depth: int = 0) -> Iterator[Member]:
    """Yield the files in the zip *source*, and in zips within it."""
    try:
        archive = opened.enter_context(zipfile.ZipFile(source))
    except (zipfile.BadZipFile, OSError) as e:
        mend = "unpack the export, and import the folder" if depth else "download the export again"
        raise BadInput(f"{where}: a broken zip ({e}); {mend}") from e
    infos = [i for i in archive.infolist() if not i.is_dir() and not is_macos(i.filename)]
    if len(infos) > MOST_MEMBERS:
        raise BadInput(f"{where}: {len(infos):,} files in one zip; unpack it, and import the folder")
    for info in infos:
        if info.flag_bits & 1:
            raise BadInput(f"{where}: {info.filename} is encrypted; unpack it, and import the folder")
        if info.file_size > max(ALWAYS_BYTES, MOST_TIMES * info.compress_size):
            raise BadInput(
                f"{where}: {info.filename} would grow from {info.compress_size:,} to {info.file_size:,} bytes, as in a zip"
                " bomb; nothing of it was read. If you trust it, unpack it, and import the folder"
            )
        if info.filename.lower().endswith(".zip"):
            if depth >= NESTED:
                raise BadInput(f"{where}: zips in zips, {depth + 1} deep; unpack it, and import the folder")
            # Copied to the disk, because a zip is read from its end.
            inner = opened.enter_context(tempfile.TemporaryFile())  # noqa: SIM115  # closed by `opened`
            with archive.open(info) as packed:
                while piece := packed.read(CHUNK):
                    inner.write(piece)
            yield from unzipped(inner, f"{where}: {info.filename}", opened, depth + 1)
            continue
        written = datetime(*info.date_time, tzinfo=UTC) if info.date_time[0] > 1980 else datetime.now(UTC)
        at_ms = round(written.timestamp() * 1000)
        yield Member(info.filename, info.file_size, info.compress_size, at_ms, partial(archive.open, info))


def items_of(member: Member, read: Callable[[int], object] = lambda n: None) -> Iterator[Any]:
    """
    Yield the items of the JSON array in *member*, one at a time. If the file holds a single JSON value, that value is
    yielded.

    *read* is called after each read, with the number of bytes just read. If the file is cut short, damaged or not JSON,
    the items before the fault are yielded, and then BadInput is raised.
    """
    decoder, scan = codecs.getincrementaldecoder("utf-8")("replace"), json.JSONDecoder(strict=False)
    with member.open() as file:
        buffer, at, ended, number = "", 0, False, 0

        def more(least: int) -> bool:
            nonlocal buffer, at, ended
            if ended:
                return False
            try:
                piece = file.read(max(CHUNK, least))
            except (zipfile.BadZipFile, EOFError, OSError) as e:
                raise BadInput(f"{member.name}: damaged after {number} items ({e}); download it again") from e
            ended = not piece
            buffer, at = buffer[at:] + decoder.decode(piece, ended), 0
            read(len(piece))
            return True

        def next_char() -> str:
            nonlocal at
            while True:
                while at < len(buffer) and buffer[at] in " \t\r\n,\ufeff":
                    at += 1
                if at < len(buffer) or not more(CHUNK):
                    return buffer[at : at + 1]

        array = next_char() == "["
        at += array
        while (char := next_char()) and char != "]":
            while True:
                try:
                    item, at = scan.raw_decode(buffer, at)
                    break
                except (ValueError, RecursionError) as e:
                    left = len(buffer) - at
                    if isinstance(e, RecursionError) or left > ITEM_CHARS or not more(left):
                        raise BadInput(
                            f"{member.name}: not JSON after {number} items; it may be cut short: download the export again"
                        ) from e
            number += 1
            yield item
            if not array:
                return
        if array and char != "]":
            raise BadInput(f"{member.name}: cut short after {number} items; download the export again")


def first_items(member: Member) -> Iterator[JsonObject]:
    """Yield the JSON objects among the first items of *member*, up to the first damaged item."""
    with suppress(BadInput):
        yield from (item for item in islice(items_of(member), LOOKED_AT) if isinstance(item, dict))


def service_in(member: Member) -> str:
    return next(filter(None, map(service_of, first_items(member))), "")


def service_of(item: JsonObject) -> str:
    """The service whose export contains the JSON *item*; "" if it is not known."""
    if "mapping" in item and ("current_node" in item or "create_time" in item):
        return "ChatGPT"
    if "chat_messages" in item or {"account_uuid", "conversations_memory"} <= item.keys():
        return "Claude.ai"
    if {"uuid", "name", "prompt_template"} <= item.keys():
        return "Claude.ai"
    products = item.get("products")
    if "header" in item and "time" in item and isinstance(products, list):
        named = f"{item['header']} {products}".lower()
        return "Gemini" if "gemini" in named or "bard" in named else ""
    return ""


def services_in(members: list[Member]) -> dict[str, list[Member]]:
    """Service → its JSON files among *members*."""
    found: dict[str, list[Member]] = {}
    for member in members:
        if member.name.lower().endswith(".json") and (service := service_in(member)):
            found.setdefault(service, []).append(member)
    return found


def is_export(path: Path) -> bool:
    """Whether the folder or JSON file *path* is an unpacked export. A folder that only holds zips is no export."""
    if path.is_file():
        return bool(service_in(of_file(path, path.name)))
    files = [*path.glob("*.json"), *path.glob("*/*.json"), *path.glob("*/*/*.json")]
    return any(service_in(of_file(f, f.name)) for f in files if not is_macos(f.name))


# --- chats


MATERIAL_CHARS = 4_000  # most characters of an attachment

Chat = tuple[Session, list[JsonObject]]  # a session with its messages as entries


@dataclass(frozen=True, slots=True)
class ItemReading:
    """Reads the items of an export's members and reports what cannot be read."""

    path: Path
    reading: ReadingProgress

    def items(self, member: Member) -> Iterator[JsonObject]:
        """Yield the JSON objects in *member*, up to its end or to the first damage."""
        before, read = self.reading.here, 0

        def advance(n: int) -> None:
            nonlocal read
            read += n
            self.reading.here = before + member.packed * min(read, member.size) // max(member.size, 1)

        try:
            for item in items_of(member, advance):
                if isinstance(item, dict):
                    yield item
                else:
                    self.skip(f"{member.name}: an item that is no JSON object")
        except BadInput as e:
            self.skip(str(e))

    def skip(self, why: str) -> None:
        self.reading.skipped.append(f"{self.path}: {why}")

    def leave_out(self, what: str, count: int = 1) -> None:
        if count:
            self.reading.left_out[what] += count


def session_of_chat(service: str, id: str) -> Session:
    label = f"{service.partition('.')[0].lower()}-{id}"
    return Session(key_of(label), label, "main", "", service)


def quoted(name: str, text: str) -> JsonObject:
    """Make the text of an attachment a quotation, because it is not the user's own words."""
    lines = cut_middle(text.strip(), MATERIAL_CHARS).splitlines()
    return text_part("\n".join(["", f"[file: {name}]", *(f"> {line}" for line in lines)]))


def claims(service: str, lines: Mapping[str, int], what: str = "memory") -> Iterator[Chat]:
    """
    Yield a chat in which an assistant states its memory, a message for each line.

    *service*: the assistant's name. *lines*: text → time in ms. Yields nothing if *lines* has no text.
    """
    entries = [
        inbox_entry("assistant", f"{service} {what}", text, at_ms + n, of=f"{service}:")
        for n, (line, at_ms) in enumerate(lines.items())
        if (text := without_list_mark(line.strip()))
    ]
    if entries:
        yield session_of_chat(service, what), entries


def branch_to(leaf: object, parents: Mapping[str, object], at: Mapping[str, float]) -> list[str]:
    """
    Return the ids from the root to *leaf*. *parents*: id → id of its parent. *at*: id → time.

    If *leaf* is unknown, the branch ends at the latest id that is not a parent. If every id is a parent, the branch
    ends at the latest id. If the parents form a cycle, no id is repeated.
    """
    if not isinstance(leaf, str) or leaf not in parents:
        above = set(map(str, parents.values()))
        leaf = max([id for id in parents if id not in above] or parents, key=lambda id: at.get(id, 0))
    found: dict[str, None] = {}
    while isinstance(leaf, str) and leaf in parents and leaf not in found:
        found[leaf] = None
        leaf = parents[leaf]
    return [*reversed(found)]
