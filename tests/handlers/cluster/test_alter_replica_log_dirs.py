"""AlterReplicaLogDirs: what is answered, that DescribeLogDirs shows the move, and where the partition is afterwards."""

import asyncio
import errno
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.patience import until
from moldau.errors import ErrorCode
from moldau.names import TopicPartition
from moldau.protocol.apis import ALTER_REPLICA_LOG_DIRS, DESCRIBE_LOG_DIRS
from moldau.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from moldau.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from tests.handlers.living import Living, Wire, run

NONE, OFFLINE = ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR
NOWHERE, UNKNOWN = ErrorCode.LOG_DIR_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def moves(*wanted: tuple[Path | str, str, Sequence[int]]) -> AlterReplicaLogDirsRequest:
    return AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(path=str(path), topics=[AlterReplicaLogDirTopic(name=topic, partitions=list(numbers))])
            for path, topic, numbers in wanted
        ]
    )


async def ask(
    wire: Wire, *wanted: tuple[Path | str, str, Sequence[int]], version: int = 2
) -> dict[str, dict[int, ErrorCode]]:
    reply = await wire.ask(ALTER_REPLICA_LOG_DIRS, version, moves(*wanted))
    return {
        topic.topic_name: {one.partition_index: ErrorCode(one.error_code) for one in topic.partitions}
        for topic in reply.results
    }


@pytest.mark.parametrize("version", [1, 2])
def test_a_partition_moves_to_the_folder_that_is_asked_for(tmp_path: Path, version: int) -> None:
    first, second = paths = [tmp_path / "a", tmp_path / "b"]

    async def scenario(alive: Living) -> None:
        await alive.make("t", 2)
        wire, folders = await alive.dial(), alive.broker.folders

        def place(number: int) -> Path:
            folder = folders.folder_of(TopicPartition("t", number))
            assert folder is not None
            return folder.path

        assert await ask(wire, (first, "t", [0]), (second, "t", [1]), version=version) == {"t": {0: NONE, 1: NONE}}
        assert (place(0), place(1)) == (first, second)
        assert await ask(wire, (second, "t", [0, 0]), (first, "t", [1]), version=version) == {"t": {0: NONE, 1: NONE}}
        await until(lambda: (place(0), place(1)) == (second, first))
        await until(lambda: not (first / "t-0").exists() and not (second / "t-1").exists())
        assert (second / "t-0").is_dir() and (first / "t-1").is_dir()
        ids = [folder.directory_id for folder in folders.folders]

        def recorded() -> list[str]:
            return [part.directory_of(1) for part in alive.broker.cluster.image.topics["t"].partitions]

        await until(lambda: recorded() == [ids[1], ids[0]])

    run(scenario, tmp_path, log_dirs=",".join(map(str, paths)))


def test_errors_are_kafkas(tmp_path: Path) -> None:
    first, second = paths = [tmp_path / "a", tmp_path / "b"]

    async def scenario(alive: Living) -> None:
        await alive.make("t", 2)
        wire = await alive.dial()
        assert await ask(wire, (tmp_path / "c", "t", [0]), (f"{first}/", "x", [0])) == {
            "t": {0: NOWHERE},
            "x": {0: NOWHERE},
        }
        assert await ask(wire, (first, "t", [7]), (first, "x", [0])) == {"t": {7: UNKNOWN}, "x": {0: UNKNOWN}}
        assert await ask(wire, (second, "t", [0]), (first, "t", [0])) == {"t": {0: NONE}}, "the last one counts"
        alive.broker.folders.folders[1].fail(OSError(errno.EIO, "gone"))
        assert await ask(wire, (second, "t", [0]), (first, "t", [1])) == {"t": {0: OFFLINE, 1: OFFLINE}}

    run(scenario, tmp_path, log_dirs=",".join(map(str, paths)))


def test_while_a_folder_is_offline_nothing_moves(tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b", tmp_path / "c"]

    async def scenario(alive: Living) -> None:
        await alive.make("t", 1)
        alive.broker.folders.folders[2].fail(OSError(errno.EIO, "gone"))
        wire = await alive.dial()
        assert await ask(wire, (paths[1], "t", [0])) == {"t": {0: OFFLINE}}
        assert await ask(wire, (paths[0], "t", [0])) == {"t": {0: NONE}}

    run(scenario, tmp_path, log_dirs=",".join(map(str, paths)))


def test_a_partition_is_made_where_it_was_wanted_before_it_was_there(tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]

    async def scenario(alive: Living) -> None:
        wire = await alive.dial()
        assert await ask(wire, (paths[1], "t", [0, 2])) == {"t": {0: UNKNOWN, 2: UNKNOWN}}
        await alive.make("t", 3)
        assert [(paths[1] / f"t-{number}").is_dir() for number in range(3)] == [True, False, True]
        await alive.make("u", 1)

    run(scenario, tmp_path, log_dirs=",".join(map(str, paths)))


def test_a_move_is_shown_until_it_ends_or_is_cancelled(tmp_path: Path) -> None:
    first, second = paths = [tmp_path / "a", tmp_path / "b"]

    async def scenario(alive: Living) -> None:
        await alive.make("t", 1)
        wire, replica = await alive.dial(), alive.replica("t")
        replica.log.cleaning = True  # so that the copy does not take its place yet

        async def shown() -> dict[str, tuple[int, int, bool]]:
            reply = await wire.ask(DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=None))
            return {
                one.log_dir: (part.partition_size, part.offset_lag, part.is_future_key)
                for one in reply.results
                for topic in one.topics
                for part in topic.partitions
            }

        assert await ask(wire, (second, "t", [0])) == {"t": {0: NONE}}
        assert await shown() == {str(first): (0, 0, False), str(second): (0, 0, True)}
        assert await ask(wire, (second, "t", [0])) == {"t": {0: NONE}}
        await until(lambda: any(second.glob("t-0.*-future")))
        assert await ask(wire, (first, "t", [0])) == {"t": {0: NONE}}
        while len(await shown()) > 1:
            await asyncio.sleep(0.01)
        await until(lambda: not any(second.glob("t-0.*-future")))
        assert alive.broker.folders.find(replica.tp) is replica.log
        replica.log.cleaning = False

    run(scenario, tmp_path, log_dirs=",".join(map(str, paths)))
