"""Whether a transaction may begin in a partition: its coordinator is asked first, and has to answer in time. Pure.

The first batch of a producer's transaction begins a `VerificationGuard`; when the coordinator has agreed, the batch is
appended only if that very one is still there. A marker takes it away, and so does the first batch that gets in: an
answer of before a marker can never let a batch into the transaction after it, even if the epoch is the same. Between
asking and appending others of the producer's batches may overtake: the lowest sequence that was seen has to be first,
of the largest epoch that was.
Producers that let the leader add partitions (version 2 of transactions) begin at sequence 0 where nothing is known of
them. Source: KIP-890; what Kafka 4.3 answers.
"""

from moldau.errors import ErrorCode
from moldau.log.producers.producer_state import NO_TRANSACTION
from moldau.log.producers.producers import RAISES_EPOCH, Producers, VerificationGuard
from moldau.records.batch import BatchHeader

VERIFYING_MAX = 10_000
"""In one partition. The oldest makes way for another: it is only made-up producers that come in such numbers."""


def is_open(producers: Producers, header: BatchHeader) -> bool:
    """Whether the batch goes on with a transaction that has begun in this partition."""
    producer = producers.get(header.producer_id)
    return (
        producer is not None
        and producer.transaction_start != NO_TRANSACTION
        and producer.epoch == header.producer_epoch
    )


def begin(producers: Producers, header: BatchHeader, now_ms: int) -> VerificationGuard:
    """What the first batch of a transaction has to show when it is appended."""
    found = producers.verifying.get(header.producer_id)
    if found is None:
        if len(producers.verifying) == VERIFYING_MAX:
            del producers.verifying[next(iter(producers.verifying))]
        found = producers.verifying[header.producer_id] = VerificationGuard(
            header.producer_epoch, header.base_sequence, now_ms
        )
    elif header.producer_epoch > found.epoch:
        found.epoch, found.lowest_sequence = header.producer_epoch, header.base_sequence
    elif header.producer_epoch == found.epoch:
        found.lowest_sequence = min(found.lowest_sequence, header.base_sequence)
    return found


def check(
    producers: Producers, header: BatchHeader, shown: VerificationGuard | None, transaction_version: int
) -> ErrorCode | None:
    """What is wrong with a batch of a transaction that is to be appended now; None if it may be tried."""
    if is_open(producers, header):
        return None
    if shown is None or producers.verifying.get(header.producer_id) is not shown:
        return ErrorCode.INVALID_TXN_STATE
    producer = producers.get(header.producer_id)
    unknown = producer is None or not producer.batches
    if unknown and header.base_sequence and transaction_version >= RAISES_EPOCH:
        return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    if header.base_sequence > shown.lowest_sequence:
        return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    return None
