"""The one order of all changes to the metadata: one at a time, from its decision to its answer.

A change decides on the image (a pure function), commits its operations to the store in one step, reads back what was
written, shows the new image, and only then is answered. So an image never has anything that is not in the store, and a
change that was answered is in every later image. Changes of other sessions are shown as soon as the store reports them,
and always before the next decision; a change that conflicts with one of them is decided again.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import wraps
from itertools import count
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from moldau.cluster.image import Image
from moldau.cluster.metadata_cache import MetadataCache
from moldau.cluster.reading import read_changes
from moldau.cluster.store import Check, MetadataStore, Operation, StoreConflict
from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.notices import Notices
from moldau.runtime import Runtime

ATTEMPTS_MAX = 3
"""The number of times a change is decided if it conflicts with changes of other sessions."""
DECIDED_AT_ONCE = 1000
"""The most topics, partitions or settings of a decision made on the loop."""
P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger(__name__)
notices = Notices(logger)


class WatchedStore:
    """A store, with the paths that other sessions have changed and this one has not read again.

    Made before the first read, so that no change is missed. `on_change` is called, from any thread, when there is a
    path to read again.
    """

    def __init__(self, store: MetadataStore):
        self.store = store
        self.on_change: Callable[[], None] = lambda: None
        self._lock = threading.Lock()
        self._changed: list[str] = []
        self._is_announced = False
        self._writer: int | None = None
        store.watch(self._watch)

    def write(self, operations: Sequence[Operation]) -> None:
        """Do these operations in one step. Blocks; one call at a time. Raises `StoreConflict`, `StorageError`."""
        self._writer = threading.get_ident()
        try:
            self.store.multi(operations)
        finally:
            self._writer = None

    def take(self) -> list[str]:
        """The paths that other sessions have changed since the last call."""
        with self._lock:
            changed, self._changed = self._changed, []
            self._is_announced = False
        return changed

    def put_back(self, paths: Sequence[str]) -> None:
        """These paths could not be read: they are taken again after the next change."""
        with self._lock:
            self._changed = [*paths, *self._changed]

    def _watch(self, path: str) -> None:
        if self._writer == threading.get_ident():
            return
        with self._lock:
            self._changed.append(path)
            is_announced, self._is_announced = self._is_announced, True
        if not is_announced:
            self.on_change()


class Queued(Protocol):
    @property
    def queue(self) -> "ChangeQueue": ...


Q = TypeVar("Q", bound=Queued)


def in_turn(
    change: Callable[Concatenate[Q, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Q, P], Coroutine[Any, Any, T]]:
    """A method that changes the metadata waits for its turn in `queue`, and completes even if its caller is
    cancelled. It may be called again if it fails with `StoreConflict`."""

    @wraps(change)
    async def whole(self: Q, /, *args: P.args, **named: P.kwargs) -> T:
        return await self.queue.run(lambda: change(self, *args, **named))

    return whole


class ChangeQueue:
    """Belongs to the event loop it was made on."""

    def __init__(self, store: WatchedStore, metadata: MetadataCache, runtime: Runtime):
        self._store = store
        self._metadata = metadata
        self._runtime = runtime
        self._turn = asyncio.Lock()
        self._following: set[asyncio.Task[None]] = set()
        self._closed = False
        loop = asyncio.get_running_loop()

        def changed() -> None:  # in any thread
            loop.call_soon_threadsafe(self._changed_by_others)

        store.on_change = changed

    async def run(self, change: Callable[[], Awaitable[T]]) -> T:
        """Make a change when its turn has come. Raises what the change raises."""

        async def whole() -> T:
            async with self._turn:
                for attempt in count(1):
                    try:
                        await self._follow()
                        return await change()
                    except StoreConflict as conflict:
                        if attempt == ATTEMPTS_MAX:
                            raise
                        logger.info("%s was changed by another session; the change is decided again", conflict.path)
                    except StorageError as error:
                        notices.error(
                            "",
                            "%s. The request (topics, settings, producer ids) was refused and nothing was changed. "
                            "Repair the disk that holds this file, or free space on it",
                            error,
                        )
                        raise
            raise AssertionError("unreachable")

        return await asyncio.shield(asyncio.ensure_future(whole()))

    async def decided(self, elements: int, decide: Callable[[], T]) -> T:
        """Decide about this many elements; many in the executor (D14). The image stays as it is meanwhile."""
        return decide() if elements <= DECIDED_AT_ONCE else await self._runtime.run(decide)

    async def commit(self, operations: Sequence[Operation]) -> None:
        """Write the operations in one step, and show the image with them. Only for a change whose turn it is. Raises
        `KafkaError(NOT_CONTROLLER)`, `StoreConflict` or `StorageError`; then nothing is written."""
        if not operations:
            return
        self.check_controller()
        before = self._metadata.image

        def write() -> tuple[Image, list[str]]:
            self._store.write(operations)
            own = [operation.path for operation in operations if not isinstance(operation, Check)]
            return self._read(before, [*own, *self._store.take()])

        image, names = await self._runtime.run(write)
        await self._metadata.show(image, names)

    def check_controller(self) -> None:
        """Raise `KafkaError(NOT_CONTROLLER)` if another broker, or none, is the controller now."""
        controller = self._metadata.image.controller_id
        if controller != self._metadata.broker_id:
            now = f"broker {controller} is" if controller >= 0 else "no broker is"
            raise KafkaError(ErrorCode.NOT_CONTROLLER, f"{now} the controller of this cluster now")

    async def close(self) -> None:
        """End the session, after the change that is being made."""
        async with self._turn:
            self._closed = True
            await self._runtime.run(self._store.store.close)
        await asyncio.gather(*self._following)

    def _read(self, before: Image, paths: Sequence[str]) -> tuple[Image, list[str]]:
        try:
            return read_changes(self._store.store, before, paths)
        except BaseException:
            self._store.put_back(paths)
            raise

    async def _follow(self) -> None:
        """Show what other sessions have changed."""
        paths = self._store.take()
        if paths:
            before = self._metadata.image
            image, names = await self._runtime.run(lambda: self._read(before, paths))
            await self._metadata.show(image, names)

    def _changed_by_others(self) -> None:
        task = asyncio.ensure_future(self._follow_in_turn())
        self._following.add(task)
        task.add_done_callback(self._following.discard)

    async def _follow_in_turn(self) -> None:
        async with self._turn:
            if self._closed:
                return
            try:
                await self._follow()
            except StorageError as error:
                notices.error("", "%s. Changes that other brokers have made are not seen until it can be read", error)
            except Exception:
                logger.exception("changes that other brokers have made could not be taken over")
