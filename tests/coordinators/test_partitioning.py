"""Which partition has a group or a transactional id: as in Kafka."""

import pytest

from moldau.coordinators.partitioning import partition_of


@pytest.mark.parametrize(
    ("group", "partition"),
    [
        ("", 0),
        ("conn", 0),
        ("ret", 1),
        ("g", 3),
        ("new", 10),
        ("n4", 12),
        ("lv", 16),
        ("st", 31),
        ("polygenelubricants", 0),
        ("tx-offsets-0-group", 34),
        ("tx-marked-group", 15),
        ("😀", 49),
    ],
)
def test_a_group_is_where_kafka_puts_it(group: str, partition: int) -> None:
    assert partition_of(group, 50) == partition
