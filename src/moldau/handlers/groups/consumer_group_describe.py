"""ConsumerGroupDescribe (key 69), all versions: consumer groups as an administrator sees them (KIP-848).

Partitions of deleted topics are left out. Version 1 says which protocol each member speaks. Groups that the client may
not describe come first in answers. A group whose members have a topic that the client may not describe is an error.
"""

from collections.abc import Callable

from moldau.cluster.state.image import Image
from moldau.coordinators.consumer.messages import (
    DescribedConsumerMember,
    PartitionsByTopic,
)
from moldau.coordinators.groups.coordinator import GroupCoordinator
from moldau.coordinators.partitioning import elements_of
from moldau.errors import ErrorCode, KafkaError
from moldau.handlers.repetitions import TOO_OFTEN, Repetitions
from moldau.protocol.messages import consumer_group_describe as describing
from moldau.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
)
from moldau.requests.access import DESCRIBE_GROUP, DESCRIBE_TOPIC, ResourceType
from moldau.requests.session import Call
from moldau.turns import Steps

CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1
HIDDEN_TOPICS = "Members of the group have topics that this client may not describe."


class ConsumerGroupDescribe:
    def __init__(self, coordinator: GroupCoordinator, image: Callable[[], Image]):
        self._coordinator = coordinator
        self._image = image

    def __call__(self, request: ConsumerGroupDescribeRequest, call: Call) -> Steps[ConsumerGroupDescribeResponse]:
        image, named = self._image(), Repetitions()
        enabled = self._coordinator.settings.consumer.enabled
        refused: list[DescribedGroup] = []
        groups: list[DescribedGroup] = []
        for group_id in request.group_ids:
            yield
            yield from elements_of(group_id)
            if not enabled:
                groups.append(DescribedGroup(group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION))
            elif not call.may(DESCRIBE_GROUP, group_id):
                refused.append(DescribedGroup(group_id=group_id, error_code=DESCRIBE_GROUP.denied))
            elif named.exceed(group_id):
                code = ErrorCode.INVALID_REQUEST
                groups.append(DescribedGroup(group_id=group_id, error_code=code, error_message=TOO_OFTEN))
            else:
                groups.append((yield from self._describe(group_id, request, image, call)))
        return ConsumerGroupDescribeResponse(groups=refused + sorted(groups, key=lambda group: group.group_id != ""))

    def _describe(
        self, group_id: str, request: ConsumerGroupDescribeRequest, image: Image, call: Call
    ) -> Steps[DescribedGroup]:
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
            group.members.append((yield from _member(member, image)))
        if not (yield from _may_see(group.members, call)):
            code = DESCRIBE_TOPIC.denied
            return DescribedGroup(group_id=group_id, error_code=code, error_message=HIDDEN_TOPICS)
        if request.include_authorized_operations:
            group.authorized_operations = call.operations(ResourceType.GROUP, group_id)
        return group


def _may_see(members: list[Member], call: Call) -> Steps[bool]:
    """Whether the client may describe all topics that the members have, or will have."""
    if call.session.authorizer is None:
        return True
    names: dict[str, None] = {}
    for member in members:
        for assignment in (member.assignment, member.target_assignment):
            for topic in assignment.topic_partitions:
                names[topic.topic_name] = None
                yield
    for name in names:
        if not call.may(DESCRIBE_TOPIC, name):
            return False
        yield
    return True


def _member(member: DescribedConsumerMember, image: Image) -> Steps[Member]:
    yield
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=list(member.topics),
        subscribed_topic_regex=member.expression,
        assignment=(yield from _assignment(member.assigned, image)),
        target_assignment=(yield from _assignment(member.target, image)),
        member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
    )


def _assignment(assigned: PartitionsByTopic, image: Image) -> Steps[describing.Assignment]:
    """The assignment with topic names; deleted topics have none, and are left out."""
    named = describing.Assignment()
    for topic_id, partitions in assigned.items():
        topic = image.topics_by_id.get(topic_id)
        if topic is not None:
            named.topic_partitions.append(
                describing.TopicPartitions(topic_id=topic_id, topic_name=topic.name, partitions=sorted(partitions))
            )
        yield
    return named
