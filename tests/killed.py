"""A process that is killed at one of its writes. It loses nothing that it handed to the kernel, so no disk is waited for."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

FATAL = ("replace", "rename", "unlink", "link", "fsync")


def die_at(write: int, also: tuple[str, ...] = ()) -> Callable[[], int]:
    """End this process at its *write*-th durable write from now on (0: never); returns what counts them."""
    count = 0
    fsync = os.fsync

    def deadly(real: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            if count == write:
                os._exit(137)
            return None if real is fsync else real(*args, **kwargs)

        return call

    for name in (*FATAL, *also):
        setattr(os, name, deadly(getattr(os, name)))
    return lambda: count


def in_child(act: Callable[[], object], write: int = 0, also: tuple[str, ...] = ()) -> tuple[int, int]:
    """*act* in a forked child that dies as `die_at` has it; returns its exit status, and how many writes it came to."""
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        code, say = 1, os.write
        try:
            made = die_at(write, also)
            act()
            say(tell, str(made()).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(tell)
    with os.fdopen(told) as file:
        count = int(file.read() or write)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), count
