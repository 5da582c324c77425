"""
What is kept of each session of a client: how far it was read, and when it was last served, as `hosts/<host>/<session>.json` in the home.

Whose memory it has is decided when the session is first seen, and does not follow a change of folder.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any

from ..dates.days import time_text
from .declared import HOSTS
from .projects import SESSION_CHARS, Whose, installed_hosts, read_object, whose_session

KEPT_DAYS = 60  # a session that nobody has come back to
SILENT_S = 3_600  # a transcript that is so much newer than the last turn kept


@dataclass(frozen=True, slots=True)
class HostSession:
    host: str
    session: str
    cwd: str = ""
    transcript: str = ""
    person: str | None = None
    project: str | None = None
    name: str = ""
    offset: int = 0  # how far the transcript has been read
    given: dict[str, str] = field(
        default_factory=dict
    )  # session key → hash of the standing text in its context
    served_ms: int = 0  # when a prompt was last served
    kept_ms: int = 0  # when a turn was last kept

    @property
    def whose(self) -> Whose:
        return Whose(self.person, self.project, self.name)


class HostSessions:
    """The files of one home."""

    def __init__(self, home: Path) -> None:
        self.home, self.folder = home, home / "hosts"
        self._guard = threading.Lock()

    def find(self, host: str, session: str, cwd: str) -> HostSession | None:
        """The session as it is kept, or as it is seen for the first time; None where the host is not installed."""
        return session_in(self._file(host, session)) or self.first_seen(host, session, cwd)

    def update(self, session: HostSession, **changes: Any) -> None:
        """Keep *changes*; what others changed of it meanwhile stays."""
        file = self._file(session.host, session.session)
        with self._guard:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            made = replace(session_in(file) or session, **changes)
            # Not synced to the disk: a prompt waits for it, and where it is lost the transcript is read again.
            tmp = file.with_name(f".{file.name}")
            tmp.write_text(json.dumps(asdict(made)), encoding="utf-8")
            tmp.replace(file)

    def first_seen(self, host: str, session: str, cwd: str) -> HostSession | None:
        whose = whose_session(self.home, host, session, cwd)
        if whose is None:
            return None
        return HostSession(host, session, cwd, "", whose.person, whose.project, whose.name)

    def _file(self, host: str, session: str) -> Path:
        return self.folder / host / f"{re.sub(r'[^A-Za-z0-9_-]', '_', session)[:SESSION_CHARS]}.json"

    def of_host(self, host: str) -> Iterator[HostSession]:
        for file in sorted((self.folder / host).glob("[!.]*.json")):
            if found := session_in(file):
                yield found

    def drop_old(self) -> None:
        before = time.time() - KEPT_DAYS * 86_400
        for file in self.folder.glob("*/[!.]*.json"):
            with suppress(OSError):
                if file.stat().st_mtime < before:
                    file.unlink()


def session_in(file: Path) -> HostSession | None:
    known = {f.name for f in fields(HostSession)}
    value = {k: v for k, v in read_object(file).items() if k in known}
    with suppress(TypeError):
        return HostSession(**value)
    return None


# --- is each client's capture alive?


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Of one client: when a prompt was last served, a turn last kept, a transcript last written. ms, 0 for never."""

    host: str
    identity: str
    only: str
    served_ms: int
    kept_ms: int
    written_ms: int
    silent: bool  # transcripts move on, and nothing of them is kept


def heartbeats(home: Path) -> list[Heartbeat]:
    found = []
    sessions = HostSessions(home)
    for name, setting in installed_hosts(home).items():
        if (host := HOSTS.get(name)) is None:
            continue
        known = list(sessions.of_host(name))
        served = max((s.served_ms for s in known), default=0)
        kept = max((s.kept_ms for s in known), default=0)
        root, written = Path(str(setting.get("config") or "")), 0
        if root.is_absolute():
            for file in root.glob(host.transcripts):
                with suppress(OSError):
                    written = max(written, round(file.stat().st_mtime * 1000))
        since = max(kept, int(setting.get("at") or 0))
        silent = written > since + SILENT_S * 1000
        found.append(
            Heartbeat(
                name, str(setting["identity"]), str(setting.get("only") or ""), served, kept, written, silent
            )
        )
    return found


def heartbeat_line(beat: Heartbeat, zone: tzinfo) -> str:
    """For a person, who lives in *zone*."""
    served, kept = (
        time_text(datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="seconds"), zone)
        if ms
        else "never"
        for ms in (beat.served_ms, beat.kept_ms)
    )
    trouble = "; used, and NOTHING KEPT lately: see `omg doctor`" if beat.silent else ""
    return f"{beat.host:<11} last prompt served {served}; last turn kept {kept}{trouble}"
