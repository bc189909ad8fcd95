"""What a client believes about the cluster: where brokers listen, who leads which partition. No I/O, no clock.

Built up from Metadata replies; a newer leader epoch is never replaced by an older one (KIP-320).
"""

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from moldau.client.failures import error_of
from moldau.errors import ConfigError, ErrorCode
from moldau.names import TopicPartition
from moldau.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic


class Address(NamedTuple):
    """Where a broker listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class PartitionView(NamedTuple):
    """Who leads one partition; `leader` is -1 while nobody does."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class TopicView(NamedTuple):
    """One topic that exists."""

    name: str
    topic_id: uuid.UUID
    internal: bool
    partitions: dict[int, PartitionView]


@dataclass
class ClusterView:
    """Brokers and topics by name; `missing` says why a topic that was asked for is not among them."""

    brokers: dict[int, Address] = field(default_factory=dict)
    racks: dict[int, str | None] = field(default_factory=dict)
    topics: dict[str, TopicView] = field(default_factory=dict)
    missing: dict[str, ErrorCode] = field(default_factory=dict)
    cluster_id: str | None = None
    controller_id: int = -1

    def apply(self, reply: MetadataResponse, everything: bool) -> None:
        """Take over what a broker said; `everything` if it was asked for all topics."""
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

    def leader(self, tp: TopicPartition) -> int | ErrorCode:
        """The broker that leads the partition, or why there is none."""
        topic = self.topics.get(tp.topic)
        if topic is None:
            return self.missing.get(tp.topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        partition = topic.partitions.get(tp.partition)
        if partition is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if partition.leader < 0 or partition.leader not in self.brokers:
            return ErrorCode.LEADER_NOT_AVAILABLE
        return partition.leader


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


def bootstrap_addresses(bootstrap: str | Iterable[str]) -> list[Address]:
    """`host:port,host:port` or a list of them; `[::1]:9092` for IPv6; the port may be left out. Raises
    `ConfigError`."""
    texts = bootstrap.split(",") if isinstance(bootstrap, str) else list(bootstrap)
    addresses = []
    for text in (t.strip() for t in texts):
        if not text:
            continue
        host, colon, port = text.rpartition(":")
        if not colon or (text.startswith("[") and text.endswith("]")):
            host, port = text, "9092"
        if not host or not port.isdecimal() or not 0 < int(port) < 65536 or (":" in host and not host.startswith("[")):
            raise ConfigError(f"{text!r} is no HOST:PORT")
        addresses.append(Address(host.strip("[]"), int(port)))
    if not addresses:
        raise ConfigError("no bootstrap server given: HOST:PORT, or several with commas between")
    return addresses
