"""What a start finds in a log folder: partitions of known and of deleted topics, and what is left alone."""

import uuid
from pathlib import Path

from harness.logs import append
from moldau.config import TopicConfig
from moldau.log import checkpoints
from moldau.log.folders.folder import LogFolder
from moldau.log.folders.sifting import sift
from moldau.names import TopicPartition
from moldau.runtime import RealDisk, Runtime

OLD, NEW = uuid.UUID(int=1), uuid.UUID(int=2)
PARTITION = TopicPartition("a", 0)


def begun(path: Path) -> LogFolder:
    folder = LogFolder(path, Runtime())
    folder.claim("cluster", 1)
    return folder


def test_folders_of_deleted_topics_go_at_the_start_and_the_name_is_free(tmp_path: Path) -> None:
    folder = begun(tmp_path)
    folder.load({}, lambda name: TopicConfig())
    folder.create(PARTITION, OLD, TopicConfig())
    folder.close(clean=False)

    folder = begun(tmp_path)
    assert folder.load({"a": NEW}, lambda name: TopicConfig(), {OLD: "a"}) == []
    assert PARTITION not in folder.logs
    folder.create(PARTITION, NEW, TopicConfig())
    folder.close(clean=True)

    folder = begun(tmp_path)
    assert folder.load({"a": NEW}, lambda name: TopicConfig(), {OLD: "a"}) == []
    assert list(folder.logs) == [PARTITION]
    folder.close(clean=True)


def test_folders_of_unknown_topics_stay_and_are_reported(tmp_path: Path) -> None:
    folder = begun(tmp_path)
    folder.load({}, lambda name: TopicConfig())
    folder.create(PARTITION, OLD, TopicConfig())
    folder.close(clean=True)

    folder = begun(tmp_path)
    assert folder.load({}, lambda name: TopicConfig(), {NEW: "a"}) == ["a-0"]
    assert (tmp_path / "a-0").is_dir()
    folder.close(clean=True)


def test_what_nobody_knows_is_reported_and_left_alone(tmp_path: Path) -> None:
    folder = begun(tmp_path)
    folder.load({}, lambda name: TopicConfig())
    for topic in ("a", "weather"):
        append(folder.create(TopicPartition(topic, 0), OLD, TopicConfig()), 3)
    folder.close()
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "notes-1").write_text("a file")
    (tmp_path / "a-01").mkdir()
    before = sorted(str(path) for path in tmp_path.rglob("*") if path.name != ".kafka_cleanshutdown")
    again = LogFolder(tmp_path, Runtime())
    assert again.load({"a": OLD}, lambda name: TopicConfig()) == ["a-01", "lost+found", "notes-1", "weather-0"]
    assert list(again.logs) == [PARTITION]
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before
    again.close()


def test_a_partition_of_an_earlier_topic_of_the_same_name_is_not_opened(tmp_path: Path) -> None:
    disk = RealDisk()
    disk.make_folder(tmp_path / "a-0")
    checkpoints.write_topic_id(disk, tmp_path / "a-0", OLD)
    assert sift(disk, tmp_path, {"a": NEW}, {}) == ([], {}, ["a-0"])
    assert sift(disk, tmp_path, {"a": OLD}, {}) == ([PARTITION], {}, [])


def test_a_folder_whose_topic_id_cannot_be_read_goes_by_its_name(tmp_path: Path) -> None:
    disk = RealDisk()
    disk.make_folder(tmp_path / "a-0")
    (tmp_path / "a-0" / checkpoints.PARTITION_METADATA).write_bytes(b"\xff")
    assert sift(disk, tmp_path, {"a": NEW}, {OLD: "a"}) == ([PARTITION], {}, [])
    assert not (tmp_path / "a-0" / checkpoints.PARTITION_METADATA).exists(), "it is written again with the log"
    assert sift(disk, tmp_path, {}, {OLD: "a"}) == ([], {}, [])
    assert not (tmp_path / "a-0").exists()
