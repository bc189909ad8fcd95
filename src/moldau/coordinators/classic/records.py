"""The record of `__consumer_offsets` that holds a classic group, as bytes.

    key    int16 2 | group
    value  int16 version, 0 to 4 | the group and its members, flexible from version 4 on; a null value deletes the group

As Kafka 4.3 does, groups are written as version 3.
"""

from dataclasses import dataclass

from moldau.coordinators.decision import InternalRecord
from moldau.errors import ProtocolViolation
from moldau.protocol import schema
from moldau.protocol.internal import GroupMetadataKey, GroupMetadataValue
from moldau.protocol.primitives import read_int16, write_int16

CLASSIC_RECORD_TYPE = 2
CLASSIC_VALUE_VERSION = 3
_FLEXIBLE_SINCE = 4
_VERSION_MAX = 4


@dataclass(frozen=True, slots=True)
class ClassicGroupRecord:
    """A classic group as it was last written; `value` is None if the record deletes it."""

    group: str
    value: GroupMetadataValue | None


def classic_group_record(group: str, value: GroupMetadataValue | None) -> InternalRecord:
    """The group's record as bytes; a tombstone if `value` is None."""
    return InternalRecord(
        _bytes(CLASSIC_RECORD_TYPE, 0, GroupMetadataKey(group=group)),
        None if value is None else _bytes(CLASSIC_VALUE_VERSION, CLASSIC_VALUE_VERSION, value),
    )


def read_classic_group_record(record: InternalRecord, at: int) -> ClassicGroupRecord | None:
    """The record whose key's fields begin at `at`; None if the version of its value is unknown.

    Raises `ProtocolViolation` for a truncated key or value.
    """
    key, _ = schema.read(GroupMetadataKey, 0, False, record.key, at)
    if record.value is None:
        return ClassicGroupRecord(key.group, None)
    if len(record.value) < 2:
        raise ProtocolViolation("a group's value is too short for its version number")
    version, at = read_int16(record.value, 0)
    if not 0 <= version <= _VERSION_MAX:
        return None
    value, _ = schema.read(GroupMetadataValue, version, version >= _FLEXIBLE_SINCE, record.value, at)
    return ClassicGroupRecord(key.group, value)


def _bytes(prefix: int, version: int, message: object) -> bytes:
    out = bytearray()
    write_int16(out, prefix)
    out += schema.write(message, version, version >= _FLEXIBLE_SINCE)
    return bytes(out)
