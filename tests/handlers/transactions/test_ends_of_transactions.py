"""How transactions end that nobody ends, or whose markers cannot be written at once."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from moldau.errors import ErrorCode
from moldau.names import TopicPartition, TransactionMarkers
from moldau.replication.markers import MarkerWriter
from tests.handlers.living import Living
from tests.handlers.transacting import PAUSE_S, Transactor, committed, run, transactor

NONE = ErrorCode.NONE


async def state(alive: Living, wanted: str, transactional_id: str = "t") -> None:
    """Wait until the transaction is in that state."""
    await alive.broker.coordinators.transactions.loaded(transactional_id)
    while alive.broker.coordinators.transactions.describe(transactional_id).state != wanted:
        await asyncio.sleep(PAUSE_S)


@pytest.mark.parametrize("version", [11, 12])
def test_a_transaction_that_runs_out_of_time_is_aborted_and_its_producer_fenced(version: int, tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        one = await transactor(alive, "t", 5)
        assert await one.init(5, timeout_ms=1) is NONE
        if version < 12:
            assert await one.add("a", 0) == [NONE]
        await one.write("a", 0, b"x", version=version)  # it may be too late by now
        await state(alive, "CompleteAbort")
        assert await committed(alive, "a") == []
        assert await one.write("a", 0, b"y", version=version) is ErrorCode.INVALID_PRODUCER_EPOCH
        assert await one.end(True) is ErrorCode.PRODUCER_FENCED

    run(scenario, tmp_path, transaction_abort_timed_out_transaction_cleanup_interval_ms=10)


@pytest.mark.parametrize("commits", [True, False])
def test_markers_that_are_left_are_written_after_a_restart(
    commits: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    producers: list[Transactor] = []

    async def before(alive: Living) -> None:
        await alive.make("a")
        with monkeypatch.context() as broken:
            broken.setattr(MarkerWriter, "__call__", refuse)
            one = await transactor(alive, "t", 5)
            assert await one.write("a", 0, b"x", version=12) is NONE
            assert await one.end(commits, version=5) is NONE
            await state(alive, "PrepareCommit" if commits else "PrepareAbort")
            assert alive.replica("a").last_stable_offset == 0
            await alive.broker.coordinators.transactions.stop()
        producers.append(one)

    async def after(alive: Living) -> None:
        (one,) = producers
        one.wire = await alive.dial()
        assert await committed(alive, "a") == ([b"x"] if commits else [])
        await state(alive, "CompleteCommit" if commits else "CompleteAbort")
        assert await one.write("a", 0, b"y", version=12) is NONE
        assert await one.end(True, version=5) is NONE
        assert await committed(alive, "a") == ([b"x", b"y"] if commits else [b"y"])

    run(before, tmp_path)
    run(after, tmp_path)


async def refuse(_: MarkerWriter, markers: TransactionMarkers) -> Mapping[TopicPartition, ErrorCode]:
    return dict.fromkeys(markers.partitions, ErrorCode.KAFKA_STORAGE_ERROR)


def test_a_topic_that_is_deleted_keeps_no_transaction_from_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        await alive.make("gone")
        one = await transactor(alive, "t", 5)
        for topic in ("a", "gone"):
            assert await one.write(topic, 0, b"x", version=12) is NONE
        with monkeypatch.context() as broken:
            broken.setattr(MarkerWriter, "__call__", refuse)
            assert await one.end(True, version=5) is NONE
            await state(alive, "PrepareCommit")
        await alive.broker.cluster.topics.delete([("gone", None)])
        await state(alive, "CompleteCommit")
        assert await committed(alive, "a") == [b"x"]

    run(scenario, tmp_path)
