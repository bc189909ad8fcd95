"""A crash between a topic's deletion and that of its folders: the next start finishes it."""

import uuid
from pathlib import Path

from moldau.config import TopicConfig
from moldau.log.folders.folder import LogFolder
from moldau.names import TopicPartition
from moldau.runtime import Runtime

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
