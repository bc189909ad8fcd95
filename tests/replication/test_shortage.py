"""Since when partitions have too few in-sync replicas."""

from moldau.names import TopicPartition
from moldau.replication.shortage import LONG_MS, Shortage

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


def test_a_partition_counts_once_it_was_short_for_long_and_without_a_break() -> None:
    shortage = Shortage()
    assert shortage.long_short([A], 0) == []
    assert shortage.long_short([A, B], LONG_MS - 1) == []
    assert shortage.long_short([A, B], LONG_MS) == [A]
    assert shortage.long_short([B], LONG_MS + 1) == []
    assert shortage.long_short([A, B], 2 * LONG_MS) == [B]
