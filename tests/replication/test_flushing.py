"""`flush.messages`: a record is neither acknowledged nor seen before it is on the disk, the broker's own included."""

import asyncio
import errno
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.logs import append
from harness.patience import stretched, within
from moldau.errors import ErrorCode, KafkaError
from moldau.log.flushing import Flushing
from moldau.log.log import Log
from moldau.log.segment import Segment
from moldau.names import OFFSETS_TOPIC
from moldau.protocol.apis import PRODUCE
from moldau.protocol.messages.fetch import FetchRequest, FetchResponse
from moldau.records.batch import Row, encode_batch
from moldau.replication.client_appends import append_off_loop, plan_append
from moldau.replication.internal_topic import InternalTopic
from moldau.replication.replica import Replica
from moldau.replication.results import AppendRefusal, AppendTerms
from moldau.runtime import RealFile, Runtime
from moldau.simulation.loop import SimulatedLoop
from tests.handlers.in_sync import FOLLOWER, in_sync, reached
from tests.handlers.living import NOW_MS, Living, batch, outcomes, produce, run
from tests.replication.followed import ME, OTHER, Stage, followed, play

TERMS = AppendTerms(acks_all=True, transactional=False, zstd=True, transaction_version=0)


class HeldFlush:
    """Flushes of logs wait in their threads until they are `released`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.begun, self.released = threading.Event(), threading.Event()
        flush = Log.flush

        def held(log: Log, closing: bool = False) -> None:
            self.begun.set()
            assert self.released.wait(stretched())
            flush(log, closing)

        monkeypatch.setattr(Log, "flush", held)


async def put(replica: Replica) -> None:
    """Append a client's record, and flush it if that is due."""
    planned = plan_append(replica, memoryview(bytearray(batch(b"x"))), TERMS, NOW_MS)
    assert not isinstance(planned, AppendRefusal)
    assert not (await append_off_loop(planned, NOW_MS)).error


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


def test_a_record_that_comes_while_an_earlier_one_is_flushed_can_be_committed(tmp_path: Path) -> None:
    """The flush ends, another record is appended, and only then does the task that has waited for the flush go on."""

    async def scenario(alive: Living) -> None:
        await alive.make("a", flush_messages=10)
        replica = alive.replica("a")
        in_sync(replica, 1, FOLLOWER)
        for _ in range(9):
            await put(replica)
        run_elsewhere = replica.runtime.run

        async def before_another(work: Any) -> Any:
            result = await run_elsewhere(work)
            replica.runtime.run = run_elsewhere  # type: ignore[method-assign]
            await put(replica)
            return result

        replica.runtime.run = before_another  # type: ignore[assignment]
        await put(replica)
        reached(replica, 11)
        assert (replica.log.recovery_point, replica.log.log_end_offset, replica.high_watermark) == (10, 11, 11)

    run(scenario, tmp_path)


def test_a_flush_ends_and_counts_though_the_client_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a", flush_messages=1)
        replica = alive.replica("a")
        with monkeypatch.context() as slowly:
            held = HeldFlush(slowly)
            producing = asyncio.ensure_future(put(replica))
            assert await asyncio.to_thread(held.begun.wait, stretched())
            producing.cancel()
            await asyncio.sleep(0)
            held.released.set()
            await asyncio.gather(producing, return_exceptions=True)
        assert producing.cancelled()
        assert (replica.log.recovery_point, replica.high_watermark) == (1, 1)

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


def test_records_that_a_follower_could_not_flush_are_not_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    async def scenario(stage: Stage) -> None:
        stage.replica.configure(replace(stage.replica.config, flush_messages=1))
        stage.roles(OTHER, ME, OTHER)
        await stage.asked(1)
        monkeypatch.setattr(Flushing, "force", broken)
        stage.replies.put_nowait(stage.reply(records=stage.records()))
        while not stage.replica.log.offline:
            await asyncio.sleep(0.001)
        for count in (2, 3):
            await stage.asked(count)
            stage.replies.put_nowait(FetchResponse(session_id=7))
        named = [part.fetch_offset for one in stage.requests for topic in one.topics for part in topic.partitions]
        assert named == [0]

    play(tmp_path, scenario)


def test_records_whose_flush_found_no_descriptor_are_flushed_before_the_leader_hears_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    force, failures = Flushing.force, [1, 1]

    def none_left(*args: Any, **named: Any) -> None:
        if failures:
            failures.pop()
            raise OSError(errno.EMFILE, "Too many open files")
        force(*args, **named)

    async def scenario(stage: Stage) -> None:
        log = stage.replica.log
        stage.replica.configure(replace(stage.replica.config, flush_messages=1))
        stage.roles(OTHER, ME, OTHER)
        await stage.asked(1)
        monkeypatch.setattr(Flushing, "force", none_left)
        stage.replies.put_nowait(stage.reply(records=stage.records()))
        told, seen = 0, 1
        while told == 0:
            await stage.asked(seen := seen + 1)
            told = max([part.fetch_offset for one in stage.requests[-1].topics for part in one.partitions], default=0)
            assert told <= log.recovery_point
            if not told:
                stage.replies.put_nowait(FetchResponse(session_id=1))
        assert not failures and not log.offline and told == 1

    play(tmp_path, scenario)


def test_a_follower_asks_for_others_at_its_usual_pace_while_a_slow_flush_lasts(tmp_path: Path) -> None:
    """Each request named nothing, and ended the wait of the one before: thousands a second."""

    async def scenario(stage: Stage) -> None:
        loop, sent, flushing = asyncio.get_running_loop(), 0, asyncio.Event()
        assert isinstance(loop, SimulatedLoop)

        async def fetch(leader: object, request: FetchRequest, timeout_ms: int) -> FetchResponse:
            nonlocal sent
            sent = number = sent + 1
            deadline_s = loop.time() + request.max_wait_ms / 1000
            while sent == number and loop.time() < deadline_s:
                await asyncio.sleep(0.0001)
            return FetchResponse(session_id=7)

        def takes_s() -> float:
            flushing.set()
            return 0.5

        stage.exchange._fetch = fetch
        slow_one = followed(tmp_path / "slow", 2)
        slow_one.configure(replace(slow_one.config, flush_messages=1))
        append(slow_one.log)
        loop.work_s = takes_s
        stage.roles(OTHER, ME, OTHER)
        stage.exchange.changed(slow_one)
        await flushing.wait()
        before = sent
        await asyncio.sleep(0.49)  # 49 pauses
        assert sent - before <= 110

    play(tmp_path, scenario)


def test_roles_change_after_the_flush_of_a_follower(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a", flush_messages=1)
        replica, replicas = alive.replica("a"), alive.broker.replicas
        append(replica.log)
        replicas.exchange = object()  # type: ignore[assignment]
        with monkeypatch.context() as slowly:
            held = HeldFlush(slowly)
            replica.begin_flush()
            changing = asyncio.ensure_future(replicas._until_whole(["a"]))
            assert await asyncio.to_thread(held.begun.wait, stretched())
            assert not changing.done() and replica.flushing is not None
            held.released.set()
            await changing
        assert replica.flushing is None and replica.log.recovery_point == 1
        replicas.exchange = None

    run(scenario, tmp_path)
