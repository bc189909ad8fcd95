"""The records of `__consumer_offsets` as bytes: which versions we write, and reading whatever Kafka has ever written.

A key is an int16 that says what it is (0 and 1 an offset, see `offset_records`; 2 a classic group; others see
`consumer_records`) and its fields; a value is an int16 version and its fields. As Kafka 4.3 does, groups are written as
version 3. Kinds and versions we do not know are skipped, not fatal: share and streams groups may have written beside
us.
"""

from dataclasses import dataclass
from typing import TypeAlias

from moldau.coordinators.consumer.records import CONSUMER_KINDS, ConsumerGroupRecord, read_consumer_group_record
from moldau.coordinators.groups.offset_records import OFFSET_KINDS, OffsetRecord, read_offset
from moldau.coordinators.outcome import Record
from moldau.errors import ProtocolViolation
from moldau.protocol import schema
from moldau.protocol.internal import GroupMetadataKey, GroupMetadataValue
from moldau.protocol.primitives import read_int16, write_int16

GROUP_KIND = 2
GROUP_VERSION = 3
_FLEXIBLE_SINCE = 4


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A classic group as it was last written; without a value it is deleted."""

    group: str
    value: GroupMetadataValue | None


Known: TypeAlias = GroupRecord | OffsetRecord | ConsumerGroupRecord


def group_record(group: str, value: GroupMetadataValue | None) -> Record:
    return Record(
        _bytes(GROUP_KIND, 0, GroupMetadataKey(group=group)),
        None if value is None else _bytes(GROUP_VERSION, GROUP_VERSION, value),
    )


def read_record(record: Record) -> Known | None:
    """What a record says; None for a kind or version we do not know. Raises `ProtocolViolation` if it is cut short."""
    kind, at = _prefix(record.key)
    if kind == GROUP_KIND:
        key, _ = schema.read(GroupMetadataKey, 0, False, record.key, at)
        group = _value(GroupMetadataValue, record.value)
        return GroupRecord(key.group, group) if group is not None or record.value is None else None
    if kind in OFFSET_KINDS:
        return read_offset(record)
    if kind in CONSUMER_KINDS:
        return read_consumer_group_record(kind, record, at)
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
