"""FindCoordinator (key 10), all versions: the broker that coordinates a group or a transactional id.

The address is that of the listener that the request came in on; if the coordinator's broker has no such listener, the
coordinator is not available, as in Kafka. The first request creates the coordinator's internal topic; while that is
impossible, for instance because a cluster has too few brokers for its replication factor, the coordinator is not
available, and the answer and the log say why. Versions before 4 name one key. Key types: 0 a group, 1 a transactional
id, 2 a share group, which is not supported (INVALID_REQUEST).

A client that may not describe a group or transactional id is refused before the topic is created. From version 4 on the
refusal has no text, as in Kafka.
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import NamedTuple, TypeAlias

from moldau.cluster.state.image import Image
from moldau.coordinators.partitioning import elements_of, partition_of
from moldau.errors import ErrorCode, KafkaError, StorageError
from moldau.names import TopicPartition
from moldau.notices import Notices
from moldau.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from moldau.protocol.upgrades import FIND_COORDINATOR_BATCHES, downgrade_find_coordinator, upgrade_find_coordinator
from moldau.requests.access import DESCRIBE_GROUP, DESCRIBE_TRANSACTIONAL_ID, Right
from moldau.requests.session import Call
from moldau.turns import Steps

GROUP, TRANSACTION = 0, 1
_RIGHTS: Mapping[int, Right] = {GROUP: DESCRIBE_GROUP, TRANSACTION: DESCRIBE_TRANSACTIONAL_ID}
_NOBODY: Collection[str] = frozenset()
notices = Notices(logging.getLogger(__name__))


class CoordinatorType(NamedTuple):
    """One type of coordinator: its internal topic, and what is to be awaited before the first answer: `make` creates
    the topic if it does not exist, and imports what serves it (it may raise `KafkaError`)."""

    topic: str
    make: Callable[[], Awaitable[None]]


Found: TypeAlias = Steps[FindCoordinatorResponse] | Awaitable[Steps[FindCoordinatorResponse]]


class FindCoordinator:
    """`kinds` by key type."""

    def __init__(self, kinds: Mapping[int, CoordinatorType], image: Callable[[], Image]):
        self._kinds = kinds
        self._image = image
        self._made: set[str] = set()
        """The topics whose `make` has succeeded."""

    def __call__(self, request: FindCoordinatorRequest, call: Call) -> Found | Steps[Found]:
        upgrade_find_coordinator(request, call.version)
        coordinator_type = self._kinds.get(request.key_type)
        if coordinator_type is None:
            return self._find(request, call, None)
        if call.session.authorizer is None:
            return self._answer(request, call, coordinator_type, _NOBODY)
        return self._judge_and_answer(request, call, coordinator_type)

    def _judge_and_answer(
        self, request: FindCoordinatorRequest, call: Call, coordinator_type: CoordinatorType
    ) -> Steps[Found]:
        right = _RIGHTS[request.key_type]
        allowed, denied = set[str](), set[str]()
        for key in request.coordinator_keys:
            if key not in allowed and key not in denied:
                (allowed if call.may(right, key) else denied).add(key)
            yield
        if not allowed:
            return self._find(request, call, coordinator_type, denied)
        return self._answer(request, call, coordinator_type, denied)

    def _answer(
        self,
        request: FindCoordinatorRequest,
        call: Call,
        coordinator_type: CoordinatorType,
        denied: Collection[str],
    ) -> Found:
        topic = coordinator_type.topic
        if topic not in self._made or topic not in self._image().topics:
            return self._make_and_find(request, call, coordinator_type, denied)
        return self._find(request, call, coordinator_type, denied)

    async def _make_and_find(
        self,
        request: FindCoordinatorRequest,
        call: Call,
        coordinator_type: CoordinatorType,
        denied: Collection[str],
    ) -> Steps[FindCoordinatorResponse]:
        why = ""
        try:
            await coordinator_type.make()
            self._made.add(coordinator_type.topic)
        except (StorageError, KafkaError) as error:  # the topic is not in the image, so the answer says to try again
            why = f"the topic {coordinator_type.topic} cannot be created yet: {error}"
            notices.error(coordinator_type.topic, "%s. Until it exists, clients cannot find their coordinator", why)
        return self._find(request, call, coordinator_type, denied, why)

    def _find(
        self,
        request: FindCoordinatorRequest,
        call: Call,
        coordinator_type: CoordinatorType | None,
        denied: Collection[str] = _NOBODY,
        why: str = "",
    ) -> Steps[FindCoordinatorResponse]:
        """`denied`: the keys that the client may not describe; `why`: the reason why the topic could not be created, if
        it could not."""
        coordinators = []
        sentence = f"This broker has no coordinator of type {request.key_type}."
        for key in request.coordinator_keys:
            if coordinator_type is None:
                coordinators.append(_none(key, ErrorCode.INVALID_REQUEST, sentence))
            elif key in denied:
                error = _RIGHTS[request.key_type].denied
                text = "" if call.version >= FIND_COORDINATOR_BATCHES else _sentence(error.sentence)
                coordinators.append(_none(key, error, text))
            else:
                yield from elements_of(key)
                coordinators.append(self._leader(key, coordinator_type, call.session.listener, why))
            yield
        response = FindCoordinatorResponse(coordinators=coordinators)
        if call.version < FIND_COORDINATOR_BATCHES and not coordinators[0].error_code:
            coordinators[0].error_message = ErrorCode.NONE.name
        downgrade_find_coordinator(response, call.version)
        return response

    def _leader(self, key: str, coordinator_type: CoordinatorType, listener: str, why: str) -> Coordinator:
        image = self._image()
        topic, leader = image.topics.get(coordinator_type.topic), None
        missing = f"the topic {coordinator_type.topic} does not exist yet"
        if topic is not None:
            tp = TopicPartition(topic.name, partition_of(key, len(topic.partitions)))
            leader = image.brokers.get(topic.partitions[tp.partition].leader)
            missing = f"the partition {tp} has no leader yet"
        if leader is None:
            return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, _sentence(why or missing))
        endpoint = leader.endpoint(listener)
        if endpoint is None:
            sentence = f"The broker {leader.id}, which leads {tp}, has no listener {listener}."
            return _none(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, sentence)
        return Coordinator(key=key, node_id=leader.id, host=endpoint.host, port=endpoint.port, error_message="")


def _sentence(words: str) -> str:
    return f"{words[0].upper()}{words[1:]}."


def _none(key: str, error: ErrorCode, sentence: str) -> Coordinator:
    return Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error, error_message=sentence)
