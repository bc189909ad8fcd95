"""Workers and brokers of both clusters are killed while records, transactions and settings change: every record is in
the mirror, at the same offset with the same bytes. `MOLDAU_TIER=long` has 30 kills and 1,000,000 records."""

import asyncio
import contextlib
import random
import threading
from collections.abc import Iterator

import pytest

from harness.tiers import seed_or, sized
from moldau.client.administration.admin import Admin
from moldau.client.producing.producer import Producer
from moldau.errors import KafkaError, NotDelivered
from moldau.mirror.ends import SETTING
from moldau.mirror.failing_over import fail_over
from moldau.names import TopicPartition
from moldau.records.batch import batches
from moldau.testing import Broker, Cluster
from tests.mirror.mirroring import Mirroring, log_of, mirroring
from tests.testing.replicas import assert_equal_below_watermark, replicas

KILLS, RECORDS = sized(3, 4, 30), sized(4_000, 6_000, 1_000_000)
PARTITIONS = 3
TRIMMED = TopicPartition("trimmed", 0)


@pytest.fixture
def clusters() -> Iterator[tuple[Cluster, Cluster]]:
    settings = {"default.replication.factor": "3", "min.insync.replicas": "2"}
    with Cluster(3, settings) as source, Cluster(3, settings) as target:
        yield source, target


def trim(cluster: Cluster, offset: int) -> None:
    """Records of which the first are deleted again."""
    with Producer(cluster.address, acks="all") as producer, Admin(cluster.address) as admin:
        for number in range(50):
            producer.send("trimmed", b"%d" % number)
        producer.flush()
        admin.delete_records({TRIMMED: offset})


def write(address: str, first: int, count: int, done: threading.Event) -> None:
    """An idempotent producer, and a transactional one that aborts every other transaction."""
    with (
        contextlib.suppress(NotDelivered, KafkaError),  # what was not acknowledged may be missing, in both clusters
        Producer(address, acks="all", compression_type="lz4", linger_ms=5) as producer,
        Producer(address, transactional_id="killed", linger_ms=5) as transactional,
    ):
        for start in range(first, first + count, 200):
            if done.is_set():
                return
            for number in range(start, start + 150):
                producer.send("killed", b"record %d" % number, partition=number % PARTITIONS)
            transactional.begin_transaction()
            for number in range(start, start + 50):
                transactional.send("killed", b"in a transaction %d" % number, partition=number % PARTITIONS)
            transactional.flush()
            if start % 400:
                transactional.abort_transaction()
            else:
                transactional.commit_transaction()


@pytest.mark.check
@pytest.mark.timeout(sized(120, 300, 3_600))
def test_every_record_is_there_whatever_was_killed(clusters: tuple[Cluster, Cluster]) -> None:
    source, target = clusters
    seed = seed_or(7)
    print(f"MOLDAU_SEED={seed}")
    chance, done = random.Random(seed), threading.Event()
    source.create_topic("killed", PARTITIONS)
    source.create_topic("trimmed", 1)
    partitions = [TopicPartition("killed", number) for number in range(PARTITIONS)]

    async def kill(mirror: Mirroring) -> None:
        what = chance.choice(["worker", "source", "target"])
        if what == "worker":
            await mirror.stop()
            mirror.start()
            return
        broker = chance.choice((source if what == "source" else target).brokers)
        await asyncio.to_thread(broker.kill)
        await asyncio.sleep(chance.random())
        await asyncio.to_thread(broker.start)

    async def scenario() -> None:
        async with mirroring(source, target, "killed|trimmed") as mirror:
            await mirror.stop()
            await asyncio.to_thread(trim, source, 40)  # the mirror and its followers begin where the source does
            mirror.start()
            for number in range(KILLS):
                count = RECORDS // KILLS
                writing = asyncio.to_thread(write, source.address, number * count, count, done)
                await asyncio.gather(writing, kill(mirror))
            for tp in partitions:
                data = await mirror.until_equal(tp)
                assert sum(header.count for _, header in batches(data)) > RECORDS // PARTITIONS // 4
                assert not mirror.stopped(tp)
            await mirror.until_equal(TRIMMED)
            await asyncio.to_thread(check_replicas)
            setting = (await mirror.target.own_settings("killed"))[SETTING]
            over = await fail_over(mirror.target, "killed", setting)
            assert [one.end for one in over] == [await end_of(mirror, tp) for tp in partitions]

    def check_replicas() -> None:
        assert_equal_below_watermark(target, "killed", PARTITIONS)
        assert_equal_below_watermark(target, "trimmed", 1, 50)
        assert {replica.log_start_offset for replica in replicas(target, TRIMMED)} == {40}

    async def end_of(mirror: Mirroring, tp: TopicPartition) -> int:
        return max(header.next_offset for _, header in batches(await log_of(mirror.target, tp)))

    try:
        asyncio.run(scenario())
    finally:
        done.set()


@pytest.mark.check
@pytest.mark.parametrize("is_source", [True, False], ids=["source", "target"])
def test_a_broker_that_is_away_holds_up_its_own_partitions_only(is_source: bool) -> None:
    with Cluster(3) as several, Broker() as one:
        source, target = (several, one) if is_source else (one, several)
        source.create_topic("spread", PARTITIONS)
        partitions = [TopicPartition("spread", number) for number in range(PARTITIONS)]

        def fill(wanted: list[TopicPartition]) -> None:
            with Producer(source.address, acks="all") as producer:
                for tp in wanted:
                    producer.send("spread", b"x" * 100, partition=tp.partition)

        async def scenario() -> None:
            async with mirroring(source, target, "spread") as mirror:
                await asyncio.to_thread(fill, partitions)
                for tp in partitions:
                    await mirror.until_equal(tp)
                router = (mirror.source if is_source else mirror.target).router
                gone = partitions[0]
                broker = several.brokers[await router.leader(gone) - 1]
                await asyncio.to_thread(broker.kill)
                await asyncio.to_thread(fill, partitions[1:])
                for tp in partitions[1:]:
                    await mirror.until_end(tp, 2)
                await asyncio.to_thread(broker.start)
                await asyncio.to_thread(fill, [gone])
                await mirror.until_equal(gone)

        asyncio.run(scenario())
