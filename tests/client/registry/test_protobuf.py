"""Protobuf serializers: classes that protoc generates, dicts, references, and bytes that fit no schema."""

import contextlib
import datetime
from functools import cache
from typing import Any

import pytest
from google.protobuf import descriptor_pool
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st

from harness.small_registry import SmallRegistry
from moldau.client.registry.framing import framed
from moldau.client.registry.proto.files import linked_file
from moldau.client.registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.client.registry.schemas import PROTOBUF, Reference, Schema
from moldau.errors import ConfigError, DoesNotFit, MoldauError, NotFramed, SchemaInvalid, SchemaNotFound

PLACE = 'syntax = "proto3"; package cz; message Place { double lat = 1; double lon = 2; }'
RIVER = """syntax = "proto3"; package cz; import "geo/place.proto"; import "google/protobuf/timestamp.proto";
message Lake { string name = 1; }
message River { string name = 1; optional int64 m = 2; Place spring = 3; google.protobuf.Timestamp seen = 4;
  Kind kind = 5; enum Kind { UNKNOWN = 0; BROOK = 1; } repeated string towns = 6; map<string, int32> cm = 7;
  message Ford { string at = 1; } }"""


@cache
def generated(name: str) -> Any:
    """A message class as protoc makes it: of files that are called as they are imported."""
    pool = descriptor_pool.DescriptorPool()
    linked = linked_file(RIVER, {"geo/place.proto": PLACE})
    linked.file.name = "geo/river.proto"
    for one in [*linked.imports, linked.file]:
        pool.Add(one)
    return GetMessageClass(pool.FindMessageTypeByName(name))


def test_a_message_of_a_generated_class_crosses_and_its_imports_become_references(
    small: SmallRegistry, registry: SchemaRegistry
) -> None:
    river = generated("cz.River")(name="Otava", m=111_700, towns=["Písek"], kind="BROOK", cm={"Písek": 61})
    river.spring.lat = 49.1
    data = ProtobufSerializer(registry, generated("cz.River")).for_topic("rivers", "value")(river)
    assert data is not None and data[:9] == b"\0\0\0\0\2\2\2\n\5"
    assert registry.subjects() == ["geo/place.proto", "rivers-value"]
    latest = registry.version("rivers-value").schema
    assert latest.references == (Reference("geo/place.proto", "geo/place.proto", 1),)
    assert latest.text.startswith('syntax = "proto3";\npackage cz;\n')
    again = SchemaRegistry(small.url)
    assert ProtobufDeserializer(again, generated("cz.River"))(data) == river
    dynamic = ProtobufDeserializer(again)(data)
    assert (dynamic.name, dynamic.m, dynamic.spring.lat, dynamic.cm["Písek"]) == ("Otava", 111_700, 49.1, 61)
    assert ProtobufDeserializer(again, from_message=lambda one: one.name)(data) == "Otava"
    assert ProtobufDeserializer(again)(None) is None


def test_dicts_are_messages_of_a_schema_given_as_text(registry: SchemaRegistry) -> None:
    registry.register("place", Schema(PLACE, PROTOBUF))
    schema = Schema(RIVER, PROTOBUF, (Reference("geo/place.proto", "place", 1),))
    serializer = ProtobufSerializer(registry, schema, message="cz.River")
    noon = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC)
    data = serializer({"name": "Labe", "spring": {"lat": 50.8}, "kind": "BROOK", "m": None, "seen": noon}, "t")
    back = ProtobufDeserializer(registry)(data)
    assert (back.name, back.kind, back.HasField("m"), back.seen.ToDatetime(datetime.UTC)) == ("Labe", 1, False, noon)
    first = ProtobufSerializer(registry, schema, subject_name_strategy="record")
    assert first({"name": "Lipno"}) == framed(2, b"\0\n\5Lipno") and first(None) is None
    nested = ProtobufSerializer(registry, schema, message="cz.River.Ford")
    assert nested({"at": "x"}, "t") == framed(2, b"\4\2\0\n\1x")
    assert registry.subjects() == ["place", "t-value", "cz.Lake"]


def test_the_latest_version_is_written_without_registering(registry: SchemaRegistry) -> None:
    registry.register("t-value", Schema('syntax = "proto3"; package cz; message River { string name = 1; }', PROTOBUF))
    registry.register("t-value", Schema('syntax = "proto3"; package cz; message A {} message Lake {}', PROTOBUF))
    assert ProtobufSerializer(registry, use_latest_version=True)({}, "t") == framed(2, b"\0")
    lake = ProtobufSerializer(registry, generated("cz.Lake"), use_latest_version=True, auto_register_schemas=False)
    assert lake(generated("cz.Lake")(name="x"), "t") == framed(2, b"\2\2\n\1x")
    with pytest.raises(SchemaInvalid, match=r"has no message cz\.River"):
        ProtobufSerializer(registry, generated("cz.River"), use_latest_version=True)({}, "t")
    assert registry.subjects() == ["t-value"]


def test_without_auto_register_schema_and_imports_must_be_there(registry: SchemaRegistry) -> None:
    lake = generated("cz.Lake")
    with pytest.raises(SchemaNotFound):
        ProtobufSerializer(registry, lake, auto_register_schemas=False)({}, "t")
    ProtobufSerializer(registry, lake)({}, "t")
    assert ProtobufSerializer(registry, lake, auto_register_schemas=False)({}, "t") == framed(2, b"\0")


@pytest.mark.parametrize(
    ("value", "sentence"),
    [({"nmae": "x"}, "does not fit cz.Lake"), ({"name": 5}, "does not fit cz.Lake"), ("text", "str is neither"),
     ({5: "x"}, "does not fit cz.Lake"), ({"name": b"\xff"}, "does not fit cz.Lake")],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_its_callers_error(registry: SchemaRegistry, value: Any, sentence: str) -> None:
    serializer = ProtobufSerializer(registry, 'syntax = "proto3"; package cz; message Lake { string name = 1; }')
    with pytest.raises(DoesNotFit, match=sentence):
        serializer(value, "t")
    with pytest.raises(DoesNotFit, match=r"is a message cz\.River, not cz\.Lake"):
        serializer(generated("cz.River")(), "t")
    required = ProtobufSerializer(registry, "message Needs { required int32 a = 1; }")
    with pytest.raises(DoesNotFit, match="does not fit Needs"):
        required({}, "u")


LAKE = 'syntax = "proto3"; package cz; message Lake { string name = 1; }'


@pytest.mark.parametrize(
    ("data", "kind", "sentence"),
    [(b"", NotFramed, "0 bytes"), (b"\0\0\0\0\x09\0", SchemaNotFound, "schema id 9"),
     (b"\0\0\0\0\1", DoesNotFit, "ends in its message indexes"), (b"\0\0\0\0\1\2\2", DoesNotFit, "at the indexes 1"),
     (b"\0\0\0\0\1\0\n\5Ota", DoesNotFit, "schema id 1"), (b"\0\0\0\0\1\0\n\1\xff", DoesNotFit, "schema id 1")],
)  # fmt: skip
def test_bytes_that_cannot_be_read_say_why(registry: SchemaRegistry, data: bytes, kind: Any, sentence: str) -> None:
    ProtobufSerializer(registry, LAKE).for_topic("t", "value")
    with pytest.raises(kind, match=sentence):
        ProtobufDeserializer(registry)(data)


def test_a_message_of_another_name_is_not_read_as_the_class(registry: SchemaRegistry) -> None:
    data = ProtobufSerializer(registry, LAKE)({"name": "Lipno"}, "t")
    with pytest.raises(DoesNotFit, match=r"is a message cz\.Lake \(schema id 1\), not cz\.River"):
        ProtobufDeserializer(registry, generated("cz.River"))(data)


def test_a_schema_of_another_kind_is_refused(registry: SchemaRegistry) -> None:
    registry.register("t-value", Schema('"string"'))
    with pytest.raises(SchemaInvalid, match="AVRO, not PROTOBUF"):
        ProtobufDeserializer(registry)(framed(1, b"\0"))
    with pytest.raises(SchemaInvalid, match="AVRO, not PROTOBUF"):
        ProtobufSerializer(registry, use_latest_version=True)({}, "t")


def test_wrong_settings_are_one_sentence(registry: SchemaRegistry) -> None:
    with pytest.raises(ConfigError, match="needs a schema, or use"):
        ProtobufSerializer(registry)
    with pytest.raises(ConfigError, match="dict is not a message class"):
        ProtobufSerializer(registry, dict)
    with pytest.raises(SchemaInvalid, match="the Protobuf schema is wrong: line 1"):
        ProtobufSerializer(registry, "message {")
    with pytest.raises(SchemaInvalid, match=r"no message cz\.Sea"):
        ProtobufSerializer(registry, LAKE, message="cz.Sea")
    with pytest.raises(TypeError, match="a schema is text, a dict or a Schema"):
        ProtobufSerializer(registry, {"type": "record"})


def test_any_bytes_are_read_or_refused(small: SmallRegistry) -> None:
    registry = SchemaRegistry(small.url)
    ProtobufSerializer(registry, "message Link { optional Link next = 1; repeated bytes all = 2; }")({}, "t")
    deserialize = ProtobufDeserializer(registry)
    deep = b""
    for _ in range(200):
        deep = b"\n" + bytes([len(deep) & 0x7F | 0x80, len(deep) >> 7]) + deep
    with pytest.raises(DoesNotFit, match="schema id 1"):
        deserialize(framed(1, b"\0" + deep))

    @given(st.binary(max_size=100))
    def is_refused_or_read(content: bytes) -> None:
        with contextlib.suppress(MoldauError):
            deserialize(framed(1, content))

    is_refused_or_read()
