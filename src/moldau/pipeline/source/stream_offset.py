"""The position of a stream in Spark's checkpoint: `{topic: {partition: next offset}, "topic ids": {topic: id}, "leader
epochs": {topic: {partition: epoch}}, "starting offsets": {topic: {partition: offset}}}`.

The ids tell that a topic was deleted and created again, whatever offsets it has reached since. The epochs are those of
the records before the offsets (KIP-320): they tell that the log was truncated and others were written in their place.
The end of a query's first micro-batch also has the offsets at which that batch starts: Spark does not keep them, and
asks for the initial offset anew where a query was killed before that batch was committed. Checkpoints of earlier
versions have none of these, and old brokers have neither ids nor epochs: nothing is known of these topics then. Pure.
"""

import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple

from moldau.names import OffsetAndMetadata, TopicPartition, long_id, short_id
from moldau.pipeline.edges import BESIDE_TOPICS, LEADER_EPOCHS, STARTING_OFFSETS, TOPIC_IDS
from moldau.pipeline.positions import Offsets, Subscribed

NONE: Mapping[TopicPartition, int] = {}


class StreamOffset(NamedTuple):
    """The next offset of each partition, the ids of their topics and the epochs of the records before, as far as they
    are known; at the end of the first micro-batch also the offsets at which it starts."""

    offsets: Offsets
    topic_ids: Mapping[str, uuid.UUID]
    epochs: Mapping[TopicPartition, int] = NONE
    starting: Mapping[TopicPartition, int] = NONE

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
        beside = {TOPIC_IDS: ids, LEADER_EPOCHS: epochs, STARTING_OFFSETS: _by_topic(self.starting)}
        return tree | {name: known for name, known in beside.items() if known}


def from_tree(tree: Mapping[str, Any]) -> StreamOffset:
    offsets = {topic: partitions for topic, partitions in tree.items() if topic not in BESIDE_TOPICS}
    ids = {topic: long_id(text) for topic, text in tree.get(TOPIC_IDS, {}).items()}
    epochs, starting = (_by_partition(tree.get(name, {})) for name in (LEADER_EPOCHS, STARTING_OFFSETS))
    return StreamOffset(_by_partition(offsets), ids, epochs, starting)


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
