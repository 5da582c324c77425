"""The first day, as docs/first-day.md tells it to a new user: every command is run, and prints what the page shows."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from shell import omg_here

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "first-day.md"
PLAIN = re.compile(r"omg (?!init\b)[^|&;<>$`*~]+")  # that a shell does no more for than to part its words


def steps(page: str) -> Iterator[tuple[str, str]]:
    """`(command, output)` of the console blocks: "$ " begins a command, "> " continues it."""
    for block in re.findall(r"^```console\n(.*?)^```$", page, re.M | re.S):
        command, output = "", []
        for line in block.splitlines():
            if line.startswith("$ "):
                if command:
                    yield command, "\n".join(output)
                command, output = line[2:], []
            elif line.startswith("> ") and not output:
                command += "\n" + line[2:]
            else:
                output.append(line)
        yield command, "\n".join(output)


def pattern(shown: str) -> str:
    """A line that is only … stands for any number of lines, any other … for some of a line."""
    lines = []
    for line in shown.splitlines():
        if line == "…":
            lines.append(r"(?:.*\n)*?")
        else:
            lines.append(".*?".join(map(re.escape, line.split("…"))) + r"\n")
    return "".join(lines)


@pytest.fixture
def shell(tmp_path, monkeypatch):
    """Runs a line of bash as a new user would, `omg` being the command under test; in this process where that is all."""
    monkeypatch.setenv("COLUMNS", "120")
    (tmp_path / "home").mkdir()
    (tmp_path / "bin").mkdir()
    command = tmp_path / "bin" / "omg"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m omg.cli "$@"\n')
    command.chmod(0o755)
    path = f"{command.parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "COLUMNS": "120"}

    def run(line):
        if PLAIN.fullmatch(line):
            here = omg_here(*shlex.split(line)[1:], cwd=tmp_path / "home")
            return here.stdout + here.stderr
        done = subprocess.run(
            ["bash", "-c", line],
            env=env,
            cwd=tmp_path / "home",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.stdout

    return run


def test_the_commands_of_the_first_day_print_what_its_page_shows(shell):
    done = 0
    for command, shown in steps(PAGE.read_text(encoding="utf-8")):
        printed = shell(command)
        printed += "" if not printed or printed.endswith("\n") else "\n"
        assert re.fullmatch(pattern(shown), printed), f"$ {command}\n{printed}\nthe page shows:\n{shown}"
        done += 1
    assert done > 25
