"""ConsumerGroupHeartbeat (key 68), all versions: members of consumer groups join, stay and leave (KIP-848).

From version 1 on the member makes its own id (KIP-1082); before, the coordinator does if the id is empty. Version 1
also adds subscriptions by expression. A request that joins must set all fields, one that leaves only the ids. A request
that names a topic which the client may not describe is refused as a whole, before anything else about it is checked.
An expression does not match such topics. It is resolved once for all members that have it, with the rights of the one
whose heartbeat is the first after topics or rights have changed, as in Kafka.
"""

import uuid
from collections.abc import Awaitable
from typing import TypeAlias

from moldau.coordinators.consumer.messages import (
    ConsumerHeartbeat,
    ConsumerHeartbeatReply,
)
from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.errors import ErrorCode
from moldau.handlers.denied_topics import may_see
from moldau.handlers.responding import respond_when_ready
from moldau.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from moldau.requests.access import DESCRIBE_TOPIC
from moldau.requests.session import Call
from moldau.turns import Steps

Answer: TypeAlias = ConsumerGroupHeartbeatResponse | Awaitable[ConsumerGroupHeartbeatResponse]
MEMBER_MAKES_ITS_ID = 1
JOINS, LEAVES, LEAVES_FOR_NOW = 0, -1, -2
KEY_BYTES_MAX = 0x7FFF
"""The most bytes of a string in the key of a record."""


class ConsumerGroupHeartbeat:
    def __init__(self, coordinator: GroupCoordinator):
        self._coordinator = coordinator

    def __call__(self, request: ConsumerGroupHeartbeatRequest, call: Call) -> Answer | Steps[Answer]:
        if not self._coordinator.settings.consumer.enabled:
            return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        if request.subscribed_topic_names and call.session.authorizer is not None:
            return self._beat_if_allowed(request, call, request.subscribed_topic_names)
        return self._beat(request, call)

    def _beat_if_allowed(self, request: ConsumerGroupHeartbeatRequest, call: Call, names: list[str]) -> Steps[Answer]:
        for name in dict.fromkeys(names):
            if not call.may(DESCRIBE_TOPIC, name):
                return ConsumerGroupHeartbeatResponse(error_code=DESCRIBE_TOPIC.denied)
            yield
        return self._beat(request, call)

    def _beat(self, request: ConsumerGroupHeartbeatRequest, call: Call) -> Answer:
        settings = self._coordinator.settings.consumer
        wrong = _wrong(request, call.version)
        if wrong:
            return ConsumerGroupHeartbeatResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=wrong)
        if request.server_assignor is not None and request.server_assignor not in settings.assignors:
            known = ", ".join(settings.assignors)
            message = f"The assignor {request.server_assignor!r} does not exist; this broker has {known}."
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
            may_see=may_see(call),
        )
        return respond_when_ready(self._coordinator.beat(ask), _response)


def _wrong(request: ConsumerGroupHeartbeatRequest, version: int) -> str:
    """A sentence that says why the heartbeat is invalid; empty if it is valid."""
    epoch = request.member_epoch
    # The ids, in every heartbeat.
    if not request.member_id and (version >= MEMBER_MAKES_ITS_ID or epoch > 0 or epoch == LEAVES):
        return "The member id is empty."
    if not request.group_id:
        return "The group id is empty."
    if request.instance_id == "":
        return "The instance id is empty."
    if request.rack_id == "":
        return "The rack id is empty."
    if any(len(key.encode()) > KEY_BYTES_MAX for key in (request.member_id, request.subscribed_topic_regex or "")):
        return f"Member ids and expressions have at most {KEY_BYTES_MAX} bytes."
    # Heartbeats that leave.
    if epoch < LEAVES_FOR_NOW:
        return f"The member epoch {epoch} is invalid."
    if epoch == LEAVES_FOR_NOW and request.instance_id is None:
        return "Only a static member can leave temporarily: the instance id is missing."
    # Heartbeats that join set all fields.
    if epoch != JOINS:
        return ""
    if request.rebalance_timeout_ms == -1:
        return "The rebalance timeout is missing in a heartbeat that joins."
    if request.topic_partitions is None or request.topic_partitions:
        return "A heartbeat that joins must own no partitions, as an empty list."
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        return "The subscription is missing in a heartbeat that joins."
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
