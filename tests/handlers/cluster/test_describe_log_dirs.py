"""Which folder has what, how large it is, and which folder is offline."""

import errno
from pathlib import Path

import pytest

from moldau.errors import ErrorCode
from moldau.handlers.cluster import describe_log_dirs
from moldau.protocol.apis import DESCRIBE_LOG_DIRS, PRODUCE
from moldau.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from tests.handlers.living import Living, batch, produce, run


@pytest.mark.parametrize("version", [1, 3, 4, 5])
def test_every_folder_tells_its_partitions_and_one_that_is_offline_says_so(
    tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch
):
    paths = [tmp_path / "a", tmp_path / "b"]

    async def scenario(alive: Living) -> None:
        await alive.make("t", 3)
        wire = await alive.dial()
        await wire.ask(PRODUCE, 9, produce(("t", 2, batch(b"x"))))

        async def ask(*partitions: int) -> list[tuple[int, str, list[tuple[int, int]]]]:
            topics = [DescribableLogDirTopic(topic="t", partitions=list(partitions))] if partitions else None
            found = await wire.ask(DESCRIBE_LOG_DIRS, version, DescribeLogDirsRequest(topics=topics))
            for one in found.results:
                assert (one.total_bytes > one.usable_bytes > 0) == (version >= 4 and one.error_code == 0)
            return [
                (
                    one.error_code,
                    one.log_dir,
                    [(part.partition_index, part.partition_size) for topic in one.topics for part in topic.partitions],
                )
                for one in found.results
            ]

        size = alive.replica("t", 2).log.size
        first, second = map(str, paths)
        assert await ask() == [(0, first, [(0, 0), (2, size)]), (0, second, [(1, 0)])]
        for narrow in (0, describe_log_dirs.NARROW):  # with and without a look at all others
            monkeypatch.setattr(describe_log_dirs, "NARROW", narrow)
            assert await ask(2, 5) == [(0, first, [(2, size)]), (0, second, [])]
            assert await ask(1, 0) == [(0, first, [(0, 0)]), (0, second, [(1, 0)])]
        alive.broker.folders.folders[1].fail(OSError(errno.EIO, "gone"))
        assert (await ask())[1] == (ErrorCode.KAFKA_STORAGE_ERROR, second, [])

    run(scenario, tmp_path, log_dirs=",".join(map(str, paths)))
