"""Whose turn it is among the connections that ask for more than a share of the loop's time.

A connection is served for `SHARE_S` a turn of the loop at most (one request may take longer: it is not interrupted).
What is left of its requests waits here, in the order the connections came. Each turn of the loop serves some of those
that wait, for `ROUND_S` together, and then reads what the sockets of all others have brought. So a client that sends
one request at a time waits for about one round, however many others pipeline theirs, and those get equal shares.

Time is used and not a number of requests: what a request costs differs a thousandfold.
"""

import asyncio
from collections import deque
from collections.abc import Callable

SHARE_S = 0.002
ROUND_S = 0.004


class Turns:
    """Of one loop. `serving` is what has its turn at the moment."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float]):
        self.serving: Callable[[], None] | None = None
        self._loop = loop
        self._clock = clock
        self._waiting: deque[Callable[[], None]] = deque()

    def wait(self, serve: Callable[[], None]) -> None:
        """Call `serve` when it is its turn. It serves one share, and may wait again for the next."""
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
