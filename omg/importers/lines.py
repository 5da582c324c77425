"""Numbered lines of a text file, compressed or not, and JSON objects out of them; what cannot be read is reported."""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import BadInput

JsonObject = dict[str, Any]
ZSTD = b"\x28\xb5\x2f\xfd"
SQLITE = b"SQLite format 3\0"
NOT_TEXT = re.compile("[\udc80-\udcff]")
CONVERT = "is not UTF-8; convert the file, as with `iconv -f CP1252 -t UTF-8`, and import it again"


@dataclass(slots=True)
class ReadingProgress:
    """How far a reading is, in bytes of the files, and what it could not read, as "file:line: why"."""

    total: int = 0
    done: int = 0
    skipped: list[str] = field(default_factory=list)
    unsaid: int = 0  # lines that are instructions to a model, and nobody's words


def numbered_lines(path: Path, reading: ReadingProgress | None = None) -> Iterator[tuple[int, str]]:
    """
    Numbered lines, out of zstd if need be, while *reading* counts. Raises BadInput for broken zstd.

    Bytes that are no text come as the lower surrogates that `NOT_TEXT` finds.
    """
    before = reading.done if reading else 0
    with path.open("rb") as raw:
        start = raw.read(len(ZSTD))
        packed = start == ZSTD
        raw.seek(0)
        plain: Any = raw
        if packed:
            import zstandard

            plain = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
        try:
            with io.TextIOWrapper(plain, encoding_of(start), "surrogateescape") as text:
                for number, line in enumerate(text, 1):
                    if reading:
                        reading.done = before + raw.tell()
                    yield number, line
        except UnicodeDecodeError as e:  # of UTF-16, cut off in the middle of a character
            raise BadInput(f"{path}: is damaged: {e}") from e
        except Exception as e:
            if type(e).__name__ != "ZstdError":  # zstandard is imported only where it is needed
                raise
            raise BadInput(f"{path}: broken zstd: {e}") from e
    if reading:
        reading.done = before + path.stat().st_size


def encoding_of(start: bytes) -> str:
    """How a file that begins like this is encoded; Windows writes UTF-16, with its mark or without."""
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if b"\0" in start:
        return "utf-16-le" if start[1:2] == b"\0" else "utf-16-be"
    return "utf-8-sig"


def parsed_object(line: str) -> JsonObject | None:
    """The object on a line, or None."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def json_objects(path: Path, reading: ReadingProgress) -> Iterator[tuple[int, JsonObject]]:
    """The objects of a JSONL file; what is none is reported."""
    try:
        for number, line in numbered_lines(path, reading):
            if NOT_TEXT.search(line):
                reading.skipped.append(f"{path}:{number}: {CONVERT}")
            elif value := parsed_object(line):
                yield number, value
            elif line.strip():
                reading.skipped.append(f"{path}:{number}: no JSON object")
    except BadInput as e:
        reading.skipped.append(str(e))
