"""ElectLeaders (key 43, versions 0 to 2): the preferred replicas lead, or, unclean, replicas that are not in sync.

In a cluster the controller elects, and answers once all brokers know it. A broker alone has no choice: a partition's
only replica leads it, and it has no leader while its log folder is offline. Version 0 asks for the preferred leader
only. A null list means all partitions; then the answer leaves out the partitions that need no election, but not their
topics. A request with `timeout_ms` of 0 or less is answered with REQUEST_TIMED_OUT (KIP-183, KIP-460).
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Protocol

from moldau.cluster.controlling.controller import Refusal, election_refusal
from moldau.cluster.state.image import Image
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
_DONE = Refusal(ErrorCode.NONE)


class Elect(Protocol):
    async def __call__(self, wanted: Sequence[TopicPartition], *, unclean: bool) -> Collection[TopicPartition]:
        """The partitions that have another leader now."""


class ElectLeaders:
    """`elect` is the controller's; None for a broker alone."""

    def __init__(self, image: Callable[[], Image], elect: Elect | None = None):
        self._image = image
        self._elect = elect

    def __call__(
        self, request: ElectLeadersRequest, call: Call
    ) -> Steps[ElectLeadersResponse] | Awaitable[Steps[ElectLeadersResponse]]:
        if self._elect is None or _refusal(request) is not None:
            return self._answer(request, self._image(), frozenset())
        return self._elected(request, self._elect)

    async def _elected(self, request: ElectLeadersRequest, elect: Elect) -> Steps[ElectLeadersResponse]:
        before = self._image()
        wanted = [TopicPartition(name, number) for name, numbers in _named(request, before) for number in numbers]
        elected = await elect(wanted, unclean=request.election_type == UNCLEAN)
        return self._answer(request, before, elected)

    def _answer(
        self, request: ElectLeadersRequest, image: Image, elected: Collection[TopicPartition]
    ) -> Steps[ElectLeadersResponse]:
        """`image` is that before the election."""
        whole = _refusal(request)
        response = ElectLeadersResponse(error_code=whole.code if whole else ErrorCode.NONE)
        for name, numbers in _named(request, image):
            results = []
            yield
            for number in numbers:
                yield
                tp = TopicPartition(name, number)
                code, message = whole or (
                    _DONE if tp in elected else election_refusal(image, tp, unclean=request.election_type == UNCLEAN)
                )
                if request.topic_partitions is not None or code is not ErrorCode.ELECTION_NOT_NEEDED:
                    results.append(PartitionResult(partition_id=number, error_code=code, error_message=message))
            response.replica_election_results.append(ReplicaElectionResult(topic=name, partition_result=results))
        return response


def _named(request: ElectLeadersRequest, image: Image) -> list[tuple[str, Sequence[int]]]:
    """The partitions that are asked for, by topic."""
    if request.topic_partitions is None:
        return [(topic.name, range(len(topic.partitions))) for topic in image.topics.values()]
    return [(one.topic, one.partitions) for one in request.topic_partitions]


def _refusal(request: ElectLeadersRequest) -> Refusal | None:
    """The reason to refuse the whole request, or None."""
    if request.election_type not in (PREFERRED, UNCLEAN):
        return Refusal(ErrorCode.INVALID_REQUEST, f"election type {request.election_type} is unknown")
    return Refusal(ErrorCode.REQUEST_TIMED_OUT) if request.timeout_ms <= 0 else None
