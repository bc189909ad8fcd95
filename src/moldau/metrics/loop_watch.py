"""How late the event loop is, and how much of its time is left: a timer that notes by how much it was late, and the
processor time of the loop's thread in a window of a minute.

Ten readings a second find a loop that is held now and then, and cost nothing that could be measured.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable

from moldau.net.durations import Durations

INTERVAL_S = 0.1
WINDOW_READINGS = 60
READING_EVERY = 10
"""The processor time is a system call: it is read once a second."""


class LoopWatch:
    """`delay` has the lateness of all timers since `start`."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Callable[[], float] = time.perf_counter,
        processor_clock: Callable[[], float] = time.thread_time,
    ):
        self.delay = Durations()
        self._loop = loop
        self._clock = clock
        self._processor_clock = processor_clock
        self._readings: deque[tuple[float, float]] = deque(maxlen=WINDOW_READINGS + 1)
        self._until_reading = 0
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Call it on the loop's thread."""
        self._read()
        self._wait()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def idle(self) -> float:
        """The share of the window in which the loop's thread used no processor, 0 to 1."""
        if len(self._readings) < 2:
            return 1.0
        (began, used_before), (ended, used) = self._readings[0], self._readings[-1]
        return min(max(1 - (used - used_before) / max(ended - began, 1e-9), 0.0), 1.0)

    def _wait(self) -> None:
        self._due = self._clock() + INTERVAL_S
        self._timer = self._loop.call_later(INTERVAL_S, self._tick)

    def _tick(self) -> None:
        self.delay.add(max(self._clock() - self._due, 0.0))
        self._until_reading -= 1
        if self._until_reading < 0:
            self._until_reading = READING_EVERY - 1
            self._read()
        self._wait()

    def _read(self) -> None:
        self._readings.append((self._clock(), self._processor_clock()))
