"""Producer ids for this broker, in blocks: a block is in the store before its first id is assigned, so no id is
assigned twice, not even after a crash. The rest of a block is lost when the broker stops."""

from collections.abc import Awaitable

from moldau.cluster import layout
from moldau.cluster.change_queue import ChangeQueue, in_turn
from moldau.cluster.reading import block_end
from moldau.cluster.store import MetadataStore, node_at


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
        node = await self._store.read(node_at(layout.PRODUCER_ID_BLOCK))
        start = block_end(node) + 1
        end = start + layout.PRODUCER_IDS_PER_BLOCK - 1
        version = None if node is None else node.version
        await self._store.multi([layout.producer_ids(self._broker_id, start, end, version)])
        return range(start, end + 1)
