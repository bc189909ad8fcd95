"""MirrorAppend (key 30010, ours), version 0: batches of another cluster for topics that mirror its topics.

Each partition is answered once its batches are committed, with where its log then starts and ends. A sender that is
wrong about the log's end hears it with OFFSET_OUT_OF_RANGE, and goes on from there. A topic that is not a mirror of the
named source refuses (INVALID_REQUEST). REQUEST_TIMED_OUT after `timeout_ms`: the batches are in the log, and may or may
not stay. The sender needs CLUSTER_ACTION, or ALTER on the topic: it writes markers and other producers' batches.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import NamedTuple

from moldau.errors import ErrorCode, KafkaError
from moldau.protocol.messages.mirror_append import (
    MirrorAppendRequest,
    MirrorAppendResponse,
    MirrorPartitionResult,
    MirrorTopicResult,
)
from moldau.protocol.primitives import Detached
from moldau.replication.mirroring.appends import MirroredBatches, append_mirrored, mirrored
from moldau.replication.replica import Replica
from moldau.replication.replicas import Replicas
from moldau.requests.access import ALTER_TOPIC, CLUSTER_ACTION
from moldau.requests.session import Call
from moldau.runtime import Runtime


class _Asked(NamedTuple):
    """A partition of the request, with its records in memory of their own."""

    topic: str
    partition: int
    is_allowed: bool
    batches: MirroredBatches
    result: MirrorPartitionResult


class MirrorAppend:
    def __init__(self, replicas: Replicas, runtime: Runtime):
        self._replicas = replicas
        self._runtime = runtime

    def __call__(self, request: MirrorAppendRequest, call: Call) -> Awaitable[MirrorAppendResponse]:
        response = MirrorAppendResponse()
        asked: list[_Asked] = []
        for topic in request.topics:
            result = MirrorTopicResult(name=topic.name)
            response.topics.append(result)
            is_allowed = call.may(CLUSTER_ACTION, logged=False) or call.may(ALTER_TOPIC, topic.name)
            for part in topic.partitions:
                told = MirrorPartitionResult(index=part.index)
                result.partitions.append(told)
                assert not isinstance(part.records, Detached), "a request that was read has its records"
                batches = MirroredBatches(
                    topic.source,
                    part.current_leader_epoch,
                    part.log_end_offset,
                    part.source_start_offset,
                    bytearray(part.records or b""),
                )
                asked.append(_Asked(topic.name, part.index, is_allowed, batches, told))
        return self._answered(asked, request.timeout_ms / 1000, response)

    async def _answered(
        self, asked: Sequence[_Asked], seconds: float, response: MirrorAppendResponse
    ) -> MirrorAppendResponse:
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + seconds
        appended = [await self._append(one) for one in asked]
        for one, replica in zip(asked, appended, strict=True):
            if replica is not None:
                try:
                    offsets = await mirrored(replica, deadline_s - loop.time())
                    one.result.log_start_offset, one.result.log_end_offset = offsets
                except KafkaError as error:
                    _refuse(one.result, error)
        return response

    async def _append(self, one: _Asked) -> Replica | None:
        """The partition that has the batches now; None if they were refused."""
        try:
            if not one.is_allowed:
                raise KafkaError(ALTER_TOPIC.denied)
            replica = self._replicas.find(one.topic, None, one.partition)
            if replica is None:
                raise KafkaError(self._replicas.absence(one.topic, None, one.partition))
            try:
                await append_mirrored(replica, one.batches, self._runtime.clock.now_ms())
            except KafkaError as error:
                if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                    one.result.log_start_offset = replica.log_start_offset
                    one.result.log_end_offset = replica.log.log_end_offset
                raise
            return replica
        except KafkaError as error:
            _refuse(one.result, error)
            return None


def _refuse(result: MirrorPartitionResult, error: KafkaError) -> None:
    result.error_code = error.code
    result.error_message = error.message
