"""An `Image` of the cluster at one moment: complete and immutable, so that all parts of a broker can share it.

A change makes a new image, which shares with the one before all that did not change; code that holds an image never
sees half a change. An image knows no store, file or time. Names and numbers are Kafka's: a partition without a leader
has leader -1.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from moldau.cluster.state.acls import AclPattern, Acls, Entries
from moldau.cluster.state.quotas import QuotaOwner, Quotas, QuotaValues
from moldau.names import TopicPartition

NO_LEADER = -1


class Endpoint(NamedTuple):
    """A listener of a broker: its name, its protocol (Kafka's name, such as PLAINTEXT), and where clients connect."""

    name: str
    protocol: str
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.name}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


class BrokerImage(NamedTuple):
    """One broker that is up. `endpoints` are its listeners in the order of its settings, at least one; `directories`
    are the ids of the log folders it serves, empty if they are not registered. `epoch` is another one after every
    registration, -1 if it is not known. `leaving`: it is about to stop, and hands over what it leads."""

    id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    directories: tuple[str, ...] = ()
    epoch: int = -1
    leaving: bool = False

    def endpoint(self, name: str) -> Endpoint | None:
        """The listener of that name, None if this broker has no such listener."""
        return next((endpoint for endpoint in self.endpoints if endpoint.name == name), None)

    def serves(self, directory: str) -> bool:
        """Whether this broker serves that log folder; True if its folders are not registered."""
        return not directory or not self.directories or directory in self.directories


class PartitionImage(NamedTuple):
    """The replicas of a partition. `isr` is a subset of `replicas`, whose first is the preferred leader; `directories`
    has the id of each replica's log folder where it is known (KIP-858). `made`: the partition's folder was created and
    is durable, so a missing folder means lost data; before that it has yet to be created.

    `partition_epoch` is another one after every change of leader, ISR or ELR. `elr` are the eligible leaders (KIP-966):
    replicas out of the ISR that have everything below the high watermark. While there are any, the ISR is below
    `min.insync.replicas` as the controller knows it, and the leader must not move the high watermark. `last_elr` are
    replicas that were in ISR or ELR and may have lost records since.

    While the partition is being reassigned (KIP-455, see `reassignment`), `replicas` has its target and its original
    replicas: `adding_replicas` are not among the originals, `removing_replicas` not in the target."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    directories: tuple[str, ...] = ()
    made: bool = True
    partition_epoch: int = 0
    elr: tuple[int, ...] = ()
    last_elr: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()

    def directory_of(self, broker: int) -> str:
        """The id of the log folder of this broker's replica; empty if it is not known."""
        at = self.replicas.index(broker) if broker in self.replicas else len(self.directories)
        return self.directories[at] if at < len(self.directories) else ""

    def with_replicas(self, replicas: tuple[int, ...]) -> "PartitionImage":
        """The partition with these replicas, each in the log folder where it is."""
        directories = tuple(self.directory_of(broker) for broker in replicas)
        return self._replace(replicas=replicas, directories=directories if any(directories) else ())

    def with_directory(self, broker: int, directory: str) -> "PartitionImage":
        """The partition with that broker's replica in that log folder."""
        known = {replica: self.directory_of(replica) for replica in self.replicas} | {broker: directory}
        return self._replace(directories=tuple(known[replica] for replica in self.replicas))


class TopicImage(NamedTuple):
    """A topic: its partitions by number from 0, and the settings that override those of the broker."""

    name: str
    id: uuid.UUID
    partitions: tuple[PartitionImage, ...]
    overrides: Mapping[str, str]

    @property
    def holders(self) -> dict[int, set[str]]:
        """The brokers that have replicas, each with the ids of the log folders in which these are, where known."""
        directories_of: dict[int, set[str]] = {}
        for part in self.partitions:
            for broker in part.replicas:
                directory = part.directory_of(broker)
                directories_of.setdefault(broker, set()).update({directory} if directory else ())
        return directories_of


@dataclass(frozen=True)
class Image:
    """The whole cluster. `deleted`: id -> name of deleted topics whose data may still be on some disk."""

    cluster_id: str
    controller_id: int = NO_LEADER
    brokers: Mapping[int, BrokerImage] = field(default_factory=dict)
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    topics_by_id: Mapping[uuid.UUID, TopicImage] = field(default_factory=dict)
    broker_overrides: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    group_overrides: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    deleted: Mapping[uuid.UUID, str] = field(default_factory=dict)
    controller_epoch: int = 0
    acls: Acls = field(default_factory=dict)
    quotas: Quotas = field(default_factory=dict)
    client_metrics: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By the name of a subscription to metrics of clients (KIP-714): its settings."""

    @property
    def leaving(self) -> frozenset[int]:
        """The brokers that are about to stop."""
        return frozenset(broker.id for broker in self.brokers.values() if broker.leaving)

    def topic(self, name: str | None, topic_id: uuid.UUID | None = None) -> TopicImage | None:
        """The topic of that name; if the name is empty or None, of that id."""
        return self.topics.get(name) if name else self.topics_by_id.get(topic_id) if topic_id else None

    def partition(self, tp: TopicPartition) -> PartitionImage | None:
        topic = self.topics.get(tp.topic)
        return topic.partitions[tp.partition] if topic and 0 <= tp.partition < len(topic.partitions) else None

    def reachable(self, listener: str) -> list[tuple[BrokerImage, Endpoint]]:
        """The brokers that have a listener of that name, each with its address there."""
        endpoints = ((broker, broker.endpoint(listener)) for broker in self.brokers.values())
        return [(broker, endpoint) for broker, endpoint in endpoints if endpoint is not None]

    def with_groups(self, changed: Mapping[str, Mapping[str, str] | None]) -> "Image":
        """The image with other settings for these groups; None removes a group's settings."""
        groups = {**self.group_overrides, **changed}
        return replace(self, group_overrides={name: own for name, own in groups.items() if own is not None})

    def with_client_metrics(self, changed: Mapping[str, Mapping[str, str] | None]) -> "Image":
        """The image with other settings for these subscriptions to metrics of clients; None removes one."""
        subscriptions = {**self.client_metrics, **changed}
        return replace(self, client_metrics={name: own for name, own in subscriptions.items() if own is not None})

    def with_acls(self, changed: Mapping[AclPattern, Entries | None]) -> "Image":
        """The image with other entries for these patterns; None or no entries remove a pattern."""
        acls = {**self.acls, **changed}
        return replace(self, acls={pattern: entries for pattern, entries in acls.items() if entries})

    def with_quotas(self, changed: Mapping[QuotaOwner, QuotaValues | None]) -> "Image":
        """The image with other quotas for these entities; None, or no value, removes those of an entity."""
        quotas = {**self.quotas, **changed}
        return replace(self, quotas={entity: values for entity, values in quotas.items() if values})

    def with_topics(self, changed: Mapping[str, TopicImage | None]) -> "Image":
        """The image with these topics created or replaced; None deletes a topic."""
        topics, by_id = dict(self.topics), dict(self.topics_by_id)
        for name, topic in changed.items():
            old = topics.pop(name, None) if topic is None else topics.get(name)
            if old is not None:
                by_id.pop(old.id, None)
            if topic is not None:
                topics[name] = topic
                by_id[topic.id] = topic
        return replace(self, topics=topics, topics_by_id=by_id)
