"""
Graph: everything that belongs to one identity.

    <home>/graphs/<slug>-<hash8>/
        identity.json      whose graph this is
        pending/           turns taken in, not yet observed
        archive/YYYY-MM.jsonl   messages observed, kept
        receipts/          the journal (journal.py)
        tombstones.jsonl   salted hashes of what was forgotten, so that no import or late reply brings it back
        written.jsonl      hashes of what we wrote, whole and in parts (vault/files.py)
        state.json         what is live in each session (state.py)
        uses.jsonl         how often notes were of use (state.py)
        given.jsonl        what recent prompts were given and why (state.py)
        damaged/           files or parts of files that could not be read (state.py)
        index.db           derived; may be deleted at any moment

Whoever changes the vault holds `lock()`, but never during a model call. worker/registry.py and journal.py notice a
person's deletions.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..dates.days import LAST_MS
from ..errors import BadInput, Locked, how_many
from ..identity import Identity
from ..index.index import Index
from ..message.turn import Message, Turn, message_to_json, turn_from_json, turn_to_json
from ..vault.files import read_if_changed
from ..vault.vault import Vault
from .state import (
    TEMPORARY,
    State,
    Uses,
    append_lines,
    copied_state,
    drop_oldest_sessions,
    file_look,
    flock,
    load_state,
    parsed_object,
    process_alive,
    remove_refused,
    set_aside_damaged,
    state_fields,
    write_private,
)


class Tombstones:
    """
    The file of tombstones: salted hashes of forgotten messages and of deleted notes, without any content.

    A line is {"node": hash | null, "sources": [hash…]}:

    - "node" is the hash of a note's id: a person deleted this note. OMG does not make the note again from the messages
      in "sources".
    - "node" is null: the messages in "sources" were forgotten.

    A line {"salt": …} holds for the lines below it. A file joined from two graphs has two salts.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self._seen: tuple[int, int] | None = None  # inode and size of the file when it was read
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
        """Return those of *ids* whose messages were forgotten."""
        self._read()
        gone: dict[str, set[str]] = {}
        for salt, node, sources in self._lines:
            if node is None:
                gone.setdefault(salt, set()).update(sources)
        return {i for i in ids if any(self._hash(i, salt) in of for salt, of in gone.items())}

    def gone(self, made: Mapping[str, Collection[str]]) -> set[str]:
        """
        Return the messages in *made* that were forgotten, or whose note a person deleted.

        *made*: message id → ids of the notes that cite the message now. If *made* names a deleted note, a person has
        restored the note. Then the deletion no longer counts.
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
        Whether a note must not be made, because a person deleted a note that was made from the same messages.

        *node*: the id of the new note. *sources*: the ids of the new note's messages. Returns True if a deleted note
        was made from all these messages, and one condition is met:

        - The deleted note has the id *node*.
        - No present note cites *sources* (*cited* returns False). Then the new note probably is the deleted note with a
          new name.
        """
        self._read()
        sources = list(sources)
        hashed = {salt: {self._hash(s, salt) for s in sources} for salt in {line[0] for line in self._lines}}
        for salt, dead, of in self._lines:
            if dead and sources and hashed[salt] <= of and (dead == self._hash(node, salt) or not cited()):
                return True
        return False

    def mend(self) -> list[bytes]:
        """Remove unreadable lines from the file, and return these lines. The caller holds the vault's lock."""
        lines = self.file.read_bytes().split(b"\n") if self.file.exists() else []
        bad = [line for line in lines if line and tombstone_entry(line) is None]
        if bad:
            kept = [line.decode() for line in lines if line and line not in bad]
            write_private(self.file, "".join(line + "\n" for line in kept))
        return bad

    def _hash(self, text: str, salt: str | None = None) -> str:
        return hashlib.sha256(f"{self._salt if salt is None else salt}:{text}".encode()).hexdigest()[:24]

    def _read(self) -> None:
        if (read := read_if_changed(self.file, self._seen)) is None:
            return
        salt, lines = "", []  # type: str, list[tuple[str, str | None, frozenset[str]]]
        # A line that a crash left torn may be skipped: no caller was told that it was written.
        for value in filter(None, map(tombstone_entry, read[0].split(b"\n"))):
            if "salt" in value:
                salt = value["salt"]
            else:
                lines.append((salt, value.get("node"), frozenset(value["sources"])))
        # `_seen` is set last: until then, another thread reads the file again.
        self._salt, self._lines, self._seen = salt, lines, read[1]


def tombstone_entry(line: bytes) -> dict[str, Any] | None:
    """Parse a line of tombstones.jsonl; None if the line cannot be read."""
    value = parsed_object(line) or {}
    if "salt" in value:
        return value if isinstance(value["salt"], str) else None
    sources, node = value.get("sources"), value.get("node")
    fits = isinstance(sources, list) and all(isinstance(s, str) for s in sources)
    return value if fits and (node is None or isinstance(node, str)) else None


# --- One file of `pending/`: a turn that was taken in and is not yet observed.
#
# The file's name holds a hash of the session and the number of tokens: waiting tokens are counted without reading files.


# Name of a pending file, and of the drop it comes from.
PENDING = re.compile(r"\d{1,15}-[\w-]{1,120}\.[0-9a-f]{8}\.\d{1,12}\.json", re.ASCII)
PENDING_NAME = re.compile(r"(\d{1,15})-[\w-]{1,120}", re.ASCII)


def session_mark(session: str) -> str:
    """Return a short hash of *session*, which is part of the names of its pending files."""
    return hashlib.sha256(session.encode()).hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class Pending:
    """A file of `pending/`, named `<ms>-<uuid>.<hash of the session>.<tokens>.json`."""

    file: Path

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def tokens(self) -> int:
        return int(self.file.name.split(".")[2])

    @property
    def session(self) -> str:
        """The `session_mark` of the turn's session."""
        return self.file.name.split(".")[1]

    @property
    def at_ms(self) -> int:
        return int(self.file.name.split("-", 1)[0])

    def turn(self) -> Turn:
        """
        Read the turn in the file. Raises FileNotFoundError; for a damaged file BadInput, which names the file.
        """
        return parsed_turn(self.file, file_look(self.file))


@lru_cache(maxsize=32)  # between intake and archive, a turn is read five times
def parsed_turn(file: Path, look: tuple[int, int, int]) -> Turn:
    """Read the turn in *file*, through a cache. *look* is the file's version (`file_look`)."""
    try:
        return turn_from_json(file.read_text(encoding="utf-8"))
    except (BadInput, UnicodeDecodeError) as e:
        raise BadInput(
            f"{file}: this turn is damaged ({e}); move the file away, so that OMG can observe the other turns"
        ) from e


GRAPH_MARK = "identity.json"  # a folder without it is no graph
REMOVED_GRAPH = ".gone-"  # begins the name of a graph's folder that is being removed


def kept_tombstones(folder: Path) -> Path:
    """Return the file that keeps the tombstones of the graph in *folder* after the graph is removed."""
    return folder.parents[1] / "forgotten" / f"{folder.name.rpartition('-')[2]}.jsonl"


def write_mark(folder: Path, who: Identity) -> None:
    """Write identity.json, which says whose graph *folder* is, unless the file exists."""
    if not (mark := folder / GRAPH_MARK).exists():
        write_private(mark, json.dumps(asdict(who)))


def marked_identity(mark: Path) -> Identity:
    """Read the identity from *mark*, a graph's identity.json. Raises OSError, ValueError."""
    value = parsed_object(mark.read_bytes()) or {}
    if not all(isinstance(value.get(name), str) for name in ("key", "scope", "agent")):
        raise ValueError("the file needs a key, a scope and an agent")
    return Identity(value["key"], value["scope"], value["agent"])


class Graph:
    def __init__(
        self, identity: Identity, folder: Path, vault: Vault, index: Index, zone: tzinfo = UTC
    ) -> None:
        self.identity, self.folder, self.vault, self.index, self.zone = identity, folder, vault, index, zone
        vault.names, index.said_in = index.names, folder / "archive"
        for name in ("pending", "archive", "receipts"):
            (folder / name).mkdir(parents=True, exist_ok=True, mode=0o700)
        self._inode = folder.stat().st_ino
        self.tombstones = Tombstones(folder / "tombstones.jsonl")
        # A graph that was removed and is made again gets its tombstones back. A graph that is just being removed still has them.
        if (kept := kept_tombstones(folder)).exists() and not self.tombstones.file.exists():
            kept.replace(self.tombstones.file)
        self.uses = Uses(folder / "uses.jsonl")
        # For a graph that will replace an old one (rebuild.py): the index of the old graph, and the notes that a person
        # made or changed there, which were copied here.
        self.former: Index | None = None
        self.carried: frozenset[str] = frozenset()
        self._keys: dict[str, frozenset[str]] = {}  # pending file -> the keys of its messages
        self._pending_keys: set[str] = set()  # the keys of all pending files
        self._counting = threading.Lock()
        self._remembering = threading.RLock()
        self._state, self._stamp = State(), (-1, -1, -1)  # as last read or written, and the file's version
        self._noted: list[Callable[[State], None]] = []  # changes that are not in the file yet
        self._fault = ""  # what is wrong with state.json
        self.notes_given = True  # whether the graph records what prompts were given

    def is_there(self) -> bool:
        """Whether the folder is still the one that was opened. False if the graph was since forgotten, or made again."""
        try:
            return self.folder.stat().st_ino == self._inode and (self.folder / GRAPH_MARK).exists()
        except FileNotFoundError:
            return False

    def remove_leftovers(self) -> None:
        """Remove temporary files of dead processes, because such files may hold conversation text."""
        remove_refused()
        for folder in (self.folder, *(self.folder / name for name in ("pending", "receipts"))):
            for file in folder.glob(".*"):
                if (named := TEMPORARY.fullmatch(file.name)) and not process_alive(int(named[1])):
                    file.unlink(missing_ok=True)

    def mend(self) -> None:
        """Set aside the unreadable parts of tombstones.jsonl and state.json. The caller holds the lock."""
        if bad := self.tombstones.mend():
            why = f"{how_many(len(bad), 'line')} cannot be read"
            mend = "they were part of the list of forgotten messages; if an import brings such messages back, forget them again"
            set_aside_damaged(self.folder, self.tombstones.file, why, mend, b"\n".join(bad) + b"\n")
        self.state()
        if self._fault:
            self.update(lambda state: None)

    def lock(self, timeout_s: float = 30.0) -> Any:
        """Lock the vault while a receipt, notes and the index are written. Never hold the lock during a model call."""
        return flock(self.folder / "lock", f"the vault of {self.identity.key}", timeout_s)

    # --- pending

    def pending(self) -> list[Pending]:
        """Return the pending files, oldest first."""
        found = sorted((self.folder / "pending").glob("[0-9]*-*.json"))
        return [Pending(p) for p in found if PENDING.fullmatch(p.name)]

    def intact(self) -> list[Pending]:
        """Return the readable pending files, oldest first. Unreadable files are set aside."""
        return [p for p in self.pending() if self.readable(p) is not None]

    def readable(self, pending: Pending) -> Turn | None:
        """Read the turn of a pending file; None if the file is gone (the turn was observed) or damaged (then set aside)."""
        try:
            return pending.turn()
        except FileNotFoundError:
            return None
        except BadInput as e:
            mend = "`omg import --openclaw` brings back what was said there"
            set_aside_damaged(self.folder, pending.file, str(e.__cause__ or e), mend)
            return None

    def put(self, name: str, turn: Turn) -> Pending:
        """
        Store *turn* as a pending file until it is observed. *name*, `<ms>-<uuid>`, names the file, so a second call changes
        nothing. Any other *name* is replaced by its hash.
        """
        found = PENDING_NAME.fullmatch(name)
        if not found or int(found[1]) >= LAST_MS:
            said_ms = max((m.timestamp for m in turn.messages), default=0)
            name = f"{said_ms:015d}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:16]}"
        tokens = sum(m.tokens for m in turn.messages)
        file = self.folder / "pending" / f"{name}.{session_mark(turn.session)}.{tokens}.json"
        write_private(file, turn_to_json(turn))
        return Pending(file)

    def unseen(self, messages: Iterable[Message]) -> list[Message]:
        """Return those of *messages* that are not archived, pending or forgotten, each once."""
        messages = list(messages)
        keys = {k for m in messages for k in (m.id, m.key)}
        # In this order, because another process may move messages from pending to the archive meanwhile.
        known = self.pending_keys(keys) | self.index.seen(keys) | self.tombstones.messages(keys)
        fresh = []
        for m in messages:
            if m.id not in known and m.key not in known:
                fresh.append(m)
                known |= {m.id, m.key}
        return fresh

    def is_cited(self, ids: list[str]) -> bool:
        """
        Whether a note of this graph was made from one of the messages *ids*.

        During a rebuild, a note of the graph before the rebuild counts as well.
        """
        return any(index.citing(ids) for index in (self.index, self.former) if index is not None)

    def pending_keys(self, among: Collection[str] | None = None) -> set[str]:
        """Return the ids and keys of all pending messages, or only those that are in *among*."""
        # Only files added or removed since the last call are read: during an import thousands of files wait.
        with self._counting:
            with os.scandir(self.folder / "pending") as entries:
                names = {entry.name for entry in entries if PENDING.fullmatch(entry.name)}
            gone = self._keys.keys() - names
            for name in gone:
                del self._keys[name]
            for name in names - self._keys.keys():
                if turn := self.readable(Pending(self.folder / "pending" / name)):
                    self._keys[name] = frozenset(k for m in turn.messages for k in (m.id, m.key))
                    self._pending_keys |= self._keys[name]
            if gone:
                self._pending_keys = set().union(*self._keys.values())
            return set(self._pending_keys) if among is None else self._pending_keys.intersection(among)

    # --- archive

    def archive(self, names: Iterable[str]) -> None:
        """Move the messages of pending files to the archive and the index. A second call after a crash adds nothing twice."""
        files = [self.folder / "pending" / name for name in names]
        files = [f for f in files if f.exists()]
        self.index.archive(self.folder / "archive")
        by_month: dict[str, list[str]] = {}
        for file in files:
            turn = Pending(file).turn()
            seen = self.index.seen({m.id for m in turn.messages})
            for m in turn.messages:
                if m.id not in seen:
                    month = datetime.fromtimestamp(m.timestamp / 1000, UTC).strftime("%Y-%m")
                    by_month.setdefault(month, []).append(message_to_json(m, turn.session))
        for month, lines in by_month.items():
            append_lines(self.folder / "archive" / f"{month}.jsonl", lines)
        self.index.archive(self.folder / "archive")
        for file in files:
            file.unlink()

    # --- state

    def state(self) -> State:
        """Return the current state. Do not change the result; change the state by `update` or `note`."""
        file = self.folder / "state.json"
        with self._remembering:
            if self._stamp != (stamp := file_look(file)):
                self._state, self._fault = load_state(file)
                self._stamp = stamp
                for change in self._noted:
                    change(self._state)
            return self._state

    def update(self, change: Callable[[State], None]) -> State:
        """Let *change* alter the state, write state.json, and return the new state. The lock is held for milliseconds."""
        file = self.folder / "state.json"
        with flock(self.folder / "state.lock", f"the state of {self.identity.key}"):
            with self._remembering:
                state, noted, fault = copied_state(self.state()), len(self._noted), self._fault
            if fault:
                mend = "OMG kept the readable part; the next conversations write the lost part anew"
                set_aside_damaged(self.folder, file, fault, mend)
                self._fault = ""
            change(state)
            drop_oldest_sessions(state)
            write_private(file, json.dumps(state, default=state_fields, ensure_ascii=False))
            with self._remembering:
                del self._noted[:noted]
                for later in self._noted:
                    later(state)
                self._state, self._stamp = state, file_look(file)
        return state

    def note(self, change: Callable[[State], None]) -> None:
        """Let *change* alter the state, but write only at the next `update` or `flush`. A crash may lose the change."""
        with self._remembering:
            state = copied_state(self.state())
            change(state)
            drop_oldest_sessions(state)
            self._state = state
            self._noted.append(change)

    def flush(self) -> None:
        """Write the changes of `note` to state.json."""
        if self._noted and (self.folder / "pending").is_dir():  # otherwise the whole graph was forgotten
            self.update(lambda state: None)

    def close(self) -> None:
        with suppress(OSError, Locked):
            self.flush()
        self.index.close()

    def __del__(self) -> None:
        # The last user closes the graph: a home drops graphs unused for long, while other code may still use them.
        with suppress(Exception):
            self.close()
