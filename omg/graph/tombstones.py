"""
tombstones.jsonl: salted hashes of what was forgotten, so that no import or late reply brings it back.

The file holds no content and no readable id. Deletions are noticed in worker/registry.py and journal.py.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from .state import append_lines, write_private


class Tombstones:
    """
    What was forgotten: salted hashes of message ids, and of the note's id; no content.

    A line is {"node": hash | null, "sources": [hash…]}. With a node, a person deleted that note: it does not
    come back from those messages. Without, the messages themselves were forgotten. {"salt": …} holds for the
    lines that follow it: a file to which a merged graph's was added has several.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._size = -1
        self._lines: list[tuple[str, str | None, frozenset[str]]] = []  # salt, node, sources
        self._salt = ""

    def add(self, sources: Iterable[str], node: str | None = None) -> None:
        self._read()
        if not self._salt:
            self._salt = secrets.token_hex(16)
            append_lines(self.file, [json.dumps({"salt": self._salt})])
        line = {"node": node and self._hash(node), "sources": sorted(self._hash(s) for s in sources if s)}
        append_lines(self.file, [json.dumps(line)])

    def messages(self, ids: Iterable[str]) -> set[str]:
        """Which of *ids* were forgotten as messages."""
        self._read()
        gone: dict[str, set[str]] = {}
        for salt, node, sources in self._lines:
            if node is None:
                gone.setdefault(salt, set()).update(sources)
        return {i for i in ids if any(self._hash(i, salt) in of for salt, of in gone.items())}

    def gone(self, made: Mapping[str, Collection[str]]) -> set[str]:
        """
        The messages that were forgotten, or that a deleted note was made from. *made*: message → ids of the notes
        made from it now; a note that was deleted and is back does not count as deleted.
        """
        self._read()
        found: set[str] = set()
        for salt in {line[0] for line in self._lines}:
            asked = {self._hash(message, salt): message for message in made}
            there = {self._hash(id, salt) for ids in made.values() for id in ids}
            for of, node, sources in self._lines:
                if of == salt and node not in there:
                    found.update(asked[hashed] for hashed in sources & asked.keys())
        return found

    def blocks(self, node: str, sources: Iterable[str], cited: Callable[[], bool]) -> bool:
        """
        Whether a note made from *sources* was deleted before.

        Several notes may come from one message, so the note's id decides. Because a deleted note could come back
        under another name, it also counts whether a living note still cites these messages (*cited*).
        """
        self._read()
        sources = list(sources)
        hashed = {salt: {self._hash(s, salt) for s in sources} for salt in {line[0] for line in self._lines}}
        for salt, dead, of in self._lines:
            if dead and sources and hashed[salt] <= of and (dead == self._hash(node, salt) or not cited()):
                return True
        return False

    def mend(self) -> list[bytes]:
        """Take out the lines that cannot be read; returns them. The caller holds the vault's lock."""
        lines = self.file.read_bytes().split(b"\n") if self.file.exists() else []
        bad = [line for line in lines if line and tombstone_entry(line) is None]
        if bad:
            kept = [line.decode() for line in lines if line and line not in bad]
            write_private(self.file, "".join(line + "\n" for line in kept))
        return bad

    def _hash(self, text: str, salt: str | None = None) -> str:
        return hashlib.sha256(f"{self._salt if salt is None else salt}:{text}".encode()).hexdigest()[:24]

    def _read(self) -> None:
        try:
            size = self.file.stat().st_size
        except FileNotFoundError:
            return
        if size == self._size:
            return
        salt, lines = "", []  # type: str, list[tuple[str, str | None, frozenset[str]]]
        for line in self.file.read_bytes().split(b"\n"):
            value = tombstone_entry(line)
            if value is None:
                continue  # torn by a crash: the line was not yet a promise
            if "salt" in value:
                salt = value["salt"]
            else:
                lines.append((salt, value.get("node"), frozenset(value["sources"])))
        # In this order: another thread never takes the half for the whole.
        self._salt, self._lines, self._size = salt, lines, size


def tombstone_entry(line: bytes) -> dict[str, Any] | None:
    """A line of tombstones.jsonl; None if it is none."""
    try:
        value = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    if "salt" in value:
        return value if isinstance(value["salt"], str) else None
    sources, node = value.get("sources"), value.get("node")
    fits = isinstance(sources, list) and all(isinstance(s, str) for s in sources)
    return value if fits and (node is None or isinstance(node, str)) else None
