"""Avro in bulk: the same columns and the same rejections as record by record, whatever the bytes."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.small_registry import SmallRegistry
from moldau.client.registry.avro import AvroSerializer
from moldau.client.registry.framing import framed
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.client.registry.schemas import Schema
from moldau.pipeline.decoding.avro_bulk import plan_of
from moldau.pipeline.decoding.avro_values import AvroValues

FLAT = {
    "type": "record", "name": "Flat", "fields": [
        {"name": "b", "type": "boolean"}, {"name": "i", "type": "int"}, {"name": "l", "type": ["null", "long"]},
        {"name": "f", "type": "float"}, {"name": "d", "type": ["double", "null"]}, {"name": "s", "type": "string"},
        {"name": "y", "type": ["null", "bytes"]}, {"name": "x", "type": {"type": "fixed", "name": "X", "size": 2}},
        {"name": "e", "type": ["null", {"type": "enum", "name": "E", "symbols": ["A", "B"]}]},
        {"name": "n", "type": ["null", {"type": "record", "name": "N", "fields": [
            {"name": "e", "type": "E"}, {"name": "t", "type": ["null", "string"]}]}]},
        {"name": "m", "type": ["null", "N"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}}],
}  # fmt: skip
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=90)
LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
NESTED = st.fixed_dictionaries({"e": st.sampled_from(["A", "B"]), "t": st.none() | TEXT})
RECORDS = st.fixed_dictionaries({
    "b": st.booleans(), "i": st.integers(-(1 << 31), (1 << 31) - 1), "l": st.none() | LONGS,
    "f": st.floats(width=32, allow_nan=False), "d": st.none() | st.floats(allow_nan=False), "s": TEXT,
    "y": st.none() | st.binary(max_size=90), "x": st.binary(min_size=2, max_size=2),
    "e": st.sampled_from([None, "A", "B"]), "n": st.none() | NESTED, "m": st.none() | NESTED,
    "at": st.integers(0, 1 << 40),
})  # fmt: skip


def values_of(registry: SchemaRegistry, tree: Any) -> AvroValues:
    return AvroValues(registry, Schema(json.dumps(tree)))


def test_records_and_damaged_records_are_as_one_by_one() -> None:
    with SmallRegistry() as small:
        registry = SchemaRegistry(small.url)
        serialize = AvroSerializer(registry, FLAT).for_topic("t", "value")
        AvroSerializer(registry, "string").for_topic("u", "value")
        decoder = values_of(registry, FLAT)
        damage = st.tuples(st.integers(0, 200), st.binary(max_size=9), st.sampled_from(["cut", "put", "over"]))

        @given(st.lists(st.tuples(RECORDS, st.none() | damage) | st.binary(max_size=30), max_size=12))
        def are_the_same(given_rows: list[Any]) -> None:
            rows = []
            for one in given_rows:
                data = framed(1, one) if isinstance(one, bytes) else serialize(one[0])
                assert data is not None
                if isinstance(one, tuple) and one[1] is not None:
                    at, content, how = one[1]
                    rest = b"" if how == "cut" else data[at + (len(content) if how == "over" else 0) :]
                    data = data[:at] + content + rest
                rows.append(data)
            array = pa.array([b"left out", *rows], pa.binary()).slice(1)
            bulk, singly = decoder.found(array), decoder._one_by_one(array)
            assert bulk.bad == singly.bad
            for one, other in zip(bulk.columns, singly.columns, strict=True):
                one.validate(full=True)
                assert one.type == other.type
                assert repr(one.to_pylist()) == repr(other.to_pylist())  # equal but for NaN, which damage may make

        are_the_same()


def test_a_batch_is_read_in_bulk_except_its_odd_rows() -> None:
    with SmallRegistry() as small:
        registry = SchemaRegistry(small.url)
        serialize = AvroSerializer(registry, {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})
        decoder = values_of(
            registry, json.loads(registry.version("t-value").schema.text) if serialize({"a": 1}, "t") else 0
        )
        rows = [serialize({"a": at}, "t") for at in range(5)]
        array = pa.array([*rows[:2], framed(1, b"\x80"), b"\1", framed(9, b"\0"), *rows[2:]], pa.binary())
        columns, there = decoder._in_bulk(array)
        assert there == [0, 1, 5, 6, 7] and columns is not None and columns[0].to_pylist() == [0, 1, 2, 3, 4]
        found = decoder.found(array)
        assert found.columns[0].to_pylist() == [0, 1, 2, 3, 4] and [*found.bad] == [2, 3, 4]


def record(*fields: Any) -> dict[str, Any]:
    made = [{"name": one[0], "type": one[1], **({"default": one[2]} if len(one) > 2 else {})} for one in fields]
    return {"type": "record", "name": "R", "fields": made}


@pytest.mark.parametrize(
    ("reader", "rows"),
    [(record(("b", "string")), [{"b": "x"}]), (record(("b", "string"), ("a", "long")), [{"b": "x", "a": 7}]),
     (record(("c", ["null", "string"], None), ("a", "int")), [{"c": None, "a": 7}])],
)  # fmt: skip
def test_a_readers_schema_may_leave_fields_out_and_have_null_ones(reader: Any, rows: Any) -> None:
    with SmallRegistry() as small:
        registry = SchemaRegistry(small.url)
        data = AvroSerializer(registry, record(("a", "int"), ("b", "string")))({"a": 7, "b": "x"}, "t")
        decoder = values_of(registry, reader)
        columns, _ = decoder._in_bulk(pa.array([data], pa.binary()))
        assert columns is not None
        made = pa.RecordBatch.from_arrays(columns, schema=decoder.schema)
        assert made.to_pylist() == rows
        assert decoder._one_by_one(pa.array([data], pa.binary())).columns == columns


@pytest.mark.parametrize(
    ("writer", "reader"),
    [(record(("a", {"type": "array", "items": "int"})),) * 2, (record(("a", ["int", "string"])),) * 2,
     (record(("a", "null")),) * 2, (record(("a", ["null", "R"])),) * 2, (record(("a", "int")), record(("a", "double"))),
     (record(("a", "int")), record(("a", "int"), ("b", "int", 5))),
     (record(("a", "int")), {**record(("a", "int")), "name": "S"}),
     (record(("a", {"type": "bytes", "logicalType": "decimal", "precision": 4})),) * 2,
     (record(("a", "int")), {**record(), "fields": [{"name": "b", "aliases": ["a"], "type": "int"}]})],
)  # fmt: skip
def test_other_schemas_are_left_to_fastavro(writer: Any, reader: Any) -> None:
    assert plan_of(writer, reader) is None
