"""A mirror by MirrorMaker's rules: records exactly once, and what its clients read; refused where it would be wrong."""

import asyncio
import contextlib
import copy
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from moldau.client.administration.admin import Admin
from moldau.client.producing.producer import Producer
from moldau.errors import ConfigError
from moldau.mirror.foreign import lane
from moldau.mirror.foreign.copy_positions import lane_of
from moldau.mirror.foreign.foreign_status import foreign_status
from moldau.mirror.foreign.mirror_records import read_checkpoint, read_heartbeat, read_sync
from moldau.mirror.foreign.policy import ReplicationPolicy
from moldau.names import OffsetAndMetadata, TopicPartition
from moldau.testing import Broker
from tests.mirror.foreign.foreign_mirroring import ForeignMirroring, contents, foreign_mirroring, records_of

LATELY_MS = int(time.time() * 1000) - 100_000
"""Recent enough for every retention."""
Scenario = Callable[[ForeignMirroring], Awaitable[None]]


class Abandoned(Exception):
    """A transaction is to be aborted."""


@pytest.fixture(scope="module")
def clusters() -> Iterator[tuple[Broker, Broker]]:
    with Broker() as source, Broker() as target:
        yield source, target


@pytest.fixture
def own_clusters() -> Iterator[tuple[Broker, Broker]]:
    with Broker() as source, Broker() as target:
        yield source, target


def play(clusters: tuple[Broker, Broker], topics: str, scenario: Scenario, **changes: Any) -> None:
    async def played() -> None:
        async with foreign_mirroring(clusters[0].address, clusters[1].address, topics, **changes) as mirror:
            await scenario(mirror)

    asyncio.run(played())


def fill(broker: Broker, topic: str, count: int = 100, partition: int = 0, first: int = 0) -> None:
    with Producer(broker.address, acks="all", compression_type="lz4") as producer:
        for number in range(first, first + count):
            producer.send(
                topic,
                None if number % 7 == 3 else b"value %d" % number,
                key=None if number % 5 == 2 else b"%d" % number,
                partition=partition,
                headers=[("n", b"1"), ("none", None), ("n", b"2")] if number % 2 else [],
                timestamp_ms=LATELY_MS + number,
            )


def test_records_arrive_once_under_the_sources_alias_with_settings_and_committed_ones_only(
    clusters: tuple[Broker, Broker],
) -> None:
    source, _ = clusters
    source.create_topic("orders", 3, retention_ms=777_000_000, message_timestamp_type="CreateTime")
    for partition in range(3):
        fill(source, "orders", partition=partition)
    with Producer(source.address, transactional_id="t") as producer:
        for ends in ("aborted", "committed"):
            with contextlib.suppress(Abandoned), producer.transaction():
                for number in range(20):
                    producer.send("orders", f"{ends} {number}".encode(), partition=1)
                producer.flush()
                if ends == "aborted":
                    raise Abandoned

    async def scenario(mirror: ForeignMirroring) -> None:
        found = [await mirror.until_equal(TopicPartition("orders", partition)) for partition in range(3)]
        assert [len(one) for one in found] == [100, 120, 100]
        assert found[0][9] == (LATELY_MS + 9, b"9", b"value 9", [("n", b"1"), ("none", None), ("n", b"2")])
        assert {value for _, _, value, _ in found[1][100:]} == {b"committed %d" % n for n in range(20)}
        assert (await mirror.target.own_settings("A.orders"))["retention.ms"] == "777000000"
        told = mirror.worker.told()
        assert told.startswith("2 lanes, 320 records since the last line, "), told
        shown = await foreign_status(mirror.source, mirror.target, mirror.settings.policy)
        assert [(*one[:2], one.records) for one in shown if one.topic == "orders"] == [
            ("orders", 0, 0), ("orders", 1, 0), ("orders", 2, 0),
        ]  # fmt: skip

    play(clusters, "orders", scenario)


def test_a_topic_that_grows_does_so_in_the_target_and_new_ones_follow(clusters: tuple[Broker, Broker]) -> None:
    source, _ = clusters
    source.create_topic("growing", 1)
    fill(source, "growing", 10)

    async def scenario(mirror: ForeignMirroring) -> None:
        await mirror.until_equal(TopicPartition("growing", 0))
        await mirror.source.admin.create_partitions("growing", 3)
        await asyncio.to_thread(fill, source, "growing", 10, 2)
        await mirror.source.admin.alter_topic_configs("growing", {"retention.ms": 55_500_000, "min.insync.replicas": 1})
        await asyncio.to_thread(source.create_topic, "growing.more", 1)
        await asyncio.to_thread(fill, source, "growing.more", 10)
        await mirror.until_equal(TopicPartition("growing", 2))
        await mirror.until_equal(TopicPartition("growing.more", 0))
        assert await mirror.until_equal(TopicPartition("growing", 1)) == []

        async def is_configured() -> bool:
            return await mirror.target.own_settings("A.growing") == {"retention.ms": "55500000"}

        await mirror.until(is_configured)
        await mirror.source.admin.alter_topic_configs("growing", {"retention.ms": None})

        async def is_reset() -> bool:
            return not await mirror.target.own_settings("A.growing")

        await mirror.until(is_reset)

    play(clusters, "growing.*", scenario)


def test_groups_find_in_the_target_all_that_they_have_not_read(clusters: tuple[Broker, Broker]) -> None:
    source, _ = clusters
    source.create_topic("read", 1)
    tp, there = TopicPartition("read", 0), TopicPartition("A.read", 0)
    fill(source, "read", 250)

    async def scenario(mirror: ForeignMirroring) -> None:
        async def unread() -> int | None:
            """How many records the group would read in the target; None before it has a position there."""
            committed = await mirror.target.admin.group_offsets("billing")
            if there not in committed:
                return None
            return len(
                [one for one in await records_of(mirror.target, "A.read") if one.offset >= committed[there].offset]
            )

        async def told() -> Any:
            records = await records_of(mirror.target, "A.checkpoints.internal")
            return [read_checkpoint(one.key, one.value) for one in records]

        async def has_read_all() -> bool:
            return (await unread() or 0) <= 1

        await mirror.until_equal(tp)
        await mirror.source.admin.alter_group_offsets("billing", {tp: OffsetAndMetadata(120, "note")})
        await mirror.source.admin.alter_group_offsets("console-consumer-1", {tp: 250})
        assert 130 <= await mirror.until(unread) <= 130 + 101
        first, *_ = await told()
        assert first[:3] == ("billing", there, 120) and first.metadata == "note"
        await mirror.source.admin.alter_group_offsets("billing", {tp: 250})
        await mirror.until(has_read_all)
        assert {one.group for one in await told()} == {"billing"}
        syncs = [
            read_sync(one.key, one.value) for one in await records_of(mirror.target, "mm2-offset-syncs.A.internal")
        ]
        assert all(syncs) and tp in {sync.tp for sync in syncs if sync}

    play(clusters, "read", scenario, sync_groups=True)


def test_heartbeats_of_both_clusters_are_in_the_target(own_clusters: tuple[Broker, Broker]) -> None:
    async def scenario(mirror: ForeignMirroring) -> None:
        def clusters_in(topic: str) -> Callable[[], Awaitable[Any]]:
            async def named() -> Any:
                beats = [read_heartbeat(one.key, one.value) for one in await records_of(mirror.target, topic)]
                return {beat[:2] for beat in beats if beat}

            return named

        assert await mirror.until(clusters_in("heartbeats")) == {("A", "B")}
        assert await mirror.until(clusters_in("A.heartbeats")) == {("B", "A")}

    play(
        own_clusters,
        "nothing",
        scenario,
        policy=ReplicationPolicy("A", "B", is_identity=True),
        source_heartbeats=True,
    )


def test_a_topic_that_came_from_the_target_is_not_mirrored_back(own_clusters: tuple[Broker, Broker]) -> None:
    source, _ = own_clusters
    for topic in ("B.orders", "C.B.orders", "C.orders"):
        source.create_topic(topic, 1)

    async def scenario(mirror: ForeignMirroring) -> None:
        await mirror.until(lambda: len(mirror.worker.refused) == 2)
        assert mirror.worker.refused["B.orders"] == "B.orders came from the target 'B': it is not mirrored back"
        await mirror.until(lambda: set(mirror.worker.board.topics) == {"C.orders"})

    play(own_clusters, ".*", scenario)
    source.create_topic("B.heartbeats", 1)

    async def refused(mirror: ForeignMirroring) -> None:
        with pytest.raises(
            ConfigError, match=r"the source has the topic B\.heartbeats, so it is a mirror of the target"
        ):
            await mirror.until(lambda: False)

    play(own_clusters, ".*", refused, policy=ReplicationPolicy("A", "B", is_identity=True))


def test_workers_share_the_lanes_and_go_on_where_others_stopped(clusters: tuple[Broker, Broker]) -> None:
    source, _ = clusters
    source.create_topic("shared", 4)
    partitions = [TopicPartition("shared", number) for number in range(4)]

    async def scenario(mirror: ForeignMirroring) -> None:
        first = mirror.worker
        second = await mirror.start()
        await mirror.until(lambda: len(first.lanes.copies) == len(second.lanes.copies) == 1)
        for tp in partitions:
            await asyncio.to_thread(fill, source, "shared", 20, tp.partition)
        for tp in partitions:
            await mirror.until_equal(tp)
        await mirror.stop()
        await asyncio.to_thread(fill, source, "shared", 20, 1, 20)
        await mirror.start()
        assert len(await mirror.until_equal(partitions[1])) == 40

    play(clusters, "shared", scenario)


@pytest.mark.parametrize("how", ["foreign records", "source anew", "target anew"])
def test_a_mirror_whose_logs_are_others_than_before_stops_with_a_sentence(
    clusters: tuple[Broker, Broker], how: str
) -> None:
    source, target = clusters
    name = f"odd.{how.replace(' ', '.')}"
    tp = TopicPartition(name, 0)
    source.create_topic(name, 1)
    fill(source, name, 20)
    if how == "foreign records":
        target.create_topic(f"A.{name}", 1)
        fill(target, f"A.{name}", 1)

    def change() -> str:
        with Admin(source.address) as at_source, Admin(target.address) as at_target:
            if how == "foreign records":
                return "that this mirror has not written"
            if how == "target anew":
                at_target.delete_topic(f"A.{name}")
                target.create_topic(f"A.{name}", 1)
                fill(target, f"A.{name}", 1)
                return "was made anew in the target cluster and has records"
            at_source.delete_topic(name)
            source.create_topic(name, 1)
            fill(source, name, 30)
            return "was deleted and made again in the source cluster"

    async def before(mirror: ForeignMirroring) -> None:
        if how != "foreign records":
            await mirror.until_equal(tp)

    async def after(mirror: ForeignMirroring) -> None:
        why = await mirror.until(lambda: mirror.worker.board.stopped.get(tp))
        assert sentence in why, why
        # The way out that the sentence names:
        await mirror.target.admin.delete_topic(f"A.{name}")
        await mirror.until_equal(tp)

    play(clusters, f"{name}", before)
    sentence = change()
    play(clusters, f"{name}", after)


def test_positions_that_could_vanish_or_are_in_other_lanes_are_refused(own_clusters: tuple[Broker, Broker]) -> None:
    source, target = own_clusters
    source.create_topic("orders", 8)

    async def begin(mirror: ForeignMirroring) -> None:
        await mirror.until(lambda: mirror.worker.board.topics)

        async def has_positions() -> bool:
            found = [await records_of(mirror.target, "mm2-moldau-positions.A.internal", number) for number in (0, 1)]
            return sum(map(len, found)) == 8

        await mirror.until(has_positions)

    async def refused(mirror: ForeignMirroring) -> None:
        with pytest.raises(ConfigError, match=sentence):
            await mirror.until(lambda: False)

    play(own_clusters, "orders", begin)
    with Admin(target.address) as admin:
        admin.create_partitions("mm2-moldau-positions.A.internal", 3)
        sentence = "the topic once had another number of partitions"
        play(own_clusters, "orders", refused)
        admin.alter_topic_configs("mm2-moldau-positions.A.internal", {"cleanup.policy": "delete"})
        sentence = "has cleanup.policy=delete: set it to compact"
        play(own_clusters, "orders", refused)


def test_two_sources_of_one_alias_are_refused(own_clusters: tuple[Broker, Broker]) -> None:
    source, target = own_clusters
    source.create_topic("orders", 1)
    fill(source, "orders", 1)

    async def first(mirror: ForeignMirroring) -> None:
        await mirror.until_equal(TopicPartition("orders", 0))

    async def second(mirror: ForeignMirroring) -> None:
        with pytest.raises(ConfigError, match="give each source an alias of its own with --from-alias"):
            await mirror.until(lambda: False)

    play(own_clusters, "orders", first)
    with Broker() as other:
        play((other, target), "orders", second)


def test_two_workers_at_one_lane_do_no_harm(clusters: tuple[Broker, Broker], monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a pause of a worker that the others took for dead: the lane's transactional id is the later one's."""
    source, _ = clusters
    source.create_topic("doubled", 1)
    monkeypatch.setattr(lane, "FENCED_PAUSE_S", 0.05)  # each takes the lane back at once
    tp = TopicPartition("doubled", 0)

    async def scenario(mirror: ForeignMirroring) -> None:
        board = mirror.worker.board
        await asyncio.to_thread(fill, source, "doubled", 50)
        await mirror.until_equal(tp)
        rival = asyncio.ensure_future(lane.Lane(copy.copy(board), lane_of(tp, board.lanes)).run())
        try:
            for part in range(1, 10):
                await asyncio.to_thread(fill, source, "doubled", 50, 0, 50 * part)
            assert len(await mirror.until_equal(tp)) == 500
        finally:
            rival.cancel()
            await asyncio.gather(rival, return_exceptions=True)

    play(clusters, "doubled", scenario)


def test_records_that_the_target_does_not_take_stop_their_partition_only(clusters: tuple[Broker, Broker]) -> None:
    source, _ = clusters
    source.create_topic("dated", 2)
    with Producer(source.address) as producer:
        producer.send("dated", b"far", partition=0, timestamp_ms=int(time.time() * 1000) + 2_000_000)
    fill(source, "dated", 30, 1)

    with Broker({"log.message.timestamp.after.max.ms": "1000"}) as strict:

        async def scenario(mirror: ForeignMirroring) -> None:
            assert len(await mirror.until_equal(TopicPartition("dated", 1))) == 30
            stopped = mirror.worker.board.stopped
            assert "does not take its records" in await mirror.until(lambda: stopped.get(TopicPartition("dated", 0)))
            await asyncio.to_thread(fill, source, "dated", 30, 1, 30)
            assert len(await mirror.until_equal(TopicPartition("dated", 1))) == 60

        play((source, strict), "dated", scenario, lanes=1)


def test_a_topic_that_is_made_anew_in_the_source_while_it_is_mirrored_stops(clusters: tuple[Broker, Broker]) -> None:
    source, _ = clusters
    source.create_topic("remade", 1)
    fill(source, "remade", 20)
    tp = TopicPartition("remade", 0)

    async def scenario(mirror: ForeignMirroring) -> None:
        before = await mirror.until_equal(tp)
        await mirror.source.admin.delete_topic("remade")
        await asyncio.to_thread(source.create_topic, "remade", 1)
        await asyncio.to_thread(fill, source, "remade", 30, 0, 100)
        why = await mirror.until(lambda: mirror.worker.board.stopped.get(tp))
        assert "deleted" in why and "again" in why, why
        assert await contents(mirror.target, TopicPartition("A.remade", 0)) == before

    play(clusters, "remade", scenario)
