"""One partition of the offsets topic: its groups and its offsets, changed by the same records. Pure, as both of them
are.

Here are the decisions that need both: a commit is a member's right and an offset's value; a group that goes takes its
offsets along. A group without members lives as long as it has offsets, or until the next round of forgetting.
"""

from collections.abc import Callable, Iterable

from moldau.coordinators.deadlines import Deadlines
from moldau.coordinators.exchange import Commit, GroupSettings
from moldau.coordinators.group import Group, State
from moldau.coordinators.group_records import GroupRecord, read_record
from moldau.coordinators.groups import Groups
from moldau.coordinators.offsets import Offsets
from moldau.coordinators.outcome import Now, Outcome, Record, Replies, Ticket
from moldau.errors import ErrorCode, ProtocolViolation
from moldau.names import TopicPartition


class GroupShard:
    """What `host.Host` runs for every partition of the offsets topic that this broker leads."""

    def __init__(self, settings: GroupSettings, new_id: Callable[[], str]):
        self.settings = settings
        self.groups = Groups(settings, new_id)
        self.offsets = Offsets(settings)
        self._forgetting: Deadlines[str] = Deadlines()

    def apply(self, record: Record, now: Now) -> Replies:
        """A record is committed, or read back; one that cannot be understood is passed over, and the rest stays up."""
        try:
            known = read_record(record)
        except ProtocolViolation:
            return []
        if known is None:
            return []
        if isinstance(known, GroupRecord):
            replies = self.groups.apply(known, now)
            if known.value is None and self.offsets.of(known.group):
                self.groups.ensure(known.group)
            return replies
        self.offsets.apply(known)
        if known.value is not None:
            self.groups.ensure(known.group)
        return []

    def start(self, now: Now) -> Outcome:
        out = self.groups.start(now)
        for group_id in self.offsets.groups():
            self.groups.ensure(group_id)
        self._forgetting.set("", now.ms + self.settings.offsets_retention_check_interval_ms)
        return out

    def next_ms(self) -> int | None:
        return min((ms for ms in (self.groups.next_ms(), self._forgetting.next_ms()) if ms is not None), default=None)

    def tick(self, now: Now) -> Outcome | None:
        if self._forgetting.take(now.ms) is None:
            return self.groups.tick(now)
        self._forgetting.set("", now.ms + self.settings.offsets_retention_check_interval_ms)
        return self.forget(now)

    def stop(self, error: ErrorCode) -> Replies:
        return self.groups.stop(error)

    # -- decisions that need both

    def commit(self, ask: Commit, ticket: Ticket, now: Now) -> Outcome:
        """The reply is a list of errors, one for each offset."""
        out = Outcome()
        error = self.groups.check_commit(ask.group_id, ask.generation, ask.member_id, ask.instance_id, now)
        if error is not ErrorCode.NONE:
            out.reply(ticket, [error] * len(ask.offsets))
            return out
        errors = self.offsets.commit(ask.group_id, ask.offsets, ask.retention_ms, now.stamp_ms, out)
        out.refuse(ticket, lambda refusal: [refusal if e is ErrorCode.NONE else e for e in errors])
        out.reply(ticket, errors)
        return out

    def delete_groups(self, group_ids: list[str], ticket: Ticket, now: Now) -> Outcome:
        """The reply is a list of errors, one for each group."""
        out = Outcome()
        errors, deleted = [], []
        for group_id in group_ids:
            error = self.groups.check_delete(group_id)
            if error is ErrorCode.NONE:
                self.offsets.delete_all(group_id, out)
                self.groups.delete(group_id, out)
                deleted.append(group_id)
            errors.append(error)
        out.reply(ticket, errors)

        def refused(error: ErrorCode) -> Replies:
            for group_id in deleted:
                self.groups.undelete(group_id)
            return [(ticket, [error if e is ErrorCode.NONE else e for e in errors])]

        out.refused = refused
        return out

    def delete_offsets(self, group_id: str, partitions: Iterable[TopicPartition], ticket: Ticket, now: Now) -> Outcome:
        """The reply is an error for the whole, and one for each partition."""
        out = Outcome()
        group = self.groups.live.get(group_id)
        if not group_id:
            out.reply(ticket, (ErrorCode.INVALID_GROUP_ID, []))
        elif group is None or group.state is State.DEAD:
            out.reply(ticket, (ErrorCode.GROUP_ID_NOT_FOUND, []))
        elif group.state is not State.EMPTY and not group.is_consumer:
            out.reply(ticket, (ErrorCode.NON_EMPTY_GROUP, []))
        else:
            errors = self.offsets.delete(group, partitions, out)
            out.refuse(ticket, lambda error: (error, []))
            out.reply(ticket, (ErrorCode.NONE, errors))
        return out

    def forget_topics(self, topics: frozenset[str], now: Now) -> Outcome:
        """The topics are deleted: so are the offsets that groups had in them."""
        out = Outcome()
        for group_id in self.offsets.groups():
            self.offsets.delete_topics(group_id, topics, out)
        return out

    def forget(self, now: Now) -> Outcome:
        """Offsets past their retention, and groups that have nothing left."""
        out = Outcome()
        gone: list[Group] = []
        for group in list(self.groups.live.values()):
            nothing_left = self.offsets.expire(group, now.stamp_ms, out)
            if nothing_left and not group.expected and self.groups.check_delete(group.group_id) is ErrorCode.NONE:
                self.groups.delete(group.group_id, out)
                gone.append(group)

        def refused(error: ErrorCode) -> Replies:
            for group in gone:
                self.groups.undelete(group.group_id)
            return []

        out.refused = refused
        return out
