"""The virtual clock of a broker under test: real time plus an offset that the test moves forward.

The broker's wall clock and the timers of its event loop move together, so retention, session time-outs, transaction
time-outs and every other deadline of the broker take effect. Clients keep the machine's time.
"""

import asyncio
import concurrent.futures
import contextlib
import math
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from moldau.errors import BrokerFailed
from moldau.monotonic import monotonic_s
from moldau.runtime import elapsed_s

T = TypeVar("T")
STEP_S_MIN, STEP_SHARE = 1.0, 0.02
"""`advance` moves the time in steps of a second, or of this share of the time that it has moved already. What begins
when a deadline has passed therefore begins late by 2 % at most. A month has 600 steps."""
CONTINUED_S = 0.05
"""A timer this near when the time stands again is taken for a pause in work that has begun."""
TURNS_MAX = 1000
"""Turns of the loop to wait for it to become quiet while clients keep it busy."""
WORK_PAUSE_S = 0.0005
LOOK_S = 0.1
"""How often it is looked whether a thread that owes a result has ended."""
ENDED = "the broker under test has ended; if it has failed, its `check` and `stop` raise why"


class Clock:
    """The time of one `Broker`. A restart does not reset it. `advance` may be called from any thread but the
    broker's."""

    def __init__(self) -> None:
        self._ahead_s = 0.0
        self._loop: ShiftedLoop | None = None
        self._lock = threading.Lock()

    def now_ms(self) -> int:
        """The broker's time, in milliseconds since 1970 UTC."""
        return int((time.time() + self._ahead_s) * 1000)

    def elapsed_s(self) -> float:
        """Seconds by the machine's clock, which `advance` does not change: sessions between brokers follow it."""
        return elapsed_s()

    @property
    def ahead_s(self) -> float:
        """How far the broker's time is ahead of the machine's, in seconds."""
        return self._ahead_s

    def advance(
        self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0, ms: float = 0
    ) -> None:
        """Move the broker's time forward. When this returns, every timer that became due has run, and so has the work
        that it started: expired segments are deleted, silent members are out of their groups.

        A member of a group that lives in the test has sent no heartbeat in the time that passed. An advance beyond its
        session time-out therefore removes it from its group, as a long pause of its process would. Raises `ValueError`
        for a negative time.
        """
        total_s = ((days * 24 + hours) * 60 + minutes) * 60 + seconds + ms / 1000
        if total_s < 0:
            raise ValueError("time only moves forward: advance takes no negative time")
        with self._lock:
            goal_s = self._ahead_s + total_s
            if self._loop is not None:
                with contextlib.suppress(BrokerFailed):  # `Broker.check` raises it
                    self._loop.result_of(self._advance(self._loop, total_s))
            self._ahead_s = goal_s

    async def _advance(self, loop: "ShiftedLoop", total_s: float) -> None:
        start_s, goal_s = self._ahead_s, self._ahead_s + total_s
        await loop.settle()
        while self._ahead_s < goal_s:
            step_s = max(STEP_S_MIN, STEP_SHARE * (self._ahead_s - start_s))
            self._ahead_s = min(self._ahead_s + step_s, goal_s)
            await loop.settle()
        await loop.settle(continued_s=CONTINUED_S)

    def attach(self, loop: "ShiftedLoop | None") -> None:
        """Use this event loop of the broker from now on; None while the broker is stopped."""
        self._loop = loop

    def put_back(self) -> None:
        """Return to the machine's time. Only while the broker is stopped: running timers cannot be moved back."""
        assert self._loop is None
        self._ahead_s = 0.0


class ShiftedLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is that of the clock, made in the thread that runs it. Ordinary asyncio timers run on it
    when the clock has reached them. A test that stops Python's clocks (freezegun) does not stop its timers."""

    def __init__(self, clock: Clock):
        self._clock = clock
        self._working = 0
        self._thread = threading.current_thread()
        super().__init__()

    def time(self) -> float:
        return monotonic_s() + self._clock.ahead_s

    def result_of(self, work: Coroutine[Any, Any, T]) -> T:
        """Run this in the loop's thread, and wait for it in another one. Raises what it raises, and `BrokerFailed` if
        the thread ends before."""
        try:
            running = asyncio.run_coroutine_threadsafe(work, self)
        except RuntimeError:  # the loop is closed
            work.close()
            raise BrokerFailed(ENDED) from None
        while not concurrent.futures.wait([running], LOOK_S).done and self._thread.is_alive():
            pass
        try:
            if running.done():
                return running.result()
        except concurrent.futures.CancelledError:
            pass
        raise BrokerFailed(ENDED)

    def run_in_executor(  # type: ignore[override]
        self, executor: concurrent.futures.Executor | None, func: Callable[..., T], *args: Any
    ) -> "asyncio.Future[T]":
        future = super().run_in_executor(executor, func, *args)
        self._working += 1
        future.add_done_callback(self._worked)
        return future

    def _worked(self, _: object) -> None:
        self._working -= 1

    async def settle(self, continued_s: float = 0) -> None:
        """Wait until every timer that is due has run, no executor works, and no callback is ready: until the loop would
        sleep for longer than `continued_s`. Clients that keep the loop busy hold this up for `TURNS_MAX` turns at
        most."""
        turns = 0
        while True:
            await asyncio.sleep(0)  # at least one turn: it runs the timers that are due by now
            await asyncio.sleep(0)
            turns += 1
            if self._working:
                await asyncio.sleep(WORK_PAUSE_S)
            elif turns > TURNS_MAX:
                return
            elif not self._ready:  # type: ignore[attr-defined]
                pause_s = self._next_timer_s() - self.time()
                if pause_s >= continued_s:
                    return
                await asyncio.sleep(max(0, pause_s))

    def _next_timer_s(self) -> float:
        timers: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        return min((timer.when() for timer in timers[:1] if not timer.cancelled()), default=math.inf)
