"""
`omg install HOST` and `omg uninstall HOST`: by the client's own command line.

The client's command adds and removes our plugin, so its other settings are never parsed or rewritten by us. What its
command leaves behind in a settings file that had nothing of it before is taken back from the copy that was kept.
Trust that a client asks of its person is asked for and checked here, never given in their place.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..client import socket_of
from ..errors import BadInput, OmgError
from ..graph.state import write_private
from ..identity import identity_of_session
from .declared import HOSTS, Host
from .plugin import Files, as_text, hook_command, plugin_folder
from .projects import INSTALLED, installed_hosts

TIMEOUT_S = 180


@dataclass(frozen=True, slots=True)
class Step:
    """What is done, or with a dry run would be; `note` is what a person should know besides."""

    what: str
    note: str = ""
    changed: bool = True


def our_command() -> list[str]:
    """How a client starts us: this very interpreter, whatever PATH, PYTHONPATH or folder the client has."""
    return [sys.executable, "-EP", "-m", "omg.cli"]


def host_named(name: str) -> Host:
    if name not in HOSTS:
        raise BadInput(f"no client {name!r}; there are: {', '.join(HOSTS)}, or nothing for OpenClaw")
    return HOSTS[name]


def config_folder(host: Host) -> Path:
    moved = os.environ.get(host.config_variable)
    return Path(moved).expanduser().absolute() if moved else Path.home() / host.config


def install_host(
    host: Host, home: Path, *, identity: str, only: str = "", dry_run: bool = False
) -> Iterator[Step]:
    """Yield each step once it is done. Raises OmgError where the client is missing or refuses."""
    socket_of(home)  # refuses a home whose path is too long, before anything is changed
    if identity_of_session(identity) is None:
        raise BadInput(f"{identity!r} belongs to nobody; `omg identity list` shows whose memory there is")
    program = program_of(host)
    folder, files = home / "plugins" / host.name, plugin_folder(host, our_command(), home)
    setting: dict[str, Any] = {"identity": identity, "only": only, "config": str(config_folder(host))}
    known = installed_hosts(home).get(host.name, {})
    fresh = {k: known.get(k) for k in setting} != setting
    if fresh and not dry_run:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        setting["at"] = known.get("at") or time.time_ns() // 1_000_000
        write_hosts(home, {**installed_hosts(home), host.name: setting})
    what = f"serve {identity}" + (", the project's memory alone" if only == "project" else "")
    yield Step(f"{host.title} is to {what}", "remembered from now on", changed=fresh)
    changed = not same_files(folder, files)
    if changed and not dry_run:
        keep_settings(host, home)
        put_files(folder, files)
    yield Step("write the plugin, with hooks and the MCP server", str(folder), changed=changed)
    absent = changed or not is_added(host)
    for args in host.install:
        line = [arg.format(folder=folder) for arg in args]
        if absent and not dry_run:
            run_client(host, program, line)
        yield Step(f"{host.program} {' '.join(line)}", changed=absent)
    for name, place in host.copies:
        target = config_folder(host) / place
        if absent and not dry_run:
            put_files(target.parent, {target.name: files[name]})
        yield Step(f"copy {name} to {target}", changed=absent)
    if not dry_run and not is_added(host):
        raise OmgError(f"{host.title} has not taken the plugin; `{host.program} {host.ask_list}` says more")
    for note in host.notes:
        yield Step(note, changed=False)


def uninstall_host(host: Host, home: Path, *, dry_run: bool = False) -> Iterator[Step]:
    """Take OMG out of a client. The vaults and the home stay."""
    folder = home / "plugins" / host.name
    if is_added(host) or folder.exists():
        program = program_of(host)
        for args in host.uninstall:
            line = [arg.format(folder=folder) for arg in args]
            if not dry_run:
                run_client(host, program, line)
            yield Step(f"{host.program} {' '.join(line)}")
        for _, place in host.copies:
            if not dry_run:
                (config_folder(host) / place).unlink(missing_ok=True)
            yield Step(f"remove {config_folder(host) / place}")
        if not dry_run:
            restore_settings(host, home)
            shutil.rmtree(folder, ignore_errors=True)
        yield Step("remove the plugin's folder", str(folder))
    known = installed_hosts(home)
    if host.name in known:
        if not dry_run:
            write_hosts(home, {k: v for k, v in known.items() if k != host.name})
        yield Step(f"serve {host.title} no more")
    yield Step(f"your vaults and {home} stay", changed=False)


def write_hosts(home: Path, hosts: dict[str, Any]) -> None:
    write_private(home / INSTALLED, json.dumps(hosts, indent=1))


def unreviewed_hooks(host: Host, home: Path) -> list[str]:
    """Events of a client that runs reviewed hooks alone whose hook, as it is installed now, its person has not trusted."""
    if not host.reviews:
        return []
    try:
        settings = (config_folder(host) / host.settings).read_text(encoding="utf-8")
    except OSError:
        settings = ""
    return [event for event in host.events if trusted_hash(host, event, home) not in settings]


def trusted_hash(host: Host, event: str, home: Path) -> str:
    """What the client's settings hold of a hook that was trusted: of its command and timeout, so a change undoes it."""
    command = hook_command(host, event, our_command(), home)
    hook = {"async": False, "command": command, "timeout": host.timeout, "type": "command"}
    value = {"event_name": snake_case(event), "hooks": [hook]}
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def program_of(host: Host) -> str:
    found = shutil.which(host.program)
    if found is None:
        raise OmgError(
            f"the command `{host.program}` is not on PATH; install {host.title}, or add its folder to PATH"
        )
    return found


def run_client(host: Host, program: str, args: list[str]) -> str:
    """Standard output of the client's command. Raises OmgError with the last lines of what it complained about."""
    try:
        done = subprocess.run(
            [program, *args], capture_output=True, text=True, timeout=TIMEOUT_S, stdin=subprocess.DEVNULL,
            env={**os.environ, **dict(host.install_environment)},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as e:
        raise OmgError(f"`{host.program} {' '.join(args[:3])}` could not be run: {e}") from e
    if done.returncode != 0:
        said = " ".join((done.stderr or done.stdout).strip().splitlines()[-3:])
        raise OmgError(f"`{host.program} {' '.join(args[:3])}` failed: {said[:500] or done.returncode}")
    return done.stdout


def is_added(host: Host) -> bool:
    """Whether the client's settings name our plugin."""
    try:
        return host.added_mark in (config_folder(host) / host.settings).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False


def same_files(folder: Path, files: Files) -> bool:
    try:
        return all((folder / name).read_text(encoding="utf-8") == text for name, text in files.items())
    except OSError:
        return False


def put_files(folder: Path, files: Files) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(folder / name, text)


def kept_settings(host: Host, home: Path) -> Path:
    return home / f"{host.name}-settings-before-omg"


def keep_settings(host: Host, home: Path) -> None:
    """A copy of the client's settings as they were before us; an empty one where there were none."""
    settings, kept = config_folder(host) / host.settings, kept_settings(host, home)
    if not kept.exists() and not is_added(host):
        write_private(kept, settings.read_text(encoding="utf-8") if settings.exists() else "")


def restore_settings(host: Host, home: Path) -> None:
    """Take out empty sections that the client left behind, and its copy of our plugin."""
    config, kept = config_folder(host), kept_settings(host, home)
    for name in host.caches:
        shutil.rmtree(config / name, ignore_errors=True)
    if not kept.exists():
        return
    before, file = kept.read_text(encoding="utf-8"), config / host.settings
    kept.unlink()
    try:
        was, now = json.loads(before or "{}"), json.loads(file.read_text(encoding="utf-8"))
        left = {k: v for k, v in now.items() if v or k in was or k not in host.leftovers}
    except (OSError, ValueError, AttributeError):
        return  # no settings, or of another form: the client's command has done what there is to do
    if left == was:
        write_private(file, before) if before else file.unlink()
    elif left != now:
        write_private(file, as_text(left))
