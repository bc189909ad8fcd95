"""AlterPartitionReassignments (key 45, versions 0 and 1) and ListPartitionReassignments (46, version 0).

No reassignment is ever under way. On one broker a partition has the only possible assignment: a request for it succeeds
at once, a request for another broker is refused, and no reassignment exists to cancel (KIP-455, KIP-860).
"""

from collections.abc import Callable

from moldau.cluster.controller import Refusal, reassignment_refusal
from moldau.cluster.image import Image
from moldau.errors import ErrorCode
from moldau.names import TopicPartition
from moldau.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from moldau.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from moldau.requests.session import Call
from moldau.turns import Steps

_DONE = Refusal(ErrorCode.NONE)
_TOO_LATE = Refusal(ErrorCode.REQUEST_TIMED_OUT)


class Reassignments:
    def __init__(self, image: Callable[[], Image]):
        self._image = image

    def alter(
        self, request: AlterPartitionReassignmentsRequest, call: Call
    ) -> Steps[AlterPartitionReassignmentsResponse]:
        image, whole = self._image(), _TOO_LATE if request.timeout_ms <= 0 else None
        topics = []
        for topic in request.topics:
            partitions = []
            for one in topic.partitions:
                yield
                tp = TopicPartition(topic.name, one.partition_index)
                code, message = whole or reassignment_refusal(image, tp, one.replicas) or _DONE
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

    def list_reassignments(
        self, request: ListPartitionReassignmentsRequest, call: Call
    ) -> ListPartitionReassignmentsResponse:
        return ListPartitionReassignmentsResponse(error_message=None)
