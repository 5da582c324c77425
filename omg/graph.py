"""
All that belongs to one identity: its vault, its index, and what cannot be derived again.

    <home>/graphs/<slug>-<hash8>/
        identity.json      whose graph this is
        pending/           turns taken in, not yet observed; a file's name carries its tokens, so that
                           how much is waiting is known without reading any
        archive/YYYY-MM.jsonl   messages observed, kept
        receipts/          the journal (receipt.py)
        tombstones.jsonl   what was forgotten, as salted hashes
        written.jsonl      hashes of what we wrote, whole and in parts (vault.py)
        state.json         session hints, activation snapshots: of the SESSIONS_KEPT that were last live
        uses.jsonl         how often notes were of use (uses.py)
        damaged/           what of these could not be read (damaged.py)
        index.db           derived; may be deleted at any moment

Not here: deciding anything. One rule: whoever changes the vault holds `lock()`, and nobody holds it
while a model is asked.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any

from . import damaged
from .dates import LAST_MS
from .errors import BadInput, Locked
from .identity import Identity
from .index import Index
from .turn import Message, Turn, from_json, message_to_json, to_json
from .uses import Uses
from .vault import Vault

SESSIONS_KEPT = 100  # of one identity; one that comes back later is activated anew, and has lost nothing else
# Of a pending file, and of the drop it comes from.
PENDING = re.compile(r"\d{1,15}-[\w-]{1,120}\.[0-9a-f]{8}\.\d{1,12}\.json", re.ASCII)
NAMED = re.compile(r"(\d{1,15})-[\w-]{1,120}", re.ASCII)

TEMPORARY = re.compile(r"\..+\.(\d+)\.[0-9a-f]{8}")  # of write_private: whose it is, and a token


@dataclass(slots=True)
class SessionState:
    """What is live in one session. Times in ms since the epoch; 0 = never."""

    task: str = ""  # continuation hints, from the last observation that had any
    state: str = ""
    next: str = ""
    at_ms: int = 0  # when what the hints say was said
    system: str = ""  # the `system` slice as served until the next activation
    activated_ms: int = 0
    reason: str = ""
    epoch: int = -1  # State.epoch when it was rendered
    mocs: list[str] = field(default_factory=list)  # the two on show
    falls: dict[str, int] = field(default_factory=dict)  # MOC -> entry points since the last activation
    model: str = ""
    last_ms: int = 0  # the last turn seen
    cut: str = ""  # what last cut its context, "compaction" or "reset",
    cut_ms: int = 0  # and when
    window: int = 0  # tokens of turns taken in since the last activation


@dataclass(slots=True)
class State:
    sessions: dict[str, SessionState] = field(default_factory=dict)
    epoch: int = 0  # grows when a person edits, forgets, undoes: every `system` slice is stale then
    observed_ms: int = 0  # when an observation was last completed
    quiet_ms: int = 0  # when one was that ran because the conversation rested
    urgent_ms: int = 0  # when a compaction or reset last asked for everything to be taken in
    failures: int = 0  # in a row
    failed_ms: int = 0
    error: str = ""
    reflected_ms: int = 0
    changed_tokens: int = 0  # of nodes written since the last reflection
    by_hand: dict[str, int] = field(
        default_factory=dict
    )  # inbox note that a person wrote -> its mtime then, ns


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
        """A short hash: files of one session share it."""
        return self.file.name.split(".")[1]

    @property
    def at_ms(self) -> int:
        return int(self.file.name.split("-", 1)[0])

    def turn(self) -> Turn:
        """Raises BadInput, naming the file, for one that is damaged."""
        try:
            return from_json(self.file.read_text(encoding="utf-8"))
        except (BadInput, UnicodeDecodeError) as e:
            raise BadInput(f"{self.file}: is damaged ({e}); move it away, and the other turns go on") from e


def write_private(file: Path, text: str) -> None:
    """Replace *file* atomically and durably, readable by its owner alone."""
    tmp = file.with_name(f".{file.name}.{os.getpid()}.{secrets.token_hex(4)}")
    fd = os.open(tmp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as f:
            f.write(text)
            f.flush()
            os.fsync(f.fileno())
        tmp.replace(file)
    except BaseException:
        tmp.unlink(missing_ok=True)
        raise


def alive(pid: int) -> bool:
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


class Graph:
    def __init__(
        self, identity: Identity, folder: Path, vault: Vault, index: Index, zone: tzinfo = UTC
    ) -> None:
        self.identity, self.folder, self.vault, self.index, self.zone = identity, folder, vault, index, zone
        vault.names = index.names
        for name in ("pending", "archive", "receipts"):
            (folder / name).mkdir(parents=True, exist_ok=True, mode=0o700)
        self.tombstones = Tombstones(folder / "tombstones.jsonl")
        self.uses = Uses(folder / "uses.jsonl")
        if not self.uses.file.exists():
            self.uses.adopt(former_uses(folder / "state.json"))
        self._keys: dict[str, frozenset[str]] = {}  # pending file -> the keys of its messages
        self._remembering = threading.RLock()
        self._state, self._stamp = State(), (-1, -1, -1)  # as last read or written, and the file's look then
        self._noted: list[Callable[[State], None]] = []  # changes that are in no file yet
        self._fault = ""  # what is wrong with state.json

    def sweep(self) -> None:
        """Remove what writers that died were about to put in place: it may hold what was said."""
        for folder in (self.folder, *(self.folder / name for name in ("pending", "receipts"))):
            for file in folder.glob(".*"):
                if (named := TEMPORARY.fullmatch(file.name)) and not alive(int(named[1])):
                    file.unlink(missing_ok=True)

    def mend(self) -> None:
        """
        Set aside what cannot be read of what no other file can bring back. The caller holds the lock.

        A turn under a name that is none of ours, as earlier versions could leave one, gets its own.
        """
        for file in sorted((self.folder / "pending").glob("[!.]*.json")):
            if not PENDING.fullmatch(file.name) and (turn := self.readable(Pending(file))) is not None:
                self.put(file.stem, turn)
                file.unlink()
        if bad := self.tombstones.mend():
            why = f"{len(bad)} line{'s' * (len(bad) != 1)} cannot be read"
            lines = b"".join(line + b"\n" for line in bad)
            damaged.keep(
                self.folder,
                self.tombstones.file,
                lines,
                why,
                "what they forgot may come back by an import: forget it again",
            )
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
            damaged.set_aside(self.folder, pending.file, str(e.__cause__ or e), mend)
            return None

    def put(self, name: str, turn: Turn) -> Pending:
        """
        Keep *turn* until it is observed. *name* (`<ms>-<uuid>`, else one is made of it) decides the file, so a
        repeat changes nothing.
        """
        found = NAMED.fullmatch(name)
        if not found or int(found[1]) >= LAST_MS:
            said_ms = max((m.timestamp for m in turn.messages), default=0)
            name = f"{said_ms:015d}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:16]}"
        tokens = sum(m.tokens for m in turn.messages)
        session = hashlib.sha256(turn.session.encode()).hexdigest()[:8]
        file = self.folder / "pending" / f"{name}.{session}.{tokens}.json"
        write_private(file, to_json(turn))
        return Pending(file)

    def unseen(self, messages: Iterable[Message]) -> list[Message]:
        """Those that are neither archived, pending, nor forgotten; each once."""
        messages = list(messages)
        keys = {k for m in messages for k in (m.id, m.key)}
        known = self.index.seen(keys) | self.tombstones.messages(keys) | self._pending_keys()
        fresh = []
        for m in messages:
            if m.id not in known and m.key not in known:
                fresh.append(m)
                known |= {m.id, m.key}
        return fresh

    def _pending_keys(self) -> set[str]:
        keys: dict[str, frozenset[str]] = {}
        for p in self.pending():
            if p.name in self._keys:
                keys[p.name] = self._keys[p.name]
            elif turn := self.readable(p):
                keys[p.name] = frozenset(k for m in turn.messages for k in (m.id, m.key))
        self._keys = keys
        return set().union(*keys.values())

    # --- archive

    def archive(self, names: Iterable[str], skip: frozenset[str] = frozenset()) -> None:
        """Move pending files to the archive, then into the index. Repeating it after a crash adds nothing."""
        files = [self.folder / "pending" / name for name in names]
        files = [f for f in files if f.exists()]
        self.index.archive(self.folder / "archive")
        by_month: dict[str, list[str]] = {}
        for file in files:
            turn = Pending(file).turn()
            seen = self.index.seen({m.id for m in turn.messages})
            for m in turn.messages:
                if m.id not in seen and m.id not in skip:
                    month = datetime.fromtimestamp(m.timestamp / 1000, UTC).strftime("%Y-%m")
                    by_month.setdefault(month, []).append(message_to_json(m, turn.session))
        for month, lines in by_month.items():
            append(self.folder / "archive" / f"{month}.jsonl", lines)
        self.index.archive(self.folder / "archive")
        for file in files:
            file.unlink()

    # --- state

    def state(self) -> State:
        """As it is now. To be looked at: whoever changes it does so by `update` or `note`."""
        file = self.folder / "state.json"
        with self._remembering:
            if self._stamp != (stamp := look(file)):
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
                state, noted, fault = copied(self.state()), len(self._noted), self._fault
            if fault:
                mend = "what could be read of it is kept; the rest comes back with the next conversations"
                damaged.set_aside(self.folder, file, fault, mend)
                self._fault = ""
            change(state)
            bound(state)
            write_private(file, json.dumps(state, default=fields_of, ensure_ascii=False))
            with self._remembering:
                del self._noted[:noted]
                for later in self._noted:
                    later(state)
                self._state, self._stamp = state, look(file)
        return state

    def note(self, change: Callable[[State], None]) -> None:
        """As `update`, but on disk only with the next one or `flush`: for what a crash may take, and nobody waits for."""
        with self._remembering:
            state = copied(self.state())
            change(state)
            bound(state)
            self._state = state
            self._noted.append(change)

    def flush(self) -> None:
        """Write what was noted."""
        if self._noted:
            self.update(lambda state: None)

    def close(self) -> None:
        with suppress(OSError, Locked):
            self.flush()
        self.index.close()

    def __del__(self) -> None:
        # Whoever used it last closes it: a home lets go of what it has not used for long, and others may be at it still.
        with suppress(Exception):
            self.close()


def look(file: Path) -> tuple[int, int, int]:
    """What tells one version of *file*, which is always replaced, from another."""
    try:
        found = file.stat()
    except FileNotFoundError:
        return (0, 0, 0)
    return (found.st_ino, found.st_mtime_ns, found.st_size)


def copied(state: State) -> State:
    """A State that can be changed while others read *state*; what its sessions hold is replaced, never altered."""
    return replace(state, sessions={key: replace(own) for key, own in state.sessions.items()})


def bound(state: State) -> None:
    """Keep the sessions that were last live: a state is copied, read and written whole."""
    if len(state.sessions) > SESSIONS_KEPT:
        latest = sorted(state.sessions, key=lambda key: live_ms(state.sessions[key]), reverse=True)
        for key in latest[SESSIONS_KEPT:]:
            del state.sessions[key]


def live_ms(session: SessionState) -> int:
    return max(session.last_ms, session.at_ms, session.activated_ms, session.cut_ms)


def former_uses(file: Path) -> dict[str, tuple[int, int]]:
    """The counts that state.json held before they had a file of their own."""
    try:
        uses = json.loads(file.read_text(encoding="utf-8"))["uses"]
        return {str(id): (int(times), int(last_ms)) for id, (times, last_ms) in uses.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError):
        return {}


def fields_of(state: State | SessionState) -> dict[str, Any]:
    """For json; `dataclasses.asdict` copies every value and takes ten times as long."""
    return {name: getattr(state, name) for name in state.__slots__}


def append(file: Path, lines: list[str]) -> None:
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


def load_state(file: Path) -> tuple[State, str]:
    """The state as far as it makes sense, and what does not, "" if all does. The rest only costs an activation."""
    try:
        raw = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return State(), ""
    except (ValueError, RecursionError):
        return State(), "is no JSON"
    odd: list[str] = []
    given = sound(State, raw, "the whole", odd)
    of_each = given.get("sessions", {}).items()
    given["sessions"] = {
        key: SessionState(**sound(SessionState, own, "a session", odd)) for key, own in of_each
    }
    return State(**given), f"makes no sense in {', '.join(sorted(set(odd)))}" if odd else ""


KINDS: dict[str, Callable[[Any], bool]] = {
    "str": lambda value: isinstance(value, str),
    "int": lambda value: whole(value),
    "list[str]": lambda value: isinstance(value, list) and all(isinstance(v, str) for v in value),
    "dict[str, int]": lambda value: (
        isinstance(value, dict) and all(isinstance(v, int) for v in value.values())
    ),
    "dict": lambda value: isinstance(value, dict),
}


def sound(form: type[State] | type[SessionState], raw: object, what: str, odd: list[str]) -> dict[str, Any]:
    """Those fields of *raw* that *form* has and that are of its kind; what is not goes to *odd*, by name."""
    if not isinstance(raw, dict):
        odd.append(what)
        return {}
    found = {}
    for of in (f for f in fields(form) if f.name in raw):
        fits = KINDS.get(str(of.type), KINDS["dict"])
        if fits(raw[of.name]):
            found[of.name] = raw[of.name]
        else:
            odd.append(f"`{of.name}`")
    return found


def whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < LAST_MS


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
            append(self.file, [json.dumps({"salt": self._salt})])
        line = {"node": node and self._hash(node), "sources": sorted(self._hash(s) for s in sources)}
        append(self.file, [json.dumps(line)])

    def messages(self, ids: Iterable[str]) -> set[str]:
        """Which of *ids* were forgotten as messages."""
        self._read()
        gone: dict[str, set[str]] = {}
        for salt, node, sources in self._lines:
            if node is None:
                gone.setdefault(salt, set()).update(sources)
        return {i for i in ids if any(self._hash(i, salt) in of for salt, of in gone.items())}

    def blocks(self, node: str, sources: Iterable[str], cited: Callable[[], bool]) -> bool:
        """
        Whether a note made from *sources* was deleted before.

        Several notes may come of one message. So the note's id decides; and where the deleted note may come
        back under another name, whether any living note still cites these messages (*cited*).
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
        bad = [line for line in lines if line and entry(line) is None]
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
            value = entry(line)
            if value is None:
                continue  # torn by a crash: the line was not yet a promise
            if "salt" in value:
                salt = value["salt"]
            else:
                lines.append((salt, value.get("node"), frozenset(value["sources"])))
        # In this order: another thread never takes the half for the whole.
        self._salt, self._lines, self._size = salt, lines, size


def entry(line: bytes) -> dict[str, Any] | None:
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
