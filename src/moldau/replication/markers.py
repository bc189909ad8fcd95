"""What ends a transaction is written here: a marker into each of its partitions that this broker leads.

The group coordinator writes those of the offsets topic itself, in the order of its own records. A partition whose topic
is gone has nothing to end (UNKNOWN_TOPIC_OR_PARTITION); one that is away or led elsewhere gets its marker later.
"""

from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import NamedTuple

from moldau.cluster.image import Image
from moldau.errors import ErrorCode, KafkaError
from moldau.names import OFFSETS_TOPIC, TopicPartition
from moldau.records.batch import Marker
from moldau.replication.replicas import Replicas
from moldau.runtime import Runtime
from moldau.turns import in_turns


class Markers(NamedTuple):
    """How a producer's transaction ends, and what is to be written for that into its partitions."""

    producer_id: int
    epoch: int
    coordinator_epoch: int
    commits: bool
    transaction_version: int
    partitions: tuple[TopicPartition, ...]


OF_A_TURN = 100
"""Markers that are written before others have a turn: each is an append."""
EndOffsets = Callable[[int, Markers], ErrorCode | Awaitable[ErrorCode]]
"""Ends a transaction in that partition of the offsets topic."""


class MarkerWriter:
    """`end_offsets` is the group coordinator's part."""

    def __init__(self, replicas: Replicas, image: Callable[[], Image], end_offsets: EndOffsets, runtime: Runtime):
        self._replicas = replicas
        self._image = image
        self._end_offsets = end_offsets
        self._runtime = runtime

    async def __call__(self, markers: Markers) -> Mapping[TopicPartition, ErrorCode]:
        """How it went for each partition."""
        return {tp: await self._write(tp, markers) async for tp in in_turns(markers.partitions, OF_A_TURN)}

    async def _write(self, tp: TopicPartition, markers: Markers) -> ErrorCode:
        if self._image().partition(tp) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        try:
            if tp.topic == OFFSETS_TOPIC:
                answer = self._end_offsets(tp.partition, markers)
                return await answer if isawaitable(answer) else answer
            replica = self._replicas.find(tp.topic, None, tp.partition)
            if replica is None:
                return ErrorCode.KAFKA_STORAGE_ERROR
            if not replica.leadership.leads:
                return ErrorCode.NOT_LEADER_OR_FOLLOWER
            marker = Marker(markers.commits, markers.coordinator_epoch)
            now_ms = self._runtime.clock.now_ms()
            appended = await replica.append_marker(
                markers.producer_id, markers.epoch, marker, markers.transaction_version, now_ms
            )
            return appended.error
        except KafkaError as error:
            return error.code
