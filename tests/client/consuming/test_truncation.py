"""Leader epochs (KIP-320) and reads from followers (KIP-392), against brokers whose log the test changes."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from harness.patience import Deadline, within
from moldau.client.consuming.async_consumer import AsyncConsumer
from moldau.client.consuming.truncation import LogTruncated
from moldau.errors import ErrorCode
from moldau.names import TopicPartition
from tests.client.scripted_cluster import TOPIC, ScriptedCluster

TP = TopicPartition(TOPIC, 0)


async def some(consumer: AsyncConsumer, count: int) -> list[int]:
    offsets: list[int] = []
    deadline = Deadline()
    while len(offsets) < count:
        assert not deadline.passed, offsets
        offsets += [record.offset for record in await consumer.poll(200)]
    return offsets


def play(scenario: Callable[[ScriptedCluster, AsyncConsumer], Awaitable[None]], **settings: object) -> None:
    async def run() -> None:
        async with (
            ScriptedCluster().running() as cluster,
            AsyncConsumer(cluster.bootstrap, **{"auto_offset_reset": "earliest", **settings}) as consumer,
        ):
            consumer.assign([TP])
            await scenario(cluster, consumer)

    async def limited() -> None:
        await within(run())

    asyncio.run(limited())


async def read_ten(cluster: ScriptedCluster, consumer: AsyncConsumer) -> None:
    """Ten records of two epochs are in the log, and read."""
    cluster.log, cluster.leader_epoch = [0] * 6 + [1] * 4, 1
    assert await some(consumer, 10) == list(range(10))


def test_a_new_leader_with_the_same_records_changes_nothing() -> None:
    async def scenario(cluster: ScriptedCluster, consumer: AsyncConsumer) -> None:
        await read_ten(cluster, consumer)
        cluster.leader_epoch = 2
        cluster.log += [2, 2]
        assert await some(consumer, 2) == [10, 11]

    play(scenario)


def test_a_consumer_goes_on_at_the_first_lost_record_if_a_reset_is_allowed() -> None:
    async def scenario(cluster: ScriptedCluster, consumer: AsyncConsumer) -> None:
        await read_ten(cluster, consumer)
        cluster.leader_epoch = 3
        cluster.log = [0] * 6 + [1] * 2 + [3] * 7
        assert await some(consumer, 7) == list(range(8, 15))

    play(scenario)


def test_a_truncation_is_an_error_with_its_offset_if_no_reset_is_allowed() -> None:
    async def scenario(cluster: ScriptedCluster, consumer: AsyncConsumer) -> None:
        consumer.seek(TP, 0)
        await read_ten(cluster, consumer)
        cluster.leader_epoch = 3
        cluster.log = [0] * 6 + [3] * 9
        for _ in range(2):
            with pytest.raises(LogTruncated) as truncated:
                await some(consumer, 1)
            assert (truncated.value.topic_partition, truncated.value.position, truncated.value.offset) == (TP, 10, 6)
            assert truncated.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
        consumer.seek(TP, 6)
        assert await some(consumer, 9) == list(range(6, 15))

    play(scenario, auto_offset_reset="none")


def test_a_leader_that_does_not_know_the_epoch_makes_the_position_be_found_anew() -> None:
    async def scenario(cluster: ScriptedCluster, consumer: AsyncConsumer) -> None:
        await read_ten(cluster, consumer)
        cluster.leader_epoch, cluster.knows_epochs = 3, False
        cluster.log = [3] * 3
        assert await some(consumer, 3) == [0, 1, 2]

    play(scenario)


def test_a_consumer_reads_from_the_replica_in_its_rack_and_asks_the_leader_for_the_rest() -> None:
    async def scenario(cluster: ScriptedCluster, consumer: AsyncConsumer) -> None:
        cluster.log, cluster.follower_end = [0] * 10, 8
        assert await some(consumer, 8) == list(range(8))
        assert cluster.fetched[0] == (1, 0)
        assert cluster.racks == {"near"}
        cluster.follower_end = 5  # it restarted, and is behind
        assert await some(consumer, 2) == [8, 9]
        assert (0, 8) in cluster.fetched

    play(scenario, client_rack="near")


def test_a_consumer_finds_a_replica_that_is_younger_than_its_metadata() -> None:
    async def run() -> None:
        scripted = ScriptedCluster()
        scripted.log, scripted.follower_end, scripted.is_shown = [0] * 10, 10, False
        async with (
            scripted.running() as cluster,
            AsyncConsumer(cluster.bootstrap, auto_offset_reset="earliest", client_rack="near") as consumer,
        ):
            consumer.assign([TP])
            assert await some(consumer, 10) == list(range(10))
            assert cluster.fetched[0] == (1, 0)

    asyncio.run(within(run()))


def test_a_consumer_without_a_rack_reads_from_the_leader() -> None:
    async def scenario(cluster: ScriptedCluster, consumer: AsyncConsumer) -> None:
        cluster.log, cluster.follower_end = [0] * 10, 8
        assert await some(consumer, 10) == list(range(10))
        assert {broker for broker, _ in cluster.fetched} == {0}

    play(scenario)
