"""Members that leave a consumer group, and its downgrade once only classic members remain (KIP-848). Pure."""

from collections.abc import Callable
from typing import TypeAlias

from moldau.cluster.state.image import Image
from moldau.coordinators.classic.group import ClassicGroup
from moldau.coordinators.consumer.changes import GroupChanges
from moldau.coordinators.consumer.group import ConsumerGroup, ConsumerGroupState, ConsumerMember
from moldau.coordinators.consumer.group_states import GroupStates
from moldau.coordinators.consumer.migration import CannotMigrate, classic_group_of
from moldau.coordinators.decision import Decision, Now

Adopt: TypeAlias = Callable[[ClassicGroup, bool, Now, Decision], None]
"""Takes over a group that has become classic; the flag says whether its members have their partitions already."""


class Departures:
    def __init__(self, states: GroupStates, changes: GroupChanges, image: Callable[[], Image], adopt: Adopt):
        self._states = states
        self._changes = changes
        self._image = image
        self._adopt = adopt

    def fence(self, group: ConsumerGroup, members: list[ConsumerMember], now: Now, out: Decision) -> None:
        """Remove the members. Their partitions are free once the others have reached the next epoch."""
        if not members or self.downgrade(group, members, now, out):
            return
        for member in members:
            self._changes.remove(group, member, out)
        for expression in dict.fromkeys(member.expression for member in members):
            self._changes.forget_expression(group, expression, out)
        self._changes.bump(group, out)

    def downgrade(self, group: ConsumerGroup, leaving: list[ConsumerMember], now: Now, out: Decision) -> bool:
        """Make the group classic if all members that stay speak the classic protocol; returns whether it did."""
        gone = {member.member_id for member in leaving}
        stay = [member for member in group.members.values() if member.member_id not in gone]
        settings = self._changes.settings
        if not stay or not settings.can_downgrade or len(stay) > settings.classic_max_size:
            return False
        if any(member.classic is None for member in stay):
            return False
        try:
            classic = classic_group_of(group, stay, self._image())
        except CannotMigrate:
            return False
        is_settled = not leaving and group.state is ConsumerGroupState.STABLE
        for member in list(group.members.values()):
            self._changes.remove(group, member, out)
        self._states.delete(group.group_id, out)
        self._adopt(classic, is_settled, now, out)
        return True
