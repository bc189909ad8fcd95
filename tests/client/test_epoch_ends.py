"""Whoever reads a range notices that what it has read so far is not in the log of the next leader (KIP-320)."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable

import pytest

from harness.patience import within
from moldau.client.consuming.async_consumer import AsyncConsumer
from moldau.client.consuming.fetched.record import Record
from moldau.client.epoch_ends import EpochEnd, FetchPosition
from moldau.client.fetching import read_columns
from moldau.errors import LogTruncated
from moldau.names import TopicPartition
from tests.client.scripted_cluster import TOPIC, ScriptedCluster

TP = TopicPartition(TOPIC, 0)
BEFORE = [0] * 6 + [1] * 4
Read = Callable[[], Awaitable[list[int]]]


@pytest.mark.parametrize(
    ("end", "holds"),
    [
        (EpochEnd(1, 10), True),
        (EpochEnd(1, 12), True),
        (EpochEnd(1, 9), False),
        (EpochEnd(0, 10), False),
        (EpochEnd(0, 6), False),
        (EpochEnd(-1, -1), False),
    ],
)
def test_a_record_is_in_the_log_if_its_epoch_is_and_ends_behind_it(end: EpochEnd, holds: bool) -> None:
    assert end.holds(10, 1) == holds


def test_a_reader_asks_no_leader_of_an_older_epoch_than_it_has_read_from() -> None:
    at = FetchPosition(TP, 0)
    assert at.request(7, can_ask=True) is None
    at.read(10, 5)
    for leader_epoch, expected in ((4, 7), (6, 7), (8, 8)):
        request = at.request(leader_epoch, can_ask=True)
        assert request is not None
        asked = request.topics[0].partitions[0]
        assert (asked.leader_epoch, asked.current_leader_epoch) == (5, expected)


def play(face: str, scenario: Callable[[ScriptedCluster, Read], Awaitable[None]]) -> None:
    """Read the partition piece by piece: by `log` of a consumer, or by the blocking reader of columns."""

    async def run() -> None:
        async with ScriptedCluster().running() as cluster:
            cluster.log, cluster.leader_epoch = list(BEFORE), 1
            if face == "columns":
                pieces = read_columns(cluster.bootstrap, TOPIC, 0, 0, 20)
                await scenario(cluster, lambda: asyncio.to_thread(lambda: next(pieces).column("offset").to_pylist()))
                await asyncio.to_thread(pieces.close)  # type: ignore[attr-defined]
                return
            async with AsyncConsumer(cluster.bootstrap) as consumer:
                log, at = consumer.log(TOPIC), FetchPosition(TP, 0)

                async def read() -> list[int]:
                    found: list[Record] = []
                    while not found:
                        end = len(cluster.log)
                        found = await log.piece(at, end) if at.offset < end else []
                        await asyncio.sleep(0)
                    return [record.offset for record in found]

                await scenario(cluster, read)

    async def limited() -> None:
        await within(run())

    asyncio.run(limited())


@pytest.mark.parametrize("face", ["log", "columns"])
def test_a_reader_goes_on_with_a_leader_that_has_what_it_read(face: str) -> None:
    async def scenario(cluster: ScriptedCluster, read: Read) -> None:
        assert await read() == list(range(10))
        assert cluster.compared == []
        cluster.leader_epoch = 2
        cluster.log += [2] * 10
        assert await read() == list(range(10, 20))
        assert cluster.compared == [(1, 2)]

    play(face, scenario)


@pytest.mark.parametrize("face", ["log", "columns"])
def test_a_reader_hears_that_the_log_was_truncated_under_it(face: str) -> None:
    async def scenario(cluster: ScriptedCluster, read: Read) -> None:
        assert await read() == list(range(10))
        cluster.leader_epoch, cluster.log = 3, [0] * 6 + [3] * 14
        with pytest.raises(LogTruncated, match="t-0 was truncated at offset 6, before position 10") as truncated:
            await read()
        assert (truncated.value.topic_partition, truncated.value.position, truncated.value.offset) == (TP, 10, 6)

    play(face, scenario)


@pytest.mark.parametrize("face", ["log", "columns"])
def test_a_reader_hears_that_the_topic_was_made_anew_under_it(face: str) -> None:
    async def scenario(cluster: ScriptedCluster, read: Read) -> None:
        cluster.topic_id = uuid.UUID(int=1)
        assert await read() == list(range(10))
        cluster.topic_id, cluster.leader_epoch, cluster.log = uuid.UUID(int=2), 0, [0] * 20
        with pytest.raises(LogTruncated, match="t-0 was deleted and created again: its position 10"):
            await read()

    play(face, scenario)
