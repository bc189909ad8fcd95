"""Avro serializers: settings, subjects, references, and bytes that fit no schema."""

import contextlib
import json
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.small_registry import SmallRegistry
from moldau.client.registry.avro import AvroDeserializer, AvroSerializer
from moldau.client.registry.framing import framed
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.client.registry.schemas import Reference, Schema
from moldau.errors import ConfigError, DoesNotFit, MoldauError, NotFramed, SchemaInvalid, SchemaNotFound

RIVER = {
    "type": "record", "name": "River", "namespace": "cz",
    "fields": [{"name": "name", "type": "string"}, {"name": "km", "type": ["null", "double"], "default": None}],
}  # fmt: skip
LIST = {"type": "record", "name": "Link", "fields": [{"name": "next", "type": ["null", "Link"]}]}


def test_a_record_crosses_with_its_schema_id_in_front(small: SmallRegistry, registry: SchemaRegistry) -> None:
    serialize = AvroSerializer(registry, RIVER).for_topic("rivers", "value")
    data = serialize({"name": "Otava", "km": 111.7})
    assert data is not None and data[:5] == b"\0\0\0\0\1" and data[5:11] == b"\nOtava"
    assert serialize(None) is None
    deserialize = AvroDeserializer(SchemaRegistry(small.url))
    assert [deserialize(data) for _ in range(3)] == [{"name": "Otava", "km": 111.7}] * 3
    assert deserialize(None) is None
    assert [request.path for request in small.requests] == ["/subjects/rivers-value/versions", "/schemas/ids/1"]


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [("topic", "t-key"), ("record", "cz.River"), ("topic-record", "t-cz.River"), ("TOPIC_RECORD", "t-cz.River"),
     ("io.confluent.kafka.serializers.subject.RecordNameStrategy", "cz.River"),
     (lambda topic, field, record: f"{field}/{record}", "key/cz.River")],
)  # fmt: skip
def test_the_strategy_names_the_subject(registry: SchemaRegistry, strategy: Any, subject: str) -> None:
    AvroSerializer(registry, RIVER, settings={"subject.name.strategy": strategy}).for_topic("t", "key")
    assert registry.subjects() == [subject]


def test_the_latest_version_is_written_without_registering(registry: SchemaRegistry) -> None:
    registry.register("t-value", Schema('"string"'))
    number = registry.register("t-value", Schema('"long"'))
    assert AvroSerializer(registry, use_latest_version=True)(3, "t") == framed(number, b"\6")


def test_without_auto_register_a_schema_must_be_there(registry: SchemaRegistry) -> None:
    serializer = AvroSerializer(registry, '"string"', auto_register_schemas=False)
    with pytest.raises(SchemaNotFound):
        serializer("x", "t")
    registry.register("t-value", Schema('"string"'))
    assert serializer("x", "t") == b"\0\0\0\0\1\2x"


def test_a_primitive_type_may_be_given_by_name_and_bytes_have_no_length(registry: SchemaRegistry) -> None:
    assert AvroSerializer(registry, "string")("x", "t") == b"\0\0\0\0\1\2x"
    data = AvroSerializer(registry, "bytes")(b"abc", "u")
    assert data == b"\0\0\0\0\2abc" and AvroDeserializer(registry)(data) == b"abc"


def test_readers_get_the_fields_of_their_own_schema(registry: SchemaRegistry) -> None:
    data = AvroSerializer(registry, RIVER)({"name": "Labe", "km": 1094.0}, "t")
    fields = [{"name": "name", "type": "string"}, {"name": "country", "type": "string", "default": "CZ"}]
    reader = AvroDeserializer(registry, {**RIVER, "fields": fields})
    assert reader(data) == {"name": "Labe", "country": "CZ"}
    with pytest.raises(DoesNotFit, match="schema id 1"):
        AvroDeserializer(registry, {**RIVER, "fields": [{"name": "other", "type": "int"}]})(data)


def test_defaults_are_values_like_those_of_records_that_have_the_field(registry: SchemaRegistry) -> None:
    pair = {"type": "fixed", "name": "Pair", "size": 2}
    amount = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    kinds: list[tuple[Any, Any, Any]] = [
        ("bytes", "\u00ff\u0001", b"\xff\1"),
        (pair, "\u00feb", b"\xfeb"),
        (["Pair", "null"], "cd", b"cd"),
        ({"type": "array", "items": "Pair"}, ["\u00fde"], [b"\xfde"]),
        ({"type": "map", "values": "bytes"}, {"k": "\u0100"}, {"k": b"?"}),
        (amount, "\u0001\u0002", Decimal("2.58")),
        ({"type": "int", "logicalType": "date"}, 19_782, date(2024, 2, 29)),
        (
            {"type": "record", "name": "Box", "fields": [
                {"name": "a", "type": "bytes"}, {"name": "b", "type": "Pair", "default": "\u00fcf"},
                {"name": "next", "type": ["null", "Box"], "default": None}]},
            {"a": "\u00fb"},
            {"a": b"\xfb", "b": b"\xfcf", "next": None},
        ),
    ]  # fmt: skip
    fields = [{"name": f"f{at}", "type": kind, "default": default} for at, (kind, default, _) in enumerate(kinds)]
    wide = {**RIVER, "fields": [{"name": "name", "type": "string"}, *fields]}
    whole = {"name": "Labe", **{f"f{at}": value for at, (_, _, value) in enumerate(kinds)}}
    short = AvroSerializer(registry, {**RIVER, "fields": [{"name": "name", "type": "string"}]})({"name": "Labe"}, "t")
    assert AvroDeserializer(registry, wide)(short) == whole
    assert AvroDeserializer(registry)(AvroSerializer(registry, wide)({"name": "Labe"}, "t")) == whole
    wrong = {"name": "f", "type": {"type": "string", "logicalType": "uuid"}, "default": "not one"}
    assert AvroDeserializer(registry, {**RIVER, "fields": [wrong]})(short) == {"f": "not one"}


@pytest.mark.parametrize(
    "main",
    [["cz.Gauge", "cz.River"], "cz.Gauge", {"type": "array", "items": "cz.Gauge"},
     {"type": "record", "name": "cz.Both", "fields": [{"name": "g", "type": "Gauge"}, {"name": "r", "type": "River"}]}],
)  # fmt: skip
def test_references_are_put_where_their_names_are(registry: SchemaRegistry, main: Any) -> None:
    registry.register("river", Schema(json.dumps(RIVER)))
    gauge = {"type": "record", "name": "cz.Gauge", "fields": [{"name": "river", "type": "River"}]}
    river = Reference("cz.River", "river", 1)
    registry.register("gauge", Schema(json.dumps(gauge), references=(river,)))
    schema = Schema(json.dumps(main), references=(Reference("cz.Gauge", "gauge", 1), river))
    one = {"river": {"name": "Orlice", "km": None}}
    value = [one] if isinstance(main, dict) and "items" in main else one
    if isinstance(main, dict) and "fields" in main:
        value = {"g": one, "r": {"name": "Metuje", "km": 1.5}}
    data = AvroSerializer(registry, schema)(value, "t")
    assert AvroDeserializer(registry)(data) == value


@pytest.mark.parametrize(
    ("value", "sentence"),
    [({}, "does not fit cz.River"), ({"name": 5}, "does not fit cz.River"), ("text", "does not fit cz.River")],
)
def test_a_value_that_does_not_fit_is_its_callers_error(registry: SchemaRegistry, value: Any, sentence: str) -> None:
    with pytest.raises(DoesNotFit, match=sentence):
        AvroSerializer(registry, RIVER)(value, "t")


def test_a_value_that_fits_no_type_of_a_union_is_told_without_the_codecs_notes(registry: SchemaRegistry) -> None:
    union = json.dumps([RIVER, {"type": "record", "name": "Lake", "fields": [{"name": "m", "type": "int"}]}])
    with pytest.raises(DoesNotFit, match=r"\{'name': 5\} \(dict\) fits no type of the union$"):
        AvroSerializer(registry, union)({"name": 5}, "t")


@pytest.mark.parametrize(
    ("data", "kind", "sentence"),
    [(b"", NotFramed, "0 bytes"), (b"\0\0\0", NotFramed, "at least 5 bytes"),
     (b'{"a":1}', NotFramed, "first byte is 123"),
     (b"\0\0\0\0\x09abc", SchemaNotFound, "schema id 9"), (b"\0\0\0\0\1", DoesNotFit, "end too early"),
     (b"\0\0\0\0\1\nOta", DoesNotFit, "schema id 1"), (b"\0\0\0\0\1\nOtava\0x", DoesNotFit, "1 bytes are behind"),
     (b"\0\0\0\0\1\4\xff\xff\0", DoesNotFit, "schema id 1")],
)  # fmt: skip
def test_bytes_that_cannot_be_read_say_why(registry: SchemaRegistry, data: bytes, kind: Any, sentence: str) -> None:
    AvroSerializer(registry, RIVER).for_topic("t", "value")
    with pytest.raises(kind, match=sentence):
        AvroDeserializer(registry)(data)


def test_bytes_that_nest_without_end_or_claim_any_length_do_not_end_the_process(registry: SchemaRegistry) -> None:
    link = AvroSerializer(registry, LIST)
    assert AvroDeserializer(registry)(link({"next": {"next": None}}, "t")) == {"next": {"next": None}}
    with pytest.raises(DoesNotFit, match="nests more than 200 levels"):
        AvroDeserializer(registry)(framed(1, b"\2" * 100_000 + b"\0"))
    nulls = AvroSerializer(registry, {"type": "array", "items": "null"})
    assert AvroDeserializer(registry)(nulls([None, None], "u")) == [None, None]
    with pytest.raises(DoesNotFit, match="claims 1152921504606846976 items"):
        AvroDeserializer(registry)(framed(2, b"\x80\x80\x80\x80\x80\x80\x80\x80\x20\0"))


@pytest.mark.parametrize("wrong", ["{", '{"type": "recrod"}', {"type": "record", "fields": []}, "[]]", "nothing"])
def test_a_wrong_schema_is_one_sentence(registry: SchemaRegistry, wrong: Any) -> None:
    with pytest.raises(SchemaInvalid, match="schema is"):
        AvroSerializer(registry, wrong).for_topic("t", "value")


def test_wrong_settings_are_one_sentence(registry: SchemaRegistry) -> None:
    with pytest.raises(ConfigError, match="needs a schema, or use"):
        AvroSerializer(registry)
    with pytest.raises(ConfigError, match="cannot both be true"):
        AvroSerializer(registry, "string", use_latest_version=True, auto_register_schemas=True)
    with pytest.raises(ConfigError, match=r"has no setting auto\.register; did you mean auto\.register\.schemas"):
        AvroSerializer(registry, "string", settings={"auto.register": True})
    with pytest.raises(ConfigError, match="is not topic, record"):
        AvroSerializer(registry, "string", subject_name_strategy="file")
    with pytest.raises(ConfigError, match="need a schema with a name"):
        AvroSerializer(registry, "string", subject_name_strategy="record")("x", "t")
    with pytest.raises(ConfigError, match="needs the topic"):
        AvroSerializer(registry, "string")("x")


ALL = {
    "type": "record", "name": "All", "fields": [
        {"name": "b", "type": "boolean"}, {"name": "i", "type": "int"}, {"name": "l", "type": "long"},
        {"name": "d", "type": "double"}, {"name": "s", "type": ["null", "string"]}, {"name": "y", "type": "bytes"},
        {"name": "e", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}},
        {"name": "a", "type": {"type": "array", "items": ["null", "long", "string"]}},
        {"name": "m", "type": {"type": "map", "values": "double"}},
        {"name": "n", "type": {"type": "record", "name": "N", "fields": [{"name": "f", "type": "E"}]}}],
}  # fmt: skip
TEXT = st.text(st.characters(exclude_categories=("Cs",)))
RECORDS = st.fixed_dictionaries({
    "b": st.booleans(), "i": st.integers(-(1 << 31), (1 << 31) - 1), "l": st.integers(-(1 << 63), (1 << 63) - 1),
    "d": st.floats(allow_nan=False), "s": st.none() | TEXT, "y": st.binary(), "e": st.sampled_from(["A", "B"]),
    "a": st.lists(st.none() | st.integers(-9, 9) | TEXT), "m": st.dictionaries(TEXT, st.floats(allow_nan=False)),
    "n": st.fixed_dictionaries({"f": st.sampled_from(["A", "B"])}),
})  # fmt: skip


def test_every_record_comes_back_and_no_bytes_raise_anything_else(small: SmallRegistry) -> None:
    registry = SchemaRegistry(small.url)
    serialize = AvroSerializer(registry, ALL).for_topic("t", "value")
    AvroSerializer(registry, LIST).for_topic("t", "value")
    deserialize = AvroDeserializer(registry)

    @given(RECORDS)
    def comes_back(record: dict[str, Any]) -> None:
        assert deserialize(serialize(record)) == record

    @given(st.sampled_from([b"", b"\0\0\0\0\1", b"\0\0\0\0\2"]), st.binary(max_size=300), RECORDS, st.integers(0, 99))
    def is_refused_or_read(frame: bytes, content: bytes, record: dict[str, Any], at: int) -> None:
        whole = serialize(record)
        assert whole is not None
        for data in (frame + content, whole[:at], whole[:at] + content + whole[at:]):
            with contextlib.suppress(MoldauError):
                deserialize(data)

    comes_back()
    is_refused_or_read()
