"""The one order of all changes to the metadata: one at a time, from its decision to its answer.

A change decides on the image (a pure function), commits its operations to the store in one step, shows the image with
them, and only then is answered. So an image never has anything that is not in the store, and a change that was answered
is in every later image.

Another session changes what this broker knows only if brokers come and go, or if it takes over as controller: those
nodes are watched. After such a change, a conflict or an unknown outcome the whole image is read again before anything
is decided; a change that was in conflict is then decided again.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import wraps
from itertools import count
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from moldau.cluster.state import layout
from moldau.cluster.state.image import Image
from moldau.cluster.state.image_after import image_after, nodes_after
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.cluster.state.reading import read_again, read_surroundings
from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.metadata_store.steps import in_steps
from moldau.metadata_store.store import (
    Check,
    Create,
    MetadataStore,
    NodeOperation,
    OutcomeUnknown,
    Reading,
    SessionOver,
    Set,
    StoreConflict,
    Written,
)
from moldau.notices import Notices
from moldau.runtime import Runtime, out_of_descriptors

ATTEMPTS_MAX = 3
"""The number of times a change is decided if it conflicts with changes of other sessions."""
DECIDED_AT_ONCE = 1000
"""The most topics, partitions or settings of a decision made on the loop."""
SHOW_AGAIN_S = 1.0
"""When a change that is in the store, but could not be shown, is shown again."""
BYTES_OF_AN_ELEMENT = 10
"""The fewest bytes of an element in a document of many."""
P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger(__name__)
notices = Notices(logger)


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
    """`fence` begins every change, so that a controller that was replaced changes nothing. Belongs to the event loop it
    was made on."""

    def __init__(self, metadata: MetadataCache, runtime: Runtime):
        self._session: tuple[MetadataStore, Check] | None = None
        self._metadata = metadata
        self._runtime = runtime
        self._turn = asyncio.Lock()
        self._following: set[asyncio.Task[None]] = set()
        self._is_behind = False
        """Whether the store may have something that the image lacks."""
        self._is_announced = False
        """Whether a task is about to read it."""
        self._is_closing = self._closed = False

    def begin(self, store: MetadataStore, fence: Check) -> None:
        """This broker is the controller by this session; every write checks the fence."""
        self._session = store, fence
        self._is_behind = False

    def end(self) -> None:
        """This broker is not the controller any more."""
        self._session = None

    async def start(self) -> None:
        """Watch what other sessions may change. Raises `StorageError`."""
        store, _ = self._served()
        for path in (layout.CONTROLLER, layout.BROKERS):
            await store.watch(path, self.look_again)
        await self._show(read_surroundings(self._metadata.image))

    async def run(self, change: Callable[[], Awaitable[T]]) -> T:
        """Make a change when its turn has come. Raises what the change raises."""

        async def whole() -> T:
            async with self._turn:
                for attempt in count(1):
                    try:
                        await self._follow()
                        return await change()
                    except StoreConflict as conflict:
                        self._is_behind = True
                        if attempt == ATTEMPTS_MAX:
                            raise
                        logger.info("%s was changed by another session; the change is decided again", conflict.path)
                    except OutcomeUnknown as unknown:
                        notices.error("", "%s. The request may have been carried out or not", unknown)
                        raise
                    except SessionOver:
                        raise
                    except StorageError as error:
                        notices.error(
                            "",
                            "%s. The request (topics, settings, producer ids) was refused and nothing was changed",
                            error,
                        )
                        raise
            raise AssertionError("unreachable")

        made = asyncio.ensure_future(whole())
        made.add_done_callback(_heard)
        return await asyncio.shield(made)

    async def decided(self, elements: int, decide: Callable[[], T]) -> T:
        """Decide about this many elements; many in the executor (D14). The image stays as it is meanwhile."""
        return decide() if elements <= DECIDED_AT_ONCE else await self._runtime.run(decide)

    async def commit(self, operations: Sequence[NodeOperation]) -> None:
        """Write the operations, and show the image with them. A change that is too large for one step is not completed
        if a later step fails: that is an `OutcomeUnknown`, too. Only for a change whose turn it is. Raises
        `KafkaError(NOT_CONTROLLER)`, `StoreConflict` or `StorageError`; then nothing is written, except perhaps after
        `OutcomeUnknown`."""
        if not operations:
            return
        self.check_controller()
        store, fence = self._served()
        bounded, results = store.is_bounded, list[Written | None]()
        steps = await self.decided(len(operations), lambda: in_steps(operations) if bounded else [operations])
        for step in steps:
            try:
                results += (await store.multi([fence, *step]))[1:]
            except (StoreConflict, StorageError) as error:
                if isinstance(error, OutcomeUnknown) or results:
                    self.look_again()
                if not results or isinstance(error, OutcomeUnknown | SessionOver) or self._is_replaced(error):
                    raise
                done = f"{len(results)} of {len(operations)} operations of a change were done, then one was refused"
                raise OutcomeUnknown(f"{done}: {error}") from error
        image = self._metadata.image
        shown = await self.decided(_size(operations), lambda: image_after(image, nodes_after(operations, results)))
        await self._shown(*shown)

    async def read(self, reading: Reading[T]) -> T:
        """Read the store in this session. Raises `KafkaError(NOT_CONTROLLER)`, `StorageError`."""
        store, _ = self._served()
        return await store.read(reading)

    @staticmethod
    def _is_replaced(error: Exception) -> bool:
        return isinstance(error, StoreConflict) and error.path == layout.CONTROLLER_EPOCH

    def check_controller(self) -> None:
        """Raise `KafkaError(NOT_CONTROLLER)` if another broker, or none, is the controller now."""
        if self._metadata.image.controller_id != self._metadata.broker_id:
            raise self._not_controller()

    def _not_controller(self) -> KafkaError:
        controller = self._metadata.image.controller_id
        now = f"broker {controller} is" if controller >= 0 else "no broker is"
        return KafkaError(ErrorCode.NOT_CONTROLLER, f"{now} the controller of this cluster now")

    async def close(self) -> None:
        """End the session, after the change that is being made."""
        self._is_closing = True
        async with self._turn:
            self._closed = True
            store, _ = self._served()
            await store.close()
        await asyncio.gather(*self._following)

    async def _show(self, reading: Reading[tuple[Image, list[str]]]) -> None:
        await self._shown(*await self.read(reading))

    async def _shown(self, image: Image, names: Sequence[str]) -> None:
        """Show a change that is in the store. While this process can open no files it is shown again and again: nobody
        would tell the subscribers of these topics later."""
        while True:
            try:
                return await self._metadata.show(image, names)
            except OSError as fault:
                if self._is_closing or not waits_for_files(fault):
                    raise
            await asyncio.sleep(SHOW_AGAIN_S)

    def _again(self) -> Reading[tuple[Image, list[str]]]:
        return read_again(self._metadata.image)

    def _served(self) -> tuple[MetadataStore, Check]:
        if self._session is None:
            raise self._not_controller()
        return self._session

    async def _follow(self) -> None:
        """Show what other sessions have changed."""
        if self._is_behind and self._session is not None:
            self._is_behind = False
            try:
                await self._show(self._again())
            except BaseException:
                self._is_behind = True
                raise

    def look_again(self) -> None:
        """Others may have changed the store: read it again."""
        self._is_behind = True
        if not self._is_announced:
            self._is_announced = True
            task = asyncio.ensure_future(self._follow_in_turn())
            self._following.add(task)
            task.add_done_callback(self._following.discard)

    async def _follow_in_turn(self) -> None:
        async with self._turn:
            self._is_announced = False
            if self._closed:
                return
            try:
                await self._follow()
            except StorageError as error:
                notices.error("", "%s. Until it can be read, this broker does not see the changes of others", error)
            except Exception:
                logger.exception("changes by other brokers could not be applied")


def waits_for_files(fault: Exception) -> bool:
    """Whether a change could not be shown only because this process can open no files now. Then a line says so."""
    if not isinstance(fault, OSError) or not out_of_descriptors(fault):
        return False
    notices.error(
        "",
        "changes of the cluster wait until this process can open files: %s. Raise the limit of open files (`ulimit -n`,"
        " LimitNOFILE in systemd)",
        fault.strerror,
    )
    return True


def _size(operations: Sequence[NodeOperation]) -> int:
    """How many elements the operations write: one document may have many."""
    data = (len(one.data) for one in operations if isinstance(one, Create | Set))
    return len(operations) + sum(data) // BYTES_OF_AN_ELEMENT


def _heard(change: "asyncio.Future[Any]") -> None:
    """Mark the change's exception as retrieved: after its caller was cancelled nobody else does, and asyncio would log
    it."""
    if not change.cancelled():
        change.exception()
