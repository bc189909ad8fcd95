"""The `range` assignor: partitions -> members of a group, as pure functions.

`consecutive` shares out one topic; the client's group leader (`range_assign`) and the coordinator of consumer groups
both use it. Source: the range assignor of Kafka's client documentation.
"""

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


def range_assign(members: Subscriptions, partitions: Mapping[str, int]) -> Assignment:
    """The partitions of every member, in the order of the members' ids. `members` are their subscriptions, `partitions`
    the number of partitions of each topic; a topic without a number is unknown and left out."""
    assigned: Assignment = {member: [] for member in sorted(members)}
    for topic, subscribers in subscribers_by_topic(members, partitions).items():
        for member, numbers in consecutive(partitions[topic], subscribers):
            assigned[member] += [TopicPartition(topic, number) for number in numbers]
    return assigned


def subscribers_by_topic(members: Subscriptions, partitions: Mapping[str, int]) -> dict[str, list[str]]:
    """The subscribers of each known topic; topics and members are sorted."""
    by_topic: dict[str, list[str]] = {}
    for member in sorted(members):
        for topic in dict.fromkeys(members[member]):
            if partitions.get(topic, 0) > 0:
                by_topic.setdefault(topic, []).append(member)
    return dict(sorted(by_topic.items()))
