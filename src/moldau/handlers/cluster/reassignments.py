"""AlterPartitionReassignments (key 45, versions 0 and 1) and ListPartitionReassignments (46, version 0).

The controller answers when a reassignment has begun or is cancelled, or when it has ended because no replica had to be
added or removed. It ends by itself once all replicas of the target are in sync (`cluster/controlling/lasting.py`,
KIP-455, KIP-860). A request with `timeout_ms` of 0 or less changes nothing. Every broker lists what is under way, from
the image that it serves by.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from moldau.cluster.controlling.controller import Refusal
from moldau.cluster.controlling.topic_changes import TopicChanges
from moldau.cluster.state.image import Image, PartitionImage
from moldau.cluster.state.reassignment import is_under_way
from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.handlers.responding import not_made
from moldau.names import TopicPartition
from moldau.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopic,
    ReassignableTopicResponse,
)
from moldau.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from moldau.requests.session import Call
from moldau.turns import Steps, in_turns

_DONE = Refusal(ErrorCode.NONE)


class AlterReassignments:
    def __init__(self, changes: TopicChanges):
        self._changes = changes

    async def __call__(
        self, request: AlterPartitionReassignmentsRequest, call: Call
    ) -> Steps[AlterPartitionReassignmentsResponse]:
        wanted = [one async for one in in_turns(_wanted(request.topics))]
        whole = Refusal(ErrorCode.REQUEST_TIMED_OUT) if request.timeout_ms <= 0 else None
        results: Sequence[Refusal | None] = [None] * len(wanted)
        if whole is None:
            try:
                keeps_factor = not request.allow_replication_factor_change
                results = await self._changes.reassign(wanted, keeps_factor=keeps_factor)
            except (StorageError, KafkaError) as error:
                whole = not_made(error)
        return _answer(request, iter(results), whole)


def _wanted(topics: Iterable[ReassignableTopic]) -> Iterator[tuple[TopicPartition, Sequence[int] | None]]:
    for topic in topics:
        for one in topic.partitions:
            yield TopicPartition(topic.name, one.partition_index), one.replicas


def _answer(
    request: AlterPartitionReassignmentsRequest, results: Iterator[Refusal | None], whole: Refusal | None
) -> Steps[AlterPartitionReassignmentsResponse]:
    """`results` are in the order of the request; `whole` refuses it as a whole."""
    topics = []
    for topic in request.topics:
        partitions = []
        for one, result in zip(topic.partitions, results, strict=False):
            yield
            code, message = whole or result or _DONE
            partitions.append(
                ReassignablePartitionResponse(
                    partition_index=one.partition_index, error_code=code, error_message=message
                )
            )
        yield
        topics.append(ReassignableTopicResponse(name=topic.name, partitions=partitions))
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=(whole or _DONE).code,
        error_message=None,
        responses=topics,
    )


class ListReassignments:
    """`image` returns the image that this broker serves by."""

    def __init__(self, image: Callable[[], Image]):
        self._image = image

    def __call__(
        self, request: ListPartitionReassignmentsRequest, call: Call
    ) -> Steps[ListPartitionReassignmentsResponse]:
        image, found = self._image(), dict[str, dict[int, PartitionImage]]()
        for name, number in _asked(request, image):
            yield
            part = image.partition(TopicPartition(name, number))
            if part is not None and is_under_way(part):
                found.setdefault(name, {})[number] = part
        topics = []
        for name, parts in found.items():
            yield
            partitions = [_ongoing(number, part) for number, part in parts.items()]
            topics.append(OngoingTopicReassignment(name=name, partitions=partitions))
        return ListPartitionReassignmentsResponse(error_message=None, topics=topics)


def _asked(request: ListPartitionReassignmentsRequest, image: Image) -> Iterator[tuple[str, int]]:
    """The partitions to look at, by topic and number."""
    if request.topics is None:
        for topic in image.topics.values():
            for number in range(len(topic.partitions)):
                yield topic.name, number
    else:
        for asked in request.topics:
            for number in asked.partition_indexes:
                yield asked.name, number


def _ongoing(number: int, part: PartitionImage) -> OngoingPartitionReassignment:
    return OngoingPartitionReassignment(
        partition_index=number,
        replicas=list(part.replicas),
        adding_replicas=list(part.adding_replicas),
        removing_replicas=list(part.removing_replicas),
    )
