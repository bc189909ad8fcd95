"""The columns of Avro records, and the schema with which fastavro makes plain numbers of times for them.

Columns of times have microseconds, as tables have; `avro_times.py` makes them of the numbers and their units. Types
without a counterpart in Arrow or Delta: unions of more than null and one type (except of numbers) and recursive types
become text, which holds JSON; `duration` stays bytes; times of day stay numbers.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import pyarrow as pa

from moldau.client.registry.avro_schema import ParsedSchema
from moldau.errors import ConfigError
from moldau.pipeline.decoding.event_times import TIMESTAMP

PRIMITIVES = {
    "boolean": pa.bool_(), "int": pa.int32(), "long": pa.int64(), "float": pa.float32(), "double": pa.float64(),
    "bytes": pa.binary(), "string": pa.string(),
}  # fmt: skip
MILLISECONDS: Final = pa.timestamp("ms", "UTC")
UNITS: Final = {
    "timestamp-millis": MILLISECONDS, "timestamp-micros": TIMESTAMP, "local-timestamp-millis": MILLISECONDS,
    "local-timestamp-micros": TIMESTAMP, "date": pa.date32(),
}  # fmt: skip
"""The logical types whose numbers are times, and what these count."""
KEPT: Final = {name: TIMESTAMP if unit == MILLISECONDS else unit for name, unit in UNITS.items()}
"""As what a table has them."""
NUMBERS = ("int", "long", "float", "double")
DECIMAL_DIGITS_MAX = 38
Times = Mapping[str, pa.DataType]


class AvroColumns(NamedTuple):
    """`columns` are the table's; `raw` the types that fastavro's values are read as, before times are cast, and `units`
    the same with the unit of each time; `texts` whether some value becomes JSON first."""

    columns: pa.Schema
    units: pa.DataType
    raw: pa.DataType
    texts: bool


def is_record(parsed: ParsedSchema) -> bool:
    """Whether the schema has fields."""
    return isinstance(parsed.tree, dict) and parsed.tree.get("type") in ("record", "error")


def columns_of(parsed: ParsedSchema, alone: bool = False) -> AvroColumns:
    """The columns of a record's fields; with `alone` the one column `value`, of the schema's type. Raises `ConfigError`
    for a schema that is not a record."""
    if not alone and not is_record(parsed):
        raise ConfigError("the Avro schema is not a record, so it has no columns: use --decode none")
    types = _Types()
    kept, units, raw = (types.of(parsed.tree, times) for times in (KEPT, UNITS, {}))
    if alone:
        kept, units, raw = (pa.struct([("value", kind)]) for kind in (kept, units, raw))
    return AvroColumns(pa.schema([*kept]), units, raw, types.texts)


class _Types:
    def __init__(self) -> None:
        self._named: dict[str, Any] = {}
        self._open: list[str] = []
        self.texts = False

    def of(self, node: Any, times: Times) -> pa.DataType:
        """The Arrow type of a type of Avro; `times` has the logical types that are not left as numbers."""
        if isinstance(node, str):
            if node in self._named and node not in self._open:
                return self.of(self._named[node], times)
            return PRIMITIVES.get(node) or self._text()
        if isinstance(node, list):
            return self._union(node, times)
        kind, logical = node["type"], node.get("logicalType")
        if "name" in node:
            self._named[node["name"]] = node
        if logical == "decimal" and node.get("precision", 0) <= DECIMAL_DIGITS_MAX:
            return pa.decimal128(node["precision"], node.get("scale", 0))
        if kind in ("record", "error"):
            self._open.append(node["name"])
            fields = [(field["name"], self.of(field["type"], times)) for field in node["fields"]]
            self._open.pop()
            return pa.struct(fields) if fields else self._text()
        if kind == "array":
            return pa.list_(self.of(node["items"], times))
        if kind == "map":
            return pa.map_(pa.string(), self.of(node["values"], times))
        if kind in ("enum", "fixed"):
            return pa.string() if kind == "enum" else pa.binary()
        if logical in times:
            return times[logical]
        return self.of(kind, times)

    def _union(self, branches: list[Any], times: Times) -> pa.DataType:
        others = [one for one in branches if one != "null"]
        if len(others) == 1:
            return self.of(others[0], times)
        if others and all(one in NUMBERS for one in others):
            return pa.int64() if set(others) == {"int", "long"} else pa.float64()
        return self._text()

    def _text(self) -> pa.DataType:
        self.texts = True
        return pa.string()


def without_times(node: Any) -> Any:
    """A schema without the logical types that fastavro would make objects of, one by one; Arrow casts whole
    columns of their numbers. Decimals stay."""
    if isinstance(node, list):
        return [without_times(one) for one in node]
    if not isinstance(node, dict):
        return node
    made = {key: value for key, value in node.items() if not key.startswith("__")}
    if made.get("logicalType") != "decimal" or made.get("precision", 0) > DECIMAL_DIGITS_MAX:
        made.pop("logicalType", None)
    for part in ("items", "values", "type"):
        if part in made:
            made[part] = without_times(made[part])
    if "fields" in made:
        made["fields"] = [{**field, "type": without_times(field["type"])} for field in made["fields"]]
    return made
