"""Many JSON objects at once, by pyarrow, and which values are to be looked at one by one.

Each value is put into a line `{"v": VALUE}`. A line begins and ends a JSON object, whatever the value is, since no JSON
text has `}` and `{` on both sides of a line break; so as many objects as values means one object for each value.

pyarrow refuses a block for one bad value in it. Then values are suspected, by the cheapest way first (`_broken`,
`_suspicious`, `_with_more`), until it takes all others. A suspect is not refused: it is decoded by itself, so that to
suspect too many costs time and nothing else. What pyarrow takes although the rules of `json_numbers` may refuse it
(NaN, and numbers that it rounds, or makes zero or infinite) is suspected always (`_constants`, `_unsure`).
"""

import datetime
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from moldau.pipeline.decoding.event_times import as_times

BLOCK_BYTES_MIN = 1 << 16
ROW = re.compile(r" in row (\d+)")
SUSPECTS_MIN, SUSPECTS_SHARE = 64, 10
"""Search for bad values until they are more than these, and more than one in ten: one by one is faster then."""
DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}
"""Whole numbers of that many bits may be too large from that many digits on."""


CONSTANT = r"[:\[,]\s*-?(?:NaN|Inf)"
TINY = b"." + 30 * b"0"
MAY_BE_TINY = r"[0-9][eE]-0*(?:[3-9][0-9]|[1-9][0-9]{2,})|\.0{30}"
"""Numbers that may become zero: with thirty zeros after the point, or an exponent as small."""


class InBulk(NamedTuple):
    """The columns of the values whose indices are in `rows`, in their order; the other values are not decoded."""

    rows: Any
    columns: list[Any]


class JsonBulk:
    """Reads objects with these fields; `only` refuses to read values with other fields."""

    def __init__(self, fields: pa.Schema, *, only: bool):
        self._fields = fields
        self._only = only
        self._suspicious_text = _suspicious_text(fields)
        self.possible = len(fields) > 0 and all(_read_as(field.type) is not None for field in fields)
        if self.possible:
            self._kind = pa.struct([(field.name, _read_as(field.type)) for field in fields])

    def decoded(self, values: Any, left_out: Iterable[int]) -> InBulk:
        """The columns of as many values as possible, without those at the indices `left_out`."""
        rows = _without(_numbered(len(values)), {*left_out, *_constants(values)})
        for suspects in (None, self._broken, self._suspicious, self._with_more):
            if suspects is not None:
                doubtful = suspects(_chosen(values, rows))
                if doubtful is None:
                    break
                rows = _without(rows, doubtful)
            if not len(rows):
                break
            made = self._columns(_chosen(values, rows))
            if made is not None:
                columns, good = made
                return InBulk(rows if good is None else rows.filter(good), columns)
        return InBulk(rows.slice(0, 0), [pa.array([], field.type) for field in self._fields])

    def _columns(self, values: Any) -> tuple[list[Any], Any] | None:
        """The columns of all values, or of those in a mask; None if some value is in the way."""
        try:
            values.cast(pa.string())
            whole = self._parsed(_Lines(values), 0, len(values), "error" if self._only else "ignore")
            if len(whole) != len(values) or whole.type != self._kind:
                return None
            whole.validate(full=True)
            columns = [_converted(whole.field(at), field.type) for at, field in enumerate(self._fields)]
        except pa.ArrowException:
            return None
        good = whole.is_valid()
        unsure = _unsure(whole, values)
        if unsure is not None:
            good = pc.and_(good, pc.invert(unsure))
        for at, column in enumerate(columns):
            if column.null_count > whole.field(at).null_count:
                good = pc.and_(good, pc.or_(column.is_valid(), whole.field(at).is_null()))
        if good.true_count == len(values):
            return columns, None
        return [column.filter(good) for column in columns], good

    def _parsed(self, lines: "_Lines", start: int, end: int, unknown_fields: str) -> Any:
        """The objects of these lines as one array of structs. Raises `pyarrow.ArrowException`."""
        data = lines.between(start, end)
        table = pj.read_json(
            pa.BufferReader(data),
            read_options=pj.ReadOptions(use_threads=False, block_size=max(BLOCK_BYTES_MIN, data.size + 1)),
            parse_options=pj.ParseOptions(
                explicit_schema=pa.schema([("v", self._kind)]), unexpected_field_behavior=unknown_fields
            ),
        )
        return table.column("v").combine_chunks()

    def _broken(self, values: Any) -> list[int] | None:
        """The values that are not JSON, or have a field of another type; pyarrow's errors name them. None if there are
        too many."""
        broken = [at for at, value in enumerate(values.to_pylist()) if not _is_utf8(value)]
        lines, start = _Lines(values), 0
        while start < len(values):
            try:
                self._parsed(lines, start, len(values), "ignore")
                break
            except pa.ArrowException as error:
                row = ROW.search(str(error))
                if row is None:
                    break
                start += int(row[1]) + 1
                broken.append(start - 1)
                if len(broken) > max(SUSPECTS_MIN, start // SUSPECTS_SHARE):
                    return None
        return broken

    def _suspicious(self, values: Any) -> list[int]:
        """The values that look like several, and those whose whole numbers have fractions or too many digits."""
        text = values.cast(pa.string())
        return list(_rows_of(pc.match_substring_regex(text, self._suspicious_text)))

    def _with_more(self, values: Any) -> list[int] | None:
        """The values with fields that are not asked for. None if they cannot be told."""
        with_more: list[int] = []
        lines, start = _Lines(values), 0
        while self._only and start < len(values):
            end = len(values)
            try:
                try:
                    whole = self._parsed(lines, start, end, "infer")
                except pa.ArrowException as error:
                    row = ROW.search(str(error))
                    if row is None:
                        return None
                    end = start + int(row[1])  # two values disagree about the type of an unknown field
                    with_more.append(end)
                    whole = self._parsed(lines, start, end, "infer") if end > start else None
            except pa.ArrowException:
                return None
            if whole is not None:
                with_more += [start + at for at in _rows_of(_has_more(whole, self._kind))]
            if len(with_more) > max(SUSPECTS_MIN, end // SUSPECTS_SHARE):
                return None
            start = end + 1
        return with_more


class _Lines:
    """The values as lines of JSON, in one buffer."""

    def __init__(self, values: Any):
        flat = pc.replace_substring(values, b"\n", b" ")
        lines = pc.binary_join_element_wise(b'{"v":', flat, b"}\n", b"")
        _, offsets, self._data = lines.buffers()
        self._offsets = memoryview(offsets).cast("i")[lines.offset :]

    def between(self, start: int, end: int) -> Any:
        first = self._offsets[start]
        return self._data.slice(first, self._offsets[end] - first)


def _read_as(kind: pa.DataType, nested: bool = False) -> pa.DataType | None:
    """The type as which pyarrow reads JSON for this one; None if it cannot."""
    types = pa.types
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_string(kind):
        return kind
    if (types.is_timestamp(kind) or types.is_date(kind)) and not nested:
        return pa.string()
    if types.is_struct(kind):
        below = [(kind.field(at).name, _read_as(kind.field(at).type, True)) for at in range(kind.num_fields)]
        return None if not below or any(one is None for _, one in below) else pa.struct(below)
    if types.is_list(kind):
        item = _read_as(kind.value_type, True)
        return None if item is None else pa.list_(item)
    return None


def _converted(column: Any, kind: pa.DataType) -> Any:
    """A column that was read as text, null where a value is not of that type."""
    if pa.types.is_timestamp(kind):
        return as_times(column).cast(kind)
    if pa.types.is_date(kind):
        try:
            return column.cast(kind)
        except pa.ArrowInvalid:
            return pa.array([_date(one) for one in column.to_pylist()], kind)
    return column.cast(kind) if column.type != kind else column


def _date(text: str | None) -> datetime.date | None:
    try:
        return None if text is None else datetime.date.fromisoformat(text)
    except ValueError:
        return None


def _has_more(column: Any, kind: pa.DataType) -> Any:
    """Which rows have a field that the type does not have, at any depth."""
    more = pa.repeat(pa.scalar(False), len(column))
    if pa.types.is_struct(kind):
        for at in range(column.type.num_fields):
            known = kind.get_field_index(column.type.field(at).name)
            child = column.field(at)
            more = pc.or_(more, child.is_valid() if known < 0 else _has_more(child, kind.field(known).type))
    elif pa.types.is_list(kind):
        parents = pc.list_parent_indices(column).filter(_has_more(column.flatten(), kind.value_type))
        more = pc.is_in(_numbered(len(column)), parents.cast(pa.int64()))
    return more


def _constants(values: Any) -> Iterator[int]:
    """The values that may have NaN or Infinity, which pyarrow reads as numbers and JSON does not have."""
    if _hold(values, b"NaN", b"Inf"):
        yield from _rows_of(pc.match_substring_regex(values, CONSTANT))


def _hold(values: Any, *signs: bytes) -> bool:
    """Whether one of these is anywhere in the values. (Arrow's own search costs ten times as much.)"""
    _, offsets, data = values.buffers()
    if data is None or not len(values):
        return False
    edges = memoryview(offsets).cast("i")
    text = bytes(memoryview(data)[edges[values.offset] : edges[values.offset + len(values)]])
    return any(sign[:1] in text and sign in text for sign in signs)  # one byte is found ten times as fast


def _unsure(column: Any, values: Any) -> Any:
    """Which rows have a floating-point number, at any depth, that may not be what the text said; None for none."""
    large, small = _extremes(column)
    if small is None:
        return large
    rows = pc.indices_nonzero(small)
    chosen = values.take(rows)
    if not _hold(chosen, b"e-", b"E-", TINY):
        return large
    tiny = rows.filter(pc.match_substring_regex(chosen, MAY_BE_TINY)).cast(pa.int64())
    return _either(large, pc.is_in(_numbered(len(values)), tiny))


def _extremes(column: Any) -> tuple[Any, Any]:
    """Which rows have a number that may be rounded to a whole one, or is none; and which have one that is next to zero.
    None instead of a mask without any."""
    kind, large, small = column.type, None, None
    if pa.types.is_floating(kind):
        size = pc.abs(column)
        large = pc.fill_null(pc.greater(size, float(1 << (53 if kind.bit_width == 64 else 24)) - 1), False)
        small = pc.fill_null(pc.less(size, 1e-300 if kind.bit_width == 64 else 1e-36), False)
    elif pa.types.is_struct(kind):
        for at in range(kind.num_fields):
            masks = _extremes(column.field(at))
            large, small = (_either(*pair) for pair in zip((large, small), masks, strict=True))
    elif pa.types.is_list(kind):
        large, small = (_parents(column, mask) for mask in _extremes(column.flatten()))
    return tuple(None if mask is None or not mask.true_count else mask for mask in (large, small))  # type: ignore[return-value]


def _either(one: Any, other: Any) -> Any:
    return pc.or_(one, other) if one is not None and other is not None else one if other is None else other


def _parents(column: Any, items: Any) -> Any:
    """The rows of a column of lists of which one of the items is in a mask."""
    if items is None:
        return None
    parents = pc.list_parent_indices(column).filter(items).cast(pa.int64())
    return pc.is_in(_numbered(len(column)), parents)


def _suspicious_text(fields: Iterable[pa.Field]) -> str:
    """An expression for text of several objects, and for whole numbers that are none or too large."""
    ways = [r"\}\s*\{"]
    for name, kind in _numbers(fields):
        many = f"[0-9]{{{DIGITS[kind.bit_width]},}}|[0-9]+[.eE]"
        ways.append(rf'"{re.escape(name)}"\s*:\s*(?:\[[^\]]*)?-?(?:{many})')
    return "|".join(ways)


def _numbers(fields: Iterable[pa.Field]) -> Iterator[tuple[str, pa.DataType]]:
    """The fields of whole numbers, and of lists of them, at any depth."""
    for field in fields:
        kind = field.type
        while pa.types.is_list(kind):
            kind = kind.value_type
        if pa.types.is_struct(kind):
            yield from _numbers(kind)
        elif pa.types.is_integer(kind):
            yield field.name, kind


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _rows_of(mask: Any) -> Iterator[int]:
    yield from pc.indices_nonzero(mask).to_pylist()


def _numbered(count: int) -> Any:
    return pa.array(range(count), pa.int64())


def _chosen(values: Any, rows: Any) -> Any:
    return values if len(rows) == len(values) else values.take(rows)


def _without(rows: Any, places: Iterable[int]) -> Any:
    """The rows except those at these places."""
    gone = [at for at in set(places) if at < len(rows)]
    if not gone:
        return rows
    kept = pc.is_in(_numbered(len(rows)), pa.array(gone, pa.int64()))
    return rows.filter(pc.invert(kept))
