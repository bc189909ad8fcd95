"""One lane: copies its partitions, records and positions in one transaction.

The lane's transactional id belongs to one producer at a time. A worker that takes the lane over gets a producer id for
it first, which ends the transaction that another worker left open and refuses all that one still sends. Then it reads
the positions, which nobody changes any more, and checks them (`copy_positions`).

    begin; records of some partitions; wait for their offsets; pairs of offsets; positions; commit

After any failure the lane is opened again in this way, so nothing that was remembered counts. A partition that cannot
be copied is set aside with a sentence, and the others go on:

    its logs are others than before                        it stops, until its topic is another one (`copy_positions`)
    the source has records that cannot be read             it pauses, and so on: nothing is ever skipped
    the target does not take its records                   it pauses
    it has no leader in one of the clusters                it pauses, for a shorter time
"""

import asyncio
import logging
import uuid
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from moldau.client.consuming.async_consumer import AsyncConsumer
from moldau.client.failures import sentence
from moldau.client.offsets import EARLIEST, LATEST, offsets_at
from moldau.client.producing.async_producer import AsyncProducer
from moldau.errors import ErrorCode, KafkaError, LogTruncated
from moldau.mirror.copies import LogSpan
from moldau.mirror.ends import CLIENT_ID
from moldau.mirror.foreign.board import Board
from moldau.mirror.foreign.copy_positions import (
    CopyPosition,
    MirroredLogs,
    ResumePoint,
    judged,
    lane_of,
    position_record,
    truncated,
)
from moldau.mirror.foreign.mirror_records import OffsetSync, sync_record
from moldau.mirror.foreign.offset_syncs import Pair, SyncRule, runs_of
from moldau.mirror.foreign.target_topics import read_positions, reader
from moldau.mirror.latency import RecordTimes, ReplicationLatency
from moldau.mirror.requests import by_leader
from moldau.names import OffsetAndMetadata, TopicPartition
from moldau.notices import Notices

WAIT_S: Final = 0.5
PAUSE_S: Final = 0.5
"""After a failure, before the lane is opened again."""
FENCED: Final = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
FENCED_PAUSE_S: Final = 6.0
"""After another worker has taken the lane over: until then the group has told whose it is."""
AGAIN_S: Final = 60.0
"""How long a partition pauses whose records cannot be read, or are not taken: somebody has to do something first."""
UNLED_AGAIN_S: Final = 5.0
"""How long a partition pauses that has no leader, or whose leader did not take records in time."""
TRIES: Final = 2
"""Records are read so often before they count as unreadable, or as lost in the source: they may have been damaged on
their way, or the address may have led to another cluster meanwhile."""
DELIVERY_MS: Final = 30_000
FETCH_BYTES, PART_BYTES = 8 << 20, 1 << 20
"""The most bytes of one answer of the source, and of one partition in it. A larger batch comes whole all the same."""
OF_ONE_PARTITION: Final = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.POLICY_VIOLATION,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
)
"""The target does not take records of this partition, however often they are sent."""
OF_ALL: Final = FENCED | {
    ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.INVALID_TXN_STATE, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ErrorCode.TRANSACTION_ABORTABLE,
}  # fmt: skip
"""Errors of the transaction, which a partition only was the first to meet."""

logger = logging.getLogger(__name__)
notices = Notices(logger)


class Lane:
    """Lane `number` of the mirror on the `board`. Runs in `run` until it is cancelled."""

    def __init__(self, board: Board, number: int):
        self._board = board
        self._number = number
        self._rules: dict[TopicPartition, SyncRule] = {}
        self._ids: dict[TopicPartition, tuple[uuid.UUID, uuid.UUID]] = {}
        """Of the topics in source and target that a partition was checked with."""
        self._unread: Counter[TopicPartition] = Counter()
        """How often in a row the records at a partition's position could not be read."""
        self._told_s = 0.0

    def partitions(self) -> list[TopicPartition]:
        """What the lane has to copy."""
        board = self._board
        return [
            tp
            for name, topic in board.topics.items()
            for number in range(topic.partitions)
            if lane_of(tp := TopicPartition(name, number), board.lanes) == self._number and tp not in board.stopped
        ]

    async def run(self) -> None:
        """Raises `ConfigError` if the positions are of no use."""
        try:
            while True:
                try:
                    await self._open()
                except KafkaError as failure:
                    self._failed(failure)
                    await asyncio.sleep(FENCED_PAUSE_S if failure.code in FENCED else PAUSE_S)
        finally:
            self._board.release(self._number)

    def _failed(self, failure: KafkaError) -> None:
        board, tp = self._board, failure.topic_partition
        board.pauses += 1
        if tp is not None and tp in self._rules:
            self._unread[tp] += 1
            if self._unread[tp] >= TRIES:
                if isinstance(failure, LogTruncated):
                    board.stop(tp, truncated(tp, board.remote(tp), str(failure)))
                    return
                offset = board.positions_of.get(tp, 0)
                board.pause(tp, f"the source's records cannot be read from offset {offset} on: {failure}", AGAIN_S)
                return
        notices.warning(f"lane {self._number}", "lane %d: mirroring pauses: %s", self._number, failure)

    async def _open(self) -> None:
        """Copy until what has to be copied changes. Raises `KafkaError`."""
        board = self._board
        producer = AsyncProducer(
            board.target.brokers,
            client_id=CLIENT_ID,
            transactional_id=board.transactional_id(self._number),
            compression_type=board.compression,
            linger_ms=0,
            delivery_timeout_ms=DELIVERY_MS,
        )
        consumer = AsyncConsumer(
            board.source.brokers,
            client_id=CLIENT_ID,
            isolation_level="read_committed",
            auto_offset_reset="none",
            enable_auto_commit=False,
            fetch_max_bytes=FETCH_BYTES,
            max_partition_fetch_bytes=PART_BYTES,
        )
        async with producer, consumer:
            await producer.init_transactions()
            while True:
                board.changed(self._number).clear()
                wanted = self.partitions()
                if not wanted:
                    await board.changed(self._number).wait()
                    continue
                await self._begin(producer, consumer, wanted)
                while not board.changed(self._number).is_set():
                    await self._copy(producer, consumer)

    async def _begin(self, producer: AsyncProducer, consumer: AsyncConsumer, wanted: list[TopicPartition]) -> None:
        """Find where each partition goes on, and have the consumer read there."""
        verdicts = await self._verdicts(wanted)
        for tp, verdict in verdicts.items():
            if verdict.refused:
                self._board.stop(tp, verdict.refused)
            elif verdict.warning:
                notices.warning(str(tp), "%s", verdict.warning)
        going = {tp: verdict for tp, verdict in verdicts.items() if not verdict.refused}
        fresh = {tp: verdict for tp, verdict in going.items() if verdict.is_new}
        if fresh:  # written before the first record: records without a position would be those of somebody else
            await producer.begin_transaction()
            for tp, verdict in fresh.items():
                await self._send_position(producer, tp, verdict.start, verdict.epoch, 0)
            await producer.commit_transaction()
        self._rules = {tp: SyncRule(self._board.lag_max, one.start, one.downstream) for tp, one in going.items()}
        self._board.positions_of.update({tp: verdict.start for tp, verdict in going.items()})
        consumer.assign(going)
        for tp, verdict in going.items():
            consumer.seek(tp, OffsetAndMetadata(verdict.start, leader_epoch=verdict.epoch))

    async def _verdicts(self, wanted: list[TopicPartition]) -> dict[TopicPartition, ResumePoint]:
        """Of the partitions that have leaders; the others pause."""
        board = self._board
        async with reader(board.target) as positions_reader:
            positions = await read_positions(
                positions_reader, board.positions, self._number, board.lanes, board.source.cluster_id
            )
        await asyncio.gather(board.source.topics(), board.target.topics())
        source, target = board.source.router, board.target.router
        unled = (await by_leader(source, wanted)).failures
        there = {tp: TopicPartition(board.remote(tp), tp.partition) for tp in wanted if tp not in unled}
        unled_there = (await by_leader(target, there.values())).failures
        unled |= {tp: unled_there[far] for tp, far in there.items() if far in unled_there}
        for tp, failure in unled.items():
            board.pause(tp, f"{sentence(failure.code)}: {failure}", UNLED_AGAIN_S)
        there = {tp: far for tp, far in there.items() if tp not in unled}
        starts, ends, far_starts, far_ends = await asyncio.gather(
            offsets_at(source, dict.fromkeys(there, EARLIEST)),
            offsets_at(source, dict.fromkeys(there, LATEST)),
            offsets_at(target, dict.fromkeys(there.values(), EARLIEST)),
            offsets_at(target, dict.fromkeys(there.values(), LATEST)),
        )
        verdicts: dict[TopicPartition, ResumePoint] = {}
        for tp, far in there.items():
            logs = MirroredLogs(
                LogSpan(starts[tp], ends[tp]),
                LogSpan(far_starts[far], far_ends[far]),
                board.id_in(source, tp.topic),
                board.id_in(target, far.topic),
            )
            self._ids[tp] = logs.source_id, logs.target_id
            verdicts[tp] = judged(tp, far.topic, positions.get(tp), logs)
        return verdicts

    # Copying

    async def _copy(self, producer: AsyncProducer, consumer: AsyncConsumer) -> None:
        """Copy what was fetched, in one transaction."""
        table = await consumer.poll_table(timeout=WAIT_S)
        pieces = by_partition(table.to_batches())
        pairs = self._late()
        if not pieces and not pairs:
            self._tell_behind(consumer)
            return
        positions = await consumer.positions() if pieces else {}
        await producer.begin_transaction()
        ends: dict[TopicPartition, int] = {}
        for tp, offsets, placed in await self._send(producer, pieces):
            pairs[tp] = self._rules[tp].copied(runs_of(offsets, placed))
            ends[tp] = placed[-1][0] + placed[-1][1]
            self._unread.pop(tp, None)
        for tp, some in pairs.items():
            for upstream, downstream in some:
                key, value = sync_record(OffsetSync(tp, upstream, downstream))
                await producer.send(self._board.offset_syncs, value, key, partition=0)
        for tp, end in ends.items():
            at = positions[tp]
            await self._send_position(producer, tp, at.offset, at.leader_epoch, end)
        await producer.commit_transaction()
        self._arrived(pieces)
        self._board.records += table.num_rows
        self._board.positions_of.update({tp: positions[tp].offset for tp in ends})
        self._tell_behind(consumer)

    def _arrived(self, pieces: dict[TopicPartition, list[pa.RecordBatch]]) -> None:
        """Note how long the records took."""
        wall_ms, now_s = self._board.target.router.runtime.clock.now_ms(), asyncio.get_running_loop().time()
        for tp, batches in pieces.items():
            latency = self._board.latencies.setdefault(tp, ReplicationLatency())
            for batch in batches:
                latency.arrived(_times(batch), wall_ms, now_s)

    async def _send(
        self, producer: AsyncProducer, pieces: dict[TopicPartition, list[pa.RecordBatch]]
    ) -> list[tuple[TopicPartition, list[int], list[tuple[int, int]]]]:
        """Write the records; returns the offsets in the source of each partition's, and where they are in the mirror:
        (first offset, records) of each piece."""
        sending = []
        for tp, batches in pieces.items():
            table = _dated(pa.Table.from_batches(batches))
            offsets: list[int] = table.column("offset").to_pylist()
            sending.append((tp, offsets, await producer.send_table(self._board.remote(tp), table)))
        sent = []
        for tp, offsets, delivery in sending:
            try:
                placed = [(rows.offset, rows.rows) for rows in await delivery]
            except KafkaError as failure:
                if failure.code not in OF_ALL:
                    seconds = AGAIN_S if failure.code in OF_ONE_PARTITION else UNLED_AGAIN_S
                    self._board.pause(tp, f"the target does not take its records: {failure}", seconds)
                raise
            sent.append((tp, offsets, placed))
        return sent

    async def _send_position(
        self, producer: AsyncProducer, tp: TopicPartition, upstream: int, epoch: int | None, downstream: int
    ) -> None:
        at = CopyPosition(upstream, epoch, downstream, *self._ids[tp], self._board.source.cluster_id)
        key, value = position_record(tp, at)
        await producer.send(self._board.positions, value, key, partition=self._number)

    def _late(self) -> dict[TopicPartition, list[Pair]]:
        """Pairs of last records that were not told, each time that checkpoints are due."""
        now_s = asyncio.get_running_loop().time()
        if now_s < self._told_s + self._board.checkpoints_s:
            return {}
        self._told_s = now_s
        late = {tp: rule.last() for tp, rule in self._rules.items()}
        return {tp: pairs for tp, pairs in late.items() if pairs}

    def _tell_behind(self, consumer: AsyncConsumer) -> None:
        for tp in self._rules:
            end, at = consumer.end_offset(tp), self._board.positions_of.get(tp)
            if end >= 0 and at is not None:
                self._board.behind[tp] = max(end - at, 0)


def by_partition(batches: Iterable[pa.RecordBatch]) -> dict[TopicPartition, list[pa.RecordBatch]]:
    """The batches of a table of records, each of which is of one partition, by partition."""
    pieces: dict[TopicPartition, list[Any]] = {}
    for batch in batches:
        if batch.num_rows:
            tp = TopicPartition(batch.column("topic")[0].as_py(), batch.column("partition")[0].as_py())
            pieces.setdefault(tp, []).append(batch)
    return pieces


def _times(batch: pa.RecordBatch) -> RecordTimes:
    """Of the records that have a time."""
    stamps = batch.column("timestamp").cast(pa.int64())
    dated = stamps.filter(pc.greater_equal(stamps, 0))
    if not len(dated):
        return RecordTimes()
    mean_us, oldest_us = pc.mean(dated).as_py(), pc.min(dated).as_py()
    return RecordTimes(len(dated), len(dated) * mean_us / 1000, oldest_us / 1000)


def _dated(table: pa.Table) -> pa.Table:
    """The table, without the times of records that have none (-1): they get the time of their mirroring, as all records
    have one in today's format."""
    stamps = table.column("timestamp")
    undated = pc.less(stamps.cast(pa.int64()), 0)
    if not pc.any(undated).as_py():
        return table
    dated = pc.if_else(undated, pa.scalar(None, stamps.type), stamps)
    return table.set_column(table.column_names.index("timestamp"), "timestamp", dated)
