"""`openclaw skills` on what we ship: the gateway's own word that an agent will be shown the skill."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from gateway import Installed, found

SKILL = Path(__file__).parents[2] / "skills/observational-memory-graph"
INSTALLED = found(os.environ)  # now: no test sees the environment that pytest was started in

pytestmark = pytest.mark.gateway


def test_openclaw_lists_the_skill_as_ready(tmp_path: Path) -> None:
    if not isinstance(INSTALLED, Installed):
        pytest.skip(INSTALLED)
    skills = tmp_path / "workspace" / "skills"
    shutil.copytree(SKILL, skills / SKILL.name)  # a link out of the workspace is skipped ("symlink-escape")
    settings = {"agents": {"defaults": {"workspace": str(tmp_path / "workspace"), "skipBootstrap": True}}}
    (tmp_path / "openclaw.json").write_text(json.dumps(settings), encoding="utf-8")
    done = subprocess.run(
        [INSTALLED.node, INSTALLED.openclaw, "skills", "info", SKILL.name, "--json"],
        env={**os.environ, "OPENCLAW_STATE_DIR": str(tmp_path), "OPENCLAW_DISABLE_BONJOUR": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout[done.stdout.index("{") :])
    assert told["eligible"] is True
    assert told["modelVisible"] is True
