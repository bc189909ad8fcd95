"""DeleteRecords (key 21), versions 0 to 2: move the start of a log forward.

Offset -1 means the high watermark. An offset above the high watermark is out of range. A topic that is only compacted
refuses (POLICY_VIOLATION), because its older records are part of its state. Internal topics are refused, and mirrors
(INVALID_REQUEST), which start where their source does.

A partition is answered when its low watermark, the least log start of the replicas whose brokers are up, is at the
offset: REQUEST_TIMED_OUT after `timeout_ms`, with the low watermark so far (KIP-107). Readers do not see the records
any more all the same. Topics whose records the client may not delete are TOPIC_AUTHORIZATION_FAILED, whether they exist
or not.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import NamedTuple

from moldau.cluster.state.image import Image
from moldau.errors import ErrorCode, KafkaError
from moldau.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from moldau.replication.replica import Replica
from moldau.replication.replicas import Replicas
from moldau.replication.waiting import Wait
from moldau.requests.access import DELETE_TOPIC
from moldau.requests.session import Call
from moldau.turns import Steps, Turns

EVERYTHING = -1
UNKNOWN = -1


class AwaitedDeletion(NamedTuple):
    """A partition whose leader's log begins at `offset` or behind it, while another replica's may still have records
    below."""

    topic: str
    offset: int
    result: DeleteRecordsPartitionResult


class DeleteRecords:
    """`image` tells which brokers are up."""

    def __init__(self, replicas: Replicas, image: Callable[[], Image], turns: Turns):
        self._replicas = replicas
        self._image = image
        self._turns = turns

    async def __call__(self, request: DeleteRecordsRequest, call: Call) -> DeleteRecordsResponse:
        response, waiting = await self._turns.run(self._delete(request, call))
        loop = asyncio.get_running_loop()
        deadline = loop.time() + request.timeout_ms / 1000
        while waiting and loop.time() < deadline:
            led = [self._replicas.find(one.topic, None, one.result.partition_index) for one in waiting]
            places = [replica.waiters for replica in led if replica is not None]
            await Wait.until_deleted(deadline - loop.time(), places, loop).done
            waiting = await self._turns.run(self._left(waiting))
        return response

    def _delete(
        self, request: DeleteRecordsRequest, call: Call
    ) -> Steps[tuple[DeleteRecordsResponse, list[AwaitedDeletion]]]:
        asked: dict[str, dict[int, DeleteRecordsPartition]] = {}
        for topic in request.topics:  # if a request names a partition twice, the last offset counts
            asked.setdefault(topic.name, {}).update((part.partition_index, part) for part in topic.partitions)
            yield
        response = DeleteRecordsResponse()
        waiting: list[AwaitedDeletion] = []
        alive = self._alive()
        for name, parts in asked.items():
            topic_result = DeleteRecordsTopicResult(name=name)
            is_allowed = call.may(DELETE_TOPIC, name)
            for part in parts.values():
                result = DeleteRecordsPartitionResult(partition_index=part.partition_index, low_watermark=UNKNOWN)
                topic_result.partitions.append(result)
                try:
                    if not is_allowed:
                        raise KafkaError(DELETE_TOPIC.denied)
                    replica = self._led(name, part.partition_index)
                    offset = replica.high_watermark if part.offset == EVERYTHING else part.offset
                    replica.delete_records_before(offset)
                except KafkaError as error:
                    result.error_code = error.code
                else:
                    one = AwaitedDeletion(name, offset, result)
                    if not self._is_settled(one, alive):
                        waiting.append(one)
                yield
            response.topics.append(topic_result)
            yield
        return response, waiting

    def _left(self, waiting: list[AwaitedDeletion]) -> Steps[list[AwaitedDeletion]]:
        """Those that must wait on."""
        alive = self._alive()
        left: list[AwaitedDeletion] = []
        for one in waiting:
            if not self._is_settled(one, alive):
                left.append(one)
            yield
        return left

    def _is_settled(self, one: AwaitedDeletion, alive: Mapping[int, int]) -> bool:
        """Note what the partition's result is by now; whether it is final: no replica has a record below the offset, or
        there is an error."""
        result = one.result
        try:
            low_watermark = self._led(one.topic, result.partition_index).low_watermark(alive)
        except KafkaError as error:
            result.error_code, result.low_watermark = error.code, UNKNOWN
            return True
        is_reached = low_watermark >= one.offset
        result.error_code = ErrorCode.NONE if is_reached else ErrorCode.REQUEST_TIMED_OUT
        result.low_watermark = low_watermark
        return is_reached

    def _led(self, topic: str, index: int) -> Replica:
        """Raises `KafkaError`."""
        replica = self._replicas.find(topic, None, index)
        if replica is None:
            raise KafkaError(self._replicas.absence(topic, None, index))
        if replica.internal:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        if replica.mirrors:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if replica.config.compacts and not replica.config.deletes:
            raise KafkaError(ErrorCode.POLICY_VIOLATION)
        return replica

    def _alive(self) -> dict[int, int]:
        return {broker.id: broker.epoch for broker in self._image().brokers.values()}
