"""The record of a transactional id in `__transaction_state`: written by `schema`, and read by hand if it is idle and
has the usual layout, since millions of such records may be loaded.

    key    type int16, 0 | transactional id int16 length, bytes
    value  version int16, 1 | producer id int64 | epoch int16 | timeout int32, ms | state int8
           | partitions + 1 uvarint, 0 or 1: none | last update int64 | start int64
           | tagged fields: none, one or both of: tag 2, size 2, client's version int16
           |                                      tag 4, size 2, last epoch int16

As Kafka 4.3 does, values have version 1 from `transaction.version` 1 on, and version 0 before; the partitions are null
in the state Empty. Kafka's record has tags 0 and 1 for the previous and the next producer id, which Kafka does not
write. They are written here in the few records where the epochs of a producer id are used up: otherwise a crash between
the decision and its markers would lose the id that the client was given. Tag 4 is Kafka's after 4.4 (KAFKA-20357);
earlier versions skip it. With it a producer whose reply was lost can repeat its request to the next coordinator.
Unknown types and versions are skipped.
"""

import struct
from typing import NamedTuple

from moldau.coordinators.decision import InternalRecord
from moldau.coordinators.transactions.transaction import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    Partitions,
    TransactionMetadata,
    TransactionState,
    pack_idle,
)
from moldau.errors import ProtocolViolation
from moldau.names import TopicPartition, by_topic
from moldau.protocol import schema
from moldau.protocol.internal import TransactionLogValue, TransactionPartitions
from moldau.protocol.stored import TRANSACTIONS, read_stored

VERSION, PLAIN_VERSION = 1, 0
"""The versions of values with and without tagged fields."""

_KIND_BYTES = b"\0\0"
_VERSION_BYTES = {version: version.to_bytes(2, "big") for version in (PLAIN_VERSION, VERSION)}
_IDLE = struct.Struct(">hqhibBqq")
_LAST_EPOCH = b"\4\2"
"""The tag and size of the last epoch, before its two bytes."""
_IDLE_ENDS = {b"\0": 0, b"\1\2\2\0\1": 1, b"\1\2\2\0\2": 2}
_IDLE_STATES = frozenset({TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
_STATES = frozenset(TransactionState) - {TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE}
assert _IDLE.size == 34


class TransactionRecord(NamedTuple):
    """A decoded record: packed bytes for an idle id; None if the record deletes the id."""

    transactional_id: str
    value: TransactionMetadata | bytes | None


def transaction_record(
    transactional_id: str, transaction: TransactionMetadata | None, server_version: int
) -> InternalRecord:
    """The record as bytes; a tombstone if `transaction` is None."""
    name = transactional_id.encode()
    key = b"".join((_KIND_BYTES, len(name).to_bytes(2, "big"), name))
    if transaction is None:
        return InternalRecord(key, None)
    version = VERSION if server_version >= 1 else PLAIN_VERSION
    value = TransactionLogValue(
        producer_id=transaction.producer_id,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        producer_epoch=transaction.epoch,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_status=transaction.state,
        transaction_partitions=None if transaction.state is TransactionState.EMPTY else _topics(transaction.partitions),
        transaction_last_update_timestamp_ms=transaction.update_ms,
        transaction_start_timestamp_ms=transaction.start_ms,
        client_transaction_version=transaction.client_version,
        last_producer_epoch=transaction.last_epoch,
    )
    return InternalRecord(key, _VERSION_BYTES[version] + schema.write(value, version, version >= VERSION))


def read_record(record: InternalRecord) -> TransactionRecord | None:
    """The decoded record; None for an unknown type or version. Raises `ProtocolViolation` if it is truncated."""
    if record.value is not None and record.key.startswith(_KIND_BYTES):
        packed = _packed(record.value)
        if packed is not None:
            return TransactionRecord(id_of(record.key), packed)
    stored = read_stored(TRANSACTIONS, record.key, record.value)
    if stored is None:
        return None
    transactional_id: str = stored.key.transactional_id
    value: TransactionLogValue | None = stored.value
    if value is None:
        return TransactionRecord(transactional_id, None)
    if value.transaction_status not in _STATES:
        return None
    transaction = TransactionMetadata(
        producer_id=value.producer_id,
        epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=TransactionState(value.transaction_status),
        update_ms=value.transaction_last_update_timestamp_ms,
        partitions=_partitions(value.transaction_partitions or []),
        start_ms=value.transaction_start_timestamp_ms,
        client_version=value.client_transaction_version,
        last_epoch=value.last_producer_epoch,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
    )
    if transaction.state in _IDLE_STATES:
        idle = transaction._replace(partitions={}, next_producer_id=NO_PRODUCER_ID)
        return TransactionRecord(transactional_id, idle.pack())
    return TransactionRecord(transactional_id, transaction)


def _packed(data: bytes) -> bytes | None:
    """Decode an idle id with the usual layout; None for any other."""
    end, last_epoch = data[_IDLE.size :], NO_EPOCH
    if end[-4:-2] == _LAST_EPOCH and end[0]:
        last_epoch = int.from_bytes(end[-2:], "big", signed=True)
        end = bytes((end[0] - 1,)) + end[1:-4]
    client_version = _IDLE_ENDS.get(end)
    if client_version is None or len(data) < _IDLE.size:
        return None
    version, producer_id, epoch, timeout_ms, state, partitions, update_ms, start_ms = _IDLE.unpack_from(data)
    if version != VERSION or state not in _IDLE_STATES or partitions > 1:
        return None
    return pack_idle(producer_id, epoch, timeout_ms, state, update_ms, start_ms, client_version, last_epoch)


def id_of(key: bytes) -> str:
    """The transactional id in a record's key. Raises `ProtocolViolation`."""
    size = int.from_bytes(key[2:4], "big")
    if len(key) < 4 + size or key[2] > 0x7F:
        raise ProtocolViolation("a transaction's key is truncated")
    try:
        return str(key[4 : 4 + size], "utf-8")
    except UnicodeDecodeError as error:
        raise ProtocolViolation("a transaction's key is not UTF-8") from error


def _topics(partitions: Partitions) -> list[TransactionPartitions]:
    return [
        TransactionPartitions(topic=topic, partition_ids=numbers) for topic, numbers in by_topic(partitions).items()
    ]


def _partitions(topics: list[TransactionPartitions]) -> Partitions:
    return {TopicPartition(one.topic, number): None for one in topics for number in one.partition_ids}
