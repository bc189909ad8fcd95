"""A follower's Fetch that waits, or takes more than one turn of the loop: its answer as a `Response`, without a future
or a task of its own, since every write to a partition ends the wait of its followers."""

import asyncio
from collections.abc import Callable
from types import GeneratorType
from typing import Any, TypeAlias

from moldau.handlers.following.follower_sessions import FollowerSession
from moldau.turns import Steps

Look: TypeAlias = Callable[[Steps[Any] | None], Any]
"""Reads for one turn of the loop, the rest of what an earlier turn has left or, for None, from the beginning. Returns
the answer, the steps that are left, or None if there is nothing to answer yet."""


class ParkedFetch:
    """Answered by what `look` finds after the session was woken or `wait_s` is over, and with `nothing` once the
    session's next request is here. `reading` is what is left to read; None if all that there is was read."""

    __slots__ = ("_called", "_epoch", "_found", "_is_done", "_is_due", "_look", "_loop", "_nothing", "_reading",
                 "_session", "_timer", "_wait_s")  # fmt: skip

    def __init__(
        self,
        session: FollowerSession,
        reading: Steps[Any] | None,
        look: Look,
        wait_s: Callable[[], float],
        nothing: Callable[[], Any],
    ):
        self._session = session
        self._epoch = session.epoch
        self._reading = reading
        self._look = look
        self._wait_s = wait_s
        self._nothing = nothing
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._called: Callable[[Any], object] | None = None
        self._found: Any = None
        self._is_due = self._is_done = False
        session.waits = self
        self._go_on()

    def wake(self) -> None:
        """Look again in the next turn of the loop, after all that happens in this one."""
        if not (self._is_due or self._is_done):
            self._is_due = True
            self._loop.call_soon(self._look_again)

    def _look_again(self) -> None:
        self._is_due = False
        if self._is_done:
            return
        try:
            self._find()
        except Exception as fault:
            self._end(fault)

    def _find(self) -> None:
        if self._session.epoch != self._epoch:
            self._leave()
            self._end(self._nothing())
            return
        news = self._look(self._reading)
        if type(news) is GeneratorType:
            self._reading = news
        elif news is not None:
            self._end(news)
            return
        else:
            self._reading = None
        self._go_on()

    def _go_on(self) -> None:
        if self._reading is not None or self._session.is_stirred:
            self.wake()
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(self._wait_s(), self.wake)

    def _leave(self) -> None:
        """What is left to read is due for the session's next request."""
        if self._reading is not None:
            self._reading.close()
            self._reading = None

    def _end(self, news: Any) -> None:
        self._found, self._is_done = news, True
        if self._timer is not None:
            self._timer.cancel()
        if self._session.waits is self:
            self._session.waits = None
        if self._called is not None:
            self._called(self)

    def done(self) -> bool:
        return self._is_done

    def result(self) -> Any:
        if isinstance(self._found, Exception):
            raise self._found
        return self._found

    def cancel(self) -> None:
        """The connection has closed: what was read is due again, since nobody was told."""
        if not self._is_done:
            self._leave()
            self._end(None)

    def add_done_callback(self, call: Callable[[Any], object]) -> None:
        """There is one such call."""
        self._called = call
        if self._is_done:
            call(self)
