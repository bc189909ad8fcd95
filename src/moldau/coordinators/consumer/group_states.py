"""The consumer groups of one partition, as the log has them and as decided since. Pure.

`stored` is what the log holds; `live` is `stored` plus the decisions whose records are not committed yet. Both change
only by `ConsumerGroup.apply`. Decisions build on one another, so they share a `DecisionChain`: if the log refuses one
of them, the later ones are not appended either, and `live` is made from `stored` again. The answer of a decision
without records waits for the last decision with records: no member learns of an epoch that a crash could take back.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from moldau.coordinators.consumer.group import ConsumerGroup
from moldau.coordinators.consumer.member_deadlines import MemberDeadlines
from moldau.coordinators.consumer.records import ConsumerGroupRecord, ConsumerRecordType, consumer_group_record
from moldau.coordinators.decision import Decision, DecisionChain, InternalRecord, Now
from moldau.errors import ErrorCode


class GroupStates:
    def __init__(self, deadlines: MemberDeadlines):
        self.stored: dict[str, ConsumerGroup] = {}
        self.live: dict[str, ConsumerGroup] = {}
        self._deadlines = deadlines
        self._started = False
        self._chain = DecisionChain()
        self._uncommitted = 0
        self._last: Decision | None = None

    def apply(self, record: ConsumerGroupRecord) -> None:
        """The record is committed, or read back."""
        _apply(self.stored, record)
        if self._started:
            self._uncommitted -= 1

    def start(self, now: Now) -> Iterator[int]:
        """Replay has ended: make the live groups. Each member has one session timeout to send a heartbeat."""
        assert not self._started
        self._started = True
        yield from self._revive(now)

    def _revive(self, now: Now) -> Iterator[int]:
        self._chain, self._uncommitted, self._last = DecisionChain(), 0, None
        self.live.clear()
        for group_id, stored in self.stored.items():
            group = self.live[group_id] = stored.copy()
            for member in group.members.values():
                self._deadlines.begin(group, member, now)
                self._deadlines.watch_revocation(group, member, now)
            yield 1 + len(group.members)

    def write(self, group: ConsumerGroup, what: ConsumerRecordType, name: str, value: Any, out: Decision) -> None:
        """Decide one record: it is in `out`, and applied to the live group. A value of None writes a tombstone."""
        record = ConsumerGroupRecord(what, group.group_id, name, value)
        out.records.append(consumer_group_record(record))
        self._uncommitted += 1
        _apply(self.live, record)

    def take_over(self, group: ConsumerGroup, records: Sequence[InternalRecord], out: Decision) -> None:
        """Decide these records, which are applied to the group already: it replaces the live one."""
        out.records += records
        self._uncommitted += len(records)
        self.live[group.group_id] = group

    def delete(self, group_id: str, out: Decision) -> None:
        """Delete a group without members; the decision still has to be concluded."""
        group = self.live[group_id]
        assert not group.members
        for expression in list(group.expressions):
            self.write(group, ConsumerRecordType.EXPRESSION, expression, None, out)
        if group.has_topics_record:
            self.write(group, ConsumerRecordType.TOPICS, "", None, out)
        self.write(group, ConsumerRecordType.TARGET_EPOCH, "", None, out)
        self.write(group, ConsumerRecordType.EPOCH, "", None, out)

    def conclude(self, out: Decision, now: Now) -> Decision:
        """The decision is complete: chain it to the earlier ones, and let its answers wait for them."""
        if out.records:
            chain = self._chain

            def undo(_error: ErrorCode, _then: Decision) -> None:
                # The first refusal of a chain takes all its decisions back.
                if not chain.broken:
                    self.undo(now)

            out.chain, self._last = chain, out
            out.undo.append(undo)
        elif self._uncommitted and self._last is not None:
            self._last.take_replies(out)
        return out

    def undo(self, now: Now) -> None:
        """Forget every decision that the log does not hold."""
        self._chain.broken = True
        for _ in self._revive(now):
            pass


def _apply(groups: dict[str, ConsumerGroup], record: ConsumerGroupRecord) -> None:
    group = groups.get(record.group)
    if record.kind is ConsumerRecordType.EPOCH and record.value is None:
        groups.pop(record.group, None)
    elif group is not None:
        group.apply(record)
    elif record.value is not None:
        group = groups[record.group] = ConsumerGroup(record.group)
        group.apply(record)
