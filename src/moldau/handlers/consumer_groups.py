"""ConsumerGroupHeartbeat (key 68), ConsumerGroupDescribe (69): groups of the newer protocol (KIP-848), in all versions.

From heartbeat version 1 on the member makes its id (KIP-1082), before that the coordinator does if it has none; 1 also
brings expressions. What a request must have depends on its epoch: all of it to join, nothing but ids to leave. A
member that is described is told of by the topics that there are; version 1 says which protocol it speaks.
"""

import uuid
from collections.abc import Awaitable, Callable

from moldau.cluster.image import Image
from moldau.coordinators.consumer.messages import (
    Assigned,
    ConsumerHeartbeat,
    ConsumerHeartbeatReply,
    DescribedConsumerMember,
)
from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.errors import ErrorCode, KafkaError
from moldau.handlers.group_admin import OPERATIONS_OF_A_GROUP
from moldau.handlers.groups import answer
from moldau.handlers.repetitions import TOO_OFTEN, Repetitions
from moldau.protocol.messages import consumer_group_describe as describing
from moldau.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
)
from moldau.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from moldau.requests.session import Call
from moldau.turns import Steps

MEMBER_MAKES_ITS_ID = 1
JOINS, LEAVES, LEAVES_FOR_NOW = 0, -1, -2
KEY_BYTES_MAX = 0x7FFF
"""Of what stands in the key of a record."""
CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1


class ConsumerGroupHandlers:
    def __init__(self, coordinator: GroupCoordinator, image: Callable[[], Image]):
        self._coordinator = coordinator
        self._image = image

    def heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, call: Call
    ) -> ConsumerGroupHeartbeatResponse | Awaitable[ConsumerGroupHeartbeatResponse]:
        settings = self._coordinator.settings.consumer
        if not settings.enabled:
            return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        wrong = _wrong(request, call.version)
        if wrong:
            return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=wrong)
        if request.server_assignor is not None and request.server_assignor not in settings.assignors:
            message = f"There is no assignor {request.server_assignor!r}; there are {', '.join(settings.assignors)}."
            return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_ASSIGNOR, error_message=message)
        ask = ConsumerHeartbeat(
            group_id=request.group_id,
            member_id=request.member_id,
            epoch=request.member_epoch,
            instance_id=request.instance_id,
            rack_id=request.rack_id,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            topics=None if request.subscribed_topic_names is None else tuple(request.subscribed_topic_names),
            expression=request.subscribed_topic_regex,
            assignor=request.server_assignor,
            owned=None if request.topic_partitions is None else _owned(request.topic_partitions),
            client_id=call.client_id or "",
            client_host=f"/{call.client_host}",
        )
        return answer(self._coordinator.beat(ask), _response)

    def describe(self, request: ConsumerGroupDescribeRequest, call: Call) -> Steps[ConsumerGroupDescribeResponse]:
        image, named = self._image(), Repetitions()
        found = []
        for group_id in request.group_ids:
            if named.exceed(group_id):
                code = ErrorCode.INVALID_REQUEST
                found.append(DescribedGroup(group_id=group_id, error_code=code, error_message=TOO_OFTEN))
                yield
            else:
                found.append((yield from self._describe(group_id, request, image)))
        return ConsumerGroupDescribeResponse(groups=sorted(found, key=lambda group: group.group_id != ""))

    def _describe(self, group_id: str, request: ConsumerGroupDescribeRequest, image: Image) -> Steps[DescribedGroup]:
        yield
        if not self._coordinator.settings.consumer.enabled:
            return DescribedGroup(group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION)
        if not group_id:
            return DescribedGroup(error_code=ErrorCode.INVALID_GROUP_ID)
        try:
            described = self._coordinator.describe_consumers(group_id)
        except KafkaError as error:
            return DescribedGroup(group_id=group_id, error_code=error.code, error_message=error.message or None)
        group = DescribedGroup(
            group_id=group_id,
            group_state=described.state,
            group_epoch=described.epoch,
            assignment_epoch=described.target_epoch,
            assignor_name=described.assignor,
        )
        for member in described.members:
            group.members.append(_member(member, image))
            yield
        if request.include_authorized_operations:
            group.authorized_operations = OPERATIONS_OF_A_GROUP
        return group


def _wrong(request: ConsumerGroupHeartbeatRequest, version: int) -> str:
    """What a heartbeat lacks, in a sentence; empty if it is as it has to be."""
    epoch = request.member_epoch
    if not request.member_id and (version >= MEMBER_MAKES_ITS_ID or epoch > 0 or epoch == LEAVES):
        return "The member id is empty."
    if not request.group_id:
        return "The group id is empty."
    if request.instance_id == "":
        return "The instance id is empty."
    if request.rack_id == "":
        return "The rack id is empty."
    if any(len(key.encode()) > KEY_BYTES_MAX for key in (request.member_id, request.subscribed_topic_regex or "")):
        return f"Member ids and expressions have no more than {KEY_BYTES_MAX} bytes."
    if epoch < LEAVES_FOR_NOW:
        return f"There is no member epoch {epoch}."
    if epoch == LEAVES_FOR_NOW and request.instance_id is None:
        return "Only a member with an instance id can leave for now."
    if epoch != JOINS:
        return ""
    if request.rebalance_timeout_ms == -1:
        return "Who joins has to say its rebalance timeout."
    if request.topic_partitions is None or request.topic_partitions:
        return "Who joins has no partitions, and has to say so."
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        return "Who joins has to say which topics it subscribes to."
    return ""


def _owned(topics: list[TopicPartitions]) -> dict[uuid.UUID, frozenset[int]]:
    owned: dict[uuid.UUID, frozenset[int]] = {}
    for topic in topics:
        owned[topic.topic_id] = owned.get(topic.topic_id, frozenset()).union(topic.partitions)
    return owned


def _response(beaten: ConsumerHeartbeatReply) -> ConsumerGroupHeartbeatResponse:
    assignment = None
    if beaten.assignment is not None:
        assignment = Assignment(
            topic_partitions=[
                TopicPartitions(topic_id=topic, partitions=partitions)
                for topic, partitions in beaten.assignment.items()
            ]
        )
    return ConsumerGroupHeartbeatResponse(
        error_code=beaten.error,
        error_message=beaten.message,
        member_id=beaten.member_id,
        member_epoch=beaten.epoch,
        heartbeat_interval_ms=beaten.heartbeat_interval_ms,
        assignment=assignment,
    )


def _member(member: DescribedConsumerMember, image: Image) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.expression,
        assignment=_assignment(member.assigned, image),
        target_assignment=_assignment(member.target, image),
        member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
    )


def _assignment(assigned: Assigned, image: Image) -> describing.Assignment:
    """Partitions of topics that are gone are left out: they have no name."""
    topics = image.topics_by_id
    return describing.Assignment(
        topic_partitions=[
            describing.TopicPartitions(topic_id=topic, topic_name=topics[topic].name, partitions=partitions)
            for topic, partitions in assigned.items()
            if topic in topics
        ]
    )
