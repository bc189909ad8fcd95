"""Which decoder the options make: DDL, JSON Schema, inference, evolution, names of columns, event time."""

import datetime
import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from harness.small_registry import SmallRegistry
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.client.registry.schemas import JSON, Schema
from moldau.errors import ConfigError
from moldau.pipeline.decoding import ddl
from moldau.pipeline.decoding.choosing import Decoding, decoder_of
from moldau.pipeline.decoding.event_times import TIMESTAMP, as_times
from moldau.pipeline.decoding.json_fields import Sampled
from moldau.pipeline.decoding.json_inference import inferred
from moldau.pipeline.decoding.json_schema_columns import columns_of
from tests.pipeline.decoding.fetching import RECORD_MS, decoded, sample

RECORD_TIME = datetime.datetime.fromtimestamp(RECORD_MS / 1000, datetime.UTC)


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with SmallRegistry() as small:
        yield SchemaRegistry(small.url)


def none() -> list[Sampled]:
    raise AssertionError("no sample is needed")


def test_ddl_says_columns() -> None:
    text = "id BIGINT NOT NULL, `first name` STRING,\n a ARRAY<STRUCT<x: INT, y: DECIMAL(4, 1)>>, m map<string, double>"
    assert ddl.columns_of(text) == pa.schema(
        [("id", pa.int64()), ("first name", pa.string()),
         ("a", pa.list_(pa.struct([("x", pa.int32()), ("y", pa.decimal128(4, 1))]))),
         ("m", pa.map_(pa.string(), pa.float64()))]
    )  # fmt: skip


@pytest.mark.parametrize(
    "wrong", ["", "id", "id BIG", "id INT,", "id INT x", "a ARRAY<", "m MAP<INT,INT>", "d DECIMAL(x)", "d DECIMAL(99)",
              "%", "a " + "ARRAY<" * 50 + "INT"],
)  # fmt: skip
def test_wrong_ddl_is_one_sentence(wrong: str) -> None:
    with pytest.raises(ConfigError, match=r"schema|MAP") as raised:
        ddl.columns_of(wrong)
    assert "\n" not in str(raised.value)


def test_a_json_schema_says_columns() -> None:
    tree = {
        "type": "object",
        "definitions": {"geo": {"type": "object", "properties": {"lat": {"type": "number"}}}},
        "properties": {
            "id": {"type": "integer"}, "name": {"type": ["string", "null"]},
            "at": {"type": "string", "format": "date-time"},
            "day": {"type": "string", "format": "date"}, "geo": {"$ref": "#/definitions/geo"}, "any": {},
            "tags": {"type": "array", "items": {"type": "string"}},
            "either": {"oneOf": [{"type": "null"}, {"type": "boolean"}]},
            "counts": {"type": "object", "additionalProperties": {"type": "integer"}}, "self": {"$ref": "#"},
        },
    }  # fmt: skip
    kinds = {field.name: field.type for field in columns_of(tree)}
    assert kinds["geo"] == pa.struct([("lat", pa.float64())]) and kinds["counts"] == pa.map_(pa.string(), pa.int64())
    plain = {"id": pa.int64(), "name": pa.string(), "at": TIMESTAMP, "day": pa.date32(), "any": pa.string(),
             "tags": pa.list_(pa.string()), "either": pa.bool_()}  # fmt: skip
    assert {name: kinds[name] for name in plain} == plain
    with pytest.raises(ConfigError, match="does not describe an object"):
        columns_of({"type": "string"})


def test_types_of_a_sample_are_merged() -> None:
    objects = [{"a": 1, "b": 1, "n": None, "l": [1], "e": {}, "big": 1 << 70},
               {"a": 1.5, "b": "x", "l": [None, 2.5], "o": {"x": 1}}, {"o": {"y": True}}]  # fmt: skip
    values = [b"[1]", b"{", *(json.dumps(one).encode() for one in objects)]
    assert inferred(sample(values)).columns == pa.schema(
        [("a", pa.float64()), ("b", pa.string()), ("l", pa.list_(pa.float64())), ("e", pa.string()),
         ("big", pa.string()),
         ("o", pa.struct([("x", pa.int64()), ("y", pa.bool_())]))]
    )  # fmt: skip
    deep: Any = 1
    for _ in range(30):
        deep = {"d": deep}
    assert "struct" in str(inferred(sample([json.dumps(deep).encode()])).columns.field("d").type)
    with pytest.raises(ConfigError, match="2000 fields, more than 1000"):
        inferred(sample([json.dumps({str(number): 1 for number in range(2_000)}).encode()]))


@pytest.mark.parametrize(
    ("values", "kind"),
    [(["2024-02-29T10:00:00Z", "2024-02-29T12:00:00+02:00"], pa.string()), (["2024-02-29T10:00:00"], pa.string()),
     (["2024-02-29 10:00:00", "1709200800"], pa.string()), ([1709200800], pa.int64()), ([1709200800000], pa.int64()),
     ([1709200800000000], pa.int64()), ([1709200800000000000, 1709200800], pa.int64()), ([1709200800.0], pa.float64()),
     ([1709200800000], pa.timestamp("ms"))],
)  # fmt: skip
def test_times_are_known_in_every_form(values: list[Any], kind: pa.DataType) -> None:
    noon = datetime.datetime(2024, 2, 29, 10, tzinfo=datetime.UTC)
    assert as_times(pa.array(values, kind)).to_pylist() == [noon] * len(values)


def test_no_time_is_null() -> None:
    wrong = ["", "x", "2024-13-01", "nan", "-", "99999-01-01", None, "1e400", "9" * 400]
    assert as_times(pa.array(wrong)).null_count == len(wrong)
    assert as_times(pa.array([None, 1 << 62, -(1 << 63), (1 << 63) - 1])).to_pylist()[0] is None
    assert as_times(pa.array([float("nan"), float("inf"), 1e300])).null_count == 3


def test_the_event_time_is_a_column_and_a_wrong_one_rejects_its_record() -> None:
    values = [b'{"at": "2024-02-29T10:00:00Z"}', b'{"at": "soon"}', b"{}", None, b'{"at": 1709200800000}']
    decoder = decoder_of("t", Decoding("json", "at STRING", event_time="at"), none)
    assert decoder is not None and decoder.event_time == "at" and decoder.schema.field("at").type == TIMESTAMP
    rows, reasons = decoded(decoder, values)
    noon = datetime.datetime(2024, 2, 29, 10, tzinfo=datetime.UTC)
    assert [row["at"] for row in rows] == [noon, RECORD_TIME, noon]
    assert reasons[1] == 'the event time at is the text "soon", which is not a time' and list(reasons) == [1, 2]


def test_text_is_one_column() -> None:
    decoder = decoder_of("t", Decoding("text"), none)
    assert decoded(decoder, [b"\xc5\xbe", b"\xff", None, b""]) == (
        [{"value": "ž"}, {"value": None}, {"value": ""}],
        {1: "the value is not UTF-8: invalid start byte at byte 0"},
    )


def test_json_with_a_registry_takes_the_columns_of_the_latest_schema(registry: SchemaRegistry) -> None:
    tree = {"type": "object", "properties": {"a": {"type": "integer"}}}
    registry.register("t-value", Schema(json.dumps(tree), JSON))
    decoder = decoder_of("t", Decoding("json", registry=registry), none)
    assert decoded(decoder, [b'\0\0\0\0\1{"a": 5, "b": 6}'])[0] == [{"a": 5}]
    with pytest.raises(ConfigError, match="no subject u-value"):
        decoder_of("u", Decoding("json", registry=registry), none)


@pytest.mark.parametrize(
    ("decoding", "sentence"),
    [(Decoding("yaml"), "--decode 'yaml' is none of none, text, json, avro"),
     (Decoding("avro"), "needs --schema-registry"),
     (Decoding("text", schema="a INT"), "do not go with --decode text"), (Decoding(event_time="a"), "--event-time"),
     (Decoding("json", "a INT", event_time="b"), "no such field; they have a"),
     (Decoding("json", "a BOOLEAN", event_time="a"), "neither a time nor a number nor text"),
     (Decoding("json"), "none of its first values is a JSON object"), (Decoding("json", "{"), "is not JSON")],
)  # fmt: skip
def test_options_that_cannot_be_are_one_sentence(decoding: Decoding, sentence: str) -> None:
    with pytest.raises((ConfigError, ValueError), match=sentence):
        decoder_of("t", decoding, lambda: sample([b"5"]))
