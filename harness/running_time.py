"""A clock that stands still while its process does."""

import threading
import time
from types import TracebackType
from typing import Self

TICK_S = 0.005
MOST_S = 4 * TICK_S


class RunningTime:
    """Seconds since `with`, without the pauses of this process (collections of garbage in a test process that holds
    much, a machine that gave it no turn): a tick of 5 ms that comes late counts as 20 ms at most. A test that allows a
    service in its own process so many seconds measures them with it, because what pauses the test pauses the service.
    """

    def __init__(self) -> None:
        self._seconds = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tick)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def now_s(self) -> float:
        return self._seconds

    def _tick(self) -> None:
        last_s = time.monotonic()
        while not self._over.wait(TICK_S):
            now_s = time.monotonic()
            self._seconds += min(now_s - last_s, MOST_S)
            last_s = now_s
