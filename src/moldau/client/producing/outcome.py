"""What becomes of a batch: a future that any thread may wait for, but the one that delivers it."""

import os
import threading
from concurrent.futures import Future
from typing import Any

from moldau.client.unclosed import FORKED
from moldau.errors import ClientClosed


class Outcome(Future[Any]):
    """A future that a caller who stops waiting cannot cancel. The loop of `loop_thread` sends the batch."""

    def __init__(self, loop_thread: int = 0) -> None:
        super().__init__()
        self.set_running_or_notify_cancel()
        self.loop_thread = loop_thread
        self._pid = os.getpid()

    def check_wait(self, wait_s: float | None) -> None:
        """Raise `RuntimeError` in the thread that delivers: while it waited, nothing would be delivered. Raise
        `ClientClosed` in a forked child, which has no such thread."""
        if not self.done() and os.getpid() != self._pid:
            raise ClientClosed(FORKED)
        if wait_s != 0 and not self.done() and threading.get_ident() == self.loop_thread:
            raise RuntimeError(
                "this thread delivers the record, so it cannot wait for it: await the delivery in a coroutine, or call"
                " add_done_callback in a callback"
            )
