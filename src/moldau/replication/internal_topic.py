"""An internal topic as coordinators see it: they read a partition from its start, and append batches, also
transactional ones, that are acknowledged once committed.

What a coordinator knows, it has read in one leader epoch of this broker. In every other epoch the log may be another
one, so nothing is appended before the partition was read again.
"""

from collections.abc import AsyncIterator
from functools import partial

from moldau.errors import ErrorCode, KafkaError
from moldau.log.log import Log
from moldau.log.producers import verification_guards
from moldau.names import LeaderEpoch, VerificationGuard
from moldau.records.batch import Marker, batches
from moldau.records.validation import NO_HEADER
from moldau.replication.own_appends import (
    append_marker,
    append_own,
    append_own_in_transaction,
    committed,
    until_committed,
)
from moldau.replication.replica import Replica
from moldau.replication.replicas import Replicas
from moldau.runtime import Runtime


class InternalTopic:
    """`commit_timeout_ms`: the longest time that an append waits until its batch is committed."""

    def __init__(self, name: str, replicas: Replicas, read_bytes: int, commit_timeout_ms: int, runtime: Runtime):
        self.name = name
        self._replicas = replicas
        self._read_bytes = read_bytes
        self._commit_timeout_s = commit_timeout_ms / 1000
        self._runtime = runtime
        self._read_in: dict[int, LeaderEpoch] = {}
        """The leader epoch in which each partition was read."""

    def _replica(self, partition: int) -> Replica:
        replica = self._led(partition)
        epoch = replica.leadership.leader_epoch
        if self._read_in.get(partition, epoch) != epoch:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return replica

    def _led(self, partition: int) -> Replica:
        replica = self._replicas.hosted.get((self.name, partition))
        if replica is None or not replica.leadership.leads:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return replica

    def may_answer(self, partition: int) -> bool:
        """Whether no other broker can coordinate the partition by now."""
        replica, exchange = self._replicas.hosted.get((self.name, partition)), self._replicas.exchange
        return replica is None or exchange is None or exchange.leads(replica)

    async def read_all(self, partition: int) -> AsyncIterator[bytes]:
        """Whole batches from the start of the log to its end, in chunks read off the loop. Raises `KafkaError`.

        Includes what a coordinator wrote here before it resigned, even if it never heard of the commit: what was read
        counts after `until_committed` only.
        """
        replica = self._led(partition)
        self._read_in[partition] = replica.leadership.leader_epoch
        if replica.leadership.own_end < replica.log.log_end_offset:
            await replica.flush()
        offset = int(replica.log.log_start_offset)
        while offset < replica.log.log_end_offset:
            read: list[bytes] = []
            next_offset = await self._runtime.run(partial(_read, replica.log, offset, self._read_bytes, read))
            if next_offset is None:  # compaction has removed everything at or after `offset`
                return
            offset = next_offset
            yield read.pop()  # drop our reference, so that this frame does not keep the bytes while it is suspended

    async def until_committed(self, partition: int) -> None:
        """Wait until all that the partition holds now is committed. Raises `KafkaError`: NOT_LEADER_OR_FOLLOWER if this
        broker no longer leads it in the epoch in which it was read; REQUEST_TIMED_OUT."""
        replica = self._replica(partition)
        await until_committed(replica, replica.log.log_end_offset, replica.leadership.leader_epoch)

    async def append(self, partition: int, batch: bytearray, now_ms: int) -> None:
        """Append one batch; returns once it is committed. Raises `KafkaError`, also: REQUEST_TIMED_OUT and
        NOT_LEADER_OR_FOLLOWER, after which the batch may be in the log, and may be committed later."""
        replica = self._replica(partition)
        await committed(replica, await append_own(replica, batch, now_ms), self._commit_timeout_s)

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
        replica = self._replica(partition)
        appended = await append_own_in_transaction(replica, batch, guard, now_ms)
        await committed(replica, appended, self._commit_timeout_s)

    async def append_marker(
        self, partition: int, producer_id: int, epoch: int, marker: Marker, transaction_version: int
    ) -> None:
        """End a producer's transaction; returns once the marker is committed. Raises `KafkaError`:
        INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED and what `append` raises."""
        replica, now_ms = self._replica(partition), self._runtime.clock.now_ms()
        appended = await append_marker(replica, producer_id, epoch, marker, transaction_version, now_ms)
        if appended.error:
            raise KafkaError(appended.error)
        await committed(replica, appended, self._commit_timeout_s)


def _read(log: Log, offset: int, max_bytes: int, read: list[bytes]) -> int | None:
    """Add whole batches from `offset` on to `read`; returns the offset after them, None if none was read."""
    chunk = log.read_batches(offset, max_bytes)
    end, next_offset = 0, None
    for position, header in batches(chunk):
        end, next_offset = position + header.size, header.next_offset
    read.append(chunk[:end])
    return next_offset
