"""Batches that a broker itself writes into its partitions: its coordinators' records, and the markers of transactions.

A batch counts once it is `committed` in the leader epoch in which it was written. If the outcome is unknown (the time
is over, or another leader epoch has begun), that raises, and the coordinator loads the partition again, or writes the
marker again.
"""

import asyncio
from typing import Final

from moldau.errors import ErrorCode, KafkaError
from moldau.log.appended import Appended
from moldau.log.producers import verification_guards
from moldau.names import Offset, VerificationGuard
from moldau.records.batch import Marker, read_header
from moldau.records.validation import Checked, check_own, check_produce
from moldau.replication.replica import Replica
from moldau.replication.waiting import Wait

LOAD_S: Final = 3600.0


async def append_own(replica: Replica, batch: bytearray, now_ms: int) -> Appended:
    """Append a batch that a coordinator of this broker wrote, as producers with acks=all do; it is patched in place. If
    `flush.messages` asks for a flush, returns after it. It need not be committed yet.

    Raises `KafkaError`: NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS, KAFKA_STORAGE_ERROR, or what is wrong with the
    batch.
    """
    await replica.until_free()
    replica.takes_own()
    return await _append(replica, memoryview(batch), check_produce(memoryview(batch), replica.rules, now_ms), now_ms)


async def append_own_in_transaction(
    replica: Replica, batch: bytearray, guard: VerificationGuard | None, now_ms: int
) -> Appended:
    """As `append_own`, for a batch in a producer's transaction, without sequences. `guard`: the one with which the
    transaction may begin here. Also raises INVALID_TXN_STATE, INVALID_PRODUCER_EPOCH."""
    await replica.until_free()
    replica.takes_own()
    error = verification_guards.check(replica.log.producers, read_header(batch), guard, transaction_version=0)
    if error is not None:
        raise KafkaError(error)
    return await _append(replica, memoryview(batch), check_own(memoryview(batch), replica.rules, now_ms), now_ms)


async def _append(replica: Replica, records: memoryview, checked: Checked, now_ms: int) -> Appended:
    if checked.error:
        raise KafkaError(checked.error, checked.message)
    appended = replica.append(records, checked, now_ms)
    if appended.error:
        raise KafkaError(appended.error)
    await replica.flush_if_due(len(records))
    return appended


async def append_marker(
    replica: Replica, producer_id: int, epoch: int, marker: Marker, transaction_version: int, now_ms: int
) -> Appended:
    """End a producer's transaction in a partition, as its coordinator decided. Errors of the producer are in the
    result; raises `KafkaError`: NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS, KAFKA_STORAGE_ERROR."""
    await replica.until_free()
    replica.takes_own()
    leader_epoch = replica.leadership.leader_epoch
    appended = replica.log.append_marker(producer_id, epoch, marker, transaction_version, leader_epoch, now_ms)
    if not appended.error:
        await replica.appended_marker()
    return appended


async def committed(replica: Replica, appended: Appended, seconds: float) -> None:
    """Wait until what was appended is committed. Raises as `until_committed` does."""
    await until_committed(replica, Offset(appended.last_offset + 1), appended.leader_epoch, seconds)


async def until_committed(replica: Replica, end: Offset, leader_epoch: int, seconds: float = LOAD_S) -> None:
    """Wait until all below `end` is committed, while this broker leads in that epoch. Raises `KafkaError`:
    NOT_LEADER_OR_FOLLOWER, REQUEST_TIMED_OUT."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while True:
        if not replica.leadership.leads or replica.leadership.leader_epoch != leader_epoch:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if replica.high_watermark >= end:
            return
        left_s = deadline - loop.time()
        if left_s <= 0:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, "the in-sync replicas did not get the record in time")
        await Wait.until_committed([(replica.waiters, end)], left_s, loop).done
