"""Writes the markers that end a transaction: one into each of its partitions that this broker leads. A marker counts
once it is committed.

A mirror gets none, and its coordinator hears that it is done. The group coordinator writes the markers of the offsets
topic, in the order of its own records. A deleted topic needs no marker (UNKNOWN_TOPIC_OR_PARTITION); a partition that
is offline or has another leader gets its marker later.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable

from moldau.cluster.state.image import Image
from moldau.errors import ErrorCode, KafkaError
from moldau.log.appended import Appended
from moldau.names import OFFSETS_TOPIC, TopicPartition, TransactionMarkers
from moldau.records.batch import Marker
from moldau.replication.own_appends import append_marker, committed
from moldau.replication.replica import Replica
from moldau.replication.replicas import Replicas
from moldau.runtime import Runtime
from moldau.turns import in_turns

OF_A_TURN = 100
"""Markers written in one turn of the loop: each is an append."""
COMMIT_WAIT_S = 10.0
"""How long markers wait until they are committed; those that are not are written again when their coordinator asks."""
EndOffsets = Callable[[int, TransactionMarkers], ErrorCode | Awaitable[ErrorCode]]
"""Writes the marker of a transaction into that partition of the offsets topic."""


class MarkerWriter:
    """`end_offsets` is the group coordinator."""

    def __init__(self, replicas: Replicas, image: Callable[[], Image], end_offsets: EndOffsets, runtime: Runtime):
        self._replicas = replicas
        self._image = image
        self._end_offsets = end_offsets
        self._runtime = runtime

    async def __call__(self, markers: TransactionMarkers) -> Mapping[TopicPartition, ErrorCode]:
        """The error code of each partition."""
        written = {tp: await self._write(tp, markers) async for tp in in_turns(markers.partitions, OF_A_TURN)}
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + COMMIT_WAIT_S
        errors: dict[TopicPartition, ErrorCode] = {}
        for tp, outcome in written.items():
            try:
                if not isinstance(outcome, ErrorCode):
                    await committed(*outcome, deadline_s - loop.time())
                    outcome = ErrorCode.NONE
                errors[tp] = outcome
            except KafkaError as error:
                errors[tp] = error.code
        return errors

    async def _write(self, tp: TopicPartition, markers: TransactionMarkers) -> ErrorCode | tuple[Replica, Appended]:
        """NONE if the marker is committed, an error, or the marker that is appended and not yet committed."""
        if self._image().partition(tp) is None:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        try:
            if tp.topic == OFFSETS_TOPIC:
                answer = self._end_offsets(tp.partition, markers)
                return await answer if isawaitable(answer) else answer
            replica = self._replicas.find(tp.topic, None, tp.partition)
            if replica is None:
                return ErrorCode.KAFKA_STORAGE_ERROR
            # Markers come from its source. Those of this cluster are of transactions that began before it was a mirror.
            if replica.mirrors:
                return ErrorCode.NONE
            marker = Marker(markers.commits, markers.coordinator_epoch)
            now_ms = self._runtime.clock.now_ms()
            appended = await append_marker(
                replica, markers.producer_id, markers.epoch, marker, markers.transaction_version, now_ms
            )
            return appended.error or (replica, appended)
        except KafkaError as error:
            return error.code
