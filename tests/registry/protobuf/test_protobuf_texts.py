"""`.proto` texts: Google's own files survive the way from descriptor to text and back, hostile ones get a sentence."""

import base64
import importlib
from typing import Any

import pytest
from google.protobuf import descriptor_pb2
from hypothesis import given
from hypothesis import strategies as some

from moldau.client.registry.proto.linking import LinkedFile
from moldau.client.registry.proto.parsing import parse_proto
from moldau.client.registry.proto.printing import json_name, printed
from moldau.client.registry.proto.well_known import is_known_to_all
from moldau.client.registry.schemas import Schema
from moldau.registry.kinds import Definitions
from moldau.registry.protobuf.schema import ProtobufDefinition
from moldau.registry.refusals import Refused
from tests.registry.asking import LocalRegistry

EVERYTHING = """
syntax = "proto3"; // a comment
package cz.rivers;
import "google/protobuf/timestamp.proto"; /* another
comment */ import public "google/protobuf/any.proto";
option java_package = "cz." "rivers"; option optimize_for = SPEED; option (my.own).part = { a: 1 b { c: "}" } };
message River {
  reserved 4, 9 to 11, 40 to max; reserved "old", 'older';
  message Place { double lat = 1; double lon = 2; }
  enum Kind { option allow_alias = true; UNKNOWN = 0; STREAM = 1 [deprecated = true]; BROOK = 1; COLD = -3; }
  string name = 1 [json_name = "called"]; optional int32 km = 2; repeated Place places = 3 [(my.rule) = 1.5];
  map<string, River.Kind> kinds = 5; map < int32 , google.protobuf.Timestamp > times = 6;
  oneof source { option (x) = "y"; string spring = 7; .cz.rivers.River.Place place = 8; }
  bytes message = 12; int64 optional = 13; repeated sint32 enum = 14 [packed = false];
}
service Gauges { rpc Watch (stream River) returns (stream google.protobuf.Any) { option deprecated = true; }
  rpc Get (River) returns (River); ; }
"""
OF_GOOGLE = ("any", "api", "duration", "empty", "field_mask", "struct", "timestamp", "type", "wrappers")


def text_of(text: str, references: dict[str, str] | None = None) -> str:
    return ProtobufDefinition(text, references or {}, is_new=True).text


def test_the_text_of_everything() -> None:
    text = text_of(EVERYTHING)
    assert (
        text
        == """syntax = "proto3";
package cz.rivers;

import "google/protobuf/timestamp.proto";
import public "google/protobuf/any.proto";

option (my.own).part = { a : 1 b { c : "}" } };
option java_package = "cz.rivers";
option optimize_for = SPEED;

message River {
  reserved 4, 9 to 11, 40 to max;
  reserved "old", "older";
  string name = 1 [json_name = "called"];
  optional int32 km = 2;
  repeated River.Place places = 3 [(my.rule) = 1.5];
  map<string, River.Kind> kinds = 5;
  map<int32, google.protobuf.Timestamp> times = 6;
  oneof source {
    option (x) = "y";
    string spring = 7;
    River.Place place = 8;
  }
  bytes message = 12;
  int64 optional = 13;
  repeated sint32 enum = 14 [packed = false];
  message Place {
    double lat = 1;
    double lon = 2;
  }
  enum Kind {
    option allow_alias = true;
    UNKNOWN = 0;
    STREAM = 1 [deprecated = true];
    BROOK = 1;
    COLD = -3;
  }
}

service Gauges {
  rpc Watch (stream River) returns (stream google.protobuf.Any) {
    option deprecated = true;
  }
  rpc Get (River) returns (River);
}
"""
    )
    assert text_of(text) == text


@pytest.mark.parametrize("name", OF_GOOGLE)
def test_googles_own_files_survive_the_way_to_text_and_back(name: str) -> None:
    data = importlib.import_module(f"google.protobuf.{name}_pb2").DESCRIPTOR.serialized_pb
    file = descriptor_pb2.FileDescriptorProto.FromString(data)
    linked = LinkedFile(descriptor_pb2.FileDescriptorProto.FromString(data), {})
    back = LinkedFile(parse_proto(printed(linked.file, linked.shortened)), {}).file
    back.name = file.name
    for made in (file, back):
        without_json_names(made.message_type)
        made.ClearField("options")
    assert back == file


def without_json_names(messages: Any) -> None:
    for message in messages:
        for field in message.field:
            if field.json_name == json_name(field.name):
                field.ClearField("json_name")
        without_json_names(message.nested_type)


def test_a_descriptor_in_base64_is_stored_as_text_and_given_back() -> None:
    registry = LocalRegistry()
    data = importlib.import_module("google.protobuf.struct_pb2").DESCRIPTOR.serialized_pb
    coded = base64.b64encode(data).decode()
    assert registry.register("s", coded, schemaType="PROTOBUF").tree == {"id": 1}
    text = registry.ask("GET", "/schemas/ids/1").tree["schema"]
    assert text.startswith('syntax = "proto3";\npackage google.protobuf;\n')
    assert registry.register("t", text, schemaType="PROTOBUF").tree == {"id": 1}
    back = registry.ask("GET", "/schemas/ids/1?format=serialized").tree["schema"]
    assert descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(back)).message_type[0].name == "Struct"
    looked_up = registry.ask("POST", "/subjects/s", {"schema": coded, "schemaType": "PROTOBUF"}).tree
    assert looked_up["schemaType"] == "PROTOBUF" and looked_up["version"] == 1


def test_imports_are_references_by_their_paths() -> None:
    registry = LocalRegistry()
    river = 'syntax = "proto3"; package cz; message River { string name = 1; }'
    gauge = 'syntax = "proto3"; package cz; import "r/river.proto"; message Gauge { River river = 1; }'
    registry.register("river", river, schemaType="PROTOBUF")
    refers = [{"name": "r/river.proto", "subject": "river", "version": 1}]
    assert registry.register("gauge", gauge, schemaType="PROTOBUF", references=refers).tree == {"id": 2}
    serialized = registry.ask("GET", "/subjects/gauge/versions/1?format=serialized").tree["schema"]
    file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(serialized))
    assert file.message_type[0].field[0].type_name == ".cz.River" and list(file.dependency) == ["r/river.proto"]
    assert registry.register("bad", gauge, schemaType="PROTOBUF").tree["error_code"] == 42201
    decimal = 'syntax = "proto3"; import "confluent/type/decimal.proto"; message M { confluent.type.Decimal d = 1; }'
    assert registry.register("decimal", decimal, schemaType="PROTOBUF").status == 200


@pytest.mark.parametrize(
    "wrong",
    [
        "message", "message M", "message M {", "message M { optional int32 a = 1 }", "}", "?", '"', "/* ", "enum E {",
        'syntax = "proto4";', 'edition = "2023";', "message M { int32 a = 1; }", "message M { optional int32 a = 0; }",
        "message M { optional int32 a = 536870912; }", "message M { optional int32 a = 19000; }",
        "message M { optional int32 a = 1; optional int32 b = 1; }", "message M { optional Missing a = 1; }",
        "message M { optional int32 a = 1; optional int32 a = 2; }", "message M {} message M {}",
        'syntax = "proto3"; message M { required int32 a = 1; }', 'syntax = "proto3"; enum E { A = 1; }',
        "message M { map<double, int32> a = 1; }", "message M { oneof o { map<int32, int32> a = 1; } }",
        "message M { optional group G = 1 { } }", "message M { oneof o { repeated int32 a = 1; } }",
        "message M { reserved 2 to 1; }", "message M { optional int32 a = 1 [default = ]; }", 'import "missing.proto";',
        "enum E { A = 99999999999; }", "message M { reserved 1; optional int32 a = 1; }", "package a; package b;",
        "message A {" * 40 + "}" * 40, "AAAA", "zzzz", "option a = {" + "{" * 50, "option a.b.c",
    ],
)  # fmt: skip
def test_a_wrong_text_is_refused_with_a_sentence(wrong: str) -> None:
    with pytest.raises(Refused) as refused:
        Definitions().parse(Schema(wrong, "PROTOBUF"), {}, is_new=True)
    assert refused.value.code == 42201 and 10 < len(str(refused.value)) < 400


WORDS = some.sampled_from(
    ["message", "enum", "M", "{", "}", ";", "=", "1", "int32", "optional", "oneof", "map", "<", ">", ",", "[", "]",
     '"a"', "reserved", "to", "max", "option", "(", ")", ".", "-", "service", "rpc", "returns", "stream", "import"]
)  # fmt: skip


@given(some.lists(WORDS, max_size=40) | some.binary(max_size=60).map(lambda data: [base64.b64encode(data).decode()]))
def test_no_text_is_anything_but_a_schema_or_refused(words: list[str]) -> None:
    try:
        text = text_of(" ".join(words))
    except Refused:
        return
    assert text_of(text) == text


TYPES = {
    "money": "Money", "date": "Date", "datetime": "DateTime", "color": "Color", "decimal": "Decimal",
    "timeofday": "TimeOfDay", "interval": "Interval",
}  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
def test_common_types_of_google_need_no_reference_since_javas_serializers_make_none(name: str) -> None:
    """redpanda 5771: a schema with google.type.Money was refused, and its producer could not start."""
    text = f'syntax = "proto3"; import "google/type/{name}.proto"; message M {{ google.type.{TYPES[name]} a = 1; }}'
    assert f'import "google/type/{name}.proto";' in text_of(text)
    assert not is_known_to_all(f"google/type/{name}.proto") and is_known_to_all("google/protobuf/any.proto")


def test_a_reference_takes_the_place_of_a_common_type() -> None:
    own = 'syntax = "proto3"; package google.type; message Money { int32 all = 1; }'
    text = 'syntax = "proto3"; import "google/type/money.proto"; message M { google.type.Money a = 1; }'
    definition = ProtobufDefinition(text, {"google/type/money.proto": own}, is_new=True)
    assert definition.unreadable(ProtobufDefinition(text, {}, is_new=True), "new", "old")
