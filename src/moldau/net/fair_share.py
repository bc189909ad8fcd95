"""Fair shares of the loop's time for connections that pipeline requests.

A connection is served for at most `SHARE_S` in one turn of the loop (a single request may take longer: it is not
interrupted). A connection with requests left waits here, in order of arrival. Each turn of the loop serves waiting
connections for `ROUND_S` together, and then reads the sockets of all others. A client that sends one request at a time
therefore waits for about one round, however many others pipeline their requests, and those get equal shares.

A share is a time, not a number of requests, because one request may cost a thousand times as much as another.

Under overload some requests must not wait: without heartbeats groups rebalance, and without its followers' requests a
broker loses what it leads. Those connections are urgent: they are served first, for up to half of a round.
"""

import asyncio
from collections import deque
from collections.abc import Callable

SHARE_S = 0.002
ROUND_S = 0.004


class FairShare:
    """Shares of one event loop. `serving` is the callback that is running now."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float]):
        self.serving: Callable[[], None] | None = None
        self._loop = loop
        self._clock = clock
        self._waiting: deque[Callable[[], None]] = deque()
        self._urgent: deque[Callable[[], None]] = deque()

    def __len__(self) -> int:
        """The number of connections that wait."""
        return len(self._waiting) + len(self._urgent)

    def wait(self, serve: Callable[[], None], is_urgent: bool = False) -> None:
        """Call `serve` when its turn comes. `serve` uses one share, and may wait again for the next."""
        if not (self._waiting or self._urgent) and self.serving is None:
            self._loop.call_soon(self._round)
        (self._urgent if is_urgent else self._waiting).append(serve)

    def _round(self) -> None:
        began = self._clock()
        try:
            self._serve(self._urgent, began + (ROUND_S / 2 if self._waiting else ROUND_S))
            self._serve(self._waiting, began + ROUND_S)
        finally:
            self.serving = None
            if self._waiting or self._urgent:
                self._loop.call_soon(self._round)

    def _serve(self, waiting: deque[Callable[[], None]], ends_at: float) -> None:
        """Serve those that wait now, at least one of them, until that time."""
        for _ in range(len(waiting)):
            self.serving = waiting.popleft()
            self.serving()
            if self._clock() > ends_at:
                break
