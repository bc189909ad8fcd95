"""Leader epochs (KIP-320) and reads from followers (KIP-392), against brokers whose log the test changes."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from harness.patience import Deadline, within
from moldau.client.consuming.async_consumer import AsyncConsumer
from moldau.client.consuming.fetched.record import Record
from moldau.errors import ErrorCode, LogTruncated, NotAssigned
from moldau.names import OffsetAndMetadata, TopicPartition
from moldau.protocol.apis import OFFSET_FOR_LEADER_EPOCH, Api
from tests.client.scripted_cluster import OFFERED, TOPIC, ScriptedCluster

TP = TopicPartition(TOPIC, 0)
OLD_APIS = tuple(api for api in OFFERED if api is not OFFSET_FOR_LEADER_EPOCH)


async def records(consumer: AsyncConsumer, count: int) -> list[Record]:
    found, deadline = list[Record](), Deadline()
    while len(found) < count:
        assert not deadline.passed, found
        found += await consumer.poll(200)
    return found


async def some(consumer: AsyncConsumer, count: int) -> list[int]:
    return [record.offset for record in await records(consumer, count)]


def play(
    scenario: Callable[[ScriptedCluster, AsyncConsumer], Awaitable[None]],
    offered: tuple[Api, ...] = OFFERED,
    **settings: object,
) -> None:
    async def run() -> None:
        scripted = ScriptedCluster()
        scripted.offered = offered
        async with (
            scripted.running() as cluster,
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


def test_records_that_nobody_has_seen_yet_are_fetched_again_if_the_new_leader_lacks_them() -> None:
    async def scenario(cluster: ScriptedCluster, consumer: AsyncConsumer) -> None:
        cluster.log, cluster.leader_epoch = [0] * 6 + [1] * 4, 1
        seen: list[tuple[int, int | None]] = []
        while len(seen) < 7:
            seen += [(r.offset, r.leader_epoch) for r in await consumer.poll(200, max_records=7 - len(seen))]
        cluster.leader_epoch, cluster.log = 3, [0] * 6 + [1] * 2 + [3] * 4
        while seen[-1][0] < 11:
            seen += [(r.offset, r.leader_epoch) for r in await consumer.poll(200, max_records=1)]
            await asyncio.sleep(0.05)  # so that the change of leaders is heard of while old records wait to be read
        old = [place for place in seen if place[1] == 1 and place[0] >= 8]
        assert seen == [(n, 0) for n in range(6)] + [(6, 1), (7, 1), *old] + [(n, 3) for n in range(8, 12)]

    play(scenario)


def test_a_log_without_the_epoch_of_a_record_lacks_the_record_however_long_it_is() -> None:
    async def scenario(cluster: ScriptedCluster, consumer: AsyncConsumer) -> None:
        await read_ten(cluster, consumer)
        cluster.leader_epoch, cluster.log = 3, [0] * 12 + [3] * 2
        found = [(record.offset, record.leader_epoch) for record in await records(consumer, 8)]
        assert found == [(n, 0) for n in range(6, 12)] + [(12, 3), (13, 3)]

    play(scenario)


def test_a_log_from_which_compaction_removed_the_record_and_its_epoch_has_lost_nothing() -> None:
    async def scenario(cluster: ScriptedCluster, consumer: AsyncConsumer) -> None:
        cluster.log, cluster.leader_epoch, cluster.gone = [2] * 12 + [4] * 3, 4, {7, 8, 9, 10, 11}
        consumer.seek(TP, OffsetAndMetadata(10, leader_epoch=3))
        assert await some(consumer, 3) == [12, 13, 14]

    play(scenario, auto_offset_reset="none")


def test_a_position_is_compared_once_for_each_leader() -> None:
    async def scenario(cluster: ScriptedCluster, consumer: AsyncConsumer) -> None:
        cluster.log, cluster.leader_epoch = [0] * 6, 0
        consumer.seek(TP, OffsetAndMetadata(2, leader_epoch=0))
        assert await some(consumer, 4) == [2, 3, 4, 5]
        assert cluster.compared == [(0, 0)]
        cluster.leader_epoch, cluster.log = 1, [0] * 6 + [1] * 2
        assert await some(consumer, 2) == [6, 7]
        assert cluster.compared == [(0, 0), (0, 1)]
        consumer.seek(TP, 2)
        assert await some(consumer, 6) == list(range(2, 8))
        assert len(cluster.compared) == 2, "a number without an epoch cannot be compared"

    play(scenario)


def test_metadata_that_are_older_than_the_position_are_asked_for_again() -> None:
    async def scenario(cluster: ScriptedCluster, consumer: AsyncConsumer) -> None:
        cluster.log, cluster.leader_epoch = [0] * 6, 0
        consumer.seek(TP, OffsetAndMetadata(8, leader_epoch=1))
        assert await consumer.poll(300) == []
        assert set(cluster.compared) == {(1, 1)}, "the leader is asked whether it leads in that epoch yet"
        cluster.leader_epoch, cluster.log = 1, [0] * 6 + [1] * 4
        assert await some(consumer, 2) == [8, 9]

    play(scenario, auto_offset_reset="none")


def test_a_position_of_a_topic_that_was_made_anew_since_is_found_as_after_any_offset_out_of_range(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("moldau.client.consuming.fetched.truncation.AHEAD_S_MAX", 0.2)

    async def scenario(cluster: ScriptedCluster, consumer: AsyncConsumer) -> None:
        cluster.log, cluster.leader_epoch = [0] * 20, 0
        consumer.seek(TP, OffsetAndMetadata(15, leader_epoch=4))
        assert await some(consumer, 20) == list(range(20))

    play(scenario)


def test_a_reply_that_leaves_a_partition_out_is_asked_for_again_after_a_pause() -> None:
    async def scenario(cluster: ScriptedCluster, consumer: AsyncConsumer) -> None:
        cluster.log, cluster.leader_epoch, cluster.left_out = [0] * 6, 0, 3
        consumer.seek(TP, OffsetAndMetadata(2, leader_epoch=0))
        assert await consumer.position(TP) == 2
        assert await some(consumer, 4) == [2, 3, 4, 5]
        assert len(cluster.compared) == 4
        assert consumer._router.retries.latest.startswith("comparing the position in t-0 with its leader")

    play(scenario)


def test_brokers_that_cannot_compare_are_believed() -> None:
    async def scenario(cluster: ScriptedCluster, consumer: AsyncConsumer) -> None:
        cluster.log, cluster.leader_epoch = [0] * 6, 0
        consumer.seek(TP, OffsetAndMetadata(2, leader_epoch=0))
        assert await some(consumer, 4) == [2, 3, 4, 5]
        assert cluster.compared == []

    play(scenario, offered=OLD_APIS)


def test_a_position_is_told_where_brokers_give_no_leader_epochs() -> None:
    async def scenario(cluster: ScriptedCluster, consumer: AsyncConsumer) -> None:
        cluster.log, cluster.leader_epoch = [0] * 6, -1
        consumer.seek(TP, OffsetAndMetadata(2, leader_epoch=0))
        turns, ask = 0, consumer._poller.check

        async def check(partitions: list[TopicPartition]) -> bool:
            nonlocal turns
            turns += 1
            assert turns < 10, "it turns for ever"
            return await ask(partitions)

        consumer._poller.check = check  # type: ignore[method-assign]
        assert await consumer.position(TP) == 2
        assert await some(consumer, 4) == [2, 3, 4, 5]

    play(scenario, offered=OLD_APIS)


def test_a_position_that_is_lost_while_others_are_compared_is_found_again() -> None:
    async def scenario(cluster: ScriptedCluster, consumer: AsyncConsumer) -> None:
        await read_ten(cluster, consumer)
        ask = consumer._poller.check

        async def check(partitions: list[TopicPartition]) -> bool:
            consumer._poller.check = ask  # type: ignore[method-assign]
            found = await ask(partitions)
            consumer._poller.state(TP).lose_position(out_of_range=True)  # as a Fetch meanwhile may
            return found

        consumer._poller.check = check  # type: ignore[method-assign]
        assert await consumer.position(TP) == 0

    play(scenario)


def test_a_partition_that_is_given_up_while_its_position_is_looked_for_is_not_assigned() -> None:
    async def scenario(cluster: ScriptedCluster, consumer: AsyncConsumer) -> None:
        await read_ten(cluster, consumer)
        ask = consumer._poller.check

        async def check(partitions: list[TopicPartition]) -> bool:
            consumer._poller.assign([])  # as a rebalance meanwhile may
            return await ask(partitions)

        consumer._poller.check = check  # type: ignore[method-assign]
        with pytest.raises(NotAssigned):
            await consumer.position(TP)

    play(scenario)


def test_a_position_behind_an_epoch_whose_records_were_all_compacted_away_is_in_the_log() -> None:
    async def scenario(cluster: ScriptedCluster, consumer: AsyncConsumer) -> None:
        cluster.log, cluster.leader_epoch, cluster.gone = [2] * 7 + [3] * 3 + [4] * 3, 4, {7, 8, 9}
        consumer.seek(TP, 0)
        async for record in consumer:
            if record.offset == 6:
                break
        positions = await consumer.positions()
        assert positions == {TP: OffsetAndMetadata(10, leader_epoch=4)}, "the next record, which is fetched already"
        cluster.leader_epoch = 5
        consumer.seek(TP, positions[TP])
        assert await some(consumer, 3) == [10, 11, 12]

    play(scenario, auto_offset_reset="none")


def test_an_acknowledged_record_that_was_lost_covers_none_that_took_its_place() -> None:
    async def scenario(cluster: ScriptedCluster, consumer: AsyncConsumer) -> None:
        await read_ten(cluster, consumer)
        consumer.acknowledge({TP: 10})
        cluster.leader_epoch, cluster.log = 3, [0] * 6 + [3] * 9
        assert await some(consumer, 1) == list(range(6, 15))
        consumer.acknowledge({TP: 16})
        assert consumer._commits.processed() == {TP: OffsetAndMetadata(6, leader_epoch=0)}

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
