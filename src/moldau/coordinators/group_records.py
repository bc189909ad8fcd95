"""The records of `__consumer_offsets` as bytes: which versions we write, and reading whatever Kafka has ever written.

A key is an int16 that says what it is (0 and 1 an offset, 2 a classic group, others see `consumer_records`) and its
fields; a value is an int16 version and its fields. As Kafka 4.3 does, groups are written as version 3, offsets as
version 4, or as 1 where a client asked for an expiry of its own. Kinds and versions we do not know are skipped, not
fatal: share and streams groups may have written beside us.
"""

import struct
import uuid
from dataclasses import dataclass
from typing import TypeAlias

from moldau.coordinators.consumer_records import CONSUMER_KINDS, ConsumerGroupRecord, read_consumer_group_record
from moldau.coordinators.outcome import Record
from moldau.errors import ProtocolViolation
from moldau.names import TopicPartition
from moldau.protocol import schema
from moldau.protocol.internal import GroupMetadataKey, GroupMetadataValue, OffsetCommitValue
from moldau.protocol.primitives import ZERO_UUID, read_int16, write_int16

OFFSET_KIND = 1
OFFSET_KINDS = (0, OFFSET_KIND)
GROUP_KIND = 2
GROUP_VERSION = 3
OFFSET_VERSION = 4
EXPIRING_OFFSET_VERSION = 1
_FLEXIBLE_SINCE = 4

# Offsets are written and loaded by the million: their usual form is packed by hand, what differs goes by `schema`.
#
#   version int16 | offset int64 | leader epoch int32 | length + 1 uvarint | metadata | commit timestamp int64
#   | tagged fields: count 1, tag 0, size 16, topic id
_INT16, _INT32, _KEY_START = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">hh")
_OFFSET_START, _OFFSET_END = struct.Struct(">hqiB"), struct.Struct(">qBBB")
_TOPIC_ID_TAG = (1, 0, 16)
_ONE_BYTE_LENGTHS = 0x7F
_USUAL_SIZE = _OFFSET_START.size + _OFFSET_END.size + 16
assert _USUAL_SIZE == 42


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


Known: TypeAlias = GroupRecord | OffsetRecord | ConsumerGroupRecord


def group_record(group: str, value: GroupMetadataValue | None) -> Record:
    return Record(
        _bytes(GROUP_KIND, 0, GroupMetadataKey(group=group)),
        None if value is None else _bytes(GROUP_VERSION, GROUP_VERSION, value),
    )


def offset_record(group: str, partition: TopicPartition, value: OffsetCommitValue | None) -> Record:
    group_bytes, topic = group.encode(), partition.topic.encode()
    key = b"".join(
        (
            _KEY_START.pack(OFFSET_KIND, len(group_bytes)),
            group_bytes,
            _INT16.pack(len(topic)),
            topic,
            _INT32.pack(partition.partition),
        )
    )
    if value is None:
        return Record(key, None)
    if value.expire_timestamp >= 0:
        return Record(key, _bytes(EXPIRING_OFFSET_VERSION, EXPIRING_OFFSET_VERSION, value))
    metadata = value.metadata.encode()
    if len(metadata) >= _ONE_BYTE_LENGTHS or value.topic_id == ZERO_UUID:
        return Record(key, _bytes(OFFSET_VERSION, OFFSET_VERSION, value))
    return Record(
        key,
        b"".join(
            (
                _OFFSET_START.pack(OFFSET_VERSION, value.offset, value.leader_epoch, len(metadata) + 1),
                metadata,
                _OFFSET_END.pack(value.commit_timestamp, *_TOPIC_ID_TAG),
                value.topic_id.bytes,
            )
        ),
    )


def read_record(record: Record) -> Known | None:
    """What a record says; None for a kind or version we do not know. Raises `ProtocolViolation` if it is cut short."""
    kind, at = _prefix(record.key)
    if kind == GROUP_KIND:
        key, _ = schema.read(GroupMetadataKey, 0, False, record.key, at)
        group = _value(GroupMetadataValue, record.value)
        return GroupRecord(key.group, group) if group is not None or record.value is None else None
    if kind in OFFSET_KINDS:
        group_id, partition = _offset_key(record.key, at)
        offset = _usual_offset(record.value) or _value(OffsetCommitValue, record.value)
        return OffsetRecord(group_id, partition, offset) if offset is not None or record.value is None else None
    if kind in CONSUMER_KINDS:
        return read_consumer_group_record(kind, record, at)
    return None


def _offset_key(data: bytes, at: int) -> tuple[str, TopicPartition]:
    texts = []
    try:
        for _ in range(2):
            (length,) = _INT16.unpack_from(data, at)
            if length < 0:
                raise ProtocolViolation("an offset's key without a name")
            at += 2 + length
            texts.append(str(data[at - length : at], "utf-8"))
        (number,) = _INT32.unpack_from(data, at)
    except (struct.error, UnicodeDecodeError) as error:
        raise ProtocolViolation("an offset's key that is cut short or no text") from error
    group_id, topic = texts
    return group_id, TopicPartition(topic, number)


def _usual_offset(data: bytes | None) -> OffsetCommitValue | None:
    """A value laid out as nearly all are: version 4, short metadata, a topic id, no other tagged field; else None."""
    if data is None or len(data) < _USUAL_SIZE:
        return None
    version, offset, leader_epoch, length = _OFFSET_START.unpack_from(data)
    end = _OFFSET_START.size + length - 1
    if version != OFFSET_VERSION or not 0 < length <= _ONE_BYTE_LENGTHS or len(data) != _USUAL_SIZE + length - 1:
        return None
    stamp, *tag = _OFFSET_END.unpack_from(data, end)
    if tuple(tag) != _TOPIC_ID_TAG:
        return None
    try:
        metadata = str(data[_OFFSET_START.size : end], "utf-8")
    except UnicodeDecodeError:
        return None
    topic_id = uuid.UUID(bytes=data[end + _OFFSET_END.size :])
    return OffsetCommitValue(
        offset=offset, leader_epoch=leader_epoch, metadata=metadata, commit_timestamp=stamp, topic_id=topic_id
    )


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
