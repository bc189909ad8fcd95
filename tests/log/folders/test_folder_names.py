"""Names in a log folder: whatever is not exactly that of a partition is somebody else's."""

import uuid

import pytest

from moldau.log.folders.folder_names import folder_name_for_deletion, partition_of
from moldau.names import TopicPartition


def test_the_name_of_a_deleted_folder_is_never_too_long() -> None:
    name = folder_name_for_deletion(TopicPartition("t" * 249, 123), uuid.UUID(int=3))
    assert len(name) == 255
    assert name.endswith(f"-123.{uuid.UUID(int=3).hex}-delete")


@pytest.mark.parametrize(
    ("name", "partition"),
    [
        ("a-0", TopicPartition("a", 0)),
        ("a-b-12", TopicPartition("a-b", 12)),
        ("-1-2", TopicPartition("-1", 2)),
        ("a", None),
        ("a-", None),
        ("-1", None),
        ("a-01", None),
        ("a-2147483648", None),
        ("a-\u0661", None),
        ("a/b-1", None),
        ("a-0.1234-delete", None),
    ],
)
def test_only_names_of_partitions_are_partitions(name: str, partition: TopicPartition | None) -> None:
    assert partition_of(name) == partition
