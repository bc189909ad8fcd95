"""AlterPartitionReassignments (key 45, versions 0 and 1) and ListPartitionReassignments (46, version 0).

The controller adds replicas to partitions, and changes which replica is preferred; replicas are not removed yet. It
answers when the new replicas are assigned: they join the ISR when they have caught up. So no reassignment is ever under
way, and none can be cancelled (KIP-455, KIP-860). A request with `timeout_ms` of 0 or less changes nothing.
"""

from collections.abc import Iterable, Iterator, Sequence

from moldau.cluster.controlling.controller import Refusal
from moldau.cluster.controlling.topic_changes import TopicChanges
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


def list_reassignments(request: ListPartitionReassignmentsRequest, call: Call) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_message=None)
