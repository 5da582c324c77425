"""
Starts and stops the daemon for a command, or does the work without it.

Not here: what it is (daemon/). A daemon that was up before is up afterwards, and knows what was changed.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from ..errors import Locked, OmgError

# How often to look whether one is gone: the gateway's plugin starts the next .25 s after, then ever later.
LOOK_EVERY_S, LOOK_FOR_S = 0.05, 20


def start_daemon(home: Path) -> int:
    """Start one that outlives this command; returns its pid, once it answers."""
    from ..client import ask_daemon

    started = subprocess.Popen(
        [sys.executable, "-P", "-m", "omg.cli", "serve"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    for _ in range(150):
        if found := ask_daemon(home, "/health", {}, timeout_s=5):
            return int(found["pid"])
        if started.poll() is not None:
            break
        time.sleep(0.1)
    raise OmgError(f"the daemon did not come up; see {home / 'omg.log'}, or run `omg serve` to watch it")


def stop_daemon(home: Path) -> bool:
    """Whether there was one; returns once it is gone."""
    from ..client import ask_daemon

    try:
        if ask_daemon(home, "/stop", {}, timeout_s=10) is None:
            return False
    except OmgError as e:
        if not isinstance(e.__cause__, ConnectionError):  # else it had stopped before it could say so
            raise
    for _ in range(350):
        with contextlib.suppress(OmgError):  # cut off in the middle of an answer: it is stopping
            if ask_daemon(home, "/health", {}, timeout_s=5) is None:
                return True
        time.sleep(0.1)
    raise OmgError(f"the daemon is still busy stopping; see {home / 'omg.log'}")


@contextlib.contextmanager
def without_daemon(home: Path) -> Iterator[None]:
    """No daemon meanwhile. The gateway starts its own again by itself; one that it does not care for is started here."""
    from ..client import ask_daemon
    from ..daemon.daemon import daemon_lock

    found = ask_daemon(home, "/health", {}, timeout_s=5)
    until = time.monotonic() + LOOK_FOR_S
    with contextlib.ExitStack() as held:
        try:
            while True:
                stop_daemon(home)
                try:
                    held.enter_context(daemon_lock(home))
                    break
                except Locked:  # it answers no more and is about to end, or the gateway has started another
                    if time.monotonic() > until:
                        raise
                    time.sleep(LOOK_EVERY_S)
            yield
        finally:
            held.close()
            if found and found.get("polled_s") is None:
                start_daemon(home)
