"""Partition columns that the user names (`--partition-by region,day`): decoded columns of plain types. Pure.

Delta keeps the values in the table's log and not in the files, and takes empty text for null; the folders are named as
Hive and Spark do it (`data_file.folder_of`), for readers that look at them.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow
import pyarrow.compute as compute

from moldau.pipeline.tables.columns import PARTITION_COLUMNS, RECORD, VALUE, TableError
from moldau.pipeline.tables.data_file import DAYS_OF_CALENDAR
from moldau.pipeline.type_names import type_name

PartitionValues = tuple[Any, ...]
"""The values of the partition columns, in their order."""
VALUES_MAX: Final = 10_000
"""Partitions of a table that a task writes to; each has files of its own."""
TEXT_BYTES_MAX: Final = 64
"""A folder's name holds the value, of which each byte may become three, beside the column's name."""
NAME_BYTES_MAX: Final = 60


def own_columns(partition_by: str) -> list[str]:
    """The columns that `--partition-by` names; none for `date`, `hour` and `none`."""
    return [] if partition_by in PARTITION_COLUMNS else partition_by.split(",")


def check_own(files: pyarrow.Schema, partition_by: str, table: str, *, exists: bool) -> None:
    """Raise TableError if the files of a table, which `exists` or is to be created, cannot be partitioned this way."""
    for name in own_columns(partition_by):
        if name not in files.names and exists:
            raise TableError(f"{table} is partitioned by {name}, which is not among the columns of this load.")
        if name not in files.names:
            decoded = [one for one in files.names if one not in RECORD.names and one != VALUE.names[0]]
            made = f"its columns are {', '.join(decoded)}" if decoded else "--decode and --decode-key make columns"
            raise TableError(f"--partition-by names {name}, a column that this load of {table} does not make: {made}.")
        kind = files.field(name).type
        if name in RECORD.names and kind == RECORD.field(name).type:
            raise TableError(f"{table} cannot be partitioned by {name}: name a decoded column, or date, hour or none.")
        if not _is_plain(kind) or len(name.encode()) > NAME_BYTES_MAX:
            raise TableError(
                f"{table} cannot be partitioned by {name} of type {type_name(kind)}: it takes text, whole numbers, "
                f"dates and booleans, with names of at most {NAME_BYTES_MAX} bytes."
            )


def unfit(batch: Any, name: str) -> tuple[Any, str]:
    """A mask of the rows whose value of a partition column cannot be one, None if all can, and why."""
    column = batch.column(name)
    if pyarrow.types.is_string(column.type):
        mask = compute.greater(compute.binary_length(column), TEXT_BYTES_MAX)
        why = f"the value of partition column {name} is longer than {TEXT_BYTES_MAX} bytes"
    elif pyarrow.types.is_date32(column.type):
        days = column.cast(pyarrow.int32())
        mask = compute.or_(compute.less(days, DAYS_OF_CALENDAR[0]), compute.greater(days, DAYS_OF_CALENDAR[-1]))
        why = f"the value of partition column {name} is not a date of the years 1 to 9999"
    else:
        return None, ""
    mask = compute.fill_null(mask, False)
    return (mask, why) if mask.true_count else (None, "")


def by_value(batch: Any, names: Sequence[str]) -> Iterator[tuple[PartitionValues, Any]]:
    """The rows of each combination of values, in their order."""
    codes: Any = None
    for name in names:
        encoded = batch.column(name).dictionary_encode(null_encoding="encode")
        one = encoded.indices.cast(pyarrow.int64())
        codes = one if codes is None else compute.add(compute.multiply(codes, len(encoded.dictionary)), one)
        codes = codes.dictionary_encode().indices.cast(pyarrow.int64())  # or products of many columns would overflow
    order = compute.sort_indices(codes)  # a stable sort
    runs = compute.run_end_encode(codes.take(order))
    start = 0
    for end in runs.run_ends.to_pylist():
        rows = batch.take(order.slice(start, end - start))
        yield tuple(rows.column(name)[0].as_py() for name in names), rows
        start = end


def texts(values: PartitionValues) -> list[str | None]:
    """The values as the log of a table has them."""
    return [text_of(one) for one in values]


def text_of(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None or value == "" else str(value)


def is_partition(columns: pyarrow.Schema, values: dict[str, str | None]) -> Any:
    """What holds for all rows of a file in a partition, as a `pyarrow.dataset.Expression`; None without columns."""
    from pyarrow.dataset import field

    condition = None
    for name, text in values.items():
        kind = columns.field(name).type
        one = field(name).is_null() if text is None else field(name) == pyarrow.scalar(text).cast(kind)
        condition = one if condition is None else condition & one
    return condition


def _is_plain(kind: pyarrow.DataType) -> bool:
    types = pyarrow.types
    return bool(types.is_string(kind) or types.is_integer(kind) or types.is_boolean(kind) or types.is_date32(kind))
