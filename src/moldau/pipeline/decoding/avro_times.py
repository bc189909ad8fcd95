"""Numbers of Avro as times, at any depth: whole columns at once. Pure.

A time outside of the years 1 to 9999 is none that every reader of a table has, so its record is rejected.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from moldau.pipeline.decoding.event_times import TIMESTAMP, US_MAX, US_MIN

US_OF_DAY = 86_400_000_000


class UnfitTime(ValueError):
    """A number is outside of the calendar."""


def with_times(column: Any, units: pa.DataType) -> Any:
    """A column of numbers with the times that `units` has in their places. Raises `UnfitTime`."""
    if pa.types.is_struct(units):
        parts = [with_times(column.field(at), units.field(at).type) for at in range(units.num_fields)]
        return pa.StructArray.from_arrays(parts, [field.name for field in units], mask=column.is_null())
    if pa.types.is_list(units):
        items = with_times(column.values, units.value_type)
        return pa.ListArray.from_arrays(column.offsets, items, mask=column.is_null())
    if pa.types.is_map(units):
        items = with_times(column.items, units.item_type)
        return pa.MapArray.from_arrays(column.offsets, column.keys, items, mask=column.is_null())
    if column.type == units:
        return column
    if outside_calendar(column, units) is not None:
        raise UnfitTime("has a time outside of the years 1 to 9999")
    if pa.types.is_date(units):
        return column.cast(units)
    return pc.multiply(column, _us_in(units)).cast(TIMESTAMP)


def outside_calendar(column: Any, unit: pa.DataType) -> Any:
    """A mask of the numbers that are times of no calendar, None if there are none, or no numbers of times at all."""
    if column.type == unit or not (pa.types.is_timestamp(unit) or pa.types.is_date(unit)):
        return None
    least, greatest = US_MIN // _us_in(unit), US_MAX // _us_in(unit)
    edges = pc.min_max(column)
    if edges["min"].as_py() is None or (edges["min"].as_py() >= least and edges["max"].as_py() <= greatest):
        return None
    return pc.fill_null(pc.or_(pc.less(column, least), pc.greater(column, greatest)), False)


def _us_in(unit: pa.DataType) -> int:
    if pa.types.is_date(unit):
        return US_OF_DAY
    return 1_000 if unit.unit == "ms" else 1
