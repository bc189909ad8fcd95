"""Deadlines that are seldom reached: one timer of the loop for all of them, since setting and cancelling a timer for
each would cost as much as appending a small batch."""

import asyncio
from typing import Protocol

TICK_S = 0.02
"""Deadlines are noticed at most this much later."""


class Deadline(Protocol):
    """A request that waits."""

    def time_is_over(self) -> None: ...


class TimingWheel:
    """Calls `time_is_over` of each request that is still here at its deadline. Belongs to the loop it is first used
    on."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ticks: dict[int, dict[Deadline, None]] = {}
        """By the number of the tick at which their time is over."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_tick = 0

    def add(self, waiting: Deadline, seconds: float) -> int:
        """The request's time is over in this many seconds. Returns the tick, for `remove`."""
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()
        tick = int((loop.time() + seconds) / TICK_S) + 1
        beside = self._ticks.get(tick)
        if beside is None:
            beside = self._ticks[tick] = {}
            if self._timer is None or tick < self._timer_tick:
                self._set_timer(tick)
        beside[waiting] = None
        return tick

    def remove(self, waiting: Deadline, tick: int) -> None:
        """The request waits no longer, or its time was over."""
        beside = self._ticks.get(tick)
        if beside is not None:
            beside.pop(waiting, None)
            if not beside:
                del self._ticks[tick]
                if not self._ticks:
                    self._end_timer()

    def _set_timer(self, tick: int) -> None:
        self._end_timer()
        assert self._loop is not None
        self._timer_tick = tick
        self._timer = self._loop.call_at(tick * TICK_S, self._tick)

    def _end_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        assert self._loop is not None
        self._timer = None
        now_s = self._loop.time()  # uvloop counts whole milliseconds: its timers may be early
        late = [one for tick in sorted(self._ticks) if tick * TICK_S <= now_s for one in self._ticks.pop(tick)]
        if self._ticks:
            self._set_timer(min(self._ticks))
        for waiting in late:
            waiting.time_is_over()
