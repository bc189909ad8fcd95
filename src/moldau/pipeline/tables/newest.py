"""Which record of a key is the newest: what a table with one row per key (`--upsert`) is made by. Pure, Arrow kernels.

Of records of a key in one partition the one with the greatest offset counts, as in Kafka's log compaction. A key is in
several partitions only if partitions were added, or if its producers partition differently; offsets say nothing then,
so the newest records of its partitions are compared by `_timestamp`, and by the number of the partition where
timestamps are equal.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import pyarrow
import pyarrow.compute as compute

from moldau.pipeline.tables.columns import TableError
from moldau.pipeline.type_names import type_name

ORDER: Final = ("_partition", "_offset", "_timestamp")
"""The columns that say which of two records is newer."""
RAMP: Final = pyarrow.array(range(65_536), pyarrow.int64())


def numbers(start: int, count: int) -> Any:
    """The numbers from `start` on, as int64."""
    if count <= len(RAMP):
        return compute.add(RAMP.slice(0, count), start)
    pieces = [compute.add(RAMP, at) for at in range(start, start + count, len(RAMP))]
    return pyarrow.concat_arrays(pieces).slice(0, count)


def check_key_columns(columns: pyarrow.Schema, names: Sequence[str]) -> None:
    """Raise TableError if a key has a type whose values cannot be compared."""
    for name in names:
        kind = columns.field(name).type
        if pyarrow.types.is_nested(kind):
            raise TableError(
                f"--upsert cannot compare keys by column {name} of type {type_name(kind)}: leave out --decode-key."
            )


def identities(rows: Any, names: Sequence[str]) -> Any:
    """The keys of a batch or table, one `large_binary` for each row; equal ones are of one key. A single column of
    bytes or text is taken as it is, others as their texts with the length of each."""
    columns = [one.combine_chunks() if isinstance(one := rows[name], pyarrow.ChunkedArray) else one for name in names]
    kind = columns[0].type
    if len(columns) == 1 and (_is_text(kind) or _is_bytes(kind)):
        return columns[0].cast(pyarrow.large_binary())
    parts: list[Any] = []
    for column in columns:
        content = column if _is_bytes(column.type) else column.cast(pyarrow.large_string())
        content = content.cast(pyarrow.large_binary())
        length = compute.binary_length(content).cast(pyarrow.large_string()).cast(pyarrow.large_binary())
        part = compute.binary_join_element_wise(length, content, _scalar(b":"))
        parts.append(compute.fill_null(part, _scalar(b"-")))
    return compute.binary_join_element_wise(*parts, _scalar(b""))


class Newest(NamedTuple):
    """Indices of rows, ascending: of the newest row of each key, and of the newest one in each other partition of the
    key."""

    of_keys: Any
    of_other_partitions: Any


def newest(rows: Any) -> Newest:
    """Of a table with the columns `key` and `ORDER`."""
    codes = rows["key"].combine_chunks().dictionary_encode(null_encoding="encode").indices
    order = compute.sort_indices(rows, sort_keys=[("_partition", "ascending"), ("_offset", "ascending")])
    ranked = pyarrow.table(
        {
            "code": codes.take(order),
            "partition": rows["_partition"].combine_chunks().take(order),
            "at": numbers(0, len(order)),
        }
    )
    last = ranked.group_by(["code", "partition"], use_threads=False).aggregate([("at", "max")])
    others = last.slice(0, 0)
    if compute.count_distinct(last["code"]).as_py() < last.num_rows:
        last = last.append_column("time", rows["_timestamp"].take(order.take(last["at_max"].combine_chunks())))
        last = last.sort_by([("time", "ascending"), ("partition", "ascending")])
        last = last.append_column("rank", numbers(0, last.num_rows))
        ranks = last.group_by("code", use_threads=False).aggregate([("rank", "max")])["rank_max"]
        others = last.filter(compute.invert(compute.is_in(last["rank"], value_set=ranks.combine_chunks())))
        last = last.take(ranks)
    return Newest(_ascending(order, last), _ascending(order, others))


def _ascending(order: Any, ranked: Any) -> Any:
    indices = order.take(ranked["at_max"].combine_chunks())
    return indices.take(compute.sort_indices(indices)).cast(pyarrow.int64())


def replaced(rows: Any, others: Any) -> Any:
    """Whether each row has a newer record of its key and partition among `others` (key, `_partition`, `_offset`): then
    it counts no longer, whatever its time."""
    found = pyarrow.repeat(False, rows.num_rows)
    for partition in compute.unique(others["_partition"]).to_pylist():
        ours = others.filter(compute.equal(others["_partition"], partition))
        places = compute.index_in(rows["key"], value_set=ours["key"].combine_chunks())
        later = compute.greater(ours["_offset"].combine_chunks().take(places), rows["_offset"])
        here = compute.and_(compute.equal(rows["_partition"], partition), later)
        found = compute.or_(found, compute.fill_null(here, False))
    return found


def is_newer(one: Any, other: Any) -> Any:
    """Whether each row of `one` is newer than the row of `other` at its place, which is of the same key. A row that
    does not say whence it comes (another tool has written it) is older than any."""
    same = compute.equal(one["_partition"], other["_partition"])
    of_partition = compute.greater(one["_offset"], other["_offset"])
    later = compute.greater(one["_timestamp"], other["_timestamp"])
    as_late = compute.equal(one["_timestamp"], other["_timestamp"])
    of_greater = compute.and_(as_late, compute.greater(one["_partition"], other["_partition"]))
    newer = compute.if_else(same, of_partition, compute.or_(later, of_greater))
    return compute.fill_null(newer, True)


def _scalar(content: bytes) -> Any:
    return pyarrow.scalar(content, pyarrow.large_binary())


def _is_text(kind: pyarrow.DataType) -> bool:
    return bool(pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind))


def _is_bytes(kind: pyarrow.DataType) -> bool:
    return bool(pyarrow.types.is_binary(kind) or pyarrow.types.is_large_binary(kind))
