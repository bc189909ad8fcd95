"""One transactional id: its metadata, and the steps that it can take. Pure values: a step makes a new one.

    Empty --------------------> Ongoing        partitions are added
    Ongoing ------------------> PrepareCommit  EndTxn commits: from here on the transaction is committed
Ongoing ------------------> PrepareAbort   EndTxn aborts, the transaction times out, or a new producer instance starts
    PrepareCommit, -Abort ----> CompleteCommit, CompleteAbort   every partition has its marker
    CompleteCommit, -Abort ---> Ongoing, Empty (InitProducerId), PrepareAbort (an abort of nothing, KIP-890)
    Empty, Complete* ---------> deleted        unused for `transactional.id.expiration.ms`

Dead and PrepareEpochFence are Kafka's names for states that are never written. With version 2 of transactions (KIP-890)
each transaction has an epoch of its own: its markers carry the next epoch, and late requests of the old one are fenced.
When the epochs of a producer id are used up, `next_producer_id` replaces it at epoch 0 once the transaction is
complete.

`previous_producer_id` is kept only if it differs. `last_epoch` is the epoch before a bump whose reply may have been
lost (KIP-360), or -1 after a takeover by a new producer instance.
"""

import enum
import struct
from typing import NamedTuple

from moldau.coordinators.decision import Now
from moldau.names import TopicPartition

NO_PRODUCER_ID, NO_EPOCH, NO_TIMESTAMP = -1, -1, -1
EPOCH_MAX = 0x7FFF
EPOCH_EXHAUSTED = EPOCH_MAX - 1
"""The last epoch that a producer gets; the one after it is reserved for fencing the producer."""


class TransactionState(enum.IntEnum):
    """The state of a transaction; the value is the number in its record, `label` the name that clients see."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        return "".join(part.capitalize() for part in self.name.split("_"))


IDLE = frozenset({TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
PREPARED = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})

Partitions = dict[TopicPartition, None]
"""A set in the order of insertion; never changed once it is part of a `TransactionMetadata`."""

_PACKED = struct.Struct(">qqhhibhqq")


class TransactionMetadata(NamedTuple):
    """What is known of one transactional id. `update_ms` and `start_ms` are milliseconds since 1970."""

    producer_id: int
    epoch: int
    timeout_ms: int
    state: TransactionState
    update_ms: int
    partitions: Partitions
    start_ms: int = NO_TIMESTAMP
    client_version: int = 0
    last_epoch: int = NO_EPOCH
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID

    @property
    def is_exhausted(self) -> bool:
        return self.epoch >= EPOCH_EXHAUSTED

    def pack(self) -> bytes:
        """An idle one in few bytes, since millions of ids are possible."""
        assert self.state in IDLE and not self.partitions and self.next_producer_id == NO_PRODUCER_ID
        return _PACKED.pack(
            self.producer_id,
            self.previous_producer_id,
            self.epoch,
            self.last_epoch,
            self.timeout_ms,
            self.state,
            self.client_version,
            self.update_ms,
            self.start_ms,
        )


def unpack(data: bytes) -> TransactionMetadata:
    """The opposite of `pack`."""
    producer_id, previous, epoch, last_epoch, timeout_ms, state, version, update_ms, start_ms = _PACKED.unpack(data)
    return TransactionMetadata(
        producer_id, epoch, timeout_ms, TransactionState(state), update_ms, {}, start_ms, version, last_epoch, previous
    )


def pack_idle(
    producer_id: int, epoch: int, timeout_ms: int, state: int, update_ms: int, start_ms: int, version: int, last: int
) -> bytes:
    """As `pack`, for one without `previous_producer_id`; `last` is the `last_epoch`."""
    return _PACKED.pack(producer_id, NO_PRODUCER_ID, epoch, last, timeout_ms, state, version, update_ms, start_ms)


def is_expired(packed: bytes, before_ms: int) -> bool:
    """Whether the id was last updated at `before_ms` or earlier."""
    return int(_PACKED.unpack_from(packed)[7]) <= before_ms


# -- steps


def created(producer_id: int, timeout_ms: int, now: Now) -> TransactionMetadata:
    """InitProducerId of a new transactional id."""
    return TransactionMetadata(producer_id, 0, timeout_ms, TransactionState.EMPTY, now.wall_ms, {})


def bumped(was: TransactionMetadata, timeout_ms: int, recovers: bool, now: Now) -> TransactionMetadata:
    """InitProducerId. A producer that `recovers` names the epoch it had, and can repeat the request if the reply is
    lost."""
    return was._replace(
        epoch=was.epoch + 1,
        last_epoch=was.epoch if recovers else NO_EPOCH,
        timeout_ms=timeout_ms,
        state=TransactionState.EMPTY,
        update_ms=now.wall_ms,
        start_ms=NO_TIMESTAMP,
        previous_producer_id=NO_PRODUCER_ID,
    )


def repeated(was: TransactionMetadata, timeout_ms: int, now: Now) -> TransactionMetadata:
    """InitProducerId, repeated because its reply was lost: returns the same epoch."""
    return was._replace(
        timeout_ms=timeout_ms, state=TransactionState.EMPTY, update_ms=now.wall_ms, start_ms=NO_TIMESTAMP
    )


def rotated(
    was: TransactionMetadata, producer_id: int, timeout_ms: int, recovers: bool, now: Now
) -> TransactionMetadata:
    """InitProducerId after the epochs of the producer id are used up."""
    return was._replace(
        producer_id=producer_id,
        previous_producer_id=was.producer_id,
        epoch=0,
        last_epoch=was.epoch if recovers else NO_EPOCH,
        timeout_ms=timeout_ms,
        state=TransactionState.EMPTY,
        update_ms=now.wall_ms,
        start_ms=NO_TIMESTAMP,
    )


def with_partitions(
    was: TransactionMetadata, partitions: Partitions, client_version: int, now: Now
) -> TransactionMetadata:
    """Add partitions to the transaction; begins it if it is not ongoing."""
    return was._replace(
        state=TransactionState.ONGOING,
        partitions=was.partitions | partitions,
        start_ms=was.start_ms if was.state is TransactionState.ONGOING else now.wall_ms,
        update_ms=now.wall_ms,
        client_version=client_version,
        previous_producer_id=NO_PRODUCER_ID,
    )


def prepared(
    was: TransactionMetadata, commits: bool, client_version: int, next_producer_id: int, now: Now
) -> TransactionMetadata:
    """EndTxn: the decision to commit or abort. Version 2 bumps the epoch, and also ends a transaction that has not
    begun."""
    epoch, last_epoch = was.epoch, was.last_epoch
    if client_version >= 2:
        last_epoch = was.epoch
        epoch = min(was.epoch + 1, EPOCH_MAX)
    return was._replace(
        epoch=epoch,
        last_epoch=last_epoch,
        state=TransactionState.PREPARE_COMMIT if commits else TransactionState.PREPARE_ABORT,
        start_ms=was.start_ms if was.state is TransactionState.ONGOING else now.wall_ms,
        update_ms=now.wall_ms,
        client_version=client_version,
        previous_producer_id=NO_PRODUCER_ID,
        next_producer_id=next_producer_id,
    )


def fenced(was: TransactionMetadata, server_version: int, next_producer_id: int, now: Now) -> TransactionMetadata:
    """Abort an ongoing transaction, because it timed out or a new instance of the producer started. The epoch fences
    the old instance, whatever its version is."""
    if server_version >= 2:
        return prepared(was, False, server_version, next_producer_id, now)
    fence = was._replace(epoch=min(was.epoch + 1, EPOCH_MAX), last_epoch=NO_EPOCH)
    return prepared(fence, False, 0, NO_PRODUCER_ID, now)


def completed(was: TransactionMetadata, now: Now) -> TransactionMetadata:
    """The transaction is complete: every partition has its marker."""
    done = was._replace(
        state=TransactionState.COMPLETE_COMMIT
        if was.state is TransactionState.PREPARE_COMMIT
        else TransactionState.COMPLETE_ABORT,
        partitions={},
        update_ms=now.wall_ms,
        next_producer_id=NO_PRODUCER_ID,
    )
    if was.next_producer_id == NO_PRODUCER_ID:
        return done
    return done._replace(producer_id=was.next_producer_id, previous_producer_id=was.producer_id, epoch=0)
