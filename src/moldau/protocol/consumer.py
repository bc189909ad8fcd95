"""The consumer protocol: what members of a group tell each other"""

from moldau.protocol.schema import ARRAY, BYTES, INT32, STRING, message


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
