"""
Finds the home, and asks its daemon over a socket, or a fleet over HTTP. Standard library only, because a hook has
150 ms.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from .errors import ConfigError, OmgError

SOCKET = "omg.sock"
FLEET = "fleet.json"  # of a home that asks a fleet: `url` and `token`
SOCKET_PATH_BYTES = 103  # sun_path of macOS less its NUL


def default_home(env: Mapping[str, str] = os.environ) -> Path:
    """The state folder: $OMG_HOME, else `omg` below OpenClaw's state dir."""
    if home := env.get("OMG_HOME"):
        return Path(home).expanduser().absolute()
    state = env.get("OPENCLAW_STATE_DIR") or str(
        Path(env.get("OPENCLAW_HOME") or "~").expanduser() / ".openclaw"
    )
    return Path(state).expanduser().absolute() / "omg"


def socket_of(home: Path) -> Path:
    """The daemon's socket. Raises OmgError if its path is longer than a socket's may be."""
    path = home / SOCKET
    if len(os.fsencode(path)) > SOCKET_PATH_BYTES:
        raise OmgError(
            f"{path}: too long for a unix socket ({SOCKET_PATH_BYTES} bytes); set OMG_HOME to a shorter path"
        )
    return path


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("omg", timeout=timeout)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        try:
            self.sock.connect(str(self.path))
        except BaseException:
            self.close()
            raise


def fleet_of(home: Path) -> tuple[str, str] | None:
    """
    Address and token of the fleet that *home* uses instead of a daemon: from the environment, else from fleet.json.
    """
    url, token = os.environ.get("OMG_FLEET_URL"), os.environ.get("OMG_FLEET_TOKEN")
    if url and token:
        return url, token
    try:
        found = json.loads((home / FLEET).read_text(encoding="utf-8"))
        return str(found["url"]), str(found["token"])
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError) as e:
        raise ConfigError(
            f'{home / FLEET}: write {{"url": "https://…", "token": "…"}}, or delete it to leave the fleet'
        ) from e


def ask_daemon(
    home: Path, path: str, body: dict[str, Any], timeout_s: float = 600.0
) -> dict[str, Any] | None:
    """
    The daemon's answer; None if no daemon is up. In a home that uses a fleet, the fleet's answer. Raises OmgError if
    the daemon or fleet refuses, or does not answer in time.
    """
    headers = {"content-type": "application/json"}
    if (fleet := fleet_of(home)) is not None:
        where, url = fleet[0], urlsplit(fleet[0])
        kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
        connection: http.client.HTTPConnection = kind(url.hostname or "", url.port, timeout=timeout_s)
        path, headers = url.path.rstrip("/") + path, headers | {"authorization": f"Bearer {fleet[1]}"}
    else:
        try:
            connection = UnixConnection(socket_of(home), timeout_s)
        except OmgError:
            return None  # no daemon can be up there
        where = str(home / SOCKET)
    try:
        with suppress(BrokenPipeError):  # refused before it was sent; the answer says why
            connection.request("POST", path, json.dumps(body), headers)
        response = connection.getresponse()
        answer: dict[str, Any] = json.loads(response.read())
    except (OSError, ValueError, http.client.HTTPException) as e:
        if fleet is not None:
            raise OmgError(
                f"the fleet at {where} does not answer ({e}); see that it is up, and `url` in {FLEET}"
            ) from e
        if isinstance(e, FileNotFoundError | ConnectionRefusedError):
            return None
        raise OmgError(f"the daemon at {where} does not answer ({e}); see omg.log, or `omg down`") from e
    finally:
        connection.close()
    if response.status != 200:
        raise OmgError(str(answer.get("error", f"the daemon answered {response.status}")))
    return answer
