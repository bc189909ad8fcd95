"""One session of the embedded metadata store. Several brokers of one process can each have a session on one file.

Blocking work runs in the executor: a whole reading in one piece. A session ends with `close` or with its process.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from moldau.cluster.embedded import EmbeddedStore
from moldau.cluster.store import Check, Operation, Reading, SessionOver, Set, T, Written, checked, parent_of
from moldau.runtime import Runtime


class EmbeddedSession:
    """See `MetadataStore`. With `closes_store` the end of the session closes the file, too."""

    is_bounded = False

    def __init__(self, store: EmbeddedStore, runtime: Runtime, *, closes_store: bool = False):
        self._store = store
        self._runtime = runtime
        self._closes_store = closes_store
        self._loop = asyncio.get_running_loop()
        self._looks: dict[str, list[Callable[[], None]]] = {}
        self._is_over = False
        self.session_id = store.begin_session(self._told)

    async def read(self, reading: Reading[T]) -> T:
        self._check()
        return await self._runtime.run(lambda: self._store.read(reading))

    async def multi(self, operations: Sequence[Operation]) -> list[Written | None]:
        return await self._runtime.run(lambda: self._store.multi(operations, self.session_id))

    async def watch(self, path: str, look: Callable[[], None]) -> None:
        self._check()
        self._looks.setdefault(checked(path), []).append(look)

    def unwatch(self, path: str) -> None:
        self._looks.pop(path, None)

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

    def _told(self, operations: Sequence[Operation]) -> None:
        """Called from the thread of the session that made the change."""
        with contextlib.suppress(RuntimeError):  # the loop of this session has ended
            self._loop.call_soon_threadsafe(self._look, operations)

    def _look(self, operations: Sequence[Operation]) -> None:
        for path in dict.fromkeys(path for operation in operations for path in places_of(operation)):
            for look in self._looks.get(path, ()):
                if not self._is_over:
                    look()


def places_of(operation: Operation) -> tuple[str, ...]:
    """The nodes whose watchers have to look again after this operation."""
    if isinstance(operation, Check):
        return ()
    if isinstance(operation, Set):
        return (operation.path,)
    return operation.path, parent_of(operation.path)
