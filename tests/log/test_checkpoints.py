import uuid
from pathlib import Path

import pytest

from moldau.log import checkpoints
from moldau.log.checkpoints import CorruptCheckpoint
from moldau.names import TopicPartition
from moldau.runtime import RealDisk

DISK = RealDisk()


def test_offsets_come_back_as_they_were_written(tmp_path: Path) -> None:
    offsets = {TopicPartition("flights", 1): 2**40, TopicPartition("a", 0): 0}
    checkpoints.write_offsets(DISK, tmp_path / "points", offsets)
    assert (tmp_path / "points").read_text() == f"0\n2\na 0 0\nflights 1 {2**40}\n"
    assert checkpoints.read_offsets(DISK, tmp_path / "points") == offsets
    assert [path.name for path in tmp_path.iterdir()] == ["points"]


def test_no_file_is_no_offset(tmp_path: Path) -> None:
    assert checkpoints.read_offsets(DISK, tmp_path / "points") == {}
    (tmp_path / "points").touch()
    assert checkpoints.read_offsets(DISK, tmp_path / "points") == {}


@pytest.mark.parametrize(
    "content",
    [
        b"0",
        b"0\n",
        b"1\n0\n",
        b"0\n2\na 0 5\n",
        b"0\n1\na 0 5\nb 0 5\n",
        b"0\n1\na 0\n",
        b"0\n1\na 0 5 6\n",
        b"0\n1\na x 5\n",
        b"0\n1\na 0 5.5\n",
        b"0\n1\n\xff 0 5\n",
        b"0\n-1\n",
        "0\n1\na 0 \u0665\n".encode(),
    ],
)
def test_a_checkpoint_is_taken_whole_or_not_at_all(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "points").write_bytes(content)
    with pytest.raises(CorruptCheckpoint):
        checkpoints.read_offsets(DISK, tmp_path / "points")


def test_epochs_come_back_as_they_were_written(tmp_path: Path) -> None:
    checkpoints.write_epochs(DISK, tmp_path, [(0, 0), (3, 120)])
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n3 120\n"
    assert checkpoints.read_epochs(DISK, tmp_path) == [(0, 0), (3, 120)]
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n1\n0\n")
    with pytest.raises(CorruptCheckpoint):
        checkpoints.read_epochs(DISK, tmp_path)


def test_a_topic_id_comes_back_as_it_was_written(tmp_path: Path) -> None:
    assert checkpoints.read_topic_id(DISK, tmp_path) is None
    topic_id = uuid.UUID(int=2**127 + 5)
    checkpoints.write_topic_id(DISK, tmp_path, topic_id)
    assert (tmp_path / "partition.metadata").read_text() == "version: 0\ntopic_id: gAAAAAAAAAAAAAAAAAAABQ"
    assert checkpoints.read_topic_id(DISK, tmp_path) == topic_id


@pytest.mark.parametrize("content", ["", "version: 1\ntopic_id: gAAAAAAAAAAAAAAAAAAABQ\n", "version: 0\ntopic_id: x\n"])
def test_partition_metadata_without_a_topic_id_is_corrupt(tmp_path: Path, content: str) -> None:
    (tmp_path / "partition.metadata").write_text(content)
    with pytest.raises(CorruptCheckpoint):
        checkpoints.read_topic_id(DISK, tmp_path)
