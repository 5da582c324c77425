"""
Finds the home, and asks its daemon over a socket, or a fleet over HTTP.

This module imports only the standard library, because a hook must end within 150 ms.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from .errors import ConfigError, OmgError

if TYPE_CHECKING:
    from http.client import HTTPConnection

SOCKET = "omg.sock"
FLEET = "fleet.json"  # in a home that asks a fleet: `url` and `token`
SOCKET_PATH_BYTES = 103  # the longest path of a socket on macOS


def default_home(env: Mapping[str, str] = os.environ) -> Path:
    """Return the state folder: $OMG_HOME, else `omg` below OpenClaw's state folder."""
    if home := env.get("OMG_HOME"):
        return Path(home).expanduser().absolute()
    state = env.get("OPENCLAW_STATE_DIR") or str(
        Path(env.get("OPENCLAW_HOME") or "~").expanduser() / ".openclaw"
    )
    return Path(state).expanduser().absolute() / "omg"


def socket_of(home: Path) -> Path:
    """Return the path of the daemon's socket. Raises OmgError if the path is too long for a socket."""
    path = home / SOCKET
    if len(os.fsencode(path)) > SOCKET_PATH_BYTES:
        raise OmgError(
            f"{path}: too long for a unix socket ({SOCKET_PATH_BYTES} bytes); set OMG_HOME to a shorter path"
        )
    return path


def connected(socket_path: Path, timeout_s: float) -> HTTPConnection:
    """Open an HTTP connection over the unix socket at *socket_path*. Raises OSError if no process listens there."""
    from http.client import HTTPConnection  # imported late: a command that asks nothing does not need it

    connection = HTTPConnection("omg", timeout=timeout_s)
    connection.sock = socket.socket(socket.AF_UNIX)
    try:
        connection.sock.settimeout(timeout_s)
        connection.sock.connect(str(socket_path))
    except BaseException:
        connection.close()
        raise
    return connection


def fleet_of(home: Path) -> tuple[str, str] | None:
    """
    Return address and token of the fleet that *home* uses, from the environment or fleet.json; None if it uses a daemon.
    Raises ConfigError.
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
    Return the daemon's answer; None if no daemon runs. In a home that uses a fleet, return the fleet's answer. Raises
    OmgError if the daemon or the fleet refuses, or does not answer in time.
    """
    from http.client import HTTPConnection, HTTPException, HTTPSConnection

    headers, connection = {"content-type": "application/json"}, None
    if (fleet := fleet_of(home)) is None:
        try:
            where = str(socket_of(home))
        except OmgError:
            return None  # no daemon can run there
    else:
        where = fleet[0]
    try:
        if fleet is None:
            connection = connected(Path(where), timeout_s)
        else:
            url = urlsplit(where)
            kind = HTTPSConnection if url.scheme == "https" else HTTPConnection
            connection = kind(url.hostname or "", url.port, timeout=timeout_s)
            path, headers = url.path.rstrip("/") + path, headers | {"authorization": f"Bearer {fleet[1]}"}
        with suppress(BrokenPipeError):  # refused before all was sent; the answer says why
            connection.request("POST", path, json.dumps(body), headers)
        response = connection.getresponse()
        answer: dict[str, Any] = json.loads(response.read())
    except (OSError, ValueError, HTTPException) as e:
        if fleet is not None:
            raise OmgError(
                f"the fleet at {where} does not answer ({e}); check that the fleet runs, and `url` in {FLEET}"
            ) from e
        if isinstance(e, FileNotFoundError | ConnectionRefusedError):
            return None
        raise OmgError(f"the daemon at {where} does not answer ({e}); see omg.log, or `omg down`") from e
    finally:
        if connection is not None:
            connection.close()
    if response.status != 200:
        raise OmgError(str(answer.get("error", f"the daemon answered {response.status}")))
    return answer
