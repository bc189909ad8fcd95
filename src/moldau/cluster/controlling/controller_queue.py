"""The changes of a controller, one after the other, for as long as this broker is the controller."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from moldau.cluster.controlling.change_queue import ChangeQueue
from moldau.cluster.controlling.change_stream import NOTHING, ChangeStream
from moldau.cluster.state import layout
from moldau.cluster.state.image import Image
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.cluster.state.reading import read_again
from moldau.errors import ErrorCode, KafkaError
from moldau.metadata_store.store import NodeOperation, OutcomeUnknown, Reading, SessionOver, StoreConflict
from moldau.runtime import Runtime

T = TypeVar("T")


class ControllerQueue(ChangeQueue):
    """The changes of a controller, refused while this broker is not the controller. `resign` is called with the reason
    when it cannot be the controller any more."""

    def __init__(self, metadata: MetadataCache, runtime: Runtime, resign: Callable[[str], None]):
        super().__init__(metadata, runtime)
        self.stream: ChangeStream | None = None
        self.elected = asyncio.Event()
        """Cleared while leaders are being elected for the brokers that came and went. The brokers are shown no change
        then: those of administrators wait."""
        self._resign = resign

    async def run(self, change: Callable[[], Awaitable[T]]) -> T:
        """As `ChangeQueue.run`; returns when all live brokers act by what was changed, or after a second."""
        if self.stream is not None:
            await self.elected.wait()
        before = NOTHING

        async def noted() -> T:
            nonlocal before
            if self.stream is not None:
                before = self.stream.position
            return await change()

        result = await self.made(noted)
        if self.stream is not None and self.stream.position != before:
            await self.stream.known_to(self.stream.image.brokers, self.stream.position)
        return result

    async def made(self, change: Callable[[], Awaitable[T]]) -> T:
        """As `run`, but returns at once."""

        async def as_controller() -> T:
            self.check_controller()
            return await change()

        return await super().run(as_controller)

    def _again(self) -> Reading[tuple[Image, list[str]]]:
        """All but the brokers: those that come and go are shown with the elections that this needs. A topic that cannot
        be read stays as it was."""
        image, names = yield from read_again(self._metadata.image, {})
        return replace(image, brokers=self._metadata.image.brokers), names

    async def commit(self, operations: Sequence[NodeOperation]) -> None:
        try:
            await super().commit(operations)
        except (OutcomeUnknown, SessionOver) as lost:
            self._resign(str(lost))
            raise KafkaError(ErrorCode.NOT_CONTROLLER, f"this broker is not the controller any more: {lost}") from lost
        except StoreConflict as conflict:
            if conflict.path == layout.CONTROLLER_EPOCH:
                self._resign("another broker was elected")
                self.check_controller()
            raise
