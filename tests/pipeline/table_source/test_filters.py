"""Spark's filters as Arrow's: no row that Spark keeps is left out, and files are excluded where that is certain."""

import datetime
import math
from typing import Any

import pyarrow
import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from moldau.pipeline.table_source.filters import expression

NOON = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC)
MS = datetime.timedelta(milliseconds=1)
ROWS = pyarrow.table(
    {
        "n": pyarrow.array([1, 2, 3, None], pyarrow.int32()),
        "f": [1.0, math.nan, 3.0, None],
        "s": ["a", "b", "č", None],
        "at": pyarrow.array([NOON, NOON + 9 * MS, NOON + 18 * MS, None], pyarrow.timestamp("us", "UTC")),
        "o": [{"a": 1}, {"a": 2}, None, {"a": None}],
    }
)


@pytest.mark.parametrize(
    ("filters", "rows"),
    [
        ([EqualTo(("n",), 2)], [1]),
        ([GreaterThan(("n",), 1), LessThanOrEqual(("n",), 2)], [1]),
        ([GreaterThanOrEqual(("n",), 3)], [2]),
        ([LessThan(("n",), 2)], [0]),
        ([In(("n",), (1, 3, None))], [0, 2]),
        ([In(("n",), (None,))], [0, 1, 2, 3]),
        ([IsNull(("n",))], [3]),
        ([EqualNullSafe(("n",), None)], [3]),
        ([EqualNullSafe(("n",), 1)], [0]),
        ([IsNotNull(("s",)), GreaterThan(("s",), "a")], [1, 2]),
        ([EqualTo(("o", "a"), 2)], [1]),
        ([EqualTo(("o", "b"), 2)], [0, 1, 2, 3]),
        ([EqualTo(("n",), 1 << 40)], [0, 1, 2, 3]),
        ([GreaterThan(("f",), 2.0)], [0, 1, 2, 3]),
        ([IsNull(("f",))], [3]),
        ([GreaterThan(("at",), NOON + MS * 9)], [1, 2]),
        ([EqualTo(("at",), NOON + MS * 9)], [1]),
        ([LessThan(("at",), NOON)], [0]),
        ([StringStartsWith(("s",), "a"), Not(EqualTo(("n",), 1))], [0, 1, 2, 3]),
    ],
)
def test_rows_that_pass_are_kept(filters: list[Filter], rows: list[int]) -> None:
    made: Any = expression(filters, ROWS.schema)
    numbered = ROWS.append_column("row", pyarrow.array(range(4)))
    assert (numbered if made is None else numbered.filter(made))["row"].to_pylist() == rows
