"""ListOffsets as it stands on the wire: both ends, times, special timestamps by version, epochs, what is refused."""

from pathlib import Path
from typing import Any

import pytest

from moldau.errors import ErrorCode
from moldau.names import LeaderEpoch, Offset
from moldau.protocol.apis import LIST_OFFSETS, PRODUCE
from moldau.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.records.batch import Row, encode_batch
from moldau.replication.leadership import PartitionRoles
from tests.handlers.in_sync import FOLLOWER, reached
from tests.handlers.living import NOW_MS, Living, Wire, produce, run

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = -1, -2, -3, -4, -5, -6
VERSIONS = range(1, 12)


async def ask(wire: Wire, version: int, *parts: ListOffsetsPartition, topic: str = "a") -> list[Any]:
    asked = [ListOffsetsTopic(name=topic, partitions=list(parts))]
    response = await wire.ask(LIST_OFFSETS, version, ListOffsetsRequest(replica_id=-1, topics=asked))
    return list(response.topics[0].partitions)


def at(timestamp: int, partition: int = 0, **fields: int) -> ListOffsetsPartition:
    return ListOffsetsPartition(partition_index=partition, timestamp=timestamp, **fields)


async def filled(alive: Living) -> Wire:
    """Four records at times 10, 30, 20 and 40 after `NOW_MS`, two in a batch; the first is deleted."""
    await alive.make("a", 2)
    wire = await alive.dial()
    for times in ((10, 30), (20, 40)):
        rows = [Row(None, b"x", NOW_MS + time) for time in times]
        await wire.ask(PRODUCE, 9, produce(("a", 0, bytes(encode_batch(rows)))))
    alive.replica("a").log.delete_records_before(1)
    return wire


@pytest.mark.parametrize(
    ("timestamp", "since", "found"),
    [
        (LATEST, 1, (-1, 4)),
        (EARLIEST, 1, (-1, 1)),
        (0, 1, (30, 1)),
        (31, 1, (40, 3)),
        (41, 1, (-1, -1)),
        (MAX_TIMESTAMP, 7, (40, 3)),
        (EARLIEST_LOCAL, 8, (-1, 1)),
        (LATEST_TIERED, 9, (-1, -1)),
        (PENDING_UPLOAD, 11, (-1, -1)),
    ],
)
def test_what_is_at_a_time(timestamp: int, since: int, found: tuple[int, int], tmp_path: Path):
    """Times are those after `NOW_MS`, unless negative."""

    def absolute(time: int) -> int:
        return time if time < 0 else NOW_MS + time

    async def scenario(alive: Living) -> None:
        wire = await filled(alive)
        for version in VERSIONS:
            (part,) = await ask(wire, version, at(absolute(timestamp)))
            if version < since:
                assert part.error_code == ErrorCode.UNSUPPORTED_VERSION
            else:
                assert (part.error_code, part.timestamp, part.offset) == (0, absolute(found[0]), found[1])
                assert part.leader_epoch == (0 if version >= 4 and found[1] >= 0 else -1)

    run(scenario, tmp_path)


def test_an_empty_partition_has_ends_and_no_times(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        wire = await filled(alive)
        for timestamp, offset in ((LATEST, 0), (EARLIEST, 0), (MAX_TIMESTAMP, -1), (NOW_MS, -1)):
            (part,) = await ask(wire, 7, at(timestamp, 1))
            assert (part.error_code, part.timestamp, part.offset) == (0, -1, offset)

    run(scenario, tmp_path)


def test_what_is_refused(tmp_path: Path):
    async def scenario(alive: Living) -> None:
        wire = await filled(alive)
        (part,) = await ask(wire, 9, at(LATEST, 5))
        assert part.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        (part,) = await ask(wire, 9, at(LATEST), topic="none")
        assert part.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        (part,) = await ask(wire, 9, at(-7))
        assert part.error_code == ErrorCode.UNSUPPORTED_VERSION
        (part,) = await ask(wire, 9, at(LATEST, current_leader_epoch=5))
        assert part.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
        twice = await ask(wire, 9, at(LATEST), at(EARLIEST), at(LATEST, 1))
        assert [(part.partition_index, part.error_code) for part in twice] == [(0, ErrorCode.INVALID_REQUEST), (1, 0)]

    run(scenario, tmp_path)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_new_leader_tells_no_end_before_it_knows_how_far_the_log_is_committed(version: int, tmp_path: Path):
    async def scenario(alive: Living) -> None:
        wire, replica = await filled(alive), alive.replica("a")
        me = replica.leadership.local
        replica.high_watermark = Offset(2)  # the leader before it had committed all four, and had not told it
        replica.take_roles(PartitionRoles(me, LeaderEpoch(5), (me, FOLLOWER), (me, FOLLOWER), 5), 0)
        unknown = ErrorCode.OFFSET_NOT_AVAILABLE if version >= 5 else ErrorCode.LEADER_NOT_AVAILABLE
        for timestamp, error in ((LATEST, unknown), (NOW_MS + 41, unknown), (EARLIEST, 0), (NOW_MS, 0)):
            (part,) = await ask(wire, version, at(timestamp))
            assert part.error_code == error
        reached(replica, 4)
        (part,) = await ask(wire, version, at(LATEST))
        assert (part.error_code, part.offset) == (0, 4)

    run(scenario, tmp_path)


@pytest.mark.parametrize("timestamp", [LATEST, EARLIEST, 0, MAX_TIMESTAMP])
def test_a_leader_that_is_cut_off_does_not_answer(timestamp: int, tmp_path: Path) -> None:
    async def scenario(alive: Living) -> None:
        wire = await filled(alive)
        alive.replica("a").cut_off(True)
        (part,) = await ask(wire, 9, at(timestamp))
        assert (part.error_code, part.offset) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
        alive.replica("a").cut_off(False)
        (part,) = await ask(wire, 9, at(timestamp))
        assert part.error_code == ErrorCode.NONE

    run(scenario, tmp_path)
