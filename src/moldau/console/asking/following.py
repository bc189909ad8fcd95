"""`TopicFollower`: the records that come in while a page is open."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from moldau.client.consuming.async_consumer import AsyncConsumer
from moldau.console.search.masking import TopicMask
from moldau.console.search.matching import SearchMatcher
from moldau.console.search.records import Decode, ShownRecord, found, readable
from moldau.console.search.scanning import INFLATED_MAX, ROWS_AT_ONCE
from moldau.names import TopicPartition

WAIT_MS = 1_000
TABLE_BYTES, TABLE_ROWS = 8 << 20, 200_000
FETCH_BYTES, PARTITION_BYTES = 2 << 20, 256 << 10
PREVIEW_BYTES = 4_000


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

    async def records(
        self, matcher: SearchMatcher, mask: TopicMask, decode: Decode | None
    ) -> AsyncIterator[tuple[list[ShownRecord], int]]:
        """The hits among the records that have come, with the number of all that have; at least once a second. Every
        record of a burst is handed out. Raises `KafkaError`."""
        async with BoundedConsumer(self._settings) as consumer:
            consumer.assign(self._starts)
            for tp, offset in self._starts.items():
                consumer.seek(tp, offset)
            while True:
                table = await consumer.poll_table(timeout_ms=WAIT_MS)
                if not len(table):
                    yield [], 0
                for batch in table.to_batches(ROWS_AT_ONCE):
                    columns = readable(batch, mask, decode)
                    yield [*found(batch, columns, matcher.hits(*columns), PREVIEW_BYTES)], len(batch)
