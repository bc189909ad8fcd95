"""DeleteRecords as it stands on the wire: the start moves forward only, and not everywhere."""

from pathlib import Path

import pytest

from moldau.errors import ErrorCode
from moldau.names import OFFSETS_TOPIC, LeaderEpoch
from moldau.protocol.apis import DELETE_RECORDS, FETCH, PRODUCE
from moldau.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.replication.leadership import PartitionRoles
from tests.handlers.in_sync import FOLLOWER
from tests.handlers.living import Living, Wire, batch, produce, run


async def delete(wire: Wire, offset: int, topic: str = "a", partition: int = 0, version: int = 2) -> tuple[int, int]:
    """(error, low watermark)."""
    part = DeleteRecordsPartition(partition_index=partition, offset=offset)
    asked = [DeleteRecordsTopic(name=topic, partitions=[part])]
    response = await wire.ask(DELETE_RECORDS, version, DeleteRecordsRequest(topics=asked, timeout_ms=1000))
    (result,) = response.topics[0].partitions
    return result.error_code, result.low_watermark


async def filled(alive: Living) -> Wire:
    await alive.make("a")
    await alive.make("kept", cleanup_policy="compact")
    await alive.make("both", cleanup_policy="compact,delete")
    await alive.make("neither", cleanup_policy="")
    await alive.broker.cluster.topics.ensure_offsets_topic()
    wire = await alive.dial()
    await wire.ask(PRODUCE, 9, produce(("a", 0, batch(b"0", b"1", b"2")), ("a", 0, batch(b"3", b"4"))))
    return wire


@pytest.mark.parametrize("version", [0, 1, 2])
def test_the_start_moves_forward_and_never_back(version: int, tmp_path: Path):
    async def scenario(alive: Living) -> None:
        wire = await filled(alive)
        assert await delete(wire, 2, version=version) == (0, 2)
        assert await delete(wire, 1, version=version) == (0, 2)
        assert await delete(wire, -1, version=version) == (0, 5)
        asked = FetchPartition(partition=0, fetch_offset=2, partition_max_bytes=1000)
        request = FetchRequest(max_wait_ms=0, min_bytes=1, topics=[FetchTopic(topic="a", partitions=[asked])])
        part = (await wire.ask(FETCH, 12, request)).responses[0].partitions[0]
        assert part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE

    run(scenario, tmp_path)


@pytest.mark.parametrize(
    ("topic", "partition", "offset", "error"),
    [
        ("a", 0, 6, ErrorCode.OFFSET_OUT_OF_RANGE),
        ("a", 0, -2, ErrorCode.OFFSET_OUT_OF_RANGE),
        ("a", 3, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("none", 0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("kept", 0, 0, ErrorCode.POLICY_VIOLATION),
        (OFFSETS_TOPIC, 0, 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_what_is_refused(topic: str, partition: int, offset: int, error: ErrorCode, tmp_path: Path):
    async def scenario(alive: Living) -> None:
        wire = await filled(alive)
        assert await delete(wire, offset, topic, partition) == (error, -1)
        assert await delete(wire, -1, "both") == (0, 0)
        assert await delete(wire, -1, "neither") == (0, 0)

    run(scenario, tmp_path)


def test_what_was_deleted_stays_deleted_after_a_restart(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        await delete(await filled(alive), 2)

    run(scenario, tmp_path)

    async def look(alive: Living) -> None:
        assert alive.replica("a").log.log_start_offset == 2

    run(look, tmp_path)


def test_a_follower_has_no_records_deleted_by_a_client(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        wire = await filled(alive)
        replica = alive.replica("a")
        replica.take_roles(PartitionRoles(FOLLOWER, LeaderEpoch(9), (FOLLOWER,), (FOLLOWER,)), 0)
        assert await delete(wire, 2) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
        assert replica.log.log_start_offset == 0

    run(scenario, tmp_path)
