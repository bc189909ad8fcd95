"""How decisions and their records are shared out over batches. Pure.

A batch holds at most `BATCH_BYTES_MAX` of records, or one larger record.
"""

from collections.abc import Sequence

from moldau.coordinators.decision import Decision, InternalRecord

BATCH_BYTES_MAX = 512 * 1024
"""The most bytes of records that share a batch; a single larger record has a batch of its own."""


def _size(record: InternalRecord) -> int:
    return len(record.key) + len(record.value or b"") + 32


def decisions_of_next_batch(queue: Sequence[Decision]) -> int:
    """How many of the first decisions share the next batch. A decision about a transaction has a batch of its own."""
    size = count = 0
    for decision in queue:
        size += sum(_size(record) for record in decision.records)
        if count and (size > BATCH_BYTES_MAX or decision.transaction is not None):
            break
        count += 1
        if decision.transaction is not None:
            break
    return count


def split_into_batches(records: list[InternalRecord]) -> list[list[InternalRecord]]:
    """The records in order, split into batches of at most `BATCH_BYTES_MAX` (a larger record stands alone)."""
    batches: list[list[InternalRecord]] = [[]]
    size = 0
    for record in records:
        size += _size(record)
        if batches[-1] and size > BATCH_BYTES_MAX:
            batches.append([])
            size = _size(record)
        batches[-1].append(record)
    return batches
