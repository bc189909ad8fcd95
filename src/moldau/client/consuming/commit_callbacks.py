"""Commits are reported to the interceptors, and to the callback of `commit_async`, in the caller's thread."""

import inspect
from collections import deque
from collections.abc import Callable, Iterable

from moldau.client.consuming.commits import CommitCallback, Committed
from moldau.client.consuming.consumer_settings import ConsumerInterceptor
from moldau.errors import MoldauError


class CommitCallbacks:
    """Those of one consumer. Callbacks that are coroutine functions are awaited on the loop; others wait for `call`."""

    def __init__(self, interceptors: Iterable[ConsumerInterceptor]):
        self._interceptors = interceptors
        self._waiting: deque[Callable[[], object]] = deque()

    def committed(self, offsets: Committed) -> None:
        """These offsets are committed."""
        for interceptor in self._interceptors:
            interceptor.on_commit(offsets)

    async def later(self, offsets: Committed, failed: MoldauError | None, callback: CommitCallback | None) -> None:
        """A commit that nobody waited for has ended, with that error or None."""
        if failed is None:
            self.committed(offsets)
        if inspect.iscoroutinefunction(callback):
            await callback(offsets, failed)
        elif callback is not None:
            self._waiting.append(lambda: callback(offsets, failed))

    def call(self) -> None:
        """Call the callbacks of finished commits."""
        while self._waiting:
            try:
                callback = self._waiting.popleft()
            except IndexError:  # another thread has taken the last one
                break
            callback()
