"""
No test sees this machine: not its home, not its keys, not the network beyond loopback.

A test that needs a model has `openai_server`; one that needs a state folder has $OMG_HOME, in its tmp_path.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from openai_server import OpenAIServer

from omg.config import Config, Observation
from omg.llm.child import Child
from omg.memory import Memory

settings.register_profile("shared", deadline=None)  # the machine has other work
settings.load_profile("shared")

# Where a client in a child process, which our guard cannot reach, is sent: nobody listens on port 9.
NOWHERE = {
    "http_proxy": "http://127.0.0.1:9",
    "https_proxy": "http://127.0.0.1:9",
    "no_proxy": "127.0.0.1,localhost",
}
OURS = ("OMG_", "OPENCLAW_", "LITELLM_", "HF_", "XDG_")
SECRETS = ("_API_KEY", "_API_BASE", "_BASE_URL", "_AUTH_TOKEN")


def pytest_configure(config: pytest.Config) -> None:
    """Where tests run side by side, let them write to memory, if there is room: half of their time is the disk's."""
    if getattr(config.option, "numprocesses", None) and "TMPDIR" not in os.environ and roomy("/dev/shm"):
        os.environ["TMPDIR"], tempfile.tempdir = "/dev/shm", None


def roomy(folder: str) -> bool:
    """Whether *folder* has 2 GB to spare, and programs may be run from it."""
    try:
        there = os.statvfs(folder)
    except OSError:
        return False
    return there.f_bavail * there.f_frsize > 2_000_000_000 and not there.f_flag & os.ST_NOEXEC


@pytest.fixture(scope="session", autouse=True)
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Before any other fixture: an empty home, no keys, no way out."""
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ:
            if name.startswith(OURS) or name.endswith(SECRETS) or name.lower() == "all_proxy":
                patch.delenv(name)
        for name, value in NOWHERE.items():
            patch.setenv(name, value)
            patch.setenv(name.upper(), value)
        shut(patch)
        home = tmp_path_factory.mktemp("home")
        patch.setenv("HOME", str(home))
        patch.setenv("OMG_HOME", str(home / "omg"))
        # The scanner of secrets compiles its rules for 4 s where it finds no cache: all workers share one.
        patch.setenv("KF_RULE_CACHE_DIR", str(tmp_path_factory.getbasetemp().parent / "rules"))
        yield


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """$OMG_HOME of this test, an empty folder; $HOME is a neighbour of it."""
    folder = tmp_path / "omg"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("OMG_HOME", str(folder))
    return folder


@pytest.fixture
def omg(home: Path) -> Iterator[Memory]:
    """A memory without a model, in which it is noon of 1 March 2026."""
    config = Config(home=home, observation=Observation(model="offline"))
    with Memory(config, clock=lambda: datetime(2026, 3, 1, 12, tzinfo=UTC), embed=None) as memory:
        yield memory


@pytest.fixture
def openai_server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        yield server


@pytest.fixture(scope="session")
def child() -> Iterator[Child]:
    """The process that asks models. Importing LiteLLM takes it 4 s, so all tests share one."""
    with closing(Child()) as child:
        yield child


def shut(patch: pytest.MonkeyPatch) -> None:
    """Refuse what leaves this machine, before a packet or a question to a name server does."""

    def guarded(name: str) -> None:
        real = getattr(socket.socket, name)

        def connect(self: socket.socket, address: Any) -> Any:
            if self.family in (socket.AF_INET, socket.AF_INET6):
                refuse(address[0])
            return real(self, address)

        patch.setattr(socket.socket, name, connect)

    resolve = socket.getaddrinfo

    def getaddrinfo(host: Any, *args: Any, **kwargs: Any) -> Any:
        refuse(host)
        return resolve(host, *args, **kwargs)

    guarded("connect")
    guarded("connect_ex")
    patch.setattr(socket, "getaddrinfo", getaddrinfo)


def refuse(host: Any) -> None:
    name = host.decode() if isinstance(host, bytes) else host
    if name in (None, "", "localhost"):
        return
    try:
        local = ipaddress.ip_address(name.partition("%")[0]).is_loopback
    except ValueError:
        local = False
    if not local:
        raise OSError(f"a test tried to reach {name}; only loopback is there")
