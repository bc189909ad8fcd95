"""Which partition has a group or a transactional id: as in Kafka, whatever keys clients choose."""

import tracemalloc

import pytest

from moldau.coordinators.partitioning import KEPT_CHARS_MAX, KEY_CHARS_MAX, elements_of, partition_of


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
        ("g" * (KEPT_CHARS_MAX + 1), 25),
    ],
)
def test_a_group_is_where_kafka_puts_it(group: str, partition: int) -> None:
    assert partition_of(group, 50) == partition


def test_long_keys_are_hashed_in_as_many_elements_as_they_are_worth_and_no_longer_ones_than_records_have() -> None:
    assert [len(list(elements_of("g" * length))) for length in (0, 99, 1_000, KEY_CHARS_MAX, 1 << 20)] == [
        0, 0, 10, 327, 327,
    ]  # fmt: skip
    assert partition_of("g" * (KEY_CHARS_MAX + 1), 50) == 0


def test_long_keys_are_not_kept() -> None:
    tracemalloc.start()
    try:
        for number in range(50):
            partition_of(f"{number:010}" * 100, 50)
        assert tracemalloc.get_traced_memory()[0] < 10_000
    finally:
        tracemalloc.stop()
