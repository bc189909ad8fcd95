"""The position of a stream in Spark's checkpoint: `{topic: {partition: next offset}, "topic ids": {topic: id}, "leader
epochs": {topic: {partition: epoch}}}`.

The ids tell that a topic was deleted and created again, whatever offsets it has reached since. The epochs are those of
the records before the offsets (KIP-320): they tell that the log was truncated and others were written in their place.
Checkpoints of earlier versions have neither, nor have old brokers: nothing is known of these topics then. Pure.
"""

import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple

from moldau.names import OffsetAndMetadata, TopicPartition, long_id, short_id
from moldau.pipeline.edges import LEADER_EPOCHS, TOPIC_IDS
from moldau.pipeline.positions import Offsets, Subscribed

NO_EPOCHS: Mapping[TopicPartition, int] = {}


class StreamOffset(NamedTuple):
    """The next offset of each partition, the ids of their topics and the epochs of the records before, as far as they
    are known."""

    offsets: Offsets
    topic_ids: Mapping[str, uuid.UUID]
    epochs: Mapping[TopicPartition, int] = NO_EPOCHS

    @property
    def positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """As offsets of a group."""
        return {tp: OffsetAndMetadata(at, leader_epoch=self.epochs.get(tp)) for tp, at in self.offsets.items()}

    @property
    def comparable(self) -> dict[TopicPartition, tuple[int, int]]:
        """Offset and epoch of each partition that has both."""
        return {tp: (self.offsets[tp], epoch) for tp, epoch in self.epochs.items() if tp in self.offsets}

    def of_other_topics(self, topic_ids: Mapping[str, uuid.UUID]) -> set[str]:
        """The topics that were created again: they have another id here."""
        return {topic for topic, known in self.topic_ids.items() if topic_ids.get(topic, known) != known}

    def without(self, topics: set[str]) -> "StreamOffset":
        return StreamOffset(
            {tp: at for tp, at in self.offsets.items() if tp.topic not in topics},
            {topic: known for topic, known in self.topic_ids.items() if topic not in topics},
            {tp: epoch for tp, epoch in self.epochs.items() if tp.topic not in topics},
        )

    def to_tree(self) -> dict[str, Any]:
        """As JSON: readable in the checkpoint, and valid as startingOffsets."""
        tree = _by_topic(self.offsets)
        ids = {topic: short_id(self.topic_ids[topic]) for topic in tree if topic in self.topic_ids}
        epochs = _by_topic({tp: epoch for tp, epoch in self.epochs.items() if tp in self.offsets})
        return tree | ({TOPIC_IDS: ids} if ids else {}) | ({LEADER_EPOCHS: epochs} if epochs else {})


def from_tree(tree: Mapping[str, Any]) -> StreamOffset:
    offsets = {topic: partitions for topic, partitions in tree.items() if topic not in (TOPIC_IDS, LEADER_EPOCHS)}
    ids = {topic: long_id(text) for topic, text in tree.get(TOPIC_IDS, {}).items()}
    return StreamOffset(_by_partition(offsets), ids, _by_partition(tree.get(LEADER_EPOCHS, {})))


def ids_of(partitions: Subscribed) -> dict[str, uuid.UUID]:
    """The ids of the topics of these partitions."""
    return {tp.topic: topic_id for tp, topic_id in partitions.items() if topic_id is not None}


def _by_topic(numbers: Mapping[TopicPartition, int]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for tp in sorted(numbers):
        tree.setdefault(tp.topic, {})[str(tp.partition)] = numbers[tp]
    return tree


def _by_partition(tree: Mapping[str, Any]) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic, int(partition)): int(number)
        for topic, partitions in tree.items()
        for partition, number in partitions.items()
    }
