"""What coordinators write into an internal topic: alone, in a producer's transaction, and to end one."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from moldau.cluster.controlling.alterations import Alteration, OpType
from moldau.errors import ErrorCode, KafkaError
from moldau.names import OFFSETS_TOPIC, LeaderEpoch
from moldau.records.batch import TRANSACTIONAL_BIT, Marker, Row, batches, encode_batch
from moldau.replication.internal_topic import InternalTopic
from moldau.replication.leadership import PartitionRoles
from moldau.replication.replica import Replica
from tests.handlers.in_sync import FOLLOWER, in_sync, reached
from tests.handlers.living import NOW_MS, Living, run

FEW = {"offsets_topic_num_partitions": 2}
ABORTED, COMMITTED = Marker(False, 3), Marker(True, 3)


def topic(alive: Living, commit_timeout_ms: int = 30_000) -> InternalTopic:
    return InternalTopic(OFFSETS_TOPIC, alive.broker.replicas, 1 << 20, commit_timeout_ms, alive.broker.runtime)


def begin_epoch(replica: Replica) -> None:
    """This broker leads the partition and its follower once more."""
    mine = replica.leadership
    epoch, both = LeaderEpoch(mine.leader_epoch + 1), (mine.local, FOLLOWER)
    replica.take_roles(PartitionRoles(mine.local, epoch, both, both, mine.partition_epoch + 1), 0)


def records(*values: bytes, producer_id: int = -1, epoch: int = -1) -> bytearray:
    rows = [Row(b"key", value, NOW_MS) for value in values]
    attributes = TRANSACTIONAL_BIT if producer_id >= 0 else 0
    return encode_batch(rows, attributes=attributes, producer_id=producer_id, producer_epoch=epoch)


async def read(chunks: AsyncIterator[bytes]) -> list[tuple[int, bool, int]]:
    """(producer, whether it is a marker, count) of each batch."""
    return [(h.producer_id, h.is_control, h.count) async for chunk in chunks for _, h in batches(chunk)]


@pytest.mark.parametrize("codec", ["0", "1", "3"])
@pytest.mark.parametrize("flush", ["1", "9223372036854775807"])
def test_a_transaction_is_begun_and_ended_among_other_records(codec: str, flush: str, tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.broker.cluster.topics.ensure_offsets_topic()
        internal, replica = topic(alive), alive.replica(OFFSETS_TOPIC, 1)
        await internal.append(1, records(b"plain"), NOW_MS)
        shown = internal.begin(1, 7, 0)
        assert shown is not None
        await internal.append_in_transaction(1, records(b"x", b"y", producer_id=7, epoch=0), shown, NOW_MS)
        assert internal.begin(1, 7, 0) is None
        await internal.append_in_transaction(1, records(b"z", producer_id=7, epoch=0), None, NOW_MS)
        await internal.append(1, records(b"plain"), NOW_MS)
        assert (replica.last_stable_offset, replica.high_watermark) == (1, 5)
        await internal.append_marker(1, 7, 1, ABORTED, 2)
        assert (replica.last_stable_offset, replica.high_watermark) == (6, 6)
        assert await read(internal.read_all(1)) == [
            (-1, False, 1),
            (7, False, 2),
            (7, False, 1),
            (-1, False, 1),
            (7, True, 1),
        ]
        assert replica.log.committed.aborted_between(0, 6)[0][:3] == (7, 1, 5)

    run(scenario, tmp_path, **FEW, offsets_topic_compression_codec=codec, log_flush_interval_messages=flush)


def test_what_must_not_begin_does_not(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.broker.cluster.topics.ensure_offsets_topic()
        internal, replica = topic(alive), alive.replica(OFFSETS_TOPIC)

        async def refused(epoch: int, shown: object) -> ErrorCode:
            with pytest.raises(KafkaError) as raised:
                await internal.append_in_transaction(0, records(b"x", producer_id=7, epoch=epoch), shown, NOW_MS)
            return raised.value.code

        assert await refused(0, None) is ErrorCode.INVALID_TXN_STATE
        late = internal.begin(0, 7, 0)
        await internal.append_marker(0, 7, 0, ABORTED, 0)
        assert await refused(0, late) is ErrorCode.INVALID_TXN_STATE
        await internal.append_marker(0, 7, 5, COMMITTED, 2)
        assert await refused(4, internal.begin(0, 7, 4)) is ErrorCode.INVALID_PRODUCER_EPOCH
        for epoch, coordinator_epoch, error in (
            (4, 3, ErrorCode.INVALID_PRODUCER_EPOCH),
            (5, 2, ErrorCode.TRANSACTION_COORDINATOR_FENCED),
        ):
            with pytest.raises(KafkaError) as raised:
                await internal.append_marker(0, 7, epoch, Marker(True, coordinator_epoch), 2)
            assert raised.value.code is error
        await internal.append_in_transaction(0, records(b"x", producer_id=7, epoch=5), internal.begin(0, 7, 5), NOW_MS)
        assert replica.high_watermark == 3

    run(scenario, tmp_path, **FEW)


def test_what_does_not_fit_is_refused_as_a_whole(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.broker.cluster.topics.ensure_offsets_topic()
        internal, replica = topic(alive), alive.replica(OFFSETS_TOPIC)
        large = bytes(2000)
        shown = internal.begin(0, 7, 0)
        for asked in (
            internal.append(0, records(large), NOW_MS),
            internal.append_in_transaction(0, records(large, producer_id=7, epoch=0), shown, NOW_MS),
        ):
            with pytest.raises(KafkaError) as raised:
                await asked
            assert raised.value.code is ErrorCode.MESSAGE_TOO_LARGE
        assert replica.high_watermark == 0

    run(scenario, tmp_path, **FEW, message_max_bytes=1000)


def test_a_partition_that_is_led_elsewhere_takes_nothing(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.broker.cluster.topics.ensure_offsets_topic()
        internal = topic(alive)
        alive.replica(OFFSETS_TOPIC).leadership.resign()
        with pytest.raises(KafkaError, match="NOT_LEADER"):
            internal.begin(0, 7, 0)
        for partition in (0, 9):
            for asked in (
                internal.append(partition, records(b"x"), NOW_MS),
                internal.append_in_transaction(partition, records(b"x", producer_id=7, epoch=0), None, NOW_MS),
                internal.append_marker(partition, 7, 0, COMMITTED, 0),
            ):
                with pytest.raises(KafkaError, match="NOT_LEADER"):
                    await asked
        await asyncio.sleep(0)

    run(scenario, tmp_path, **FEW)


def test_fewer_replicas_than_the_topic_asks_for_take_nothing(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        cluster = alive.broker.cluster
        await cluster.topics.ensure_offsets_topic()
        internal = topic(alive)
        shown = internal.begin(0, 7, 0)
        raised = Alteration("min.insync.replicas", OpType.SET, "2")
        assert await cluster.configs.alter_topics([(OFFSETS_TOPIC, [raised])]) == [None]
        replica = alive.replica(OFFSETS_TOPIC)
        in_sync(replica, 1)
        for asked in (
            internal.append(0, records(b"x"), NOW_MS),
            internal.append_in_transaction(0, records(b"x", producer_id=7, epoch=0), shown, NOW_MS),
            internal.append_marker(0, 7, 0, COMMITTED, 0),
        ):
            with pytest.raises(KafkaError, match="NOT_ENOUGH_REPLICAS"):
                await asked
        assert await cluster.configs.alter_topics([(OFFSETS_TOPIC, [raised._replace(value="1")])]) == [None]
        await internal.append(0, records(b"x"), NOW_MS)
        assert alive.replica(OFFSETS_TOPIC).high_watermark == 1

    run(scenario, tmp_path, **FEW)


def test_what_is_appended_is_acknowledged_when_the_followers_have_it(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.broker.cluster.topics.ensure_offsets_topic()
        internal, replica = topic(alive), alive.replica(OFFSETS_TOPIC)
        begin_epoch(replica)
        shown = internal.begin(0, 7, 0)
        for end, asked in enumerate(
            (
                internal.append(0, records(b"x"), NOW_MS),
                internal.append_in_transaction(0, records(b"x", producer_id=7, epoch=0), shown, NOW_MS),
                internal.append_marker(0, 7, 1, COMMITTED, 2),
            ),
            1,
        ):
            appending = asyncio.ensure_future(asked)
            while replica.log.log_end_offset < end:
                await asyncio.sleep(0)
            reached(replica, end - 1)
            for _ in range(5):
                await asyncio.sleep(0)
            assert not appending.done()
            reached(replica, end)
            await appending
            assert replica.high_watermark == end

    run(scenario, tmp_path, **FEW)


def test_what_is_not_committed_in_time_or_in_its_leader_epoch_is_no_success(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.broker.cluster.topics.ensure_offsets_topic()
        replica = alive.replica(OFFSETS_TOPIC)
        begin_epoch(replica)
        with pytest.raises(KafkaError, match="in time"):
            await topic(alive, 20).append(0, records(b"x"), NOW_MS)
        appending = asyncio.ensure_future(topic(alive).append_marker(0, 7, 0, COMMITTED, 2))
        while replica.log.log_end_offset < 2:
            await asyncio.sleep(0)
        begin_epoch(replica)
        with pytest.raises(KafkaError, match="NOT_LEADER"):
            await appending

    run(scenario, tmp_path, **FEW)


def test_what_was_read_in_another_leader_epoch_allows_no_append(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.broker.cluster.topics.ensure_offsets_topic()
        internal, replica = topic(alive), alive.replica(OFFSETS_TOPIC)
        await internal.append(0, records(b"x"), NOW_MS)
        assert await read(internal.read_all(0)) == [(-1, False, 1)]
        begin_epoch(replica)
        with pytest.raises(KafkaError, match="NOT_LEADER"):
            internal.begin(0, 7, 0)
        for asked in (internal.append(0, records(b"x"), NOW_MS), internal.until_committed(0)):
            with pytest.raises(KafkaError, match="NOT_LEADER"):
                await asked
        assert replica.log.log_end_offset == 1
        assert await read(internal.read_all(0)) == [(-1, False, 1)]
        reached(replica, 1)
        await internal.until_committed(0)

    run(scenario, tmp_path, **FEW)


def test_what_was_read_counts_when_the_high_watermark_is_there(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.broker.cluster.topics.ensure_offsets_topic()
        internal, replica = topic(alive, 20), alive.replica(OFFSETS_TOPIC)
        begin_epoch(replica)
        with pytest.raises(KafkaError, match="in time"):
            await internal.append(0, records(b"x"), NOW_MS)
        begin_epoch(replica)
        assert await read(internal.read_all(0)) == [(-1, False, 1)]
        waiting = asyncio.ensure_future(internal.until_committed(0))
        await asyncio.sleep(0.1)
        assert not waiting.done() and replica.high_watermark == 0
        reached(replica, 1)
        await waiting

    run(scenario, tmp_path, **FEW)
