"""Limits how many calls of one model are under way at once, and to fewer for a while after it refused one as too many."""

from __future__ import annotations

import threading
import time

FEWER_S = 60.0  # without another refusal, until twice as many may be under way again


class Places:
    """`with places:` waits until fewer than *most* calls are under way. Put it around each call."""

    def __init__(self, most: int) -> None:
        self.most, self.taken = most, 0
        self._room, self._halved = most, 0.0  # when, on the monotonic clock
        self._changed = threading.Condition()

    @property
    def room(self) -> int:
        """How many calls may be under way now."""
        later = int((time.monotonic() - self._halved) / FEWER_S)
        return min(self.most, self._room << min(later, 10))

    def halve(self, began: float) -> None:
        """Allow half as many: the model refused a call that *began* then (monotonic). Refusals of one moment count once."""
        with self._changed:
            if began >= self._halved:
                self._room, self._halved = max(1, self.room // 2), time.monotonic()

    def __enter__(self) -> None:
        with self._changed:
            while self.taken >= self.room:
                self._changed.wait(1.0)  # time alone makes room as well
            self.taken += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self.taken -= 1
            self._changed.notify()
