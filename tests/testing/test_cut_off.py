"""A leader whose store and followers are away serves no clients, since another broker may lead by now; with either of
them it does."""

import time
from concurrent.futures import ThreadPoolExecutor
from math import inf
from typing import Self

import pytest

from harness.patience import stretched, wait_until
from harness.tiers import LONG
from moldau import Admin, Consumer, Producer, TopicPartition
from moldau.client.blocking import BlockingLink
from moldau.errors import ErrorCode, MoldauError, StorageError
from moldau.metadata_store.embedded_session import EmbeddedSession
from moldau.names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from moldau.peers.address import bootstrap_addresses
from moldau.protocol import apis
from moldau.protocol.messages.describe_groups import DescribeGroupsRequest
from moldau.protocol.messages.describe_transactions import DescribeTransactionsRequest
from moldau.protocol.messages.heartbeat import HeartbeatRequest
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from moldau.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from moldau.protocol.messages.list_groups import ListGroupsRequest
from moldau.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from moldau.replication.replica import Replica
from moldau.testing import Broker, Cluster
from moldau.testing import cluster as testing_cluster
from tests.testing.replicas import in_sync, leader_of, replicas

SESSION_S = 3.0
FOLLOWERS_WAIT_MS = 100
"""Far below half of the session's time-out, within which followers of an idle partition must ask again."""


class Away:
    """Whether the store answers no broker's `sync`."""

    def __init__(self) -> None:
        self.is_away = False


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Away:
    away = Away()

    async def sync(_: EmbeddedSession) -> None:
        if away.is_away:
            raise StorageError("the store is away")

    monkeypatch.setattr(EmbeddedSession, "sync", sync)
    monkeypatch.setattr(testing_cluster, "SESSION_S", SESSION_S)
    return away


def has_lease(broker: Broker) -> bool:
    assert broker._life is not None
    joined = broker._life._broker._joined
    assert joined is not None
    return joined.may_lead(inf)


def is_cut_off(replica: Replica) -> bool:
    return replica.is_cut_off


@pytest.mark.long  # its lease and the gaps between its followers' requests are real; worlds have them in virtual time
def test_a_leader_without_store_and_followers_serves_no_clients(store: Away, caplog: pytest.LogCaptureFixture) -> None:
    with Cluster(brokers=3, default_replication_factor=3, replica_fetch_wait_max_ms=FOLLOWERS_WAIT_MS) as cluster:
        cluster.create_topic("levels", partitions=1)
        with Admin(cluster.address) as admin:
            assert wait_until(lambda: in_sync(admin, "levels") == [[1, 2, 3]])
            leader = cluster.brokers[leader_of(admin, "levels") - 1]
        [replica] = [one for one in replicas(cluster, TopicPartition("levels", 0)) if one.leadership.leads]

        store.is_away = True
        assert wait_until(lambda: not has_lease(leader))
        idle_until = time.monotonic() + SESSION_S
        while time.monotonic() < idle_until:
            assert not is_cut_off(replica), "followers of an idle partition ask without naming it"
            time.sleep(0.01)
        with Producer(cluster.address, acks=1) as producer:
            assert producer.send("levels", "followers ask").result().offset == 0
        assert not is_cut_off(replica)

        for broker in cluster.brokers:
            if broker is not leader:
                broker.kill()
        assert wait_until(lambda: is_cut_off(replica))
        assert wait_until(lambda: "clients of 1 partition are refused: another broker may lead" in caplog.text)
        with Producer(leader.address, acks=1, delivery_timeout_ms=1000, request_timeout_ms=500) as producer:
            with pytest.raises(MoldauError):
                producer.send("levels", "lost").result()
        assert replica.log.log_end_offset == 1

        store.is_away = False
        assert wait_until(lambda: not is_cut_off(replica))
        with Producer(leader.address, acks=1) as producer:
            assert producer.send("levels", "the store answers").result().offset == 1
        with Consumer(leader.address) as consumer:
            consumer.assign([TopicPartition("levels", 0)])
            consumer.seek_to_beginning()
            assert wait_until(lambda: len(consumer.poll(timeout_ms=500)) > 0)


def test_a_group_coordinator_that_may_have_been_replaced_refuses_all_until_it_leads_for_certain(store: Away) -> None:
    with Cluster(brokers=3, group_initial_rebalance_delay_ms=600_000) as cluster:
        cluster.create_topic("levels")
        with Consumer(cluster.address, group_id="g", enable_auto_commit=False) as consumer:
            consumer.commit({TopicPartition("levels", 0): 7})
        coordinator = coordinating(cluster, OFFSETS_TOPIC)
        with Link(coordinator) as link, Link(coordinator) as parked, ThreadPoolExecutor(1) as waiting:
            assert link.committed() == (ErrorCode.NONE, 7)
            joined = waiting.submit(parked.join)
            assert wait_until(lambda: link.group_state() == "PreparingRebalance")
            leave_alone(cluster, coordinator, OFFSETS_TOPIC, store)
            assert joined.result(stretched()) == ErrorCode.NOT_COORDINATOR, (
                "it would miss the other members' heartbeats"
            )
            assert link.committed()[0] == ErrorCode.NOT_COORDINATOR, "another broker may have later offsets"
            assert link.beat() == ErrorCode.NOT_COORDINATOR
            assert link.call(apis.LIST_GROUPS, ListGroupsRequest()).groups == []
            store.is_away = False
            assert wait_until(lambda: link.committed() == (ErrorCode.NONE, 7))
            assert link.beat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_transaction_coordinator_that_may_have_been_replaced_refuses_all_until_it_leads_for_certain(
    store: Away,
) -> None:
    with Cluster(brokers=3) as cluster:
        with Producer(cluster.address, transactional_id="t") as producer, producer.transaction():
            producer.send("levels", "x").result()
        coordinator = coordinating(cluster, TRANSACTIONS_TOPIC)
        with Link(coordinator) as link:
            assert link.transaction() == ErrorCode.NONE
            leave_alone(cluster, coordinator, TRANSACTIONS_TOPIC, store)
            assert link.transaction() == ErrorCode.NOT_COORDINATOR
            begun_s = time.monotonic()
            assert link.begin() == ErrorCode.NOT_COORDINATOR
            assert not LONG or time.monotonic() - begun_s < 10, "it does not wait for followers that have gone"
            store.is_away = False
            assert wait_until(lambda: link.transaction() == ErrorCode.NONE)


def coordinating(cluster: Cluster, topic: str) -> Broker:
    """The broker that leads the only partition of this internal topic, once all replicas are in sync."""
    with Admin(cluster.address) as admin:
        assert wait_until(lambda: in_sync(admin, topic) == [[1, 2, 3]])
        return cluster.brokers[leader_of(admin, topic) - 1]


def leave_alone(cluster: Cluster, coordinator: Broker, topic: str, store: Away) -> None:
    """Take the store and the followers away from it."""
    [replica] = [one for one in replicas(cluster, TopicPartition(topic, 0)) if one.leadership.leads]
    store.is_away = True
    for broker in cluster.brokers:
        if broker is not coordinator:
            broker.kill()
    assert wait_until(lambda: is_cut_off(replica))


class Link(BlockingLink):
    """Asks one broker, whoever else may coordinate."""

    def __init__(self, broker: Broker):
        super().__init__(bootstrap_addresses(broker.address)[0], "raw", 60_000)
        self.versions._chosen |= {apis.OFFSET_FETCH.key: 8, apis.JOIN_GROUP.key: 3}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def committed(self) -> tuple[int, int]:
        """The error, and the offset that group g has committed, -1 if there is none."""
        topics = [OffsetFetchRequestTopics(name="levels", partition_indexes=[0])]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)])
        [group] = self.call(apis.OFFSET_FETCH, request).groups
        return group.error_code, max((p.committed_offset for t in group.topics for p in t.partitions), default=-1)

    def join(self) -> int:
        """The error; a group that is new waits for other members first."""
        request = JoinGroupRequest(
            group_id="new",
            session_timeout_ms=30_000,
            rebalance_timeout_ms=600_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range")],
        )
        return int(self.call(apis.JOIN_GROUP, request).error_code)

    def group_state(self) -> str:
        return str(self.call(apis.DESCRIBE_GROUPS, DescribeGroupsRequest(groups=["new"])).groups[0].group_state)

    def beat(self) -> int:
        request = HeartbeatRequest(group_id="new", generation_id=1, member_id="nobody")
        return int(self.call(apis.HEARTBEAT, request).error_code)

    def transaction(self) -> int:
        asked = DescribeTransactionsRequest(transactional_ids=["t"])
        return int(self.call(apis.DESCRIBE_TRANSACTIONS, asked).transaction_states[0].error_code)

    def begin(self) -> int:
        request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=60_000)
        return int(self.call(apis.INIT_PRODUCER_ID, request).error_code)
