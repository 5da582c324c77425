"""
Turns the marks that hooks left in the spool into drops.

A mark says which transcript has gained something and how long it was then. The transcript is read READ_AFTER_S later,
because a client may write the last line after its hook. Only whole turns are taken: what the person typed after the
mark waits for the next one. The drop is on disk before the offset moves; what is read twice is known by its id.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import error_text
from ..graph.state import write_private
from ..message.drop import to_epoch_ms
from .declared import HOSTS
from .hook import MARKS
from .projects import installed_hosts, read_object
from .sessions import HostSession, HostSessions
from .transcripts import READERS, Entry, Row

log = logging.getLogger(__name__)

READ_AFTER_S = 1.0  # of 32 turns of Claude Code, the last line was there 0.7 s after the hook at the latest
IDLE_S = 600  # a transcript that nobody writes to any more
DROP_ENTRIES = 50
REASONS = {"turn": "turn", "compact": "compaction", "end": "turn", "start": "catchup"}


class Capture:
    def __init__(self, home: Path, sessions: HostSessions) -> None:
        self.home, self.spool, self.sessions = home, home / "spool", sessions

    def marks(self) -> list[Path]:
        return sorted((self.spool / MARKS).glob("[!.]*.json"))

    def take_in(self) -> float | None:
        """Read what is marked; returns in how many seconds the next mark is due, None where none waits."""
        wait = None
        for file in self.marks():
            mark = read_object(file)
            age_s = time.time() - int(mark.get("at_ms") or 0) / 1000
            if 0 <= age_s < READ_AFTER_S:
                return READ_AFTER_S - age_s
            try:
                self._take(mark)
                file.unlink(missing_ok=True)
            except (OSError, sqlite3.Error) as e:
                log.warning("%s: waits: %s", file.name, error_text(e))
                wait = 60.0
        return wait

    def _take(self, mark: dict[str, Any]) -> None:
        name = {key: str(mark.get(key) or "") for key in ("host", "session", "cwd", "transcript")}
        if name["host"] not in HOSTS or not name["session"] or mark.get("event") not in REASONS:
            return

        session = self.sessions.find(name["host"], name["session"], name["cwd"])
        if session is None:
            return
        session = replace(session, transcript=name["transcript"] or session.transcript)
        size = mark.get("size")
        self.read(session, REASONS[str(mark["event"])], size if isinstance(size, int) else None)

    def catch_up(self) -> None:
        """Read what hooks missed of the sessions that nobody writes to any more; drop marks that were never finished."""
        for half in (self.spool / MARKS).glob(".*.json"):
            with suppress(OSError):
                if time.time() - half.stat().st_mtime > IDLE_S:
                    half.unlink()
        for host in installed_hosts(self.home):
            for each in self.sessions.of_host(host):
                with suppress(OSError, sqlite3.Error):
                    look = Path(each.transcript).stat()
                    if look.st_size > each.offset and time.time() - look.st_mtime > IDLE_S:
                        self.read(each, "catchup", None)

    def read_missed(self, session: HostSession, size: int) -> None:
        """Read what hooks missed of a session that goes on, whose transcript had *size* bytes when it did."""
        known = self.sessions.find(session.host, session.session, session.cwd)
        if known is not None and size > known.offset:
            self.read(known, "catchup", size)

    def read(self, session: HostSession, reason: str, until: int | None) -> None:
        """Drop what the transcript of *session* gained: whole turns that began before *until*, or with None all."""
        key, path = session.whose.writes, Path(session.transcript)
        rows: list[Row] = []
        if session.transcript and path.is_file():
            rows = whole_turns(READERS[session.host](path, session.session, session.offset), until)
            if reason == "compaction":  # one that the client began by itself comes in the midst of a turn
                last = max((n for n, row in enumerate(rows) if row.begins), default=len(rows))
                rows = rows[:last]
        since = int(installed_hosts(self.home).get(session.host, {}).get("at") or 0)
        said = [row.entry for row in rows if row.entry is not None and said_since(row.entry, since)]
        if key and (said or reason == "compaction"):
            for n in range(0, max(len(said), 1), DROP_ENTRIES):
                self._drop(session, key, reason, said[n : n + DROP_ENTRIES])
        changes: dict[str, Any] = {"transcript": session.transcript}
        if any(row.cut for row in rows):
            changes["given"] = {}
        if rows:
            changes["offset"] = rows[-1].end
        if said:
            changes["kept_ms"] = time.time_ns() // 1_000_000
        self.sessions.update(session, **changes)

    def _drop(self, session: HostSession, key: str, reason: str, entries: list[Entry]) -> None:
        drop = {
            "v": 1,
            "reason": reason,
            "sessionKey": key,
            "sessionId": session.session,
            "workspaceDir": session.cwd,
            "channel": session.host,
            "entries": entries,
        }
        name = f"{time.time_ns() // 1_000_000:015d}-{uuid.uuid4()}.json"
        write_private(self.spool / name, json.dumps(drop))


def whole_turns(rows: Iterator[Row], until: int | None) -> list[Row]:
    """*rows* before the first thing that the person said at *until* or later."""
    taken = []
    for row in rows:
        if until is not None and row.begins and row.start >= until:
            break
        taken.append(row)
    return taken


def said_since(entry: Entry, since_ms: int) -> bool:
    """What was said before the client was connected is for `omg import`."""
    at = to_epoch_ms(entry.get("createdAt"))
    return at is None or at >= since_ms
