"""Reports turns of the event loop that last too long, and what caused them: a log line, and two numbers for metrics.

A turn is one callback of the loop: one read of one connection, one step of a task, one timer. No other client is served
meanwhile. A turn is too long if it used more than `LONG_TURN_S` of the loop thread's own *processor time*: if the
machine had no processor for the broker, the turn is not to blame. (A turn that waits for a disk is therefore not
counted.) A turn that would not have been too long without the garbage collector is told as the collector's: it came
in the midst of a request that just made one object too many.

The wall clock alone is read for every turn. The processor time, a system call, is read at most every `MARK_S`, and when
a turn took too long by the wall clock: the reported time is at most `MARK_S` too short and never too long.
"""

import asyncio
import functools
import gc
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from moldau.names import counted

log = logging.getLogger(__name__)

LONG_TURN_S = 0.1
MARK_S = 0.01
LINE_S = 1.0
"""The log gets at most one line in this time."""
COLLECTION_S = 0.01
"""Garbage collections that take longer than this are named."""

COLLECTOR = "Python's garbage collector"

Namer = Callable[[object], str | None]


def unnamed(_: bytes) -> str:
    return "a request"


class Watchdog:
    """The watchdog of one event loop. `long_turns` and `longest_ms` (of processor time) count since the start.

    `request_name` names a request by the first bytes of its frame. A module that can name the work of some callbacks
    adds to `namers` a function from the object a callback belongs to (a task, a connection) to a name.
    """

    def __init__(
        self,
        request_name: Callable[[bytes], str] = unnamed,
        clock: Callable[[], float] = time.perf_counter,
        processor_clock: Callable[[], float] = time.thread_time,
    ):
        self.request_name = request_name
        self.namers: list[Namer] = []
        self.long_turns = 0
        self.longest_ms = 0.0
        self._clock = clock
        self._processor_clock = processor_clock
        self.mark_due_at = self._marked_at = self._marked_processor_s = 0.0
        self._collection_began = 0.0
        self._collections: deque[tuple[float, float]] = deque(maxlen=8)
        """When long collections on the loop's thread ended, and how long they took: by the processor, if it was one of
        the whole heap."""
        self._thread = 0
        self._line_at = -LINE_S
        self._unsaid = 0
        self._timed = self._run
        self._replaced: list[tuple[asyncio.AbstractEventLoop, str]] = []

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Time every callback that `loop` is given from now on. Tasks and futures, too, look up `call_soon` and its
        siblings on the loop itself, so this works with every loop. Call it on the loop's thread."""
        self._thread = threading.get_ident()
        for name in ("call_soon", "call_soon_threadsafe"):
            self._replace(loop, name, _timed_at_0(getattr(loop, name), self._timed))
        for name in ("call_later", "call_at", "add_reader", "add_writer"):
            self._replace(loop, name, _timed_at_1(getattr(loop, name), self._timed))
        gc.callbacks.append(self._collecting)

    def _replace(self, loop: asyncio.AbstractEventLoop, name: str, timed: Callable[..., Any]) -> None:
        setattr(loop, name, timed)
        self._replaced.append((loop, name))

    def rest(self) -> None:
        """Undo `watch`."""
        while self._replaced:
            delattr(*self._replaced.pop())
        if self._collecting in gc.callbacks:
            gc.callbacks.remove(self._collecting)

    def mark(self, at: float) -> None:
        """Read the processor time. To be called where a turn begins, at this time of the clock, after `mark_due_at`."""
        self.mark_due_at, self._marked_at, self._marked_processor_s = at + MARK_S, at, self._processor_clock()

    def ended(self, began: float, at: float, callback: Any) -> None:
        """The turn that `began` then is over. `callback` is only looked at to name it: see `namers`."""
        if at - began > LONG_TURN_S:
            self._judge(began, at, callback)

    def _run(self, callback: Callable[..., Any], *args: Any) -> None:
        began = self._clock()
        if began > self.mark_due_at:
            self.mark(began)
        try:
            callback(*args)
        finally:
            self.ended(began, self._clock(), callback)

    def _judge(self, began: float, ended: float, callback: Any) -> None:
        since_mark = self._processor_clock() - self._marked_processor_s
        processor_s = since_mark - (began - self._marked_at)  # before the turn this thread may have run all the time
        if processor_s <= LONG_TURN_S:
            return
        self.long_turns += 1
        self.longest_ms = max(self.longest_ms, processor_s * 1000)
        self._unsaid += 1
        if ended - self._line_at < LINE_S:
            return
        collecting_s = sum(took for at, took in self._collections if at > began)
        name = self._name(callback)
        log.warning(
            "the event loop was held for %d ms (%d ms of processor time%s) by %s; no client was served meanwhile%s",
            (ended - began) * 1000,
            processor_s * 1000,
            f"; garbage collection took {collecting_s * 1000:.0f} ms" if collecting_s else "",
            f"{COLLECTOR}, during {name}" if processor_s - collecting_s <= LONG_TURN_S else name,
            f" ({counted(self._unsaid - 1, 'other long turn')} since the last such line)" if self._unsaid > 1 else "",
        )
        self._line_at, self._unsaid = ended, 0

    def _name(self, callback: Any) -> str:
        owner = getattr(callback, "__self__", None)
        for namer in self.namers:
            if (name := namer(owner)) is not None:
                return name
        if isinstance(owner, asyncio.Task):
            callback = owner.get_coro()
        while isinstance(callback, functools.partial):
            callback = callback.func
        return str(getattr(callback, "__qualname__", None) or repr(callback))

    def _collecting(self, phase: str, details: Mapping[str, int]) -> None:
        """Called by the collector, in whatever thread made the object that was one too many. There are many collections
        of few objects, and the processor time is a system call."""
        if threading.get_ident() != self._thread:
            return
        clock = self._processor_clock if details["generation"] == 2 else self._clock
        if phase == "start":
            self._collection_began = clock()
        elif (took_s := clock() - self._collection_began) > COLLECTION_S:
            self._collections.append((self._clock(), took_s))


def _timed_at_0(original: Callable[..., Any], timed: Callable[..., Any]) -> Callable[..., Any]:
    """The loop's method whose first argument is a callback, with `timed` around the callback. A loop whose methods call
    each other passes a callback that is already timed."""

    def replaced(callback: Callable[..., Any], *args: Any, **context: Any) -> Any:
        if callback is timed:
            return original(callback, *args, **context)
        return original(timed, callback, *args, **context)

    return replaced


def _timed_at_1(original: Callable[..., Any], timed: Callable[..., Any]) -> Callable[..., Any]:
    """The same where the callback is the second argument."""

    def replaced(first: Any, callback: Callable[..., Any], *args: Any, **context: Any) -> Any:
        if callback is timed:
            return original(first, callback, *args, **context)
        return original(first, timed, callback, *args, **context)

    return replaced
