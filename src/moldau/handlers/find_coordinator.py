"""FindCoordinator (key 10), all versions: which broker to ask about a group.

The first question makes the offsets topic. Versions before 4 ask for one key. Key types: 0 a group, 1 a transaction
(a client that wants those is told once and for all that it cannot have them), 2 a share group, which is not offered
(INVALID_REQUEST).
"""

from collections.abc import Awaitable, Callable

from moldau.cluster.image import Image
from moldau.coordinators.coordinator import GroupCoordinator
from moldau.errors import ErrorCode, KafkaError
from moldau.handlers.context import Context
from moldau.names import OFFSETS_TOPIC, TopicPartition
from moldau.protocol.lifts import FIND_COORDINATOR_BATCHES, lift_find_coordinator, lower_find_coordinator
from moldau.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

GROUP, TRANSACTION = 0, 1


class FindCoordinatorHandler:
    """`make_offsets_topic` returns once the topic is in the image; it may raise `KafkaError`."""

    def __init__(
        self,
        coordinator: GroupCoordinator,
        image: Callable[[], Image],
        make_offsets_topic: Callable[[], Awaitable[None]],
    ):
        self._coordinator = coordinator
        self._image = image
        self._make_offsets_topic = make_offsets_topic

    def __call__(
        self, request: FindCoordinatorRequest, context: Context
    ) -> FindCoordinatorResponse | Awaitable[FindCoordinatorResponse]:
        lift_find_coordinator(request, context.version)
        if request.key_type == GROUP and OFFSETS_TOPIC not in self._image().topics:
            return self._make_and_find(request, context.version)
        return self._find(request, context.version)

    async def _make_and_find(self, request: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
        try:
            await self._make_offsets_topic()
        except KafkaError:
            pass  # then it is not in the image, and the answer says to try again
        return self._find(request, version)

    def _find(self, request: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
        if request.key_type == GROUP:
            found = [self._group(key) for key in request.coordinator_keys]
        elif request.key_type == TRANSACTION:
            sentence = "This broker does not offer transactions."
            found = [
                _none(key, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, sentence)
                for key in request.coordinator_keys
            ]
        else:
            sentence = f"This broker has no coordinator of type {request.key_type}."
            found = [_none(key, ErrorCode.INVALID_REQUEST, sentence) for key in request.coordinator_keys]
        response = FindCoordinatorResponse(coordinators=found)
        if version < FIND_COORDINATOR_BATCHES and not found[0].error_code:
            found[0].error_message = ErrorCode.NONE.name
        lower_find_coordinator(response, version)
        return response

    def _group(self, group_id: str) -> Coordinator:
        image = self._image()
        partition = image.partition(TopicPartition(OFFSETS_TOPIC, self._coordinator.partition_of(group_id)))
        leader = None if partition is None else image.brokers.get(partition.leader)
        if leader is None:
            return _none(
                group_id,
                ErrorCode.COORDINATOR_NOT_AVAILABLE,
                "The group's partition of the offsets topic has no leader yet.",
            )
        return Coordinator(key=group_id, node_id=leader.id, host=leader.host, port=leader.port, error_message="")


def _none(key: str, error: ErrorCode, sentence: str) -> Coordinator:
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error, error_message=sentence)
