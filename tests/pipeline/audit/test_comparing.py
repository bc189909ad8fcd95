"""The places of records that are missing or doubled, on tables."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.pipeline.audit.comparing import Difference, differences, repeated
from moldau.pipeline.audit.tiers import PLACES

Row = tuple[int, int, int]
rows = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 4), st.integers(0, 3)), max_size=12)


def table(*given: Row, time: int = 0) -> Any:
    """Rows of partition, offset and hash."""
    columns = [[0] * len(given), *([row[at] for row in given] for at in (0, 1)), [time] * len(given)]
    arrays = [*columns, [row[2] for row in given]]
    return pa.table([pa.array(array, field.type) for array, field in zip(arrays, PLACES, strict=True)], schema=PLACES)


ORIGIN = table(*((n % 3, n // 3, 100 + n) for n in range(30)))


def compared(there: Any, of_origin: bool, here: Any = ORIGIN) -> list[Difference]:
    name = "warehouse" if of_origin else "mirror"
    return differences(("origin", here), (name, there), of_origin=of_origin)


def test_tiers_with_the_same_records_have_no_difference() -> None:
    assert compared(ORIGIN, True) == [] == compared(ORIGIN, False)
    assert compared(ORIGIN.take([*range(29, -1, -1)]), True) == []
    assert compared(table(), True, table()) == [] == compared(table(), False, table())


def test_a_warehouse_is_compared_by_partition_and_offset() -> None:
    there = pa.concat_tables([ORIGIN.slice(0, 16), ORIGIN.slice(17, 12), ORIGIN.slice(4, 2), table((2, 9, 7))])
    assert compared(there, True) == [
        Difference("missing", 1, "origin", [(1, 5)]),
        Difference("doubled", 2, "warehouse", [(1, 1), (2, 1)]),
        Difference("altered", 1, "origin", [(2, 9)]),
    ]


def test_a_mirror_is_compared_by_what_its_records_are() -> None:
    there = table(*((0, 1_000 + n, 100 + n) for n in range(30) if n != 16), (0, 2_000, 104))
    missing, doubled = compared(there, False)
    assert missing == Difference("missing", 1, "origin", [(1, 5)])
    assert doubled == Difference("doubled", 1, "mirror", [(0, 2_000)])
    assert missing.where == "partition 1 offset 5 in origin"
    assert doubled.where == "partition 0 offset 2000 in mirror"


def test_of_equal_records_the_last_are_missing_or_doubled() -> None:
    equal = table((0, 1, 9), (0, 3, 9), (0, 5, 9))
    assert compared(equal.slice(0, 1), False, equal) == [Difference("missing", 2, "origin", [(0, 3), (0, 5)])]
    assert compared(equal, False, equal.slice(2, 1)) == [Difference("doubled", 2, "mirror", [(0, 3), (0, 5)])]


def test_the_first_are_named_and_all_are_counted() -> None:
    here = table(*((n % 2, n, n) for n in range(10_000)))
    (missing,) = compared(table(), True, here)
    assert (missing.records, len(missing.places), missing.places[:2]) == (10_000, 100, [(0, 0), (0, 2)])
    assert missing.where == "partition 0 offsets 0, 2, 4, 6, 8 and 9,995 more in origin"
    assert len(missing.to_tree()["first_places"]) == 100


def test_in_the_origin_itself_a_record_that_equals_another_is_named() -> None:
    assert repeated(("origin", ORIGIN)) == []
    later = table((0, 40, 104), time=1)
    assert repeated(("origin", pa.concat_tables([ORIGIN, later]))) == [], "another time: sent on purpose"
    (found,) = repeated(("origin", pa.concat_tables([ORIGIN, table((1, 40, 104), (1, 41, 104))])))
    assert (found.kind, found.where) == ("repeated", "partition 1 offsets 40, 41 in origin")


@pytest.mark.parametrize("of_origin", [True, False])
@given(here=rows, there=rows)
def test_missing_and_doubled_account_for_every_difference(of_origin: bool, here: list[Row], there: list[Row]) -> None:
    def key(row: Row) -> tuple[int, ...]:
        return row[:2] if of_origin else row[2:]

    counts = {difference.kind: difference.records for difference in compared(table(*there), of_origin, table(*here))}
    keys = {key(row) for row in [*here, *there]}
    ours, theirs = ([key(row) for row in rows] for rows in (here, there))
    more = {one: ours.count(one) - theirs.count(one) for one in keys}
    assert counts.get("missing", 0) == sum(count for count in more.values() if count > 0)
    assert counts.get("doubled", 0) == -sum(count for count in more.values() if count < 0)
