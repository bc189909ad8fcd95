"""Guards of the transactions that are about to begin in a partition: their coordinator is asked before the first batch
is appended. Pure.

The first batch of a producer's transaction obtains a `VerificationGuard`. Once the coordinator has agreed, the batch is
appended only if the partition still has that very guard. A marker removes it, and so does the first batch that is
appended: an answer from before a marker can never let a batch into the transaction after it, even at the same epoch.
In version 2 of transactions a marker removes only the guard of an older epoch than its own: the producer may begin its
next transaction, which has the marker's epoch, before the marker of the last one is in the log.
While the coordinator is asked, later batches of the producer may overtake earlier ones; the batch with the lowest
sequence seen at the largest epoch must be first. A producer that has the leader add partitions (version 2 of
transactions) begins at sequence 0 in a partition that does not know it. Source: KIP-890; what Kafka 4.3 answers.
"""

from moldau.errors import ErrorCode
from moldau.log.producers.producer_state import NO_TRANSACTION
from moldau.log.producers.producers import RAISES_EPOCH, Producers
from moldau.names import VerificationGuard
from moldau.records.batch import BatchHeader

GUARDS_MAX = 10_000
"""In one partition. A new guard replaces the oldest: only invented producers come in such numbers."""


def is_open(producers: Producers, header: BatchHeader) -> bool:
    """Whether the batch continues a transaction that has begun in this partition."""
    producer = producers.get(header.producer_id)
    return (
        producer is not None
        and producer.transaction_start != NO_TRANSACTION
        and producer.epoch == header.producer_epoch
    )


def obtain(producers: Producers, header: BatchHeader, now_ms: int) -> VerificationGuard:
    """The guard that the first batch of a transaction shows when it is appended."""
    guards = producers.guards
    guard = guards.get(header.producer_id)
    if guard is None:
        if len(guards) == GUARDS_MAX:
            del guards[next(iter(guards))]
        guard = guards[header.producer_id] = VerificationGuard(header.producer_epoch, header.base_sequence, now_ms)
    elif header.producer_epoch > guard.epoch:
        guard.epoch, guard.lowest_sequence = header.producer_epoch, header.base_sequence
    elif header.producer_epoch == guard.epoch:
        guard.lowest_sequence = min(guard.lowest_sequence, header.base_sequence)
    return guard


def check(
    producers: Producers, header: BatchHeader, guard: VerificationGuard | None, transaction_version: int
) -> ErrorCode | None:
    """Why a transactional batch must not be appended now; None if it may be."""
    if is_open(producers, header):
        return None
    if guard is None or producers.guards.get(header.producer_id) is not guard:
        return ErrorCode.INVALID_TXN_STATE
    producer = producers.get(header.producer_id)
    unknown = producer is None or not producer.batches
    if unknown and header.base_sequence and transaction_version >= RAISES_EPOCH:
        return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    if header.base_sequence > guard.lowest_sequence:
        return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    return None
