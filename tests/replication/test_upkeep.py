"""What a broker does by the clock ends before its logs close, and does not trip over topics that go meanwhile."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from harness.logs import NOW_MS, append
from harness.patience import stretched, within
from moldau.cluster.controlling.alterations import Alteration, OpType
from moldau.log.log import Log
from moldau.log.segment import Segment
from moldau.protocol.apis import PRODUCE
from moldau.records.batch import TRANSACTIONAL_BIT, Marker, Row, encode_batch
from moldau.replication.replicas import Replicas
from moldau.replication.upkeep import Job
from moldau.runtime import Runtime
from tests.handlers.living import Living, batch, living, produce, run


def test_a_stop_waits_for_the_job_that_runs(tmp_path: Path):
    async def scenario() -> None:
        begun, ended = asyncio.Event(), []

        async def slow() -> None:
            begun.set()
            for _ in range(100):
                await asyncio.sleep(0)
            ended.append(True)

        async with living(tmp_path) as alive:
            upkeep = alive.broker.upkeep
            upkeep.jobs = [Job("slow", 0, 60_000, slow)]
            upkeep.start()
            await begun.wait()
            await upkeep.stop()
            assert ended

    asyncio.run(within(scenario()))


def test_a_topic_deleted_while_it_is_flushed_takes_nothing_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        wire, loop = await alive.dial(), asyncio.get_running_loop()
        await wire.ask(PRODUCE, 9, produce(("a", 0, batch(b"x"))))
        log, flush = alive.replica("a").log, Segment.flush
        in_thread = threading.Event()

        def flush_after_deletion(self: Segment, **options: Any) -> None:
            if self in log.segments and not in_thread.is_set():
                in_thread.set()
                gone = alive.broker.cluster.topics.delete([("a", None)])
                asyncio.run_coroutine_threadsafe(gone, loop).result(stretched(10))
            flush(self, **options)

        monkeypatch.setattr(Segment, "flush", flush_after_deletion)
        monkeypatch.setattr(Log, "flush_overdue", lambda self: True)
        await alive.broker.upkeep._flush()
        assert in_thread.is_set()
        assert alive.broker.folder.failed is None
        await alive.make("b")
        await wire.ask(PRODUCE, 9, produce(("b", 0, batch(b"x"))))
        assert alive.replica("b").high_watermark == 1

    run(scenario, tmp_path)


def test_a_foreign_folder_in_the_way_leaves_one_partition_out_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    async def scenario(alive: Living) -> None:
        (tmp_path / "a-1").mkdir()
        (tmp_path / "a-1" / "mine").write_text("mine")
        await alive.make("a", 3)
        assert alive.broker.replicas.find("a", None, 1) is None
        assert alive.replica("a", 2).high_watermark == 0
        assert (tmp_path / "a-1" / "mine").read_text() == "mine"
        assert "belongs to no known topic" in caplog.text

    run(scenario, tmp_path)


def test_every_job_keeps_the_interval_that_is_set(tmp_path: Path):
    async def every(**settings: object) -> dict[str, tuple[int, int]]:
        async with living(tmp_path, **settings) as alive:
            return {job.name: (job.first_ms, job.every_ms) for job in alive.broker.upkeep.jobs}

    usual = asyncio.run(every())
    assert usual["recovery point checkpoint"] == usual["log start checkpoint"] == (30_000, 60_000)
    assert usual["flush"] == (1000, 1000), "flush.ms of a topic holds where nobody says how often to look"
    chosen = asyncio.run(
        every(
            log_flush_scheduler_interval_ms=250,
            log_flush_offset_checkpoint_interval_ms=1,
            log_flush_start_offset_checkpoint_interval_ms=2,
            log_initial_task_delay_ms=3,
        )
    )
    assert (chosen["flush"], chosen["flush of closed segments"]) == ((250, 250), (1000, 1000))
    assert (chosen["recovery point checkpoint"], chosen["log start checkpoint"]) == ((3, 1), (3, 2))


def test_closed_segments_are_flushed_at_once_and_open_ones_when_their_time_has_come(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.broker.upkeep.stop()
        await alive.make("a", segment_bytes=1 << 20)
        await alive.make("b", flush_ms=0)
        wire, jobs = await alive.dial(), {job.name: job for job in alive.broker.upkeep.jobs}
        first, second = alive.replica("a").log, alive.replica("b").log
        large = batch(bytes(700_000))
        for name in ("a", "a", "b"):
            await wire.ask(PRODUCE, 9, produce((name, 0, large)))
        assert (first.recovery_point, second.recovery_point, len(first.segments)) == (0, 0, 2)
        await jobs["flush of closed segments"].work()
        assert (first.recovery_point, second.recovery_point) == (1, 0)
        await jobs["flush"].work()
        assert (first.recovery_point, second.recovery_point) == (1, 1)
        await jobs["recovery point checkpoint"].work()
        assert (tmp_path / "recovery-point-offset-checkpoint").read_text() == "0\n2\na 0 1\nb 0 1\n"
        assert not (tmp_path / "log-start-offset-checkpoint").exists()

    run(scenario, tmp_path, log_initial_task_delay_ms=600_000)


def test_how_long_a_silent_producer_is_known_is_changed_while_the_broker_runs(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        wire, jobs = await alive.dial(), {job.name: job for job in alive.broker.upkeep.jobs}
        row = Row(None, b"x", Runtime().clock.now_ms() - 1000)
        sent = bytes(encode_batch([row], producer_id=7, producer_epoch=0, base_sequence=0))
        await wire.ask(PRODUCE, 9, produce(("a", 0, sent)))
        producers = alive.replica("a").log.producers
        await jobs["expiry of producers"].work()
        assert len(producers) == 1
        await alter_broker(alive, "producer.id.expiration.ms", "1")
        await jobs["expiry of producers"].work()
        assert not len(producers)

    run(scenario, tmp_path)


def test_how_long_an_assignment_is_kept_is_changed_while_the_broker_runs(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        groups = alive.broker.coordinators.groups.settings.consumer
        assert groups.of_group("g").consumer_assignment_interval_ms == 1000
        for value in (0, 15_000):
            await alter_broker(alive, "group.consumer.assignment.interval.ms", str(value))
            assert groups.of_group("g").consumer_assignment_interval_ms == value

    run(scenario, tmp_path)


def test_how_many_threads_load_is_changed_for_the_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    asked: list[int] = []
    load = Replicas.load

    async def noted(self: Replicas, threads: int = 1, *others: Any) -> list[str]:
        asked.append(threads)
        return await load(self, threads, *others)

    monkeypatch.setattr(Replicas, "load", noted)
    run(lambda alive: alter_broker(alive, "num.recovery.threads.per.data.dir", "5"), tmp_path)
    run(lambda alive: asyncio.sleep(0), tmp_path)
    assert asked == [2, 5]


async def alter_broker(alive: Living, name: str, value: str) -> None:
    alteration = Alteration(name, OpType.SET, value)
    assert await alive.broker.cluster.configs.alter_broker("1", [alteration]) is None


def test_transactions_that_have_ended_are_forgotten_though_nobody_reads(tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        replica, jobs = alive.replica("a"), {job.name: job for job in alive.broker.upkeep.jobs}
        log = replica.log
        ids = {"producer_id": 7, "producer_epoch": 0, "attributes": TRANSACTIONAL_BIT}
        for number in range(3):
            append(log, 1, base_sequence=number, leader_epoch=0, **ids)
            log.append_marker(7, 0, Marker(True, 0), 0, 0, NOW_MS)
        replica._reached(log.log_end_offset)
        assert log.producers.unsettled
        await jobs["expiry of producers"].work()
        assert not log.producers.unsettled

    run(scenario, tmp_path)
