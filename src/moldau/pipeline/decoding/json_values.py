"""JSON objects as columns: pyarrow reads a batch at once; what it refuses is halved until single records are left.

Each value is put into a line `{"v": VALUE}`. A line begins and ends a JSON object, whatever the value is, since no JSON
text has `}` and `{` on both sides of a line break; so as many objects as values means one object for each value.

Fields that are not in the schema are left out if the schema was given; if it was inferred, they are kept as JSON in the
column `_more`.
"""

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from moldau.client.registry.framing import FRAME_BYTES, MAGIC
from moldau.pipeline.decoding.event_times import as_times
from moldau.pipeline.decoding.json_coercion import NotCoercible, coercion
from moldau.pipeline.decoding.topic_decoder import DecodedValues, short

MORE = "_more"
SINGLY = 16
BLOCK_BYTES_MIN = 1 << 16


class JsonValues:
    """Decodes JSON objects into the columns of `schema`; with `keeps_rest` the last one is `_more`. `framed` values
    begin with the id of a schema, as serializers of a registry write them."""

    def __init__(self, schema: pa.Schema, *, keeps_rest: bool = False, framed: bool = False):
        self._fields = schema
        self._framed = framed
        self._keeps_rest = keeps_rest
        self.schema = schema.append(pa.field(MORE, pa.string())) if keeps_rest else schema
        self._in_bulk = len(schema) > 0 and all(_bulk_type(field.type) is not None for field in schema)

    def found(self, values: Any) -> DecodedValues:
        bad: dict[int, str] = {}
        if self._framed:
            contents = []
            for at, value in enumerate(values.to_pylist()):
                contents.append(value[FRAME_BYTES:])
                if len(value) < FRAME_BYTES or value[0] != MAGIC:
                    bad[at] = "the value does not begin with the byte 0 and a schema id"
            values = pa.array(contents, pa.binary())
        pieces: list[Any] = []
        rows = _Rows(self._fields, self._keeps_rest)
        self._decode(values, 0, pieces, bad, rows)
        pieces += rows.taken()
        names = self.schema.names
        if len(pieces) == 1:
            return DecodedValues(pieces[0], bad)
        columns = [
            pa.chunked_array([one[at] for one in pieces], self.schema.field(at).type) for at in range(len(names))
        ]
        return DecodedValues([column.combine_chunks() for column in columns], bad)

    def _decode(self, values: Any, first: int, pieces: list[Any], bad: dict[int, str], rows: "_Rows") -> None:
        if len(values) > SINGLY and self._in_bulk:
            columns = None if any(first <= at < first + len(values) for at in bad) else self._bulk(values)
            if columns is not None:
                pieces += [*rows.taken(), columns]
                return
            half = len(values) // 2
            self._decode(values.slice(0, half), first, pieces, bad, rows)
            self._decode(values.slice(half), first + half, pieces, bad, rows)
            return
        for at, value in enumerate(values.to_pylist(), first):
            if at not in bad:
                reason = rows.add(value)
                if reason:
                    bad[at] = reason

    def _bulk(self, values: Any) -> list[Any] | None:
        """The columns, or None if some value needs to be looked at by itself."""
        try:
            values.cast(pa.string())
            flat = pc.replace_substring(values, b"\n", b" ")
            lines = pc.binary_join_element_wise(b'{"v":', flat, b"}\n", b"")
            offsets = pa.Array.from_buffers(pa.int32(), len(lines) + 1, [None, lines.buffers()[1]], offset=lines.offset)
            start, end = offsets[0].as_py(), offsets[len(lines)].as_py()
            data = lines.buffers()[2].slice(start, end - start)
            kind = pa.struct([(field.name, _bulk_type(field.type)) for field in self._fields])
            table = pj.read_json(
                pa.BufferReader(data),
                read_options=pj.ReadOptions(use_threads=False, block_size=max(BLOCK_BYTES_MIN, data.size + 1)),
                parse_options=pj.ParseOptions(
                    explicit_schema=pa.schema([("v", kind)]),
                    unexpected_field_behavior="error" if self._keeps_rest else "ignore",
                ),
            )
            if table.num_rows != len(values):
                return None
            whole = table.column("v").combine_chunks()
            whole.validate(full=True)
            if whole.null_count or whole.type != kind:
                return None
            columns = [_converted(whole.field(at), field.type) for at, field in enumerate(self._fields)]
        except pa.ArrowException:
            return None
        if any(column is None for column in columns):
            return None
        if self._keeps_rest:
            columns.append(pa.nulls(len(values), pa.string()))
        return columns


class _Rows:
    """Records that were decoded one by one, until they become columns."""

    def __init__(self, fields: pa.Schema, keeps_rest: bool):
        self._kind = pa.struct([*fields])
        self._coerce = coercion(self._kind)
        self._keeps_rest = keeps_rest
        self._made: list[Any] = []
        self._rest: list[str | None] = []

    def add(self, value: bytes) -> str:
        """Take a value; returns why it cannot be decoded."""
        try:
            tree = json.loads(value.decode())
        except UnicodeDecodeError as error:
            return f"the value is not UTF-8: {error.reason} at byte {error.start}"
        except (ValueError, RecursionError) as error:
            return f"the value is not JSON: {error}"
        if not isinstance(tree, dict):
            return f"the value is {short(tree)}, not a JSON object"
        rest: dict[str, Any] | None = {} if self._keeps_rest else None
        try:
            made = self._coerce(tree, "", rest)
            more = json.dumps(rest, ensure_ascii=False, separators=(",", ":")) if rest else None
            if more is not None:
                more.encode()
        except NotCoercible as error:
            return str(error)
        except (RecursionError, UnicodeEncodeError):
            return "the value nests too deeply, or its text is not Unicode"
        self._made.append(made)
        self._rest.append(more)
        return ""

    def taken(self) -> list[Any]:
        """The columns of the records so far, as a list with one element or none."""
        if not self._made:
            return []
        whole = pa.array(self._made, self._kind)
        columns = [whole.field(at) for at in range(self._kind.num_fields)]
        if self._keeps_rest:
            columns.append(pa.array(self._rest, pa.string()))
        self._made, self._rest = [], []
        return [columns]


def _bulk_type(kind: pa.DataType, nested: bool = False) -> pa.DataType | None:
    """The type as which pyarrow reads JSON for this one; None if it cannot."""
    types = pa.types
    if types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_string(kind):
        return kind
    if (types.is_timestamp(kind) or types.is_date(kind)) and not nested:
        return pa.string()
    if types.is_struct(kind):
        below = [(kind.field(at).name, _bulk_type(kind.field(at).type, True)) for at in range(kind.num_fields)]
        return None if not below or any(one is None for _, one in below) else pa.struct(below)
    if types.is_list(kind):
        item = _bulk_type(kind.value_type, True)
        return None if item is None else pa.list_(item)
    return None


def _converted(column: Any, kind: pa.DataType) -> Any:
    """A column that was read as text, or None if a value is not of that type."""
    if pa.types.is_timestamp(kind) and pa.types.is_string(column.type):
        times = as_times(column)
        return None if times.null_count > column.null_count else times.cast(kind)
    return column.cast(kind) if column.type != kind else column
