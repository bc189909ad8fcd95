"""Requests that wait for a partition to move: fetches that want more bytes than there are yet.

A `Wait` counts down the bytes it still misses and is done when it has them, when its time is over, or when something
changed that its reader must be told (`wake`). Waking is O(1) for each parked request; nobody recomputes a fetch that
cannot be answered yet.
"""

import asyncio
from collections.abc import Iterable


class Wait:
    """One parked request, at one or more `Waiters`. `done` is resolved with None, once; its bytes are then read
    anew."""

    __slots__ = ("_missing", "_timer", "_where", "done")

    def __init__(self, missing: int, wait_s: float, where: Iterable["Waiters"], loop: asyncio.AbstractEventLoop):
        self.done: asyncio.Future[None] = loop.create_future()
        self._missing = missing
        self._where = list(where)
        self._timer = loop.call_later(wait_s, self.finish)
        for waiters in self._where:
            waiters.parked[self] = None
        self.done.add_done_callback(self._leave)

    def grew(self, size: int) -> None:
        """`size` more bytes can be read."""
        self._missing -= size
        if self._missing <= 0:
            self.finish()

    def finish(self) -> None:
        if not self.done.done():
            self.done.set_result(None)

    def _leave(self, _: "asyncio.Future[None]") -> None:
        """Also when the connection is gone and its task was cancelled."""
        self._timer.cancel()
        for waiters in self._where:
            waiters.parked.pop(self, None)


class Waiters:
    """Those parked at one partition, in the order they came."""

    __slots__ = ("parked",)

    def __init__(self) -> None:
        self.parked: dict[Wait, None] = {}

    def grew(self, size: int) -> None:
        for wait in list(self.parked):
            wait.grew(size)

    def wake(self) -> None:
        """Whatever they wait for will not come this way: the partition moved, failed or is gone."""
        for wait in list(self.parked):
            wait.finish()
