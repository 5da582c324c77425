"""
The skill in an agent's workspace, for one that has no hooks: `omg skill install`.

With the plugin it is not needed, which brings its own. One rule: a page that is there and is not ours as shipped may
be a person's, and stays.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from ..config.agents import configured, configured_agents, workspace_of
from ..config.file import shipped_folder
from ..errors import BadInput

SKILL_FOLDER = "observational-memory-graph"


def default_workspace(home: Path) -> Path:
    """Of OpenClaw's first agent. Raises BadInput where there is no OpenClaw."""
    if (found := configured(home)) is None:
        raise BadInput("no OpenClaw is set up here; name the agent's folder: omg skill install WORKSPACE")
    config, state = found
    return workspace_of(config, configured_agents(config)[0], state)


def put_skill(root: Path) -> Path:
    """Copy the skill below *root*; returns its folder. Raises BadInput, naming the pages, where others are there."""
    source, target = shipped_folder("skills") / SKILL_FOLDER, root / "skills" / SKILL_FOLDER
    pages = {p.relative_to(source): p for p in source.rglob("*") if p.is_file()}
    other = [
        n for n, p in pages.items() if (target / n).exists() and (target / n).read_bytes() != p.read_bytes()
    ]
    for name, page in pages.items():
        if name not in other:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(page, target / name)
    if other:
        named = ", ".join(sorted(map(str, other)))
        raise BadInput(
            f"{target}: {named}: not as this version ships it, and left; move it away and run this again"
        )
    return target
