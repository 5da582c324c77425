"""The distribution: it is whole, has one version, is fit for an index, and comes out the same each time."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest
from three_commands import ANSWER, three_commands

REPOSITORY = Path(__file__).parent.parent
MANIFESTS = ("package.json", "openclaw.plugin.json", "plugin.json", "gemini-extension.json")


def run(*argv: object, cwd: Path, **more: str) -> str:
    env = {**os.environ, **more}
    done = subprocess.run([*map(str, argv)], cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def archives(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*.whl"), *folder.glob("*.tar.gz")])


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with our wheel and source archive."""
    folder: Path = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=REPOSITORY)
    return folder


def test_two_builds_have_the_same_bytes(built, tmp_path):
    run(sys.executable, "-m", "hatchling", "build", "-d", tmp_path, cwd=REPOSITORY)
    first, second = (
        {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in archives(folder)}
        for folder in (built, tmp_path)
    )
    assert len(first) == 2 and first == second


def test_the_distribution_passes_the_checks_of_a_package_index(built):
    assert "PASSED" in run(sys.executable, "-m", "twine", "check", "--strict", *archives(built), cwd=built)


def test_every_manifest_has_the_version_of_the_package():
    found = [file for name in MANIFESTS for file in (REPOSITORY / "hooks").rglob(name)]
    assert len(found) >= 5
    assert {json.loads(file.read_text())["version"] for file in found} == {version("omg-memory")}


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory) -> Path:
    """An environment with our wheel; its packages are those of this environment."""
    venv, (wheel,) = tmp_path_factory.mktemp("i") / "venv", built.glob("*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", venv, cwd=built)
    python = venv / "bin/python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-index")
    run(*pip, wheel, cwd=built)
    (site,) = venv.glob("lib/*/site-packages")
    others = [place for place in sys.path if Path(place).name == "site-packages"]
    (site / "packages.pth").write_text("\n".join(others))
    return venv


def test_a_python_program_has_memory_in_its_prompt_two_commands_after_the_install(installed, tmp_path):
    path = f"{installed / 'bin'}:{os.environ['PATH']}"
    home = {"HOME": str(tmp_path), "OMG_HOME": "", "PATH": path, "PYTHONPATH": ""}
    _, *commands = three_commands("A Python program")
    began = time.monotonic()
    told = [run("sh", "-c", command, cwd=tmp_path, **home) for command in commands]
    assert ANSWER in told[-1]
    assert time.monotonic() - began < 20  # 1.1 s where nothing else runs


def test_the_wheel_works_where_there_is_no_checkout(installed, tmp_path):
    """The demo, a vault from the template and the skill."""
    python, omg = installed / "bin/python", installed / "bin/omg"
    (site,) = installed.glob("lib/*/site-packages")
    home = {"OMG_HOME": str(tmp_path / "home"), "PYTHONPATH": ""}
    assert "four prompts" in run(omg, "demo", "--folder", tmp_path / "demo", cwd=tmp_path, **home)
    run(omg, "init", tmp_path / "vault", cwd=tmp_path, **home)
    assert (tmp_path / "vault/index.md").exists()
    assert list((site / "omg/_share/skills").rglob("SKILL.md"))
    # pip compiles hooks/container/health.py: what is beside the plugin's files is not read
    files = (
        "from omg.openclaw.install import engine_files, plugin_files; print(*plugin_files(), *engine_files())"
    )
    plugin = run(python, "-c", files, cwd=tmp_path, **home).split()
    assert {"index.js", "skills/observational-memory-graph/SKILL.md", "daemon.js"} <= set(plugin)
    assert list((site / "omg/_share/hooks").rglob("*.pyc"))
    where = run(python, "-c", "import omg; print(omg.__file__)", cwd=tmp_path, PYTHONPATH="")
    assert str(site) in where
