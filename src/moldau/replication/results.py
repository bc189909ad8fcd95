"""A replica's answers to requests: plain values, so that no request handler opens a log or a batch."""

from collections.abc import Mapping
from typing import Final, NamedTuple, TypeAlias

from moldau.errors import ErrorCode
from moldau.log.appended import Appended as Appended  # one of the outcomes
from moldau.names import TopicPartition
from moldau.replies import FileSlice

EXPECTED: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.OFFSET_OUT_OF_RANGE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
"""Refusals that Kafka does not count as failed: the client is to try elsewhere, or the log of the broker tells them."""


class AppendTerms(NamedTuple):
    """The terms of a Produce request that apply to all its batches. `acks_all`: acks=all; `transactional`: it names a
    transactional id; `zstd`: its client knows the codec; `transaction_version`: 2 if the leader adds partitions to
    transactions."""

    acks_all: bool
    transactional: bool
    zstd: bool
    transaction_version: int


class AppendRefusal(NamedTuple):
    """A batch that is not appended. `log_start_offset` is -1 where Kafka's response does not carry it, `message` is
    None where Kafka sends no sentence; each of `record_errors` is a record's index in the batch and a sentence.
    `timestamp_ms` is the one that was refused, -1 if none was."""

    partition: int
    error: ErrorCode
    log_start_offset: int = -1
    message: str | None = None
    record_errors: tuple[tuple[int, str], ...] = ()
    timestamp_ms: int = -1


AppendOutcome: TypeAlias = Appended | AppendRefusal
"""The outcome of an append: where the batch is in the log, or why it was refused."""


class ReadResult(NamedTuple):
    """Records that a reader may see, and the partition's offsets at the same moment.

    `aborted` holds (producer id, first offset) of the aborted transactions that have records in the slice; None for a
    reader of uncommitted records. `records` is None if no record is visible. The other fields are offsets.
    """

    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: list[tuple[int, int]] | None
    records: FileSlice | None


class ActiveProducer(NamedTuple):
    """A producer that a partition remembers. `last_sequence`, `last_timestamp` (in ms) and `transaction_start` (the
    first offset of its open transaction) are -1 if it has none."""

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start: int


class CopyInProgress(NamedTuple):
    """The copy of a partition that moves to another log folder: the bytes of its records, and how many offsets it
    lacks."""

    size: int
    offset_lag: int


class LogDirectory(NamedTuple):
    """One folder of `log.dirs`: the bytes of each partition's records in it (None if the folder is offline), the bytes
    of its volume, in total and left to use (-1 if the volume cannot be asked), and the copies of partitions that move
    to it."""

    path: str
    sizes: Mapping[TopicPartition, int] | None
    total_bytes: int
    usable_bytes: int
    copies: Mapping[TopicPartition, CopyInProgress]
