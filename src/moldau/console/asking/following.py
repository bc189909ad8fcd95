"""`TopicFollower`: the records that come in while a page is open. A batch that cannot be read is named and left out."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pyarrow as pa

from moldau.client.consuming.async_consumer import AsyncConsumer
from moldau.console.search.masking import TopicMask
from moldau.console.search.matching import SearchMatcher
from moldau.console.search.records import Decode, ShownRecord, found, readable
from moldau.console.search.scanning import INFLATED_MAX, ROWS_AT_ONCE, DamagedRange
from moldau.errors import DamagedBatch
from moldau.names import TopicPartition

WAIT_MS = 1_000
TABLE_BYTES, TABLE_ROWS = 8 << 20, 200_000
FETCH_BYTES, PARTITION_BYTES = 2 << 20, 256 << 10
PREVIEW_BYTES = 4_000


class FollowStep(NamedTuple):
    """Hits among new records; `passed` counts all of them. `damaged` is what was passed without being read."""

    hits: list[ShownRecord]
    passed: int
    damaged: DamagedRange | None = None


class BoundedConsumer(AsyncConsumer):
    """A consumer whose tables are small, whatever the records inflate to."""

    _inflated_max, _table_bytes_max, _table_rows_max = INFLATED_MAX, TABLE_BYTES, TABLE_ROWS


class TopicFollower:
    """Reads partitions of a topic from these offsets on, without a group; `client` has the settings of the client."""

    def __init__(self, client: Mapping[str, Any], topic: str, starts: Mapping[int, int], *, committed: bool):
        self._settings = {
            **client,
            "client.id": "moldau-console-tail",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            "fetch.max.bytes": FETCH_BYTES,
            "max.partition.fetch.bytes": PARTITION_BYTES,
            "auto.offset.reset": "earliest",
        }
        self._starts = {TopicPartition(topic, number): offset for number, offset in starts.items()}

    async def steps(self, matcher: SearchMatcher, mask: TopicMask, decode: Decode | None) -> AsyncIterator[FollowStep]:
        """A step for each part of what has come, and at least one a second. Every record of a burst is handed out.
        Raises `KafkaError`, also if a broker cannot find where the batch behind a damaged one begins."""
        loop, thread = asyncio.get_running_loop(), ThreadPoolExecutor(1, "moldau-console-tail")
        try:
            async with BoundedConsumer(self._settings) as consumer:
                consumer.assign(self._starts)
                for tp, offset in self._starts.items():
                    consumer.seek(tp, offset)
                while True:
                    try:
                        table = await consumer.poll_table(timeout_ms=WAIT_MS)
                    except DamagedBatch as failure:
                        damaged = await self._passed(consumer, failure)
                        yield FollowStep([], damaged.last + 1 - damaged.first, damaged)
                        continue
                    if not len(table):
                        yield FollowStep([], 0)
                    for batch in table.to_batches(ROWS_AT_ONCE):
                        # To decode a record may mean to wait for a schema registry: no other page waits with it.
                        look = loop.run_in_executor(thread, _step, batch, matcher, mask, decode)
                        yield await look
        finally:
            thread.shutdown(wait=False)

    async def _passed(self, consumer: AsyncConsumer, failure: DamagedBatch) -> DamagedRange:
        """Go on behind a damaged batch, whose header may be damaged, too: neither back, nor beyond the end. Raises the
        failure if there is nothing to pass."""
        tp = failure.topic_partition
        if tp is None:
            raise failure
        first = max(failure.first, await consumer.position(tp))
        last = min(failure.last, consumer.end_offset(tp) - 1)
        if last < first:
            raise failure
        consumer.seek(tp, last + 1)
        return DamagedRange(tp.partition, first, last, str(failure).removeprefix(f"reading {tp}: "))


def _step(batch: pa.RecordBatch, matcher: SearchMatcher, mask: TopicMask, decode: Decode | None) -> FollowStep:
    columns = readable(batch, mask, decode)
    return FollowStep([*found(batch, columns, matcher.hits(*columns), PREVIEW_BYTES)], len(batch))
