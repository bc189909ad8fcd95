"""The records of `__consumer_offsets` that make up a consumer group (KIP-848), as bytes.

    key    int16 type | group | member id or expression, for types with several records per group
    value  int16 0 | the fields of the type, flexible; a null value deletes the record's subject

`consumer.group` explains epoch, target and current assignment. Kafka before 4.1 wrote `TOPICS`; it is read so that it
can be deleted.
"""

import enum
from dataclasses import dataclass
from typing import Any

from moldau.coordinators.decision import InternalRecord
from moldau.errors import ProtocolViolation
from moldau.protocol import schema
from moldau.protocol.internal import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupKey,
    ConsumerGroupMemberKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from moldau.protocol.primitives import read_int16, write_int16


class ConsumerRecordType(enum.IntEnum):
    """The type of a record: the number with which its key begins."""

    EPOCH = 3
    TOPICS = 4
    MEMBER = 5
    TARGET_EPOCH = 6
    TARGET = 7
    CURRENT = 8
    EXPRESSION = 16


_VALUES: dict[ConsumerRecordType, type] = {
    ConsumerRecordType.EPOCH: ConsumerGroupMetadataValue,
    ConsumerRecordType.TOPICS: ConsumerGroupPartitionMetadataValue,
    ConsumerRecordType.MEMBER: ConsumerGroupMemberMetadataValue,
    ConsumerRecordType.TARGET_EPOCH: ConsumerGroupTargetAssignmentMetadataValue,
    ConsumerRecordType.TARGET: ConsumerGroupTargetAssignmentMemberValue,
    ConsumerRecordType.CURRENT: ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerRecordType.EXPRESSION: ConsumerGroupRegularExpressionValue,
}
CONSUMER_RECORD_TYPES = frozenset(int(kind) for kind in ConsumerRecordType)
_OF_A_GROUP = frozenset({ConsumerRecordType.EPOCH, ConsumerRecordType.TOPICS, ConsumerRecordType.TARGET_EPOCH})


@dataclass(frozen=True, slots=True)
class ConsumerGroupRecord:
    """A decoded record. `name` is a member id or an expression, "" for types with one record per group; `value` is None
    if the record is a tombstone."""

    kind: ConsumerRecordType
    group: str
    name: str
    value: Any


class DecidedRecord(InternalRecord):
    """A record that this process has made: what it says need not be read from its bytes again."""

    decided: ConsumerGroupRecord | None = None


def consumer_group_record(record: ConsumerGroupRecord) -> InternalRecord:
    """The record as bytes. Its value must not change any more."""
    key = bytearray()
    write_int16(key, record.kind)
    if record.kind in _OF_A_GROUP:
        key += schema.write(ConsumerGroupKey(group=record.group), 0, False)
    else:
        key += schema.write(ConsumerGroupMemberKey(group=record.group, member_id=record.name), 0, False)
    value = None
    if record.value is not None:
        value = bytearray()
        write_int16(value, 0)
        value += schema.write(record.value, 0, True)
    made = DecidedRecord(bytes(key), None if value is None else bytes(value))
    made.decided = record
    return made


def read_consumer_group_record(number: int, record: InternalRecord, at: int) -> ConsumerGroupRecord | None:
    """The record whose key's fields begin at `at`; None if the version of its value is unknown.

    Raises `ProtocolViolation` if it is truncated.
    """
    if isinstance(record, DecidedRecord) and record.decided is not None:
        return record.decided
    kind = ConsumerRecordType(number)
    name = ""
    if kind in _OF_A_GROUP:
        group = schema.read(ConsumerGroupKey, 0, False, record.key, at)[0].group
    else:
        key, _ = schema.read(ConsumerGroupMemberKey, 0, False, record.key, at)
        group, name = key.group, key.member_id
    if record.value is None:
        return ConsumerGroupRecord(kind, group, name, None)
    if len(record.value) < 2:
        raise ProtocolViolation("a record's value is too short for its version number")
    version, at = read_int16(record.value, 0)
    if version != 0:
        return None
    value: Any = schema.read(_VALUES[kind], 0, True, record.value, at)[0]
    return ConsumerGroupRecord(kind, group, name, value)
