"""Reading any record of an internal topic: its key begins with the number of its type, its value with a version.

    __consumer_offsets    0, 1 an offset; 2 a classic group; 3-8, 16 a consumer group (KIP-848)
    __transaction_state   0 a transactional id

A null value (tombstone) means that the object was deleted. Types that are not listed here are not read: share and
streams groups.
"""

import struct
from typing import Any, Final, NamedTuple

from moldau.errors import ProtocolViolation
from moldau.protocol import internal, schema
from moldau.protocol.primitives import read_int16

TRANSACTION_STATES: Final = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead",
    "PrepareEpochFence",
)  # fmt: skip


class RecordType(NamedTuple):
    """The meaning of a type number: the messages of key and value, and the value's versions."""

    name: str
    key: type
    value: type
    version_max: int = 0
    flexible_since: int = 0


class Stored(NamedTuple):
    kind: str
    key: Any
    value: Any
    """None if the object was deleted."""
    version: int
    """The value's version; -1 without a value."""


_OFFSET = RecordType("offset", internal.OffsetCommitKey, internal.OffsetCommitValue, 4, 4)
OFFSETS: Final = {
    0: _OFFSET,
    1: _OFFSET,
    2: RecordType("group", internal.GroupMetadataKey, internal.GroupMetadataValue, 4, 4),
    3: RecordType("consumer group", internal.ConsumerGroupKey, internal.ConsumerGroupMetadataValue),
    4: RecordType("consumer group topics", internal.ConsumerGroupKey, internal.ConsumerGroupPartitionMetadataValue),
    5: RecordType("consumer group member", internal.ConsumerGroupMemberKey, internal.ConsumerGroupMemberMetadataValue),
    6: RecordType("target assignment", internal.ConsumerGroupKey, internal.ConsumerGroupTargetAssignmentMetadataValue),
    7: RecordType(
        "target assignment of a member",
        internal.ConsumerGroupMemberKey,
        internal.ConsumerGroupTargetAssignmentMemberValue,
    ),
    8: RecordType(
        "assignment of a member", internal.ConsumerGroupMemberKey, internal.ConsumerGroupCurrentMemberAssignmentValue
    ),
    16: RecordType(
        "resolved expression", internal.ConsumerGroupMemberKey, internal.ConsumerGroupRegularExpressionValue
    ),
}
TRANSACTIONS: Final = {0: RecordType("transaction", internal.TransactionLogKey, internal.TransactionLogValue, 1, 1)}


def read_stored(kinds: dict[int, RecordType], key: bytes, value: bytes | None) -> Stored | None:
    """The decoded record of a topic with these types; None for an unknown type or version.

    Raises `ProtocolViolation` if it is cut short.
    """
    number, at = _prefix(key)
    kind = kinds.get(number)
    if kind is None:
        return None
    key_message: Any
    key_message, _ = schema.read(kind.key, 0, False, key, at)
    if value is None:
        return Stored(kind.name, key_message, None, -1)
    version, at = _prefix(value)
    if not 0 <= version <= kind.version_max:
        return None
    value_message: Any
    value_message, _ = schema.read(kind.value, version, version >= kind.flexible_since, value, at)
    return Stored(kind.name, key_message, value_message, version)


def _prefix(data: bytes) -> tuple[int, int]:
    try:
        return read_int16(data, 0)
    except struct.error as error:
        raise ProtocolViolation("a record too short for its type number") from error
