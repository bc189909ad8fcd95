"""The assignors `range` and `roundrobin`: partitions -> members of a group, as pure functions.

`consecutive` shares out one topic; the client's group leader (`range_assign`) and the coordinator of consumer groups
both use it. `sticky` has the assignors that know what members own. Source: the assignors of Kafka's client
documentation.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from moldau.names import TopicPartition

M = TypeVar("M")
Subscriptions = Mapping[str, Iterable[str]]
Assignment = dict[str, list[TopicPartition]]


def consecutive(count: int, members: Sequence[M]) -> Iterator[tuple[M, range]]:
    """Share out the partitions 0 to `count` - 1. Each member gets a consecutive range; if the number does not divide
    evenly, the first members get one more. Members without a partition are left out."""
    share, more = divmod(count, len(members)) if members else (0, 0)
    start = 0
    for position, member in enumerate(members if share else members[:more]):
        end = start + share + (position < more)
        yield member, range(start, end)
        start = end


def in_order(members: Iterable[str], instances: Mapping[str, str | None]) -> list[str]:
    """The ids of members in the order of assignors: static members first, by instance id; then the others, by id."""
    return sorted(members, key=lambda member: (not instances.get(member), instances.get(member) or "", member))


def range_assign(
    members: Subscriptions, partitions: Mapping[str, int], instances: Mapping[str, str | None] = {}
) -> Assignment:
    """The partitions of every member. `members` are their subscriptions, `partitions` the number of partitions of each
    topic (a topic without a number is unknown and left out), `instances` the instance ids of static members.

    Topics with the same subscribers and number of partitions are shared out alike: a member has the same partitions of
    each.
    """
    assigned: Assignment = {member: [] for member in sorted(members)}
    for topic, subscribers in subscribers_by_topic(members, partitions, instances).items():
        for member, numbers in consecutive(partitions[topic], subscribers):
            assigned[member] += [TopicPartition(topic, number) for number in numbers]
    return assigned


def round_robin_assign(
    members: Subscriptions, partitions: Mapping[str, int], instances: Mapping[str, str | None] = {}
) -> Assignment:
    """As `range_assign`, but members take turns over the partitions of all topics; one that does not subscribe to a
    topic is passed over."""
    assigned: Assignment = {member: [] for member in sorted(members)}
    turns = itertools.cycle(in_order(members, instances))
    for topic, subscribers in subscribers_by_topic(members, partitions).items():
        takers = frozenset(subscribers)
        for number in range(partitions[topic]):
            member = next(member for member in turns if member in takers)
            assigned[member].append(TopicPartition(topic, number))
    return assigned


def subscribers_by_topic(
    members: Subscriptions, partitions: Mapping[str, int], instances: Mapping[str, str | None] = {}
) -> dict[str, list[str]]:
    """The subscribers of each known topic; topics are sorted, members are `in_order`."""
    by_topic: dict[str, list[str]] = {}
    for member in in_order(members, instances):
        for topic in dict.fromkeys(members[member]):
            if partitions.get(topic, 0) > 0:
                by_topic.setdefault(topic, []).append(member)
    return dict(sorted(by_topic.items()))
