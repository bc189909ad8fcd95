"""Rates between two looks at a cluster."""

from moldau.cli.watching.changes import (
    ClusterLook,
    GroupRate,
    SummedLag,
    TopicRate,
    groups_between,
    topics_between,
)
from moldau.names import TopicPartition

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)
EMPTY = ClusterLook(10.0, {}, {}, {}, {})


def test_a_topic_is_as_busy_as_its_partitions_and_a_new_one_counts_from_the_next_look() -> None:
    before, now = EMPTY._replace(ends={A0: 5, B0: 0}), EMPTY._replace(at_s=12.0, ends={A0: 9, A1: 7, B0: 10})
    assert topics_between(before, now) == [TopicRate("b", 1, 5.0, 10), TopicRate("a", 2, 2.0, 16)]


def test_a_log_that_was_truncated_is_not_read_backwards() -> None:
    before, now = EMPTY._replace(ends={A0: 9}), EMPTY._replace(at_s=11.0, ends={A0: 5})
    assert topics_between(before, now) == [TopicRate("a", 1, 0.0, 5)]


def test_the_group_that_is_furthest_behind_is_first() -> None:
    before = EMPTY._replace(groups={"x": SummedLag("Stable", 10, 0, 0.0)})
    now = EMPTY._replace(at_s=12.0, groups={"x": SummedLag("Stable", 30, 3, 1.5), "y": SummedLag("Empty", 0, 40, None)})
    assert groups_between(before, now) == [
        GroupRate("y", "Empty", 0.0, 40, None),
        GroupRate("x", "Stable", 10.0, 3, 1.5),
    ]
