"""A committed offset in `__consumer_offsets`: written by hand, and read by hand if it has the usual layout.

    key    type int16, 0 or 1 | group int16 length, bytes | topic int16 length, bytes | partition int32
    value  version int16, 4 | offset int64 | leader epoch int32 | length + 1 uvarint | metadata | commit timestamp int64
           | tagged fields: count 1, tag 0, size 16, topic id

Millions of offsets may be loaded. They are kept as these bytes: the part of the key after the group (a "place"), and
the value, which is decoded when it is read. `schema` decodes other layouts: older versions, other tagged fields. As
Kafka 4.3 does, offsets are written as version 4, or as version 1 if the client set an expiry of its own.
"""

import struct
import uuid
from dataclasses import dataclass
from typing import NamedTuple

from moldau.coordinators.decision import InternalRecord
from moldau.errors import ProtocolViolation
from moldau.names import TopicPartition
from moldau.protocol import schema
from moldau.protocol.internal import OffsetCommitValue
from moldau.protocol.primitives import ZERO_UUID

OFFSET_RECORD_TYPE = 1
OFFSET_RECORD_TYPES = (0, OFFSET_RECORD_TYPE)
OFFSET_VERSION = 4
EXPIRING_OFFSET_VERSION = 1
_FLEXIBLE_SINCE = 4
_VERSION_MAX = 4
NAME_BYTES_MAX = 0x7FFF

_INT16, _INT32, _INT64 = struct.Struct(">h"), struct.Struct(">i"), struct.Struct(">q")
_KEY_START = struct.Struct(">hh")
_START, _END = struct.Struct(">hqiB"), struct.Struct(">qBBB")
_TOPIC_ID_TAG = bytes((1, 0, 16))
_ONE_BYTE_LENGTHS = 0x7F
_USUAL_SIZE = _START.size + _END.size + 16
_VERSION_BYTES = _INT16.pack(OFFSET_VERSION)
_KIND_BYTES = tuple(_INT16.pack(kind) for kind in OFFSET_RECORD_TYPES)
_LENGTH_AT, _TAG_AT = _START.size - 1, _START.size + 8
assert _USUAL_SIZE == 42


@dataclass(frozen=True, slots=True)
class OffsetRecord:
    """One committed offset; `value` is None if the record deletes it."""

    group: str
    partition: TopicPartition
    value: OffsetCommitValue | None


class Stamps(NamedTuple):
    """When an offset was committed, and when it expires; -1 if it has no expiry of its own."""

    commit_ms: int
    expire_ms: int


# -- keys


def is_offset(key: bytes) -> bool:
    return key.startswith(_KIND_BYTES)


def split_key(key: bytes) -> tuple[bytes, bytes] | None:
    """The group and the place in an offset's key; None for any other key. Raises `ProtocolViolation` if it is truncated
    or not UTF-8."""
    if not key.startswith(_KIND_BYTES):
        return None
    try:
        group_end = 4 + (key[2] << 8 | key[3])
        end = group_end + 6 + (key[group_end] << 8 | key[group_end + 1])
    except IndexError as error:
        raise ProtocolViolation("an offset's key is truncated") from error
    if end > len(key) or key[2] > 0x7F or key[group_end] > 0x7F:
        raise ProtocolViolation("an offset's key is truncated, or lacks a name")
    group, place = key[4:group_end], key[group_end:end]
    if not key.isascii():
        try:
            str(group, "utf-8"), str(place[2:-4], "utf-8")
        except UnicodeDecodeError as error:
            raise ProtocolViolation("an offset's key is not UTF-8") from error
    return group, place


def place_of(partition: TopicPartition) -> bytes | None:
    """The partition's place in a key; None for a topic name that is too long for one."""
    topic = partition.topic.encode()
    if len(topic) > NAME_BYTES_MAX:
        return None
    return b"".join((_INT16.pack(len(topic)), topic, _INT32.pack(partition.partition)))


def partition_at(place: bytes) -> TopicPartition:
    (number,) = _INT32.unpack_from(place, len(place) - 4)
    return TopicPartition(str(place[2:-4], "utf-8"), number)


def topic_at(place: bytes) -> bytes:
    return place[2:-4]


# -- values


def is_value(data: bytes) -> bool:
    """Whether `read_value` knows the version. Values of the usual layout are not decoded.

    Raises `ProtocolViolation` as `read_value` does.
    """
    if (
        len(data) == _USUAL_SIZE
        and data[_LENGTH_AT] == 1
        and data.startswith(_VERSION_BYTES)
        and data.startswith(_TOPIC_ID_TAG, _TAG_AT)
    ):
        return True
    return read_value(data) is not None


def read_value(data: bytes) -> OffsetCommitValue | None:
    """The decoded value; None for an unknown version. Raises `ProtocolViolation` for a damaged one."""
    usual = _usual(data)
    if usual is not None:
        return usual
    version = _version(data)
    if not 0 <= version <= _VERSION_MAX:
        return None
    return schema.read(OffsetCommitValue, version, version >= _FLEXIBLE_SINCE, data, 2)[0]


def stamps(data: bytes) -> Stamps:
    """The timestamps of a value for which `is_value` holds, without decoding the rest."""
    length = data[_LENGTH_AT]
    if length <= _ONE_BYTE_LENGTHS and data.startswith(_VERSION_BYTES):
        return Stamps(_INT64.unpack_from(data, _LENGTH_AT + length)[0], -1)
    value = read_value(data)
    assert value is not None
    return Stamps(value.commit_timestamp, value.expire_timestamp)


def _usual(data: bytes) -> OffsetCommitValue | None:
    """Decode the usual layout: version 4, short metadata, a topic id, no other tagged field. None for any other."""
    if len(data) < _USUAL_SIZE:
        return None
    version, offset, leader_epoch, length = _START.unpack_from(data)
    end = _LENGTH_AT + length
    if version != OFFSET_VERSION or not 0 < length <= _ONE_BYTE_LENGTHS or len(data) != _USUAL_SIZE + length - 1:
        return None
    stamp, *tag = _END.unpack_from(data, end)
    if bytes(tag) != _TOPIC_ID_TAG:
        return None
    try:
        metadata = str(data[_START.size : end], "utf-8")
    except UnicodeDecodeError:
        return None
    topic_id = uuid.UUID(bytes=data[end + _END.size :])
    return OffsetCommitValue(
        offset=offset, leader_epoch=leader_epoch, metadata=metadata, commit_timestamp=stamp, topic_id=topic_id
    )


def _version(data: bytes) -> int:
    if len(data) < _INT16.size:
        raise ProtocolViolation("a record is too short for its version number")
    (version,) = _INT16.unpack_from(data)
    return int(version)


# -- records


def offset_record(group: str, partition: TopicPartition, value: OffsetCommitValue | None) -> InternalRecord:
    group_bytes, place = group.encode(), place_of(partition)
    assert place is not None, "names are checked before they are committed"
    key = b"".join((_KEY_START.pack(OFFSET_RECORD_TYPE, len(group_bytes)), group_bytes, place))
    return InternalRecord(key, None if value is None else _value_bytes(value))


def _value_bytes(value: OffsetCommitValue) -> bytes:
    version = OFFSET_VERSION if value.expire_timestamp < 0 else EXPIRING_OFFSET_VERSION
    metadata = value.metadata.encode()
    if version != OFFSET_VERSION or len(metadata) >= _ONE_BYTE_LENGTHS or value.topic_id == ZERO_UUID:
        return _INT16.pack(version) + schema.write(value, version, version >= _FLEXIBLE_SINCE)
    return b"".join(
        (
            _START.pack(OFFSET_VERSION, value.offset, value.leader_epoch, len(metadata) + 1),
            metadata,
            _INT64.pack(value.commit_timestamp),
            _TOPIC_ID_TAG,
            value.topic_id.bytes,
        )
    )


def read_offset(record: InternalRecord) -> OffsetRecord | None:
    """Decode a record; None if its key is not an offset's, or the version is unknown. Raises `ProtocolViolation`."""
    split = split_key(record.key)
    if split is None:
        return None
    group, place = split
    value = None if record.value is None else read_value(record.value)
    if value is None and record.value is not None:
        return None
    return OffsetRecord(str(group, "utf-8"), partition_at(place), value)
