"""The clients come from npm (`make test-clients`); without them all of these tests are skipped, and one line says so."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from venv import EnvBuilder

import pytest
from client import CLIENTS, REPOSITORY, Client
from scripted_model import ScriptedModel

from omg.config import Config
from omg.memory import MAIN, Memory

CACHE = os.environ.get("OMG_CLIENTS", "")  # now: before a fixture empties the environment
MISSING = (
    "run `make test-clients`" if not CACHE
    else "" if (Path(CACHE) / ".ready").exists()
    else f"npm could not install the clients into {CACHE}"
)  # fmt: skip

Connect = Callable[..., Client]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if MISSING:
        terminalreporter.write_line(f"CLIENT TESTS SKIPPED: {MISSING}", red=True, bold=True)


@pytest.fixture(scope="session")
def from_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with our wheel; its dependencies are those of this one."""
    folder = tmp_path_factory.mktemp("w")
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    built = ["wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), str(REPOSITORY)]
    subprocess.run([*pip, *built], check=True, capture_output=True)
    EnvBuilder(symlinks=True).create(folder / "venv")
    python = folder / "venv" / "bin" / "python"
    (wheel,) = folder.glob("*.whl")
    put = ["--python", str(python), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([*pip, *put], check=True, capture_output=True)
    (site,) = (folder / "venv" / "lib").glob("python*/site-packages")
    others = [place for place in sys.path if Path(place).name == "site-packages"]
    (site / "dependencies.pth").write_text("\n".join(others))
    return python


def remember(home: Path, text: str, whose: str = MAIN) -> None:
    with Memory(Config(home=home), embed=None) as memory:
        memory.capture([{"role": "user", "content": text}], session=whose)
        memory.observe()


@pytest.fixture
def connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connect]:
    """Makes a client in an empty home, OMG installed in it; at the end its daemon is stopped."""
    if MISSING:
        pytest.skip(MISSING)
    with ExitStack() as stack:

        def make(
            name: str,
            *args: str,
            omg: Path | None = None,
            install: bool = True,
            remembers: Iterable[str] = (),
            python: Path = Path(sys.executable),
        ) -> Client:
            root = tmp_path_factory.mktemp("c")
            model = stack.enter_context(ScriptedModel(root / "requests.jsonl"))
            made = CLIENTS[name](Path(CACHE).absolute(), root, omg or root / "omg", model, python=python)
            made.prepare()
            for text in remembers:
                remember(made.omg, text)
            if install:
                made.install(*args)
                stack.callback(made.omg_command, "down", check=False)
            return made

        yield make
