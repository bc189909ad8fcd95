"""Spark's filters as one Arrow expression, by which files, row groups and rows are left out. Pure.

Spark applies every filter again, so only one thing has to hold here: no row that passes the filters is left out.
Therefore floating-point columns are not filtered (Spark orders NaN above all numbers, Arrow nowhere), nor are filters
that are not understood, and times get a millisecond of room, since other writers round a file's greatest time down.
"""

import datetime
import functools
import operator
from collections.abc import Iterable
from typing import Any

import pyarrow
import pyarrow.compute as compute

ROOM = datetime.timedelta(milliseconds=1)
COMPARED = {
    "GreaterThan": operator.gt,
    "GreaterThanOrEqual": operator.ge,
    "LessThan": operator.lt,
    "LessThanOrEqual": operator.le,
}


def expression(filters: Iterable[Any], columns: pyarrow.Schema) -> Any:
    """What all filters together admit, as a `pyarrow.compute.Expression`; None if they say nothing. The filters are
    those of `pyspark.sql.datasource`."""
    conditions = [made for one in filters if (made := _of(one, columns)) is not None]
    return functools.reduce(operator.and_, conditions) if conditions else None


def _of(one: Any, columns: pyarrow.Schema) -> Any:
    name, value = type(one).__name__, getattr(one, "value", None)
    path: tuple[str, ...] = getattr(one, "attribute", ())
    kind = _type(path, columns)
    if kind is None:
        return None
    column = compute.field(*path)
    if name == "IsNull":
        return column.is_null()
    if name == "IsNotNull":
        return column.is_valid()
    if pyarrow.types.is_floating(kind):
        return None
    if name == "EqualNullSafe" and value is None:
        return column.is_null()
    if name == "In":
        made = [_compared(column, "EqualTo", part, kind) for part in value or () if part is not None]
        return functools.reduce(operator.or_, made) if made and all(part is not None for part in made) else None
    return None if value is None else _compared(column, name, value, kind)


def _compared(column: Any, name: str, value: Any, kind: pyarrow.DataType) -> Any:
    """A comparison, None if it is not one. A time is compared with room to both sides."""
    try:
        low, high = (pyarrow.scalar(one, kind) for one in _with_room(value, kind))
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError):
        return None
    if name in ("EqualTo", "EqualNullSafe"):
        return column == low if low == high else (column >= low) & (column <= high)
    compare = COMPARED.get(name)
    return None if compare is None else compare(column, low if name.startswith("Greater") else high)


def _with_room(value: Any, kind: pyarrow.DataType) -> tuple[Any, Any]:
    return (value - ROOM, value + ROOM) if pyarrow.types.is_timestamp(kind) else (value, value)


def _type(path: Iterable[str], columns: pyarrow.Schema) -> pyarrow.DataType | None:
    """The type of a column, or of a field inside of structs; None if there is no such column."""
    there: pyarrow.DataType = pyarrow.struct(list(columns))
    for name in path:
        if not pyarrow.types.is_struct(there) or there.get_field_index(name) < 0:
            return None
        there = there.field(there.get_field_index(name)).type
    return None if pyarrow.types.is_nested(there) else there
