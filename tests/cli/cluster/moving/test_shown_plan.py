"""What a plan does, as it is shown: each broker before and after it."""

import pytest

from moldau.cli.cluster.moving.shown_plan import rows, sentence, size_text, summary
from moldau.names import TopicPartition
from tests.cli.cluster.moving.layouts import MB, layout

CLUSTER = layout(([1, 9], 20 * MB), ([1, 2], 5), brokers=(1, 2, 3), racks={1: "a", 2: "b", 3: "c"})
PLAN = {TopicPartition("t", 0): (3, 1), TopicPartition("t", 1): (2, 1)}


def test_bytes_replicas_and_leaders_are_shown_before_and_after() -> None:
    shown = summary(CLUSTER, PLAN)
    assert sentence(shown) == "1 partition moves, 20 MB to copy; 1 partition gets another preferred leader"
    assert rows(shown) == [
        ["1", "a", "20 MB", "2", "2 -> 0"],
        ["2", "b", "5 B", "1", "0 -> 1"],
        ["3", "c", "0 B -> 20 MB", "0 -> 1", "0 -> 1"],
        ["9 (down)", None, "20 MB -> 0 B", "1 -> 0", "0"],
    ]
    assert shown["plan"][0] == {
        "topic": "t",
        "partition": 0,
        "replicas": [1, 9],
        "replicas_after": [3, 1],
        "bytes_copied": 20 * MB,
    }


def test_a_plan_of_nothing_is_said() -> None:
    assert sentence(summary(CLUSTER, {})) == "nothing has to move"


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 KB"), (1234, "1.23 KB"), (20_000_000, "20 MB"), (123_456_789, "123 MB")],
)
def test_sizes_have_three_digits(size: int, text: str) -> None:
    assert size_text(size) == text
