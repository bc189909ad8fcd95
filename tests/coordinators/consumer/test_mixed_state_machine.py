"""The same as for consumers by the consumer protocol, with classic members among them: groups go on to the consumer
protocol and back while members come and go, answers get lost, the log is slow and the coordinator dies between any two
steps.

Classic members are eager here: they give everything back before they join, and whoever leads deals out all there is.
"""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from harness.tiers import examples
from moldau.assignors import range_assign
from moldau.client.consuming.assigning import assignment_of, read_subscription
from moldau.coordinators.classic.messages import Join, Joined, Leaver, Sync, Synced
from moldau.coordinators.decision import Ticket
from moldau.errors import ErrorCode
from moldau.protocol.consumer import read_assignment, versioned
from tests.coordinators.consumer.scene import topic_id
from tests.coordinators.consumer.test_state_machine import HEARD_MS, REBALANCE_MS, SESSION_MS, ConsumersMachine, Place
from tests.coordinators.groups.scene import subscription

CLASSICS = ("x", "y", "z")
LOST = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION)


@dataclass
class Classic:
    """A classic member as it sees itself; `asked` is what it waits for."""

    name: str
    topics: tuple[str, ...]
    member_id: str = ""
    generation: int = -1
    owned: set[Place] = field(default_factory=set)
    is_settled: bool = False
    since_ms: int = 0
    asked: tuple[Ticket, int, str] | None = None

    def forgets(self) -> None:
        self.owned, self.is_settled = set(), False


class MixedMachine(ConsumersMachine):
    def __init__(self) -> None:
        super().__init__()
        self.classics: dict[str, Classic] = {}

    # -- classic members

    @rule(name=st.sampled_from(CLASSICS), topics=st.sets(st.sampled_from(("t", "u")), min_size=1))
    def classic_starts(self, name: str, topics: set[str]) -> None:
        if name not in self.classics:
            self.classics[name] = Classic(name, tuple(sorted(topics)), since_ms=self.stage.ms)

    @rule(name=st.sampled_from(CLASSICS))
    def classic_dies(self, name: str) -> None:
        self.classics.pop(name, None)

    @rule(name=st.sampled_from(CLASSICS))
    def classic_leaves(self, name: str) -> None:
        member = self.classics.pop(name, None)
        if member is not None and member.member_id:
            leavers = [Leaver(member.member_id, None)]
            out = self.stage.shard.leave("g", leavers, self.stage.ticket(), self.stage.now)
            self.stage.carry_out(out)

    @rule(name=st.sampled_from(CLASSICS))
    def classic_loses_an_answer(self, name: str) -> None:
        if name in self.classics:
            self.classics[name].asked = None

    @rule(name=st.sampled_from(CLASSICS))
    def classic_goes_on(self, name: str) -> None:
        """It does what is next for it: joins, syncs, or says that it is there."""
        member = self.classics.get(name)
        if member is None:
            return
        self._hear(member)
        if member.asked is not None:
            return
        if member.is_settled:
            self._beat_classic(member)
        else:
            self._join(member)
        self._hear(member)

    @rule()
    def all_classics_go_on(self) -> None:
        for name in list(self.classics):
            self.classic_goes_on(name)

    def _beat_classic(self, member: Classic) -> None:
        sent_ms, stage = self.stage.ms, self.stage
        error = stage.shard.heartbeat("g", member.generation, member.member_id, None, stage.now)
        if error is ErrorCode.NONE:
            member.since_ms = sent_ms
        elif error in LOST:
            member.forgets()
            if error is ErrorCode.UNKNOWN_MEMBER_ID:
                member.member_id = ""
        else:
            member.is_settled = False

    def _join(self, member: Classic) -> None:
        member.forgets()
        ask = Join(
            group_id="g",
            member_id=member.member_id,
            instance_id=None,
            client_id="c",
            client_host="/h",
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            protocol_type="consumer",
            protocols=(("range", subscription(*member.topics)),),
            can_wait_for_id=False,
            can_skip=True,
        )
        ticket = self.stage.ticket()
        member.asked = ticket, self.stage.ms, "join"
        self.stage.carry_out(self.stage.shard.join(ask, ticket, self.stage.now))

    def _sync(self, member: Classic, joined: Joined) -> None:
        known = {name: len(topic.partitions) for name, topic in self.stage.image.topics.items()}
        wanted = {one.member_id: read_subscription(one.metadata).topics for one in joined.members}
        shares = range_assign(wanted, known)
        ask = Sync(
            group_id="g",
            generation=joined.generation,
            member_id=member.member_id,
            instance_id=None,
            protocol_type="consumer",
            protocol="range",
            assignments={one: versioned(assignment_of(share), 1) for one, share in shares.items()},
        )
        ticket = self.stage.ticket()
        member.asked = ticket, self.stage.ms, "sync"
        self.stage.carry_out(self.stage.shard.sync(ask, ticket, self.stage.now))

    def _hear(self, member: Classic) -> None:
        """Take the answer that has come, and do what follows from it at once."""
        while member.asked is not None:
            ticket, sent_ms, what = member.asked
            if ticket not in self.stage.answers:
                if ticket not in self.stage.waiting:
                    member.asked = None  # nobody is there any more who could answer
                return
            answer: Any = self.stage.answers.pop(ticket)
            member.asked = None
            if answer.error is not ErrorCode.NONE:
                if answer.error is ErrorCode.UNKNOWN_MEMBER_ID:
                    member.member_id = ""
                member.forgets()
            elif isinstance(answer, Joined):
                member.member_id, member.generation = answer.member_id, answer.generation
                self._sync(member, answer)
            else:
                assert isinstance(answer, Synced) and what == "sync"
                member.since_ms, member.is_settled = sent_ms, True
                given = read_assignment(answer.assignment).assigned_partitions if answer.assignment else []
                member.owned = {(topic_id(one.topic), p) for one in given for p in one.partitions}
                self._stop_the_late()

    # -- time and the log

    def _stop_the_late(self) -> None:
        for member in self.classics.values():
            if self.stage.ms - member.since_ms >= HEARD_MS:
                member.owned = set()

    def _pass(self, ms: int) -> None:
        for member in self.classics.values():
            if self.stage.ms + ms - member.since_ms >= HEARD_MS:
                member.forgets()

    @rule(ms=st.sampled_from((1, 500, 3000)))
    def time_passes(self, ms: int) -> None:
        if hasattr(self, "stage"):
            self._pass(ms)
        for client in self.clients.values():
            if self.stage.ms + ms - client.since_ms >= HEARD_MS:
                client.owned, client.epoch, client.full = set(), 0, True
        self.stage.wait(ms)

    def leave_unread(self) -> None:
        """Classic members wait for what was parked."""

    @invariant()
    def nobody_owns_what_another_does(self) -> None:
        owners: dict[Place, str] = {}
        for one in [*getattr(self, "clients", {}).values(), *self.classics.values()]:
            for place in one.owned:
                assert place not in owners, f"{place} is {one.name}'s and {owners[place]}'s"
                owners[place] = one.name

    def teardown(self) -> None:
        """Left alone, and heard in time, the members of both protocols share everything they read."""
        if not hasattr(self, "stage") or not (self.clients or self.classics):
            return
        self.stage.holding = False
        self.stage.commit_held()
        for _ in range(80):
            self._pass(500)
            self.stage.wait(500)
            for client in self.clients.values():
                self.answered(client, self.asked(client.beat()))
                self.nobody_owns_what_another_does()
            self.all_classics_go_on()
            self.nobody_owns_what_another_does()
        topics = self.stage.image.topics
        members = [*self.clients.values(), *self.classics.values()]
        read = {name for one in members for name in one.topics if name in topics}
        wanted = {(topic_id(name), p) for name in read for p in range(len(topics[name].partitions))}
        if not (self.classics and self.stage.shard.classic.live.get("g")):
            assert {place for one in members for place in one.owned} == wanted


TestMixed = MixedMachine.TestCase
TestMixed.settings = settings(
    max_examples=examples(25, 40), stateful_step_count=40, suppress_health_check=[HealthCheck.too_slow]
)
