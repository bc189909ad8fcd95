"""The worker and the brokers of both clusters are killed (SIGKILL) while records, transactions and a compacted table
are written: every record is in the mirror, at the same offset with the same bytes, and a group goes on at the target.
`MOLDAU_TIER=long` has 30 kills, 1,000,000 records and three brokers in each cluster."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.patience import Deadline, wait_until
from harness.tiers import LONG, seed_or, sized
from moldau.client.administration.admin import Admin
from moldau.client.producing.producer import Producer
from moldau.mirror.ends import SETTING, ClusterEnd
from moldau.mirror.failing_over import fail_over
from moldau.names import TopicPartition
from moldau.records.batch import batches
from moldau.records.rows import iterate
from moldau.testing import Broker, Cluster
from tests.mirror.mirrored_load import GROUP, KEYS, MirroredLoad, Reading, value
from tests.mirror.mirroring import log_of, mirroring
from tests.mirror.processes import KINDS, MirroredClusters
from tests.testing.replicas import assert_equal_below_watermark, replicas

KILLS, RECORDS = sized(3, 3, 30), sized(4_000, 6_000, 1_000_000)
BROKERS = (3, 3) if LONG else (1, 1)
PER_TRANSACTION = 500 if LONG else 100
PARTITIONS = 3
KILLED = [TopicPartition("killed", number) for number in range(PARTITIONS)]
GAPS, TABLE, TRIMMED = (TopicPartition(topic, 0) for topic in ("gaps", "table", "trimmed"))
TOPICS = "killed|gaps|table|trimmed"
COMPACTED = {
    "cleanup.policy": "compact", "segment.ms": 200, "min.cleanable.dirty.ratio": 0.01, "delete.retention.ms": 0,
}  # fmt: skip
TRIMMED_AT, WRITTEN = 40, 50
GAPS_OF, GAPS_KEYS = RECORDS // 10, 50
ARRIVED_S = 300.0


@pytest.mark.check
@pytest.mark.timeout(sized(120, 300, 3_600))
def test_every_record_is_there_whatever_was_killed(tmp_path: Path) -> None:
    seed = seed_or(7)
    print(f"MOLDAU_SEED={seed}")
    chance = random.Random(seed)
    clusters = MirroredClusters(tmp_path, TOPICS, BROKERS)
    kinds = [*KINDS, *chance.choices(KINDS, k=KILLS)][:KILLS]
    chance.shuffle(kinds)
    with clusters.running(), contextlib.ExitStack() as stack:
        source, target = clusters.source.address, clusters.target.address
        prepare(source)
        clusters.worker.start()
        gaps = asyncio.run(with_gaps(source, target))
        load = MirroredLoad(source, PARTITIONS, PER_TRANSACTION)
        stack.callback(load.close)
        thread = stack.enter_context(ThreadPoolExecutor(1))

        def strike(some: list[str]) -> None:
            for kind in some:
                writing = thread.submit(load.write, RECORDS // KILLS)
                clusters.kill(kind, chance)
                writing.result()

        with Reading(source) as reading:
            strike(kinds[: KILLS // 2])
        strike(kinds[KILLS // 2 :])
        print(f"{load.killed.count + load.table.count:,} records committed; transactions: {load.ended}")
        clusters.source.wait_until_whole()
        clusters.target.wait_until_whole()
        clusters.worker.check()
        asyncio.run(judge(source, target, load, reading))
        assert asyncio.run(log_in(target, GAPS)) == gaps
        clusters.worker.check()


def prepare(source: str) -> None:
    """Topics with a beginning that was deleted, and with gaps that compaction has left, in which it is over."""
    with Admin(source) as admin, Producer(source, acks="all") as producer:
        admin.create_topic("killed", partitions=PARTITIONS)
        for topic, configs in (("trimmed", {}), ("gaps", COMPACTED), ("table", COMPACTED)):
            admin.create_topic(topic, partitions=1, configs=configs)
        for number in range(WRITTEN):
            producer.send("trimmed", value(number))
        producer.flush()
        admin.delete_records({TRIMMED: TRIMMED_AT})
        for number in range(GAPS_OF):
            producer.send("gaps", value(number), key=b"%d" % (number % GAPS_KEYS))
        producer.flush()

        def is_compacted() -> bool:
            producer.send("gaps", b"the next segment", key=b"last").result()
            return records_in(asyncio.run(log_in(source, GAPS))) < GAPS_OF // 2

        assert wait_until(is_compacted, ARRIVED_S, 0.3)
        admin.alter_topic_configs("gaps", {"cleanup.policy": "delete"})


def records_in(log: bytes) -> int:
    return sum(header.count for _, header in batches(log))


@contextlib.asynccontextmanager
async def at(brokers: str) -> AsyncIterator[ClusterEnd]:
    async with ClusterEnd(brokers, "--from") as end:
        yield end


async def log_in(brokers: str, tp: TopicPartition) -> bytes:
    async with at(brokers) as end:
        return await log_of(end, tp)


async def with_gaps(source: str, target: str) -> bytes:
    """What the mirror has of the topic with gaps, once it is all there."""
    deadline = Deadline(ARRIVED_S)
    while not (has := await log_in(target, GAPS)) or has != await log_in(source, GAPS):
        assert not deadline.passed, "the topic with gaps has not arrived"
        await asyncio.sleep(0.2)
    return has


async def judge(source: str, target: str, load: MirroredLoad, reading: Reading) -> None:
    async with at(source) as one, at(target) as other:
        await until_arrived(one, other)
        for tp in (*KILLED, TRIMMED):
            of_source, of_target = await log_of(one, tp), await log_of(other, tp)
            # Not in an assertion: pytest would show what differs in megabytes.
            if of_source != of_target:
                pytest.fail(f"{tp}: {first_difference(of_source, of_target)}")
            check_ledger(load, tp, of_target)
        # A killed broker may have forgotten where its logs start, as in Kafka; its mirror has not.
        starts = [(await end.admin.watermarks("trimmed"))[TRIMMED][0] for end in (one, other)]
        assert starts[0] <= starts[1] <= TRIMMED_AT, starts
        check_table(load, await log_of(one, TABLE), await log_of(other, TABLE))
        committed = {tp: at.offset for tp, at in (await one.admin.group_offsets(GROUP)).items()}
        await until_offsets(other, committed)
        for topic in ("killed", "table"):
            ends = dict.fromkeys((tp for tp in (*KILLED, TABLE) if tp.topic == topic), "latest")
            over = await fail_over(other, topic, (await other.own_settings(topic))[SETTING])
            assert {one.tp: one.end for one in over} == await other.admin.offsets(ends)
    check_group(target, load, reading, committed)


async def until_arrived(source: ClusterEnd, target: ClusterEnd) -> None:
    deadline = Deadline(ARRIVED_S)
    partitions = dict.fromkeys((*KILLED, GAPS, TABLE, TRIMMED), "latest")
    while await source.admin.offsets(partitions) != (has := await target.admin.offsets(partitions)):
        assert not deadline.passed, f"the mirrors end at {has}"
        await asyncio.sleep(0.2)


async def until_offsets(target: ClusterEnd, committed: Mapping[TopicPartition, int]) -> None:
    deadline = Deadline(ARRIVED_S)
    while {tp: at.offset for tp, at in (await target.admin.group_offsets(GROUP)).items()} != committed:
        assert not deadline.passed, f"the group has {await target.admin.group_offsets(GROUP)}, not {committed}"
        await asyncio.sleep(0.2)


def first_difference(one: bytes, other: bytes) -> str:
    for (place, header), (_, second) in zip(batches(one), batches(other), strict=False):
        if header != second or one[place : place + header.size] != other[place : place + header.size]:
            return f"the source has {header}, the mirror {second}"
    return f"the source has {len(one)} bytes, the mirror {len(other)}"


def rows_of(log: bytes) -> dict[int, tuple[bytes | None, bytes | None, int]]:
    """Key, value and timestamp of each record, by offset; those of aborted transactions, too."""
    return {row.offset: (row.key, row.value, row.timestamp_ms) for row in iterate(log)}


def check_ledger(load: MirroredLoad, tp: TopicPartition, log: bytes) -> None:
    rows = rows_of(log)
    missing = [offset for offset, number in load.killed.of(tp) if rows.get(offset, (None, None))[1] != value(number)]
    assert not missing[:5], tp


def check_table(load: MirroredLoad, of_source: bytes, of_target: bytes) -> None:
    """Both are compacted, at other times: what both have is the same, and both have the last record of each key."""
    one, other = rows_of(of_source), rows_of(of_target)
    assert not [offset for offset in one.keys() & other.keys() if one[offset] != other[offset]][:5]
    written = dict(load.table.of(TABLE))
    assert not [offset for offset, row in other.items() if row[1] != value(written[offset])][:5]
    last = {number % KEYS: (offset, number) for offset, number in written.items()}
    for rows in (one, other):
        lacking = [at for at, number in last.values() if rows.get(at, (None, None))[1] != value(number)]
        assert not lacking[:5]


def check_group(target: str, load: MirroredLoad, reading: Reading, committed: Mapping[TopicPartition, int]) -> None:
    """What was committed before the group's offsets was read at the source, the others are read at the target."""
    records = [(number, offset < committed.get(tp, 0)) for tp in KILLED for offset, number in load.killed.of(tp)]
    assert any(was_read for _, was_read in records)
    assert {number for number, was_read in records if was_read} <= reading.seen
    wanted = {number for number, was_read in records if not was_read}
    with Reading(target) as there:
        assert wait_until(lambda: wanted <= there.seen, ARRIVED_S, 0.2), f"{len(wanted - there.seen)} are missing"


@pytest.mark.check
def test_followers_of_a_mirror_begin_where_the_source_does() -> None:
    with Broker() as source, Cluster(3, {"default.replication.factor": "3", "min.insync.replicas": "2"}) as target:
        source.create_topic("trimmed", 1)
        with Producer(source.address, acks="all") as producer, Admin(source.address) as admin:
            for number in range(WRITTEN):
                producer.send("trimmed", value(number))
            producer.flush()
            admin.delete_records({TRIMMED: TRIMMED_AT})

        async def scenario() -> None:
            async with mirroring(source, target, "trimmed") as mirror:
                await mirror.until_equal(TRIMMED)
                await mirror.until(lambda: mirror.worker.copying.copies[TRIMMED].mirror_start == TRIMMED_AT)

        asyncio.run(scenario())
        assert_equal_below_watermark(target, "trimmed", 1, WRITTEN)
        assert wait_until(lambda: {one.log_start_offset for one in replicas(target, TRIMMED)} == {TRIMMED_AT})


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
