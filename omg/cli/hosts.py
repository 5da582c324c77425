"""Commands for other assistants: install, projects, and what the assistant proposed."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from ..config import load_config
from ..errors import BadInput, OmgError
from .base import IdentityOption, app, opened_memory
from .daemon import start_daemon


def install_into(host: str, *, identity: str, only: str, yes: bool, dry_run: bool) -> None:
    from ..client import ask_daemon
    from ..hosts.install import host_named, install_host
    from .gateway import print_step

    client, home = host_named(host), load_config().home
    if only not in ("", "project"):
        raise BadInput(f"--only {only!r}: write `project`, or leave it out")
    private = "nothing of the person's notes" if only else f"the notes of {identity}"
    asked = f"{client.title} will be given {private}, and each project's to those who work in it. Go on?"
    if not (yes or dry_run or typer.confirm(asked)):
        raise typer.Exit(1)
    for step in install_host(client, home, identity=identity, only=only, dry_run=dry_run):
        print_step(step, dry_run)
    if not dry_run and ask_daemon(home, "/health", {}, timeout_s=5) is None:
        print(f"✓ the daemon is up, pid {start_daemon(home)}")


def take_out_of(host: str, *, dry_run: bool) -> None:
    from ..hosts.install import host_named, uninstall_host
    from .gateway import print_step

    for step in uninstall_host(host_named(host), load_config().home, dry_run=dry_run):
        print_step(step, dry_run)


project_app = typer.Typer(help="The memory of a project, which is its own.", no_args_is_help=True)
app.add_typer(project_app, name="project")

FolderOption = Annotated[Path, typer.Option("--in", help="A folder of the project; default: this one.")]
PersonOption = Annotated[str, typer.Option("--identity", "-i", help="Whose project.")]


@project_app.command("show")
def show_command(folder: FolderOption = Path(), identity: PersonOption = "agent:main:main") -> None:
    """Whose memory is written to and read in a folder."""
    from ..hosts.sessions import project_of

    print(project_of(load_config().home, identity, folder.absolute()) or f"{identity} (in no git repository)")


@project_app.command("join")
def join_project_command(
    other: Annotated[Path, typer.Argument(help="A folder of the other checkout.")],
    folder: FolderOption = Path(),
    identity: PersonOption = "agent:main:main",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Let this checkout share the memory of another one of the same project."""
    from ..hosts.sessions import join_project

    asked = f"What is said in {folder.absolute()} will go into the memory of {other.absolute()}. Go on?"
    if not yes and not typer.confirm(asked):
        raise typer.Exit(1)
    print(join_project(load_config().home, identity, folder.absolute(), other.absolute()))


def ensure_daemon(home: Path) -> None:
    from ..client import ask_daemon

    with suppress(OmgError):
        if ask_daemon(home, "/health", {}, timeout_s=5) is None:
            start_daemon(home)


@app.command("mcp")
def mcp_command(
    host: Annotated[str, typer.Option(help="Whose memory: as installed for this client.")] = "",
    http: Annotated[int | None, typer.Option(help="Serve on this loopback port, with a token.")] = None,
) -> None:
    """Serve the memory to an MCP client: over stdio, or on a loopback port."""
    from ..hosts.mcp import daemon_asker, run_http, run_stdio, served_identities, token_of

    home = load_config().home
    folder = Path.cwd() if http is None else None
    ask = daemon_asker(home, *served_identities(home, host, folder), start_daemon)
    if http is None:
        # This starts the daemon after a restart of the machine, because a hook starts no process.
        threading.Thread(target=ensure_daemon, args=(home,), daemon=True).start()
        return run_stdio(ask)
    print(f"http://127.0.0.1:{http}/mcp with the header Authorization: Bearer {token_of(home)}", flush=True)
    run_http(ask, home, http)


@app.command("confirm")
def confirm_command(
    note: Annotated[str | None, typer.Argument(help="What an assistant proposed; nothing: list all.")] = None,
    identity: IdentityOption = None,
) -> None:
    """Make what an assistant proposed your own word."""
    from ..hosts.answers import confirm_note
    from ..plan.corrections import proposed_notes

    with opened_memory(vectors=False) as memory:
        graph = memory.find(identity)
        if note is None:
            lines = [f"{entry.path}  {entry.description}" for entry in proposed_notes(graph)]
            print("\n".join(lines) or "nothing waits to be confirmed")
            return
        memory.refresh(graph)
        done = confirm_note(graph, note, memory.clock())
        print(f"{done.path} is yours; `omg undo {done.cycle}` takes it back")
