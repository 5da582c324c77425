"""The one daemon of a home: its lock, its signals, its log, and its end with the gateway."""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from ..config.sections import Config
from ..errors import Locked
from .daemon import Daemon, return_freed_memory


@contextlib.contextmanager
def daemon_lock(home: Path) -> Iterator[None]:
    """Hold this home's one daemon lock; the kernel lets go of it when the process ends, however that happens."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (home / "lock").open("a+") as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            f.seek(0)
            pid = f.read().strip() or "unknown"
            raise Locked(f"a daemon is up for {home} already (pid {pid}); `omg down` stops it") from None
        f.truncate(0)
        f.write(str(os.getpid()))
        f.flush()
        yield


def serve_home(config: Config, *, with_parent: bool) -> None:
    """
    Run in the foreground until SIGTERM, SIGINT, /stop, or with *with_parent* until stdin ends.

    Raises Locked if another daemon is up for this home.
    """
    with daemon_lock(config.home):
        return_freed_memory()
        # A prompt needs the interpreter some twenty times, after each look at a file or a row; 5 ms each would be 100.
        sys.setswitchinterval(0.0005)
        daemon = Daemon(config, with_parent=with_parent)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: daemon.stopping.set())
        if with_parent:
            threading.Thread(target=follow_parent, args=(daemon,), daemon=True).start()
        daemon.run()


def follow_parent(daemon: Daemon) -> None:
    """Stdin is a pipe that the gateway holds: when it ends, the gateway is gone, whatever became of it."""
    with contextlib.suppress(OSError):
        while os.read(sys.stdin.fileno(), 4096):
            pass
    daemon.stopping.set()


class LogFormatter(logging.Formatter):
    """Where an exception came from, without its message: that may quote what was said."""

    def formatException(self, ei: Any) -> str:
        lines: list[str] = []
        error = ei[1]
        while error is not None and len(lines) < 5:
            frames = traceback.extract_tb(error.__traceback__)[-4:]
            places = " < ".join(f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in reversed(frames))
            lines.append(f"    {type(error).__name__} in {places}")
            error = error.__cause__ or error.__context__
        return "\n".join(lines)


def log_to(file: Path) -> None:
    """Everything that is logged goes to *file*, with one older file kept, and nothing to anywhere else."""
    handler = RotatingFileHandler(file, maxBytes=2_000_000, backupCount=1)
    file.chmod(0o600)
    handler.setFormatter(LogFormatter("%(asctime)s %(levelname)s %(message)s"))
    root = logging.getLogger()
    root.handlers, root.level = [handler], logging.INFO
