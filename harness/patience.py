"""The patience of tests, on a machine that has other work too.

A limit in seconds ends what hangs; it never says how fast something has to be. Limits are written down for an idle
machine and stretch with its load: where four processes want each processor, thirty seconds become two minutes.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")
SECONDS = 30.0
"""After which something hangs, where nothing else is said."""


def slowness() -> float:
    """How many times longer than on an idle machine things take now: what wanted to run in the last minute or the last
    five, for each processor; at least 1."""
    return max(1.0, max(os.getloadavg()[:2]) / (os.cpu_count() or 1))


def stretched(seconds: float = SECONDS) -> float:
    """As many seconds as an idle machine's `seconds` are now: for what takes a time-out."""
    return seconds * slowness()


class Deadline:
    """So many seconds of an idle machine from now on."""

    def __init__(self, seconds: float = SECONDS):
        self._seconds = seconds
        self._began_s = time.monotonic()

    @property
    def left_s(self) -> float:
        """The time left, by the present load; 0 if none is."""
        return max(0.0, self._began_s + stretched(self._seconds) - time.monotonic())

    @property
    def passed(self) -> bool:
        return not self.left_s


def wait_until(holds: Callable[[], object], seconds: float = SECONDS, pause_s: float = 0.02) -> bool:
    """Look again and again; whether it held before the deadline."""
    deadline = Deadline(seconds)
    while not (held := holds()) and not deadline.passed:
        time.sleep(pause_s)
    return bool(held)


async def within(work: Awaitable[T], seconds: float = SECONDS) -> T:
    """The result of `work`. Raises `TimeoutError` if it hangs; it is cancelled then."""
    deadline, task = Deadline(seconds), asyncio.ensure_future(work)
    try:
        while not task.done():
            if deadline.passed:
                raise TimeoutError(f"it hangs: not done within {seconds:g} seconds of an idle machine")
            await asyncio.wait([task], timeout=deadline.left_s)
        return task.result()
    finally:
        task.cancel()
        await asyncio.wait([task])
