"""`flush.messages`: a record is neither acknowledged nor seen before it is on the disk, the broker's own included."""

import errno
from pathlib import Path

import pytest

from harness.patience import within
from moldau.errors import ErrorCode, KafkaError
from moldau.log.segment import Segment
from moldau.names import OFFSETS_TOPIC
from moldau.protocol.apis import PRODUCE
from moldau.records.batch import Row, encode_batch
from moldau.replication.internal_topic import InternalTopic
from moldau.runtime import RealFile, Runtime
from tests.handlers.living import NOW_MS, Living, batch, outcomes, produce, run


def keyed() -> bytearray:
    return encode_batch([Row(b"k", b"v", NOW_MS)])


def test_nobody_sees_a_record_that_a_power_loss_could_take_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async def scenario(alive: Living) -> None:
        await alive.make("a", flush_messages=2)
        replica, seen = alive.replica("a"), []
        flush = Segment.flush

        def look_and_flush(self: Segment, active: bool) -> None:
            seen.append((int(replica.log.log_end_offset), int(replica.high_watermark)))
            flush(self, active)

        monkeypatch.setattr(Segment, "flush", look_and_flush)
        wire = await alive.dial()
        for _ in range(5):
            assert outcomes(await wire.ask(PRODUCE, 9, produce(("a", 0, batch(b"x")))))[0][1] == 0
        assert seen == [(2, 1), (4, 3)]
        assert (replica.high_watermark, replica.log.recovery_point) == (5, 4)

    run(scenario, tmp_path)


def test_what_coordinators_write_is_flushed_as_well(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.broker.cluster.topics.ensure_offsets_topic()
        topic = InternalTopic(OFFSETS_TOPIC, alive.broker.replicas, 1000, 5000, Runtime())
        await topic.append(0, keyed(), NOW_MS)
        replica = alive.replica(OFFSETS_TOPIC)
        assert replica.log.recovery_point == replica.high_watermark == 1

    run(scenario, tmp_path, log_flush_interval_messages=1, offsets_topic_num_partitions=1)


def test_a_flush_that_fails_is_no_success_and_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async def scenario(alive: Living) -> None:
        await alive.broker.cluster.topics.ensure_offsets_topic()
        await alive.make("a")
        flushes = []

        def failing(self: RealFile) -> None:
            flushes.append(self)
            raise OSError(errno.EIO, "Input/output error")

        monkeypatch.setattr(RealFile, "flush", failing)
        topic = InternalTopic(OFFSETS_TOPIC, alive.broker.replicas, 1000, 5000, Runtime())
        with pytest.raises(KafkaError) as raised:
            await topic.append(0, keyed(), NOW_MS)
        assert raised.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        assert len(flushes) == 1
        wire = await alive.dial()
        refused = outcomes(await wire.ask(PRODUCE, 9, produce(("a", 0, batch(b"x")))))
        assert refused[0][1] == ErrorCode.KAFKA_STORAGE_ERROR
        await within(alive.broker.failed.wait())
        assert len(flushes) == 1

    run(scenario, tmp_path, log_flush_interval_messages=1, offsets_topic_num_partitions=1)
