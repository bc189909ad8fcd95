"""The columns of a topic's table, and what may change about them.

A table holds `value`, or the decoded columns that take its place, and the columns of `RECORD`, whose names begin with
an underscore, so that a decoded column is unlikely to share one. `_date` and `_hour` are partition columns: their
values are in the table's log and not in the files. Pure.
"""

from collections.abc import Iterable
from typing import Any, Final

import pyarrow

from moldau.errors import MoldauError
from moldau.pipeline.type_names import type_name
from moldau.pipeline.wider_types import is_list, is_wider

HEADERS: Final = pyarrow.list_(pyarrow.struct([("key", pyarrow.string()), ("value", pyarrow.binary())]))
VALUE: Final = pyarrow.schema([("value", pyarrow.binary())])
KEY: Final = "_key"
RECORD: Final = pyarrow.schema(
    [
        (KEY, pyarrow.binary()),
        ("_partition", pyarrow.int32()),
        ("_offset", pyarrow.int64()),
        ("_timestamp", pyarrow.timestamp("us", "UTC")),
        ("_timestamp_type", pyarrow.int32()),
        ("_headers", HEADERS),
    ]
)
WHY: Final = pyarrow.schema([("reason", pyarrow.string()), ("rule", pyarrow.string()), ("field", pyarrow.string())])
"""Why a record was rejected: a sentence, a rule by a stable short name, and the field or null."""
REJECTED: Final = pyarrow.schema([*WHY, ("_topic", pyarrow.string()), *RECORD, *VALUE])
FETCHED: Final = {
    "value": "value",
    "_key": "key",
    "_partition": "partition",
    "_offset": "offset",
    "_timestamp": "timestamp",
    "_timestamp_type": "timestampType",
    "_headers": "headers",
}
"""Table column -> column of a fetched batch (`moldau.client.fetching`)."""
WITH_STATISTICS: Final = ("_partition", "_offset", "_timestamp")

DATE: Final = pyarrow.field("_date", pyarrow.date32())
HOUR: Final = pyarrow.field("_hour", pyarrow.int32())
PARTITION_COLUMNS: Final = {"date": [DATE], "hour": [DATE, HOUR], "none": []}
"""What `--partition-by` may say -> the partition columns."""


class TableError(MoldauError):
    """A table cannot be used as it is; the text is one sentence for the person who started the command."""


class TableGone(TableError):
    """The table that was opened is not there any more."""

    def __init__(self, table: str):
        super().__init__(
            f"{table} was removed or made anew while this load ran: run the load again, which goes on with the table "
            "that is there, or makes one."
        )


def in_files(decoded: pyarrow.Schema | None = None, keys: pyarrow.Schema | None = None) -> pyarrow.Schema:
    """The columns of a topic's data files: the decoded ones, or `value`, before those of the record. The decoded `keys`
    take the place of `_key`."""
    record = list(RECORD) if keys is None else [*keys, *(field for field in RECORD if field.name != KEY)]
    return pyarrow.schema([*(VALUE if decoded is None else decoded), *record])


def as_table_columns(fetched: Any) -> Any:
    """A fetched batch under the table's names; no value is copied."""
    return pyarrow.RecordBatch.from_arrays(
        [fetched.column(name) for name in FETCHED.values()], schema=in_files()
    )  # fmt: skip


def check_decoded(decoded: pyarrow.Schema, keys: pyarrow.Schema | None = None) -> None:
    """Raise TableError if a decoded column has a name that a table keeps for itself, or one that another one has. A
    decoded key may be named `_key`."""
    kept = {*RECORD.names, DATE.name, HOUR.name}
    seen: dict[str, str] = {}
    for name in [*decoded.names, *(name for name in (keys.names if keys else ()) if name != KEY)]:
        if name.lower() in kept:
            raise TableError(f"A decoded column cannot be named {name!r}: every table has a column of that name.")
        if name.lower() in seen:
            raise TableError(
                f"The decoded columns {seen[name.lower()]!r} and {name!r} differ in case only, which a Delta table "
                "cannot tell apart."
            )
        seen[name.lower()] = name


def check_structs(columns: Iterable[pyarrow.Field], path: str = "") -> None:
    """Raise TableError if two fields of a struct differ in case only, or one has a null character: Delta takes neither
    at any depth."""
    for field in columns:
        kind, where = field.type, f"{path}{field.name}"
        while is_list(kind) or pyarrow.types.is_map(kind):
            kind = kind.value_type if is_list(kind) else kind.item_type
        if not pyarrow.types.is_struct(kind):
            continue
        seen: dict[str, str] = {}
        for name in kind.names:
            other = seen.setdefault(name.lower(), name)
            if other != name or "\0" in name:
                what = f"and {other!r} differ in case only" if other != name else "has a null character"
                raise TableError(
                    f"The field {name!r} of {where} {what}, which a Delta table does not take: give --schema without "
                    "it, or load into an Iceberg table."
                )
        check_structs(kind, f"{where}.")


def missing(there: pyarrow.Schema, wanted: pyarrow.Schema, table: str) -> list[pyarrow.Field]:
    """The columns to add to a table so that it can take `wanted`, those with new fields inside of structs, and those
    that are wider in `wanted`. Raises TableError if one has another type there."""
    known = {field.name.lower(): field for field in there}
    lacking = []
    for field in wanted:
        old = known.get(field.name.lower())
        if old is None:
            lacking.append(field.with_nullable(True))
            continue
        if old.name != field.name:
            raise TableError(
                f"The new column {field.name!r} and the column {old.name!r} of {table} differ in case only."
            )
        grown = _grown(plain(old.type), plain(field.type))
        if grown is None:
            raise TableError(
                f"Column {field.name} of {table} has type {type_name(old.type)} and would now have type "
                f"{type_name(field.type)}; load into another warehouse, or decode it as before."
            )
        if grown != plain(old.type):
            lacking.append(pyarrow.field(field.name, grown))
    return lacking


def _grown(old: pyarrow.DataType, new: pyarrow.DataType) -> pyarrow.DataType | None:
    """The plain type that holds the values of both: `old`, with wider numbers and more fields in its structs. None if
    it would have to change otherwise."""
    types = pyarrow.types
    if old == new or is_wider(old, new):
        return old
    if is_wider(new, old):
        return new
    if types.is_struct(old) and types.is_struct(new):
        fields = []
        for field in old:
            at = new.get_field_index(field.name)
            grown = None if at < 0 else _grown(field.type, new.field(at).type)
            if grown is None:
                return None
            fields.append((field.name, grown))
        return pyarrow.struct([*fields, *(field for field in new if old.get_field_index(field.name) < 0)])
    if types.is_list(old) and types.is_list(new):
        grown = _grown(old.value_type, new.value_type)
        return None if grown is None else pyarrow.list_(grown)
    if types.is_map(old) and types.is_map(new) and old.key_type == new.key_type:
        grown = _grown(old.item_type, new.item_type)
        return None if grown is None else pyarrow.map_(old.key_type, grown)
    return None


def plain(kind: pyarrow.DataType) -> pyarrow.DataType:
    """A type without what Delta does not tell apart: names of list elements, nullability, large and view variants."""
    types = pyarrow.types
    if types.is_struct(kind):
        return pyarrow.struct([(field.name, plain(field.type)) for field in kind])
    if is_list(kind):
        return pyarrow.list_(plain(kind.value_type))
    if types.is_map(kind):
        return pyarrow.map_(plain(kind.key_type), plain(kind.item_type))
    if types.is_large_string(kind) or types.is_string_view(kind):
        return pyarrow.string()
    if types.is_large_binary(kind) or types.is_binary_view(kind):
        return pyarrow.binary()
    return kind


def names_of_partitions(partition_by: str) -> list[str]:
    """The names of the partition columns, whether the load makes them or the user has named them."""
    made = PARTITION_COLUMNS.get(partition_by)
    return partition_by.split(",") if made is None else [field.name for field in made]


def of_table(files: pyarrow.Schema, partition_by: str) -> pyarrow.Schema:
    """The whole schema of a table whose files have these columns."""
    return pyarrow.schema([*_nullable(files), *PARTITION_COLUMNS.get(partition_by, [])])


def _nullable(fields: Iterable[pyarrow.Field]) -> list[pyarrow.Field]:
    return [field.with_nullable(True) for field in fields]
