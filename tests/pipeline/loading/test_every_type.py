"""Tables of both formats take columns of every type and of any name that a decoder makes, load after load."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from harness.small_registry import SmallRegistry
from moldau.client.registry.avro import AvroSerializer
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.pipeline.decoding.choosing import Decoding
from moldau.pipeline.tables.columns import TableError, check_structs
from tests.pipeline.decoding import test_avro_values, test_protobuf_values
from tests.pipeline.loading.tables_by_hand import TOPIC, ByHand

DDL = (
    "b boolean, i int, l long, f float, d double, s string, y binary, at timestamp, day date, n decimal(38,18), "
    "z struct<at: timestamp, l: array<timestamp>, m: map<string, date>>, t tinyint, w smallint"
)


def avro(registry: SchemaRegistry) -> list[bytes | None]:
    serialize = AvroSerializer(registry, test_avro_values.EVERY).for_topic(TOPIC, "value")
    return [serialize(test_avro_values.VALUE), serialize({**test_avro_values.VALUE, "n": None, "m": {}})]


def protobuf(registry: SchemaRegistry) -> list[bytes | None]:
    serialize = test_protobuf_values.every(registry)
    inner = {"a": "x", "next": {"a": "y"}, "at": test_protobuf_values.NOON}
    return [
        serialize(
            {
                "at": test_protobuf_values.NOON,
                "in": inner,
                "ins": [inner],
                "m": {"k": inner},
                "times": [test_protobuf_values.NOON],
            }
        ),
        serialize({}),
    ]


def json(registry: SchemaRegistry) -> list[bytes | None]:
    return [
        b'{"b": true, "y": "/w==", "at": "2024-02-29T12:00:00.001Z", "day": "2024-02-29", "n": 1.5, "t": 1, "w": 2}',
        b'{"z": {"at": 0, "l": [0, null], "m": {"k": "2024-02-29"}}}',
    ]


MADE: dict[str, tuple[Any, str]] = {"avro": (avro, ""), "protobuf": (protobuf, ""), "json": (json, DDL)}


@pytest.mark.parametrize("of", ["delta", "iceberg"])
@pytest.mark.parametrize("kind", MADE)
def test_two_loads_have_every_record_of_every_type(tmp_path: Path, kind: str, of: str) -> None:
    hand, (made, schema) = ByHand(tmp_path, of), MADE[kind]
    with SmallRegistry() as small:
        registry = SchemaRegistry(small.url)
        values = [*made(registry), None]
        for _ in range(2):
            hand.produce(0, *values)
            hand.load(Decoding(kind, schema, None if kind == "json" else registry))
    rows = hand.loaded_rows()
    assert len(rows) == 2 * len(values)
    place = ("_offset", "_timestamp", "_headers", "_key", "_date", "_partition")
    first, second = ([{k: v for k, v in row.items() if k not in place} for row in rows[at : at + 3]] for at in (0, 3))
    assert first == second and any(value is not None for value in first[0].values())
    times = [row[name] for row in first for name in ("ms", "at") if row.get(name) is not None]
    assert times[0].replace(microsecond=0) == test_avro_values.NOON.replace(microsecond=0)


NAMES = (
    (b'{"s": {"x": 1, "X": 2}, "a.b": 3, "a": {"b": 4}, "a\\u0000": 5}', (1, None, {"b": 4}, 5)),
    (b'{"s": {"x": 6, "Y": 7, "y": 8, "\\u0000": 9}, "a": {"b": 4, "c.d": 1}, "a\\u0000": 10}', (6, 7, {"b": 4}, 10)),
    (b'{"s": {"y": 8, "z": 9}, "a": {"b": 4, "c": {"d": 1}}}', (None, None, {"b": 4}, None)),
)
"""Values, and x and Y of s, a, and the field with a null character."""
MORE = (
    '{"s":{"X":2},"a.b":3}',
    '{"s":{"y":8,"\\u0000":9}}',
    '{"s":{"y":8},"a":{"c":{"d":1}}}',
)


@pytest.mark.parametrize("of", ["delta", "iceberg"])
def test_names_that_tables_cannot_tell_apart_stop_no_load_and_lose_no_value(tmp_path: Path, of: str) -> None:
    hand = ByHand(tmp_path, of)
    for value, _ in NAMES:
        hand.produce(0, value)
        hand.load(Decoding("json"))
    rows = hand.loaded_rows()
    assert [row["_more"] for row in rows] == [*MORE]
    for row, (_, (x, y, a, null)) in zip(rows, NAMES, strict=True):
        assert (row["s"]["x"], row["s"]["Y"], row["a"]["b"], row["a_"]) == (x, y, a["b"], null)


def test_a_schema_with_names_that_delta_cannot_tell_apart_is_one_sentence(tmp_path: Path) -> None:
    hand = ByHand(tmp_path, "delta")
    hand.produce(0, b'{"l": [{"x": 1, "X": 2}]}')
    with pytest.raises(TableError, match=r"^The field 'X' of l and 'x' differ in case only, .* give --schema without"):
        hand.load(Decoding("json", "l array<struct<x: int, X: int>>"))
    null = pa.schema([("m", pa.map_(pa.string(), pa.struct([("s", pa.struct([("a\0", pa.int8())]))])))])
    with pytest.raises(TableError, match=r"^The field 'a\\x00' of m\.s has a null character"):
        check_structs(null)
