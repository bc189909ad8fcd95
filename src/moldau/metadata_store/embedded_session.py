"""One session of the embedded metadata store. Several brokers of one process can each have a session on one file.

Blocking work runs in the executor: a whole reading in one piece. A session ends with `close` or with its process.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from math import inf

from moldau.metadata_store.embedded import EmbeddedStore
from moldau.metadata_store.embedded_tree import places_of
from moldau.metadata_store.store import NodeOperation, Reading, SessionOver, T, Written
from moldau.metadata_store.watchers import Watchers
from moldau.runtime import Runtime


class EmbeddedSession:
    """See `MetadataStore`. With `closes_store` the end of the session closes the file, too."""

    is_bounded = False
    timeout_s = inf

    def __init__(self, store: EmbeddedStore, runtime: Runtime, *, closes_store: bool = False):
        self._store = store
        self._runtime = runtime
        self._closes_store = closes_store
        self._loop = asyncio.get_running_loop()
        self._watchers = Watchers()
        self._is_over = False
        self.session_id = store.begin_session(self._told)

    async def read(self, reading: Reading[T]) -> T:
        self._check()
        return await self._runtime.run(lambda: self._store.read(reading))

    async def multi(self, operations: Sequence[NodeOperation]) -> list[Written | None]:
        return await self._runtime.run(lambda: self._store.multi(operations, self.session_id))

    async def sync(self) -> None:
        self._check()

    async def watch(self, path: str, look: Callable[[], None]) -> None:
        self._check()
        self._watchers.add(path, look)

    def unwatch(self, path: str) -> None:
        self._watchers.remove(path)

    async def close(self) -> None:
        if not self._is_over:
            self._is_over = True
            await self._runtime.run(self._end)

    def _end(self) -> None:
        try:
            self._store.end_session(self.session_id)
        finally:
            if self._closes_store:
                self._store.close()

    def _check(self) -> None:
        if self._is_over:
            raise SessionOver("the session is over")

    def _told(self, operations: Sequence[NodeOperation]) -> None:
        """Called from the thread of the session that made the change."""
        with contextlib.suppress(RuntimeError):  # the loop of this session has ended
            self._loop.call_soon_threadsafe(self._look, operations)

    def _look(self, operations: Sequence[NodeOperation]) -> None:
        if not self._is_over:
            self._watchers.look_at(path for operation in operations for path in places_of(operation))
