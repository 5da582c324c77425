"""The skill without the plugin: for an agent that keeps its notes by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .. import config as configuration
from ..errors import BadInput
from .base import app

skill = typer.Typer(help="The skill, for an agent without the plugin.", no_args_is_help=True)
app.add_typer(skill, name="skill")

NAME = "observational-memory-graph"


@skill.callback()
def of_the_skill() -> None:
    """The skill, for an agent without the plugin."""


@skill.command(name="install")
def install_skill(
    workspace: Annotated[
        Path | None,
        typer.Argument(help="The agent's folder. Default: the workspace of OpenClaw's first agent."),
    ] = None,
) -> None:
    """Put the skill and a vault where an agent that has no hooks finds them; what is there already stays."""
    from .. import identity as identities
    from .. import skill as putting
    from . import lay

    config = configuration.load()
    root = workspace.expanduser().absolute() if workspace else putting.default_workspace(config.home)
    print(f"skill   {putting.put(root)}")
    who = identities.of("agent:main:main", links=config.identity.links)
    assert who is not None
    vault = root / "memory" / "omg"
    now = config.vaults.get(who.key, config.home / "graphs" / who.folder / "vault")
    if now != vault and now.is_dir():
        raise BadInput(
            f"your notes lie in {now}, and the skill looks for them in {vault}; `omg init {vault}` moves them there"
        )
    print(f"vault   {lay(vault, 'agent:main:main')}")
