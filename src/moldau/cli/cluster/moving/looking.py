"""Reads from a cluster where its replicas are, how large they are, and how far a plan is."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from moldau.cli.cluster.moving.cluster_layout import BrokerSpace, ClusterLayout, HeldPartition, MovePlan
from moldau.client.administration.admin import Admin
from moldau.client.administration.cluster import LogDir
from moldau.errors import KafkaError
from moldau.names import TopicPartition


class Way(NamedTuple):
    """How far a partition is on its way to the replicas of a plan. `exists`: the cluster has it."""

    exists: bool
    is_there: bool
    is_under_way: bool
    """To these replicas; not if another plan moves it."""
    copied: int
    """The bytes of the replicas that are being added."""


def read_layout(admin: Admin) -> ClusterLayout:
    """The whole cluster. Brokers that do not answer about their disks count as holding what others say."""
    racks = admin.describe_cluster().racks
    topics = admin.list_topics(internal=True)
    folders = {broker: _log_dirs(admin, broker, None) for broker in racks}
    sizes: dict[TopicPartition, int] = {}
    for found in folders.values():
        for folder in found:
            for tp, replica in folder.replicas.items():
                sizes[tp] = max(sizes.get(tp, 0), replica.size_bytes)
    return ClusterLayout(
        {broker: _space(rack, folders[broker]) for broker, rack in racks.items()},
        {
            TopicPartition(name, number): HeldPartition(part.replicas, sizes.get(TopicPartition(name, number), 0))
            for name, topic in topics.items()
            for number, part in topic.partitions.items()
        },
    )


def look_at(admin: Admin, plan: MovePlan, wanted: Iterable[TopicPartition]) -> dict[TopicPartition, Way]:
    """How far these partitions of a plan are."""
    asked = list(wanted)
    under_way = admin.list_reassignments(asked) if asked else {}
    known = admin.list_topics(internal=True)  # afterwards: what has ended meanwhile is seen where it is now
    parts = {tp: topic.partitions.get(tp.partition) for tp in asked if (topic := known.get(tp.topic)) is not None}
    copied = _copied(admin, {tp: {*move.adding} for tp, move in under_way.items()})
    ways = {}
    for tp in asked:
        part, target, move = parts.get(tp), plan[tp], under_way.get(tp)
        at_rest = part is not None and move is None
        is_there = at_rest and part is not None and part.replicas == target and {*target} <= {*part.isr}
        is_on_it = move is not None and tuple(one for one in move.replicas if one not in move.removing) == target
        # All replicas are assigned, and one has fallen out of the ISR: it only has to come back.
        is_on_it |= at_rest and part is not None and part.replicas == target and not is_there
        ways[tp] = Way(part is not None, is_there, is_on_it, copied.get(tp, 0))
    return ways


def _copied(admin: Admin, adding: dict[TopicPartition, set[int]]) -> dict[TopicPartition, int]:
    copied: dict[TopicPartition, int] = {}
    topics = {tp.topic for tp in adding}
    for broker in sorted({one for brokers in adding.values() for one in brokers}):
        for folder in _log_dirs(admin, broker, topics):
            for tp, replica in folder.replicas.items():
                if broker in adding.get(tp, ()):
                    copied[tp] = copied.get(tp, 0) + replica.size_bytes
    return copied


def _log_dirs(admin: Admin, broker: int, topics: Collection[str] | None) -> list[LogDir]:
    """Empty if the broker does not answer: it may have died just now."""
    try:
        return admin.describe_log_dirs([broker], topics=topics)[broker]
    except KafkaError:
        return []


def _space(rack: str | None, folders: Collection[LogDir]) -> BrokerSpace:
    disks = {(one.total_bytes, one.usable_bytes) for one in folders if one.total_bytes is not None}
    if not disks or any(free is None for _, free in disks):
        return BrokerSpace(rack)
    return BrokerSpace(rack, sum(total or 0 for total, _ in disks), sum(free or 0 for _, free in disks))
