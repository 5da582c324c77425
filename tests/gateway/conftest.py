"""
What every gateway test stands on. Node or OpenClaw missing: all are skipped, and one line says what to do.

A module's tests share one gateway, since a boot costs 17–27 seconds. Each passes alone and in any order: what it needs is
brought about by itself or a fixture, also where another test has taken it away.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from agent_model import agent
from gateway import Gateway, Installed, found
from openai_server import OpenAIServer
from telegram import Telegram

FOUND = found(os.environ)  # now: before a fixture empties the environment

Boot = Callable[..., Gateway]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if isinstance(FOUND, str):
        terminalreporter.write_line(f"GATEWAY TESTS SKIPPED: {FOUND}", red=True, bold=True)


@pytest.fixture(scope="session")
def installed() -> Installed:
    if isinstance(FOUND, str):
        pytest.skip(FOUND)
    return FOUND


@pytest.fixture(scope="module")
def provider(installed: Installed) -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        server.always(agent)
        yield server


@pytest.fixture(scope="module")
def telegram(installed: Installed) -> Iterator[Telegram]:
    with Telegram() as server:
        yield server


@pytest.fixture(scope="module")
def boot(
    installed: Installed, provider: OpenAIServer, telegram: Telegram, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Boot]:
    """Makes a gateway, not yet started; whatever is left of it when the module is done is ended."""
    with ExitStack() as stack:

        def make(**options: Any) -> Gateway:
            folder = tmp_path_factory.mktemp("gw")
            made = Gateway(installed, folder, provider.base, telegram.base, **options)
            return stack.enter_context(made)

        yield make
