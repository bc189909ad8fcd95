"""ElectLeaders (key 43, versions 0 to 2): on a single broker an election never changes a leader.

A partition's only replica leads it; it has no leader while its log folder is offline. Version 0 asks for the preferred
leader only. A null list means all partitions; then the answer leaves out the partitions that need no election, but not
their topics. A request with `timeout_ms` of 0 or less is answered with REQUEST_TIMED_OUT (KIP-183, KIP-460).
"""

from collections.abc import Callable

from moldau.cluster.controller import Refusal, election_refusal
from moldau.cluster.image import Image
from moldau.errors import ErrorCode
from moldau.names import TopicPartition
from moldau.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from moldau.requests.session import Call
from moldau.turns import Steps

PREFERRED, UNCLEAN = 0, 1


class ElectLeaders:
    def __init__(self, image: Callable[[], Image]):
        self._image = image

    def __call__(self, request: ElectLeadersRequest, call: Call) -> Steps[ElectLeadersResponse]:
        image, wanted = self._image(), request.topic_partitions
        whole = _refusal(request)
        response = ElectLeadersResponse(error_code=whole.code if whole else ErrorCode.NONE)
        named = (
            [(topic.name, range(len(topic.partitions))) for topic in image.topics.values()]
            if wanted is None
            else [(one.topic, one.partitions) for one in wanted]
        )
        for name, numbers in named:
            results = []
            yield
            for number in numbers:
                yield
                tp = TopicPartition(name, number)
                code, message = whole or election_refusal(image, tp, unclean=request.election_type == UNCLEAN)
                if wanted is not None or code is not ErrorCode.ELECTION_NOT_NEEDED:
                    results.append(PartitionResult(partition_id=number, error_code=code, error_message=message))
            response.replica_election_results.append(ReplicaElectionResult(topic=name, partition_result=results))
        return response


def _refusal(request: ElectLeadersRequest) -> Refusal | None:
    """The reason to refuse the whole request, or None."""
    if request.election_type not in (PREFERRED, UNCLEAN):
        return Refusal(ErrorCode.INVALID_REQUEST, f"election type {request.election_type} is unknown")
    return Refusal(ErrorCode.REQUEST_TIMED_OUT) if request.timeout_ms <= 0 else None
