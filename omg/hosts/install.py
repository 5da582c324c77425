"""
`omg install HOST` and `omg uninstall HOST`: our plugin for each client, added and removed by the client's own command.

We do not rewrite the client's other settings. If its command leaves empty sections in a settings file, uninstalling
restores the copy that was made before. If a client wants a hook or folder to be trusted, only the person does so: we say
what to do, and check whether it was done.

`hooks/<host>/` in the source tree is the same plugin with the plain command `omg`. `omg install` writes it with the full
paths of the interpreter and the home, because a client may run with another PATH.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..client import socket_of
from ..config import shipped_folder
from ..errors import BadInput, OmgError
from ..graph.state import write_private
from ..identity import identity_of_session
from ..message.envelope import cut_middle
from .hook import HOSTS, PLUGIN, VERSION, Host
from .sessions import INSTALLED, installed_hosts

TIMEOUT_S = 180  # a command of OpenClaw starts in 4 to 13 s, and much later on a loaded machine
DESCRIPTION = "One memory in every tool: what was said becomes notes that you own."

Files = dict[str, str]  # path in a folder → text


@dataclass(frozen=True, slots=True)
class Step:
    """
    One step of installing. *note*: a remark for the person. *changed*: False if there is nothing to do. *do* carries
    out the step, and *check* then proves that the step worked. Both raise an error if they fail.
    """

    what: str
    note: str = ""
    changed: bool = True
    do: Callable[[], object] | None = None
    check: Callable[[], object] | None = None


def carried_out(steps: Iterable[Step], *, dry_run: bool = False) -> Iterator[Step]:
    """Carry out each step, then yield the step. *dry_run*: only yield the steps."""
    for step in steps:
        if step.do and step.changed and not dry_run:
            step.do()
        if step.check and not dry_run:
            step.check()
        yield step


def our_command() -> list[str]:
    """The command that starts OMG: this interpreter, whatever the client's PATH, PYTHONPATH or folder."""
    return [sys.executable, "-EP", "-m", "omg.cli"]


def host_named(name: str) -> Host:
    if name not in HOSTS:
        raise BadInput(
            f"no client {name!r}; name one of {', '.join(HOSTS)}. For OpenClaw, leave the name out"
        )
    return HOSTS[name]


def config_folder(host: Host) -> Path:
    moved = os.environ.get(host.config_variable)
    return Path(moved).expanduser().absolute() if moved else Path.home() / host.config


def install_host(host: Host, home: Path, *, identity: str, only: str = "") -> Iterator[Step]:
    """The steps of installing OMG in a client. Raises OmgError if the client is missing."""
    socket_of(home)  # raises an error before any change if the home's path is too long
    if identity_of_session(identity) is None:
        raise BadInput(f"{identity!r} belongs to nobody; `omg identity list` shows whose memory there is")
    program_of(host.program, host.title)
    folder, files = home / "plugins" / host.name, plugin_folder(host, our_command(), home)
    setting: dict[str, Any] = {"identity": identity, "only": only, "config": str(config_folder(host))}
    known = installed_hosts(home).get(host.name, {})

    def serve() -> None:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        at_ms = known.get("at") or time.time_ns() // 1_000_000
        write_hosts(home, {**installed_hosts(home), host.name: {**setting, "at": at_ms}})

    def put() -> None:
        keep_settings(host, home)
        put_files(folder, files)

    what = f"{host.title} is to serve {identity}" + (
        ", the project's memory alone" if only == "project" else ""
    )
    yield Step(what, "remembered from now on", {k: known.get(k) for k in setting} != setting, serve)
    changed = not same_files(folder, files)
    yield Step("write the plugin, with hooks and the MCP server", str(folder), changed, put)
    absent = changed or not is_added(host)
    for args in host.install:
        yield client_step(host, args, folder, absent)
    for name, place in host.copies:
        target = config_folder(host) / place
        copy = partial(put_files, target.parent, {target.name: files[name]})
        yield Step(f"copy {name} to {target}", changed=absent, do=copy)
    for note in host.notes:
        yield Step(note, changed=False, check=partial(check_added, host))


def check_added(host: Host) -> None:
    if not is_added(host):
        raise OmgError(
            f"{host.title} did not add the plugin; `{host.program} {host.ask_list}` shows its plugins"
        )


def uninstall_host(host: Host, home: Path) -> Iterator[Step]:
    """The steps of removing OMG from a client. The home and its vaults stay."""
    folder, known = home / "plugins" / host.name, installed_hosts(home)

    def clear() -> None:
        restore_settings(host, home)
        shutil.rmtree(folder, ignore_errors=True)

    if is_added(host) or folder.exists():
        program_of(host.program, host.title)
        for args in host.uninstall:
            yield client_step(host, args, folder)
        for place in (config_folder(host) / place for _, place in host.copies):
            yield Step(f"remove {place}", do=partial(place.unlink, missing_ok=True))
        yield Step("remove the plugin's folder", str(folder), do=clear)
    if host.name in known:
        others = {k: v for k, v in known.items() if k != host.name}
        yield Step(f"stop serving {host.title}", do=partial(write_hosts, home, others))
    yield Step(f"your vaults and {home} stay", changed=False)


def write_hosts(home: Path, hosts: dict[str, Any]) -> None:
    write_private(home / INSTALLED, json.dumps(hosts, indent=1))


def unreviewed_hooks(host: Host, home: Path) -> list[str]:
    """The events whose present hook the person has not trusted yet; none if the client asks for no review."""
    settings = settings_text(host)
    return [e for e in host.events if host.reviews and trusted_hash(host, e, home) not in settings]


def trusted_hash(host: Host, event: str, home: Path) -> str:
    """
    The hash that the client's settings contain if the person trusts the present hook of *event*. The hash covers the
    command and the timeout, so a changed hook has to be trusted again.
    """
    hook = {"async": False, **hook_of(host, event, our_command(), home)}
    value = {"event_name": snake_case(event), "hooks": [hook]}
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def snake_case(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


# --- the plugin folder


def plugin_folder(host: Host, command: list[str], home: Path | None = None) -> Files:
    """
    The files of the plugin that runs *command*: hooks, MCP server and, if the client has marketplaces, a marketplace
    with the plugin.
    """
    about = {"name": PLUGIN, "description": DESCRIPTION}
    env = {"env": {"OMG_HOME": str(home)}} if home else {}
    server = {"command": command[0], "args": [*command[1:], "mcp", "--host", host.name], **env}
    servers = {"mcpServers": {PLUGIN: server}}
    hooks = {event: [{"hooks": [hook_of(host, event, command, home)]}] for event in host.events}
    if host.layout == "claude":  # Codex reads the same form
        owner = {"name": "OMG"}
        market = {**about, "owner": owner, "plugins": [{**about, "source": f"./{PLUGIN}"}]}
        return {
            ".claude-plugin/marketplace.json": as_text(market),
            f"{PLUGIN}/.claude-plugin/plugin.json": as_text({**about, "version": VERSION, "author": owner}),
            f"{PLUGIN}/hooks/hooks.json": as_text({"hooks": hooks}),
            f"{PLUGIN}/.mcp.json": as_text(servers),
        }
    if host.layout == "gemini":
        extension = {"name": PLUGIN, "version": VERSION, "description": DESCRIPTION, **servers}
        return {
            "gemini-extension.json": as_text(extension),
            "hooks/hooks.json": as_text({"hooks": hooks}),
        }
    text = (shipped_folder("hooks") / host.name / f"{PLUGIN}.js").read_text(encoding="utf-8")
    if home:
        known = json.dumps({"home": str(home), "command": command})
        text = text.replace("const INSTALLED = {};", f"const INSTALLED = {known};", 1)
    return {f"{PLUGIN}.js": text}


def hook_of(host: Host, event: str, command: list[str], home: Path | None) -> dict[str, Any]:
    line = shlex.join([*command, "hook", host.name, event, *([str(home)] if home else [])])
    return {"type": "command", "command": line, "timeout": host.timeout}


def as_text(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


# --- the client's command and files


def program_of(program: str, title: str, error: type[OmgError] = OmgError) -> str:
    """The path of the command *program*. Raises *error* if the command is not found."""
    if found := shutil.which(program):
        return found
    raise error(f"the command `{program}` is not on PATH; install {title}, or add its folder to PATH")


def client_step(host: Host, args: Sequence[str], folder: Path, changed: bool = True) -> Step:
    """
    Make the step that runs one of the client's own commands.

    *args*: the command's arguments; `{folder}` in an argument stands for the plugin's folder, *folder*.
    *changed*: False if there is nothing to do, so that the command does not run.
    """
    line = [host.program, *(arg.format(folder=folder) for arg in args)]

    def run() -> None:
        argv = [program_of(host.program, host.title), *line[1:]]
        run_program(argv, " ".join(line[:4]), dict(host.install_environment))

    return Step(" ".join(line), changed=changed, do=run)


def run_program(
    argv: Sequence[str], name: str, environment: Mapping[str, str], error: type[OmgError] = OmgError
) -> str:
    """
    Run *argv* and return its standard output. If the command fails, raises *error*, with *name* and the command's
    error output.
    """
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=TIMEOUT_S,
            stdin=subprocess.DEVNULL, env={**os.environ, **environment},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as e:
        raise error(f"`{name}` could not be run: {e}") from e
    if done.returncode != 0:
        why = " ".join(cut_middle(done.stderr or done.stdout, 500).split())
        raise error(f"`{name}` failed: {why or f'exit code {done.returncode}'}")
    return done.stdout


def settings_text(host: Host) -> str:
    try:
        return (config_folder(host) / host.settings).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def is_added(host: Host) -> bool:
    """Whether the client's settings name our plugin."""
    return host.added_mark in settings_text(host)


def same_files(folder: Path, files: Files) -> bool:
    """Whether *folder* already has exactly *files*."""
    try:
        return all((folder / name).read_text(encoding="utf-8") == text for name, text in files.items())
    except (OSError, UnicodeDecodeError):
        return False


def put_files(folder: Path, files: Files) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(folder / name, text)


def kept_settings(host: Host, home: Path) -> Path:
    return home / f"{host.name}-settings-before-omg"


def keep_settings(host: Host, home: Path) -> None:
    """Copy the client's settings file before we change it. If there is none, the copy is an empty file."""
    if not (kept := kept_settings(host, home)).exists() and not is_added(host):
        write_private(kept, settings_text(host))


def restore_settings(host: Host, home: Path) -> None:
    """
    Undo what the client's install command left behind.

    - Deletes the client's copies of our plugin.
    - Removes the empty sections from the client's settings file.
    - Restores the settings file as it was before OMG, if nothing else in the file changed. A file that was empty or
      missing then is deleted.

    The settings file is only touched if `keep_settings` made a copy of the file.
    """
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
        return  # no settings, or not JSON: then the client's command leaves nothing behind
    if left == was:
        write_private(file, before) if before else file.unlink()
    elif left != now:
        write_private(file, as_text(left))
