"""Time limits of tests, which stretch on a machine that has other work.

A limit in seconds ends a hang; it never says how fast something must be. Limits are those of an idle machine and
stretch with the load: if four processes wait for each processor, thirty seconds become two minutes.
"""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from moldau.monotonic import monotonic_s

T = TypeVar("T")
SECONDS = 30.0
"""The usual limit."""


def slowness() -> float:
    """How many times longer than on an idle machine work takes now, at least 1: the load of the last minute or five,
    for each processor."""
    return max(1.0, max(os.getloadavg()[:2]) / (os.cpu_count() or 1))


def stretched(seconds: float = SECONDS) -> float:
    """A time-out of that many seconds of an idle machine, at the present load."""
    return seconds * slowness()


class Deadline:
    """That many seconds of an idle machine from now on."""

    def __init__(self, seconds: float = SECONDS):
        self._seconds = seconds
        self._began_s = monotonic_s()

    @property
    def left_s(self) -> float:
        """The time left at the present load, at least 0."""
        return max(0.0, self._began_s + stretched(self._seconds) - monotonic_s())

    @property
    def passed(self) -> bool:
        return not self.left_s


def wait_until(holds: Callable[[], object], seconds: float = SECONDS, pause_s: float = 0.02) -> bool:
    """Ask `holds` again and again; returns whether it held before the deadline."""
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


async def until(holds: Callable[[], object], pause_s: float = 0.01) -> None:
    """Returns once `holds` does. Raises `TimeoutError` if it never does."""

    async def held() -> None:
        while not holds():
            await asyncio.sleep(pause_s)

    await within(held())
