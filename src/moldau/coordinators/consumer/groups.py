"""The consumer groups (KIP-848) of one partition of the offsets topic, put together from their parts. Pure: time, new
ids and the image of the cluster's topics are arguments.

`group_states` holds what is stored and what is decided; `changes` are the steps that both protocols' members share;
`consumer_members` and `classic_members` handle requests, `large_heartbeats` those about very many topics; `departures`
and `upgrades` are the changes to and from classic groups. Source: KIP-848, and the answers of Apache Kafka 4.3, asked
one by one.
"""

from collections.abc import Callable, Iterable, Iterator

from moldau.cluster.state.image import Image
from moldau.coordinators.classic.group import ClassicGroup
from moldau.coordinators.consumer.changes import GroupChanges, Match
from moldau.coordinators.consumer.classic_members import ClassicMembers
from moldau.coordinators.consumer.consumer_members import ConsumerMembers
from moldau.coordinators.consumer.departures import Adopt, Departures
from moldau.coordinators.consumer.group import Phase
from moldau.coordinators.consumer.group_states import GroupStates
from moldau.coordinators.consumer.large_heartbeats import LargeHeartbeat, is_large
from moldau.coordinators.consumer.member_deadlines import REVOKE, Key, MemberDeadlines
from moldau.coordinators.consumer.messages import ConsumerGroupSettings, ConsumerHeartbeat, DescribedConsumerGroup
from moldau.coordinators.consumer.records import ConsumerGroupRecord
from moldau.coordinators.consumer.rights import check_commit, check_commit_in_transaction, described
from moldau.coordinators.consumer.upgrades import Upgrades
from moldau.coordinators.deadlines import Deadlines
from moldau.coordinators.decision import Decision, Now, Replies, Ticket
from moldau.coordinators.offsets.messages import OffsetsToCommit, TransactionalOffsetCommit
from moldau.errors import ErrorCode


class ConsumerGroups:
    """`adopt` takes over groups that become classic; `new_id` returns a string that it has never returned before.

    `stored` has the groups as the log has them, `live` as decided so far.
    """

    name = "consumer"

    def __init__(
        self,
        settings: ConsumerGroupSettings,
        new_id: Callable[[], str],
        image: Callable[[], Image],
        match: Match,
        adopt: Adopt,
    ):
        self._deadlines = MemberDeadlines(settings)
        self._states = GroupStates(self._deadlines)
        self.stored, self.live = self._states.stored, self._states.live
        self.changes = GroupChanges(settings, self._states, self._deadlines, image, match)
        self._departures = Departures(self._states, self.changes, image, adopt)
        self._upgrades = Upgrades(self._states, self.changes, self._deadlines, image)
        members = ConsumerMembers(self._states, self.changes, self._departures, new_id)
        classic = ClassicMembers(self._states, self.changes, self._departures, self._deadlines, image, new_id)
        self.beat = members.beat
        self._settings, self._image, self._match, self._new_id = settings, image, match, new_id
        self.join, self.sync, self.heartbeat, self.leave = classic.join, classic.sync, classic.heartbeat, classic.leave

    # -- large heartbeats

    def is_large(self, ask: ConsumerHeartbeat) -> bool:
        """Whether the heartbeat takes so much work that it is decided elsewhere."""
        return is_large(ask, self.live.get(ask.group_id), self._image(), self._match)

    def large(self, ask: ConsumerHeartbeat, now: Now) -> LargeHeartbeat:
        """The heartbeat with what it takes to decide about it elsewhere."""
        group, image = self.live.get(ask.group_id), self._image()
        return LargeHeartbeat(ask, group, image, self._settings, self._match, self._new_id, now)

    def fits(self, group_id: str, large: LargeHeartbeat) -> bool:
        """Whether the decision about a large heartbeat is still the right one."""
        return large.fits(self.live.get(group_id), self._image())

    def take_over(self, large: LargeHeartbeat, ticket: Ticket, now: Now) -> Decision:
        """The decision about a large heartbeat, which fits."""
        return large.take_over(self._states, self._deadlines, ticket, now)

    # -- from the log

    def apply(self, record: ConsumerGroupRecord, now: Now) -> Replies:
        """The record is committed, or read back."""
        self._states.apply(record)
        return []

    def start(self, now: Now, out: Decision) -> Iterator[int]:
        """Replay has ended: make the live groups."""
        yield from self._states.start(now)

    def stop(self, error: ErrorCode) -> Replies:
        """No member waits here for others, so nothing is answered."""
        return []

    # -- deadlines

    @property
    def deadlines(self) -> Deadlines[Key]:
        return self._deadlines.all

    def tick(self, now: Now) -> Decision | None:
        """Handle the first deadline that has passed; None if none has."""
        key = self._deadlines.take(now)
        if key is None:
            return None
        out = Decision()
        what, group_id, member_id = key
        group = self.live.get(group_id)
        member = group.members.get(member_id) if group is not None else None
        if group is None or member is None:
            return out
        if what != REVOKE or (member.phase is Phase.UNREVOKED and member.epoch >= 0):
            self._departures.fence(group, [member], now, out)
        return self.conclude(out, now)

    def conclude(self, out: Decision, now: Now) -> Decision:
        """The decision is complete: it depends on the earlier ones, and its answers wait for them."""
        return self._states.conclude(out, now)

    # -- offsets, deletion

    def check_commit(self, ask: OffsetsToCommit, now: Now) -> list[ErrorCode]:
        """One error or NONE for each offset."""
        return check_commit(self.live[ask.group_id], ask)

    def check_commit_in_transaction(self, ask: TransactionalOffsetCommit) -> list[ErrorCode]:
        """One error or NONE for each offset."""
        return check_commit_in_transaction(self.live[ask.group_id], ask)

    def check_delete(self, group_id: str) -> ErrorCode:
        """Whether the group can be deleted: only an empty one can."""
        return ErrorCode.NON_EMPTY_GROUP if self.live[group_id].members else ErrorCode.NONE

    def check_delete_offsets(self, group_id: str) -> ErrorCode:
        """Single offsets can always be deleted."""
        return ErrorCode.NONE

    def is_unused(self, group_id: str) -> bool:
        """Whether nothing but offsets keeps the group."""
        return self.is_empty(group_id)

    def delete(self, group_id: str, out: Decision) -> None:
        """Delete a group without members; the decision still has to be concluded."""
        self._states.delete(group_id, out)

    # -- from one kind to another

    def is_empty(self, group_id: str) -> bool:
        """Whether a group of another kind may take the group's place."""
        return not self.live[group_id].members

    def check_upgrade(self, group: ClassicGroup, ask: ConsumerHeartbeat) -> tuple[ErrorCode, str]:
        """Whether the classic group can become a consumer group for the member that joins, and why not."""
        return self._upgrades.check(group, ask)

    def upgrade(self, group: ClassicGroup, now: Now, out: Decision) -> None:
        """The classic group becomes a consumer group; the decision still has to be concluded."""
        self._upgrades.upgrade(group, now, out)

    # -- for reading

    def group_ids(self) -> Iterable[str]:
        """Groups that are stored, or decided on."""
        return dict.fromkeys((*self.stored, *self.live))

    def describe(self, group_id: str) -> DescribedConsumerGroup | None:
        """The group as it is stored; None if it does not exist."""
        group = self.stored.get(group_id)
        return None if group is None else described(group, self.changes.assignor(group))

    def listed(self, group_id: str) -> tuple[str, str] | None:
        """The stored group's protocol type and the name of its state; None if it does not exist."""
        group = self.stored.get(group_id)
        return None if group is None else ("consumer", group.state.value)
