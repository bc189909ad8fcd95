"""A picture of the cluster at one moment: immutable, complete, and cheap to hand to everyone.

Whoever holds an `Image` sees one moment and never a mixture; a change is a new image that shares what did not change.
It knows nothing of stores, files and time. Names and numbers are Kafka's: a partition without a leader has leader -1.
"""

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from moldau.names import TopicPartition

NO_LEADER = -1


class BrokerImage(NamedTuple):
    """One broker that is up, and where clients reach it. `directories` are the ids of the log folders it serves; empty
    if it does not say."""

    id: int
    host: str
    port: int
    rack: str | None = None
    directories: tuple[str, ...] = ()

    def serves(self, directory: str) -> bool:
        """Whether what is in that log folder is served; True where nothing is known."""
        return not directory or not self.directories or directory in self.directories


class PartitionImage(NamedTuple):
    """Who has a partition. `isr` is a part of `replicas`, whose first is the preferred leader; `directories` are the
    ids of the log folders that each replica is in, as far as they are known (KIP-858). `made`: its folder has been made
    and lasts, so that a missing folder is a loss; until then a missing folder is one that is still to be made."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    directories: tuple[str, ...] = ()
    made: bool = True

    def directory_of(self, broker: int) -> str:
        """The id of the log folder that this broker has it in; empty if that is not known."""
        at = self.replicas.index(broker) if broker in self.replicas else len(self.directories)
        return self.directories[at] if at < len(self.directories) else ""

    def with_directory(self, broker: int, directory: str) -> "PartitionImage":
        """The same, with that broker's replica in that log folder."""
        known = {replica: self.directory_of(replica) for replica in self.replicas} | {broker: directory}
        return self._replace(directories=tuple(known[replica] for replica in self.replicas))


class TopicImage(NamedTuple):
    """A topic: its partitions by number from 0, and the settings that are its own."""

    name: str
    id: uuid.UUID
    partitions: tuple[PartitionImage, ...]
    overrides: Mapping[str, str]


@dataclass(frozen=True)
class Image:
    """The whole cluster. `deleted` holds topics that are gone from the books and may still be on some disk: id ->
    name."""

    cluster_id: str
    controller_id: int = NO_LEADER
    brokers: Mapping[int, BrokerImage] = field(default_factory=dict)
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    topics_by_id: Mapping[uuid.UUID, TopicImage] = field(default_factory=dict)
    broker_overrides: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    group_overrides: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    deleted: Mapping[uuid.UUID, str] = field(default_factory=dict)

    def topic(self, name: str | None, topic_id: uuid.UUID | None = None) -> TopicImage | None:
        """By name, or by id where there is no name."""
        return self.topics.get(name) if name else self.topics_by_id.get(topic_id) if topic_id else None

    def partition(self, tp: TopicPartition) -> PartitionImage | None:
        topic = self.topics.get(tp.topic)
        return topic.partitions[tp.partition] if topic and 0 <= tp.partition < len(topic.partitions) else None

    def hosted_by(self, broker_id: int) -> Iterator[tuple[TopicImage, int]]:
        """Every (topic, partition number) that has a replica on that broker."""
        for topic in self.topics.values():
            for number, partition in enumerate(topic.partitions):
                if broker_id in partition.replicas:
                    yield topic, number

    def with_groups(self, changed: Mapping[str, Mapping[str, str] | None]) -> "Image":
        """The image after some groups got other settings of their own, or (None) none any more."""
        groups = {**self.group_overrides, **changed}
        return replace(self, group_overrides={name: own for name, own in groups.items() if own is not None})

    def with_topics(self, changed: Mapping[str, TopicImage | None]) -> "Image":
        """The image after some topics were made, changed, or (None) deleted."""
        topics, by_id = dict(self.topics), dict(self.topics_by_id)
        for name, topic in changed.items():
            old = topics.pop(name, None) if topic is None else topics.get(name)
            if old is not None:
                by_id.pop(old.id, None)
            if topic is not None:
                topics[name] = topic
                by_id[topic.id] = topic
        return replace(self, topics=topics, topics_by_id=by_id)
