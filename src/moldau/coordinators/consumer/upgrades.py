"""A classic group with members becomes a consumer group when a member of the consumer protocol joins it (KIP-848).
Pure."""

from collections.abc import Callable

from moldau.cluster.state.image import Image
from moldau.coordinators.classic.group import ClassicGroup
from moldau.coordinators.consumer.changes import GroupChanges, HeartbeatRefused
from moldau.coordinators.consumer.group import current_of, metadata_of, target_of
from moldau.coordinators.consumer.group_states import GroupStates
from moldau.coordinators.consumer.member_deadlines import MemberDeadlines
from moldau.coordinators.consumer.messages import ConsumerHeartbeat
from moldau.coordinators.consumer.migration import CannotMigrate, consumer_group_of
from moldau.coordinators.consumer.records import ConsumerRecordType
from moldau.coordinators.consumer.target import metadata_hash
from moldau.coordinators.decision import Decision, Now
from moldau.errors import ErrorCode
from moldau.names import counted
from moldau.protocol.internal import ConsumerGroupMetadataValue, ConsumerGroupTargetAssignmentMetadataValue


class Upgrades:
    def __init__(
        self,
        states: GroupStates,
        changes: GroupChanges,
        deadlines: MemberDeadlines,
        image: Callable[[], Image],
    ):
        self._states = states
        self._changes = changes
        self._deadlines = deadlines
        self._image = image

    def check(self, group: ClassicGroup, ask: ConsumerHeartbeat) -> tuple[ErrorCode, str]:
        """Whether the group can become a consumer group for the member that joins, and why not."""
        settings = self._changes.settings
        if not settings.can_upgrade:
            message = f"{ask.group_id} is a classic group, and group.consumer.migration.policy keeps it one."
            return ErrorCode.GROUP_ID_NOT_FOUND, message
        if len(group.members) > settings.max_size:
            message = f"{ask.group_id} is a classic group, and has too many members for a consumer group."
            return ErrorCode.GROUP_ID_NOT_FOUND, message
        if len(group.members) == settings.max_size:
            return ErrorCode.GROUP_MAX_SIZE_REACHED, f"The group already has {counted(len(group.members), 'member')}."
        try:
            if ask.expression:
                self._changes.check_expression(ask.expression)
            consumer_group_of(group, self._image())
        except HeartbeatRefused as refused:
            return refused.code, refused.message
        except CannotMigrate as reason:
            return ErrorCode.GROUP_ID_NOT_FOUND, f"{ask.group_id} is a classic group, and {reason}."
        return ErrorCode.NONE, ""

    def upgrade(self, classic: ClassicGroup, now: Now, out: Decision) -> None:
        """Write the classic group as a consumer group, in the order that Kafka writes. The caller writes the classic
        group's tombstone, and concludes the decision."""
        group = consumer_group_of(classic, self._image())
        members = list(group.members.values())
        for member in members:
            self._states.write(group, ConsumerRecordType.MEMBER, member.member_id, metadata_of(member), out)
        topics_hash = metadata_hash(group.subscribed(), self._image())
        epoch = ConsumerGroupMetadataValue(epoch=group.epoch, metadata_hash=topics_hash)
        self._states.write(group, ConsumerRecordType.EPOCH, "", epoch, out)
        for member in members:
            target = target_of(group.targets[member.member_id])
            self._states.write(group, ConsumerRecordType.TARGET, member.member_id, target, out)
        target_epoch = ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=group.epoch)
        self._states.write(group, ConsumerRecordType.TARGET_EPOCH, "", target_epoch, out)
        for member in members:
            self._states.write(group, ConsumerRecordType.CURRENT, member.member_id, current_of(member), out)
            self._deadlines.keep_alive(self._states.live[group.group_id], member, now)
