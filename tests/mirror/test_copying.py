"""A mirror has the bytes of its source: records, offsets, gaps, markers; and goes on where it was."""

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from moldau.client.administration.admin import Admin
from moldau.client.consuming.consumer import Consumer
from moldau.client.producing.producer import Producer
from moldau.errors import ConfigError, InvalidRequest
from moldau.handlers.cluster import api_versions
from moldau.mirror.ends import ClusterEnd, source_of
from moldau.mirror.requests import Appending, append, by_leader
from moldau.mirror.status import status
from moldau.names import TopicPartition
from moldau.records.batch import Row, batches, encode_batch, place
from moldau.testing import Broker
from tests.mirror.mirroring import Mirroring, log_of, mirroring

SOME_ID = uuid.UUID(int=5)
Scenario = Callable[[Mirroring], Awaitable[None]]


class Abandoned(Exception):
    """A transaction is to be aborted."""


@pytest.fixture(scope="module")
def clusters() -> Iterator[tuple[Broker, Broker]]:
    with Broker() as source, Broker() as target:
        yield source, target


def play(clusters: tuple[Broker, Broker], topics: str, scenario: Scenario) -> None:
    async def played() -> None:
        async with mirroring(*clusters, topics) as mirror:
            await scenario(mirror)

    asyncio.run(played())


def fill(broker: Broker, topic: str, count: int = 100, partition: int = 0) -> None:
    with Producer(broker.address, acks="all", compression_type="lz4") as producer:
        for number in range(count):
            producer.send(topic, b"value %d" % number, key=b"%d" % number, partition=partition, headers=[("n", b"1")])


def test_records_of_all_partitions_are_there_with_settings_and_transactions(clusters: tuple[Broker, Broker]) -> None:
    source, target = clusters
    source.create_topic("orders", 3, retention_ms=777_000, cleanup_policy="delete")
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

    async def scenario(mirror: Mirroring) -> None:
        await mirror.until(lambda: len(mirror.worker.copying.copies) == 3)
        for partition in range(3):
            assert len(await mirror.until_equal(TopicPartition("orders", partition))) > 500
        told = mirror.worker.told()
        assert told.startswith("3 partitions, ") and told.endswith(" bytes since the last line, 0 records behind"), told
        settings = await mirror.target.own_settings("orders")
        assert settings["retention.ms"] == "777000" and settings["mirror.source"].startswith(mirror.source.cluster_id)
        shown = await status(mirror.source, mirror.target)
        assert {(one.partition, one.records, one.seconds) for one in shown if one.topic == "orders"} == {
            (0, 0, 0.0), (1, 0, 0.0), (2, 0, 0.0),
        }  # fmt: skip

    play(clusters, "orders", scenario)
    read = []
    for broker in clusters:
        with Consumer(broker.address, isolation_level="read_committed", auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition("orders", 1)])
            rows: list[Any] = []
            while len(rows) < 120:
                rows += consumer.poll()
            read.append([(one.offset, one.timestamp_ms, one.key, one.value, one.headers) for one in rows])
    assert read[0] == read[1]
    with Producer(target.address) as producer, pytest.raises(InvalidRequest, match="is a mirror"):
        producer.send("orders", b"x", partition=0).result()


def test_a_mirror_goes_on_where_its_log_ends_whoever_works(clusters: tuple[Broker, Broker]) -> None:
    source, target = clusters
    source.create_topic("resumed", 1)
    tp = TopicPartition("resumed", 0)

    async def scenario(mirror: Mirroring) -> None:
        for _ in range(3):
            await asyncio.to_thread(fill, source, "resumed")
            await mirror.until_equal(tp)
            await mirror.stop()
            await asyncio.to_thread(fill, source, "resumed")
            mirror.start()
            await mirror.until_equal(tp)
        await asyncio.to_thread(target.kill)
        await asyncio.to_thread(fill, source, "resumed")
        await asyncio.to_thread(target.start)
        await mirror.until_equal(tp)
        await asyncio.to_thread(source.restart)
        await asyncio.to_thread(fill, source, "resumed")
        await mirror.until_equal(tp)
        assert not mirror.stopped(tp)

    play(clusters, "resumed", scenario)


def test_gaps_stay_and_a_mirror_may_be_mirrored_on(clusters: tuple[Broker, Broker]) -> None:
    source, _ = clusters
    elsewhere = source_of("another", SOME_ID)
    source.create_topic("gaps", 1, mirror_source=elsewhere)
    tp = TopicPartition("gaps", 0)
    sent = bytearray()
    for offset in (0, 10, 500, 501):
        batch = encode_batch([Row(b"k", b"v" * 50, 1_000)])
        place(batch, offset, 0)
        sent += batch

    async def scenario(mirror: Mirroring) -> None:
        await mirror.source.topics()
        leader = await mirror.source.router.leader(tp)
        await append(mirror.source.router, leader, {tp: Appending(elsewhere, 0, 0, memoryview(sent))})
        assert await mirror.until_equal(tp) == sent
        assert [header.base_offset for _, header in batches(await log_of(mirror.target, tp))] == [0, 10, 500, 501]

    play(clusters, "gaps", scenario)


def test_a_mirror_starts_where_its_source_does(clusters: tuple[Broker, Broker]) -> None:
    source, _ = clusters
    source.create_topic("deleted", 1)
    tp = TopicPartition("deleted", 0)
    fill(source, "deleted")

    async def scenario(mirror: Mirroring) -> None:
        await mirror.source.admin.delete_records({tp: 37})  # within a batch, before the mirror is there
        await mirror.until_equal(tp)

        async def starts_at(offset: int) -> bool:
            while (await mirror.target.admin.watermarks("deleted"))[tp] != (offset, 100):
                await asyncio.sleep(0.01)
            return True

        assert await asyncio.wait_for(starts_at(37), 60)
        await mirror.source.admin.delete_records({tp: 90})
        assert await asyncio.wait_for(starts_at(90), 60)
        assert not mirror.stopped(tp)

    play(clusters, "deleted", scenario)


def test_partitions_and_settings_follow_the_source(clusters: tuple[Broker, Broker]) -> None:
    source, _ = clusters
    source.create_topic("grown", 1, retention_ms=5_000_000)

    async def scenario(mirror: Mirroring) -> None:
        await mirror.until(lambda: "grown" in mirror.worker.copying.topics)
        await mirror.source.admin.create_partitions("grown", 3)
        await mirror.source.admin.alter_topic_configs("grown", {"retention.ms": None, "max.message.bytes": 70_000})
        await asyncio.to_thread(fill, source, "grown", 10, 2)
        await mirror.until_equal(TopicPartition("grown", 2))
        while "retention.ms" in (settings := await mirror.target.own_settings("grown")):
            await asyncio.sleep(0.01)
        assert settings["max.message.bytes"] == "70000"

    play(clusters, "grown", scenario)


def test_a_topic_that_was_deleted_and_made_anew_is_not_taken_for_the_old_one(clusters: tuple[Broker, Broker]) -> None:
    source, _ = clusters
    source.create_topic("anew", 1)
    tp = TopicPartition("anew", 0)
    fill(source, "anew", 5)

    async def scenario(mirror: Mirroring) -> None:
        before = await mirror.until_equal(tp)
        await mirror.source.admin.delete_topic("anew")
        await asyncio.to_thread(source.create_topic, "anew", 1)
        await asyncio.to_thread(fill, source, "anew", 50)
        await mirror.until(lambda: "an earlier topic of this name" in mirror.worker.refused.get("anew", ""))
        assert await log_of(mirror.target, tp) == before

    play(clusters, "anew", scenario)


def test_a_source_that_lost_records_is_not_followed(clusters: tuple[Broker, Broker]) -> None:
    """Its mirror has records that it has not: as after an unclean election, or a disk that was restored."""
    source, _ = clusters
    for topic in ("shorter", "other"):
        source.create_topic(topic, 1)
        fill(source, topic, 5)

    async def scenario(mirror: Mirroring) -> None:
        for topic in ("shorter", "other"):
            tp = TopicPartition(topic, 0)
            await mirror.until_equal(tp)
        await mirror.stop()
        for topic in ("shorter", "other"):
            tp = TopicPartition(topic, 0)
            more = encode_batch([Row(b"k", b"lost", 1_000)])
            place(more, 5, 0)
            target, setting = mirror.target, (await mirror.target.own_settings(topic))["mirror.source"]
            answer = await append(
                target.router, await target.router.leader(tp), {tp: Appending(setting, 5, -1, memoryview(more))}
            )
            assert not answer[tp].error
        await asyncio.to_thread(fill, source, "other", 5)
        mirror.start()
        await mirror.until(lambda: "ends at 5" in mirror.stopped(TopicPartition("shorter", 0)))
        await mirror.until(lambda: "has other records at offset 5" in mirror.stopped(TopicPartition("other", 0)))

    play(clusters, "shorter|other", scenario)


def test_what_is_no_mirror_is_not_written_to_and_loops_are_refused(clusters: tuple[Broker, Broker]) -> None:
    source, target = clusters
    for broker in clusters:
        broker.create_topic("both", 1)
        broker.create_topic("looped", 1)
    fill(source, "both", 5)

    async def scenario(mirror: Mirroring) -> None:
        back = source_of(mirror.target.cluster_id, SOME_ID)
        await mirror.source.admin.alter_topic_configs("looped", {"mirror.source": back})
        await mirror.until(lambda: "is not a mirror" in mirror.worker.refused.get("both", ""))
        await mirror.until(lambda: "not mirrored back" in mirror.worker.refused.get("looped", ""))
        assert await log_of(mirror.target, TopicPartition("both", 0)) == b""
        await mirror.source.admin.delete_topics(["looped"])
        await mirror.until(lambda: mirror.worker.refused.keys() == {"both"})

    play(clusters, "both|looped", scenario)
    with Admin(target.address) as admin:
        assert not any(one.name == "mirror.source" for one in admin.topic_configs("both"))


def test_a_cluster_is_not_its_own_mirror(clusters: tuple[Broker, Broker]) -> None:
    source, _ = clusters

    async def same() -> None:
        async with mirroring(source, source, "x") as mirror:
            await mirror.until(lambda: False)

    with pytest.raises(ConfigError, match="are the same cluster"):
        asyncio.run(same())


def test_a_foreign_target_is_refused(clusters: tuple[Broker, Broker], monkeypatch: pytest.MonkeyPatch) -> None:
    """As Kafka's brokers do, it tells of no API of ours."""
    monkeypatch.setattr(api_versions, "_WITH_OURS", api_versions._ALL)

    async def refused() -> None:
        async with mirroring(*clusters, "x") as mirror:
            await mirror.until(lambda: False)

    with pytest.raises(ConfigError, match="are not Moldau's"):
        asyncio.run(refused())


def test_workers_share_the_partitions_and_one_that_leaves_hands_its_part_over(clusters: tuple[Broker, Broker]) -> None:
    source, _ = clusters
    source.create_topic("shared", 4)
    partitions = {TopicPartition("shared", number) for number in range(4)}

    async def scenario(mirror: Mirroring) -> None:
        async with mirroring(*clusters, "shared") as other:

            def parts() -> tuple[set[TopicPartition], set[TopicPartition]]:
                return set(mirror.worker.copying.copies), set(other.worker.copying.copies)

            await mirror.until(lambda: [len(part) for part in parts()] == [2, 2])
            assert set.union(*parts()) == partitions
            for tp in sorted(partitions):
                await asyncio.to_thread(fill, source, "shared", 10, tp.partition)
                await mirror.until_equal(tp)
        await mirror.until(lambda: parts()[0] == partitions)

    play(clusters, "shared", scenario)


def test_a_partition_without_a_leader_holds_up_no_other(clusters: tuple[Broker, Broker]) -> None:
    source, _ = clusters
    source.create_topic("led", 2)
    led, missing = [TopicPartition("led", number) for number in range(2)], TopicPartition("led", 9)

    async def asked() -> None:
        async with ClusterEnd(source.address, "--from") as end:
            found = await by_leader(end.router, [missing, *led])
            assert [*found.leaders.values()] == [led]
            assert [*found.failures] == [missing]

    asyncio.run(asked())
