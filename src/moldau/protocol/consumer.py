"""The embedded protocol of classic consumer groups: the metadata and assignments that members exchange as bytes.

    int16 version | the fields of that version

Sources: Apache Kafka's ConsumerProtocolSubscription and ConsumerProtocolAssignment; KIP-341 (user data of `sticky`).
"""

from typing import Final

from moldau.errors import ProtocolViolation
from moldau.protocol import schema
from moldau.protocol.schema import ARRAY, BYTES, INT32, STRING, message

CONSUMER_PROTOCOL_VERSION_MAX: Final = 3
"""The newest version known here. A newer subscription or assignment begins with the fields of this one."""
_VERSION_BYTES = 2


@message
class OwnedPartitions:
    topic: str = STRING(since=1)
    partitions: list[int] = ARRAY(INT32, since=1)


@message
class ConsumerProtocolSubscription:
    topics: list[str] = ARRAY(STRING)
    user_data: bytes | None = BYTES(nullable=0, default=None)
    owned_partitions: list[OwnedPartitions] = ARRAY(OwnedPartitions, since=1)
    generation_id: int = INT32(since=2, default=-1)
    rack_id: str | None = STRING(since=3, nullable=3, default=None)


@message
class AssignedPartitions:
    topic: str = STRING()
    partitions: list[int] = ARRAY(INT32)


@message
class ConsumerProtocolAssignment:
    assigned_partitions: list[AssignedPartitions] = ARRAY(AssignedPartitions)
    user_data: bytes | None = BYTES(nullable=0, default=None)


@message
class StickyAssignorUserData:
    """The user data of a subscription with the assignor `sticky`: what the member was assigned last. It has no version
    in front; the generation is missing in the first version (version 0 here)."""

    previous_assignment: list[AssignedPartitions] = ARRAY(AssignedPartitions)
    generation: int = INT32(since=1, default=-1)


def read_subscription(data: bytes, as_version: int | None = None) -> ConsumerProtocolSubscription:
    """A member's subscription, in its own version or in the given one. Raises `ProtocolViolation`."""
    version = _version(data) if as_version is None else as_version
    return schema.read(ConsumerProtocolSubscription, version, False, data, _VERSION_BYTES)[0]


def read_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """A member's assignment. Raises `ProtocolViolation`."""
    return schema.read(ConsumerProtocolAssignment, _version(data), False, data, _VERSION_BYTES)[0]


def read_sticky_user_data(data: bytes) -> StickyAssignorUserData:
    """What a member of the assignor `sticky` was assigned last. Raises `ProtocolViolation`."""
    try:
        return schema.read(StickyAssignorUserData, 1, False, data)[0]
    except ProtocolViolation:
        return schema.read(StickyAssignorUserData, 0, False, data)[0]


def sticky_user_data(previous: StickyAssignorUserData) -> bytes:
    return bytes(schema.write(previous, 1, False))


def versioned(value: ConsumerProtocolSubscription | ConsumerProtocolAssignment, version: int) -> bytes:
    """The message as bytes, with its version in front."""
    return version.to_bytes(_VERSION_BYTES, "big") + bytes(schema.write(value, version, False))


def _version(data: bytes) -> int:
    if len(data) < _VERSION_BYTES:
        raise ProtocolViolation("a subscription or assignment is too short for its version")
    version = int.from_bytes(data[:_VERSION_BYTES], "big", signed=True)
    if version < 0:
        raise ProtocolViolation(f"a subscription or assignment has the version {version}")
    return min(version, CONSUMER_PROTOCOL_VERSION_MAX)
