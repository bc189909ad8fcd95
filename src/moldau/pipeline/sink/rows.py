"""Rows of Spark as Arrow batches, for Spark 4.0, which gives a stream's writer no Arrow."""

import itertools
from collections.abc import Iterator
from typing import Any

import pyarrow
from pyspark.sql.types import StructType

ROWS = 10_000
TYPES = {
    "string": pyarrow.string(),
    "binary": pyarrow.binary(),
    "int": pyarrow.int32(),
    "timestamp": pyarrow.timestamp("us", "UTC"),
}
HEADERS = pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))


def batches_of_rows(rows: Iterator[Any], schema: StructType, columns: tuple[str, ...]) -> Iterator[pyarrow.RecordBatch]:
    """The columns of these rows, in batches."""
    kinds = [TYPES.get(schema[name].dataType.simpleString(), HEADERS) for name in columns]
    arrow = pyarrow.schema(list(zip(columns, kinds, strict=True)))
    while taken := list(itertools.islice(rows, ROWS)):
        made = [
            pyarrow.array([_plain(name, row[name]) for row in taken], kind)
            for name, kind in zip(columns, kinds, strict=True)
        ]
        yield pyarrow.RecordBatch.from_arrays(made, schema=arrow)


def _plain(name: str, value: Any) -> Any:
    """A value of a row as pyarrow takes it; a time of Spark has no zone and is local."""
    if value is None:
        return None
    if name == "headers":
        return [{"key": pair["key"], "value": _plain("value", pair["value"])} for pair in value]
    if name == "timestamp":
        return value.astimezone()
    return bytes(value) if isinstance(value, bytearray) else value
