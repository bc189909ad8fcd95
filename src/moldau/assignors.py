"""Partitions -> members of a group: pure functions that the client's group leader and the coordinator share.

Every function takes what each member subscribes to and how many partitions each topic has, and returns an entry for
every member, in the order of the members' ids; each partition of a subscribed topic has exactly one owner. Topics
without a count are unknown and are left out. Sources: the range and round-robin assignors of Kafka's client
documentation; KIP-54 for `sticky_assign`.
"""

from collections.abc import Iterable, Mapping

from moldau.names import TopicPartition

Subscriptions = Mapping[str, Iterable[str]]
Assignment = dict[str, list[TopicPartition]]


def range_assign(members: Subscriptions, partitions: Mapping[str, int]) -> Assignment:
    """Topic by topic, consecutive partitions: the first members get one more where they do not divide evenly."""
    assigned: Assignment = {member: [] for member in sorted(members)}
    for topic, subscribers in _subscribers(members, partitions).items():
        share, more = divmod(partitions[topic], len(subscribers))
        start = 0
        for position, member in enumerate(subscribers):
            end = start + share + (position < more)
            assigned[member] += [TopicPartition(topic, p) for p in range(start, end)]
            start = end
    return assigned


def round_robin_assign(members: Subscriptions, partitions: Mapping[str, int]) -> Assignment:
    """All partitions, topic by topic, dealt out in turn; members that do not subscribe to one are passed over."""
    assigned: Assignment = {member: [] for member in sorted(members)}
    order = list(assigned)
    turn = 0
    for topic, subscribers in _subscribers(members, partitions).items():
        wanted = frozenset(subscribers)
        for p in range(partitions[topic]):
            while order[turn % len(order)] not in wanted:
                turn += 1
            assigned[order[turn % len(order)]].append(TopicPartition(topic, p))
            turn += 1
    return assigned


def sticky_assign(
    members: Subscriptions, partitions: Mapping[str, int], owned: Mapping[str, Iterable[TopicPartition]]
) -> Assignment:
    """As even as subscriptions allow; a partition stays with its owner (`owned`) unless another has two fewer."""
    assigned: Assignment = {member: [] for member in sorted(members)}
    by_topic = _subscribers(members, partitions)
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


def _subscribers(members: Subscriptions, partitions: Mapping[str, int]) -> dict[str, list[str]]:
    """The members of each known topic, both in order."""
    by_topic: dict[str, list[str]] = {}
    for member in sorted(members):
        for topic in dict.fromkeys(members[member]):
            if partitions.get(topic, 0) > 0:
                by_topic.setdefault(topic, []).append(member)
    return dict(sorted(by_topic.items()))
