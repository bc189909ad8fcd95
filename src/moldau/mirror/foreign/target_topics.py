"""Reading and making the topics in the target that a mirror keeps for itself: positions, offset syncs, checkpoints."""

from collections.abc import AsyncIterator
from typing import Final

from moldau.client.consuming.async_consumer import AsyncConsumer
from moldau.client.consuming.fetched.record import Record
from moldau.client.epoch_ends import FetchPosition
from moldau.errors import ConfigError, ErrorCode, KafkaError
from moldau.mirror.ends import CLIENT_ID, ClusterEnd
from moldau.mirror.foreign.copy_positions import CopyPosition, lane_of, read_position
from moldau.names import TopicPartition

COMPACTED: Final = {"cleanup.policy": "compact"}


def reader(end: ClusterEnd) -> AsyncConsumer:
    """A consumer for `records_from`, of committed records. Use it in `async with`."""
    return AsyncConsumer(end.brokers, client_id=CLIENT_ID, isolation_level="read_committed", enable_auto_commit=False)


async def records_from(consumer: AsyncConsumer, tp: TopicPartition, offset: int = 0) -> AsyncIterator[Record]:
    """The committed records of a partition from an offset on, up to what is the end now. Raises `KafkaError`."""
    log = consumer.log(tp.topic, tp.partition)
    end = await log.end()
    at = FetchPosition(tp, max(offset, await log.start()))
    while at.offset < end:
        for record in await log.piece(at, end):
            yield record


async def read_positions(
    consumer: AsyncConsumer, topic: str, lane: int, lanes: int, cluster: str
) -> dict[TopicPartition, CopyPosition]:
    """The position of each partition of the source that belongs to this lane. `cluster`: the source's id. Raises
    `KafkaError`, and `ConfigError` if the topic is not what a mirror of this cluster wrote."""
    positions: dict[TopicPartition, CopyPosition] = {}
    async for record in records_from(consumer, TopicPartition(topic, lane)):
        try:
            tp, at = read_position(record.key, record.value)
        except ValueError as wrong:
            raise ConfigError(
                f"{topic}-{lane} has {wrong} at offset {record.offset}: nothing but a mirror may write there"
            ) from None
        if lane_of(tp, lanes) != lane:
            raise ConfigError(
                f"{topic} has {lanes} partitions, and the position of {tp} is in partition {lane}: the topic once had "
                "another number of partitions, so a mirror cannot go on from it. Delete it and the mirrored topics to "
                "mirror them anew"
            )
        if at.cluster != cluster:
            raise ConfigError(
                f"{topic} has positions in the cluster {at.cluster}, and --from is the cluster {cluster}: give each "
                "source an alias of its own with --from-alias"
            )
        positions[tp] = at
    return positions


async def make_topic(end: ClusterEnd, name: str, partitions: int, replication_factor: int) -> None:
    """Make a compacted topic unless it exists. Raises `KafkaError`."""
    try:
        await end.admin.create_topic(
            name, partitions=partitions, replication_factor=replication_factor, configs=COMPACTED
        )
    except KafkaError as failure:
        if failure.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
            raise


async def check_compacted(end: ClusterEnd, name: str) -> None:
    """Raise `ConfigError` if a topic loses records by their age: a position that is gone would double records."""
    for entry in await end.admin.topic_configs(name):
        if entry.name == "cleanup.policy" and entry.value != "compact":
            raise ConfigError(f"{name} in the target has cleanup.policy={entry.value}: set it to compact")
