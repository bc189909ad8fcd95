"""The position of a stream in Spark's checkpoint: `{topic: {partition: next offset}, "topic ids": {topic: id}}`.

The ids tell that a topic was deleted and created again, whatever offsets it has reached since. Checkpoints of earlier
versions have no ids, nor have brokers before Kafka 2.8: nothing is known of these topics then. Pure.
"""

import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple

from moldau.names import TopicPartition, long_id, short_id
from moldau.pipeline.edges import TOPIC_IDS
from moldau.pipeline.positions import Offsets, Subscribed


class StreamOffset(NamedTuple):
    """The next offset of each partition, and the ids of their topics as far as they are known."""

    offsets: Offsets
    topic_ids: Mapping[str, uuid.UUID]

    def of_other_topics(self, topic_ids: Mapping[str, uuid.UUID]) -> set[str]:
        """The topics that were created again: they have another id here."""
        return {topic for topic, known in self.topic_ids.items() if topic_ids.get(topic, known) != known}

    def without(self, topics: set[str]) -> "StreamOffset":
        return StreamOffset(
            {tp: at for tp, at in self.offsets.items() if tp.topic not in topics},
            {topic: known for topic, known in self.topic_ids.items() if topic not in topics},
        )

    def to_tree(self) -> dict[str, Any]:
        """As JSON: readable in the checkpoint, and valid as startingOffsets."""
        tree: dict[str, Any] = {}
        for tp in sorted(self.offsets):
            tree.setdefault(tp.topic, {})[str(tp.partition)] = self.offsets[tp]
        ids = {topic: short_id(self.topic_ids[topic]) for topic in tree if topic in self.topic_ids}
        return {**tree, TOPIC_IDS: ids} if ids else tree


def from_tree(tree: Mapping[str, Any]) -> StreamOffset:
    offsets = {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partitions in tree.items()
        if topic != TOPIC_IDS
        for partition, offset in partitions.items()
    }
    return StreamOffset(offsets, {topic: long_id(text) for topic, text in tree.get(TOPIC_IDS, {}).items()})


def ids_of(partitions: Subscribed) -> dict[str, uuid.UUID]:
    """The ids of the topics of these partitions."""
    return {tp.topic: topic_id for tp, topic_id in partitions.items() if topic_id is not None}
