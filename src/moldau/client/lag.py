"""The lag of a group: the number of records it has not read, and the age of the oldest of them.

Deleted records do not count. Offsets whose records compaction removed do count, as in Kafka. The age is the time since
the timestamp of the oldest unread record: it is 0 in a partition that was read to its end, and it grows while a record
stays unread.
"""

from collections.abc import Mapping
from typing import NamedTuple

from moldau.client.failures import check
from moldau.client.fetching import EARLIEST, LATEST, fetch_request
from moldau.client.offsets import offsets_at
from moldau.client.routing import Router
from moldau.names import TopicPartition
from moldau.protocol.apis import FETCH
from moldau.records.batch import NO_TIMESTAMP, batches
from moldau.records.rows import iterate

ONE_BATCH_BYTES = 1
"""Size limit of a Fetch that is to return one batch: the first batch comes complete whatever the limit."""


class Lag(NamedTuple):
    """Lag in one partition, whose log goes from `start` to `end`. `records` and `seconds` are None if no offset is
    committed; `seconds` is also None if the oldest unread record has no timestamp or could not be fetched."""

    start: int
    end: int
    records: int | None
    seconds: float | None


class Lags(dict[TopicPartition, int]):
    """The offsets that a consumer has left to read, per partition."""

    @property
    def total(self) -> int:
        """Those of all partitions."""
        return sum(self.values())


async def lags(
    router: Router, committed: Mapping[TopicPartition, int | None], now_ms: int
) -> dict[TopicPartition, Lag]:
    """The lag of each partition behind its committed offset; every partition must exist. Raises `KafkaError`."""
    starts = await offsets_at(router, dict.fromkeys(committed, EARLIEST))
    ends = await offsets_at(router, dict.fromkeys(committed, LATEST))
    by_partition: dict[TopicPartition, Lag] = {}
    for tp, offset in committed.items():
        start, end = starts[tp], ends[tp]
        if offset is None:
            by_partition[tp] = Lag(start, end, None, None)
            continue
        position = max(offset, start)
        if position >= end:
            by_partition[tp] = Lag(start, end, 0, 0.0)
            continue
        timestamp_ms = await first_timestamp(router, tp, position, end)
        if timestamp_ms is None:  # only compacted offsets and markers up to the end
            seconds: float | None = 0.0
        else:
            seconds = max(now_ms - timestamp_ms, 0) / 1000 if timestamp_ms >= 0 else None
        by_partition[tp] = Lag(start, end, end - position, seconds)
    return by_partition


async def first_timestamp(router: Router, tp: TopicPartition, offset: int, end: int) -> int | None:
    """The timestamp of the first record from `offset` up to `end` (excluded), in ms; None without such a record. -1 if
    the record has none, or if the broker returns nothing that tells whether one exists."""
    while offset < end:
        following = offset

        async def ask(at: int = offset) -> bytes:
            link = await router.broker(await router.leader(tp))
            request = fetch_request(tp, at, ONE_BATCH_BYTES, wait_ms=0)
            reply = await link.call(FETCH, request, router.request_timeout_ms)
            check(reply.error_code, f"fetching {tp}")
            part = reply.responses[0].partitions[0]
            check(part.error_code, f"fetching {tp} from offset {at}")
            return bytes(part.records or b"")

        data = await router.retrying(ask)
        for record in iterate(data):
            if record.offset >= offset:
                return record.timestamp_ms
        following = max((header.next_offset for _, header in batches(data)), default=offset)
        if following <= offset:
            return NO_TIMESTAMP
        offset = following
    return None
