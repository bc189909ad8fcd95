"""Every error that an operator must act on has a line in the log: what is wrong, where, and what to do."""

import asyncio
import errno
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from harness.patience import stretched
from moldau.cluster.controlling import change_queue
from moldau.cluster.copies import Copies
from moldau.coordinators import assembly
from moldau.coordinators.importing import import_for
from moldau.errors import ErrorCode
from moldau.handlers import table
from moldau.log import checkpoints, failures
from moldau.metadata_store.embedded import FILE_NAME
from moldau.protocol.apis import (
    CREATE_TOPICS,
    FETCH,
    FIND_COORDINATOR,
    HEARTBEAT,
    INIT_PRODUCER_ID,
    LIST_OFFSETS,
    PRODUCE,
)
from moldau.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.find_coordinator import FindCoordinatorRequest
from moldau.protocol.messages.heartbeat import HeartbeatRequest
from moldau.protocol.messages.init_producer_id import InitProducerIdRequest
from moldau.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.records.batch import ATTRIBUTES_AT, LENGTH_AT
from moldau.runtime import File, RealDisk
from tests.handlers.fetching.fetches import LONG_MS, at, fetch, fill, parts_of
from tests.handlers.living import Living, batch, outcomes, produce, run


def said(caplog: pytest.LogCaptureFixture, *words: str) -> int:
    """The number of lines that have all of these words."""
    return sum(all(word in line for word in words) for line in caplog.messages)


def rename_table(folder: Path, old: str, new: str) -> None:
    """Take the metadata's only table away, or bring it back."""
    metadata = sqlite3.connect(folder / FILE_NAME)
    with metadata:
        metadata.execute(f"ALTER TABLE {old} RENAME TO {new}")
    metadata.close()


def test_metadata_that_cannot_be_written_is_said_once_for_many_requests(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(change_queue.notices, "_written", {})  # another test may have had this line written lately

    async def scenario(alive: Living) -> None:
        wire = await alive.dial()
        rename_table(tmp_path, "node", "away")
        for number in range(3):
            topic = CreatableTopic(name=f"a{number}", num_partitions=1, replication_factor=1)
            made = await wire.ask(CREATE_TOPICS, 5, CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
            assert made.topics[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
        answer = await wire.ask(INIT_PRODUCER_ID, 2, InitProducerIdRequest(transactional_id=None))
        assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert said(caplog, str(tmp_path / FILE_NAME), "no such table", "Repair the disk") == 1
        found = await wire.ask(FIND_COORDINATOR, 3, FindCoordinatorRequest(key="g"))
        assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert said(caplog, "the topic __consumer_offsets cannot be created", str(tmp_path / FILE_NAME)) == 1

        rename_table(tmp_path, "away", "node")
        assert (await wire.ask(INIT_PRODUCER_ID, 2, InitProducerIdRequest(transactional_id=None))).error_code == 0

    run(scenario, tmp_path)


def test_groups_are_served_when_their_code_can_be_read_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    """A process without a free file descriptor imports nothing: at first not before the topic is made, then when the
    broker leads it."""
    monkeypatch.setattr(change_queue, "SHOW_AGAIN_S", 0)
    failures = {place: [OSError(errno.EMFILE, "Too many open files")] for place in (table, assembly)}

    def import_in(place: ModuleType) -> Callable[[str], None]:
        def fail_first(topic: str) -> None:
            if failures[place]:
                raise failures[place].pop()
            import_for(topic)

        return fail_first

    for place in failures:
        monkeypatch.setattr(place, "import_for", import_in(place))

    async def scenario(alive: Living) -> None:
        wire = await alive.dial()
        refused = await wire.ask(FIND_COORDINATOR, 3, FindCoordinatorRequest(key="g"))
        assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert refused.error_message.endswith("the code of its coordinator cannot be read: Too many open files.")
        assert not alive.broker.cluster.image.topics
        found = await wire.ask(FIND_COORDINATOR, 3, FindCoordinatorRequest(key="g"))
        assert (found.error_code, found.port) == (0, alive.broker.port)
        assert said(caplog, "changes of the cluster wait until this process can open files") == 1
        beat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
        while (error := (await wire.ask(HEARTBEAT, 4, beat)).error_code) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            pass
        assert error == ErrorCode.UNKNOWN_MEMBER_ID, "the coordinator is here, and has loaded its partition"

    run(scenario, tmp_path, offsets_topic_num_partitions=1)


def test_metadata_that_cannot_be_copied_say_what_to_do_about_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    def refuse(disk: object, path: Path, data: bytes) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))

    async def scenario(alive: Living) -> None:
        assert alive.broker._embedded is not None
        monkeypatch.setattr(checkpoints, "replace_private_file", refuse)
        copies = Copies(alive.broker._embedded, alive.broker.folders, alive.broker.runtime)
        copies.write(alive.broker.folders.folders)
        assert said(caplog, "the metadata cannot be copied to", "Too many open files", "Raise the limit of open") == 1
        assert said(caplog, "disk") == 0

    run(scenario, tmp_path)


def test_partitions_of_a_folder_that_is_offline_are_named_with_what_brings_them_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    async def scenario(alive: Living) -> None:
        await alive.make("a", 2)
        wire = await alive.dial()
        folder = alive.broker.folders.folders[1]
        folder.fail(OSError(errno.EIO, os.strerror(errno.EIO)))
        while all(alive.broker.replicas.find("a", None, number) for number in range(2)):
            await asyncio.sleep(0)
        for _ in range(3):
            parts = parts_of(await wire.ask(FETCH, 12, fetch(("a", at(0, 0)), ("a", at(0, 1)))))
            assert sorted(part.error_code for part in parts) == [0, ErrorCode.KAFKA_STORAGE_ERROR]
        assert said(caplog, f"the log folder {folder.path} is offline", "Input/output error", "restart the broker") == 1
        assert said(caplog, "a-", folder.directory_id, "Repair its disk") == 1

    run(scenario, tmp_path, log_dirs=f"{tmp_path / '0'},{tmp_path / '1'}")


@pytest.mark.parametrize(
    ("number", "remedy"),
    [(errno.ENOSPC, "Free space on its disk"), (errno.EROFS, "Find in the kernel's log (`dmesg`)")],
)
def test_a_full_or_read_only_disk_is_not_called_broken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, number: int, remedy: str
):
    async def scenario(alive: Living) -> None:
        alive.broker.folder.fail(OSError(number, os.strerror(number)))
        assert said(caplog, f"the log folder {tmp_path} is offline", remedy, "and restart the broker") == 1
        assert said(caplog, "Repair its disk") == 0

    run(scenario, tmp_path)


def test_a_disk_that_fails_while_a_file_is_sent_takes_its_folder_offline_and_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    def broken(*_: int) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    async def scenario(alive: Living) -> None:
        await alive.make("a")
        await fill(alive, "a", batch(b"x"))
        wire = await alive.dial()
        monkeypatch.setattr(os, "sendfile", broken)
        wire.send(FETCH, 12, fetch(("a", at(0))))
        with pytest.raises(asyncio.IncompleteReadError):
            await wire.receive(FETCH, 12)
        path = tmp_path / "a-0" / "00000000000000000000.log"
        assert said(caplog, f"the log folder {tmp_path} is offline", f"Input/output error: '{path}'") == 1
        assert said(caplog, "closing the connection from 127.0.0.1", "a file cannot be read") == 1
        assert alive.broker.folders.lost

    run(scenario, tmp_path)


def test_a_damaged_batch_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        await fill(alive, "a", batch(b"x", b"y"))
        log = next((tmp_path / "a-0").glob("*.log"))
        data = bytearray(log.read_bytes())
        data[ATTRIBUTES_AT + 1] |= 7  # a codec that none is
        log.write_bytes(data)
        wire = await alive.dial()
        part = ListOffsetsPartition(partition_index=0, timestamp=1)
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name="a", partitions=[part])])
        for _ in range(3):
            answer = await wire.ask(LIST_OFFSETS, 7, request)
            assert answer.topics[0].partitions[0].error_code == ErrorCode.CORRUPT_MESSAGE
        assert said(caplog, str(tmp_path / "a-0"), "is damaged", "moldau log verify") == 1
        assert outcomes(await wire.ask(PRODUCE, 9, produce(("a", 0, batch(b"y")))))[0][1] == 0

    run(scenario, tmp_path)


def test_a_batch_that_cannot_be_found_is_named_and_its_reader_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        await fill(alive, "a", batch(b"x"), batch(b"y"))
        path = tmp_path / "a-0" / "00000000000000000000.log"
        with open(path, "r+b") as file:
            file.seek(len(batch(b"x")) + LENGTH_AT)
            file.write(bytes(4))
        wire = await alive.dial()
        for _ in range(3):
            (part,) = parts_of(await wire.ask(FETCH, 12, fetch(("a", at(1)), max_wait_ms=LONG_MS)))
            assert part.error_code == ErrorCode.CORRUPT_MESSAGE
        assert said(caplog, str(path), "is damaged", "moldau log verify") == 1

    run(scenario, tmp_path)


def test_a_folder_whose_disk_was_taken_from_under_it_goes_offline(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        await fill(alive, "a", batch(b"x"))
        (tmp_path / "data").rename(tmp_path / "away")
        (tmp_path / "data").mkdir()
        async with asyncio.timeout(stretched(20)):
            await alive.broker.failed.wait()
        assert said(caplog, f"the log folder {tmp_path / 'data'} is offline", "its disk was unmounted or replaced") == 1
        wire = await alive.dial()
        (part,) = parts_of(await wire.ask(FETCH, 12, fetch(("a", at(0)))))
        assert part.error_code == ErrorCode.KAFKA_STORAGE_ERROR

    run(scenario, tmp_path / "data")
    assert not list((tmp_path / "data").iterdir())


def test_a_file_that_something_else_has_cut_is_named_and_its_folder_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    async def scenario(alive: Living) -> None:
        await alive.make("a")
        await fill(alive, "a", batch(bytes(10_000)))
        path = tmp_path / "a-0" / "00000000000000000000.log"
        os.truncate(path, 1000)
        wire = await alive.dial()
        wire.send(FETCH, 12, fetch(("a", at(0))))
        with pytest.raises(asyncio.IncompleteReadError):
            await wire.receive(FETCH, 12)
        assert said(caplog, str(path), "another program has truncated it", "moldau log verify") == 1
        assert alive.broker.folder.failed is None

    run(scenario, tmp_path)


def test_partitions_for_which_no_file_could_be_opened_are_made_a_moment_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    async def scenario(alive: Living) -> None:
        disk, is_full = alive.broker.runtime.disk, True

        def opened(path: Path, **how: bool) -> File:
            if is_full and path.parent.name.startswith("a-"):
                raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(path))
            return RealDisk.open(disk, path, **how)  # type: ignore[arg-type]

        monkeypatch.setattr(disk, "open", opened)
        await alive.make("a", 3)
        wire = await alive.dial()
        answer = await wire.ask(PRODUCE, 9, produce(("a", 2, batch(b"x"))))
        assert outcomes(answer)[0][1] == ErrorCode.KAFKA_STORAGE_ERROR
        assert said(caplog, str(tmp_path), "Too many open files", "ulimit -n") == 1
        assert said(caplog, "Repair its disk") == 0
        is_full = False
        async with asyncio.timeout(stretched(20)):
            while outcomes(await wire.ask(PRODUCE, 9, produce(("a", 2, batch(b"x")))))[0][1]:
                await asyncio.sleep(0)
        assert alive.broker.folder.failed is None
        assert all(alive.broker.replicas.find("a", None, number) for number in range(3))

    monkeypatch.setattr(failures.notices, "_written", {})
    run(scenario, tmp_path)
