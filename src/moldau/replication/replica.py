"""One partition that this broker hosts: its log, what its leader knows, and who waits for it, moved together.

Appending is: check the batch (records), append it (log), move the watermark (partition), tell those who wait. All of
it runs on the loop but for what `wants_executor` says: a batch that is heavy to check is checked in the executor, and
`produce` is given the result; a log that must be flushed before the answer is flushed there.
"""

import uuid
from collections.abc import Iterator
from functools import partial
from typing import Final, NamedTuple

from moldau.config import TopicConfig
from moldau.errors import ErrorCode, KafkaError
from moldau.log.appended import Appended, not_appended
from moldau.log.log import Log
from moldau.log.producers import verification_guards
from moldau.log.times import Search
from moldau.names import INTERNAL_TOPICS, Offset, TopicPartition, VerificationGuard
from moldau.records.batch import HEADER_SIZE, NO_SEQUENCE, TRANSACTIONAL_BIT, BatchHeader, Marker, read_header
from moldau.records.validation import INLINE_BYTES, Checked, Rules, check_produce, needs_executor
from moldau.replication.leadership import NOBODY, Leadership
from moldau.replication.results import ActiveProducer, ReadResult
from moldau.replication.waiting import Waiters
from moldau.runtime import Runtime

FLUSH_NEVER = 2**63 - 1
"""`flush.messages`: leave flushing to the operating system."""


DEFAULT_LEVEL = -1
PRODUCER = "producer"
"""`compression.type`: batches stay as their producers compressed them."""
_new: Final = tuple.__new__  # what a NamedTuple's constructor does, at a third of its cost


def rules_of(config: TopicConfig, tp: TopicPartition) -> Rules:
    """What a topic's settings ask of every batch."""
    levels = {
        "gzip": config.compression_gzip_level,
        "lz4": config.compression_lz4_level,
        "zstd": config.compression_zstd_level,
    }
    level = levels.get(config.compression_type)
    return Rules(
        max_message_bytes=config.max_message_bytes,
        compacted=config.compacts,
        timestamp_type=config.message_timestamp_type,
        before_max_ms=config.message_timestamp_before_max_ms,
        after_max_ms=config.message_timestamp_after_max_ms,
        compression_type=config.compression_type,
        compression_level=None if level == DEFAULT_LEVEL and config.compression_type == "gzip" else level,
        partition=str(tp),
    )


class Begun(NamedTuple):
    """A transaction that is about to begin in a partition, before its coordinator was asked."""

    producer_id: int
    epoch: int
    verification: VerificationGuard


def _of_transaction(records: memoryview) -> BatchHeader | None:
    """The header of a producer's transactional batch, unchecked; None for anything else."""
    if len(records) < HEADER_SIZE:
        return None
    header = read_header(records)
    return header if header.attributes & TRANSACTIONAL_BIT and header.producer_id >= 0 else None


class Replica:
    __slots__ = (
        "_flushes", "_recompresses", "_runtime", "config", "internal", "leadership", "log", "rules", "topic_id", "tp",
        "waiters",
    )  # fmt: skip

    def __init__(
        self,
        tp: TopicPartition,
        topic_id: uuid.UUID,
        log: Log,
        config: TopicConfig,
        leadership: Leadership,
        runtime: Runtime,
    ):
        self.tp = tp
        self.internal = tp.topic in INTERNAL_TOPICS
        self.topic_id = topic_id
        self.log = log
        self.leadership = leadership
        self.waiters = Waiters()
        self._runtime = runtime
        self.configure(config)

    def configure(self, config: TopicConfig) -> None:
        """Take new topic settings; what is appended from now on follows them."""
        self.config = config
        self.rules = rules_of(config, self.tp)
        self._recompresses = config.compression_type != PRODUCER
        self.log.config = config
        self._flushes = config.flush_messages < FLUSH_NEVER

    def leave(self) -> None:
        """The partition is no longer here: who is parked is told, and nothing more is written."""
        self.leadership.leader = NOBODY
        self.log.abandon()
        self.waiters.wake()

    @property
    def high_watermark(self) -> Offset:
        return self.leadership.high_watermark

    @property
    def log_start_offset(self) -> Offset:
        return self.log.log_start_offset

    @property
    def last_stable_offset(self) -> Offset:
        """Every offset below it is committed, and its transaction, if any, has ended."""
        return self.log.committed.last_stable_offset(self.leadership.high_watermark)

    def wants_executor(self, records: memoryview) -> bool:
        """Whether appending these records takes more than the loop: a check that inflates much or compresses anew, or
        a flush before the answer."""
        return self._flushes or self._is_heavy(records)

    def _is_heavy(self, records: memoryview) -> bool:
        return needs_executor(records) or (self._recompresses and len(records) > INLINE_BYTES)

    def produce(self, records: memoryview, now_ms: int, checked: Checked | None = None) -> Appended | Checked:
        """Append one batch from a client, which is patched in place; a `Checked` says why it was not even tried."""
        if checked is None:
            checked = check_produce(records, self.rules, now_ms)
        if checked.error:
            return checked
        try:
            return self.append(records, checked, now_ms)
        except KafkaError as error:
            return Appended(-1, -1, -1, -1, error.code, False)

    async def produce_in_executor(
        self, records: memoryview, now_ms: int, begun: Begun | None = None, transaction_version: int = 0
    ) -> Appended | Checked:
        """As `produce`, with what is heavy off the loop, and the flush that `flush.messages` asks for before the
        answer. A batch of a transaction gets in only if it goes on with one, or shows what `unverified` gave for it."""
        checked = None
        if self._is_heavy(records):
            checked = await self._runtime.run(partial(check_produce, records, self.rules, now_ms))
        if not self.leadership.leads:  # deleted, or another's, meanwhile
            return Appended(-1, -1, -1, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER, False)
        header = _of_transaction(records)
        if header is not None:
            guard = None if begun is None else begun.verification
            error = verification_guards.check(self.log.producers, header, guard, transaction_version)
            if error is not None:
                return not_appended(error, self.log.log_start_offset)
        outcome = self.produce(records, now_ms, checked)
        if not outcome.error:
            try:
                await self.flush_if_due(len(records))
            except KafkaError as error:
                return Appended(-1, -1, -1, -1, error.code, False)
        return outcome

    def unverified(self, records: memoryview, now_ms: int) -> Begun | None:
        """What begins with these records if they are the first of a transaction here; None if they are not."""
        header = _of_transaction(records)
        if header is None or verification_guards.is_open(self.log.producers, header):
            return None
        return Begun(
            header.producer_id, header.producer_epoch, verification_guards.obtain(self.log.producers, header, now_ms)
        )

    @property
    def _is_flush_due(self) -> bool:
        return self._flushes and self.log.unflushed_records >= self.config.flush_messages

    async def flush_if_due(self, size: int) -> None:
        """Flush where `flush.messages` asks for it, after so many bytes were appended, and only then let them be seen.
        Raises `KafkaError(KAFKA_STORAGE_ERROR)`."""
        if self._is_flush_due:
            await self._runtime.run(self.log.flush)
            leadership = self.leadership
            if leadership.leads and leadership.reached(leadership.local, Offset(self.log.recovery_point)):
                self.waiters.moved(size, leadership.high_watermark)

    def append(self, records: memoryview, checked: Checked, now_ms: int) -> Appended:
        """Append a checked batch, move the watermark, wake whom it concerns. Raises
        `KafkaError(KAFKA_STORAGE_ERROR)`."""
        leadership, log = self.leadership, self.log
        appended = log.append(records, checked, leadership.leader_epoch, now_ms)
        if self._flushes and self._is_flush_due:
            return appended
        if not appended.error and leadership.reached(leadership.local, log.log_end_offset):
            waiters = self.waiters
            if waiters.for_bytes or waiters.until_committed:
                waiters.moved(checked.size, leadership.high_watermark)
        return appended

    def append_own(self, batch: bytearray, now_ms: int) -> Appended:
        """Append a batch that this broker wrote itself, for an internal topic; it is patched in place.

        Raises `KafkaError`: KAFKA_STORAGE_ERROR, or what is wrong with the batch.
        """
        records = memoryview(batch)
        checked = check_produce(records, self.rules, now_ms)
        if checked.error:
            raise KafkaError(checked.error, checked.message)
        return self.append(records, checked, now_ms)

    async def append_marker(
        self, producer_id: int, epoch: int, marker: Marker, transaction_version: int, now_ms: int
    ) -> Appended:
        """End a producer's transaction here, as its coordinator decided, and tell those who wait for what it held back;
        after the flush, where `flush.messages` asks for one.

        Raises `KafkaError(KAFKA_STORAGE_ERROR)`.
        """
        leadership, log = self.leadership, self.log
        appended = log.append_marker(producer_id, epoch, marker, transaction_version, leadership.leader_epoch, now_ms)
        if appended.error:
            return appended
        end = log.log_end_offset
        if self._is_flush_due:
            await self._runtime.run(log.flush)
            end = Offset(log.recovery_point)
        if leadership.leads and leadership.reached(leadership.local, end):
            log.producers.settle(leadership.high_watermark)
            self.waiters.wake()
        return appended

    def read(self, offset: int, max_bytes: int, committed: bool, min_one: bool = True) -> ReadResult:
        """Records from the batch that holds `offset` on, up to where this reader may see, with what it is told about
        the partition. `max_bytes` and `min_one` are those of `Log.read`; `committed`: the isolation level is
        read_committed.

        Raises `KafkaError`: OFFSET_OUT_OF_RANGE, KAFKA_STORAGE_ERROR, CORRUPT_MESSAGE.
        """
        log, watermark = self.log, self.leadership.high_watermark
        stable = log.committed.last_stable_offset(watermark) if log.producers.unsettled else watermark
        records = log.read(offset, max_bytes, stable if committed else watermark, min_one)
        aborted: list[tuple[int, int]] | None = None
        if committed:
            aborted = []
            if log.committed.has_aborted:
                aborted = [(one.producer_id, one.first_offset) for one in log.committed.aborted_in(offset, records)]
        return _new(ReadResult, (watermark, stable, log.log_start_offset, aborted, records))

    def end(self, committed: bool) -> Offset:
        """The first offset that this reader may not see yet. `committed`: the isolation level is read_committed."""
        return self.last_stable_offset if committed else self.leadership.high_watermark

    def look_up(self, timestamp_ms: int | None, committed: bool) -> Search:
        """Search for the first record at or after a time, or for the first one with the largest timestamp of all where
        the time is None. The steps end with None if this reader may not see that record. Raises `KafkaError`."""
        log = self.log
        search = log.offset_of_max_timestamp() if timestamp_ms is None else log.offset_for_time(timestamp_ms)
        at = yield from search
        return None if at is None or at.offset >= self.end(committed) else at

    def epoch_of_batch(self, offset: int) -> int:
        """The leader epoch in the header of the batch that holds `offset`. Raises `KafkaError`."""
        return self.log.epoch_of_batch(offset)

    def delete_records_before(self, offset: int) -> Offset:
        """Move the log's start forward to `offset`; returns where it is now. Raises `KafkaError`: OFFSET_OUT_OF_RANGE
        above the high watermark, KAFKA_STORAGE_ERROR."""
        if not 0 <= offset <= self.leadership.high_watermark:
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
        return self.log.delete_records_before(offset)

    def active_producers(self) -> Iterator[ActiveProducer]:
        """The producers that the log remembers. Others may have a turn between two of them."""
        for producer_id, producer in self.log.producers:
            yield ActiveProducer(
                producer_id=producer_id,
                epoch=producer.epoch,
                last_sequence=producer.batches[-1].last_sequence if producer.batches else NO_SEQUENCE,
                last_timestamp=producer.last_timestamp,
                coordinator_epoch=producer.coordinator_epoch,
                transaction_start=producer.transaction_start,
            )

    def leadership_error(self, current_leader_epoch: int) -> ErrorCode | None:
        """What is wrong with the leader epoch a client believes in (-1: it does not say), per KIP-320."""
        if not self.leadership.leads:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if current_leader_epoch < 0 or current_leader_epoch == self.leadership.leader_epoch:
            return None
        if current_leader_epoch < self.leadership.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH

    def epoch_at(self, offset: int) -> int:
        """The leader epoch of the record at `offset`, the current one at the end of the log."""
        return self.log.epoch_at(offset) if offset < self.log.log_end_offset else self.leadership.leader_epoch

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch at or below `epoch` that this log knows, and where it ended; (-1, -1) for one to come."""
        latest, log_end = self.log.epochs.latest, self.log.log_end_offset
        if epoch == self.leadership.leader_epoch:
            return epoch, log_end
        if 0 <= latest < epoch < self.leadership.leader_epoch:
            return latest, log_end
        return self.log.epochs.end_of(epoch, log_end)
