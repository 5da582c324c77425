"""
Talk to the daemon over its socket. Standard library only: a command must be quick, and a hook quicker.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
from pathlib import Path
from typing import Any

from .errors import OmgError

SOCKET = "omg.sock"
SOCKET_PATH_BYTES = 103  # sun_path of macOS less its NUL


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


def ask_daemon(
    home: Path, path: str, body: dict[str, Any], timeout_s: float = 600.0
) -> dict[str, Any] | None:
    """The daemon's answer; None if none is up. Raises OmgError if it refuses, or does not answer in time."""
    try:
        connection = UnixConnection(socket_of(home), timeout_s)
    except OmgError:
        return None  # none can be up there
    try:
        connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
        response = connection.getresponse()
        answer: dict[str, Any] = json.loads(response.read())
    except (FileNotFoundError, ConnectionRefusedError):
        return None
    except (OSError, ValueError, http.client.HTTPException) as e:
        raise OmgError(
            f"the daemon at {home / SOCKET} does not answer ({e}); see omg.log, or `omg down`"
        ) from e
    finally:
        connection.close()
    if response.status != 200:
        raise OmgError(str(answer.get("error", f"the daemon answered {response.status}")))
    return answer
