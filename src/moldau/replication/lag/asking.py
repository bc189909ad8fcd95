"""The lag in partitions of other leaders: what is asked of them, and what they answer."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from moldau.cluster.state.image import NO_LEADER, Image
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition
from moldau.protocol.apis import DESCRIBE_WAITING, Api
from moldau.protocol.messages.describe_waiting import (
    CommittedPartition,
    CommittedTopic,
    DescribeWaitingRequest,
    DescribeWaitingResponse,
    WaitingPartition,
)
from moldau.records.lag import NOT_KNOWN
from moldau.replication.lag.reading import UNKNOWN_LAG, PartitionLag

AT_ONCE: Final = 1000
"""The most partitions of one answer."""
TIMEOUT_MS: Final = 5000

Committed: TypeAlias = tuple[TopicPartition, int]
CallBroker: TypeAlias = Callable[[int, Api, Any, int], Awaitable[Any]]


def by_leader(image: Image, committed: Sequence[Committed]) -> dict[int, list[Committed]]:
    """Who has to be asked for what; partitions without a leader are left out."""
    wanted: dict[int, list[Committed]] = {}
    for tp, offset in committed:
        partition = image.partition(tp)
        if partition is not None and partition.leader != NO_LEADER:
            wanted.setdefault(partition.leader, []).append((tp, offset))
    return wanted


async def ask_leaders(
    call: CallBroker, image: Image, committed: Sequence[Committed]
) -> Mapping[Committed, PartitionLag]:
    """The lag of these committed offsets, from the leaders of their partitions; those that do not answer are left
    out."""
    found: dict[Committed, PartitionLag] = {}

    async def ask(leader: int, wanted: Sequence[Committed]) -> None:
        for first in range(0, len(wanted), AT_ONCE):
            some = wanted[first : first + AT_ONCE]
            try:
                answer = await call(leader, DESCRIBE_WAITING, request_for(leader, image, some), TIMEOUT_MS)
            except KafkaError:
                return
            found.update(zip(some, lags_in(answer), strict=False))

    await asyncio.gather(*(ask(leader, wanted) for leader, wanted in by_leader(image, committed).items()))
    return found


def request_for(broker_id: int, image: Image, committed: Sequence[Committed]) -> DescribeWaitingRequest:
    topics: list[CommittedTopic] = []
    for tp, offset in committed:
        topic = image.topics[tp.topic]
        if not topics or topics[-1].topic_id != topic.id:
            topics.append(CommittedTopic(topic_id=topic.id))
        topics[-1].partitions.append(CommittedPartition(partition=tp.partition, committed_offset=offset))
    return DescribeWaitingRequest(broker_id=broker_id, topics=topics)


def wanted_in(image: Image, request: DescribeWaitingRequest) -> list[Committed | None]:
    """What is asked for, at most `AT_ONCE`; None for a topic that does not exist."""
    wanted: list[Committed | None] = []
    for asked in request.topics:
        topic = image.topics_by_id.get(asked.topic_id)
        for part in asked.partitions:
            place = None if topic is None else TopicPartition(topic.name, part.partition)
            wanted.append(None if place is None else (place, part.committed_offset))
    return wanted[:AT_ONCE]


def answer_with(lags: Sequence[PartitionLag]) -> DescribeWaitingResponse:
    return DescribeWaitingResponse(partitions=[_packed(lag) for lag in lags])


def _packed(lag: PartitionLag) -> WaitingPartition:
    end, waiting_ms, start = lag
    if end is None:
        return WaitingPartition(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, high_watermark=-1, timestamp_ms=NOT_KNOWN)
    is_waiting = waiting_ms is not None
    return WaitingPartition(
        high_watermark=end,
        is_waiting=is_waiting,
        timestamp_ms=-1 if waiting_ms is None else waiting_ms,
        log_start_offset=start,
    )


def lags_in(answer: DescribeWaitingResponse) -> list[PartitionLag]:
    return [
        UNKNOWN_LAG
        if part.error_code
        else PartitionLag(part.high_watermark, part.timestamp_ms if part.is_waiting else None, part.log_start_offset)
        for part in answer.partitions
    ]
