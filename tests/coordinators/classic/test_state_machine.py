"""Whatever members do, in whatever order, with a slow log that may refuse and a broker that may die between any two
steps.

A hypothesis state machine plays members, strangers and administrators on the stage of `scene`, against a model so
simple that it cannot be wrong: the log. What must hold: replaying gives what was stored; what was acknowledged is
there after a crash; the offsets are those that stand last in the log, but for those of transactions that were aborted
or are open; no partition has two owners in one generation; generations only grow; everybody who asks is answered in the
end.
"""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, initialize, invariant, multiple, rule

from moldau.coordinators.classic.group import ClassicGroupState
from moldau.coordinators.classic.messages import Join, Joined, Leaver, Sync, Synced
from moldau.coordinators.decision import InternalRecord, Ticket, TransactionEnd
from moldau.coordinators.groups.records import read_record
from moldau.coordinators.offsets.messages import NewOffset, OffsetsToCommit, TransactionalOffsetCommit
from moldau.coordinators.offsets.records import OffsetRecord
from moldau.errors import ErrorCode
from moldau.names import TopicPartition
from tests.coordinators.groups.scene import TOPIC_ID, Stage, subscription
from tests.coordinators.groups.transactional_model import offsets_of
from tests.coordinators.settings import group_settings
from tests.coordinators.slow_log import REFUSALS, OnASlowLog

GROUPS = st.sampled_from(["g", "h"])
INSTANCES = st.sampled_from([None, None, "A", "B"])
PROTOCOLS = st.sampled_from(
    [
        (("range", subscription("t")),),
        (("range", subscription("t", "u")),),
        (("sticky", b""), ("range", subscription("t"))),
    ]
)


class GroupsUnderFire(OnASlowLog):
    """`known` are (group, member id, instance) that somebody was told; `owned` is who got what in which generation."""

    known = Bundle("known")

    @initialize(delay_ms=st.sampled_from([0, 3000]))
    def begin(self, delay_ms: int) -> None:
        settings = group_settings(
            initial_rebalance_delay_ms=delay_ms,
            max_size=4,
            offsets_retention_ms=300_000,
            offsets_retention_check_interval_ms=60_000,
        )
        self.stage = Stage(settings)
        self.asked: dict[Ticket, Any] = {}
        self.owned: dict[tuple[str, int], dict[str, str]] = {}
        self.acknowledged: dict[tuple[str, TopicPartition], int] = {}
        self.generations: dict[str, int] = {}
        self.commits = 0

    def _ask(self, what: Any) -> Ticket:
        ticket = self.stage.ticket()
        self.asked[ticket] = what
        return ticket

    # -- members

    @rule(target=known, group=GROUPS, instance=INSTANCES, protocols=PROTOCOLS, version=st.sampled_from([3, 5, 9]))
    def newcomer(self, group: str, instance: str | None, protocols: Any, version: int) -> Any:
        return self._join(group, "", instance, protocols, version)

    @rule(target=known, who=known, protocols=PROTOCOLS, version=st.sampled_from([3, 5, 9]))
    def rejoins(self, who: tuple[str, str, str | None], protocols: Any, version: int) -> Any:
        return self._join(*who, protocols, version)

    def _join(self, group: str, member: str, instance: str | None, protocols: Any, version: int) -> Any:
        ask = Join(
            group_id=group,
            member_id=member,
            instance_id=instance,
            client_id="c",
            client_host="/h",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=15_000,
            protocol_type="consumer",
            protocols=protocols,
            can_wait_for_id=version >= 4,
            can_skip=version >= 9,
        )
        self.stage.carry_out(self.stage.shard.classic.join(ask, self._ask(ask), self.stage.now))
        live = self.stage.shard.classic.live.get(group)
        ids = [] if live is None else [*live.members, *live.expected]
        return multiple(*((group, one, instance) for one in ids[-2:]))

    @rule(who=known, lag=st.sampled_from([0, 0, 0, 1]))
    def syncs(self, who: tuple[str, str, str | None], lag: int) -> None:
        group, member, instance = who
        live = self.stage.shard.classic.live.get(group)
        generation = (live.generation if live else 1) - lag
        everybody = list(live.members) if live else []
        ask = Sync(
            group_id=group,
            generation=generation,
            member_id=member,
            instance_id=instance,
            protocol_type=None,
            protocol=None,
            assignments={one: f"{one}'s part of {generation}".encode() for one in everybody},
        )
        self.stage.carry_out(self.stage.shard.classic.sync(ask, self._ask(ask), self.stage.now))

    @rule(group=GROUPS, protocols=PROTOCOLS, leader_too=st.booleans())
    def all_do_their_part(self, group: str, protocols: Any, leader_too: bool) -> None:
        """Members that follow the protocol: without them a random walk hardly ever gets a group stable."""
        live = self.stage.shard.classic.live.get(group)
        if live is None:
            return
        if live.state is ClassicGroupState.EMPTY and not live.expected:
            self._join(group, "", None, protocols, 3)
        if live.state is ClassicGroupState.PREPARING_REBALANCE:
            for member in [m for m in live.members.values() if m.join is None]:
                self._join(group, member.member_id, member.instance_id, member.protocols, 5)
            self.stage.wait(15_000)
        if live.state is ClassicGroupState.COMPLETING_REBALANCE:
            for member in list(live.members.values()):
                if leader_too or member.member_id != live.leader:
                    self.syncs((group, member.member_id, member.instance_id), 0)

    @rule(who=known)
    def beats(self, who: tuple[str, str, str | None]) -> None:
        group, member, instance = who
        live = self.stage.shard.classic.live.get(group)
        generation = live.generation if live else 0
        error = self.stage.shard.classic.heartbeat(group, generation, member, instance, self.stage.now)
        if error is ErrorCode.NONE:
            assert live is not None and member in live.members

    @rule(who=known, by_instance=st.booleans())
    def leaves(self, who: tuple[str, str, str | None], by_instance: bool) -> None:
        group, member, instance = who
        leaver = Leaver("", instance) if by_instance and instance is not None else Leaver(member, instance)
        self.stage.carry_out(self.stage.shard.classic.leave(group, [leaver], self._ask(None), self.stage.now))

    # -- offsets

    @rule(who=known, partition=st.integers(0, 2), simple=st.booleans())
    def commits_offsets(self, who: tuple[str, str, str | None], partition: int, simple: bool) -> None:
        group, member, instance = who
        live = self.stage.shard.classic.live.get(group)
        generation = -1 if simple or live is None else live.generation
        self.commits += 1
        ask = OffsetsToCommit(
            group_id=group,
            member_id="" if simple else member,
            instance_id=None if simple else instance,
            generation=generation,
            retention_ms=-1,
            offsets=[NewOffset(TopicPartition("t", partition), self.commits, -1, "", TOPIC_ID)],
        )
        self.stage.carry_out(self.stage.shard.commit(ask, self._ask(ask), self.stage.now))

    @rule(who=known, partition=st.integers(0, 2), simple=st.booleans(), producer=st.integers(1, 2))
    def commits_offsets_in_a_transaction(
        self, who: tuple[str, str, str | None], partition: int, simple: bool, producer: int
    ) -> None:
        group, member, instance = who
        live = self.stage.shard.classic.live.get(group)
        self.commits += 1
        ask = TransactionalOffsetCommit(
            group_id=group,
            producer_id=producer,
            epoch=0,
            member_id="" if simple else member,
            instance_id=None if simple else instance,
            generation=-1 if simple or live is None else live.generation,
            offsets=[NewOffset(TopicPartition("t", partition), self.commits, -1, "", TOPIC_ID)],
        )
        self.stage.carry_out(self.stage.shard.commit_in_transaction(ask, None, self._ask(None), self.stage.now))

    @rule(producer=st.integers(1, 2), commits=st.booleans())
    def a_transaction_ends(self, producer: int, commits: bool) -> None:
        ending = TransactionEnd(producer, 0, 0, commits, 2)
        self.stage.carry_out(self.stage.shard.end_transaction(ending, self._ask(ending), self.stage.now))

    @rule(group=GROUPS)
    def deletes_group(self, group: str) -> None:
        self.stage.carry_out(self.stage.shard.delete_groups([group], self._ask(None), self.stage.now))

    @rule(group=GROUPS, partition=st.integers(0, 2))
    def deletes_offset(self, group: str, partition: int) -> None:
        asked = [TopicPartition("t", partition)]
        self.stage.carry_out(self.stage.shard.delete_offsets(group, asked, self._ask(None), self.stage.now))

    # -- the world

    @rule()
    def broker_dies(self) -> None:
        self.look()
        before = self.stage.shard
        self.stage.crash()
        after = self.stage.shard
        assert after.classic.stored == before.classic.stored
        assert list(after.offsets.groups()) == list(before.offsets.groups()) or not self.stage.log
        assert all(after.offsets.of(group) == before.offsets.of(group) for group in before.offsets.groups())
        assert all(after.offsets.pending_of(group) == before.offsets.pending_of(group) for group in ("g", "h"))
        self.generations = {group: value.generation for group, value in after.classic.stored.items()}

    # -- what must hold

    @invariant()
    def look(self) -> None:
        if not hasattr(self, "stage"):
            return
        for ticket, answer in self.stage.answers.items():
            self._check(self.asked.pop(ticket), answer)
        self.stage.answers.clear()

    def _check(self, asked: Any, answer: Any) -> None:
        match asked, answer:
            case Join(), Joined(error=ErrorCode.NONE):
                assert answer.protocol in [name for name, _ in asked.protocols]
                assert answer.member_id and answer.leader
            case Sync(), Synced(error=ErrorCode.NONE):
                generation = self.owned.setdefault((asked.group_id, asked.generation), {})
                prefix = asked.member_id.partition("-")[0]  # a static member's id begins with its instance id
                who = prefix if prefix in ("A", "B") else asked.member_id
                assert generation.setdefault(answer.assignment.decode() or who, who) == who
            case OffsetsToCommit(), [ErrorCode.NONE]:
                offset = asked.offsets[0]
                key = (asked.group_id, offset.partition)
                assert offset.offset > self.acknowledged.get(key, 0)
                self.acknowledged[key] = offset.offset
            case TransactionEnd(), ErrorCode():
                assert answer is ErrorCode.NONE or answer in REFUSALS

    @invariant()
    def acknowledged_offsets_are_in_the_log(self) -> None:
        if not hasattr(self, "stage"):
            return
        written: dict[tuple[str, TopicPartition], int] = {}
        for record in self.stage.log:
            known = read_record(record) if isinstance(record, InternalRecord) else None
            if isinstance(known, OffsetRecord) and known.value is not None:
                written[known.group, known.partition] = known.value.offset
        assert all(written.get(key, 0) >= offset for key, offset in self.acknowledged.items())

    @invariant()
    def the_offsets_are_those_that_stand_last_in_the_log(self) -> None:
        if not hasattr(self, "stage"):
            return
        counts, waits = offsets_of(self.stage.log)
        offsets = self.stage.shard.offsets
        for group in ("g", "h"):
            ours = {(group, tp): value.offset for tp, value in offsets.of(group).items()}
            assert ours == {key: offset for key, offset in counts.items() if key[0] == group}
            assert {(group, tp) for tp in offsets.pending_of(group)} == {key for key in waits if key[0] == group}
            assert not offsets.has_any(group) or group in self.stage.shard.classic.live

    @invariant()
    def the_books_of_each_group_balance(self) -> None:
        if not hasattr(self, "stage"):
            return
        for group in self.stage.shard.classic.live.values():
            members = group.members.values()
            assert group.joining == sum(member.join is not None for member in members)
            assert group.statics == {m.instance_id: m.member_id for m in members if m.instance_id is not None}
            spoken = {name for member in members for name, _ in member.protocols}
            assert {name: sum(name in dict(m.protocols) for m in members) for name in spoken} == dict(group.offers)
            assert (group.state in (ClassicGroupState.EMPTY, ClassicGroupState.DEAD)) <= (not members)
            assert group.leader is None if not members else group.leader in group.members
            assert group.state is not ClassicGroupState.STABLE or not any(
                m.join is not None or m.sync is not None for m in members
            )
            assert not (group.expected.keys() & group.members.keys())
            if group.since_ms < 0:  # deleted while a commit was under way, which made it anew
                self.generations.pop(group.group_id, None)
            if group.state is not ClassicGroupState.DEAD:
                assert group.generation >= self.generations.get(group.group_id, 0)
                self.generations[group.group_id] = group.generation
        self.generations = {group: n for group, n in self.generations.items() if group in self.stage.shard.classic.live}

    def teardown(self) -> None:
        """In the end everybody is answered: time passes, and the log takes what it is given."""
        if not hasattr(self, "stage"):
            return
        self.stage.holding = False
        self.stage.commit_held()
        self.stage.wait(600_000)
        assert not self.stage.waiting
        self.look()
        self.broker_dies()


TestGroupsUnderFire = GroupsUnderFire.TestCase
