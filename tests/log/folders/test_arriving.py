"""What a start makes of copies of partitions that were on their way between two log folders."""

import asyncio
import shutil
import uuid
from pathlib import Path

import pytest

from harness.logs import TOPIC_ID, append, config, read_all
from moldau.errors import StorageError
from moldau.log import checkpoints
from moldau.log.folders import arrival
from moldau.log.folders.arrival import ARRIVED, Arrival
from moldau.log.folders.folders import LogFolders
from moldau.names import TopicPartition
from moldau.runtime import RealDisk, Runtime

TP = TopicPartition("t", 0)
DISK = RealDisk()
FUTURE = f"t-0.{uuid.UUID(int=7).hex}-future"
Made = dict[TopicPartition, str]


def opened(paths: list[Path], made: Made | None = None, deleted: dict[uuid.UUID, str] | None = None) -> LogFolders:
    folders = LogFolders(paths, Runtime())
    try:
        folders.claim("cluster", 1)
        known = {} if deleted else {"t": TOPIC_ID}
        asyncio.run(folders.load(known, lambda _: config(), deleted, made=made, accepted=lambda _: False))
    except BaseException:
        folders.close(clean=False)
        raise
    return folders


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    """Two log folders; the first has the partition, with three records."""
    paths = [tmp_path / "a", tmp_path / "b"]
    folders = opened(paths)
    append(folders.folders[0].create(TP, TOPIC_ID, config()), 3)
    folders.close()
    return paths


def ids(paths: list[Path]) -> list[str]:
    folders = LogFolders(paths, Runtime())
    try:
        return [folder.directory_id for folder in folders.folders]
    finally:
        folders.close(clean=False)


def copied(paths: list[Path], name: str, source: str | None) -> None:
    """The partition is in the second folder too, under this name; `source`: with the note that it came from there."""
    shutil.copytree(paths[0] / "t-0", paths[1] / name)
    if source is not None:
        arrival.note(DISK, paths[1] / name, Arrival(source, 0, 3))


def where(folders: LogFolders) -> list[str]:
    """The folders that serve it, and those that have a copy of it."""
    serving = [folder.path.name for folder in folders.folders if TP in folder.logs]
    return serving + [f"{folder.path.name} future" for folder in folders.folders if TP in folder.futures]


@pytest.mark.parametrize("is_noted", [False, True])
def test_while_the_partition_is_there_its_copy_only_goes_on(paths: list[Path], is_noted: bool) -> None:
    first, _ = ids(paths)
    copied(paths, FUTURE, first if is_noted else None)
    folders = opened(paths)
    assert where(folders) == ["a", "b future"] and not (paths[1] / FUTURE / ARRIVED).exists()
    folders.close()


def test_a_complete_copy_is_the_partition_when_the_other_one_has_gone(paths: list[Path]) -> None:
    first, _ = ids(paths)
    copied(paths, FUTURE, first)
    (paths[0] / "t-0").rename(paths[0] / f"t-0.{uuid.UUID(int=1).hex}-delete")
    folders = opened(paths, {TP: first})
    log = folders.find(TP)
    assert log is not None and len(read_all(log)) == 3 and where(folders) == ["b"]
    assert not (paths[1] / "t-0" / ARRIVED).exists()
    folders.close()


def test_a_copy_without_a_note_never_stands_in_for_a_lost_partition(paths: list[Path]) -> None:
    first, _ = ids(paths)
    copied(paths, FUTURE, None)
    (paths[0] / "t-0").rename(paths[0].parent / "gone")
    with pytest.raises(StorageError, match="1 partition has no folder"):
        opened(paths, {TP: first})


def test_of_two_with_its_name_the_one_counts_that_the_metadata_names(paths: list[Path]) -> None:
    first, second = ids(paths)
    copied(paths, "t-0", first)
    folders = opened(paths, {TP: first})
    assert where(folders) == ["a", "b future"]
    folders.close()
    (paths[1] / next(name.name for name in paths[1].glob("*-future"))).rename(paths[1] / "t-0")
    arrival.note(DISK, paths[1] / "t-0", Arrival(first, 0, 3))
    folders = opened(paths, {TP: second})
    assert where(folders) == ["b"] and len(list(paths[0].glob("t-0.*-delete"))) == 1
    folders.close()


def test_two_without_a_note_are_refused_as_ever(paths: list[Path]) -> None:
    copied(paths, "t-0", None)
    with pytest.raises(StorageError, match="is both in"):
        opened(paths)


@pytest.mark.parametrize("name", ["t-0", FUTURE])
def test_a_copy_from_a_folder_that_is_away_is_not_served(
    paths: list[Path], name: str, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = ids(paths)
    copied(paths, name, first)
    folders = opened(paths[1:], {TP: first})
    assert TP not in folders.folders[0].logs
    assert ("had just been moved there" in caplog.text) == (name == "t-0")
    folders.close()
    folders = opened(paths[1:], {TP: second})
    assert where(folders) == ["b"]
    folders.close()


def test_copies_of_deleted_topics_and_of_none_go_and_others_are_left_alone(paths: list[Path]) -> None:
    copied(paths, FUTURE, None)
    no_id = f"t-0.{uuid.UUID(int=8).hex}-future"
    copied(paths, no_id, None)
    (paths[1] / no_id / checkpoints.PARTITION_METADATA).unlink()
    folders = opened(paths, deleted={TOPIC_ID: "t"})
    assert not list(paths[1].glob("*-future"))
    folders.close()


def test_a_topic_whose_name_is_too_long_for_a_folder_is_known_by_its_id(tmp_path: Path) -> None:
    paths, tp = [tmp_path / "a", tmp_path / "b"], TopicPartition("x" * 249, 0)
    folders = LogFolders(paths, Runtime())
    folders.claim("cluster", 1)
    asyncio.run(folders.load({tp.topic: TOPIC_ID}, lambda _: config(), {}))
    folders.folders[0].create(tp, TOPIC_ID, config())
    copy = folders.folders[1].futures.open(tp, TOPIC_ID, config(), 0)
    assert len(copy.folder.name) == 255
    folders.close()
    folders = LogFolders(paths, Runtime())
    asyncio.run(folders.load({tp.topic: TOPIC_ID}, lambda _: config(), {}))
    assert tp in folders.folders[1].futures
    folders.close()


def test_a_note_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    for text in ("", "{}", "[1]", '{"source": 1, "logStart": 0, "logEnd": 1}', '{"source": "x", "logStart": "0"}'):
        (tmp_path / ARRIVED).write_text(text)
        assert arrival.noted(DISK, tmp_path) is None
    arrival.note(DISK, tmp_path, Arrival("x", 1, 2))
    assert arrival.noted(DISK, tmp_path) == Arrival("x", 1, 2)
