"""Producer ids for this broker, in blocks: a block is in the store before its first id is assigned, so no id is
assigned twice, not even after a crash. The rest of a block is lost when the broker stops."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from moldau.cluster.controlling.change_queue import ChangeQueue, in_turn
from moldau.cluster.state import layout
from moldau.cluster.state.reading import block_end
from moldau.errors import StorageError
from moldau.metadata_store.store import MetadataStore, NodeOperation, OutcomeUnknown, Reading, StoreConflict, node_at
from moldau.tasks import ended

AHEAD = layout.PRODUCER_IDS_PER_BLOCK // 10
"""A broker of several takes the next block when it has no more ids than this left."""


class ProducerIds:
    def __init__(self, broker_id: int, store: MetadataStore, queue: ChangeQueue):
        self.queue = queue
        self._broker_id = broker_id
        self._store = store
        self._block = range(0)

    def next(self) -> int | Awaitable[int]:
        """A producer id that was never assigned before; awaitable only if it begins a new block."""
        return self._first() if self._block else self._first_of_next_block()

    def _first(self) -> int:
        first, self._block = self._block[0], self._block[1:]
        return first

    @in_turn
    async def _first_of_next_block(self) -> int:
        if not self._block:
            self._block = await self._take_block()
        return self._first()

    async def _take_block(self) -> range:
        block, taking = await self._store.read(next_block(self._broker_id))
        await self._store.multi([taking])
        return block


class MemberProducerIds(ProducerIds):
    """Producer ids from blocks that all brokers of the cluster take from the shared store. A block is taken ahead: new
    producers get ids also while the store is away."""

    def __init__(self, broker_id: int, store: Callable[[], MetadataStore]):
        self._broker_id = broker_id
        self._shared = store
        self._block = self._block_ahead = range(0)
        self._lock = asyncio.Lock()
        self._taking: asyncio.Task[None] | None = None

    def next(self) -> int | Awaitable[int]:
        self._turn_over()
        if len(self._block) <= AHEAD:
            self.take_ahead()
        return super().next()

    def take_ahead(self) -> None:
        """Begin to take the next block, unless it is taken. After a failure, the next id tries again."""
        if not self._block_ahead and (self._taking is None or self._taking.done()):
            self._taking = asyncio.ensure_future(self._try_ahead())

    async def stop(self) -> None:
        """Take no more blocks ahead."""
        await ended(self._taking)

    async def _try_ahead(self) -> None:
        with contextlib.suppress(StorageError):
            await self._fill()

    async def _first_of_next_block(self) -> int:
        while not self._block:
            await self._fill()
            self._turn_over()
        return self._first()

    async def _fill(self) -> None:
        async with self._lock:
            if not self._block_ahead:
                self._block_ahead = await self._take_block()

    def _turn_over(self) -> None:
        """Begin the block that was taken ahead, if there is none left of the one before."""
        if not self._block:
            self._block, self._block_ahead = self._block_ahead, range(0)

    async def _take_block(self) -> range:
        """A block whose answer was lost is never used."""
        while True:
            store = self._shared()
            block, taking = await store.read(next_block(self._broker_id))
            with contextlib.suppress(StoreConflict, OutcomeUnknown):
                await store.multi([taking])
                return block


def next_block(broker_id: int) -> Reading[tuple[range, NodeOperation]]:
    """The block of producer ids after the latest one, and the operation that takes it for this broker. Raises
    `MalformedMetadata`."""
    node = yield from node_at(layout.PRODUCER_ID_BLOCK)
    start = block_end(node) + 1
    end = start + layout.PRODUCER_IDS_PER_BLOCK - 1
    version = None if node is None else node.version
    return range(start, end + 1), layout.producer_ids(broker_id, start, end, version)
