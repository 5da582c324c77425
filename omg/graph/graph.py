"""
Graph: everything that belongs to one identity.

    <home>/graphs/<slug>-<hash8>/
        identity.json      whose graph this is
        pending/           turns taken in, not yet observed
        archive/YYYY-MM.jsonl   messages observed, kept
        receipts/          the journal (journal.py)
        tombstones.jsonl   what was forgotten, as salted hashes (tombstones.py)
        written.jsonl      hashes of what we wrote, whole and in parts (vault/files.py)
        state.json         what is live in each session (state.py)
        uses.jsonl         how often notes were of use (state.py)
        damaged/           what of these could not be read (state.py)
        index.db           derived; may be deleted at any moment

Every change of the vault holds `lock()`; nobody holds it during a model call.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..dates.days import LAST_MS
from ..errors import BadInput, Locked
from ..identity import Identity
from ..index.index import Index
from ..message.turn import Message, Turn, message_to_json, turn_from_json, turn_to_json
from ..plural import how_many
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
    former_uses,
    load_state,
    process_alive,
    remove_refused,
    set_aside_damaged,
    state_fields,
    write_private,
)
from .tombstones import Tombstones

# --- One file of `pending/`: a turn that was taken in and is not yet observed.
#
# Its name holds a hash of the session and the number of tokens, so that how much is waiting is known without reading any
# file.


# Of a pending file, and of the drop it comes from.
PENDING = re.compile(r"\d{1,15}-[\w-]{1,120}\.[0-9a-f]{8}\.\d{1,12}\.json", re.ASCII)
PENDING_NAME = re.compile(r"(\d{1,15})-[\w-]{1,120}", re.ASCII)


def session_mark(session: str) -> str:
    """A short hash: files of one session share it."""
    return hashlib.sha256(session.encode()).hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class Pending:
    """One file of `pending/`: `<ms>-<uuid>.<hash of the session>.<tokens>.json`."""

    file: Path

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def tokens(self) -> int:
        return int(self.file.name.split(".")[2])

    @property
    def session(self) -> str:
        """Its `session_mark`."""
        return self.file.name.split(".")[1]

    @property
    def at_ms(self) -> int:
        return int(self.file.name.split("-", 1)[0])

    def turn(self) -> Turn:
        """The turn as the file has it now. Raises FileNotFoundError, or BadInput, naming the file, if it is
        damaged."""
        found = self.file.stat()
        return parsed_turn(self.file, (found.st_ino, found.st_mtime_ns, found.st_size))


@lru_cache(maxsize=32)  # from intake to archive a turn is asked for five times
def parsed_turn(file: Path, look: tuple[int, int, int]) -> Turn:
    """The turn in *file*, cached; *look* identifies the version of the file, which is always replaced whole."""
    try:
        return turn_from_json(file.read_text(encoding="utf-8"))
    except (BadInput, UnicodeDecodeError) as e:
        raise BadInput(f"{file}: is damaged ({e}); move it away, and the other turns go on") from e


GRAPH_MARK = "identity.json"  # a folder without it is no graph
REMOVED_GRAPH = ".gone-"  # begins the name of a graph's folder that is being removed


def kept_tombstones(folder: Path) -> Path:
    """The tombstones of a graph that was removed from *folder*; their file name is the hash of its key."""
    return folder.parents[1] / "forgotten" / f"{folder.name.rpartition('-')[2]}.jsonl"


def write_mark(folder: Path, who: Identity) -> None:
    """Write into *folder* whose graph it is, unless it is written there already."""
    if not (mark := folder / GRAPH_MARK).exists():
        write_private(mark, json.dumps(asdict(who)))


def marked_identity(mark: Path) -> Identity:
    """The identity that *mark*, a graph's identity.json, names. Raises OSError, ValueError."""
    value = json.loads(mark.read_text(encoding="utf-8"))
    fields = [value.get(f) for f in ("key", "scope", "agent")] if isinstance(value, dict) else [None]
    if not all(isinstance(field, str) for field in fields):
        raise ValueError("it needs a key, a scope and an agent")
    return Identity(*fields)


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
        # It was removed once, and is begun anew; while it is being removed, its own are the whole.
        if (kept := kept_tombstones(folder)).exists() and not self.tombstones.file.exists():
            kept.replace(self.tombstones.file)
        self.uses = Uses(folder / "uses.jsonl")
        if not self.uses.file.exists():
            self.uses.adopt(former_uses(folder / "state.json"))
        # Of the graph that this one is made to take the place of: its index, and the notes that a person made or
        # changed, which are here already. Of one message several notes may come.
        self.former: Index | None = None
        self.carried: frozenset[str] = frozenset()
        self._keys: dict[str, frozenset[str]] = {}  # pending file -> the keys of its messages
        self._remembering = threading.RLock()
        self._state, self._stamp = State(), (-1, -1, -1)  # as last read or written, and the file's look then
        self._noted: list[Callable[[State], None]] = []  # changes that are in no file yet
        self._fault = ""  # what is wrong with state.json

    def is_there(self) -> bool:
        """Whether its folder is still the one that was opened, and was not forgotten and made again since."""
        try:
            return self.folder.stat().st_ino == self._inode and (self.folder / GRAPH_MARK).exists()
        except FileNotFoundError:
            return False

    def remove_leftovers(self) -> None:
        """Remove temporary files of writers that died, because they may hold conversation text."""
        remove_refused()
        for folder in (self.folder, *(self.folder / name for name in ("pending", "receipts"))):
            for file in folder.glob(".*"):
                if (named := TEMPORARY.fullmatch(file.name)) and not process_alive(int(named[1])):
                    file.unlink(missing_ok=True)

    def mend(self) -> None:
        """
        Set aside unreadable files that cannot be made again from others. The caller holds the lock.

        A pending file with a foreign name, as earlier versions could leave, is renamed.
        """
        for file in sorted((self.folder / "pending").glob("[!.]*.json")):
            if not PENDING.fullmatch(file.name) and (turn := self.readable(Pending(file))) is not None:
                self.put(file.stem, turn)
                file.unlink()
        if bad := self.tombstones.mend():
            why, lines = (
                f"{how_many(len(bad), 'line')} cannot be read",
                b"".join(line + b"\n" for line in bad),
            )
            mend = "what they forgot may come back by an import: forget it again"
            set_aside_damaged(self.folder, self.tombstones.file, why, mend, lines)
        self.state()
        if self._fault:
            self.update(lambda state: None)

    def lock(self, timeout_s: float = 30.0) -> Any:
        """Hold the vault: receipt → write → sync. Never across a model call."""
        return flock(self.folder / "lock", f"the vault of {self.identity.key}", timeout_s)

    # --- pending

    def pending(self) -> list[Pending]:
        """Oldest first."""
        found = sorted((self.folder / "pending").glob("[0-9]*-*.json"))
        return [Pending(p) for p in found if PENDING.fullmatch(p.name)]

    def intact(self) -> list[Pending]:
        """`pending`, less what cannot be read: that is set aside."""
        return [p for p in self.pending() if self.readable(p) is not None]

    def readable(self, pending: Pending) -> Turn | None:
        """Its turn; None if it is observed meanwhile, or damaged: then it is set aside."""
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
        Keep *turn* until it is observed. *name* (`<ms>-<uuid>`, else one is made of it) decides the file, so a
        repeat changes nothing.
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
        """The messages that are neither archived, pending, nor forgotten; each once."""
        messages = list(messages)
        keys = {k for m in messages for k in (m.id, m.key)}
        # In the order in which they may be moved meanwhile.
        known = self.pending_keys() | self.index.seen(keys) | self.tombstones.messages(keys)
        fresh = []
        for m in messages:
            if m.id not in known and m.key not in known:
                fresh.append(m)
                known |= {m.id, m.key}
        return fresh

    def is_cited(self, ids: list[str]) -> bool:
        """Whether a note was made from one of these messages, here or in the graph that this one will replace."""
        return any(index.citing(ids) for index in (self.index, self.former) if index is not None)

    def pending_keys(self) -> set[str]:
        """Ids and keys of the messages that wait to be observed."""
        keys: dict[str, frozenset[str]] = {}
        for p in self.pending():
            if p.name in self._keys:
                keys[p.name] = self._keys[p.name]
            elif turn := self.readable(p):
                keys[p.name] = frozenset(k for m in turn.messages for k in (m.id, m.key))
        self._keys = keys
        return set().union(*keys.values())

    # --- archive

    def archive(self, names: Iterable[str]) -> None:
        """Move pending files to the archive, then into the index. Repeating it after a crash adds nothing."""
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
        """The current state, to be read only; change it by `update` or `note`."""
        file = self.folder / "state.json"
        with self._remembering:
            if self._stamp != (stamp := file_look(file)):
                self._state, self._fault = load_state(file)
                self._stamp = stamp
                for change in self._noted:
                    change(self._state)
            return self._state

    def update(self, change: Callable[[State], None]) -> State:
        """Let *change* alter the state and write it to state.json; under its own lock, held for milliseconds."""
        file = self.folder / "state.json"
        with flock(self.folder / "state.lock", f"the state of {self.identity.key}"):
            with self._remembering:
                state, noted, fault = copied_state(self.state()), len(self._noted), self._fault
            if fault:
                mend = "what could be read of it is kept; the rest comes back with the next conversations"
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
        """Like `update`, but written only with the next one or by `flush`: for changes that a crash may lose."""
        with self._remembering:
            state = copied_state(self.state())
            change(state)
            drop_oldest_sessions(state)
            self._state = state
            self._noted.append(change)

    def flush(self) -> None:
        """Write the changes that `note` made."""
        if self._noted and (self.folder / "pending").is_dir():  # else the graph was forgotten whole
            self.update(lambda state: None)

    def close(self) -> None:
        with suppress(OSError, Locked):
            self.flush()
        self.index.close()

    def __del__(self) -> None:
        # Whoever used it last closes it: a home lets go of what it has not used for long, and others may be at it still.
        with suppress(Exception):
            self.close()
