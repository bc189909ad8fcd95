"""From the table that `send_table` is given to the columns of records: which column is what, types, checks (needs
pyarrow).

Everything is checked before the first row is sent, so that a wrong table sends nothing.
"""

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from moldau.client.producing.columnar import RecordColumns
from moldau.client.producing.outgoing import BY_NAME
from moldau.client.producing.serializers import Serializer
from moldau.records.arrays import binaries, filled, pairs, texts
from moldau.records.arrow import HEADERS, one_array

INT32_MAX: Final = 0x7FFFFFFF


def columns_of_table(
    table: Any,
    key: Any,
    value: Any,
    partition: Any,
    timestamp: Any,
    headers: Any,
    key_serializer: Serializer | None,
    value_serializer: Serializer | None,
    *,
    now_ms: int,
) -> RecordColumns:
    """The columns of the records in a table. Raises `TypeError` and `ValueError`."""
    rows = as_table(table)
    count = rows.num_rows
    values = _column(rows, "value", value)
    if values is None and value is BY_NAME:
        raise ValueError(
            f"the table has no column 'value': say which one is (value=...); its columns are {_named(rows)}"
        )
    stamps = _column(rows, "timestamp", timestamp)
    targets = partition if type(partition) is int else _column(rows, "partition", partition)
    return RecordColumns(
        _unless_null(_contents(_column(rows, "key", key), "key", key_serializer)),
        _unless_null(_contents(values, "value", value_serializer)),
        filled(now_ms, pa.int64(), count) if stamps is None else _timestamps(stamps, now_ms),
        _headers(_column(rows, "headers", headers)),
        _partitions(targets, count),
    )


def columns_of_lists(
    values: Any,
    keys: Any,
    key_serializer: Serializer | None,
    value_serializer: Serializer | None,
    *,
    now_ms: int,
) -> RecordColumns:
    """The columns of records with these values and keys. Raises `TypeError` and `ValueError`."""
    contents = _listed(values, "value", value_serializer)
    names = None if keys is None else _listed(keys, "key", key_serializer)
    if names is not None and len(names) != len(contents):
        raise ValueError(f"{len(names)} keys were given for {len(contents)} values")
    stamps = filled(now_ms, pa.int64(), len(contents))
    return RecordColumns(names, contents, stamps, None, None)


def as_table(table: Any) -> pa.Table:
    """The table as pyarrow has it; nothing is copied where the memory layout is Arrow's already. Raises `TypeError`."""
    if isinstance(table, pa.Table):
        return table
    if isinstance(table, pa.RecordBatchReader):
        return table.read_all()
    try:
        return pa.table(table)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise TypeError(
            f"a table comes from pyarrow, pandas or Polars, or has __arrow_c_stream__ or __arrow_c_array__; "
            f"{type(table).__name__} is not: {error}"
        ) from None


def _named(rows: pa.Table) -> str:
    return ", ".join(rows.column_names) or "none"


def _column(rows: pa.Table, role: str, given: Any) -> Any:
    """The column for this role: by name, or an array of the caller's own; None without one."""
    if given is BY_NAME:
        given = role if role in rows.column_names else None
    if given is None:
        return None
    if isinstance(given, str):
        if rows.column_names.count(given) != 1:
            how_many = "more than one column" if given in rows.column_names else "no column"
            raise ValueError(f"{role}={given!r}: the table has {how_many} of that name; its columns are {_named(rows)}")
        column = rows.column(given)
    else:
        column = _array(given, role)
    if len(column) != rows.num_rows:
        raise ValueError(f"{role} has {len(column)} rows and the table {rows.num_rows}")
    return column


def _array(given: Any, role: str) -> Any:
    if isinstance(given, pa.Array | pa.ChunkedArray):
        return given
    if isinstance(given, bytes | int | float) or given is None:
        raise TypeError(f"{role} is {type(given).__name__}, neither a column's name nor an array")
    try:
        if hasattr(given, "__arrow_c_stream__"):
            return pa.chunked_array(given)
        kinds = {*map(type, given)} - {type(None)} if isinstance(given, list) else set()
        if kinds == {bytes}:
            return binaries(given)
        return texts(given) if kinds == {str} else pa.array(given)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise TypeError(f"{role} cannot be read as an Arrow array: {error}") from None


def _listed(given: Any, role: str, serializer: Serializer | None) -> pa.Array | pa.ChunkedArray:
    """A list or array of keys or values as a binary column."""
    if isinstance(given, str | bytes):
        raise TypeError(f"{role}s is {type(given).__name__}, not a list of them")
    if serializer is None or hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__"):
        column = _contents(_array(given, role), role, serializer)
        assert column is not None
        return column
    return binaries([serializer(one) for one in given])


def _whole(column: Any) -> pa.Array:
    """The column in one piece, and without a dictionary."""
    if pa.types.is_dictionary(column.type):
        pieces = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        column = pa.chunked_array([_decoded(piece) for piece in pieces], _plain(column.type.value_type))
    return one_array(column)


def _decoded(column: pa.DictionaryArray) -> pa.Array:
    values = column.dictionary.cast(_plain(column.type.value_type))
    return pa.DictionaryArray.from_arrays(column.indices, values).dictionary_decode()


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type, or in place of views, which Polars has and few functions of Arrow know, the type of the same values."""
    if pa.types.is_string_view(kind):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(kind) else kind


def _contents(column: Any, role: str, serializer: Serializer | None) -> pa.Array | pa.ChunkedArray | None:
    """A column of keys or values as binary. Chunks of bytes are not joined, because that would copy all rows."""
    if column is None:
        return None
    chunked = isinstance(column, pa.ChunkedArray) and column.num_chunks > 1
    if chunked and serializer is None and pa.types.is_binary(column.type):
        return column
    whole = _whole(column)
    if serializer is not None:
        return binaries([serializer(one) for one in whole.to_pylist()])
    if pa.types.is_binary(whole.type):
        return whole
    kind = whole.type
    if pa.types.is_null(kind):
        return pa.nulls(len(whole), pa.binary())
    if not any(check(kind) for check in _TEXT_OR_BYTES):
        raise TypeError(
            f"the {role} column is {kind}, not binary or text: cast it, or the setting {role}_serializer says how to"
            " make bytes of each"
        )
    try:
        return whole.cast(pa.binary())
    except pa.ArrowInvalid as error:
        raise ValueError(f"the {role} column cannot be sent at once: {error}") from None


def _unless_null(column: Any) -> Any:
    """The column; None if each of its rows is null, so that no batch looks at it again."""
    return None if column is None or column.null_count == len(column) else column


_TEXT_OR_BYTES: Final = (
    pa.types.is_string, pa.types.is_large_string, pa.types.is_large_binary, pa.types.is_string_view,
    pa.types.is_binary_view, pa.types.is_fixed_size_binary,
)  # fmt: skip


def _timestamps(column: Any, now_ms: int) -> pa.Array:
    """A column of times in ms; those that are null are now."""
    whole = _whole(column)
    if pa.types.is_timestamp(whole.type):
        whole = whole.cast(pa.timestamp("ms", tz=whole.type.tz), safe=False).cast(pa.int64())
    elif not pa.types.is_integer(whole.type):
        raise TypeError(f"the timestamp column is {whole.type}, neither timestamps nor whole ms since 1970")
    whole = _without_nulls(whole.cast(pa.int64()), now_ms)
    if len(whole) and pc.min(whole).as_py() < 0:
        raise ValueError(f"the timestamp {pc.min(whole).as_py()} is before 1970")
    return whole


def _partitions(given: Any, count: int) -> pa.Array | None:
    """A column of partitions as int32, with -1 for null."""
    if given is None:
        return None
    if type(given) is int:
        _check_partition(given)
        return filled(given, pa.int32(), count)
    whole = _whole(given)
    if not pa.types.is_integer(whole.type):
        raise TypeError(f"the partition column is {whole.type}, not whole numbers")
    limits = pc.min_max(whole)
    for limit in (limits["min"].as_py(), limits["max"].as_py()):
        _check_partition(limit)
    return _without_nulls(whole.cast(pa.int32()), -1)


def _check_partition(given: int | None) -> None:
    if given is not None and not 0 <= given <= INT32_MAX:
        raise ValueError(f"partition={given} is not between 0 and {INT32_MAX}")


def _without_nulls(column: pa.Array, value: int) -> pa.Array:
    """The column of integers with `value` in place of null."""
    return pc.coalesce(column, filled(value, column.type, len(column))) if column.null_count else column


def _headers(column: Any) -> pa.Array | None:
    """A column of headers as lists of structs of a name and a value."""
    if column is None:
        return None
    whole = _whole(column)
    kind = whole.type
    if pa.types.is_null(kind):
        return None
    is_map = pa.types.is_map(kind)
    listed = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    names = {field.name for field in kind.value_type} if listed and pa.types.is_struct(kind.value_type) else set()
    if names != {"key", "value"} and not is_map:
        raise TypeError(f"the headers column is {kind}, neither lists of structs of key and value nor maps")
    rows = [
        None if row is None else row if is_map else [(header["key"], header["value"]) for header in row]
        for row in whole.to_pylist()
    ]
    for row in rows:
        for name, _ in row or ():
            if not isinstance(name, str):
                raise TypeError(f"the name of a header is {type(name).__name__}, not str")
    if is_map or any(_plain(field.type) != field.type for field in kind.value_type):
        return pairs(rows, HEADERS)
    return whole
