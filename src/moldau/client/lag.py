"""The lag of a group: the number of records it has not read, and the age of the oldest of them.

The rules are those of a broker's metrics (`records.lag`): deleted records do not count, offsets whose records
compaction removed do. The age is the time since the timestamp of the oldest record that a
consumer has yet to be handed: records of aborted transactions are passed over, those of open ones wait.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

from moldau.client.failures import check
from moldau.client.fetching import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED, Fetched, fetch_request
from moldau.client.offsets import offsets_at
from moldau.client.routing import Router
from moldau.errors import KafkaError, TopicAuthorizationFailed
from moldau.names import TopicPartition
from moldau.protocol.apis import FETCH
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from moldau.records.batch import NO_TIMESTAMP, batches
from moldau.records.lag import lag_records, lag_seconds
from moldau.records.rows import iterate

ONE_BATCH_BYTES = 1
"""Size limit of a Fetch that is to return one batch: the first batch comes complete whatever the limit."""
SMALL_BYTES, PARTITIONS_AT_ONCE = 16 << 10, 64
"""A Fetch of many partitions returns batches up to this size, which is the largest one that Java's producers make with
their default `batch.size`. Larger ones are fetched one by one."""
INFLATED_MAX = 4 << 20
"""A batch that inflates to more is not looked into: a lag is not worth the memory."""
PASSED_MAX = 256
"""Batches without a record for consumers that are passed over; behind so many the age is not known."""
Place = tuple[TopicPartition, int]
"""A partition and an offset in it."""
FirstRecord = tuple[int | None, bool]
"""The timestamp of the first record in ms (None: no record, -1: not known), and whether it stays the first one for
good: records of transactions may turn out to be aborted."""


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


KnownTimestamps = dict[Place, int]
"""Place -> timestamp of the first record from there on, for programs that ask again and again: each
look-up fetches a whole batch."""


async def lags(
    router: Router, committed: Mapping[TopicPartition, int | None], now_ms: int, known: KnownTimestamps | None = None
) -> dict[TopicPartition, Lag]:
    """The lag of each partition behind its committed offset; every partition must exist. What is in `known` is not
    looked up, and what may be kept is added: timestamps that no end of a transaction can change. Raises
    `KafkaError`."""
    starts = await offsets_at(router, dict.fromkeys(committed, EARLIEST))
    ends = await offsets_at(router, dict.fromkeys(committed, LATEST))
    waiting = {}
    for tp, offset in committed.items():
        if offset is not None and max(offset, starts[tp]) < ends[tp]:
            waiting[tp, max(offset, starts[tp])] = ends[tp]
    since = await waiting_since(router, waiting, known)
    by_partition: dict[TopicPartition, Lag] = {}
    for tp, offset in committed.items():
        start, end = starts[tp], ends[tp]
        if offset is None:
            by_partition[tp] = Lag(start, end, None, None)
            continue
        position = max(offset, start)
        seconds = waiting_seconds(now_ms, since[tp, position]) if position < end else 0.0
        by_partition[tp] = Lag(start, end, lag_records(offset, start, end), seconds)
    return by_partition


def waiting_seconds(now_ms: int, timestamp_ms: int | None) -> float | None:
    """The age of a record of `waiting_since`; None if its timestamp is not known."""
    return None if timestamp_ms == NO_TIMESTAMP else lag_seconds(now_ms, timestamp_ms)


async def waiting_since(
    router: Router, wanted: Mapping[Place, int], known: KnownTimestamps | None = None
) -> dict[Place, int | None]:
    """For each place, with the end of its partition, the timestamp as `first_timestamp` returns it; `known` as for
    `lags`. Leaders are asked for many partitions at once. Raises `KafkaError`."""
    known = {} if known is None else known
    found: dict[Place, int | None] = {place: known[place] for place in wanted if place in known}
    small = await _small_batches(router, [place for place in wanted if place not in found])
    for place, end in wanted.items():
        if place in found:
            continue
        first = _first_in(small[place], place[1], end) if place in small else None
        try:
            found[place], is_settled = await _first(router, *place, end) if first is None else first
        except TopicAuthorizationFailed:  # who may describe a group and its topics may not read them
            found[place], is_settled = NO_TIMESTAMP, False
        timestamp_ms = found[place]
        if is_settled and timestamp_ms is not None:
            known[place] = timestamp_ms
    return found


async def first_timestamp(router: Router, tp: TopicPartition, offset: int, end: int) -> int | None:
    """The timestamp of the first record from `offset` up to `end` (excluded) that a consumer will be handed, in ms;
    None without such a record. -1 if the record has none, or if the broker returns nothing that tells whether one
    exists."""
    return (await _first(router, tp, offset, end))[0]


async def _first(router: Router, tp: TopicPartition, offset: int, end: int) -> FirstRecord:
    for _ in range(PASSED_MAX):
        if offset >= end:
            return None, False
        fetched = await _one_batch(router, tp, offset, READ_COMMITTED)
        if not fetched.records:  # from the first open transaction on, everything waits
            fetched = await _one_batch(router, tp, offset, READ_UNCOMMITTED)
        first = _first_in(fetched, offset, end)
        if first is not None:
            return first
        following = max((header.next_offset for _, header in batches(fetched.records)), default=offset)
        if following <= offset:
            break
        offset = following
    return NO_TIMESTAMP, False


def _first_in(fetched: Fetched, offset: int, end: int) -> FirstRecord | None:
    """The first record among these batches; None if they have none for consumers."""
    try:
        record = next(iterate(fetched.records, offset, aborted=fetched.aborted, inflated_max=INFLATED_MAX), None)
    except KafkaError:  # damaged, or large: nothing tells how old its records are
        return NO_TIMESTAMP, False
    if record is None:
        return None
    if record.offset >= end:
        return None, False
    around = (h for _, h in batches(fetched.records) if h.base_offset <= record.offset <= h.last_offset)
    return record.timestamp_ms, record.timestamp_ms >= 0 and not any(h.is_transactional for h in around)


async def _small_batches(router: Router, places: Sequence[Place]) -> dict[Place, Fetched]:
    """The first batches at those of these places where they are small, in requests for many partitions."""
    by_leader: dict[int, list[Place]] = {}
    if len(places) > 1:
        for place in places:
            leader = await router.retrying(partial(router.leader, place[0]))
            by_leader.setdefault(leader, []).append(place)
    found: dict[Place, Fetched] = {}
    for leader, left in by_leader.items():
        while left:
            some: dict[TopicPartition, int] = {}
            later = []
            for tp, offset in left:
                if tp in some or len(some) == PARTITIONS_AT_ONCE:  # a request has one offset of a partition
                    later.append((tp, offset))
                else:
                    some[tp] = offset
            found |= await _fetched_together(router, leader, some)
            left = later
    return found


async def _fetched_together(router: Router, leader: int, offsets: Mapping[TopicPartition, int]) -> dict[Place, Fetched]:
    """What one leader returns of these partitions; nothing of those that it refuses."""
    topics: dict[str, FetchTopic] = {}
    for tp, offset in offsets.items():
        topic = topics.setdefault(tp.topic, FetchTopic(topic=tp.topic))
        topic.partitions.append(
            FetchPartition(partition=tp.partition, fetch_offset=offset, partition_max_bytes=SMALL_BYTES)
        )
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=SMALL_BYTES * len(offsets),
        isolation_level=READ_COMMITTED,
        topics=[*topics.values()],
    )

    async def ask() -> FetchResponse:
        link = await router.broker(leader)
        reply: FetchResponse = await link.call(FETCH, request, router.request_timeout_ms)
        check(reply.error_code, "fetching what groups have yet to read")
        return reply

    reply = await router.retrying(ask)
    found = {}
    for of_topic in reply.responses:
        for part in of_topic.partitions:
            tp = TopicPartition(of_topic.topic, part.partition_index)
            if tp in offsets and not part.error_code and part.records:
                found[tp, offsets[tp]] = Fetched(bytes(part.records), _aborted(part))
    return found


def _aborted(part: PartitionData) -> list[tuple[int, int]]:
    return [(one.producer_id, one.first_offset) for one in part.aborted_transactions or ()]


async def _one_batch(router: Router, tp: TopicPartition, offset: int, isolation: int) -> Fetched:
    async def ask() -> Fetched:
        link = await router.broker(await router.leader(tp))
        request = fetch_request(tp, offset, ONE_BATCH_BYTES, wait_ms=0, isolation=isolation)
        reply = await link.call(FETCH, request, router.request_timeout_ms)
        check(reply.error_code, f"fetching {tp}")
        part = reply.responses[0].partitions[0]
        check(part.error_code, f"fetching {tp} from offset {offset}")
        return Fetched(bytes(part.records or b""), [] if isolation == READ_UNCOMMITTED else _aborted(part))

    return await router.retrying(ask)
