"""JSON objects as columns: a batch at once where pyarrow takes it (`json_bulk.py`), the values that it does not take
one by one, which says what is wrong with them.

Fields that are not in the schema are left out if the schema was given; if it was inferred, they are kept as JSON in the
column `_more`.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from moldau.client.registry.framing import FRAME_BYTES, MAGIC
from moldau.pipeline.decoding.json_bulk import InBulk, JsonBulk
from moldau.pipeline.decoding.json_coercion import NotCoercible, coercion
from moldau.pipeline.decoding.json_numbers import dumps, loads
from moldau.pipeline.decoding.known_columns import MORE
from moldau.pipeline.decoding.rejections import (
    NOT_AN_OBJECT,
    NOT_FRAMED,
    NOT_JSON,
    NOT_UNICODE,
    TOO_DEEP,
    Rejection,
    described,
    not_utf8,
)
from moldau.pipeline.decoding.topic_decoder import DecodedValues

SINGLY_MAX = 16
"""As few values are not worth a block."""


class JsonValues:
    """Decodes JSON objects into the columns of `schema`; with `keeps_rest` the last one is `_more`. `framed` values
    begin with the id of a schema, as serializers of a registry write them."""

    def __init__(self, schema: pa.Schema, *, keeps_rest: bool = False, framed: bool = False):
        self._fields = schema
        self._framed = framed
        self._keeps_rest = keeps_rest
        self.schema = schema.append(pa.field(MORE, pa.string())) if keeps_rest else schema
        self._bulk = JsonBulk(schema, only=keeps_rest)

    def found(self, values: Any) -> DecodedValues:
        bad: dict[int, Rejection] = {}
        if self._framed:
            contents = []
            for at, value in enumerate(values.to_pylist()):
                contents.append(value[FRAME_BYTES:])
                if len(value) < FRAME_BYTES or value[0] != MAGIC:
                    bad[at] = Rejection(NOT_FRAMED, "the value does not begin with the byte 0 and a schema id")
            values = pa.array(contents, pa.binary())
        done = self._bulk.decoded(values, bad) if self._bulk.possible and len(values) > SINGLY_MAX else None
        if done is not None and len(done.rows) == len(values):
            return DecodedValues([*done.columns, *self._no_rest(len(values))], bad)
        rows, taken = _Rows(self._fields, self._keeps_rest), []
        in_bulk = set() if done is None else set(done.rows.to_pylist())
        for at, value in enumerate(values.to_pylist()):
            if at not in in_bulk and at not in bad:
                rejection = rows.add(value)
                if rejection is None:
                    taken.append(at)
                else:
                    bad[at] = rejection
        return DecodedValues(self._merged(done, taken, rows.columns()), bad)

    def _no_rest(self, count: int) -> list[Any]:
        return [pa.nulls(count, pa.string())] if self._keeps_rest else []

    def _merged(self, done: InBulk | None, taken: list[int], singly: list[Any]) -> list[Any]:
        """The columns of values in bulk and of the others, in the order of the values."""
        if done is None or not len(done.rows):
            return singly
        places = pa.concat_arrays([done.rows, pa.array(taken, pa.int64())])
        order = pc.sort_indices(places)
        bulk = [*done.columns, *self._no_rest(len(done.rows))]
        return [pa.concat_arrays([one, other]).take(order) for one, other in zip(bulk, singly, strict=True)]


class _Rows:
    """Records that were decoded one by one, until they become columns."""

    def __init__(self, fields: pa.Schema, keeps_rest: bool):
        self._kind = pa.struct([*fields])
        self._coerce = coercion(self._kind)
        self._keeps_rest = keeps_rest
        self._made: list[Any] = []
        self._rest: list[str | None] = []

    def add(self, value: bytes) -> Rejection | None:
        """Take a value; returns why it cannot be decoded."""
        try:
            tree = loads(value.decode())
        except UnicodeDecodeError as error:
            return not_utf8(error)
        except RecursionError:
            return Rejection(TOO_DEEP, "the value nests too deeply")
        except ValueError as error:
            return Rejection(NOT_JSON, f"the value is not JSON: {error}")
        if not isinstance(tree, dict):
            return Rejection(NOT_AN_OBJECT, f"the value is {described(tree)}, not a JSON object")
        rest: dict[str, Any] | None = {} if self._keeps_rest else None
        try:
            made = self._coerce(tree, "", rest)
            more = dumps(rest) if rest else None
            if more is not None:
                more.encode()
        except NotCoercible as error:
            return error.rejection
        except RecursionError:
            return Rejection(TOO_DEEP, "the value nests too deeply")
        except UnicodeEncodeError:
            return Rejection(NOT_UNICODE, "the value has text that is not Unicode")
        self._made.append(made)
        self._rest.append(more)
        return None

    def columns(self) -> list[Any]:
        whole = pa.array(self._made, self._kind)
        columns = [whole.field(at) for at in range(self._kind.num_fields)]
        if self._keeps_rest:
            columns.append(pa.array(self._rest, pa.string()))
        return columns
