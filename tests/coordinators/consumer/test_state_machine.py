"""Whatever members do, and whenever the coordinator crashes or its log refuses: a partition has one owner at a time,
and a group whose members keep up their heartbeats gets to its target.

Members here keep to the protocol: they own what they are told until they are told otherwise, give back what they are
not given any more, and begin anew when they are fenced. Answers may get lost. What a member owns is what it believes.
"""

import uuid
from dataclasses import dataclass, field

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from harness.tiers import examples
from moldau.coordinators.consumer.group import ConsumerGroupState
from moldau.coordinators.consumer.messages import ConsumerHeartbeat, ConsumerHeartbeatReply
from moldau.coordinators.groups.settings import GroupCoordinatorSettings
from moldau.errors import ErrorCode
from tests.coordinators.consumer.scene import consumer_settings, topic_id, with_topic
from tests.coordinators.groups.scene import Stage

TOPICS = ("t", "u", "v")
NAMES = ("a", "b", "c", "d")
SESSION_MS, REBALANCE_MS = 10_000, 8_000
HEARD_MS = REBALANCE_MS // 2
"""A member that has heard nothing for this long stops. The coordinator counts `REBALANCE_MS` from the answer that asks
for partitions back, also if that answer is lost: the member may hear of it this much later, and go on for as long."""
Place = tuple[uuid.UUID, int]


@dataclass
class Client:
    """A member as it sees itself; `since_ms`: when it last heard that all is well."""

    name: str
    topics: tuple[str, ...]
    instance_id: str | None = None
    epoch: int = 0
    owned: set[Place] = field(default_factory=set)
    full: bool = True
    since_ms: int = 0

    def beat(self) -> ConsumerHeartbeat:
        owned: dict[uuid.UUID, frozenset[int]] = {}
        for topic, p in self.owned:
            owned[topic] = owned.get(topic, frozenset()) | {p}
        joins = self.epoch == 0
        return ConsumerHeartbeat(
            group_id="g",
            member_id=self.name,
            epoch=self.epoch,
            instance_id=self.instance_id,
            rebalance_timeout_ms=REBALANCE_MS if self.full else -1,
            topics=self.topics if self.full else None,
            owned={} if joins else owned,
            client_id="c",
            client_host="/h",
        )


class ConsumersMachine(RuleBasedStateMachine):
    @initialize(interval_ms=st.sampled_from((0, 1000)))
    def begin(self, interval_ms: int) -> None:
        consumer = consumer_settings({"session_timeout_ms": SESSION_MS, "assignment_interval_ms": interval_ms})
        self.stage = Stage(GroupCoordinatorSettings(consumer=consumer))
        self.stage.image = with_topic(self.stage.image, "t", 4)
        self.clients: dict[str, Client] = {}
        for name, topics, static in (("a", {"t"}, True), ("b", {"t", "u"}, False)):
            self.starts(name, topics, static)
            self.beats(name, False)

    @rule(name=st.sampled_from(NAMES), topics=st.sets(st.sampled_from(TOPICS), min_size=1), static=st.booleans())
    def starts(self, name: str, topics: set[str], static: bool) -> None:
        if name not in self.clients:
            instance_id = f"i-{name}" if static else None
            self.clients[name] = Client(name, tuple(sorted(topics)), instance_id, since_ms=self.stage.ms)

    @rule(name=st.sampled_from(NAMES), lost=st.booleans())
    def beats(self, name: str, lost: bool) -> None:
        client = self.clients.get(name)
        if client is not None:
            self.answered(client, self.asked(client.beat()), lost)

    @rule(losing=st.sampled_from((*NAMES, None, None)))
    def all_beat(self, losing: str | None) -> None:
        for name in list(self.clients):
            self.beats(name, name == losing)

    @rule(ms=st.sampled_from((500, 1000)), losing=st.sampled_from((*NAMES, None, None)))
    def all_beat_later(self, ms: int, losing: str | None) -> None:
        self.time_passes(ms)
        self.all_beat(losing)

    def asked(self, ask: ConsumerHeartbeat) -> ConsumerHeartbeatReply | None:
        """The answer; None if it waits for the log."""
        ticket = self.stage.ticket()
        self.stage.carry_out(self.stage.shard.beat(ask, ticket, self.stage.now))
        answer: ConsumerHeartbeatReply | None = self.stage.answers.pop(ticket, None)
        return answer

    def answered(self, client: Client, answer: ConsumerHeartbeatReply | None, lost: bool = False) -> None:
        if answer is None or lost:
            client.full = True
        elif answer.error in (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND):
            client.owned, client.epoch, client.full = set(), 0, True
        elif answer.error is ErrorCode.NONE:
            client.since_ms = self.stage.ms
            client.epoch, client.full = answer.epoch, False
            if answer.assignment is not None:
                client.owned = {(topic, p) for topic, given in answer.assignment.items() for p in given}
        else:
            client.full = True

    @rule(name=st.sampled_from(NAMES), topics=st.sets(st.sampled_from(TOPICS), min_size=1))
    def reads_other_topics(self, name: str, topics: set[str]) -> None:
        if name in self.clients:
            self.clients[name].topics, self.clients[name].full = tuple(sorted(topics)), True

    @rule(name=st.sampled_from(NAMES), for_now=st.booleans())
    def leaves(self, name: str, for_now: bool) -> None:
        client = self.clients.pop(name, None)
        if client is not None and client.epoch > 0:
            epoch = -2 if for_now and client.instance_id else -1
            self.asked(ConsumerHeartbeat(group_id="g", member_id=name, epoch=epoch, instance_id=client.instance_id))

    @rule(name=st.sampled_from(NAMES))
    def dies(self, name: str) -> None:
        self.clients.pop(name, None)

    @rule(topic=st.sampled_from(TOPICS), partitions=st.integers(0, 6))
    def topic_is(self, topic: str, partitions: int) -> None:
        there = self.stage.image.topics.get(topic)
        if partitions == 0 or there is None or partitions > len(there.partitions):
            self.stage.image = with_topic(self.stage.image, topic, partitions)

    @rule(ms=st.sampled_from((1, 500, 3000)))
    def time_passes(self, ms: int) -> None:
        """Members that have heard nothing for `HEARD_MS` stop: they must not be working any more."""
        for client in self.clients.values():
            if self.stage.ms + ms - client.since_ms >= HEARD_MS:
                client.owned, client.epoch, client.full = set(), 0, True
        self.stage.wait(ms)

    @rule()
    def crashes(self) -> None:
        self.stage.crash()
        self.stage.holding = False

    @rule()
    def log_is_slow(self) -> None:
        self.stage.holding = True

    @rule(taken=st.sampled_from(("all", "but for the first", "none")))
    def log_goes_on(self, taken: str) -> None:
        self.stage.holding = False
        if taken == "all":
            self.stage.commit_held()
        elif taken == "none" or not self.stage.held:
            self.stage.refuse_held(ErrorCode.NOT_ENOUGH_REPLICAS)
        else:
            self.stage.refuse_first(ErrorCode.NOT_ENOUGH_REPLICAS)
        self.leave_unread()

    def leave_unread(self) -> None:
        """Nobody waits for these answers any more."""
        self.stage.answers.clear()

    @invariant()
    def nobody_owns_what_another_does(self) -> None:
        owners: dict[Place, str] = {}
        for client in getattr(self, "clients", {}).values():
            for place in client.owned:
                assert place not in owners, f"{place} is {client.name}'s and {owners[place]}'s"
                owners[place] = client.name

    @invariant()
    def the_live_groups_are_what_replaying_gives(self) -> None:
        if not hasattr(self, "stage") or self.stage.held:
            return
        consumers = self.stage.shard.consumer
        assert consumers.live.keys() == consumers.stored.keys()
        for group_id, live in consumers.live.items():
            stored = consumers.stored[group_id].copy()
            assert (live.epoch, live.members, live.targets) == (stored.epoch, stored.members, stored.targets)
            assert live.owners == stored.owners

    def teardown(self) -> None:
        """Left alone, and heard in time, the members share everything they read."""
        if not hasattr(self, "stage") or not self.clients:
            return
        self.stage.holding = False
        self.stage.commit_held()
        self.stage.answers.clear()
        for _ in range(40):
            self.stage.wait(1000)
            for client in self.clients.values():
                self.answered(client, self.asked(client.beat()))
                self.nobody_owns_what_another_does()
        group = self.stage.shard.consumer.live["g"]
        assert group.members.keys() == self.clients.keys()
        assert group.state is ConsumerGroupState.STABLE
        topics = self.stage.image.topics
        read = {name for client in self.clients.values() for name in client.topics if name in topics}
        wanted = {(topic_id(name), p) for name in read for p in range(len(topics[name].partitions))}
        assert {place for client in self.clients.values() for place in client.owned} == wanted


TestConsumers = ConsumersMachine.TestCase
TestConsumers.settings = settings(
    max_examples=examples(50, 80), stateful_step_count=50, suppress_health_check=[HealthCheck.too_slow]
)
