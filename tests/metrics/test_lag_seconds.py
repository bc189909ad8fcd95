"""Lag in seconds of a broker, against the truth: the age of the first record at or behind a committed offset that a
reader of committed records is handed. Records come at 100 a second, by timestamps that the tests give them."""

import asyncio
import random
from pathlib import Path

import pytest

from moldau import TopicPartition
from moldau.aio import Admin, Consumer, Producer
from moldau.cluster.state.image import Image, PartitionImage, TopicImage
from moldau.errors import ErrorCode, KafkaError
from moldau.handlers.between_brokers.describe_waiting import DescribeWaiting
from moldau.protocol.apis import DESCRIBE_WAITING, PRODUCE, Api
from moldau.records import compression
from moldau.records.batch import Row, encode_batch
from moldau.records.lag import NOT_KNOWN
from moldau.replication.lag.asking import answer_with, ask_leaders, lags_in
from moldau.replication.lag.reading import UNKNOWN_LAG, LagReader, PartitionLag
from tests.handlers.living import NOW_MS, Living, produce, run
from tests.metrics.scraping import scrape, value

TOPIC = "orders"
STEP_MS = 10
TRUTH_MS = 1000
"""How far an answer may be from the truth."""


async def handed_out(alive: Living, name: str = TOPIC) -> list[tuple[int, int]]:
    """Offset and timestamp of each record that a reader of committed records gets."""
    address = f"127.0.0.1:{alive.broker.port}"
    tp = TopicPartition(name, 0)
    found: list[tuple[int, int]] = []
    async with Consumer(address, auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        consumer.assign([tp])
        end = (await consumer.end_offsets([tp]))[tp]
        while await consumer.position(tp) < end:
            found += [(one.offset, one.timestamp_ms) for one in await consumer.poll(timeout_ms=1000)]
    return found


async def compare(alive: Living, also_open: list[tuple[int, int]] | None = None) -> None:
    """Every committed offset there may be, against what is handed out; `also_open`: records of open transactions."""
    replica = alive.replica(TOPIC)
    records = sorted([*await handed_out(alive), *(also_open or [])])
    reader = LagReader(alive.broker.replicas, alive.broker.runtime)
    end = int(replica.high_watermark)
    committed = [(replica.tp, offset) for offset in range(replica.log.log_start_offset, end + 2)]
    for _ in range(2):  # the second time by what was remembered
        for (_, offset), lag in zip(committed, await reader.read_all(committed), strict=True):
            truth = next((time_ms for at, time_ms in records if at >= offset), None)
            assert lag.end == end
            if truth is None:
                assert lag.waiting_ms is None, offset
            else:
                assert lag.waiting_ms is not None, offset
                assert abs(lag.waiting_ms - truth) <= TRUTH_MS, (offset, lag.waiting_ms - truth)


def rows(first: int, count: int, keys: int = 7, pause_at: int = -1) -> list[Row]:
    """Records at 100 a second; behind `pause_at` the producer was idle for a minute."""
    return [
        Row(b"%d" % (n % keys), b"v" * 20, NOW_MS + n * STEP_MS + (60_000 if n >= pause_at >= 0 else 0))
        for n in range(first, first + count)
    ]


async def fill(alive: Living, batches: list[list[Row]], codec: int = compression.NONE) -> None:
    wire = await alive.dial()
    for one in batches:
        answer = await wire.ask(PRODUCE, 9, produce((TOPIC, 0, bytes(encode_batch(one, codec=codec)))))
        assert answer.responses[0].partition_responses[0].error_code == 0


@pytest.mark.parametrize("codec", [compression.NONE, compression.ZSTD])
def test_it_is_right_within_batches_of_any_length(tmp_path: Path, codec: int) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make(TOPIC, message_timestamp_after_max_ms=10**12)
        chance, at = random.Random(7), 0
        while at < 1500:
            count = chance.choice([1, 3, 40, 250, 700])
            await fill(alive, [rows(at, count, pause_at=at + count // 3 if chance.random() < 0.3 else -1)], codec)
            at += count
        await compare(alive)

    run(scenario, tmp_path)


def test_it_is_right_through_what_compaction_has_removed(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        settings = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": 0, "delete_retention_ms": 0}
        await alive.make(TOPIC, message_timestamp_after_max_ms=10**12, **settings)
        await fill(alive, [rows(0, 600), rows(600, 300, keys=3), rows(900, 5), [Row(b"1", None, NOW_MS + 9100)]])
        log = alive.replica(TOPIC).log
        log.roll(NOW_MS)
        await fill(alive, [rows(920, 300, keys=2)])
        log.roll(NOW_MS)
        await fill(alive, [rows(1300, 30)])
        before = log.size
        assert await alive.broker.cleaner.clean_dirtiest()
        assert log.size < before / 2
        assert len(await handed_out(alive)) < 100
        await compare(alive)

    run(scenario, tmp_path, log_cleaner_enable=False)


def test_it_is_right_through_transactions(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make(TOPIC, message_timestamp_after_max_ms=10**12)
        address = f"127.0.0.1:{alive.broker.port}"
        at = 0
        for commits in (True, False, True, False, False, True, False):
            async with Producer(address, transactional_id="till") as producer:
                await producer.begin_transaction()
                for _ in range(30):
                    await producer.send(TOPIC, b"v", timestamp_ms=NOW_MS + at * STEP_MS * 10)
                    at += 1
                await (producer.commit_transaction() if commits else producer.abort_transaction())
        await compare(alive)
        async with Producer(address, transactional_id="open") as producer:
            await producer.begin_transaction()
            where = await (await producer.send(TOPIC, b"v", timestamp_ms=NOW_MS + at * STEP_MS * 10))
            await compare(alive, [(where.offset, where.timestamp_ms)])
            await producer.abort_transaction()
        await compare(alive)

    run(scenario, tmp_path)


def test_a_group_that_has_read_all_of_an_idle_topic_has_none(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make(TOPIC)
        old = [Row(b"k", b"v", NOW_MS - 3_600_000), Row(b"k", b"v", NOW_MS - 1_800_000)]
        await fill(alive, [old])
        seconds, of = {}, {"topic": TOPIC, "partition": 0}
        for group, offset in (("all", 2), ("half", 1), ("none", 0)):
            async with Consumer(f"127.0.0.1:{alive.broker.port}", group_id=group) as consumer:
                await consumer.commit({TopicPartition(TOPIC, 0): offset})
        found = await scrape(alive.broker)
        for group in ("all", "half", "none"):
            seconds[group] = value(found, "kafka_consumergroup_lag_seconds", consumergroup=group, **of)
        now_s = alive.broker.runtime.clock.now_ms() / 1000
        assert seconds["all"] == 0
        assert seconds["half"] == pytest.approx(now_s - NOW_MS / 1000 + 1800, abs=1)
        assert seconds["none"] == pytest.approx(now_s - NOW_MS / 1000 + 3600, abs=1)

    run(scenario, tmp_path, metrics_port=0, metrics_host="127.0.0.1")


def test_records_that_were_deleted_do_not_count(tmp_path: Path) -> None:
    """redpanda 30624: a topic that retention had emptied showed a lag of millions for ever."""

    async def scenario(alive: Living) -> None:
        await alive.make(TOPIC)
        await fill(alive, [rows(0, 10)])
        place = TopicPartition(TOPIC, 0)
        async with Consumer(f"127.0.0.1:{alive.broker.port}", group_id="late") as consumer:
            await consumer.commit({place: 1})
        async with Admin(f"127.0.0.1:{alive.broker.port}") as admin:
            for start, left in ((4, 6), (10, 0)):
                await admin.delete_records({place: start})
                found = await scrape(alive.broker)
                of = {"consumergroup": "late", "topic": TOPIC}
                assert value(found, "kafka_consumergroup_lag", **of, partition=0) == left
                assert value(found, "kafka_consumergroup_lag_sum", **of) == left
                assert value(found, "kminion_kafka_consumer_group_topic_lag", group_id="late", topic_name=TOPIC) == left
                assert (await admin.lags({place: 1}))[place].records == left
        reader = LagReader(alive.broker.replicas, alive.broker.runtime)
        lags = await reader.read_all([(place, 1)])
        assert lags_in(answer_with(lags)) == lags == [PartitionLag(10, None, 10)]

    run(scenario, tmp_path, metrics_port=0, metrics_host="127.0.0.1", metrics_names="kafka,kminion")


def test_another_leader_is_asked_and_tells_the_same(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        topic_id = await alive.make(TOPIC, 2)
        await fill(alive, [[Row(b"k", b"v", NOW_MS - 5000)]])
        image, asked = alive.broker.cluster.image, list[int]()
        reader = LagReader(alive.broker.replicas, alive.broker.runtime)
        handler = DescribeWaiting(lambda: image, reader.read_all)

        async def call(broker: int, api: Api, request: object, timeout_ms: int) -> object:
            asked.append(broker)
            assert api is DESCRIBE_WAITING
            if broker == 2:
                raise KafkaError(ErrorCode.REQUEST_TIMED_OUT)
            return await handler(request, None)  # type: ignore[arg-type]

        here, gone = TopicPartition(TOPIC, 0), TopicPartition("gone", 0)
        lost = PartitionImage(2, 0, (2,), (2,))
        topic = TopicImage("away", alive.broker.cluster.image.topics[TOPIC].id, (lost,), {})
        wider = Image("c", topics={**image.topics, "away": topic}, topics_by_id=image.topics_by_id)
        wanted = [(here, 0), (here, 1), (gone, 0), (TopicPartition("away", 0), 0)]
        lags = await ask_leaders(call, wider, wanted)
        assert lags == {(here, 0): PartitionLag(1, NOW_MS - 5000, 0), (here, 1): PartitionLag(1, None, 0)}
        assert sorted(asked) == [1, 2]
        assert topic_id == image.topics[TOPIC].id.bytes
        assert await reader.read_all([(gone, 0)]) == [UNKNOWN_LAG]

    run(scenario, tmp_path)


def test_a_log_that_is_offline_says_nothing(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make(TOPIC)
        await fill(alive, [rows(0, 5)])
        replica = alive.replica(TOPIC)
        replica.log.serving.offline = True
        reader = LagReader(alive.broker.replicas, alive.broker.runtime)
        assert await reader.read_all([(replica.tp, 0)]) == [PartitionLag(5, NOT_KNOWN)]
        replica.log.serving.offline = False
        await asyncio.sleep(0)

    run(scenario, tmp_path)
