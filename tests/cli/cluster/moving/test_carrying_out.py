"""How far a plan is: what was found of its partitions becomes progress; what nobody moves any more is left alone."""

from moldau.cli.cluster.moving.carrying_out import ASTRAY_S, Course
from moldau.cli.cluster.moving.looking import Way
from moldau.errors import ErrorCode, KafkaError
from moldau.names import TopicPartition

A, B, C = (TopicPartition("t", number) for number in range(3))
WAITS, THERE, GONE = Way(True, False, False, 0), Way(True, True, False, 0), Way(False, False, False, 0)


def moving(copied: int = 0) -> Way:
    return Way(True, False, True, copied)


def course() -> Course:
    return Course({A: 100, B: 50, C: 0}, 0.0, dict.fromkeys((A, B, C)))


def test_bytes_partitions_and_the_time_left_are_told() -> None:
    found = course()
    assert found.line(1.0) == "0 of 3 partitions, 0 B of 150 B"
    found.begun({A: None, B: None})
    found.take({A: moving(40), B: moving(10), C: WAITS}, 5.0)
    assert found.line(5.0) == "0 of 3 partitions, 50 B of 150 B, about 0:10 left"
    found.take({A: THERE, B: moving(80)}, 6.0)
    assert found.line(6.0) == "1 of 3 partitions, 150 B of 150 B, about 0:00 left", "never more than there is"
    found.take({B: THERE, C: THERE}, 7.0)
    assert found.is_over and found.done == {A, B, C} and not found.left


def test_what_was_there_before_says_nothing_about_the_speed() -> None:
    found = course()
    found.take({A: THERE, B: WAITS, C: WAITS}, 0.0)
    found.done_before = set(found.done)
    assert found.line(9.0) == "1 of 3 partitions, 0 B of 50 B"


def test_what_cannot_begin_or_is_deleted_is_left_alone() -> None:
    found = course()
    found.begun({A: KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "broker 9 is not running")})
    found.take({B: GONE, C: WAITS}, 1.0)
    assert "broker 9 is not running" in found.left[A]
    assert found.left[B] == "the cluster does not have it any more"
    assert list(found.waiting) == [C]


def test_a_partition_counts_as_cancelled_when_it_has_been_at_rest_elsewhere_for_a_while() -> None:
    found = course()
    found.begun({A: None})
    found.take({A: WAITS}, 1.0)
    found.take({A: moving()}, 1.0 + ASTRAY_S)
    found.take({A: WAITS}, 2.0 + ASTRAY_S)
    assert not found.left
    found.take({A: WAITS}, 2.0 + 2 * ASTRAY_S)
    assert found.left == {A: "its move was cancelled, or replaced by another one"}
