"""An internal topic as coordinators see it: they read a partition from its start, and append batches, also
transactional ones, that are acknowledged once committed."""

from collections.abc import AsyncIterator
from functools import partial

from moldau.errors import ErrorCode, KafkaError
from moldau.log.log import Log
from moldau.log.producers import verification_guards
from moldau.names import VerificationGuard
from moldau.records.batch import Marker, batches
from moldau.records.validation import NO_HEADER
from moldau.replication.replica import Replica
from moldau.replication.replicas import Replicas
from moldau.runtime import Runtime


class InternalTopic:
    def __init__(self, name: str, replicas: Replicas, read_bytes: int, runtime: Runtime):
        self.name = name
        self._replicas = replicas
        self._read_bytes = read_bytes
        self._runtime = runtime

    def _replica(self, partition: int) -> Replica:
        replica = self._replicas.hosted.get((self.name, partition))
        if replica is None or not replica.leadership.leads:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return replica

    async def read_all(self, partition: int) -> AsyncIterator[bytes]:
        """Whole batches from the start of the log to its end, in chunks read off the loop. Raises `KafkaError`.

        Includes what a coordinator wrote here before it resigned, even if it never heard of the commit.
        """
        replica = self._replica(partition)
        if replica.high_watermark < replica.log.log_end_offset:
            await replica.flush()
        offset = int(replica.log.log_start_offset)
        while offset < replica.log.log_end_offset:
            read: list[bytes] = []
            next_offset = await self._runtime.run(partial(_read, replica.log, offset, self._read_bytes, read))
            if next_offset is None:  # compaction has removed everything at or after `offset`
                return
            offset = next_offset
            yield read.pop()  # drop our reference, so that this frame does not keep the bytes while it is suspended

    async def append(self, partition: int, batch: bytearray, now_ms: int) -> None:
        """Append one batch; returns once it is committed. Raises `KafkaError`."""
        await self._replica(partition).append_own(batch, now_ms)

    def begin(self, partition: int, producer_id: int, epoch: int) -> VerificationGuard | None:
        """The guard for the first records of a producer's transaction in the partition; None if the transaction has
        begun. Raises `KafkaError`."""
        producers = self._replica(partition).log.producers
        header = NO_HEADER._replace(producer_id=producer_id, producer_epoch=epoch)
        if verification_guards.is_open(producers, header):
            return None
        return verification_guards.obtain(producers, header, self._runtime.clock.now_ms())

    async def append_in_transaction(
        self, partition: int, batch: bytearray, guard: VerificationGuard | None, now_ms: int
    ) -> None:
        """As `append`, for a transactional batch of a producer, without sequences. Raises `KafkaError`, also:
        INVALID_TXN_STATE if no transaction is open in the partition and `guard` is not the one that `begin` returned
        last; INVALID_PRODUCER_EPOCH."""
        await self._replica(partition).append_own_in_transaction(batch, guard, now_ms)

    async def append_marker(
        self, partition: int, producer_id: int, epoch: int, marker: Marker, transaction_version: int
    ) -> None:
        """End a producer's transaction; returns once the marker is committed. Raises `KafkaError`:
        INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED and what `append` raises."""
        replica, now_ms = self._replica(partition), self._runtime.clock.now_ms()
        appended = await replica.append_marker(producer_id, epoch, marker, transaction_version, now_ms)
        if appended.error:
            raise KafkaError(appended.error)


def _read(log: Log, offset: int, max_bytes: int, read: list[bytes]) -> int | None:
    """Add whole batches from `offset` on to `read`; returns the offset after them, None if none was read."""
    chunk = log.read_batches(offset, max_bytes)
    end, next_offset = 0, None
    for position, header in batches(chunk):
        end, next_offset = position + header.size, header.next_offset
    read.append(chunk[:end])
    return next_offset
