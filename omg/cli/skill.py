"""The skill without the plugin: for an agent that keeps its notes by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..config.file import load_config
from ..errors import BadInput
from .base import app

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
    from ..openclaw.skill import default_workspace, put_skill
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
