"""An event loop in a background thread, on which the synchronous clients run the asyncio ones.

The thread is a daemon. `stop` ends it and may be called twice. Ctrl-C interrupts `run` like any other wait. A forked
child has no such thread, and must not close the copy of the loop: it shares its selector with the parent.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from moldau.client.failures import ClientClosed
from moldau.client.unclosed import FORKED

T = TypeVar("T")


class LoopThread:
    """An event loop and its thread; `start` starts both."""

    def __init__(self, name: str):
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the coroutine on the loop, wait for it in the calling thread, and return its result."""
        if not self.running:
            work.close()
            raise ClientClosed("this client is closed" if os.getpid() == self._pid else FORKED)
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def call(self, function: Callable[..., T], *arguments: Any, **named: Any) -> T:
        """Call the function on the loop, wait for it in the calling thread, and return its result."""

        async def work() -> T:
            return function(*arguments, **named)

        return self.run(work())

    def soon(self, callback: Callable[[], object]) -> None:
        """Call it on the loop, without waiting for the result."""
        self._loop.call_soon_threadsafe(callback)

    def stop(self) -> None:
        if os.getpid() != self._pid:
            return
        if self.running:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        if not self._loop.is_closed():
            self._loop.close()
