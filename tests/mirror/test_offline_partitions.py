"""A partition without a leader, in the source or in the target, holds up no other: records, groups, the status."""

import asyncio
import contextlib
from collections.abc import Iterator

import pytest

from harness.patience import Deadline
from moldau.client.administration.admin import Admin
from moldau.client.producing.producer import Producer
from moldau.errors import KafkaError
from moldau.mirror.foreign import lane
from moldau.mirror.groups import sync_groups
from moldau.mirror.status import MirrorStatus, status
from moldau.names import TopicPartition
from moldau.testing import Broker, Cluster
from tests.mirror.foreign.foreign_mirroring import foreign_mirroring
from tests.mirror.mirroring import mirroring
from tests.mirror.test_failing_over import ALL

HERE, AWAY = TopicPartition("orders", 0), TopicPartition("orders", 1)


def fill(broker: Broker | Cluster, count: int, *partitions: TopicPartition) -> None:
    with Producer(broker.address) as producer:
        for tp in partitions:
            for number in range(count):
                producer.send(tp.topic, b"%d" % number, partition=tp.partition)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as made:
        yield made


@contextlib.contextmanager
def two(topic: str) -> Iterator[tuple[Cluster, Broker]]:
    """A cluster, and its broker that alone has partition 1 of a topic."""
    with Cluster(2, group_initial_rebalance_delay_ms=0) as cluster:
        with Admin(cluster.address) as admin:
            admin.create_topic(topic, assignment={0: [1], 1: [2]})
        yield cluster, cluster.brokers[1]


@pytest.mark.check
def test_a_lane_goes_on_without_a_partition_that_has_no_leader_in_the_source(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane, "UNLED_AGAIN_S", 0.1)

    async def scenario(cluster: Cluster, victim: Broker) -> None:
        async with foreign_mirroring(cluster.brokers[0].address, broker.address, "orders", lanes=1) as mirror:
            assert len(await mirror.until_equal(HERE)) == 10
            assert await mirror.until(lambda: mirror.worker.board.stopped.get(AWAY))
            await asyncio.to_thread(fill, cluster, 10, HERE)
            assert len(await mirror.until_equal(HERE)) == 20
            await asyncio.to_thread(victim.start)
            assert len(await mirror.until_equal(AWAY)) == 10

    with two("orders") as (cluster, victim):
        fill(cluster, 10, HERE, AWAY)
        victim.kill()
        asyncio.run(scenario(cluster, victim))


@pytest.mark.check
def test_groups_and_the_status_go_on_without_a_partition_that_has_no_leader_in_the_target(broker: Broker) -> None:
    broker.create_topic("orders", 2)
    fill(broker, 10, HERE, AWAY)

    async def scenario(cluster: Cluster) -> None:
        async with mirroring(broker, cluster, "orders") as mirror:
            for tp in (HERE, AWAY):
                await mirror.until_equal(tp)
            await mirror.stop()
            leaders = [await mirror.target.router.leader(tp) for tp in (HERE, AWAY)]
            assert leaders[0] != leaders[1]
            await asyncio.to_thread(cluster.brokers[leaders[1] - 1].kill)
            await mirror.source.admin.alter_group_offsets("billing", {HERE: 4, AWAY: 5})
            mirrors = {name: one.source for name, one in mirror.worker.copying.topics.items()}
            deadline = Deadline()
            while True:
                try:
                    synced = await sync_groups(mirror.source, mirror.target, mirrors, ALL)
                    break
                except KafkaError:  # as the worker, until the cluster knows that the broker is gone
                    assert not deadline.passed
            assert synced.changed == {"billing": 1}
            assert await status(mirror.source, mirror.target) == [
                MirrorStatus("orders", 0, 10, 10, 10, 0, 0.0),
                MirrorStatus("orders", 1, None, None, None, None, None),
            ]

    with Cluster(2, group_initial_rebalance_delay_ms=0) as cluster:
        asyncio.run(scenario(cluster))
