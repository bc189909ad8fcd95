"""The log folders that the brokers of a cluster report for their replicas, recorded by the controller (KIP-858).

A broker reports a replica once the replica's folder is durable. So a replica whose log folder the metadata knows has
been made, and if its folder is missing later, data is lost. `assigned` and `need_election`
are pure.
"""

import uuid
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from moldau.cluster.controlling.change_queue import ChangeQueue
from moldau.cluster.state import layout
from moldau.cluster.state.image import NO_LEADER, Image, PartitionImage, TopicImage
from moldau.cluster.state.metadata_cache import MetadataCache
from moldau.errors import ErrorCode, KafkaError

TOPICS_AT_ONCE = 500
"""The most topics of one change."""


class InDirectory(NamedTuple):
    """A partition that is in the log folder with this id."""

    topic_id: uuid.UUID
    number: int
    directory: str


class AssignedDirectories:
    """`metadata` and `queue` are the controller's."""

    def __init__(self, metadata: MetadataCache, queue: ChangeQueue):
        self._metadata = metadata
        self._queue = queue

    async def record(self, broker_id: int, broker_epoch: int, placed: Sequence[InDirectory]) -> list[ErrorCode]:
        """Record where a broker has these partitions; returns the outcome for each. Raises
        `KafkaError(STALE_BROKER_EPOCH)` if the broker has registered again since, and what `ChangeQueue.commit`
        raises."""
        errors: list[ErrorCode] = []
        for batch in _batches(placed):
            errors += await self._queue.run(partial(self._record, broker_id, broker_epoch, batch))
        return errors

    async def _record(self, broker_id: int, broker_epoch: int, placed: Sequence[InDirectory]) -> list[ErrorCode]:
        image = self._metadata.image
        broker = image.brokers.get(broker_id)
        if broker is None or broker.epoch != broker_epoch:
            raise KafkaError(ErrorCode.STALE_BROKER_EPOCH)
        changed, errors = await self._queue.decided(len(placed), lambda: assigned(image, broker_id, placed))
        epoch = image.controller_epoch
        await self._queue.commit(
            [step for topic in changed for step in layout.topic_changed(image.topics[topic.name], topic, epoch)]
        )
        return errors


def assigned(image: Image, broker_id: int, placed: Sequence[InDirectory]) -> tuple[list[TopicImage], list[ErrorCode]]:
    """The topics that change when a broker has these partitions in these log folders, and the outcome for each."""
    parts: dict[uuid.UUID, list[PartitionImage]] = {}
    errors = []
    for one in placed:
        topic = image.topics_by_id.get(one.topic_id)
        if topic is None:
            errors.append(ErrorCode.UNKNOWN_TOPIC_ID)
        elif not 0 <= one.number < len(topic.partitions):
            errors.append(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        elif broker_id not in topic.partitions[one.number].replicas:
            errors.append(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        else:
            own = parts.setdefault(one.topic_id, list(topic.partitions))
            own[one.number] = own[one.number].with_directory(broker_id, one.directory)._replace(made=True)
            errors.append(ErrorCode.NONE)
    topics = [image.topics_by_id[topic_id]._replace(partitions=tuple(own)) for topic_id, own in parts.items()]
    return [topic for topic in topics if topic != image.topics[topic.name]], errors


def need_election(image: Image, broker_id: int) -> bool:
    """Whether a partition of this broker has no leader although the broker serves its log folder, or is led by the
    broker from a log folder that it does not serve. (The first may stay so.)"""
    broker = image.brokers.get(broker_id)
    return broker is not None and any(
        part.leader in (broker_id, NO_LEADER)
        and broker_id in part.replicas
        and (part.leader == broker_id) != broker.serves(part.directory_of(broker_id))
        for topic in image.topics.values()
        for part in topic.partitions
    )


def _batches(placed: Sequence[InDirectory]) -> Iterator[list[InDirectory]]:
    batch: list[InDirectory] = []
    topic_ids: set[uuid.UUID] = set()
    for one in placed:
        if one.topic_id not in topic_ids and len(topic_ids) == TOPICS_AT_ONCE:
            yield batch
            batch, topic_ids = [], set()
        topic_ids.add(one.topic_id)
        batch.append(one)
    if batch:
        yield batch
