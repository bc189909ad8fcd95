"""Which record of a key is the newest: offsets in a partition, times between partitions, keys of any columns."""

import datetime
import decimal
import random
from typing import Any

import pyarrow

from harness.tiers import seed_or
from moldau.pipeline.tables.newest import RAMP, identities, is_newer, newest, numbers, replaced

Row = tuple[bytes | None, int, int, int]
TIMESTAMP = pyarrow.timestamp("us", "UTC")


def table_of(rows: list[Row]) -> Any:
    """Rows of key, partition, offset and time."""
    keys, partitions, offsets, times = zip(*rows, strict=True)
    columns = {
        "key": pyarrow.array(keys, pyarrow.large_binary()),
        "_partition": pyarrow.array(partitions, pyarrow.int32()),
        "_offset": pyarrow.array(offsets, pyarrow.int64()),
        "_timestamp": pyarrow.array(times, TIMESTAMP),
    }
    return pyarrow.table(columns)


def test_in_a_partition_the_offset_counts_and_between_partitions_the_time() -> None:
    rows: list[Row] = [
        (b"a", 0, 1, 90),
        (b"a", 0, 2, 10),
        (b"b", 0, 3, 5),
        (b"b", 1, 0, 5),
        (b"c", 2, 9, 7),
        (b"c", 1, 9, 8),
    ]
    found = newest(table_of(rows))
    assert (found.of_keys.to_pylist(), found.of_other_partitions.to_pylist()) == ([1, 3, 5], [2, 4])


def test_any_order_of_rows_has_the_same_newest() -> None:
    chance = random.Random(seed_or(4))
    rows: list[Row] = []
    for number in range(400):
        key = chance.choice((None, b"", b"%d" % chance.randrange(60)))
        rows.append((key, chance.randrange(3), number, chance.randrange(50)))
    chance.shuffle(rows)
    last: dict[tuple[bytes | None, int], Row] = {}
    for row in rows:
        place = row[:2]
        last[place] = max(last.get(place, row), row, key=lambda one: one[2])
    best: dict[bytes | None, Row] = {}
    for row in last.values():
        best[row[0]] = max(best.get(row[0], row), row, key=lambda one: (one[3], one[1]))
    found = newest(table_of(rows))
    assert found.of_keys.to_pylist() == sorted(map(rows.index, best.values()))
    others = [row for row in last.values() if row not in best.values()]
    assert found.of_other_partitions.to_pylist() == sorted(map(rows.index, others))


def test_a_row_is_newer_than_one_that_another_tool_wrote() -> None:
    one = table_of(
        [(b"k", 0, 5, 1), (b"k", 0, 5, 9), (b"k", 1, 0, 3), (b"k", 0, 9, 3), (b"k", 0, 1, 2), (b"k", 0, 1, 2)]
    )
    other = table_of(
        [(b"k", 0, 4, 9), (b"k", 0, 5, 9), (b"k", 0, 9, 3), (b"k", 1, 0, 3), (b"k", 1, 0, 3), (b"k", 1, 0, 3)]
    )
    unknown = pyarrow.array([False] * 5 + [True])
    for name in ("_partition", "_offset", "_timestamp"):
        hidden = pyarrow.compute.if_else(unknown, pyarrow.scalar(None, other[name].type), other[name])
        other = other.set_column(other.schema.get_field_index(name), name, hidden)
    assert is_newer(one, other).to_pylist() == [True, False, True, False, False, True]


def test_a_row_is_replaced_by_a_later_offset_of_its_partition_whatever_its_time() -> None:
    there = table_of([(b"a", 0, 5, 90), (b"a", 1, 5, 90), (b"b", 0, 5, 90), (b"c", 2, 5, 90), (b"a", 0, 7, 90)])
    others = table_of([(b"a", 0, 6, 1), (b"c", 2, 5, 99), (b"c", 1, 9, 99)])
    assert replaced(there, others).to_pylist() == [True, False, False, False, False]
    assert replaced(there, others.slice(0, 0)).to_pylist() == [False] * 5


def test_keys_of_several_columns_are_equal_only_if_each_column_is() -> None:
    day = datetime.date(2024, 2, 29)
    rows: dict[str, tuple[pyarrow.DataType, list[Any]]] = {
        "text": (pyarrow.string(), ["a", "a", "a:1", None, "", "-", "a"]),
        "more": (pyarrow.string(), ["1:b", "1:b", "b", "b", "b", "b", "1:b"]),
        "bytes": (pyarrow.binary(), [b"\xff", b"\xff", b"\xff", None, None, None, b""]),
        "day": (pyarrow.date32(), [day] * 7),
        "amount": (pyarrow.decimal128(5, 2), [decimal.Decimal("1.50")] * 7),
        "yes": (pyarrow.bool_(), [True] * 7),
        "at": (TIMESTAMP, [0] * 7),
        "real": (pyarrow.float64(), [0.5] * 7),
    }
    table = pyarrow.table({name: pyarrow.array(values, kind) for name, (kind, values) in rows.items()})
    found = identities(table, table.column_names).to_pylist()
    assert found[0] == found[1] and len(set(found)) == 6
    single = identities(pyarrow.table({"n": [1, 11, None]}), ["n"]).to_pylist()
    assert len(set(single)) == 3
    text = pyarrow.table({"_key": ["x", None, ""]})
    assert identities(text, ["_key"]).to_pylist() == [b"x", None, b""]


def test_numbers_go_on_beyond_a_batch() -> None:
    count = 2 * len(RAMP) + 3
    found = numbers(7, count)
    assert len(found) == count and (found[0].as_py(), found[-1].as_py()) == (7, 6 + count) and len(numbers(1, 0)) == 0
