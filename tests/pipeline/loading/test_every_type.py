"""Tables of both formats take a column of every type that a decoder makes, load after load."""

from pathlib import Path
from typing import Any

import pytest

from harness.small_registry import SmallRegistry
from moldau.client.registry.avro import AvroSerializer
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.pipeline.decoding.choosing import Decoding
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
