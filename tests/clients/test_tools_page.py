"""docs/tools.md as a new user runs it, in an empty home with the real Claude Code."""

from __future__ import annotations

import re
import subprocess

import pytest
from client import REPOSITORY

from tests.clients.conftest import Connect
from tests.test_first_day import pattern, steps

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]


def test_every_command_on_the_tools_page_prints_the_output_that_the_page_shows(connect: Connect) -> None:
    client = connect("claude-code", install=False)
    work = client.root / "work"
    work.mkdir()
    for command, shown in steps((REPOSITORY / "docs" / "tools.md").read_text("utf-8")):
        done = subprocess.run(
            ["bash", "-c", command], cwd=work, env=client.env, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, (command, done.stdout, done.stderr)
        assert re.fullmatch(pattern(shown), done.stdout), (
            f"$ {command}\n{done.stdout}\n--- the page has:\n{shown}"
        )
