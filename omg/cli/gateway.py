"""Commands around OpenClaw: the daemon, installing, the doctor, identities."""

from __future__ import annotations

import sys
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..config import load_config
from ..errors import BadInput, Locked
from ..plural import how_many
from .base import JsonFlag, app, existing_home, opened_memory, print_value
from .daemon import start_daemon, stop_daemon, without_daemon

if TYPE_CHECKING:
    from ..hosts.install import Step


@app.command("serve")
def serve_command(
    with_parent: Annotated[
        bool,
        typer.Option(
            "--with-parent", help="Stop when standard input ends, as the gateway's plugin needs it."
        ),
    ] = False,
) -> None:
    """Run the daemon in the foreground."""
    from ..daemon.daemon import log_to, serve_home

    config = load_config()
    config.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    log_to(config.home / "omg.log")
    try:
        serve_home(config, with_parent=with_parent)
    except Locked as e:
        print(f"omg: {e}", file=sys.stderr)  # there is one, and that is all that was wanted


@app.command("up")
def up_command() -> None:
    """Start the daemon in the background, if none is up."""
    from ..client import ask_daemon

    home = load_config(existing_home()).home
    if found := ask_daemon(home, "/health", {}, timeout_s=5):
        print(f"up already, pid {found['pid']}")
        return
    print(f"up, pid {start_daemon(home)}")


@app.command("down")
def down_command() -> None:
    """Stop the daemon; what is pending stays pending."""
    print("stopped" if stop_daemon(load_config(existing_home()).home) else "not running")


HostArgument = Annotated[
    str | None,
    typer.Argument(metavar="[HOST]", help="claude-code, codex, opencode or gemini; nothing for OpenClaw."),
]


@app.command("install")
def install_command(
    host: HostArgument = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say each step; change nothing.")] = False,
    nightly: Annotated[bool, typer.Option(help="Add the nightly job.")] = True,
    context_engine: Annotated[
        bool | None,
        typer.Option(help="Have OMG put long contexts together, as OpenClaw's context engine; or no more."),
    ] = None,
    identity: Annotated[
        str, typer.Option("--identity", "-i", help="With HOST: whose memory it serves.")
    ] = "agent:main:main",
    only: Annotated[
        str,
        typer.Option(help="With HOST: `project` serves a project's memory alone, nothing of the person's."),
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="With HOST: do not ask.")] = False,
) -> None:
    """Put OMG into OpenClaw, or into HOST. Running it again changes nothing that is right already."""
    if host:
        from .hosts import install_into

        return install_into(host, identity=identity, only=only, yes=yes, dry_run=dry_run)
    from ..openclaw.gateway import find_openclaw
    from ..openclaw.install import engine_folder, install_engine, install_plugin, remove_engine

    claw, home = find_openclaw(), load_config().home
    steps = [install_plugin(claw, home, dry_run=dry_run, nightly=nightly)]
    if context_engine or (context_engine is None and engine_folder(claw).exists()):
        steps.append(install_engine(claw, home, dry_run=dry_run))
    elif context_engine is False:
        steps.append(remove_engine(claw, home, dry_run=dry_run))
    for step in chain.from_iterable(steps):
        print_step(step, dry_run)


def print_step(step: Step, dry_run: bool) -> None:
    mark = "·" if not step.changed else "would:" if dry_run else "✓"
    print(f"{mark} {step.what}" + (f"\n    {step.note}" if step.note else ""), flush=True)


@app.command("uninstall")
def uninstall_command(
    host: HostArgument = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say each step; change nothing.")] = False,
) -> None:
    """Take OMG out of OpenClaw, or out of HOST. Your vaults stay."""
    if host:
        from .hosts import take_out_of

        return take_out_of(host, dry_run=dry_run)
    from ..openclaw.gateway import find_openclaw
    from ..openclaw.install import remove_engine, uninstall_plugin

    claw, home = find_openclaw(), load_config().home
    for out in (remove_engine, uninstall_plugin):
        for step in out(claw, home, dry_run=dry_run):
            print_step(step, dry_run)


@app.command("doctor")
def doctor_command(
    fix: Annotated[bool, typer.Option("--fix", help="Mend what is safe to mend.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Find what is wrong, and say how to mend it. Exit code 1 if anything fails."""
    from ..errors import GatewayError
    from ..openclaw.doctor.run import examine_home, mend_findings
    from ..openclaw.gateway import find_openclaw

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
    """Every identity that has a graph."""
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
        print_value(
            rows,
            as_json,
            "\n".join(
                f"{r['key']}  ({r['scope']}, {how_many(r['notes'], 'note')})\n    {r['vault']}" for r in rows
            )
            or "none yet",
        )


@identity_app.command("join")
def join_command(
    name: Annotated[str, typer.Argument(help="A name for the person; `owner` means yourself.")],
    accounts: Annotated[list[str], typer.Argument(help="Who they are, as channel:sender.")],
) -> None:
    """Make several accounts one person, and their memories one."""
    from ..curate import join_accounts

    with without_daemon(load_config().home), opened_memory(vectors=False) as memory:
        moves = join_accounts(memory.registry, name, accounts)
        print(f"{name}: {', '.join(accounts)}")
        for old, new in moves:
            print(f"    {old} -> {new}")


@identity_app.command("move")
def move_command(
    old: Annotated[str, typer.Argument(help="Whose memory, as `omg identity list` shows it.")],
    new: Annotated[str, typer.Argument(help="The session key it belongs to from now on.")],
) -> None:
    """Carry a memory over to another session key, as after a change of session.dmScope."""
    from ..curate import move_identity

    with without_daemon(load_config().home), opened_memory(vectors=False) as memory:
        print(f"{old} -> {new}\n    {move_identity(memory.registry, old, new)}")


# --- The skill without the plugin: for an agent that keeps its notes by hand.


skill_app = typer.Typer(help="The skill, for an agent without the plugin.", no_args_is_help=True)

app.add_typer(skill_app, name="skill")


@skill_app.callback()
def skill_callback() -> None:
    """The skill, for an agent without the plugin."""


@skill_app.command(name="install")
def install_skill_command(
    workspace: Annotated[
        Path | None,
        typer.Argument(help="The agent's folder. Default: the workspace of OpenClaw's first agent."),
    ] = None,
) -> None:
    """Put the skill and a vault where an agent that has no hooks finds them; what is there already stays."""
    from ..identity import identity_of_session
    from ..openclaw.install import default_workspace, put_skill
    from .conversations import lay

    config = load_config()
    root = workspace.expanduser().absolute() if workspace else default_workspace(config.home)
    who = identity_of_session("agent:main:main", links=config.identity.links)
    assert who is not None
    vault = root / "memory" / "omg"
    now = config.vaults.get(who.key, config.home / "graphs" / who.folder / "vault")
    if now != vault and now.is_dir():
        raise BadInput(
            f"your notes lie in {now}, and the skill looks for them in {vault}; `omg init {vault}` moves them there"
        )
    print(f"skill   {put_skill(root)}")
    print(f"vault   {lay(vault, 'agent:main:main')}")
