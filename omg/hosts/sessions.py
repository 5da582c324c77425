"""
Records the sessions of clients, and checks whether each client's turns are captured.

A record, `hosts/<host>/<session>.json` in the home, says

- which memories the session reads and writes
- how far the transcript was read
- which texts of the memory the session was given

A session reads the person's memory and, in a git repository, the project's memory. It writes to the project's
memory if there is a project. The memories are chosen when the session is first seen; a later change of folder
changes nothing.

A project is known by its git common directory. We find this directory by reading files, because git itself could
start programs that a repository's configuration names. The URL of a remote does not identify a project, because
any downloaded repository can name any remote. A file `.git` may say that its folder is a worktree of another
repository. This counts only if the named repository lists the worktree.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import tzinfo
from pathlib import Path
from typing import Any

from ..dates.days import iso_time, time_text
from ..errors import BadInput
from ..graph.state import read_object, write_private
from .hook import HOSTS

INSTALLED = "hosts.json"  # file in the home: which clients OMG serves, with whose memory, since when
JOINED = "projects.json"  # in the home: common directory of a checkout → the project that it joined
SESSION_CHARS = 80
KEPT_DAYS = 60  # a session's file is removed after so many days without use
SILENT_S = 3_600  # how much newer a transcript may be than the last captured turn


def installed_hosts(home: Path) -> dict[str, dict[str, Any]]:
    """
    Return client → what `omg install` stored about the client, a mapping with the keys

    - `identity`: the key of the person whose memory the client gets
    - `only`: "project" if the client gets only the project's memory, otherwise ""
    - `config`: the client's configuration folder
    - `at`: when the client was installed, in ms
    """
    return {k: v for k, v in read_object(home / INSTALLED).items() if isinstance(v, dict)}


# --- projects


def project_of(home: Path, person: str, folder: Path) -> str | None:
    """The key of *person*'s project that contains *folder*; None outside of a repository."""
    common = common_directory(folder)
    if common is None:
        return None
    joined = read_object(home / JOINED).get(str(common))
    return str(joined) if joined else project_key(person, common)


def project_key(person: str, common: Path) -> str:
    """A key for people to read, different for each directory *common*: `agent:main:main:project:1a2b3c4d-harbour`."""
    folder = common.parent if common.name == ".git" else common
    name = re.sub(r"[^a-z0-9]+", "-", folder.name.lower()).strip("-")[:40] or "project"
    return f"{person}:project:{hashlib.sha256(str(common).encode('utf-8', 'surrogateescape')).hexdigest()[:8]}-{name}"


def common_directory(folder: Path) -> Path | None:
    """
    Return the git common directory for the checkout that contains *folder*.

    - in most checkouts: the folder `.git`
    - in a worktree that its repository lists: the repository's git directory
    - if `.git` is a symbolic link or any other file, as in a submodule: the path of `.git`
    - if *folder* is in no checkout: None

    A `.git` file in a downloaded folder may name any repository. If that repository does not list the
    folder, the folder counts as a checkout of its own.
    """
    try:
        folder = folder.resolve(strict=True)
    except OSError:
        return None
    for place in (folder, *folder.parents):
        git = place / ".git"
        if git.is_symlink() or git.is_dir():
            return git
        if git.is_file():
            return common_of_worktree(git) or git
    return None


def common_of_worktree(git: Path) -> Path | None:
    """The repository that lists *git*, the `.git` file of a worktree; None if no repository lists the file."""
    try:
        claimed = git.read_text(encoding="utf-8").strip()
        if not claimed.startswith("gitdir:"):
            return None
        own = (git.parent / claimed.removeprefix("gitdir:").strip()).resolve(strict=True)
        listed = Path((own / "gitdir").read_text(encoding="utf-8").strip())
        if own.parent.name != "worktrees" or (own / listed).resolve() != git.resolve():
            return None
    except (OSError, ValueError):
        return None
    return own.parent.parent


def join_project(home: Path, person: str, here: Path, other: Path) -> str:
    """Let the checkout in *here* share the memory of the checkout in *other*. Returns the project's key."""
    mine, theirs = common_directory(here), common_directory(other)
    for folder, common in ((here, mine), (other, theirs)):
        if common is None:
            raise BadInput(f"{folder} is not in a git repository; name a folder of a checkout")
    joined = read_object(home / JOINED)
    key = str(joined.get(str(theirs)) or project_key(person, theirs or here))
    write_private(home / JOINED, json.dumps({**joined, str(mine): key}, indent=1))
    return key


# --- sessions


@dataclass(frozen=True, slots=True)
class HostSession:
    host: str
    session: str
    cwd: str = ""
    transcript: str = ""
    # Session keys of the memories of the person and the project; None if the session does not read this memory
    person: str | None = None
    project: str | None = None
    name: str = ""  # the name of the project
    offset: int = 0  # how far the transcript has been read, in the client's unit
    given: dict[str, str] = field(
        default_factory=dict
    )  # session key → hash of the text in the client's context
    served_ms: int = 0  # when a prompt was last served
    kept_ms: int = 0  # when a turn was last captured

    @property
    def writes(self) -> str | None:
        """The session key of the memory that keeps the session's messages; None if no memory keeps the messages."""
        return self.project or self.person


def new_session(home: Path, host: str, session: str, cwd: str) -> HostSession | None:
    """A session with the memory that *host* has in the folder *cwd*; None if the host is not installed."""
    setting = installed_hosts(home).get(host)
    if setting is None or not session:
        return None
    thread = f":thread:{host}-{file_name(session)}"
    person = str(setting["identity"])
    project = project_of(home, person, Path(cwd)) if Path(cwd).is_absolute() else None
    return HostSession(
        host,
        session,
        cwd,
        person=None if setting.get("only") == "project" else person + thread,
        project=project + thread if project else None,
        name=project.rpartition(":project:")[2].partition("-")[2] if project else "",
    )


def file_name(session: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", session)[:SESSION_CHARS]


class HostSessions:
    """The sessions of one home. Each session is a file."""

    def __init__(self, home: Path) -> None:
        self.home, self.folder = home, home / "hosts"
        self._guard = threading.Lock()

    def find(self, host: str, session: str, cwd: str) -> HostSession | None:
        """The stored session, or a new session; None if the host is not installed."""
        return session_in(self._file(host, session)) or new_session(self.home, host, session, cwd)

    def update(self, session: HostSession, **changes: Any) -> None:
        """
        Write *changes* into the session's file. Other fields stay as they are in the file, which may be newer than
        *session*.
        """
        file = self._file(session.host, session.session)
        with self._guard:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            made = replace(session_in(file) or session, **changes)
            # Without fsync, because a prompt waits for this. If the file is lost, the transcript is read again.
            tmp = file.with_name(f".{file.name}")
            tmp.write_text(json.dumps(asdict(made)), encoding="utf-8")
            tmp.replace(file)

    def _file(self, host: str, session: str) -> Path:
        return self.folder / host / f"{file_name(session)}.json"

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
    with suppress(TypeError):
        return HostSession(**{k: v for k, v in read_object(file).items() if k in known})
    return None


# --- does each client's capture work?


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Tells when a client was last active, and whether its turns are captured. The times are in ms; 0 means never."""

    host: str
    identity: str
    only: str
    served_ms: int  # when a prompt was last served
    kept_ms: int  # when a turn was last captured
    written_ms: int  # when the client last wrote to a transcript
    silent: bool  # the client's transcripts grow, but no turn is captured


def heartbeats(home: Path) -> list[Heartbeat]:
    """One Heartbeat for each installed client."""
    found = []
    sessions = HostSessions(home)
    for name, setting in installed_hosts(home).items():
        if (host := HOSTS.get(name)) is None:
            continue
        known = list(sessions.of_host(name))
        served = max((s.served_ms for s in known), default=0)
        kept = max((s.kept_ms for s in known), default=0)
        root, written = Path(str(setting.get("config") or "")), 0
        for file in root.glob(host.transcripts) if root.is_absolute() else ():
            with suppress(OSError):
                written = max(written, round(file.stat().st_mtime * 1000))
        silent = written > max(kept, int(setting.get("at") or 0)) + SILENT_S * 1000
        whose = str(setting["identity"]), str(setting.get("only") or "")
        found.append(Heartbeat(name, *whose, served, kept, written, silent))
    return found


def heartbeat_line(beat: Heartbeat, zone: tzinfo) -> str:
    """*beat* as a line for a person, with times in *zone*."""
    served, kept = (time_text(iso_time(ms), zone) or "never" for ms in (beat.served_ms, beat.kept_ms))
    trouble = "; the client is used, but NOTHING WAS KEPT lately: see `omg doctor`" if beat.silent else ""
    return f"{beat.host:<11} last prompt served {served}; last turn kept {kept}{trouble}"
