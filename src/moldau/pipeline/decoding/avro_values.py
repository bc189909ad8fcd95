"""Avro records as columns: each value is read with the schema of its id and resolved to the reader's schema.

Flat records are read as whole batches (`avro_bulk`), others one by one with fastavro, which is what these cost; times
are cast as whole columns. A schema id that the registry does not know, or that is not Avro, rejects its records; a
registry that does not answer fails the load.
"""

import base64
import decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from moldau.client.registry.avro import decoded, parsed_avro
from moldau.client.registry.avro_schema import ParsedSchema
from moldau.client.registry.framing import FRAME_BYTES, framed, schema_id_of
from moldau.client.registry.json_texts import json_text
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.client.registry.schemas import AVRO, Schema, as_schema
from moldau.errors import DoesNotFit, NotFramed, SchemaInvalid, SchemaNotFound
from moldau.pipeline.decoding.avro_bulk import BulkPlan, RowCursor, plan_of, read_rows
from moldau.pipeline.decoding.avro_columns import columns_of, is_record, without_times
from moldau.pipeline.decoding.avro_times import UnfitTime, outside_calendar, with_times
from moldau.pipeline.decoding.rejections import NOT_FRAMED, UNKNOWN_SCHEMA, WRONG_AVRO, Rejection, described
from moldau.pipeline.decoding.topic_decoder import DecodedValues
from moldau.pipeline.type_names import type_name

REFUSED_IDS_MAX = 10_000
UNFIT = (pa.ArrowException, ValueError, TypeError, OverflowError)
"""What Arrow raises for values that a type does not have."""


class WriterSchema(NamedTuple):
    """A schema that records were written with; `reader` is None where the reader's is the same, which is faster. `plan`
    reads many records at once, if their types are flat."""

    schema: ParsedSchema
    reader: ParsedSchema | None
    plan: BulkPlan | None


class AvroValues:
    """Decodes framed Avro into the columns of the reader's schema. With `any_type` the schema need not be a record:
    values of another type are the column `value`, and `alone` is true."""

    def __init__(self, registry: SchemaRegistry, reader: Schema, any_type: bool = False):
        self._registry = registry
        self._schema = reader
        self._any_type = any_type
        self._prepare()

    def __reduce__(self) -> tuple[Any, ...]:
        return AvroValues, (self._registry, self._schema, self._any_type)

    def _prepare(self) -> None:
        parsed = parsed_avro(self._registry, self._schema)
        self.alone = self._any_type and not is_record(parsed)
        self.schema, self._units, self._raw, self._texts = columns_of(parsed, self.alone)
        self._reader = parsed_avro(self._registry, self._schema, without_times)
        self._writers: dict[int, WriterSchema] = {}
        self._refused: dict[int, str] = {}

    def found(self, values: Any) -> DecodedValues:
        columns, there = self._in_bulk(values)
        if columns is None:
            return self._one_by_one(values)
        if len(there) == len(values):
            return DecodedValues(columns, {})
        others = [*({*range(len(values))} - {*there})]
        rest = self._one_by_one(values.take(pa.array(others, pa.int64())))
        decoded = [at for number, at in enumerate(others) if number not in rest.bad]
        order = pc.sort_indices(pa.array([*there, *decoded], pa.int64()))
        both = [pa.concat_arrays(pair).take(order) for pair in zip(columns, rest.columns, strict=True)]
        return DecodedValues(both, {others[number]: why for number, why in rest.bad.items()})

    def _in_bulk(self, values: Any) -> tuple[list[Any] | None, list[int]]:
        """The columns of the rows that have the schema of the first one and are as flat and right as most, and which
        rows these are; None if no row can be read so."""
        if self.alone or self._texts or not len(values) or len(values[0].as_py()) < FRAME_BYTES:
            return None, []
        try:
            schema_id = schema_id_of(values[0].as_py())
            plan = (self._writers.get(schema_id) or self._writer(schema_id)).plan
        except (NotFramed, SchemaNotFound, SchemaInvalid):
            return None, []
        if plan is None:
            return None, []
        _, offsets, data = values.buffers()
        ends = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1].astype(np.int64)
        content = np.frombuffer(data, np.uint8)
        frame = np.frombuffer(framed(schema_id, b""), np.uint8)
        rows = np.flatnonzero(ends[1:] - ends[:-1] >= FRAME_BYTES)
        starts = ends[:-1][rows]
        same = (content[starts[:, None] + np.arange(FRAME_BYTES)] == frame).all(axis=1)
        rows, starts = rows[same], starts[same] + FRAME_BYTES
        cursor = RowCursor(content, starts, ends[1:][rows])
        try:
            columns = read_rows(plan, cursor, self._raw)
        except UNFIT:
            return None, []
        for column, field in zip(columns, self._units, strict=True):
            outside = outside_calendar(column, field.type)
            if outside is not None:
                cursor.odd |= outside.to_numpy(zero_copy_only=False)
        if cursor.odd.any():
            kept = np.flatnonzero(~cursor.odd)
            rows, columns = rows[kept], [column.take(pa.array(kept)) for column in columns]
        return self._columns(pa.StructArray.from_arrays(columns, fields=[*self._raw])), rows.tolist()

    def _one_by_one(self, values: Any) -> DecodedValues:
        bad: dict[int, Rejection] = {}
        made = []
        for at, value in enumerate(values.to_pylist()):
            try:
                schema_id = schema_id_of(value)
                writer = self._writers.get(schema_id) or self._writer(schema_id)
                made.append(self._decoded(writer, value, schema_id))
            except (NotFramed, DoesNotFit, SchemaNotFound, SchemaInvalid) as error:
                bad[at] = Rejection(_rule(error), str(error))
        if self._texts:
            made = [_as(self._raw, one) for one in made]
        try:
            return DecodedValues(self._columns(pa.array(made, self._raw)), bad)
        except UNFIT:
            return self._singly(values, bad)

    def _writer(self, schema_id: int) -> WriterSchema:
        if schema_id in self._refused:
            raise SchemaNotFound(self._refused[schema_id])
        try:
            schema = as_schema(self._registry.schema(schema_id), AVRO)
            parsed = parsed_avro(self._registry, schema, without_times)
        except (SchemaNotFound, SchemaInvalid) as error:
            if len(self._refused) < REFUSED_IDS_MAX:
                self._refused[schema_id] = str(error)
            raise
        plan = plan_of(parsed.tree, self._reader.tree) if is_record(parsed) else None
        writer = WriterSchema(parsed, None if parsed.tree == self._reader.tree else self._reader, plan)
        self._writers[schema_id] = writer
        return writer

    def _decoded(self, writer: WriterSchema, value: bytes, schema_id: int) -> Any:
        made = decoded(writer.schema, writer.reader, value, schema_id)
        return {"value": made} if self.alone else made

    def _singly(self, values: Any, bad: dict[int, Rejection]) -> DecodedValues:
        """As `found`, if Arrow refuses a value that Avro allows."""
        pieces = []
        for at, value in enumerate(values.to_pylist()):
            if at in bad:
                continue
            schema_id = schema_id_of(value)
            writer = self._writers[schema_id]
            one = _as(self._raw, self._decoded(writer, value, schema_id))
            try:
                piece = pa.array([one], self._raw)
                self._columns(piece)
                pieces.append(piece)
            except UNFIT:
                bad[at] = self._unfit(one)
        whole = pa.concat_arrays(pieces) if pieces else pa.array([], self._raw)
        return DecodedValues(self._columns(whole), bad)

    def _unfit(self, value: dict[str, Any]) -> Rejection:
        """Which field Arrow or the calendar refuses."""
        for field, units in zip(self._raw, self._units, strict=True):
            try:
                with_times(pa.array([value.get(field.name)], field.type), units.type)
            except UnfitTime as error:
                return Rejection(WRONG_AVRO, f"field {field.name} {error}", field.name)
            except UNFIT:
                unfit, kind = described(value.get(field.name)), type_name(field.type)
                reason = f"field {field.name} is {unfit}, which no column of type {kind} holds"
                return Rejection(WRONG_AVRO, reason, field.name)
        return Rejection(WRONG_AVRO, "the value fits no columns")

    def _columns(self, whole: Any) -> list[Any]:
        return [with_times(whole.field(at), unit.type) for at, unit in enumerate(self._units)]


def _rule(error: Exception) -> str:
    if isinstance(error, NotFramed):
        return NOT_FRAMED
    return WRONG_AVRO if isinstance(error, DoesNotFit) else UNKNOWN_SCHEMA


def _as(kind: pa.DataType, value: Any) -> Any:
    """The value with JSON where the type is text."""
    if value is None:
        return None
    if pa.types.is_string(kind):
        return value if isinstance(value, str) else json_text(value, _json)
    if pa.types.is_struct(kind):
        return {
            kind.field(at).name: _as(kind.field(at).type, value.get(kind.field(at).name)) for at in range(len(kind))
        }
    if pa.types.is_list(kind):
        return [_as(kind.value_type, one) for one in value]
    if pa.types.is_map(kind):
        return [(name, _as(kind.item_type, one)) for name, one in value.items()]
    return value


def _json(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, decimal.Decimal):
        return str(value)
    return repr(value)
