"""Protobuf as columns: each type, schemas that changed, and any bytes."""

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
from moldau.client.registry.framing import framed
from moldau.client.registry.protobuf import ProtobufSerializer
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.client.registry.schemas import PROTOBUF, Reference, Schema
from moldau.errors import ConfigError, RegistryUnavailable
from moldau.pipeline.decoding.choosing import Decoding, decoder_of
from moldau.pipeline.decoding.event_times import TIMESTAMP
from tests.pipeline.decoding.fetching import decoded, why

NOON = datetime.datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=datetime.UTC)
EVERY = """syntax = "proto3"; package cz; import "google/protobuf/timestamp.proto";
import "google/protobuf/struct.proto"; import "google/protobuf/wrappers.proto"; import "google/protobuf/duration.proto";
import "place.proto";
message Every {
  enum Kind { NONE = 0; BROOK = 1; }
  message In { string a = 1; In next = 2; google.protobuf.Timestamp at = 3; }
  message Nothing {}
  string s = 1; bytes y = 2; bool b = 3; float f = 4; double d = 5; int32 i = 6; sint64 l = 7; uint32 u = 8;
  fixed64 w = 9; Kind k = 10; optional int32 maybe = 11; In in = 12; google.protobuf.Timestamp at = 13;
  repeated int32 many = 14; repeated Kind kinds = 15; repeated In ins = 16; map<string, In> m = 17;
  map<int32, Kind> mk = 18; google.protobuf.Struct any = 19; google.protobuf.Int64Value wrapped = 20; Nothing no = 21;
  oneof choice { string text = 22; int64 number = 23; } repeated google.protobuf.Timestamp times = 24;
  google.protobuf.Duration lasts = 25; Place place = 26; }"""
PLACE = 'syntax = "proto3"; package cz; message Place { double lat = 1; }'
IN = pa.struct([("a", pa.string()), ("next", pa.string()), ("at", TIMESTAMP)])
KINDS = {
    "s": pa.string(), "y": pa.binary(), "b": pa.bool_(), "f": pa.float32(), "d": pa.float64(), "i": pa.int32(),
    "l": pa.int64(), "u": pa.int64(), "w": pa.decimal128(20, 0), "k": pa.string(), "maybe": pa.int32(), "in": IN,
    "at": TIMESTAMP, "many": pa.list_(pa.int32()), "kinds": pa.list_(pa.string()), "ins": pa.list_(IN),
    "m": pa.map_(pa.string(), IN), "mk": pa.map_(pa.int32(), pa.string()), "any": pa.string(), "wrapped": pa.int64(),
    "no": pa.string(), "text": pa.string(), "number": pa.int64(), "times": pa.list_(TIMESTAMP),
    "lasts": pa.struct([("seconds", pa.int64()), ("nanos", pa.int32())]), "place": pa.struct([("lat", pa.float64())]),
}  # fmt: skip


@pytest.fixture
def small() -> Iterator[SmallRegistry]:
    with SmallRegistry() as small:
        yield small


def decoder(registry: SchemaRegistry, topic: str, schema: str = "", message: str = "", event_time: str = "") -> Any:
    made = decoder_of(topic, Decoding("protobuf", schema, registry, event_time, message=message), list)
    return pickle.loads(pickle.dumps(made))


def every(registry: SchemaRegistry) -> Any:
    registry.register("place", Schema(PLACE, PROTOBUF))
    schema = Schema(EVERY, PROTOBUF, (Reference("place.proto", "place", 1),))
    return ProtobufSerializer(registry, schema).for_topic("t", "value")


def test_every_type_has_its_column(small: SmallRegistry) -> None:
    registry = SchemaRegistry(small.url)
    serialize = every(registry)
    made = decoder(registry, "t", event_time="at")
    assert made.schema == pa.schema(list(KINDS.items())) and made.event_time == "at"
    inner = {"a": "x", "next": {"a": "y"}, "at": NOON}
    value = {
        "s": "é", "y": b"\xff", "b": True, "f": 0.5, "d": -0.25, "i": -1, "l": -(1 << 63), "u": (1 << 32) - 1,
        "w": (1 << 64) - 1, "k": "BROOK", "maybe": 0, "in": inner, "at": NOON, "many": [1, 2], "kinds": [1, 7],
        "ins": [inner, {}], "m": {"one": inner}, "mk": {5: 1}, "any": {"q": 1.5}, "wrapped": {"value": 7},
        "no": {}, "number": 3,        "times": [NOON], "lasts": {"seconds": 5}, "place": {"lat": 1.5},
    }  # fmt: skip
    rows, reasons = decoded(made, [serialize(value), serialize({"at": NOON}), None])
    column = {"a": "x", "next": '{"a": "y"}', "at": NOON}
    nothing = {"a": "", "next": None, "at": None}
    assert not reasons and rows[0] == value | {
        "w": decimal.Decimal((1 << 64) - 1), "in": column, "kinds": ["BROOK", "7"], "ins": [column, nothing],
        "m": [("one", column)], "mk": [(5, "BROOK")], "any": '{"q": 1.5}', "wrapped": 7, "no": "{}", "text": None,
        "lasts": {"seconds": 5, "nanos": 0},
    }  # fmt: skip
    zeros = {"s": "", "y": b"", "b": False, "f": 0.0, "d": 0.0, "i": 0, "l": 0, "u": 0, "w": decimal.Decimal(0)}
    empty: dict[str, Any] = dict.fromkeys(KINDS) | zeros | {"k": "NONE", "at": NOON}
    assert rows[1] == empty | {name: [] for name in ("many", "kinds", "ins", "times", "m", "mk")}
    assert rows[2]["s"] is None and rows[2]["many"] is None


def test_fields_of_proto2_are_null_or_have_their_default(small: SmallRegistry) -> None:
    registry = SchemaRegistry(small.url)
    text = "message Old { optional int32 a = 1; optional string b = 2 [default = 'x']; required bool c = 3; }"
    serialize = ProtobufSerializer(registry, text)
    rows, _ = decoded(decoder_after(registry, serialize), [serialize({"c": True}, "t"), serialize({"c": False}, "t")])
    assert rows == [{"a": None, "b": "x", "c": True}, {"a": None, "b": "x", "c": False}]


def decoder_after(registry: SchemaRegistry, serialize: Any) -> Any:
    serialize.for_topic("t", "value")
    return decoder(registry, "t")


def test_earlier_schemas_are_read_by_field_numbers_as_the_latest_or_the_given_one(small: SmallRegistry) -> None:
    registry = SchemaRegistry(small.url)
    old = ProtobufSerializer(registry, 'syntax = "proto3"; message R { int32 a = 1; string gone = 2; bool flag = 4; }')
    new = ProtobufSerializer(
        registry, 'syntax = "proto3"; message R { int64 renamed = 1; optional string b = 3; int32 flag = 4; }'
    )
    values = [old({"a": 1, "gone": "x", "flag": True}, "t"), new({"renamed": 1 << 40, "b": "y"}, "t")]
    first, second = {"renamed": 1, "b": None, "flag": 1}, {"renamed": 1 << 40, "b": "y", "flag": 0}
    assert decoded(decoder(registry, "t"), values) == ([first, second], {})
    only = 'syntax = "proto3"; message R { optional string b = 3; }'
    assert decoded(decoder(registry, "t", only), values)[0] == [{"b": None}, {"b": "y"}]


@pytest.mark.parametrize(
    ("fields", "what"),
    [("int32 a = 1;", "field a is int64 there and int32 in the columns"), ("string a = 1;", "int64 there and string"),
     ("int64 a = 1; int32 many = 2;", "field many is repeated there"), ("In a = 1; message In {}", "and message in"),
     ("int64 a = 1; repeated int32 many = 2; In in = 3; message In { sint32 x = 1; }", "field in.x is int32 there"),
     ("map<int32, int32> l = 4;", "field l is repeated there and a map")],
)  # fmt: skip
def test_a_schema_that_would_change_values_rejects_its_records(small: SmallRegistry, fields: str, what: str) -> None:
    registry = SchemaRegistry(small.url)
    text = "message R { int64 a = 1; repeated int32 m = 2; In in = 3; message In { int32 x = 1; } repeated In l = 4; }"
    value = ProtobufSerializer(registry, f'syntax = "proto3"; {text}')({"a": 1 << 40}, "t")
    assert value is not None
    rule, _, reason = why(decoder(registry, "t", f'syntax = "proto3"; message R {{ {fields} }}'), value)
    assert rule == "wrong_protobuf" and "schema id 1 cannot be read without loss: " in reason and what in reason


def test_a_number_that_a_closed_enum_does_not_name_rejects_its_record(small: SmallRegistry) -> None:
    registry = SchemaRegistry(small.url)
    text = """syntax = "proto2"; enum E { A = 0;%s } message In { optional E e = 1; } message R { optional E e = 2;
    repeated E many = 3; map<string, E> m = 4; optional In in = 5; repeated In ins = 6; map<string, In> deep = 7; }"""
    serialize = ProtobufSerializer(registry, text % " B = 1;", message="R").for_topic("t", "value")
    made = decoder(registry, "t", text % "", message="R")
    fields = {"e": 1, "many": [0, 1], "m": {"k": 1}, "in": {"e": 1}, "ins": [{}, {"e": 1}], "deep": {"k": {"e": 1}}}
    values = [serialize({name: value}) for name, value in fields.items()]
    good = serialize({"e": 0, "many": [0], "m": {"k": 0}, "in": {"e": 0}})
    rows, reasons = decoded(made, [*values, good])
    assert [(row["e"], row["many"], row["m"], row["in"]) for row in rows] == [("A", ["A"], [("k", "A")], {"e": "A"})]
    paths = ["e", "many", "m", "in.e", "ins[].e", "deep[].e"]
    assert [*reasons.values()] == [f"field {path} has a number that its enum does not name" for path in paths]
    assert why(made, values[4] or b"")[:2] == ("wrong_protobuf", "ins[].e")


def test_a_message_is_chosen_by_its_name_and_others_are_rejected(small: SmallRegistry) -> None:
    registry = SchemaRegistry(small.url)
    text = 'syntax = "proto3"; package cz; message A { int32 a = 1; } message B { int32 b = 1; message C {} }'
    values = [ProtobufSerializer(registry, text, message=f"cz.{name}")({}, "t") for name in ("A", "B", "B.C")]
    assert decoded(decoder(registry, "t", message="cz.B"), values)[0] == [{"b": 0}]
    rows, reasons = decoded(decoder(registry, "t"), values)
    assert rows == [{"a": 0}] and reasons[1] == "the value is a message cz.B (schema id 1), not cz.A"
    with pytest.raises(ConfigError, match=r"no message cz\.D; it has cz\.A"):
        decoder(registry, "t", message="cz.D")
    with pytest.raises(ConfigError, match=r"cz\.B\.C has no fields"):
        decoder(registry, "t", message="cz.B.C")


def test_only_the_bad_records_of_a_batch_are_rejected(small: SmallRegistry) -> None:
    registry = SchemaRegistry(small.url)
    serialize = every(registry)
    made = decoder(registry, "t")
    late = serialize({"in": {"at": {"seconds": 1 << 60}}})
    values = [serialize({"i": 1}), late, serialize({"i": 2}), framed(2, b"\0\n\1\xff"), framed(2, b"\2\x06"), b"x"]
    rows, reasons = decoded(made, [*values, framed(77, b"\0"), *values[:1]])
    assert [row["i"] for row in rows] == [1, 2, 1]
    assert "field in.at is" in reasons[1] and "do not fit cz.Every (schema id 2)" in reasons[3]
    assert "no message at the indexes 3" in reasons[4] and "schema id 77 is not in" in reasons[6]
    assert why(made, late)[:2] == ("wrong_protobuf", "in.at") and why(made, b"x")[0] == "not_framed"
    assert why(made, framed(77, b"\0"))[0] == "unknown_schema"


def test_an_unknown_id_is_asked_for_once_and_a_registry_that_is_down_fails_the_load(small: SmallRegistry) -> None:
    registry = SchemaRegistry(small.url)
    every(registry)
    made = decoder(registry, "t")
    before = len(small.requests)
    assert not decoded(made, [framed(77, b"\0")] * 30)[0] and len(small.requests) == before + 1
    small.answers = [(503, b"")]
    with pytest.raises(RegistryUnavailable):
        decoded(made, [framed(2, b"\0")])


def test_a_message_that_doubles_at_each_level_has_too_many_columns(small: SmallRegistry) -> None:
    levels = "".join(f"message L{n} {{ L{n + 1} a = 1; L{n + 1} b = 2; }} " for n in range(20))
    text = f'syntax = "proto3"; {levels} message L20 {{ int32 a = 1; }}'
    with pytest.raises(ConfigError, match="L0 has more than 10,000 fields"):
        decoder(SchemaRegistry(small.url), "t", text)


def test_records_come_back_and_any_bytes_are_in_one_of_the_batches(small: SmallRegistry) -> None:
    registry = SchemaRegistry(small.url)
    serialize = every(registry)
    made = decoder(registry, "t")
    text = st.text(st.characters(exclude_categories=("Cs",)), max_size=9)
    records = st.fixed_dictionaries(
        {"s": text, "y": st.binary(max_size=9), "l": st.integers(-(1 << 63), (1 << 63) - 1),
         "many": st.lists(st.integers(-(1 << 31), (1 << 31) - 1), max_size=3), "maybe": st.none() | st.integers(0, 9)}
    )  # fmt: skip

    @given(st.lists(records, max_size=5))
    def come_back(some: list[dict[str, Any]]) -> None:
        rows, reasons = decoded(made, [serialize(one) for one in some])
        assert [{name: row[name] for name in ("s", "y", "l", "many", "maybe")} for row in rows] == some and not reasons

    @given(st.lists(st.binary(max_size=60) | st.binary(max_size=99).map(lambda data: framed(2, data)), max_size=20))
    def are_somewhere(values: list[bytes]) -> None:
        decoded(made, values)

    come_back()
    are_somewhere()
