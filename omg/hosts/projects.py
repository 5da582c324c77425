"""
Whose memory a session of a client has: the person's, and in a git repository the project's.

A project is known by its git common directory, found by looking at files: git itself is not run, because a
repository's configuration can name programs to start. Nor is a remote's name looked at, which any download can claim.
What a folder claims about another repository counts only where that repository names the folder as well.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import BadInput
from ..graph.state import write_private

INSTALLED = "hosts.json"  # in the home: which clients OMG serves, whose memory, since when
JOINED = "projects.json"  # in the home: common directory of a checkout → the project that it joined
SESSION_CHARS = 80


@dataclass(frozen=True, slots=True)
class Whose:
    """Session keys of what a session reads; `writes` is the one that its words go to. None: not served."""

    person: str | None
    project: str | None
    name: str = ""  # of the project

    @property
    def writes(self) -> str | None:
        return self.project or self.person


def installed_hosts(home: Path) -> dict[str, dict[str, Any]]:
    """Host → `{identity, only, at, transcripts}`, as `omg install HOST` wrote it."""
    return {k: v for k, v in read_object(home / INSTALLED).items() if isinstance(v, dict)}


def read_object(file: Path) -> dict[str, Any]:
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def whose_session(home: Path, host: str, session: str, cwd: str) -> Whose | None:
    """Whose memory *session* of *host* has in the folder *cwd*; None where the host is not installed."""
    setting = installed_hosts(home).get(host)
    if setting is None or not session:
        return None
    lane = f":thread:{host}-{re.sub(r'[^A-Za-z0-9_-]', '_', session)[:SESSION_CHARS]}"
    person = str(setting["identity"])
    root = Path(cwd) if cwd else None
    project = project_of(home, person, root) if root and root.is_absolute() else None
    return Whose(
        person=None if setting.get("only") == "project" else person + lane,
        project=project + lane if project else None,
        name=project_name(project) if project else "",
    )


def project_of(home: Path, person: str, folder: Path) -> str | None:
    """The key of the project that *folder* is in, as one of *person*'s; None outside of any repository."""
    common = common_directory(folder)
    if common is None:
        return None
    joined = read_object(home / JOINED).get(str(common))
    return str(joined) if joined else project_key(person, common)


def project_key(person: str, common: Path) -> str:
    """Readable, and another one for each directory: `agent:main:main:project:1a2b3c4d-harbour`."""
    folder = common.parent if common.name == ".git" else common
    name = re.sub(r"[^a-z0-9]+", "-", folder.name.lower()).strip("-")[:40] or "project"
    return f"{person}:project:{hashlib.sha256(str(common).encode('utf-8', 'surrogateescape')).hexdigest()[:8]}-{name}"


def project_name(key: str) -> str:
    return key.rpartition(":project:")[2].partition("-")[2]


def common_directory(folder: Path) -> Path | None:
    """
    The git common directory of the checkout that *folder* lies in; None outside of one.

    A `.git` that is a folder is it. A `.git` that is a file leads to the repository that it is a worktree of, if that
    repository has this very file on its list. Anything else (a link, a submodule, a file that claims another's
    repository) is a project by itself, known by its own place.
    """
    try:
        folder = folder.resolve(strict=True)
    except OSError:
        return None
    for place in (folder, *folder.parents):
        git = place / ".git"
        if git.is_symlink():
            return git
        if git.is_dir():
            return git
        if git.is_file():
            return common_of_worktree(git) or git
    return None


def common_of_worktree(git: Path) -> Path | None:
    """The repository that lists the worktree with the file *git*; None if none does."""
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
    """Let the checkout in *here* share the memory of the one in *other*; returns the project's key."""
    mine, theirs = common_directory(here), common_directory(other)
    for folder, common in ((here, mine), (other, theirs)):
        if common is None:
            raise BadInput(f"{folder} is in no git repository; name a folder of a checkout")
    joined = read_object(home / JOINED)
    key = str(joined.get(str(theirs)) or project_key(person, theirs or here))
    write_private(home / JOINED, json.dumps({**joined, str(mine): key}, indent=1))
    return key
