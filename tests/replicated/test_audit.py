"""The judge of the kill run is right: histories written by hand."""

from array import array

import pytest

from tests.replicated.audit import Audit, Records
from tests.replicated.sending import SOMEWHERE, UNKNOWN, key_of, place_of, value_of

TOLD = [place_of(0, 10), place_of(0, 11), place_of(1, 0), UNKNOWN]


def problems(*partitions: list[tuple[int, int]]) -> list[str]:
    """Of a sender that sent four numbers; each partition as (offset, number)."""
    audit = Audit({"a": array("q", TOLD)})
    for partition, found in enumerate(partitions):
        audit.read(partition, [Records([at], [key_of("a", number)], [value_of("a", number)]) for at, number in found])
    return audit.problems()


@pytest.mark.parametrize("last", [[], [(1, 3)]])
def test_all_that_was_acknowledged_is_there_and_the_rest_may_be(last: list[tuple[int, int]]) -> None:
    assert problems([(10, 0), (11, 1)], [(0, 2), *last]) == []


@pytest.mark.parametrize(
    ("first", "second", "sentence"),
    [
        ([(10, 0)], [(0, 2)], "1 records are not where they were acknowledged"),
        ([(10, 0), (11, 1), (12, 1)], [(0, 2)], "number 1 is there again at offset 12 of partition 0"),
        ([(10, 0), (11, 1)], [(0, 2), (1, 1)], "number 1 is there again at offset 1 of partition 1"),
        ([(10, 1), (11, 0)], [(0, 2)], "number 0 at offset 11 of partition 0 follows 1"),
        ([(10, 0), (12, 1)], [(0, 2)], "offset 12 follows 10"),
        ([(10, 0), (11, 1)], [(0, 2), (1, 7)], "was never sent"),
        ([(10, 0), (11, 1)], [(1, 2)], "not where they were acknowledged: ['2 (partition 1, offset 0)']"),
    ],
)
def test_each_anomaly_is_named(first: list[tuple[int, int]], second: list[tuple[int, int]], sentence: str) -> None:
    assert any(sentence in problem for problem in problems(first, second))


def test_what_was_acknowledged_somewhere_is_anywhere() -> None:
    audit = Audit({"a": array("q", [SOMEWHERE, SOMEWHERE])})
    audit.read(3, [Records([7], [key_of("a", 1)], [value_of("a", 1)])])
    assert audit.problems() == ["a: 1 records are not where they were acknowledged: ['0 (somewhere)']"]


def test_other_bytes_were_never_sent() -> None:
    audit = Audit({"a": array("q", [place_of(0, 0)])})
    audit.read(0, [Records([0], [key_of("a", 0)], [value_of("a", 0)[:-1]])])
    assert "was never sent" in audit.problems()[0]
    assert "1 records are not" in audit.problems()[1]
