"""Deadlines of the members of consumer groups: sessions, revocations, and the classic protocol's joins and syncs. Pure.

Keys: (what is due, group id, member id).
"""

from moldau.coordinators.consumer.group import ConsumerGroup, ConsumerMember, Phase
from moldau.coordinators.consumer.messages import ConsumerGroupSettings
from moldau.coordinators.deadlines import Deadlines
from moldau.coordinators.decision import Now

SESSION, REVOKE, JOIN, SYNC = "session", "revoke", "join", "sync"
Key = tuple[str, str, str]


class MemberDeadlines:
    def __init__(self, settings: ConsumerGroupSettings):
        self._settings = settings
        self.all: Deadlines[Key] = Deadlines()

    def keep_alive(self, group: ConsumerGroup, member: ConsumerMember, now: Now) -> None:
        """The session starts again: a classic member's own timeout, or else the group's."""
        member = group.members.get(member.member_id, member)
        if member.classic is None:
            timeout_ms = self._settings.of_group(group.group_id).consumer_session_timeout_ms
        else:
            timeout_ms = member.classic.session_timeout_ms
        self.all.set((SESSION, group.group_id, member.member_id), now.monotonic_ms + timeout_ms)

    def begin(self, group: ConsumerGroup, member: ConsumerMember, now: Now) -> None:
        """As `keep_alive`, for a member without a session: one that has been heard since `now` keeps its own."""
        if (SESSION, group.group_id, member.member_id) not in self.all:
            self.keep_alive(group, member, now)

    def watch_revocation(self, group: ConsumerGroup, member: ConsumerMember, now: Now) -> None:
        """A member that has partitions to revoke does so within its rebalance timeout."""
        key = (REVOKE, group.group_id, member.member_id)
        if member.phase is Phase.UNREVOKED:
            self.all.set(key, now.monotonic_ms + max(member.rebalance_timeout_ms, 0))
        else:
            self.all.cancel(key)

    def expect_join(self, group: ConsumerGroup, member: ConsumerMember, now: Now) -> None:
        """A classic member was told to rejoin: it does so within its rebalance timeout, counted from the first time."""
        key = (JOIN, group.group_id, member.member_id)
        if key not in self.all:
            self.all.set(key, now.monotonic_ms + max(member.rebalance_timeout_ms, 0))

    def expect_sync(self, group: ConsumerGroup, member_id: str, timeout_ms: int, now: Now) -> None:
        """A classic member has joined: its SyncGroup comes within the timeout."""
        self.all.cancel((JOIN, group.group_id, member_id))
        self.all.set((SYNC, group.group_id, member_id), now.monotonic_ms + timeout_ms)

    def synced(self, group: ConsumerGroup, member_id: str) -> None:
        self.all.cancel((SYNC, group.group_id, member_id))

    def forget(self, group: ConsumerGroup, member_id: str) -> None:
        for what in (SESSION, REVOKE, JOIN, SYNC):
            self.all.cancel((what, group.group_id, member_id))

    def take(self, now: Now) -> Key | None:
        """The first deadline that has passed, once; None if none has."""
        return self.all.take(now.monotonic_ms)
