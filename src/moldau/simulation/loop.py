"""An asyncio event loop in virtual time: instead of waiting, it jumps to the time of the next timer.

Ordinary asyncio code runs on it unchanged, with these differences. `time` starts at 0, moves only when nothing is
ready, and then is exactly the time of the next timer, so no timer runs early or late. Executors run their work inline,
or `work_s` later. Connections are those of `network`. A task's hash is the order of its creation: asyncio keeps tasks
in sets, and hashes by address would give one seed two histories. If nothing is ready and no timer is set, the loop
raises `Deadlock`.
"""

import asyncio
import contextvars
import itertools
import math
import socket
from collections.abc import Callable, Coroutine, Generator
from typing import Any

from moldau.simulation.network import Network, current_host


class Deadlock(RuntimeError):
    """Every task waits for another, and no timer is set."""


class CountedTask(asyncio.Task[Any]):
    """A task whose hash is the number of tasks before it."""

    numbers = itertools.count()

    def __new__(cls, *args: Any, **kwargs: Any) -> "CountedTask":
        task = super().__new__(cls)
        task._number = next(cls.numbers)  # here, not in __init__, which already puts the task into a set
        task.host = current_host.get()
        return task

    _number: int
    host: str
    """The host for which the task was created."""

    def __hash__(self) -> int:
        return self._number

    def __eq__(self, other: object) -> bool:
        return self is other


class _Jump:
    """Replaces the selector: instead of waiting for sockets, it sets the time to that of the next timer.

    Adding up the timeouts would be wrong: asyncio rounds `due - now`, so a timer could be woken before its time.
    """

    def __init__(self, due: Callable[[], float]) -> None:
        self.now = 0.0
        self.turn_s: Callable[[], float] = lambda: 0.0
        self._due = due

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise Deadlock("nothing is ready and nothing is due")
        if timeout > 0:
            self.now = self._due()
        self.now += self.turn_s()
        return []


class SimulatedLoop(asyncio.BaseEventLoop):
    """`network` carries its connections; the context variable `network.current_host` names the host for which a task
    dials."""

    def __init__(self, network: Network):
        super().__init__()
        self._selector = _Jump(self._next_timer_s)
        self.network = network
        self.work_s: Callable[[], float] = lambda: 0.0
        """Returns how long the next piece of executor work takes, in seconds; its result arrives after that time."""
        network.attach(self)
        CountedTask.numbers = itertools.count()
        self.set_task_factory(_counted)

    def slow(self, turn_s: Callable[[], float]) -> None:
        """From now on each turn of the loop takes `turn_s()` seconds: timers that become due meanwhile run late, as on
        a busy machine."""
        self._selector.turn_s = turn_s

    def time(self) -> float:
        return self._selector.now

    @property
    def _clock_resolution(self) -> float:
        """The distance to the next float: asyncio runs timers due before `time() + _clock_resolution`, so none runs
        early."""
        return math.ulp(self._selector.now)

    @_clock_resolution.setter
    def _clock_resolution(self, _: float) -> None:
        """Ignores the real clock's resolution, which asyncio's constructor sets."""

    def _next_timer_s(self) -> float:
        """The time of the first timer. asyncio removes cancelled timers from the front before it waits."""
        return float(self._scheduled[0].when())  # type: ignore[attr-defined]

    def _process_events(self, event_list: list[Any]) -> None:
        assert not event_list

    def _write_to_self(self) -> None:
        """The loop never sleeps, so nothing has to wake it."""

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        future = self.create_future()
        seconds = self.work_s()
        if seconds:
            self.call_later(seconds, _work, future, func, args)
        else:
            _work(future, func, args)
        return future

    def forget_timers(self, host: str) -> None:
        """Cancel all timers of the host."""
        for timer in list(self._scheduled):  # type: ignore[attr-defined]
            if timer._context.get(current_host) == host:
                timer.cancel()

    async def create_server(self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any) -> Any:
        return self.network.listen(host or current_host.get(), port or 0, protocol_factory)

    async def create_connection(self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any) -> Any:
        return await self.network.dial(current_host.get(), host, port, protocol_factory)

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> Any:
        """A simulated host has one address, its name."""
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (host, port))]


def _work(future: asyncio.Future[Any], work: Callable[..., Any], args: tuple[Any, ...]) -> None:
    if future.done():  # cancelled meanwhile
        return
    try:
        future.set_result(work(*args))
    except Exception as error:
        future.set_exception(error)


def _counted(
    loop: asyncio.AbstractEventLoop,
    coro: Coroutine[Any, Any, Any] | Generator[Any, None, Any],
    *,
    context: contextvars.Context | None = None,
) -> "asyncio.Future[Any]":
    return CountedTask(coro, loop=loop, context=context)
