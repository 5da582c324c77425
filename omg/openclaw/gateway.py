"""
OpenClaw from outside: its state folder, its configuration and its command line.

We read its configuration and never write it: changes go through `openclaw config patch`, which checks them.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import json5

from ..config import value_at
from ..errors import GatewayError
from ..hosts.install import run_program

PORT = 18789  # the gateway's, where the configuration names none


@dataclass(frozen=True, slots=True)
class OpenClaw:
    """*state* is its state folder, *file* its configuration, *command* how its command line is called."""

    state: Path
    file: Path
    command: tuple[str, ...]

    def run(self, *args: str) -> str:
        """Standard output of `openclaw ARGS`. Raises GatewayError with the last lines of what it complained about."""
        env = {"OPENCLAW_STATE_DIR": str(self.state), "OPENCLAW_CONFIG_PATH": str(self.file)}
        return run_program([*self.command, *args], f"openclaw {' '.join(args[:3])}", env, GatewayError)

    def config(self) -> dict[str, Any]:
        """The configuration as its owner wrote it, before defaults. Raises GatewayError if it cannot be read."""
        try:
            value = json5.loads(self.file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise GatewayError(
                f"{self.file} does not exist; set OpenClaw up first (`openclaw onboard`)"
            ) from None
        except (ValueError, UnicodeDecodeError) as e:
            raise GatewayError(
                f"{self.file} cannot be read: {e}; `openclaw config validate` says more"
            ) from e
        if not isinstance(value, dict):
            raise GatewayError(f"{self.file} holds no configuration; `openclaw config validate` says more")
        return value

    def up(self, config: Mapping[str, Any]) -> bool:
        """Whether something listens at the gateway's port: asked in no time, where their command takes seconds."""
        port = os.environ.get("OPENCLAW_GATEWAY_PORT") or value_at(config, "gateway.port", PORT)
        try:
            socket.create_connection(("127.0.0.1", int(port)), timeout=1).close()
        except (OSError, ValueError):
            return False
        return True

    def jobs(self) -> list[dict[str, Any]]:
        """The jobs of its scheduler, which answers only while the gateway is up."""
        said = json.loads(self.run("cron", "list", "--json"))
        return list(said["jobs"] if isinstance(said, dict) else said)

    def health(self) -> dict[str, Any]:
        """The running gateway's snapshot of itself: what it has loaded, and what it has put out of use."""
        said = json.loads(self.run("health", "--json"))
        return said if isinstance(said, dict) else {}

    @property
    def plugin(self) -> Path:
        """Where `openclaw plugins install` puts a copy of our plugin."""
        return self.state / "extensions" / "omg"

    def patch(self, changes: Mapping[str, Any]) -> None:
        """Merge *changes* into the configuration, checked by OpenClaw; null takes a key out."""
        with tempfile.NamedTemporaryFile("w", suffix=".json5", encoding="utf-8") as f:
            json.dump(changes, f)
            f.flush()
            self.run("config", "patch", "--file", f.name)


def find_openclaw() -> OpenClaw:
    """The OpenClaw of this machine, by its own variables. Raises GatewayError if its command is not found."""
    env = os.environ
    home = Path(env.get("OPENCLAW_HOME") or env.get("HOME") or "~").expanduser()
    state = Path(env.get("OPENCLAW_STATE_DIR") or home / ".openclaw").expanduser().absolute()
    file = Path(env.get("OPENCLAW_CONFIG_PATH") or state / "openclaw.json").expanduser().absolute()
    command = shutil.which("openclaw", path=env.get("PATH"))
    if command is None:
        raise GatewayError(
            "the command `openclaw` is not on PATH; install OpenClaw, or add its folder to PATH"
        )
    return OpenClaw(state, file, (command,))
