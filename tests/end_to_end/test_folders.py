"""A broker with several disks: one goes, the others serve; it comes back, and nothing was begun anew in its place."""

import asyncio
import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from harness.brokers import SOURCE, first_line
from harness.patience import stretched, within
from moldau.broker import Broker as InProcess
from moldau.cli import main
from moldau.config import broker_config
from moldau.errors import ErrorCode, StorageError
from moldau.log.folders.identity import CLEAN_MARKER
from moldau.process import run as run_broker
from moldau.protocol.apis import CREATE_TOPICS, DELETE_RECORDS, FETCH, LIST_OFFSETS, METADATA, PRODUCE
from moldau.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from moldau.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from moldau.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponsePartition
from moldau.replication.replicas import Replicas
from moldau.runtime import Runtime
from tests.handlers.living import Living, Wire, batch, living, outcomes, produce

OFFLINE = ErrorCode.KAFKA_STORAGE_ERROR
DELAY = {"log_segment_delete_delay_ms": 0}


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    return [tmp_path / "first", tmp_path / "second"]


@contextlib.asynccontextmanager
async def on(paths: list[Path]) -> AsyncIterator[Living]:
    async with asyncio.timeout(stretched()), living(paths[0], log_dirs=",".join(map(str, paths)), **DELAY) as alive:
        yield alive


async def partitions(wire: Wire, topic: str) -> list[MetadataResponsePartition]:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
    return list((await wire.ask(METADATA, 9, request)).topics[0].partitions)


async def written(wire: Wire, topic: str, count: int) -> list[int]:
    """The error of one more record in each partition."""
    return [outcomes(await wire.ask(PRODUCE, 9, produce((topic, n, batch(b"x")))))[0][1] for n in range(count)]


def fetch(topic: str, partition: int, offset: int, wait_ms: int = 0) -> FetchRequest:
    part = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1000)
    return FetchRequest(
        max_wait_ms=wait_ms, min_bytes=1, max_bytes=1000, session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=[part])],
    )  # fmt: skip


async def others(wire: Wire, topic: str, partition: int) -> list[int]:
    """What Fetch, ListOffsets and DeleteRecords say of a partition."""
    fetched = await wire.ask(FETCH, 11, fetch(topic, partition, 0))
    position = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=partition, timestamp=-1)])
    listed = await wire.ask(LIST_OFFSETS, 5, ListOffsetsRequest(replica_id=-1, topics=[position]))
    start = DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=partition, offset=0)])
    deleted = await wire.ask(DELETE_RECORDS, 1, DeleteRecordsRequest(topics=[start], timeout_ms=1000))
    return [
        fetched.responses[0].partitions[0].error_code,
        listed.topics[0].partitions[0].error_code,
        deleted.topics[0].partitions[0].error_code,
    ]


async def until_offline(wire: Wire, topic: str, partition: int) -> MetadataResponsePartition:
    while (found := (await partitions(wire, topic))[partition]).leader_id != -1:
        await asyncio.sleep(0)
    return found


def test_one_disk_goes_and_the_other_serves(paths: list[Path]) -> None:
    async def scenario() -> None:
        async with on(paths) as alive:
            await alive.make("t", 4)
            wire, reader = await alive.dial(), await alive.dial()
            assert await written(wire, "t", 4) == [0, 0, 0, 0]
            reader.send(FETCH, 11, fetch("t", 1, 1, wait_ms=20_000))
            await wire.ask(METADATA, 9, MetadataRequest(topics=[]))
            alive.replica("t", 1).log.active_segment.log.get().close()
            assert (await written(wire, "t", 4))[1] == OFFLINE
            lost = await until_offline(wire, "t", 1)
            _, woken = await reader.receive(FETCH, 11)
            assert woken.responses[0].partitions[0].error_code == OFFLINE
            assert (lost.error_code, lost.leader_epoch, lost.offline_replicas) == (5, 1, [1])
            led = [(part.leader_id, part.offline_replicas) for part in await partitions(wire, "t")]
            assert led == [(1, []), (-1, [1]), (1, []), (-1, [1])]
            assert await written(wire, "t", 4) == [0, OFFLINE, 0, OFFLINE]
            assert await others(wire, "t", 3) == [OFFLINE] * 3
            assert await others(wire, "t", 2) == [0, 0, 0]
            await alive.make("u", 3)
            assert await written(wire, "u", 3) == [0, 0, 0]
            for job in alive.broker.upkeep.jobs:
                await job.work()
            assert not alive.broker.failed.is_set()
        assert [(path / CLEAN_MARKER).exists() for path in paths] == [True, False]
        async with on(paths) as alive:
            wire = await alive.dial()
            assert await written(wire, "t", 4) == [0, 0, 0, 0]
            assert [part.leader_epoch for part in await partitions(wire, "t")] == [0, 2, 0, 2]
            assert [int(alive.replica("t", n).log.log_end_offset) for n in range(4)] == [4, 2, 4, 2]

    asyncio.run(scenario())


@pytest.mark.parametrize("in_its_place", ["nothing", "file"])
def test_a_disk_that_is_not_mounted_is_not_made_up_for(paths: list[Path], in_its_place: str) -> None:
    async def scenario() -> None:
        async with on(paths) as alive:
            await alive.make("t", 2)
            await alive.make("gone", 2)
            assert await written(await alive.dial(), "t", 2) == [0, 0]
        away = paths[1].with_name("away")
        paths[1].rename(away)
        if in_its_place == "file":
            paths[1].write_text("no disk")
        async with on(paths) as alive:
            wire = await alive.dial()
            assert await written(wire, "t", 2) == [0, OFFLINE]
            assert (await partitions(wire, "t"))[1].offline_replicas == [1]
            assert await others(wire, "t", 1) == [OFFLINE] * 3
            await alive.broker.cluster.topics.delete([("gone", None)])
            assert not (paths[0] / "t-1").exists()
        shutil.rmtree(paths[1]) if in_its_place == "nothing" else paths[1].unlink()
        away.rename(paths[1])
        async with on(paths) as alive:
            wire = await alive.dial()
            assert await written(wire, "t", 2) == [0, 0]
            assert alive.replica("t", 1).log.log_end_offset == 2
            assert in_its_place == "nothing" or not (paths[1] / "gone-1").exists()

    asyncio.run(scenario())


def test_the_order_of_the_folders_may_change(paths: list[Path]) -> None:
    async def scenario() -> None:
        async with on(paths) as alive:
            await alive.make("t", 4)
        async with on(paths[::-1]) as alive:
            assert await written(await alive.dial(), "t", 4) == [0] * 4
            assert not (paths[1] / "metadata.sqlite").exists()

    asyncio.run(scenario())


def test_a_second_folder_may_be_added_to_what_one_has_written(paths: list[Path]) -> None:
    async def scenario() -> None:
        async with living(paths[0]) as alive:
            await alive.make("t", 3)
        async with on(paths) as alive:
            assert await written(await alive.dial(), "t", 3) == [0] * 3
            await alive.make("u", 4)
            assert [len(folder.logs) for folder in alive.broker.folders.folders] == [4, 3]

    asyncio.run(scenario())


def test_losing_the_folder_with_the_metadata_ends_the_broker(paths: list[Path]) -> None:
    async def scenario() -> None:
        async with on(paths) as alive:
            await asyncio.to_thread(alive.broker.folders.folders[0].fail, OSError(errno.EIO, "a write failed"))
            await alive.broker.failed.wait()

    asyncio.run(scenario())


def test_without_the_metadata_there_is_no_start(paths: list[Path], capfd: pytest.CaptureFixture[str]) -> None:
    async def scenario() -> None:
        async with on(paths) as alive:
            await alive.make("t", 2)

    asyncio.run(scenario())
    shutil.move(paths[0], paths[0].with_name("away"))
    paths[0].write_text("no disk")
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": ",".join(map(str, paths)), "node.id": "1"}
    assert run_broker(settings) == 1
    said = [line for line in capfd.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(said) == 1 and "no log folder that could be opened has metadata.sqlite" in said[0]


def test_a_partition_whose_folder_was_never_made_is_made_by_the_next_start(
    paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the process had died right after the topic was committed."""

    async def scenario() -> None:
        with monkeypatch.context() as patch:
            async with on(paths) as alive:
                patch.setattr(Replicas, "_change_folders", lambda *_: None)
                await alive.make("t", 3)
        assert not list(paths[0].glob("t-*"))
        async with on(paths) as alive:
            assert await written(await alive.dial(), "t", 3) == [0, 0, 0]
        shutil.rmtree(paths[0] / "t-0")
        with pytest.raises(StorageError, match="1 partition has no folder"):
            async with on(paths):
                pass

    asyncio.run(scenario())


def test_a_folder_that_is_left_out_of_log_dirs_is_no_loss(paths: list[Path], caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with on(paths) as alive:
            await alive.make("t", 2)
            assert await written(await alive.dial(), "t", 2) == [0, 0]
        async with on(paths[:1]) as alive:
            assert await written(await alive.dial(), "t", 2) == [0, OFFLINE]
        assert f"if it is lost for good, `moldau log repair {paths[0]}` can start them empty" in caplog.text
        async with on(paths) as alive:
            assert await written(await alive.dial(), "t", 2) == [0, 0]
            assert alive.replica("t", 1).log.log_end_offset == 2

    asyncio.run(scenario())


def test_a_partition_that_was_moved_to_another_folder_is_led_at_once(paths: list[Path]) -> None:
    async def scenario() -> None:
        async with on(paths) as alive:
            await alive.make("t", 2)
            assert await written(await alive.dial(), "t", 2) == [0, 0]
        third = paths[0].with_name("third")
        third.mkdir()
        (paths[1] / "t-1").rename(third / "t-1")
        for name in (CLEAN_MARKER, "recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
            shutil.copy(paths[1] / name, third)
        shutil.copy(paths[1] / "meta.properties", third)
        lines = (third / "meta.properties").read_text().splitlines()
        (third / "meta.properties").write_text("\n".join(one for one in lines if "directory.id" not in one))
        async with on([paths[0], third]) as alive:
            assert await written(await alive.dial(), "t", 2) == [0, 0]

    asyncio.run(scenario())


def test_the_metadata_of_a_lost_folder_are_in_the_others(paths: list[Path], capfd: pytest.CaptureFixture[str]) -> None:
    async def scenario() -> None:
        async with on(paths) as alive:
            await alive.make("t", 2, retention_ms=-1)
            assert await written(await alive.dial(), "t", 2) == [0, 0]
        shutil.rmtree(paths[0])
        with pytest.raises(StorageError, match=r"metadata\.sqlite is missing.*moldau log repair"):
            async with on(paths):
                pass
        repair = ["log", "repair", *map(str, paths), "--execute"]
        assert main.run(repair) == 0
        assert main.run([*repair, "--accept-empty", "t-0"]) == 0
        async with on(paths) as alive:
            assert await written(await alive.dial(), "t", 2) == [0, 0]
            assert alive.broker.cluster.image.topics["t"].overrides == {"retention.ms": "-1"}
            assert [int(alive.replica("t", n).log.log_end_offset) for n in range(2)] == [1, 2]

    asyncio.run(scenario())


def test_two_sets_of_metadata_are_refused(paths: list[Path]) -> None:
    async def scenario() -> None:
        async with on(paths):
            pass
        shutil.copy(paths[0] / "metadata.sqlite", paths[1])
        settings = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": ",".join(map(str, paths)), "node.id": "1"}
        with pytest.raises(StorageError, match="remove the one"):
            await InProcess(broker_config(settings)[0], Runtime()).start()

    asyncio.run(scenario())


def test_a_process_that_loses_a_disk_goes_on_and_stops_as_asked(paths: list[Path]) -> None:
    """The disk goes as one that was unplugged: what is open stays, nothing new can be made on it."""

    async def scenario(port: int) -> None:
        wire = Wire(*await asyncio.open_connection("127.0.0.1", port))
        topic = CreatableTopic(
            name="t", num_partitions=2, replication_factor=1,
            configs=[CreatableTopicConfig(name="segment.bytes", value=str(1 << 20))],
        )  # fmt: skip
        await wire.ask(CREATE_TOPICS, 5, CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
        assert await written(wire, "t", 2) == [0, 0]
        shutil.rmtree(paths[1])
        large = batch(os.urandom(900_000))
        errors = [
            outcomes(await wire.ask(PRODUCE, 9, produce(("t", number, large))))[0][1]
            for _ in range(3)
            for number in range(2)
        ]
        assert errors[::2] == [0, 0, 0] and OFFLINE in errors[1::2]
        await until_offline(wire, "t", 1)
        assert await written(wire, "t", 2) == [0, OFFLINE]
        wire.writer.close()

    command = [sys.executable, "-m", "moldau", "server", "start", "--host", "127.0.0.1", "--port", "0"]
    with subprocess.Popen(
        [*command, "--set", f"log.dirs={paths[0]},{paths[1]}"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(SOURCE)},
    ) as process:  # fmt: skip
        try:
            port = int(first_line(process).rpartition(":")[2])
            asyncio.run(within(scenario(port)))
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=stretched())
        finally:
            process.kill()
    assert process.returncode == 0
    assert "Traceback" not in said and f"the log folder {paths[1]} is offline" in said
    assert (paths[0] / CLEAN_MARKER).exists()
