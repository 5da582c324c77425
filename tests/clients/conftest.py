"""The clients come from npm (`make test-clients`); without them all of these tests are skipped, and one line says so."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from client import CLIENTS, Client
from scripted_model import ScriptedModel

PROGRAMS = os.environ.get("OMG_CLIENTS", "")  # now: before a fixture empties the environment
MISSING = "" if PROGRAMS and Path(PROGRAMS).is_dir() else "no clients; run `make test-clients`"

Connect = Callable[..., Client]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if MISSING:
        terminalreporter.write_line(f"CLIENT TESTS SKIPPED: {MISSING}", red=True, bold=True)


@pytest.fixture(scope="module")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connect]:
    """Makes a client in an empty home, OMG installed in it; at the end of the module its daemon is stopped."""
    if MISSING:
        pytest.skip(MISSING)
    with ExitStack() as stack:

        def make(name: str, *args: str, omg: Path | None = None, install: bool = True) -> Client:
            root = tmp_path_factory.mktemp("c")
            model = stack.enter_context(ScriptedModel(root / "requests.jsonl"))
            made = CLIENTS[name](Path(PROGRAMS).absolute(), root, omg or root / "omg", model)
            made.prepare()
            if install:
                made.install(*args)
                stack.callback(made.omg_command, "down", check=False)
            return made

        yield make
