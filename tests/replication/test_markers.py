"""Markers reach the partitions that this broker leads, and what cannot be written says why."""

import asyncio
from collections.abc import Awaitable
from pathlib import Path

import pytest

from moldau.errors import ErrorCode
from moldau.names import OFFSETS_TOPIC, TopicPartition, TransactionMarkers
from moldau.records.batch import TRANSACTIONAL_BIT
from moldau.replication import markers as marker_writing
from moldau.replication.markers import MarkerWriter
from moldau.replication.replica import Replica
from tests.handlers.in_sync import in_sync, reached
from tests.handlers.living import NOW_MS, Living, batch, run
from tests.replication.producing import produce

NONE = ErrorCode.NONE


def writer(alive: Living, offsets: ErrorCode = NONE) -> tuple[MarkerWriter, list[int]]:
    """And the partitions of the offsets topic that it handed on."""
    handed: list[int] = []

    def end_offsets(partition: int, _: TransactionMarkers) -> ErrorCode | Awaitable[ErrorCode]:
        handed.append(partition)
        return offsets

    broker = alive.broker
    return MarkerWriter(broker.replicas, lambda: broker.cluster.image, end_offsets, broker.runtime), handed


def begin(replica: Replica) -> None:
    records = batch(b"x", attributes=TRANSACTIONAL_BIT, producer_id=7, producer_epoch=0, base_sequence=0)
    assert not produce(replica, records, NOW_MS).error


def markers(*partitions: TopicPartition, commits: bool = True, epoch: int = 1, of: int = 3) -> TransactionMarkers:
    return TransactionMarkers(7, epoch, of, commits, 2, partitions)


def test_each_partition_gets_its_marker_and_those_of_offsets_go_to_their_coordinator(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a", 2)
        await alive.broker.cluster.topics.ensure_offsets_topic()
        write, handed = writer(alive)
        for partition in (0, 1):
            begin(alive.replica("a", partition))
        there = [TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition(OFFSETS_TOPIC, 2)]
        assert await write(markers(*there)) == dict.fromkeys(there, NONE)
        assert handed == [2]
        for partition in (0, 1):
            replica = alive.replica("a", partition)
            assert (replica.high_watermark, replica.last_stable_offset) == (2, 2)

    run(scenario, tmp_path, offsets_topic_num_partitions=3)


def test_what_cannot_be_written_says_why_and_keeps_nothing_else_from_it(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a", 3)
        here, elsewhere, offline = (TopicPartition("a", number) for number in range(3))
        gone = TopicPartition("gone", 0)
        alive.replica("a", 1).leadership.resign()
        del alive.broker.replicas.hosted["a", 2]
        write, _ = writer(alive)
        begin(alive.replica("a"))
        assert await write(markers(gone, offline, elsewhere, TopicPartition("a", 3), here)) == {
            gone: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            offline: ErrorCode.KAFKA_STORAGE_ERROR,
            elsewhere: ErrorCode.NOT_LEADER_OR_FOLLOWER,
            TopicPartition("a", 3): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            here: NONE,
        }
        assert alive.replica("a").last_stable_offset == 2

    run(scenario, tmp_path)


def test_a_late_marker_and_one_of_an_old_coordinator_are_refused(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        tp, (write, _) = TopicPartition("a", 0), writer(alive)
        begin(alive.replica("a"))
        assert await write(markers(tp, epoch=0)) == {tp: ErrorCode.INVALID_PRODUCER_EPOCH}
        assert await write(markers(tp)) == {tp: NONE}
        assert await write(markers(tp, of=2)) == {tp: ErrorCode.TRANSACTION_COORDINATOR_FENCED}
        assert await write(markers(tp)) == {tp: NONE}

    run(scenario, tmp_path)


def test_a_log_that_fails_is_an_answer(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        replica = alive.replica("a")
        tp, (write, _) = TopicPartition("a", 0), writer(alive)
        begin(replica)
        replica.log.serving.offline = True
        assert await write(markers(tp)) == {tp: ErrorCode.KAFKA_STORAGE_ERROR}

    run(scenario, tmp_path)


def test_a_marker_counts_when_the_followers_have_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a", 2)
        (alone, both), (write, _) = (TopicPartition("a", 0), TopicPartition("a", 1)), writer(alive)
        replica = alive.replica("a", 1)
        in_sync(replica, 1, 2)
        writing = asyncio.ensure_future(write(markers(both, alone)))
        while not replica.log.log_end_offset:
            await asyncio.sleep(0)
        reached(replica, 0)
        for _ in range(5):
            await asyncio.sleep(0)
        assert not writing.done()
        assert alive.replica("a", 0).high_watermark == 1, "no partition waits for another one"
        reached(replica, 1)
        assert await writing == {both: NONE, alone: NONE}
        monkeypatch.setattr(marker_writing, "COMMIT_WAIT_S", 0.02)
        assert await write(markers(both, alone)) == {both: ErrorCode.REQUEST_TIMED_OUT, alone: NONE}

    run(scenario, tmp_path)
