"""FindCoordinator (key 10), all versions: which broker to ask about a group or a transactional id.

The first question makes the internal topic that the coordinator keeps its state in. Versions before 4 ask for one key.
Key types: 0 a group, 1 a transactional id, 2 a share group, which is not offered (INVALID_REQUEST).
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from moldau.cluster.image import Image
from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.names import TopicPartition
from moldau.notices import Notices
from moldau.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from moldau.protocol.upgrades import FIND_COORDINATOR_BATCHES, downgrade_find_coordinator, upgrade_find_coordinator
from moldau.requests.session import Call
from moldau.turns import Steps

GROUP, TRANSACTION = 0, 1
notices = Notices(logging.getLogger(__name__))


class CoordinatorType(NamedTuple):
    """One type of coordinator: the topic it keeps its state in, which `make` makes if it is not there (it may raise
    `KafkaError`), and the partition of it that a key belongs to."""

    topic: str
    make: Callable[[], Awaitable[None]]
    partition_of: Callable[[str], int]


class FindCoordinatorHandler:
    """`kinds` by key type."""

    def __init__(self, kinds: Mapping[int, CoordinatorType], image: Callable[[], Image]):
        self._kinds = kinds
        self._image = image

    def __call__(
        self, request: FindCoordinatorRequest, call: Call
    ) -> Steps[FindCoordinatorResponse] | Awaitable[Steps[FindCoordinatorResponse]]:
        upgrade_find_coordinator(request, call.version)
        kind = self._kinds.get(request.key_type)
        if kind is not None and kind.topic not in self._image().topics:
            return self._make_and_find(request, call.version, kind)
        return self._find(request, call.version, kind)

    async def _make_and_find(
        self, request: FindCoordinatorRequest, version: int, kind: CoordinatorType
    ) -> Steps[FindCoordinatorResponse]:
        try:
            await kind.make()
        except (StorageError, KafkaError) as error:  # it is not in the image, and the answer says to try again
            notices.error(
                kind.topic,
                "the topic %s cannot be created: %s. Clients that look for a coordinator are refused until then",
                kind.topic, error,
            )  # fmt: skip
        return self._find(request, version, kind)

    def _find(
        self, request: FindCoordinatorRequest, version: int, kind: CoordinatorType | None
    ) -> Steps[FindCoordinatorResponse]:
        found = []
        sentence = f"This broker has no coordinator of type {request.key_type}."
        for key in request.coordinator_keys:
            if kind is not None:
                found.append(self._leader(key, kind))
            else:
                found.append(_none(key, ErrorCode.INVALID_REQUEST, sentence))
            yield
        response = FindCoordinatorResponse(coordinators=found)
        if version < FIND_COORDINATOR_BATCHES and not found[0].error_code:
            found[0].error_message = ErrorCode.NONE.name
        downgrade_find_coordinator(response, version)
        return response

    def _leader(self, key: str, kind: CoordinatorType) -> Coordinator:
        image = self._image()
        tp = TopicPartition(kind.topic, kind.partition_of(key))
        partition = image.partition(tp)
        leader = None if partition is None else image.brokers.get(partition.leader)
        if leader is None:
            return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, f"The partition {tp} has no leader yet.")
        endpoint = leader.endpoints[0]
        return Coordinator(key=key, node_id=leader.id, host=endpoint.host, port=endpoint.port, error_message="")


def _none(key: str, error: ErrorCode, sentence: str) -> Coordinator:
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error, error_message=sentence)
