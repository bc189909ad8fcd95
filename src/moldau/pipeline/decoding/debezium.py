"""Debezium's envelope: `{"before", "after", "op", "ts_ms", "source"}`, alone or as the `payload` beside its `schema`.

Its row becomes the columns: `after`, or of a deletion (`op` is `d`) `before`. `__op` and `__ts_ms` stand beside them,
as Debezium's own unwrapping names them (ExtractNewRecordState with `add.fields`). What else is in an envelope is left
out. Operations: `c` create, `r` read by a snapshot, `u` update, `d` delete; an envelope of another one (`t` truncate)
has no row and is rejected.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from moldau.errors import ConfigError
from moldau.pipeline.decoding.json_fields import Sampled
from moldau.pipeline.decoding.json_inference import inferred
from moldau.pipeline.decoding.json_numbers import dumps, loads
from moldau.pipeline.decoding.json_values import JsonValues
from moldau.pipeline.decoding.known_columns import MORE
from moldau.pipeline.decoding.rejections import NOT_AN_ENVELOPE, Rejection
from moldau.pipeline.decoding.topic_decoder import DecodedValues, Values

OP: Final = "__op"
META: Final = pa.schema([(OP, pa.string()), ("__ts_ms", pa.int64())])
"""The columns beside those of a row, and the fields of the envelope from which they come."""
FIELDS: Final = {"__op": "op", "__ts_ms": "ts_ms"}
DELETE: Final = "d"
OPERATIONS: Final = ("c", "r", "u", DELETE)
PAYLOAD: Final = "payload"


def json_envelopes(row: pa.Schema, framed: bool, sample: Iterable[Sampled] | None = None) -> "EnvelopeValues":
    """Decodes envelopes in JSON whose rows have these columns. Those were inferred if there is a `sample`; fields that
    are not among them are then kept in `_more`."""
    kind = pa.struct(list(row))
    inner = {"before": kind, "after": kind, "op": pa.string(), "ts_ms": pa.int64()}
    fields = {**inner, PAYLOAD: pa.struct(list(inner.items()))}
    if sample is not None:  # or each value would have unknown fields, such as `source`, which is slow
        fields = {field.name: field.type for field in inferred(sample).columns} | fields
    return EnvelopeValues(JsonValues(pa.schema(list(fields.items())), keeps_rest=sample is not None, framed=framed))


def rows_in(sample: Iterable[Sampled]) -> Iterator[Sampled]:
    """The rows in a sample of envelopes, as JSON."""
    for one, tree in _objects(sample):
        inside = tree.get(PAYLOAD)
        tree = inside if isinstance(inside, dict) and "op" in inside else tree
        if "op" in tree:
            rows = (row for name in ("before", "after") if isinstance(row := tree.get(name), dict))
            yield from (one._replace(value=dumps(row).encode()) for row in rows)


def _objects(sample: Iterable[Sampled]) -> Iterator[tuple[Sampled, dict[str, Any]]]:
    for one in sample:
        try:
            tree = loads(one.value.decode())
            if isinstance(tree, dict):
                dumps(tree).encode()  # halves of surrogates are no Unicode
                yield one, tree
        except (ValueError, RecursionError):
            continue


def row_of(envelope: pa.Schema) -> pa.Schema:
    """The columns of the row in an envelope that a schema describes. Raises `ConfigError`."""
    names = envelope.names
    if PAYLOAD in names and pa.types.is_struct(envelope.field(PAYLOAD).type) and "after" not in names:
        return row_of(pa.schema(list(envelope.field(PAYLOAD).type)))
    if "op" not in names or "after" not in names or not pa.types.is_struct(envelope.field("after").type):
        raise ConfigError(
            "--envelope debezium: the schema has no fields op and after, so it is not Debezium's envelope"
        )
    return pa.schema(list(envelope.field("after").type))


class EnvelopeValues:
    """Decodes envelopes, which `envelopes` decodes into columns, into the columns of their rows."""

    def __init__(self, envelopes: Values):
        self._envelopes = envelopes
        self._names = envelopes.schema.names
        self._row = row_of(envelopes.schema)
        if taken := [name for name in self._row.names if name in META.names]:
            raise ConfigError(f"--envelope debezium: rows have a field {taken[0]}, as the envelope's own column")
        more = [field for field in envelopes.schema if field.name == MORE]
        self.schema = pa.schema([*self._row, *META, *more])

    def found(self, values: Any) -> DecodedValues:
        done = self._envelopes.found(values)
        columns = dict(zip(self._names, done.columns, strict=True))
        places = [at for at in range(len(values)) if at not in done.bad]
        op, before, after = (self._part(columns, name) for name in ("op", "before", "after"))
        deletes = pc.fill_null(pc.equal(op, DELETE), False)
        row = after if before is None else pc.if_else(deletes, before, after)
        good = pc.and_(pc.is_in(op, pa.array(OPERATIONS)), pc.or_(deletes, row.is_valid()))
        bad = dict(done.bad)
        for at in pc.indices_nonzero(pc.invert(good)).to_pylist():
            bad[places[at]] = Rejection(NOT_AN_ENVELOPE, _why(op[at].as_py()))
        made = [pc.struct_field(row, [at]) for at in range(len(self._row))]
        made += [self._part(columns, FIELDS[field.name]).cast(field.type) for field in META]
        if MORE in columns:
            made.append(_rest(columns[MORE], _of_row))
        deletions = frozenset(places[at] for at in pc.indices_nonzero(deletes).to_pylist())
        return DecodedValues([column.filter(good) for column in made], bad, deletions)

    def _part(self, columns: dict[str, Any], name: str) -> Any:
        """A field of the envelopes, or of their payload; None if their schema does not have it."""
        alone, payload = columns.get(name), columns.get(PAYLOAD)
        if payload is None or payload.type.get_field_index(name) < 0:
            return alone
        inside = pc.struct_field(payload, name)
        return inside if alone is None else pc.if_else(payload.is_valid(), inside, alone)


def _why(op: str | None) -> str:
    if op is None:
        return "the value is not Debezium's envelope: it has no op"
    if op not in OPERATIONS:
        return f"the envelope's op is {op[:20]!r}, none of {', '.join(OPERATIONS)}, so it has no row"
    return f"the envelope's op is {op!r}, but it has no row"


def _of_row(tree: dict[str, Any]) -> Any:
    tree = tree.get(PAYLOAD) or tree
    return tree.get("after") or tree.get("before")


def _rest(column: Any, part: Callable[[dict[str, Any]], Any]) -> Any:
    """A part of the unknown fields, as JSON."""
    if column.null_count == len(column):
        return column
    parts = [part(loads(text)) if text else None for text in column.to_pylist()]
    return pa.array([dumps(one) if one else None for one in parts], pa.string())


class PayloadKeys:
    """Decodes keys in JSON whose columns are `row`, alone or as the `payload` beside their `schema`. The columns were
    inferred if there is a `sample`; fields that are not among them are then kept in `_more`."""

    def __init__(self, row: pa.Schema, framed: bool, sample: Iterable[Sampled] | None = None):
        fields = {field.name: field.type for field in (inferred(sample).columns if sample is not None else ())}
        fields |= {field.name: field.type for field in row} | {PAYLOAD: pa.struct(list(row))}
        self._row = row
        self._keys = JsonValues(pa.schema(list(fields.items())), keeps_rest=sample is not None, framed=framed)
        self.schema = row if sample is None else row.append(pa.field(MORE, pa.string()))

    def found(self, values: Any) -> DecodedValues:
        done = self._keys.found(values)
        columns = dict(zip(self._keys.schema.names, done.columns, strict=True))
        payload = columns[PAYLOAD]
        inside = payload.is_valid()
        made = [
            pc.if_else(inside, pc.struct_field(payload, [at]), columns[field.name])
            for at, field in enumerate(self._row)
        ]
        if MORE in columns:
            made.append(_rest(columns[MORE], lambda tree: tree.get(PAYLOAD) or tree))
        return DecodedValues(made, done.bad)


def keys_in(sample: Iterable[Sampled]) -> Iterator[Sampled]:
    """The keys in a sample, without their schemas, as JSON."""
    for one, tree in _objects(sample):
        inside = tree.get(PAYLOAD)
        key = inside if isinstance(inside, dict) and "schema" in tree else tree
        yield one._replace(value=dumps(key).encode())
