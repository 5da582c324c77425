"""Commands around the home, OpenClaw and other assistants: init, the daemon, installing, the doctor, identities, projects, MCP."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from ..client import ask_daemon, default_home
from ..errors import BadInput, Locked, OmgError, how_many
from .terminal import (
    IdentityOption,
    JsonFlag,
    app,
    configuration,
    existing_home,
    opened_memory,
    print_value,
    warn,
)

if TYPE_CHECKING:
    from ..config import Config
    from ..hosts.install import Step
    from ..identity import Identity


# --- Starts and stops the daemon, and keeps it stopped during a command.


# How often, and for how long, to look whether the daemon has ended. The gateway's plugin starts another one .25 s later.
LOOK_EVERY_S, LOOK_FOR_S = 0.05, 35


def ensured_daemon(home: Path) -> tuple[int, bool]:
    """The pid of the daemon, and whether it was started now."""
    found = ask_daemon(home, "/health", {}, timeout_s=5)
    return (int(found["pid"]), False) if found else (start_daemon(home), True)


def start_daemon(home: Path) -> int:
    """Start a daemon that outlives this command; return its pid once it answers."""
    started = subprocess.Popen(
        [sys.executable, "-P", "-m", "omg.cli", "serve"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    for _ in range(150):
        if found := ask_daemon(home, "/health", {}, timeout_s=5):
            return int(found["pid"])
        if started.poll() is not None:
            break
        time.sleep(0.1)
    raise OmgError(f"the daemon did not come up; see {home / 'omg.log'}, or run `omg serve` to watch it")


@contextmanager
def without_daemon(home: Path, *, again: bool = True) -> Iterator[bool]:
    """
    Stop the daemon, and keep it stopped during the block. Yields whether a daemon was up.

    After the block, the gateway itself restarts a daemon that it had started. With *again*, this function restarts a
    daemon that the gateway had not started.
    """
    from ..daemon import daemon_lock

    found = ask_daemon(home, "/health", {}, timeout_s=5)
    until = time.monotonic() + LOOK_FOR_S
    with ExitStack() as held:
        try:
            while True:
                try:
                    ask_daemon(home, "/stop", {}, timeout_s=10)
                    held.enter_context(daemon_lock(home))
                    break
                except OmgError as e:
                    # Locked: the daemon has not ended yet, or the gateway has started another. An error with a cause:
                    # the daemon ended during its answer.
                    if not isinstance(e, Locked) and e.__cause__ is None:
                        raise
                    if time.monotonic() > until:
                        raise OmgError(f"the daemon has not stopped yet; see {home / 'omg.log'}") from e
                    time.sleep(LOOK_EVERY_S)
            yield found is not None
        finally:
            held.close()
            if again and found and found.get("polled_s") is None:
                start_daemon(home)


@app.command("init")
def init_command(
    vault: Annotated[Path | None, Argument(help="Folder of the vault. Default: under the home.")] = None,
    identity: Annotated[str, Option(help="Whose vault it is.")] = "agent:main:main",
) -> None:
    """Make a home and a vault from the template. Existing files stay unchanged."""
    root = lay(vault, identity)
    print(
        f"home    {default_home()}\nvault   {root}\n"
        "Open the vault in Obsidian, or begin with `omg import FILE`."
    )


def lay(vault: Path | None, identity: str) -> Path:
    """
    Add the missing files of the template to a vault, and return the vault's folder.

    - *identity*: a session key such as "agent:main:main". Sessions with this key use the vault.
    - *vault*: a new path; the vault is first moved to this path. None: the vault is not moved.

    Raises BadInput if sessions with the key *identity* have no memory, or if *vault* cannot be used.
    """
    from ..identity import identity_of_session
    from ..worker.registry import lay_template

    config = configuration()
    who = identity_of_session(identity, links=config.identity.links)
    if who is None:
        raise BadInput(
            f"{identity!r} belongs to nobody, so it has no memory; give the session key of a person, such as agent:main:main"
        )
    if vault is not None:
        vault = Path(os.path.normpath(vault.expanduser().absolute()))
        # A running daemon would go on using the old folder.
        with without_daemon(config.home) if vault != config.vaults.get(who.key) else nullcontext():
            place_vault(config, who, vault)
    with opened_memory(vectors=False, make=True) as memory:
        graph = memory.graph(who)
        with graph.lock():
            lay_template(graph, again=True)
        memory.refresh(graph)
        return graph.vault.root


def place_vault(config: Config, who: Identity, vault: Path) -> None:
    """Make *vault* the vault of *who*, and move the notes of *who* there. Files already in *vault* stay."""
    from ..config import set_vault

    now = config.vaults.get(who.key, config.home / "graphs" / who.folder / "vault")
    if vault.exists() and not vault.is_dir():
        raise BadInput(f"{vault} is a file; name a folder for the vault")
    if now != vault and now.is_dir():
        if vault.is_dir() and any(vault.iterdir()):
            raise BadInput(
                f"the notes of {who.key} lie in {now}, and {vault} is not empty; name a new folder"
            )
        if vault.is_dir():
            vault.rmdir()
        vault.parent.mkdir(parents=True, exist_ok=True)
        shutil.move(now, vault)
    vault.mkdir(parents=True, exist_ok=True)
    set_vault(config.home, who.key, vault)


@app.command("serve")
def serve_command(
    with_parent: Annotated[
        bool,
        Option("--with-parent", help="Stop when standard input ends; the gateway's plugin uses this."),
    ] = False,
) -> None:
    """Run the daemon in the foreground."""
    from ..daemon import log_to, serve_home

    config = configuration()
    config.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    log_to(config.home / "omg.log")
    try:
        serve_home(config, with_parent=with_parent)
    except Locked as e:
        warn(str(e))  # a daemon is already up: no error


@app.command("up")
def up_command() -> None:
    """Start the daemon in the background, if none is up."""
    pid, fresh = ensured_daemon(configuration(existing_home()).home)  # a wrong configuration is named here
    print(f"up{'' if fresh else ' already'}, pid {pid}")


@app.command("down")
def down_command() -> None:
    """Stop the daemon. Pending messages are observed when a daemon runs again."""
    with without_daemon(existing_home(), again=False) as was_up:
        print("stopped" if was_up else "not running")


DryRunOption = Annotated[bool, Option("--dry-run", help="Say what would be done; change nothing.")]
HostArgument = Annotated[
    str | None,
    Argument(metavar="[HOST]", help="claude-code, codex, opencode or gemini. Default: OpenClaw."),
]


@app.command("install")
def install_command(
    host: HostArgument = None,
    dry_run: DryRunOption = False,
    nightly: Annotated[bool, Option(help="Add the nightly job.")] = True,
    context_engine: Annotated[
        bool | None,
        Option(
            help="Let OMG shorten long conversations as the context engine of OpenClaw, or (--no-context-engine) stop it."
        ),
    ] = None,
    identity: Annotated[
        str, Option("--identity", "-i", help="With HOST: the identity whose memory HOST gets.")
    ] = "agent:main:main",
    only: Annotated[
        str,
        Option(help="With HOST: `project` serves only the project's memory, and none of yours."),
    ] = "",
    yes: Annotated[bool, Option("--yes", "-y", help="With HOST: do not ask.")] = False,
) -> None:
    """Install OMG in OpenClaw, or in HOST. Running it again changes only what is wrong or missing."""
    home = default_home()
    if host:
        return install_into(host, home, identity=identity, only=only, yes=yes, dry_run=dry_run)
    from ..openclaw import install

    claw = install.find_openclaw()
    print_steps(install.install_plugin(claw, home, nightly=nightly), dry_run)
    if not dry_run:
        print_steps(install.prove_installation(claw, home))
    if context_engine or (context_engine is None and install.engine_folder(claw).exists()):
        print_steps(install.install_engine(claw, home), dry_run)
    elif context_engine is False:
        print_steps(install.remove_engine(claw, home), dry_run)


def print_steps(steps: Iterable[Step], dry_run: bool = False) -> None:
    """Carry out and print each step; with *dry_run* only print it."""
    from ..hosts.install import carried_out

    for step in carried_out(steps, dry_run=dry_run):
        mark = "·" if not step.changed else "would:" if dry_run else "✓"
        print(f"{mark} {step.what}" + (f"\n    {step.note}" if step.note else ""), flush=True)


@app.command("uninstall")
def uninstall_command(host: HostArgument = None, dry_run: DryRunOption = False) -> None:
    """Remove OMG from OpenClaw, or from HOST. Your vaults stay."""
    home = default_home()
    if host:
        from ..hosts.install import host_named, uninstall_host

        return print_steps(uninstall_host(host_named(host), home), dry_run)
    from ..openclaw.install import find_openclaw, remove_engine, uninstall_plugin

    claw = find_openclaw()
    print_steps(remove_engine(claw, home), dry_run)
    print_steps(uninstall_plugin(claw, home), dry_run)


@app.command("doctor")
def doctor_command(
    fix: Annotated[bool, Option("--fix", help="Repair what is safe to repair.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Find what is wrong, and say how to repair it. Exit code 1 if anything fails."""
    from ..errors import GatewayError
    from ..openclaw.doctor import examine_home, mend_findings
    from ..openclaw.install import find_openclaw

    try:
        claw = find_openclaw()
    except GatewayError:
        claw = None
    with opened_memory(vectors=False) as memory:
        findings = list(examine_home(memory, claw))
        mended = mend_findings(findings) if fix else []
        lines = [f.line() for f in findings] + mended
        print_value({"findings": [f.value() for f in findings], "mended": mended}, as_json, "\n".join(lines))
    if any(f.level == "fail" and not (fix and f.fix) for f in findings):
        raise typer.Exit(1)


identity_app = typer.Typer(help="Whose memory is whose.", no_args_is_help=True)

app.add_typer(identity_app, name="identity")


@identity_app.command("list")
def list_command(as_json: JsonFlag = False) -> None:
    """List every identity that has a memory."""
    with opened_memory(vectors=False) as memory:
        rows: list[dict[str, Any]] = [
            {
                "key": g.identity.key,
                "scope": g.identity.scope,
                "notes": sum(e.path.startswith("nodes/") for e in g.index.entries()),
                "vault": str(g.vault.root),
            }
            for g in memory.registry.graphs()
        ]
        lines = [
            f"{r['key']}  ({r['scope']}, {how_many(r['notes'], 'note')})\n    {r['vault']}" for r in rows
        ]
        print_value(rows, as_json, "\n".join(lines) or "none yet")


@identity_app.command("join")
def join_command(
    name: Annotated[str, Argument(help="A name for the person; `owner` means yourself.")],
    accounts: Annotated[list[str], Argument(help="The accounts, each as channel:sender.")],
) -> None:
    """Join several accounts of one person, and their memories."""
    from ..curate import join_accounts

    with without_daemon(default_home()), opened_memory(vectors=False) as memory:
        moves = join_accounts(memory.registry, name, accounts)
        print(f"{name}: {', '.join(accounts)}")
        for old, new in moves:
            print(f"    {old} -> {new}")


@identity_app.command("move")
def move_command(
    old: Annotated[str, Argument(help="Whose memory, as `omg identity list` shows it.")],
    new: Annotated[str, Argument(help="The session key that gets the memory.")],
) -> None:
    """Move a memory to another session key, for example after a change of session.dmScope."""
    from ..curate import move_identity

    with without_daemon(default_home()), opened_memory(vectors=False) as memory:
        print(f"{old} -> {new}\n    {move_identity(memory.registry, old, new)}")


schedule_app = typer.Typer(
    help="Without a gateway: let the operating system run the nightly job and start the daemon at login.",
    no_args_is_help=True,
)
app.add_typer(schedule_app, name="schedule")


@schedule_app.command("install")
def install_schedule_command(dry_run: DryRunOption = False) -> None:
    """Run the nightly job at 04:20 and start the daemon at login: by systemd, launchd, or your crontab."""
    from ..hosts.timers import install_timers

    print_steps(install_timers(existing_home()), dry_run)


@schedule_app.command("show")
def show_schedule_command() -> None:
    """Show what is installed: files, or lines of your crontab."""
    from ..hosts.timers import installed

    print(
        "\n".join(installed(existing_home()))
        or "nothing is installed; `omg schedule install` adds the nightly job and the start at login"
    )


@schedule_app.command("remove")
def remove_schedule_command(dry_run: DryRunOption = False) -> None:
    """Remove the nightly job and the start at login."""
    from ..hosts.timers import remove_timers

    print_steps(remove_timers(existing_home()), dry_run)


# --- Other assistants: installing, projects, MCP, and what the assistant proposed.


def install_into(host: str, home: Path, *, identity: str, only: str, yes: bool, dry_run: bool) -> None:
    from ..hosts.install import host_named, install_host

    client = host_named(host)
    if only not in ("", "project"):
        raise BadInput(f"--only {only!r}: write `project`, or leave out --only")
    notes = "none of your notes" if only else f"the notes of {identity}"
    asked = f"{client.title} will get {notes}. In a project's folder it will get the notes of that project. Go on?"
    if not (yes or dry_run or typer.confirm(asked)):
        raise typer.Exit(1)
    print_steps(install_host(client, home, identity=identity, only=only), dry_run)
    if not dry_run and (daemon := ensured_daemon(home))[1]:
        print(f"✓ the daemon is up, pid {daemon[0]}")


project_app = typer.Typer(help="The memory of a project.", no_args_is_help=True)
app.add_typer(project_app, name="project")

FolderOption = Annotated[Path, Option("--in", help="A folder of the project; default: this one.")]
PersonOption = Annotated[str, Option("--identity", "-i", help="Whose project.")]


@project_app.command("show")
def show_command(folder: FolderOption = Path(), identity: PersonOption = "agent:main:main") -> None:
    """Show whose memory is read and written in a folder."""
    from ..hosts.sessions import project_of

    print(project_of(default_home(), identity, folder.absolute()) or f"{identity} (in no git repository)")


@project_app.command("join")
def join_project_command(
    other: Annotated[Path, Argument(help="A folder of the other checkout.")],
    folder: FolderOption = Path(),
    identity: PersonOption = "agent:main:main",
    yes: Annotated[bool, Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Let this checkout share the memory of another checkout of the same project."""
    from ..hosts.sessions import join_project

    asked = f"What is said in {folder.absolute()} will go into the memory of {other.absolute()}. Go on?"
    if not yes and not typer.confirm(asked):
        raise typer.Exit(1)
    print(join_project(default_home(), identity, folder.absolute(), other.absolute()))


def ensure_daemon(home: Path) -> None:
    with suppress(OmgError):
        ensured_daemon(home)


@app.command("mcp")
def mcp_command(
    host: Annotated[
        str, Option(help="Serve the memory that was chosen when OMG was installed in this client.")
    ] = "",
    http: Annotated[int | None, Option(help="Serve on this loopback port, with a token.")] = None,
) -> None:
    """Serve the memory to an MCP client: over stdio, or on a loopback port."""
    from ..hosts.mcp import daemon_asker, make_server, run_http, served_identities, token_of

    home = default_home()
    folder = Path.cwd() if http is None else None
    ask = daemon_asker(home, *served_identities(home, host, folder), start_daemon)
    if http is None:
        # This starts the daemon after a restart of the machine, because a hook starts no process.
        threading.Thread(target=ensure_daemon, args=(home,), daemon=True).start()
        make_server(ask).run()
        return
    print(f"http://127.0.0.1:{http}/mcp with the header Authorization: Bearer {token_of(home)}", flush=True)
    run_http(ask, home, http)


@app.command("confirm")
def confirm_command(
    note: Annotated[
        str | None, Argument(help="A note that an assistant proposed. Default: list all such notes.")
    ] = None,
    identity: IdentityOption = None,
) -> None:
    """Accept a note that an assistant proposed. From then on the note counts as your own word."""
    from ..curate import confirm_note
    from ..plan.corrections import proposed_notes

    with opened_memory(vectors=False) as memory:
        graph = memory.find(identity)
        if note is None:
            lines = [f"{entry.path}  {entry.description}" for entry in proposed_notes(graph)]
            return print("\n".join(lines) or "nothing waits to be confirmed")
        memory.refresh(graph)
        done = confirm_note(graph, note, memory.clock())
        print(f"{done.path} now counts as your own word; `omg undo {done.cycle}` undoes this")
