"""The assignors of the classic protocol as members name and use them: subscriptions and assignments as bytes.

The leader of a group reads every member's subscription, of any client, and assigns the partitions with the assignor
that the coordinator has chosen. Names and bytes are those of Kafka's Java client.
"""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from moldau.assignors import Assignment, range_assign, round_robin_assign
from moldau.assignors.racks import Racks, range_assign_near
from moldau.assignors.sticky import Claim, cooperative_assign, sticky_assign
from moldau.errors import ErrorCode, KafkaError, ProtocolViolation
from moldau.names import TopicPartition, by_topic
from moldau.protocol import consumer
from moldau.protocol.consumer import (
    CONSUMER_PROTOCOL_VERSION_MAX,
    AssignedPartitions,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    OwnedPartitions,
    StickyAssignorUserData,
    read_sticky_user_data,
    sticky_user_data,
    versioned,
)

_GENERATION = struct.Struct(">i")
COOPERATIVE = "cooperative-sticky"
STICKY = "sticky"


class Subscriber(NamedTuple):
    """A member as the leader sees it."""

    instance_id: str | None
    subscription: ConsumerProtocolSubscription


SubscribersById = Mapping[str, Subscriber]
KnownRacks = Mapping[str, Racks]
"""The known topics: the racks of each partition's replicas."""


def _range(members: SubscribersById, known: KnownRacks) -> Assignment:
    racks = {member: one.subscription.rack_id for member, one in members.items()}
    if any(racks.values()):
        return range_assign_near(_topics(members), known, _instances(members), racks)
    return range_assign(_topics(members), _counts(known), _instances(members))


def _round_robin(members: SubscribersById, known: KnownRacks) -> Assignment:
    return round_robin_assign(_topics(members), _counts(known), _instances(members))


def _sticky(members: SubscribersById, known: KnownRacks) -> Assignment:
    claims = {member: _previous(one.subscription) for member, one in members.items()}
    return sticky_assign(_topics(members), _counts(known), claims)


def _cooperative(members: SubscribersById, known: KnownRacks) -> Assignment:
    claims = {member: _owned(one.subscription) for member, one in members.items()}
    return cooperative_assign(_topics(members), _counts(known), claims)


ASSIGNORS: Mapping[str, Callable[[SubscribersById, KnownRacks], Assignment]] = {
    "range": _range,
    "roundrobin": _round_robin,
    STICKY: _sticky,
    COOPERATIVE: _cooperative,
}


def is_cooperative(assignors: Sequence[str]) -> bool:
    """Whether members with these assignors keep their partitions during a rebalance: all of them must allow it."""
    return all(name == COOPERATIVE for name in assignors)


def subscription_bytes(
    assignor: str, topics: Sequence[str], owned: Iterable[TopicPartition], last: Claim, rack_id: str | None = None
) -> bytes:
    """What a member tells the leader if this assignor is chosen. `owned` are the partitions that it keeps during the
    rebalance; `last` is what it was assigned last."""
    user_data: bytes | None = None
    if assignor == STICKY and last.generation >= 0:
        previous = [AssignedPartitions(topic=t, partitions=p) for t, p in by_topic(last.partitions).items()]
        user_data = sticky_user_data(StickyAssignorUserData(previous_assignment=previous, generation=last.generation))
    if assignor == COOPERATIVE:
        user_data = _GENERATION.pack(last.generation)
    subscription = ConsumerProtocolSubscription(
        topics=list(topics),
        user_data=user_data,
        owned_partitions=[OwnedPartitions(topic=t, partitions=p) for t, p in by_topic(owned).items()],
        generation_id=last.generation,
        rack_id=rack_id or None,
    )
    return versioned(subscription, CONSUMER_PROTOCOL_VERSION_MAX)


def read_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """A member's subscription. Raises `KafkaError(INCONSISTENT_GROUP_PROTOCOL)` if the bytes are not a subscription."""
    try:
        return consumer.read_subscription(data)
    except ProtocolViolation as violation:
        raise _other_protocol(violation) from None


def read_assignment(data: bytes) -> list[TopicPartition]:
    """A member's partitions; none if the leader sent no assignment. Raises as `read_subscription` does."""
    if not data:
        return []
    try:
        assignment = consumer.read_assignment(data)
    except ProtocolViolation as violation:
        raise _other_protocol(violation) from None
    return [TopicPartition(t.topic, p) for t in assignment.assigned_partitions for p in t.partitions]


def assignment_of(partitions: Iterable[TopicPartition]) -> ConsumerProtocolAssignment:
    return ConsumerProtocolAssignment(
        assigned_partitions=[AssignedPartitions(topic=t, partitions=p) for t, p in by_topic(partitions).items()]
    )


def _other_protocol(violation: ProtocolViolation) -> KafkaError:
    code = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return KafkaError(code, f"a member of the group does not use the consumer protocol: {violation}")


def _counts(known: KnownRacks) -> dict[str, int]:
    return {topic: len(partitions) for topic, partitions in known.items()}


def _topics(members: SubscribersById) -> dict[str, list[str]]:
    return {member: one.subscription.topics for member, one in members.items()}


def _instances(members: SubscribersById) -> dict[str, str | None]:
    return {member: one.instance_id for member, one in members.items()}


def _previous(subscription: ConsumerProtocolSubscription) -> Claim:
    """What an eager sticky member was assigned last: in its user data, because it owns nothing any more."""
    try:
        previous = read_sticky_user_data(subscription.user_data or b"")
    except ProtocolViolation:
        return Claim()
    partitions = [TopicPartition(t.topic, p) for t in previous.previous_assignment for p in t.partitions]
    return Claim(partitions, previous.generation)


def _owned(subscription: ConsumerProtocolSubscription) -> Claim:
    """What a cooperative member owns. Older clients tell their generation in the user data."""
    generation, data = subscription.generation_id, subscription.user_data or b""
    if generation < 0 and len(data) == _GENERATION.size:
        generation = _GENERATION.unpack(data)[0]
    return Claim([TopicPartition(t.topic, p) for t in subscription.owned_partitions for p in t.partitions], generation)
