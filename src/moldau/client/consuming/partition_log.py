"""A partition as a sequence of records: `log = consumer.log("orders", 0)`, then `log[100:200]`, `log[-1]`, `len(log)`.

An index is an offset; negative ones count from the end. Reading moves no position and commits nothing. Slices hold the
records that exist: retention and compaction leave gaps.
"""

from collections.abc import AsyncIterator, Awaitable, Iterator
from typing import Any, overload

from moldau.client.background import LoopThread
from moldau.client.consuming.consumer_settings import ConsumerSettings
from moldau.client.consuming.fetched.assigned import no_such_partition
from moldau.client.consuming.fetched.record import Record, RecordOrigin, make_record
from moldau.client.epoch_ends import FetchPosition
from moldau.client.failures import STALE_METADATA, check
from moldau.client.fetching import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED, fetch_request
from moldau.client.offsets import offsets_at
from moldau.client.own_loop import of_one_loop
from moldau.client.routing import Router
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition
from moldau.protocol.apis import FETCH, OFFSET_FOR_LEADER_EPOCH
from moldau.records.batch import batches
from moldau.records.rows import lists
from moldau.records.sections import FETCHED_INFLATED_MAX


@of_one_loop()
class AsyncPartitionLog:
    """A partition's log on asyncio: `await log[100:200]`, `async for record in log`, `await log.end()`."""

    def __init__(self, router: Router, settings: ConsumerSettings, tp: TopicPartition):
        self._router = router
        self.own_loop = router.own_loop
        self._settings = settings
        self._place = RecordOrigin(tp)
        self.topic_partition = tp

    def __repr__(self) -> str:
        return f"<Log {self.topic_partition}>"

    async def start(self) -> int:
        """The first offset of the log. Raises `KafkaError`."""
        return await self._offset(EARLIEST)

    async def end(self) -> int:
        """The offset behind the last readable record. Raises `KafkaError`."""
        return await self._offset(LATEST)

    def __getitem__(self, index: int | slice) -> Awaitable[Any]:
        """To be awaited: the record at an offset (`IndexError` if there is none), or the list of those in a slice."""
        return self.read(index) if isinstance(index, slice) else self.at(index)

    async def __aiter__(self) -> AsyncIterator[Record]:
        """The records from the start to what is the end now."""
        at, end = FetchPosition(self.topic_partition, await self.start()), await self.end()
        while at.offset < end:
            for record in await self.piece(at, end):
                yield record

    async def at(self, offset: int) -> Record:
        """The record at an offset; a negative one counts from the end. Raises `IndexError`, `KafkaError`."""
        start, end = await self.start(), await self.end()
        wanted = offset if offset >= 0 else end + offset
        if start <= wanted < end:
            records = await self.piece(FetchPosition(self.topic_partition, wanted), wanted + 1)
            if records:
                return records[0]
            raise IndexError(
                f"{self.topic_partition} has no record at offset {wanted}: it is the marker of a transaction, or the "
                "record was compacted or aborted"
            )
        raise IndexError(f"{self.topic_partition} has no record at offset {wanted}: it goes from {start} to {end - 1}")

    async def read(self, part: slice) -> list[Record]:
        """The records with offsets in a slice. Raises `ValueError` for steps, `KafkaError`: `LogTruncated` if records
        of the slice were lost while it was read."""
        if part.step not in (None, 1):
            raise ValueError("a slice of a log has no step")
        first, end, _ = part.indices(await self.end())
        at = FetchPosition(self.topic_partition, max(first, await self.start()))
        records: list[Record] = []
        while at.offset < end:
            records += await self.piece(at, end)
        return records

    async def piece(self, at: FetchPosition, end: int) -> list[Record]:
        """The records of one Fetch from `at` on with offsets below `end`; `at` moves behind them, or to `end` if there
        are no more."""
        offset = at.offset
        records, aborted = await self._router.retrying(lambda: self._fetch(at))
        piece: list[Record] = []
        fetched = lists(records, Record, self._place, offset, aborted=aborted, inflated_max=FETCHED_INFLATED_MAX)
        for rows in fetched:
            piece += [self._record(row) for row in rows if row[0] < end]
        if at.offset == offset:
            at.offset = end
        return piece

    def _record(self, row: Record) -> Record:
        settings = self._settings
        offset, timestamp_ms, kind, key, value, headers, place = row
        if key is not None and settings.key_deserializer is not None:
            key = settings.key_deserializer(key)
        if value is not None and settings.value_deserializer is not None:
            value = settings.value_deserializer(value)
        return make_record((offset, timestamp_ms, kind, key, value, headers, place))

    async def _fetch(self, at: FetchPosition) -> tuple[memoryview, list[tuple[int, int]]]:
        tp, settings, offset = self.topic_partition, self._settings, at.offset
        link = await self._router.broker(await self._router.leader(tp))
        at.leads_to(self._router.view.topic_id(tp.topic))
        leader_epoch = self._router.view.leader_epoch(tp)
        asked = at.request(leader_epoch, link.versions.has(OFFSET_FOR_LEADER_EPOCH))
        try:
            if asked is not None:
                reply = await link.call(OFFSET_FOR_LEADER_EPOCH, asked, self._router.request_timeout_ms)
                at.answered(reply, leader_epoch)
            request = fetch_request(
                tp, offset, settings.max_partition_fetch_bytes, wait_ms=0, leader_epoch=leader_epoch
            )
            request.isolation_level = READ_COMMITTED if settings.committed else READ_UNCOMMITTED
            reply = await link.call(FETCH, request, self._router.request_timeout_ms)
            check(reply.error_code, f"fetching {tp}")
            data = reply.responses[0].partitions[0]
            check(data.error_code, f"fetching {tp} from offset {offset}")
        except KafkaError as failure:
            if failure.code in STALE_METADATA:
                self._router.stale(tp.topic)
            raise
        records = memoryview(data.records or b"")
        aborted = [(one.producer_id, one.first_offset) for one in data.aborted_transactions or ()]
        for _, header in batches(records):
            if header.last_offset >= at.offset:
                at.read(header.last_offset + 1, header.partition_leader_epoch)
        return records, aborted

    async def _offset(self, which: int) -> int:
        tp = self.topic_partition
        await self._router.retrying(lambda: self._router.refresh([tp.topic]))
        if self._router.view.leader(tp) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise no_such_partition(tp, self._router.view)
        return (await offsets_at(self._router, {tp: which}, committed=self._settings.committed))[tp]


class PartitionLog:
    """A partition's log as a sequence. `len(log)` is the end offset, so that `log[len(log) - 1]` is the newest record;
    `log.start` is above 0 where the oldest were deleted."""

    def __init__(self, core: AsyncPartitionLog, thread: LoopThread, owner: object):
        self._core = core
        self._thread = thread
        self._owner = owner
        self.topic_partition = core.topic_partition

    def __repr__(self) -> str:
        return repr(self._core)

    @property
    def start(self) -> int:
        """The first offset of the log. Raises `KafkaError`."""
        return self._thread.run(self._core.start)

    @property
    def end(self) -> int:
        """The offset behind the last readable record. Raises `KafkaError`."""
        return self._thread.run(self._core.end)

    def __len__(self) -> int:
        return self.end

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        """The record at an offset (`IndexError` if there is none), or the list of those in a slice."""
        if isinstance(index, slice):
            return self._thread.run(self._core.read, index)
        return self._thread.run(self._core.at, index)

    def __iter__(self) -> Iterator[Record]:
        """The records from the start to what is the end now."""
        at, end = FetchPosition(self.topic_partition, self.start), self.end
        while at.offset < end:
            yield from self._thread.run(self._core.piece, at, end)
