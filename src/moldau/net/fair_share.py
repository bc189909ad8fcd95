"""Fair shares of the loop's time for connections that pipeline requests.

A connection is served for at most `SHARE_S` in one turn of the loop (a single request may take longer: it is not
interrupted). A connection with requests left waits here, in order of arrival. Each turn of the loop serves waiting
connections for `ROUND_S` together, and then reads the sockets of all others. A client that sends one request at a time
therefore waits for about one round, however many others pipeline their requests, and those get equal shares.

A share is a time, not a number of requests, because one request may cost a thousand times as much as another.
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

    def wait(self, serve: Callable[[], None]) -> None:
        """Call `serve` when its turn comes. `serve` uses one share, and may wait again for the next."""
        if not self._waiting and self.serving is None:
            self._loop.call_soon(self._round)
        self._waiting.append(serve)

    def _round(self) -> None:
        ends_at = self._clock() + ROUND_S
        try:
            for _ in range(len(self._waiting)):
                self.serving = self._waiting.popleft()
                self.serving()
                if self._clock() > ends_at:
                    break
        finally:
            self.serving = None
            if self._waiting:
                self._loop.call_soon(self._round)
