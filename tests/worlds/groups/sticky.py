"""A sticky assignor for the simulated leader of a cooperative group: an owner keeps its partitions if that is fair.

Source: KIP-54. Moldau's own client has the `range` assignor alone.
"""

from collections.abc import Iterable, Mapping

from moldau.assignors import Assignment, Subscriptions, subscribers_by_topic
from moldau.names import TopicPartition


def sticky_assign(
    members: Subscriptions, partitions: Mapping[str, int], owned: Mapping[str, Iterable[TopicPartition]]
) -> Assignment:
    """As even as subscriptions allow; a partition stays with its owner (`owned`) unless another has two fewer."""
    assigned: Assignment = {member: [] for member in sorted(members)}
    by_topic = subscribers_by_topic(members, partitions)
    wanted = {topic: frozenset(subscribers) for topic, subscribers in by_topic.items()}
    free = {TopicPartition(topic, p): None for topic in by_topic for p in range(partitions[topic])}
    for member in assigned:
        for partition in sorted(owned.get(member, ())):
            if partition in free and member in wanted[partition.topic]:
                del free[partition]
                assigned[member].append(partition)
    for partition in free:
        assigned[min(by_topic[partition.topic], key=lambda member: len(assigned[member]))].append(partition)
    while _level(assigned, by_topic):
        pass
    return {member: sorted(own) for member, own in assigned.items()}


def _level(assigned: Assignment, by_topic: Mapping[str, list[str]]) -> bool:
    """Move one partition from a member to one that has at least two fewer; False when there is none to move."""
    for giver in sorted(assigned, key=lambda member: (-len(assigned[member]), member)):
        for at in range(len(assigned[giver]) - 1, -1, -1):
            partition = assigned[giver][at]
            taker = min(by_topic[partition.topic], key=lambda member: len(assigned[member]))
            if len(assigned[taker]) + 1 < len(assigned[giver]):
                assigned[taker].append(assigned[giver].pop(at))
                return True
    return False
