"""When Python's cyclic garbage collector looks at the whole heap of a broker (D22).

A full collection goes through every container object and holds the loop meanwhile: 0.25 s with 300,000 idempotent
producers. Almost all of these objects live as long as their topics, so what survived a full collection that took longer
than `SHORT_S` is frozen (`gc.freeze`): later collections leave it alone and stay short, however much a broker holds.
Objects that are in no cycle are freed as ever when nothing refers to them.

A cycle that becomes garbage after it was frozen stays in memory until the heap is thawed and looked at as a whole. That
happens while the broker is idle, at most every `THAW_IDLE_S`, and every `THAW_S` even if it is never idle.
"""

import asyncio
import gc
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from moldau.monotonic import monotonic_s

logger = logging.getLogger(__name__)

SHORT_S = 0.01
"""Seconds of processor time. The next full collection after this comes when the heap has grown by a quarter, so this
bounds the ones that follow, too."""
LOOK_S = 10.0
IDLE_SHARE = 0.02
"""A broker that used less than this share of a processor since the last look is idle."""
THAW_IDLE_S = 600.0
THAW_S = 6 * 3600.0


class Collector:
    """The policy of one process. `begin` and `end` are called on the thread of the loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        now: Callable[[], float] = monotonic_s,
        processor_s: Callable[[], float] = time.process_time,
    ):
        self._loop = loop
        self._now = now
        self._processor_s = processor_s
        self._began_s = 0.0
        self._is_grown = False
        """Something was frozen since the last thaw."""
        self._thawed_at = self._looked_at = now()
        self._used_s = processor_s()
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Freeze what the start made, and keep full collections short from now on."""
        gc.collect()
        gc.freeze()
        gc.callbacks.append(self._collecting)
        self._timer = self._loop.call_later(LOOK_S, self._look_again)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            gc.callbacks.remove(self._collecting)

    def _collecting(self, phase: str, details: Mapping[str, Any]) -> None:
        """Called by the collector, in whatever thread made the object that was one too many."""
        if details["generation"] < 2:
            return  # there are many of these, and asking the time of a thread is a system call
        if phase == "start":
            self._began_s = time.thread_time()
        elif time.thread_time() - self._began_s > SHORT_S:
            gc.freeze()
            self._is_grown = True

    def _look_again(self) -> None:
        self.look()
        self._timer = self._loop.call_later(LOOK_S, self._look_again)

    def look(self) -> None:
        """Thaw the heap if it is time to, and this is a good moment."""
        now, used_s = self._now(), self._processor_s()
        is_idle = used_s - self._used_s < IDLE_SHARE * (now - self._looked_at)
        self._looked_at, self._used_s = now, used_s
        if self._is_grown and now - self._thawed_at >= (THAW_IDLE_S if is_idle else THAW_S):
            self._thaw()
            self._thawed_at = now

    def _thaw(self) -> None:
        began = time.perf_counter()
        gc.unfreeze()
        freed = gc.collect()
        gc.freeze()
        self._is_grown = False
        logger.debug("freed %d objects in cycles, in %.0f ms", freed, (time.perf_counter() - began) * 1000)
