"""What a broker does by the clock ends before its logs close, and does not trip over topics that go meanwhile."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from moldau.log.log import Log
from moldau.log.segment import Segment
from moldau.protocol.apis import PRODUCE
from moldau.replication.upkeep import Job
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

    asyncio.run(asyncio.wait_for(scenario(), 30))


def test_a_topic_deleted_while_it_is_flushed_takes_nothing_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        wire, loop = await alive.dial(), asyncio.get_running_loop()
        await wire.ask(PRODUCE, 9, produce(("a", 0, batch(b"x"))))
        log, flush = alive.hosted("a").log, Segment.flush
        in_thread = threading.Event()

        def flush_after_deletion(self: Segment, **options: Any) -> None:
            if self in log.segments and not in_thread.is_set():
                in_thread.set()
                gone = alive.broker.cluster.delete_topics([("a", None)])
                asyncio.run_coroutine_threadsafe(gone, loop).result(10)
            flush(self, **options)

        monkeypatch.setattr(Segment, "flush", flush_after_deletion)
        monkeypatch.setattr(Log, "flush_overdue", lambda self, now_ms: True)
        await alive.broker.upkeep._flush()
        assert in_thread.is_set()
        assert alive.broker.folder.failed is None
        await alive.make("b")
        await wire.ask(PRODUCE, 9, produce(("b", 0, batch(b"x"))))
        assert alive.hosted("b").high_watermark == 1

    run(scenario, tmp_path)


def test_a_foreign_folder_in_the_way_leaves_one_partition_out_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    async def scenario(alive: Living) -> None:
        (tmp_path / "a-1").mkdir()
        (tmp_path / "a-1" / "mine").write_text("mine")
        await alive.make("a", 3)
        assert alive.broker.partitions.find("a", None, 1) is None
        assert alive.hosted("a", 2).high_watermark == 0
        assert (tmp_path / "a-1" / "mine").read_text() == "mine"
        assert "is not ours" in caplog.text

    run(scenario, tmp_path)
