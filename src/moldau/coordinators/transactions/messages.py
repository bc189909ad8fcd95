"""What is asked of the transaction coordinator, and what it answers. Handlers translate from and to the protocol's
messages.

Errors are those of the newest version of a request; `protocol.transaction_errors` converts them for older ones. A
missing `producer_id` or `epoch` is -1. `transaction_version` is the client's (KIP-890): 2 from EndTxn 5, Produce 12 and
TxnOffsetCommit 5 on, otherwise 0. InitProducerId has none, since no decision depends on its version.
"""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from moldau.errors import ErrorCode
from moldau.names import TopicPartition, TransactionMarkers


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """Kafka's settings for transactions. `transaction_version` is the finalized feature level, which decides how
    records are written; the last two are the first and the longest pause before a refused marker is tried again."""

    max_timeout_ms: int = 900_000
    id_expiration_ms: int = 604_800_000
    abort_timed_out_interval_ms: int = 10_000
    remove_expired_interval_ms: int = 3_600_000
    transaction_version: int = 2
    marker_retry_ms_min: int = 20
    marker_retry_ms_max: int = 1_000


class InitProducer(NamedTuple):
    """InitProducerId: a producer starts, or recovers if it names its last producer id and epoch (KIP-360)."""

    transactional_id: str
    timeout_ms: int
    producer_id: int = -1
    epoch: int = -1


class Initialized(NamedTuple):
    """The answer to InitProducerId."""

    error: ErrorCode = ErrorCode.NONE
    producer_id: int = -1
    epoch: int = -1


class AddPartitions(NamedTuple):
    """Partitions that a transaction writes to, added by the client or (version 2) by a partition's leader."""

    transactional_id: str
    producer_id: int
    epoch: int
    partitions: tuple[TopicPartition, ...]
    transaction_version: int = 0


class EndTransaction(NamedTuple):
    """EndTxn."""

    transactional_id: str
    producer_id: int
    epoch: int
    commits: bool
    transaction_version: int = 0


class Ended(NamedTuple):
    """The answer to EndTxn. With version 2 it has the producer id and epoch of the next transaction, otherwise -1."""

    error: ErrorCode = ErrorCode.NONE
    producer_id: int = -1
    epoch: int = -1


class AddsPartitions(Protocol):
    """What the leaders of partitions ask a transaction's coordinator; see `TransactionCoordinator`."""

    def add_partitions(self, ask: AddPartitions) -> ErrorCode | Awaitable[ErrorCode]: ...
    def verify_partitions(
        self, ask: AddPartitions
    ) -> Mapping[TopicPartition, ErrorCode] | Awaitable[Mapping[TopicPartition, ErrorCode]]: ...


class WriteMarkers(Protocol):
    """Writes the markers, and returns the error or NONE of each partition; never raises `KafkaError`."""

    async def __call__(self, markers: TransactionMarkers) -> Mapping[TopicPartition, ErrorCode]: ...


class DescribedTransaction(NamedTuple):
    """One id in DescribeTransactions. `state` is Kafka's name; `start_ms` is -1 without a transaction."""

    transactional_id: str
    state: str
    producer_id: int
    epoch: int
    timeout_ms: int
    start_ms: int
    partitions: tuple[TopicPartition, ...]


class ListedTransaction(NamedTuple):
    """One id in ListTransactions; `start_ms` is -1 without a transaction."""

    transactional_id: str
    producer_id: int
    state: str
    start_ms: int
