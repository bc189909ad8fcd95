"""Converts a classic group into a consumer group and back, with its members as they are (KIP-848). Pure.

In an upgrade a member has what the classic leader last assigned to it, and what it reported when it joined and no other
member has been assigned since: a cooperative member may not have revoked that yet. The group's generation becomes its
epoch.
In a downgrade a member has its current assignment and what it still has to revoke. All members rejoin at once and are
assigned anew, but until then the group may be upgraded again, and these partitions must not go to others meanwhile.
(Kafka uses the assignment and the target, and two members can have a partition at the same time.)
"""

import uuid
from collections.abc import Collection, Iterable, Mapping

from moldau.cluster.state.image import Image
from moldau.coordinators.classic.group import (
    CONSUMER_PROTOCOL,
    ClassicGroup,
    ClassicGroupState,
    ClassicMember,
    Protocols,
)
from moldau.coordinators.consumer.group import ConsumerGroup, ConsumerMember
from moldau.errors import ProtocolViolation
from moldau.protocol.consumer import (
    CONSUMER_PROTOCOL_VERSION_MAX,
    AssignedPartitions,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    OwnedPartitions,
    read_assignment,
    read_subscription,
    versioned,
)
from moldau.protocol.internal import ClassicMemberMetadata, ClassicProtocol
from moldau.protocol.primitives import read_int16


class CannotMigrate(ValueError):
    """The members' subscriptions or assignments cannot be converted; the message says why."""


def consumer_group_of(group: ClassicGroup, image: Image) -> ConsumerGroup:
    """The classic group as a consumer group. Raises `CannotMigrate`."""
    if group.protocol_type != CONSUMER_PROTOCOL:
        raise CannotMigrate("its members are not consumers")
    converted = ConsumerGroup(group.group_id, epoch=group.generation, target_epoch=group.generation)
    assignments = {one.member_id: _read_assignment(one.assignment, image) for one in group.members.values()}
    taken = {(topic, p) for given in assignments.values() for topic, partitions in given.items() for p in partitions}
    for classic in group.members.values():
        subscription = subscription_of(classic.protocols)
        given = assignments[classic.member_id]
        owned = {topic: dict.fromkeys(sorted(partitions), group.generation) for topic, partitions in given.items()}
        for topic, partitions in by_id(subscription.owned_partitions, image).items():
            if left := [p for p in sorted(partitions) if (topic, p) not in taken]:
                owned.setdefault(topic, {}).update(dict.fromkeys(left, group.generation))
                taken.update((topic, p) for p in left)
        converted.members[classic.member_id] = ConsumerMember(
            classic.member_id,
            instance_id=classic.instance_id,
            rack_id=subscription.rack_id,
            client_id=classic.client_id,
            client_host=classic.client_host,
            rebalance_timeout_ms=classic.rebalance_timeout_ms,
            topics=tuple(sorted(set(subscription.topics))),
            classic=metadata_of_classic(classic.session_timeout_ms, classic.protocols),
            epoch=group.generation,
            previous_epoch=group.generation,
            assigned=owned,
        )
        converted.targets[classic.member_id] = {topic: frozenset(partitions) for topic, partitions in given.items()}
    return converted


def classic_group_of(group: ConsumerGroup, members: Iterable[ConsumerMember], image: Image) -> ClassicGroup:
    """A stable classic group of these members. Raises `CannotMigrate` if they have no protocol in common."""
    classic = ClassicGroup(group.group_id, generation=group.epoch, protocol_type=CONSUMER_PROTOCOL)
    everyone = list(members)
    for member in everyone:
        assert member.classic is not None
        protocols = tuple((protocol.name, protocol.metadata) for protocol in member.classic.supported_protocols)
        timeouts_ms = (member.classic.session_timeout_ms, member.rebalance_timeout_ms)
        joined = ClassicMember(
            member.member_id, member.instance_id, member.client_id, member.client_host, *timeouts_ms, protocols
        )
        joined.new = False
        held = {
            topic: [*member.assigned.get(topic, ()), *member.revoking.get(topic, ())]
            for topic in dict.fromkeys((*member.assigned, *member.revoking))
        }
        joined.assignment = assignment_for(member, held, image)
        classic.add(joined)
    if not any(count == len(classic.members) for count in classic.offers.values()):
        raise CannotMigrate("its members have no protocol in common")
    classic.protocol = classic.elected_protocol()
    classic.state = classic.before = ClassicGroupState.STABLE
    classic.topics = frozenset(topic for member in everyone for topic in member.topics)
    return classic


def metadata_of_classic(session_timeout_ms: int, protocols: Protocols) -> ClassicMemberMetadata:
    """What a consumer group's record keeps about a classic member."""
    supported = [ClassicProtocol(name=name, metadata=metadata) for name, metadata in protocols]
    return ClassicMemberMetadata(session_timeout_ms=session_timeout_ms, supported_protocols=supported)


def subscription_of(protocols: Protocols) -> ConsumerProtocolSubscription:
    """The member's subscription, which is the same for every protocol. Raises `CannotMigrate`."""
    try:
        return read_subscription(protocols[0][1])
    except ProtocolViolation:
        raise CannotMigrate("a member's subscription cannot be read") from None


def assignment_for(member: ConsumerMember, target: Mapping[uuid.UUID, Collection[int]], image: Image) -> bytes:
    """The partitions as the classic protocol's assignment, in the member's version; deleted topics are left out."""
    assert member.classic is not None
    version = min(read_int16(member.classic.supported_protocols[0].metadata, 0)[0], CONSUMER_PROTOCOL_VERSION_MAX)
    topics = image.topics_by_id
    assigned = [
        AssignedPartitions(topic=topics[topic].name, partitions=sorted(partitions))
        for topic, partitions in target.items()
        if topic in topics and partitions
    ]
    return versioned(ConsumerProtocolAssignment(assigned_partitions=assigned), version)


def _read_assignment(data: bytes, image: Image) -> dict[uuid.UUID, list[int]]:
    if not data:
        return {}
    try:
        assignment = read_assignment(data)
    except ProtocolViolation:
        raise CannotMigrate("a member's assignment cannot be read") from None
    if assignment.user_data:
        raise CannotMigrate("its assignor uses data of its own")
    return by_id(assignment.assigned_partitions, image)


def by_id(named: Iterable[AssignedPartitions | OwnedPartitions], image: Image) -> dict[uuid.UUID, list[int]]:
    """The partitions by topic id; deleted topics are left out."""
    topics = image.topics
    return {topics[one.topic].id: one.partitions for one in named if one.topic in topics}
