"""One partition that this broker hosts: its log, what its leader knows, and who waits for it, moved together.

Appending is: check the batch (records), append it (log), move the watermark (partition), tell those who wait. All of it runs
on the loop but for what `is_heavy` says: such a batch is checked in the executor first, and `produce` is given the result.
"""

import uuid
from collections.abc import Callable

from moldau.config import TopicConfig
from moldau.errors import ErrorCode, KafkaError
from moldau.log.log import Appended, Log
from moldau.names import Offset, TopicPartition
from moldau.records.validation import Checked, Rules, check_produce, needs_executor
from moldau.replication.partition import Partition
from moldau.replication.waiting import Waiters
from moldau.runtime import FileSlice, Runtime

NEVER_FLUSH = 2**63 - 1
"""`flush.messages`: leave flushing to the operating system."""


class Hosted:
    __slots__ = ("_runtime", "_storage_failed", "config", "flushes", "log", "rules", "state", "topic_id", "tp", "waiters")

    def __init__(
        self,
        tp: TopicPartition,
        topic_id: uuid.UUID,
        log: Log,
        config: TopicConfig,
        state: Partition,
        runtime: Runtime,
        storage_failed: Callable[[OSError], None],
    ):
        self.tp = tp
        self.topic_id = topic_id
        self.log = log
        self.state = state
        self.waiters = Waiters()
        self._runtime = runtime
        self._storage_failed = storage_failed
        self.configure(config)

    def configure(self, config: TopicConfig) -> None:
        """Take new topic settings; what is appended from now on follows them."""
        self.config = config
        self.rules = Rules.of(config)
        self.log.config = config
        self.flushes = config.flush_messages < NEVER_FLUSH

    @property
    def high_watermark(self) -> Offset:
        return self.state.high_watermark

    def is_heavy(self, records: memoryview) -> bool:
        """Whether checking these records would hold the loop (D14)."""
        return needs_executor(records)

    def wants_executor(self, records: memoryview) -> bool:
        """Whether appending these records takes more than the loop: a heavy check, or a flush before the answer."""
        return needs_executor(records) or self.flushes

    def flush_due(self) -> bool:
        """Whether `flush.messages` wants the log on the disk before the answer."""
        return self.flushes and self.log.unflushed_records >= self.config.flush_messages

    async def flush(self) -> None:
        """Raises `KafkaError(KAFKA_STORAGE_ERROR)`; a failed flush is never tried again."""
        try:
            await self._runtime.run(self.log.flush)
        except OSError as error:
            self._storage_failed(error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR) from error

    def check(self, records: memoryview, now_ms: int) -> Checked:
        """Everything a broker checks before it appends; safe in another thread."""
        return check_produce(records, self.rules, now_ms)

    def produce(
        self, records: memoryview, now_ms: int, checked: Checked | None = None
    ) -> Appended | Checked:
        """Append one batch from a client. `records` is patched in place."""
        if checked is None:
            checked = check_produce(records, self.rules, now_ms)
        if checked.error:
            return checked
        return self.append(records, checked, now_ms)

    def append(self, records: memoryview, checked: Checked, now_ms: int) -> Appended:
        """Append a checked batch, move the watermark, wake whom it concerns.

        Raises `KafkaError(KAFKA_STORAGE_ERROR)` where the disk fails.
        """
        state = self.state
        try:
            appended = self.log.append(records, checked, state.leader_epoch, now_ms)
        except OSError as error:
            self._storage_failed(error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR) from error
        if not appended.error and state.reached(state.local, self.log.log_end_offset) and self.waiters.parked:
            self.waiters.grew(checked.size)
        return appended

    def read(self, offset: int, bytes_max: int) -> FileSlice | None:
        """What a consumer may see from `offset` on, whole batches first; None where it has all there is.

        Raises `KafkaError`: OFFSET_OUT_OF_RANGE, KAFKA_STORAGE_ERROR.
        """
        try:
            return self.log.read(Offset(offset), bytes_max, self.state.high_watermark)
        except OSError as error:
            self._storage_failed(error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR) from error

    def leadership_error(self, current_leader_epoch: int) -> ErrorCode | None:
        """What is wrong with the leader epoch a client believes in (-1: it does not say), per KIP-320."""
        if not self.state.leads:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if current_leader_epoch < 0 or current_leader_epoch == self.state.leader_epoch:
            return None
        if current_leader_epoch < self.state.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH

    def epoch_at(self, offset: int) -> int:
        """The leader epoch of the record at `offset`, the current one at the end of the log."""
        return self.log.epoch_at(offset) if offset < self.log.log_end_offset else self.state.leader_epoch

    def delete_records_before(self, offset: int) -> Offset:
        """Move the log's start; returns where it is now."""
        try:
            return self.log.delete_records_before(Offset(offset))
        except OSError as error:
            self._storage_failed(error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR) from error
