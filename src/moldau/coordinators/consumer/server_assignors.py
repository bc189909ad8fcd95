"""The assignors of consumer groups, `uniform` and `range`: members and topics -> the partitions of each member. Pure;
the order of the input does not matter.

Each partition of a subscribed topic gets exactly one owner, which subscribes to the topic. `range` assigns every topic
by itself in consecutive partitions, so that topics of the same size with the same subscribers are split alike.
`uniform` balances the number of partitions over all topics, and leaves a partition at its last owner unless that
conflicts with the balance. Source: KIP-848, and the assignments of Apache Kafka 4.3.
"""

import uuid
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from moldau.assignors import consecutive
from moldau.assignors.balance import Subscribers, balanced


class MemberSpec(NamedTuple):
    """One member as an assignor sees it; `assigned` is its part of the last target."""

    topics: frozenset[uuid.UUID]
    instance_id: str | None
    rack_id: str | None
    assigned: Mapping[uuid.UUID, frozenset[int]]


Given: TypeAlias = dict[str, dict[uuid.UUID, list[int]]]
Assign: TypeAlias = Callable[[Mapping[str, MemberSpec], Mapping[uuid.UUID, int]], Given]
"""Members, and the number of partitions of each topic -> the partitions of each member."""


def range_assign(members: Mapping[str, MemberSpec], topics: Mapping[uuid.UUID, int]) -> Given:
    """Topic by topic, static members first: the first ones get one more where partitions do not divide evenly."""
    given: Given = {member: {} for member in members}
    order = sorted(members, key=lambda member: _static_first(member, members[member]))
    subscribers = Subscribers(order, {member: spec.topics for member, spec in members.items()})
    for topic in sorted(topics, key=_id):
        for member, numbers in consecutive(topics[topic], subscribers.of(topic)):
            given[member][topic] = list(numbers)
    return given


def _static_first(member: str, spec: MemberSpec) -> tuple[bool, str, str]:
    return spec.instance_id is None, spec.instance_id or "", member


def _id(topic: uuid.UUID) -> int:
    return topic.int


def uniform_assign(members: Mapping[str, MemberSpec], topics: Mapping[uuid.UUID, int]) -> Given:
    """As even as subscriptions allow, moving as few partitions as possible."""
    subscribers = Subscribers(sorted(members), {member: spec.topics for member, spec in members.items()})
    owned = {m: [(t, p) for t, some in spec.assigned.items() for p in some] for m, spec in members.items()}
    given: Given = {member: {} for member in members}
    for member, own in balanced(
        subscribers, {topic: topics[topic] for topic in sorted(topics, key=_id)}, owned
    ).items():
        for topic, p in own:
            given[member].setdefault(topic, []).append(p)
    return given


ASSIGNORS: Mapping[str, Assign] = {"uniform": uniform_assign, "range": range_assign}
