"""One producer of a partition: its epoch, its last five batches, its open transaction. Pure."""

from typing import Final, NamedTuple

SEQUENCE_MASK: Final = 2**31 - 1
BATCHES_KEPT: Final = 5
"""A producer has at most five requests in flight, so it never sends an older batch again."""
NO_TRANSACTION: Final = -1
NO_ENTRY: Final = -1


class BatchMetadata(NamedTuple):
    """A batch that was appended. Its first sequence and offset are the last ones less `offset_delta`; one that a
    coordinator wrote has no sequences, and -1 for the last."""

    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def base_offset(self) -> int:
        return self.last_offset - self.offset_delta

    @property
    def base_sequence(self) -> int:
        return (self.last_sequence - self.offset_delta) & SEQUENCE_MASK


class ProducerStateEntry:
    """One producer's state. `batches` holds the oldest first. `entry` and `changed` are `SnapshotEntries`' own."""

    __slots__ = ("batches", "changed", "coordinator_epoch", "entry", "epoch", "last_timestamp", "transaction_start")

    def __init__(self, epoch: int):
        self.epoch = epoch
        self.batches: list[BatchMetadata] = []
        self.last_timestamp = -1
        self.coordinator_epoch = -1
        self.transaction_start = NO_TRANSACTION
        self.entry = NO_ENTRY
        self.changed = False

    def add(self, batch: BatchMetadata) -> None:
        self.batches.append(batch)
        if len(self.batches) > BATCHES_KEPT:
            del self.batches[0]
        self.last_timestamp = batch.timestamp
