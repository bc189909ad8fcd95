"""A client's view of the cluster: the brokers' addresses and the leader of each partition. No I/O, no clock.

The view is built from Metadata replies. An older leader epoch never replaces a newer one (KIP-320). The view finds
topics by name: APIs that fetch, produce and commit plainly are used in versions with names.
"""

import uuid
from dataclasses import dataclass, field
from typing import NamedTuple

from moldau.client.failures import error_of
from moldau.errors import ErrorCode
from moldau.names import TopicPartition
from moldau.peers.address import Address
from moldau.peers.negotiation import IntendedBroker
from moldau.protocol.apis import FETCH, OFFSET_COMMIT, OFFSET_FETCH, PRODUCE
from moldau.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic

NEWEST_WITH_NAMES = {PRODUCE.key: 12, FETCH.key: 12, OFFSET_COMMIT.key: 9, OFFSET_FETCH.key: 9}
"""API key -> the newest version that has topic names."""


class PartitionView(NamedTuple):
    """The leader and replicas of one partition; `leader` is -1 while the partition has none."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class TopicView(NamedTuple):
    """An existing topic."""

    name: str
    topic_id: uuid.UUID
    internal: bool
    partitions: dict[int, PartitionView]


@dataclass
class ClusterView:
    """Brokers by id, topics by name, and in `missing` the error of each requested topic that cannot be used."""

    brokers: dict[int, Address] = field(default_factory=dict)
    racks: dict[int, str | None] = field(default_factory=dict)
    topics: dict[str, TopicView] = field(default_factory=dict)
    missing: dict[str, ErrorCode] = field(default_factory=dict)
    cluster_id: str | None = None
    controller_id: int = -1

    def apply(self, reply: MetadataResponse, everything: bool) -> None:
        """Merge a reply into the view; `everything` if the request was for all topics."""
        if reply.brokers:
            self.brokers = {b.node_id: Address(b.host, b.port) for b in reply.brokers}
            self.racks = {b.node_id: b.rack for b in reply.brokers}
        self.cluster_id, self.controller_id = reply.cluster_id, reply.controller_id
        known = self.topics
        if everything:
            self.topics, self.missing = {}, {}
        for topic in reply.topics:
            if topic.name is None:
                continue
            if topic.error_code:
                self.topics.pop(topic.name, None)
                self.missing[topic.name] = error_of(topic.error_code)
            else:
                self.missing.pop(topic.name, None)
                self.topics[topic.name] = _topic(topic.name, topic, known.get(topic.name))

    def forget(self) -> None:
        """Forget the cluster: the next reply may be of another one."""
        self.brokers, self.racks, self.topics, self.missing = {}, {}, {}, {}
        self.cluster_id, self.controller_id = None, -1

    def intended(self, broker_id: int | None) -> IntendedBroker | None:
        """The broker and the cluster that a connection is for. None if no broker is named, or the cluster has no known
        id yet."""
        if broker_id is None or self.cluster_id is None:
            return None
        return IntendedBroker(self.cluster_id, broker_id)

    def replica_racks(self, topic: str) -> list[frozenset[str]]:
        """The racks that have a replica, of each partition of a known topic."""
        partitions = sorted(self.topics[topic].partitions.items())
        racks = ({self.racks.get(broker) for broker in partition.replicas} for _, partition in partitions)
        return [frozenset(rack for rack in some if rack) for some in racks]

    def leader(self, tp: TopicPartition) -> int | ErrorCode:
        """The id of the broker that leads the partition, or the error if it has no leader. Codes are integers, too:
        compare them by `is`, since a broker may have the id 3."""
        topic = self.topics.get(tp.topic)
        if topic is None:
            return self.missing.get(tp.topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        partition = topic.partitions.get(tp.partition)
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if partition.leader < 0 or partition.leader not in self.brokers:
            return ErrorCode.LEADER_NOT_AVAILABLE
        return partition.leader

    def topic_id(self, topic: str) -> uuid.UUID | None:
        """The id of a topic; None if the topic is unknown, or brokers give topics no ids (Kafka before 2.8)."""
        known = self.topics.get(topic)
        return known.topic_id if known is not None and known.topic_id.int else None

    def leader_epoch(self, tp: TopicPartition) -> int:
        """The epoch of the partition's leader; -1 if it is unknown."""
        topic = self.topics.get(tp.topic)
        partition = topic.partitions.get(tp.partition) if topic is not None else None
        return -1 if partition is None else partition.leader_epoch


def _topic(name: str, topic: MetadataResponseTopic, before: TopicView | None) -> TopicView:
    partitions: dict[int, PartitionView] = {}
    for p in sorted(topic.partitions, key=lambda p: p.partition_index):
        view = PartitionView(p.leader_id, p.leader_epoch, tuple(p.replica_nodes), tuple(p.isr_nodes))
        if before is not None and before.topic_id == topic.topic_id:
            older = before.partitions.get(p.partition_index)
            if older is not None and older.leader_epoch > view.leader_epoch >= 0:
                view = older
        partitions[p.partition_index] = view
    return TopicView(name, topic.topic_id, topic.is_internal, partitions)
