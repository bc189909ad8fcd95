"""Avro records of flat types, a whole batch at once: one place in each record moves on, field by field, in numpy.

It reads boolean, int, long, float, double, bytes, string, enum, fixed, records of these, and unions of null and one of
these. A row that is odd in any way is left to fastavro, which says what is wrong with it; so is every schema with
another type. It is more than ten times as fast. Pure.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

INT_MAX = (1 << 31) - 1
VARINT_BITS = 70
JOINED_MIN = 32
"""Texts that are longer than this on average are cut out one by one."""
Rows = Any
"""The indices of the rows that have a value here."""


class RowCursor:
    """Where each row is read next, and which rows are odd."""

    def __init__(self, data: Any, at: Any, end: Any):
        self.data, self.at, self.end = data, at, end
        self.odd = np.zeros(len(at), bool)

    def longs(self, rows: Rows) -> Any:
        """A zigzag varint of each of these rows."""
        at, end = self.at[rows], self.end[rows]
        value = np.zeros(len(rows), np.uint64)
        active = np.arange(len(rows))
        for shift in range(0, VARINT_BITS, 7):
            here = at[active]
            inside = here < end[active]
            if not inside.all():
                self.odd[rows[active[~inside]]] = True
                active, here = active[inside], here[inside]
            byte = self.data[here]
            value[active] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
            at[active] += 1
            active = active[byte >= 0x80]
            if not len(active):
                break
            if shift >= VARINT_BITS - 14:  # nine bytes, and no end yet: fastavro knows what the tenth may be
                self.odd[rows[active]] = True
                break
        self.at[rows] = at
        return (value >> np.uint64(1)).astype(np.int64) ^ -(value & np.uint64(1)).astype(np.int64)

    def skip(self, rows: Rows, lengths: Any) -> Any:
        """The places of so many bytes of each of these rows, and how many there are: 0 in a row that lacks them."""
        at = self.at[rows]
        fits = (lengths >= 0) & (lengths <= self.end[rows] - at)
        self.odd[rows[~fits]] = True
        lengths = np.where(fits, lengths, 0)
        self.at[rows] = at + lengths
        return at, lengths

    def gathered(self, at: Any, lengths: Any) -> Any:
        """The bytes at these places, one after the other."""
        ends = np.cumsum(lengths)
        total = int(ends[-1]) if len(ends) else 0
        if total > JOINED_MIN * len(lengths):  # an index for each byte would be eight times as large as they are
            view, spans = memoryview(self.data), zip(at.tolist(), (at + lengths).tolist(), strict=True)
            return np.frombuffer(b"".join([view[start:end] for start, end in spans]), np.uint8)
        return self.data[np.repeat(at - (ends - lengths), lengths) + np.arange(total)]


Read = Callable[[RowCursor, Rows, int], Any]
"""Reads a field of the rows that have it, into an array of so many rows; those that do not have it are null."""


class BulkPlan(NamedTuple):
    """How rows with a writer's schema become columns of the reader's: `fields` reads the writer's in their order, and
    `chosen` has for each of the reader's which of them it is, or -1 for null."""

    fields: list[Read]
    chosen: list[int]


def plan_of(writer: Any, reader: Any) -> BulkPlan | None:
    """The plan for two parsed schemas without logical types; None if they are not of flat types, or differ in more than
    fields that are left out, that are null, or of int and long."""
    if writer.get("type") != "record" or writer["name"] != reader.get("name"):
        return None
    named: dict[str, Any] = {}
    fields = [_read_of(field["type"], named) for field in writer["fields"]]
    if None in fields:
        return None
    places = {field["name"]: at for at, field in enumerate(writer["fields"])}
    chosen = []
    for field in reader["fields"]:
        at = places.get(field["name"], -1)
        if field.get("aliases") or (at >= 0 and not _fits(writer["fields"][at]["type"], field["type"])):
            return None
        if at < 0 and not (field.get("default", 0) is None and "null" in field["type"]):
            return None
        chosen.append(at)
    return BulkPlan([one for one in fields if one is not None], chosen)


def read_rows(plan: BulkPlan, cursor: RowCursor, kind: pa.DataType) -> list[Any]:
    """The columns of all rows, as the fields of this type; odd rows have anything."""
    rows = np.arange(len(cursor.at))
    made = [read(cursor, rows, len(rows)) for read in plan.fields]
    cursor.odd |= cursor.at != cursor.end
    return [
        pa.nulls(len(rows), kind.field(at).type) if which < 0 else _cast(made[which], kind.field(at).type)
        for at, which in enumerate(plan.chosen)
    ]


def _cast(column: Any, kind: pa.DataType) -> Any:
    return column if column.type == kind else column.cast(kind)


def _fits(writer: Any, reader: Any) -> bool:
    return bool(writer == reader) or (writer, reader) == ("int", "long")


def _read_of(node: Any, named: dict[str, Any]) -> Read | None:
    """What reads a type; None for one that is not flat."""
    if isinstance(node, str):
        return _PRIMITIVES.get(node) or named.get(node)
    if isinstance(node, list):
        others = [one for one in node if one != "null"]
        inner = _read_of(others[0], named) if len(node) == 2 and len(others) == 1 else None
        return None if inner is None else _nullable(inner, node.index("null"))
    if "logicalType" in node:
        return None
    made: Read | None = None
    if node["type"] == "record":
        children = [(field["name"], _read_of(field["type"], named)) for field in node["fields"]]
        flat = [(name, child) for name, child in children if child is not None]
        made = _record(flat) if flat and len(flat) == len(children) else None
    elif node["type"] == "enum":
        made = _enum(node["symbols"])
    elif node["type"] == "fixed":
        made = _fixed(node["size"])
    elif isinstance(node["type"], str):
        return _PRIMITIVES.get(node["type"])
    if made is not None:
        named[node["name"]] = made
    return made


def _spread(values: Any, rows: Rows, count: int, kind: pa.DataType) -> Any:
    """Numbers of some rows as an array of all rows."""
    if len(rows) == count:
        return pa.array(values, kind)
    whole, missing = np.zeros(count, values.dtype), np.ones(count, bool)
    whole[rows], missing[rows] = values, False
    return pa.array(whole, kind, mask=missing)


def _long(cursor: RowCursor, rows: Rows, count: int) -> Any:
    return _spread(cursor.longs(rows), rows, count, pa.int64())


def _int(cursor: RowCursor, rows: Rows, count: int) -> Any:
    values = cursor.longs(rows)
    wide = (values > INT_MAX) | (values < -INT_MAX - 1)
    cursor.odd[rows[wide]] = True
    return _spread(np.where(wide, 0, values).astype(np.int32), rows, count, pa.int32())


def _boolean(cursor: RowCursor, rows: Rows, count: int) -> Any:
    at, lengths = cursor.skip(rows, np.ones(len(rows), np.int64))
    values = np.zeros(len(rows), np.uint8)
    values[lengths > 0] = cursor.gathered(at, lengths)
    cursor.odd[rows[values > 1]] = True
    return _spread(values > 0, rows, count, pa.bool_())


def _floating(code: str, kind: pa.DataType) -> Read:
    width = np.dtype(code).itemsize

    def read(cursor: RowCursor, rows: Rows, count: int) -> Any:
        at, lengths = cursor.skip(rows, np.full(len(rows), width, np.int64))
        values = np.zeros(len(rows), code)
        values[lengths > 0] = cursor.gathered(at, lengths).view(code)
        return _spread(values, rows, count, kind)

    return read


def _bytes(kind: pa.DataType) -> Read:
    def read(cursor: RowCursor, rows: Rows, count: int) -> Any:
        at, lengths = cursor.skip(rows, cursor.longs(rows))
        return _slices(cursor, at, lengths, rows, count, kind)

    return read


def _fixed(size: int) -> Read:
    def read(cursor: RowCursor, rows: Rows, count: int) -> Any:
        at, lengths = cursor.skip(rows, np.full(len(rows), size, np.int64))
        return _slices(cursor, at, lengths, rows, count, pa.binary())

    return read


def _slices(cursor: RowCursor, at: Any, lengths: Any, rows: Rows, count: int, kind: pa.DataType) -> Any:
    data = pa.py_buffer(np.ascontiguousarray(cursor.gathered(at, lengths)))
    sizes = np.zeros(count + 1, np.int32)
    sizes[rows + 1] = lengths
    offsets = pa.py_buffer(np.cumsum(sizes, dtype=np.int32))
    valid = None
    if len(rows) < count:
        there = np.zeros(count, bool)
        there[rows] = True
        valid = pa.array(there).buffers()[1]
    made = pa.Array.from_buffers(pa.binary(), count, [valid, offsets, data])
    return made if kind == pa.binary() else made.cast(kind)  # which refuses what is not UTF-8


def _enum(symbols: list[str]) -> Read:
    texts = pa.array(symbols, pa.string())

    def read(cursor: RowCursor, rows: Rows, count: int) -> Any:
        values = cursor.longs(rows)
        outside = (values < 0) | (values >= len(symbols))
        cursor.odd[rows[outside]] = True
        return texts.take(_spread(np.where(outside, 0, values), rows, count, pa.int64()))

    return read


def _nullable(inner: Read, null: int) -> Read:
    def read(cursor: RowCursor, rows: Rows, count: int) -> Any:
        branches = cursor.longs(rows)
        cursor.odd[rows[(branches < 0) | (branches > 1)]] = True
        return inner(cursor, rows[branches == 1 - null], count)

    return read


def _record(children: list[tuple[str, Read]]) -> Read:
    def read(cursor: RowCursor, rows: Rows, count: int) -> Any:
        arrays = [child(cursor, rows, count) for _, child in children]
        missing = np.ones(count, bool)
        missing[rows] = False
        return pa.StructArray.from_arrays(arrays, [name for name, _ in children], mask=pa.array(missing))

    return read


_PRIMITIVES: dict[str, Read] = {
    "boolean": _boolean, "int": _int, "long": _long, "float": _floating("<f4", pa.float32()),
    "double": _floating("<f8", pa.float64()), "bytes": _bytes(pa.binary()), "string": _bytes(pa.string()),
}  # fmt: skip
