"""The assignor `range` where members and replicas are in racks: members get partitions that have a replica near them,
as far as the shares of `range` allow; pure.

Topics with the same subscribers and number of partitions stay shared out alike: of each number, a member gets the
partition of every topic or of none, as long as all of them have a replica in its rack. The other partitions are given
out in order. Source: KIP-881, and the assignments of Apache Kafka's Java client.
"""

from collections.abc import Mapping, Sequence

from moldau.assignors import Assignment, Subscriptions, subscribers_by_topic
from moldau.names import TopicPartition

Racks = Sequence[frozenset[str]]
"""The racks of each partition's replicas."""


def range_assign_near(
    members: Subscriptions,
    replicas: Mapping[str, Racks],
    instances: Mapping[str, str | None],
    racks: Mapping[str, str | None],
) -> Assignment:
    """The partitions of every member, sorted. `replicas` has the known topics, `racks` those of the members."""
    counts = {topic: len(places) for topic, places in replicas.items()}
    subscribers = subscribers_by_topic(members, counts, instances)
    topics = [_Topic(topic, who, replicas[topic], racks) for topic, who in subscribers.items()]
    if any(topic.matters for topic in topics):
        alike: dict[tuple[tuple[str, ...], int], list[_Topic]] = {}
        for topic in topics:
            alike.setdefault((tuple(topic.given), len(topic.replicas)), []).append(topic)
        for some in alike.values():
            if len(some) > 1:
                _give_together(some)
            elif some[0].matters:
                some[0].give_near()
    assigned: Assignment = {member: [] for member in sorted(members)}
    for topic in topics:
        topic.give_rest()
        for number, member in topic.owners.items():
            assigned[member].append(TopicPartition(topic.name, number))
    return {member: sorted(own) for member, own in assigned.items()}


class _Topic:
    """One topic while it is shared out: what each subscriber has been given, and who owns each partition."""

    def __init__(self, name: str, subscribers: Sequence[str], replicas: Racks, racks: Mapping[str, str | None]):
        self.name = name
        self.replicas = replicas
        self.given = dict.fromkeys(subscribers, 0)
        self.owners: dict[int, str] = {}
        self._racks = racks
        self._share, self._more = divmod(len(replicas), len(subscribers))
        everywhere = frozenset[str]().union(*replicas)
        near = any(racks.get(member) in everywhere for member in subscribers)
        self.matters = near and any(places != everywhere for places in replicas)

    def room(self, member: str) -> int:
        """How many more partitions the member may be given."""
        return max(0, self._share + (self._more > 0) - self.given[member])

    def is_near(self, member: str, number: int) -> bool:
        rack = self._racks.get(member)
        return not rack or rack in self.replicas[number]

    def give(self, member: str, number: int) -> None:
        self.owners[number] = member
        self.given[member] += 1
        if self.given[member] > self._share:
            self._more -= 1

    def give_near(self) -> None:
        for member in self.given:
            self._give(member, [n for n in self._free() if self.is_near(member, n)])

    def give_rest(self) -> None:
        for member in self.given:
            self._give(member, self._free())

    def _free(self) -> list[int]:
        return [number for number in range(len(self.replicas)) if number not in self.owners]

    def _give(self, member: str, numbers: Sequence[int]) -> None:
        for number in numbers[: self.room(member)]:
            self.give(member, number)


def _give_together(topics: Sequence[_Topic]) -> None:
    """Give a number's partitions of all topics to the first member that is near all of them and has room."""
    for number in range(len(topics[0].replicas)):
        for member in topics[0].given:
            if all(topic.room(member) and topic.is_near(member, number) for topic in topics):
                for topic in topics:
                    topic.give(member, number)
                break
