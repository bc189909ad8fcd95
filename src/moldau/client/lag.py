"""The lag of a group: the number of records it has not read, and the age of the oldest of them.

The rules are those of a broker's metrics (`records.lag`), except that deleted records do not count here. Offsets whose
records compaction removed do count, as in Kafka. The age is the time since the timestamp of the oldest record that a
consumer has yet to be handed: records of aborted transactions are passed over, those of open ones wait.
"""

from collections.abc import Mapping
from typing import NamedTuple

from moldau.client.failures import check
from moldau.client.fetching import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED, Fetched, fetch_request
from moldau.client.offsets import offsets_at
from moldau.client.routing import Router
from moldau.names import TopicPartition
from moldau.protocol.apis import FETCH
from moldau.records.batch import NO_TIMESTAMP, batches
from moldau.records.lag import lag_records, lag_seconds
from moldau.records.rows import iterate

ONE_BATCH_BYTES = 1
"""Size limit of a Fetch that is to return one batch: the first batch comes complete whatever the limit."""
PASSED_MAX = 256
"""Batches without a record for consumers that are passed over; behind so many the age is not known."""


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


KnownTimestamps = dict[tuple[TopicPartition, int], int]
"""Partition and offset -> timestamp of the first record from there on, for programs that ask again and again: each
look-up fetches a whole batch."""


async def lags(
    router: Router, committed: Mapping[TopicPartition, int | None], now_ms: int, known: KnownTimestamps | None = None
) -> dict[TopicPartition, Lag]:
    """The lag of each partition behind its committed offset; every partition must exist. What is in `known` is not
    looked up, and what may be kept is added: timestamps that no end of a transaction can change. Raises
    `KafkaError`."""
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
        timestamp_ms = None if known is None else known.get((tp, position))
        if timestamp_ms is None:
            timestamp_ms, is_settled = await _first(router, tp, position, end)
            if known is not None and timestamp_ms is not None and is_settled:
                known[tp, position] = timestamp_ms
        seconds = None if timestamp_ms == NO_TIMESTAMP else lag_seconds(now_ms, timestamp_ms)
        by_partition[tp] = Lag(start, end, lag_records(position, end), seconds)
    return by_partition


async def first_timestamp(router: Router, tp: TopicPartition, offset: int, end: int) -> int | None:
    """The timestamp of the first record from `offset` up to `end` (excluded) that a consumer will be handed, in ms;
    None without such a record. -1 if the record has none, or if the broker returns nothing that tells whether one
    exists."""
    return (await _first(router, tp, offset, end))[0]


async def _first(router: Router, tp: TopicPartition, offset: int, end: int) -> tuple[int | None, bool]:
    """As `first_timestamp`, and whether it is that of a record outside of transactions."""
    for _ in range(PASSED_MAX):
        if offset >= end:
            return None, False
        fetched = await _one_batch(router, tp, offset, READ_COMMITTED)
        if not fetched.records:  # from the first open transaction on, everything waits
            fetched = await _one_batch(router, tp, offset, READ_UNCOMMITTED)
        for record in iterate(fetched.records, offset, aborted=fetched.aborted):
            if record.offset >= end:
                return None, False
            around = (h for _, h in batches(fetched.records) if h.base_offset <= record.offset <= h.last_offset)
            return record.timestamp_ms, record.timestamp_ms >= 0 and not any(h.is_transactional for h in around)
        following = max((header.next_offset for _, header in batches(fetched.records)), default=offset)
        if following <= offset:
            break
        offset = following
    return NO_TIMESTAMP, False


async def _one_batch(router: Router, tp: TopicPartition, offset: int, isolation: int) -> Fetched:
    async def ask() -> Fetched:
        link = await router.broker(await router.leader(tp))
        request = fetch_request(tp, offset, ONE_BATCH_BYTES, wait_ms=0, isolation=isolation)
        reply = await link.call(FETCH, request, router.request_timeout_ms)
        check(reply.error_code, f"fetching {tp}")
        part = reply.responses[0].partitions[0]
        check(part.error_code, f"fetching {tp} from offset {offset}")
        aborted = [] if isolation == READ_UNCOMMITTED else part.aborted_transactions or ()
        return Fetched(bytes(part.records or b""), [(one.producer_id, one.first_offset) for one in aborted])

    return await router.retrying(ask)
