"""The records of `__consumer_offsets` as bytes: which versions we write, and reading whatever Kafka has ever written.

A key is an int16 that says what it is (0 and 1 an offset, 2 a classic group) and its fields; a value is an int16
version and its fields. As Kafka 4.3 does, groups are written as version 3, offsets as version 4, or as 1 where a
client asked for an expiry of its own. Kinds and versions we do not know are skipped, not fatal: newer groups may have
written beside us.
"""

from dataclasses import dataclass
from typing import TypeAlias

from moldau.coordinators.outcome import Record
from moldau.errors import ProtocolViolation
from moldau.names import TopicPartition
from moldau.protocol import schema
from moldau.protocol.internal import GroupMetadataKey, GroupMetadataValue, OffsetCommitKey, OffsetCommitValue
from moldau.protocol.primitives import read_int16, write_int16

OFFSET_KINDS = (0, 1)
GROUP_KIND = 2
GROUP_VERSION = 3
OFFSET_VERSION = 4
EXPIRING_OFFSET_VERSION = 1
_FLEXIBLE_SINCE = 4


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A classic group as it was last written; without a value it is deleted."""

    group: str
    value: GroupMetadataValue | None


@dataclass(frozen=True, slots=True)
class OffsetRecord:
    """One committed offset; without a value it is deleted."""

    group: str
    partition: TopicPartition
    value: OffsetCommitValue | None


Known: TypeAlias = GroupRecord | OffsetRecord


def group_record(group: str, value: GroupMetadataValue | None) -> Record:
    return Record(
        _bytes(GROUP_KIND, 0, GroupMetadataKey(group=group)),
        None if value is None else _bytes(GROUP_VERSION, GROUP_VERSION, value),
    )


def offset_record(group: str, partition: TopicPartition, value: OffsetCommitValue | None) -> Record:
    key = _bytes(1, 0, OffsetCommitKey(group=group, topic=partition.topic, partition=partition.partition))
    if value is None:
        return Record(key, None)
    version = OFFSET_VERSION if value.expire_timestamp < 0 else EXPIRING_OFFSET_VERSION
    return Record(key, _bytes(version, version, value))


def read_record(record: Record) -> Known | None:
    """What a record says; None for a kind or version we do not know. Raises `ProtocolViolation` if it is cut short."""
    kind, at = _prefix(record.key)
    if kind == GROUP_KIND:
        key, _ = schema.read(GroupMetadataKey, 0, False, record.key, at)
        group = _value(GroupMetadataValue, record.value)
        return GroupRecord(key.group, group) if group is not None or record.value is None else None
    if kind in OFFSET_KINDS:
        where, _ = schema.read(OffsetCommitKey, 0, False, record.key, at)
        offset = _value(OffsetCommitValue, record.value)
        partition = TopicPartition(where.topic, where.partition)
        return OffsetRecord(where.group, partition, offset) if offset is not None or record.value is None else None
    return None


def _value(message: type[schema.T], data: bytes | None) -> schema.T | None:
    if data is None:
        return None
    version, at = _prefix(data)
    if not 0 <= version <= 4:
        return None
    return schema.read(message, version, version >= _FLEXIBLE_SINCE, data, at)[0]


def _prefix(data: bytes) -> tuple[int, int]:
    if len(data) < 2:
        raise ProtocolViolation("a record shorter than the number that says what it is")
    return read_int16(data, 0)


def _bytes(prefix: int, version: int, message: object) -> bytes:
    out = bytearray()
    write_int16(out, prefix)
    out += schema.write(message, version, version >= _FLEXIBLE_SINCE)
    return bytes(out)
