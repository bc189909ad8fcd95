"""A start with a partition that has no folder, or two: refused in one sentence, unless the loss is accepted."""

import asyncio
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.logs import TOPIC_ID, config
from moldau.errors import StorageError
from moldau.log.folders.folder import LogFolder
from moldau.log.folders.folders import UNASSIGNED, LogFolders
from moldau.log.folders.losses import Expected, accepted_losses, refuse_doubles
from moldau.names import TopicPartition
from moldau.runtime import Runtime

KNOWN = {"t": TOPIC_ID}
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[LogFolder]:
    made = LogFolder(tmp_path / "a", Runtime())
    yield made
    made.close(clean=False)


def losses(
    folder: LogFolder,
    at: LogFolder | None,
    accepted: Callable[[TopicPartition], bool] | None = None,
    is_whole: bool = True,
    strays: tuple[str, ...] = (),
) -> list[TopicPartition]:
    """`t-0` is there, and `t-1` was in the folder `at`."""
    expected = Expected({T0: folder, T1: at}, KNOWN, accepted, is_whole)
    return accepted_losses(expected, {folder: [T0]}, strays, lambda effect: f", or repair, which {effect}")


def test_a_loss_refuses_the_start_and_names_what_to_do(folder: LogFolder) -> None:
    refused = rf"^1 partition has no folder \({folder.path}/t-1\): restore what is missing, or "
    with pytest.raises(StorageError, match=refused + "repair, which can start lost partitions empty$"):
        losses(folder, folder)
    with pytest.raises(StorageError, match=refused + "start once with --accept-empty TOPIC-N "):
        losses(folder, folder, accepted=lambda _: False)


def test_an_accepted_loss_starts_empty(folder: LogFolder) -> None:
    assert losses(folder, folder, accepted=lambda tp: tp == T1) == [T1]
    assert losses(folder, None, accepted=lambda tp: tp == T1) == [T1], "in whichever folder"


def test_nothing_is_lost_that_may_be_in_a_folder_that_is_offline(folder: LogFolder) -> None:
    assert losses(folder, None, is_whole=False) == []
    assert losses(folder, None, accepted=lambda _: True, is_whole=False) == []


def test_a_folder_of_another_topic_in_the_place_is_named_with_both_ids(folder: LogFolder) -> None:
    folder.load({}, lambda _: config())
    folder.create(T1, uuid.UUID(int=1), config())
    with pytest.raises(StorageError, match=r"t-1/partition.metadata names the topic id .*, but the metadata has "):
        losses(folder, folder, accepted=lambda _: True, strays=(str(folder.path / "t-1"),))


def test_a_partition_in_two_folders_is_refused(tmp_path: Path, folder: LogFolder) -> None:
    other = LogFolder(tmp_path / "b", Runtime())
    refuse_doubles({folder: [T0], other: [T1]})
    with pytest.raises(StorageError, match=f"t-0 is both in {folder.path} and in {other.path}"):
        refuse_doubles({folder: [T0], other: [T0, T1]})
    other.close(clean=False)


def test_a_folder_that_has_an_accepted_loss_does_not_show_that_it_has_lost_nothing(tmp_path: Path) -> None:
    runtime = Runtime()

    def begun() -> LogFolders:
        folders = LogFolders([tmp_path / "a", tmp_path / "b"], runtime)
        folders.claim("cluster", 1)
        return folders

    folders = begun()
    asyncio.run(folders.load(KNOWN, lambda _: config()))
    home = folders.folders[1]
    home.create(T0, TOPIC_ID, config())
    folders.close(broker_epoch=7)
    shutil.rmtree(home.path / "t-0")

    folders = begun()
    made = {T0: home.directory_id, T1: UNASSIGNED}
    asyncio.run(folders.load(KNOWN, lambda _: config(), made=made, accepted=lambda _: True))
    assert folders.begun_empty == {T0, T1}
    assert set(folders.kept_since.values()) == {-1}, "an unassigned partition may have been in the first one"
    folders.close(clean=False)
