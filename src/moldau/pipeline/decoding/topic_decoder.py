"""`TopicDecoder`: the values of a topic's records as columns, the records that have none apart, and the event time.

It is pure, and pickled to the workers. A record without a value (a tombstone) is decoded: its columns are null, and its
event time is the record's. Nothing is lost: each record is in one of the two batches.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from moldau.errors import ConfigError
from moldau.pipeline.decoding.event_times import TIMESTAMP, as_times
from moldau.pipeline.decoding.fitting import fit, fitted
from moldau.pipeline.decoding.known_columns import columns_of_fields, table_names
from moldau.pipeline.decoding.rejections import (
    NO_EVENT_TIME,
    WRONG_NUMBER,
    Rejection,
    described,
    with_why,
)
from moldau.pipeline.type_names import type_name

VALUE = "value"
RECORD_TIME = "_timestamp"
EVENT_TIME = "_event_time"
"""The column of an event time that is a field inside of structs."""
DELETES = "deletes its key"
"""A column that batches have on the way to a table with one row per key: whether the record deletes it. No table has a
column of this name."""


class DecodedValues(NamedTuple):
    """What a decoder of values has found: the columns of the values it could decode, in their order, and for each of
    the others its index and why not. Values at the indices `deletions` say that their row was deleted; they may lack
    the event time, as tombstones do."""

    columns: list[Any]
    bad: dict[int, Rejection]
    deletions: frozenset[int] = frozenset()


class Values(Protocol):
    """Decodes values, none of which is null, into columns of `schema`."""

    schema: pa.Schema

    def found(self, values: Any) -> DecodedValues: ...


class TopicDecoder:
    """Decodes the records of one topic; `event_time_field` is a column of the values, the path of a field inside of
    structs (`a.b`), or empty for the record's time; `known` are the columns of its table, `notes` sentences about how
    the columns were chosen, `names` those of the decoded columns if they are not to be made here. Raises `ConfigError`
    if no such field exists or it can hold no time."""

    keys: pa.Schema | None = None

    def __init__(
        self,
        values: Values,
        event_time_field: str = "",
        known: pa.Schema | None = None,
        notes: tuple[str, ...] = (),
        names: Sequence[str] | None = None,
    ):
        self._values = values
        self.notes = notes
        if names is None:
            fields_there = {} if known is None else columns_of_fields(values.schema.names, known)
            names = table_names(values.schema.names, fields_there)
        fields = [field.with_name(name).with_nullable(True) for field, name in zip(values.schema, names, strict=True)]
        self.event_time = RECORD_TIME
        self._field = event_time_field
        self._path = _path(values.schema, event_time_field) if event_time_field else []
        self._time_at = len(fields) if len(self._path) > 1 else -1
        if len(self._path) == 1:
            self._time_at = values.schema.names.index(event_time_field)
            fields[self._time_at] = pa.field(names[self._time_at], TIMESTAMP)
        for at, field in enumerate(fields):
            if known is not None and at != self._time_at and field.name in known.names:
                fields[at] = field.with_type(fitted(field.type, known.field(field.name).type))
        if len(self._path) > 1:
            fields.append(pa.field(EVENT_TIME, TIMESTAMP))
        if self._path:
            self.event_time = fields[self._time_at].name
        self.schema = pa.schema(fields)

    def decode(self, batch: Any) -> tuple[Any, Any]:
        """The decoded records, in their order, and the rejected ones with the columns `WHY`."""
        values = batch.column(VALUE)
        present = None
        if values.null_count:
            present = [at for at, valid in enumerate(values.is_valid().to_pylist()) if valid]
            values = values.drop_null()
        decoded = self._values.found(values)
        bad = decoded.bad if present is None else {present[at]: reason for at, reason in decoded.bad.items()}
        deletions = decoded.deletions if present is None else frozenset(present[at] for at in decoded.deletions)
        columns = list(decoded.columns)
        if present is not None or bad:
            order: list[int | None] = []
            there, at = set(range(len(batch)) if present is None else present), 0
            for row in range(len(batch)):
                if row in there and row not in bad:
                    order.append(at)
                    at += 1
                else:
                    order.append(None)
            columns = [column.take(pa.array(order, pa.int64())) for column in columns]
        if len(self._path) > 1:
            columns.append(
                self._times(
                    pc.struct_field(columns[self._values.schema.names.index(self._path[0])], self._path[1:]),
                    batch,
                    bad,
                    deletions,
                )
            )
        elif self._path:
            columns[self._time_at] = self._times(columns[self._time_at], batch, bad, deletions)
        for at, field in enumerate(self.schema):
            columns[at], unfit = fit(columns[at], field.type)
            for row in [] if unfit is None else pc.indices_nonzero(unfit).to_pylist():
                reason = (
                    f"field {field.name} has a number that its column ({type_name(field.type)}) cannot hold exactly"
                )
                bad.setdefault(row, Rejection(WRONG_NUMBER, reason, field.name))
        if deletions and DELETES in batch.schema.names:
            also = pc.or_(batch[DELETES], pa.array([at in deletions for at in range(len(batch))]))
            batch = batch.set_column(batch.schema.get_field_index(DELETES), DELETES, also)
        return self._split(batch, columns, bad)

    def _times(self, column: Any, batch: Any, bad: dict[int, Rejection], deletions: frozenset[int]) -> Any:
        times = as_times(column)
        if not times.null_count:
            return times
        values, record_times = batch.column(VALUE), batch.column(RECORD_TIME)
        missing = [at for at, valid in enumerate(times.is_valid().to_pylist()) if not valid]
        made = times.to_pylist()
        for at in missing:
            if not values[at].is_valid or at in deletions:
                made[at] = record_times[at].as_py()
            elif at not in bad:
                value = column[at].as_py()
                is_what = "missing" if value is None else f"{described(value)}, which is not a time"
                bad[at] = Rejection(NO_EVENT_TIME, f"the event time {self._field} is {is_what}", self._field)
        return pa.array(made, TIMESTAMP)

    def _split(self, batch: Any, columns: list[Any], bad: dict[int, Rejection]) -> tuple[Any, Any]:
        record = [name for name in batch.schema.names if name != VALUE]
        schema = pa.schema([*self.schema, *(batch.schema.field(name) for name in record)])
        whole = pa.RecordBatch.from_arrays([*columns, *(batch.column(name) for name in record)], schema=schema)
        if not bad:
            return whole, with_why(batch.slice(0, 0), [])
        rows = sorted(bad)
        kept = pa.array([at for at in range(len(batch)) if at not in bad], pa.int64())
        return whole.take(kept), with_why(batch.take(pa.array(rows, pa.int64())), [bad[at] for at in rows])


def _path(schema: pa.Schema, text: str) -> list[str]:
    """The names from a column to the field with the event time. Raises `ConfigError`."""
    path = [text] if text in schema.names else text.split(".")
    there: pa.DataType = pa.struct(list(schema))
    for at, name in enumerate(path):
        if not pa.types.is_struct(there) or there.get_field_index(name) < 0:
            fields = there.names if pa.types.is_struct(there) else []
            raise ConfigError(
                f"--event-time {text}: the values have no such field; {'.'.join(path[:at]) or 'they'}"
                f" {'has' if at else 'have'} {', '.join(fields[:20]) or 'none'}"
            )
        there = there.field(name).type
    try:
        as_times(pa.array([], there))
    except TypeError as error:
        raise ConfigError(f"--event-time {text}: the field {error}") from None
    return path
