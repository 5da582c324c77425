"""Threads that work on graphs: a fixed number at a time, the most urgent work first."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Future
from heapq import heappop, heappush
from typing import Any

from ..index.index import BACKGROUND


class Crew:
    """At most *size* threads, each with one piece of work at a time. They exist only while there is work."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._waiting: list[tuple[int, int, Future[Any], Callable[[], Any]]] = []  # a heap
        self._numbers, self._threads = itertools.count(), 0
        self._guard = threading.Lock()

    def start(self, work: Callable[[], Any], rank: int = 0) -> Future[Any]:
        """Do *work* as soon as a thread is free: the lowest rank first, and within a rank in the order of `start`."""
        done: Future[Any] = Future()
        with self._guard:
            heappush(self._waiting, (rank, next(self._numbers), done, work))
            if self._threads < self.size:
                self._threads += 1
                # A daemon thread: exiting does not wait for a call.
                threading.Thread(target=self._serve, name=BACKGROUND, daemon=True).start()
        return done

    def _serve(self) -> None:
        while True:
            with self._guard:
                if not self._waiting:
                    self._threads -= 1
                    return
                *_, done, work = heappop(self._waiting)
            if not done.set_running_or_notify_cancel():
                continue
            try:
                done.set_result(work())
            except BaseException as e:
                done.set_exception(e)
