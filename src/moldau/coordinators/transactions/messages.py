"""What is asked of the transaction coordinator and what it answers, in its own words: handlers translate from and to
the protocol's.

Errors are those of the newest version of a request; `spoken` gives an older one its word. Every `producer_id` and
`epoch` that is not there is -1. `transaction_version` is the client's (KIP-890): 2 from EndTxn 5, Produce 12 and
TxnOffsetCommit 5 on, and 0 for all before. What is decided never depends on the version of an InitProducerId, so it has
none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from moldau.errors import ErrorCode
from moldau.names import TopicPartition, TransactionMarkers

FENCED_SINCE_INIT, FENCED_SINCE_ADD, FENCED_SINCE_END = 4, 2, 2
"""The versions of InitProducerId, of AddPartitionsToTxn and AddOffsetsToTxn, and of EndTxn that know it is fenced."""


def spoken(error: ErrorCode, version: int, fenced_since: int) -> ErrorCode:
    """The error as a request of that version knows it."""
    if error is ErrorCode.PRODUCER_FENCED and version < fenced_since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """Kafka's settings for transactions; `transaction_version` is the feature as it is finalized, by which records are
    written. The last three are how often a marker is tried again that a partition did not take."""

    max_timeout_ms: int = 900_000
    id_expiration_ms: int = 604_800_000
    abort_timed_out_interval_ms: int = 10_000
    remove_expired_interval_ms: int = 3_600_000
    transaction_version: int = 2
    marker_retry_ms_min: int = 20
    marker_retry_ms_max: int = 1_000


class InitProducer(NamedTuple):
    """A producer starts, or (with an id and epoch of before) recovers."""

    transactional_id: str
    timeout_ms: int
    producer_id: int = -1
    epoch: int = -1


class Initialized(NamedTuple):
    error: ErrorCode = ErrorCode.NONE
    producer_id: int = -1
    epoch: int = -1


class AddPartitions(NamedTuple):
    """What a transaction writes to, be it said by the client or (version 2) by a leader for it."""

    transactional_id: str
    producer_id: int
    epoch: int
    partitions: tuple[TopicPartition, ...]
    transaction_version: int = 0


class EndTransaction(NamedTuple):
    transactional_id: str
    producer_id: int
    epoch: int
    commits: bool
    transaction_version: int = 0


class Ended(NamedTuple):
    """With version 2, `producer_id` and `epoch` are those of the next transaction; -1 otherwise."""

    error: ErrorCode = ErrorCode.NONE
    producer_id: int = -1
    epoch: int = -1


class WriteMarkers(Protocol):
    """Writes them and says how it went for each partition; never raises `KafkaError`."""

    async def __call__(self, markers: TransactionMarkers) -> Mapping[TopicPartition, ErrorCode]: ...


class DescribedTransaction(NamedTuple):
    """`state` as Kafka spells it; `start_ms` is -1 while there is no transaction."""

    transactional_id: str
    state: str
    producer_id: int
    epoch: int
    timeout_ms: int
    start_ms: int
    partitions: tuple[TopicPartition, ...]


class ListedTransaction(NamedTuple):
    """`start_ms` is -1 while there is no transaction."""

    transactional_id: str
    producer_id: int
    state: str
    start_ms: int
