"""The Avro schemas of the demo's topics, and rows as Avro behind Confluent's frame.

Pure. Rows are encoded by column: fastavro encodes each distinct value of a column once, and Arrow joins the bytes.
"""

import io
from collections.abc import Sequence
from typing import Any

import pyarrow
import pyarrow.compute as compute

from moldau.client.registry.framing import framed
from moldau.client.registry.schemas import AVRO, Schema, as_schema

NAMESPACE = "nycflights13"
OPTIONAL = "?"
TIME = "time"
TYPES: dict[str, Any] = {
    "int": "int",
    "double": "double",
    "string": "string",
    TIME: {"type": "long", "logicalType": "timestamp-millis"},
}
FIELDS = {
    "flights": "year int, month int, day int, dep_time int?, sched_dep_time int, dep_delay int?, arr_time int?,"
    " sched_arr_time int, arr_delay int?, carrier string, flight int, tailnum string?, origin string, dest string,"
    " air_time int?, distance int, hour int, minute int, time_hour time",
    "weather": "origin string, year int, month int, day int, hour int, temp double?, dewp double?, humid double?,"
    " wind_dir int?, wind_speed double?, wind_gust double?, precip double, pressure double?, visib double,"
    " time_hour time",
    "airlines": "carrier string, name string?",
    "planes": "tailnum string, year int?, type string, manufacturer string, model string, engines int, seats int,"
    " speed int?, engine string",
    "airports": "faa string, name string, lat double, lon double, alt int, tz int, dst string, tzone string?",
}
"""Names and types of the fields of each topic; those with a question mark may be null."""
NULL = b"\0"
"""The first branch of a union."""


def kinds(topic: str) -> dict[str, str]:
    """The type of each field of a topic, as in `FIELDS`."""
    pairs = (one.strip().partition(" ") for one in FIELDS[topic].split(","))
    return {name: kind for name, _, kind in pairs}


def subject(topic: str) -> str:
    """The subject in the registry of a topic's values."""
    return f"{topic}-value"


def schema(topic: str, names: Sequence[str] = ()) -> Schema:
    """The schema of a topic's values; with `names` that of a reader who reads these fields only."""
    fields = [_field(name, kind) for name, kind in kinds(topic).items() if not names or name in names]
    return as_schema(
        {"type": "record", "name": topic.capitalize(), "namespace": NAMESPACE, "fields": fields},
        AVRO,
    )


def avro_rows(table: Any, topic: str, schema_id: int) -> Any:
    """Each row of a table as one framed Avro record, in a binary array. `TIME` is in the table as ms since 1970; only
    optional fields may be null."""
    parts = []
    for field in schema(topic).tree["fields"]:
        column = table[field["name"]].combine_chunks().dictionary_encode()
        distinct = [_encoded(field["type"], value) for value in column.dictionary.to_pylist()]
        parts.append(compute.fill_null(pyarrow.array(distinct, pyarrow.binary()).take(column.indices), NULL))
    return compute.binary_join_element_wise(framed(schema_id, b""), *parts, b"")


def _field(name: str, kind: str) -> dict[str, Any]:
    if kind.endswith(OPTIONAL):
        return {"name": name, "type": ["null", TYPES[kind.removesuffix(OPTIONAL)]], "default": None}
    return {"name": name, "type": TYPES[kind]}


def _encoded(kind: Any, value: Any) -> bytes:
    from fastavro import schemaless_writer

    out = io.BytesIO()
    schemaless_writer(out, kind, value)
    return out.getvalue()
