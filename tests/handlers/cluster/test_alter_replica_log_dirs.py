"""A partition stays in the folder it is in: to ask for that succeeds, to ask for another one is refused and logged."""

import errno
from collections.abc import Sequence
from pathlib import Path

import pytest

from moldau.errors import ErrorCode
from moldau.protocol.apis import ALTER_REPLICA_LOG_DIRS
from moldau.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from tests.handlers.living import Living, run

OFFLINE = ErrorCode.KAFKA_STORAGE_ERROR


def moves(*wanted: tuple[Path | str, str, Sequence[int]]) -> AlterReplicaLogDirsRequest:
    return AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(path=str(path), topics=[AlterReplicaLogDirTopic(name=topic, partitions=list(numbers))])
            for path, topic, numbers in wanted
        ]
    )


@pytest.mark.parametrize("version", [1, 2])
def test_where_a_partition_is_it_may_stay_and_nowhere_else_can_it_go(
    tmp_path: Path, version: int, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = paths = [tmp_path / "a", tmp_path / "b"]

    async def scenario(alive: Living) -> None:
        await alive.make("t", 2)
        wire = await alive.dial()

        async def ask(*wanted: tuple[Path | str, str, Sequence[int]]) -> dict[str, dict[int, ErrorCode]]:
            reply = await wire.ask(ALTER_REPLICA_LOG_DIRS, version, moves(*wanted))
            return {
                topic.topic_name: {one.partition_index: ErrorCode(one.error_code) for one in topic.partitions}
                for topic in reply.results
            }

        nowhere, unknown = ErrorCode.LOG_DIR_NOT_FOUND, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await ask((first, "t", [0]), (second, "t", [1])) == {"t": {0: ErrorCode.NONE, 1: ErrorCode.NONE}}
        assert await ask((tmp_path / "c", "t", [0]), (f"{first}/", "x", [0])) == {"t": {0: nowhere}, "x": {0: nowhere}}
        assert await ask((first, "t", [7]), (first, "x", [0])) == {"t": {7: unknown}, "x": {0: unknown}}
        assert "which is refused" not in caplog.text
        refused = ErrorCode.INVALID_REQUEST
        assert await ask((second, "t", [0, 0]), (first, "t", [1])) == {"t": {0: refused, 1: refused}}
        assert "asked to move 2 partitions to other log folders, which is refused" in caplog.text
        assert await ask((second, "t", [0]), (first, "t", [0])) == {"t": {0: ErrorCode.NONE}}
        alive.broker.folders.folders[1].fail(OSError(errno.EIO, "gone"))
        assert await ask((second, "t", [0]), (first, "t", [1])) == {"t": {0: OFFLINE, 1: OFFLINE}}

    run(scenario, tmp_path, log_dirs=",".join(map(str, paths)))
