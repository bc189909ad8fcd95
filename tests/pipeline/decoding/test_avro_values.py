"""Avro as columns: each type, schemas that changed, and any bytes."""

import datetime
import decimal
import pickle
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.small_registry import SmallRegistry
from moldau.client.registry.avro import AvroSerializer
from moldau.client.registry.framing import framed
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.errors import ConfigError, RegistryUnavailable
from moldau.pipeline.decoding.choosing import Decoding, decoder_of
from moldau.pipeline.decoding.event_times import TIMESTAMP
from tests.client.registry.test_avro import ALL, RECORDS
from tests.pipeline.decoding.fetching import decoded

NOON = datetime.datetime(2024, 2, 29, 12, 0, 0, 1000, tzinfo=datetime.UTC)
EVERY = {
    "type": "record", "name": "Every", "fields": [
        {"name": "u", "type": ["null", "int", "string"]}, {"name": "wide", "type": ["int", "long"]},
        {"name": "dec", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "m", "type": {"type": "map", "values": {"type": "long", "logicalType": "timestamp-micros"}}},
        {"name": "n", "type": ["null", {"type": "record", "name": "In", "fields": [
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "next", "type": ["null", "In"]}]}]},
        {"name": "l", "type": {"type": "array", "items": {"type": "int", "logicalType": "date"}}},
        {"name": "id", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "e", "type": {"type": "enum", "name": "En", "symbols": ["A", "B"]}},
        {"name": "f", "type": {"type": "fixed", "name": "Fi", "size": 2}},
        {"name": "t", "type": {"type": "int", "logicalType": "time-millis"}},
        {"name": "ms", "type": {"type": "long", "logicalType": "timestamp-millis"}}, {"name": "fl", "type": "float"}],
}  # fmt: skip
VALUE: dict[str, Any] = {
    "u": 5, "wide": 1 << 40, "dec": decimal.Decimal("1.25"), "m": {"k": NOON}, "id": "0" * 36, "e": "B", "f": b"xy",
    "n": {"day": NOON.date(), "next": {"day": NOON.date(), "next": None}}, "l": [NOON.date()], "t": datetime.time(1),
    "ms": NOON, "fl": 0.5,
}  # fmt: skip


@pytest.fixture
def small() -> Iterator[SmallRegistry]:
    with SmallRegistry() as small:
        yield small


def decoder(registry: SchemaRegistry, topic: str, schema: str = "", event_time: str = "") -> Any:
    made = decoder_of(topic, Decoding("avro", schema, registry, event_time), list)
    return pickle.loads(pickle.dumps(made))


def test_every_type_has_its_column(small: SmallRegistry) -> None:
    registry = SchemaRegistry(small.url)
    serialize = AvroSerializer(registry, EVERY).for_topic("t", "value")
    made = decoder(registry, "t", event_time="ms")
    kinds = {
        "u": pa.string(), "wide": pa.int64(), "dec": pa.decimal128(10, 2), "m": pa.map_(pa.string(), TIMESTAMP),
        "n": pa.struct([("day", pa.date32()), ("next", pa.string())]), "l": pa.list_(pa.date32()), "id": pa.string(),
        "e": pa.string(), "f": pa.binary(), "t": pa.int32(), "ms": TIMESTAMP, "fl": pa.float32(),
    }  # fmt: skip
    assert made.schema == pa.schema(list(kinds.items())) and made.event_time == "ms"
    rows, reasons = decoded(made, [serialize(VALUE), serialize({**VALUE, "u": "x", "n": None, "m": {}, "l": []}), None])
    row = {**VALUE, "u": "5", "m": [("k", NOON)], "t": 3_600_000}
    row["n"] = {"day": NOON.date(), "next": '{"day": 19782, "next": null}'}
    assert rows[0] == row and rows[1] == {**row, "u": "x", "n": None, "m": [], "l": []} and not reasons
    assert rows[2]["u"] is None


def test_earlier_schemas_are_resolved_to_the_latest_or_the_given_one(small: SmallRegistry) -> None:
    registry = SchemaRegistry(small.url)
    old = AvroSerializer(registry, '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}')
    new = AvroSerializer(
        registry,
        '{"type":"record","name":"R","fields":[{"name":"a","type":"long"},{"name":"b","type":"string","default":"-"}]}',
    )
    values = [old({"a": 1}, "t"), new({"a": 1 << 40, "b": "x"}, "t")]
    assert decoded(decoder(registry, "t"), values)[0] == [{"a": 1, "b": "-"}, {"a": 1 << 40, "b": "x"}]
    only = '{"type":"record","name":"R","fields":[{"name":"b","type":"string","default":"?"}]}'
    assert decoded(decoder(registry, "t", only), values)[0] == [{"b": "?"}, {"b": "x"}]
    binary = '{"type":"record","name":"R","fields":[{"name":"c","type":"bytes","default":"\\u00ff"},%s]}'
    day = '{"name":"d","type":{"type":"int","logicalType":"date"},"default":19782}'
    assert decoded(decoder(registry, "t", binary % day), values)[0] == [{"c": b"\xff", "d": NOON.date()}] * 2
    other = '{"type":"record","name":"R","fields":[{"name":"c","type":"string"}]}'
    rows, reasons = decoded(decoder(registry, "t", other), values)
    assert not rows and "do not fit schema id 1" in reasons[0]


def test_an_unknown_id_rejects_its_records_and_is_asked_for_once(small: SmallRegistry) -> None:
    registry = SchemaRegistry(small.url)
    AvroSerializer(registry, ALL).for_topic("t", "value")
    made = decoder(registry, "t")
    before = len(small.requests)
    rows, reasons = decoded(made, [framed(77, b"x")] * 30 + [b"", b'{"a": 1}'])
    assert (
        not rows and len(small.requests) == before + 1 and "schema id 77 is not in the schema registry" in reasons[29]
    )
    assert "no schema id" in reasons[30] and "first byte is 123" in reasons[31]


def test_a_registry_that_is_down_fails_the_load_and_rejects_nothing(small: SmallRegistry) -> None:
    registry = SchemaRegistry(small.url)
    AvroSerializer(registry, ALL).for_topic("t", "value")
    made = decoder(registry, "t")
    small.answers = [(503, b"")]
    with pytest.raises(RegistryUnavailable):
        decoded(made, [framed(1, b"x")])


def test_a_schema_that_is_no_record_has_no_columns(small: SmallRegistry) -> None:
    with pytest.raises(ConfigError, match="is not a record"):
        decoder(SchemaRegistry(small.url), "t", '"string"')


def test_records_come_back_and_any_bytes_are_in_one_of_the_batches(small: SmallRegistry) -> None:
    registry = SchemaRegistry(small.url)
    serialize = AvroSerializer(registry, ALL).for_topic("t", "value")
    made = decoder(registry, "t")

    @given(st.lists(RECORDS, max_size=5))
    def come_back(records: list[dict[str, Any]]) -> None:
        rows, reasons = decoded(made, [serialize(record) for record in records])
        plain = [{**row, "m": dict(row["m"]), "a": record["a"]} for row, record in zip(rows, records, strict=True)]
        assert plain == records and not reasons

    @given(st.lists(st.binary(max_size=60) | st.binary(max_size=200).map(lambda data: framed(1, data)), max_size=20))
    def are_somewhere(values: list[bytes]) -> None:
        decoded(made, values)

    come_back()
    are_somewhere()
