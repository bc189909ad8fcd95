"""Members of a group that tests make, poll in turns and close together; the settings of each kind of member."""

from collections.abc import Callable
from typing import Any

from harness.patience import Deadline
from moldau.client.administration.admin import Admin
from moldau.client.consuming.consumer import Consumer
from moldau.client.producing.producer import Producer
from moldau.names import TopicPartition

FAST = {
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.assignment.interval.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "num.partitions": "1",
}
CLASSIC: dict[str, Any] = {"heartbeat_interval_ms": 100, "session_timeout_ms": 6_000}
NEWER: dict[str, Any] = {"group_protocol": "consumer"}
COOPERATIVE: dict[str, Any] = {**CLASSIC, "partition_assignment_strategy": "cooperative-sticky"}
KINDS: dict[str, dict[str, Any]] = {
    "default": CLASSIC,
    **{
        name: {**CLASSIC, "partition_assignment_strategy": [name]}
        for name in ("range", "roundrobin", "sticky", "cooperative-sticky")
    },
    "consumer": NEWER,
    "consumer-range": {**NEWER, "group_remote_assignor": "range"},
}


class Member:
    """A consumer, what it has read, and what it was told."""

    def __init__(self, bootstrap: str, group: str, topics: Any, **settings: Any):
        given = {"auto_offset_reset": "earliest", "metadata_max_age_ms": 300, **settings}
        self.consumer = Consumer(bootstrap, group_id=group, **given)
        self.told: list[tuple[str, list[TopicPartition]]] = []
        self.values: list[bytes] = []
        self.consumer.subscribe(
            topics,
            on_assigned=lambda some: self.told.append(("assigned", some)),
            on_revoked=lambda some: self.told.append(("revoked", some)),
            on_lost=lambda some: self.told.append(("lost", some)),
        )

    @property
    def owned(self) -> set[TopicPartition]:
        return set(self.consumer.assignment())

    def heard(self, what: str) -> list[TopicPartition]:
        return sorted(tp for kind, some in self.told if kind == what for tp in some)

    def poll(self) -> None:
        self.values += [record.value for record in self.consumer.poll(20)]


class Group:
    """Members that are made, polled in turns and closed together."""

    def __init__(self, bootstrap: str, group: str):
        self.bootstrap = bootstrap
        self.group = group
        self.members: list[Member] = []
        self.gone: list[Member] = []

    def joins(self, topics: Any, **settings: Any) -> Member:
        self.members.append(Member(self.bootstrap, self.group, topics, **settings))
        return self.members[-1]

    def leaves(self, member: Member) -> None:
        """It comes back from what it has read, and closes."""
        member.poll()
        self.members.remove(member)
        self.gone.append(member)
        member.consumer.close()

    def until(self, holds: Callable[[], object], *, without: tuple[Member, ...] = ()) -> None:
        """Poll everyone in turns until the condition holds. No two members have a partition at any time."""
        deadline = Deadline(60)
        while not holds():
            owned = [sorted(member.owned) for member in self.members]
            assert not deadline.passed, (owned, [member.told for member in self.members])
            for member in self.members:
                if member not in without:
                    member.poll()

    def shares(self, *counts: int) -> Callable[[], bool]:
        """Whether each member has so many partitions, and no two have the same."""

        def holds() -> bool:
            owned = [member.owned for member in self.members]
            return [len(own) for own in owned] == list(counts) and len(set().union(*owned)) == sum(counts)

        return holds

    @property
    def values(self) -> list[bytes]:
        return sorted(value for member in (*self.members, *self.gone) for value in member.values)


def create(bootstrap: str, topic: str, partitions: int) -> set[TopicPartition]:
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=partitions)
    return {TopicPartition(topic, number) for number in range(partitions)}


def fill(bootstrap: str, topic: str, partitions: int, numbers: range) -> list[bytes]:
    values = [b"%06d" % number for number in numbers]
    with Producer(bootstrap) as producer:
        for at, value in enumerate(values):
            producer.send(topic, value, partition=at % partitions)
    return values
