"""What a user types as JSON is what a serializer of the registry writes, and what is shown goes back the same way."""

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.console.search.avro_values import JsonToAvro
from moldau.console.search.decoding import RegistryDecoder, WrittenWith
from moldau.console.search.encoding import RegistryEncoder
from moldau.errors import ConfigError, DoesNotFit, RegistryError
from moldau.serializers import AvroSerializer, JsonSchemaSerializer, ProtobufSerializer, Schema, SchemaRegistry
from moldau.testing import Broker, RunningRegistry

RIVER = {
    "type": "record", "name": "River", "namespace": "cz", "fields": [
        {"name": "name", "type": "string"},
        {"name": "km", "type": ["null", "int"], "default": None},
        {"name": "mark", "type": ["null", "bytes", "string"], "default": None},
        {"name": "since", "type": {"type": "int", "logicalType": "date"}, "default": 0},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}, "default": 0},
        {"name": "width", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 2}]},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["RIVER", "BROOK"]}, "default": "RIVER"},
        {"name": "into", "type": {"type": "array", "items": "River"}, "default": []},
        {"name": "id", "type": ["null", {"type": "fixed", "name": "Id", "size": 2}], "default": None},
        {"name": "code", "type": "bytes", "default": "\u00ff"},
        {"name": "pair", "type": {"type": "fixed", "name": "Pair", "size": 2}, "default": "ab"},
        {"name": "levels", "type": {"type": "map", "values": "double"}, "default": {}},
    ],
}  # fmt: skip
PROTO = 'syntax = "proto3"; message Lake { string name = 1; } message River { string name = 1; int64 km = 2; }'
RIVER_OF_DEFAULTS = {"name": "Vltava", "km": 430, "width": None, "code": "/w==", "pair": "YWI="}
VLTAVA: dict[str, Any] = {
    "name": "Vltava", "km": 430, "mark": "text", "since": "2026-11-28", "at": "2026-11-28T08:00:00.500000+00:00",
    "width": "12.50", "kind": "RIVER", "into": [], "id": "AAE=", "levels": {"Praha": 1.5}, "code": "/w==",
    "pair": "YWI=",
}  # fmt: skip


@pytest.fixture(scope="module")
def registry() -> Iterator[SchemaRegistry]:
    with Broker() as broker, RunningRegistry(broker) as running:
        made = SchemaRegistry(running.url)
        made.register("rivers-value", Schema(json.dumps(RIVER)))
        made.register("plain-value", Schema('{"type": "object", "required": ["n"]}', "JSON"))
        made.register("proto-value", Schema(PROTO, "PROTOBUF"))
        yield made


@pytest.mark.parametrize(
    ("named", "tree", "serializer"),
    [
        ("rivers-value", RIVER_OF_DEFAULTS, AvroSerializer),
        ("plain-value", {"n": 1, "text": "ž"}, JsonSchemaSerializer),
        ("proto-value", {"name": "Lipno"}, ProtobufSerializer),
    ],
)
def test_the_bytes_are_those_of_a_serializer(
    registry: SchemaRegistry, named: str, tree: Any, serializer: type[AvroSerializer]
) -> None:
    of_bytes = {"code": b"\xff", "pair": b"ab"} if tree is RIVER_OF_DEFAULTS else {}
    expected = serializer(registry, use_latest_version=True)({**tree, **of_bytes}, topic=named.removesuffix("-value"))
    for left_out in ((), ("code", "pair")):
        given = {name: one for name, one in tree.items() if name not in left_out}
        assert RegistryEncoder(registry)(named, json.dumps(given)) == expected


def test_what_is_shown_of_a_record_is_encoded_to_the_same_bytes(registry: SchemaRegistry) -> None:
    encode, decode = RegistryEncoder(registry), RegistryDecoder(registry)
    proto = registry.version("proto-value").id
    lower = {**VLTAVA, "name": "Otava", "mark": None, "into": [VLTAVA]}
    for named, tree in (("rivers-value", lower), (f"#{proto} River", {"name": "Otava", "km": "113"})):
        data = encode(named, json.dumps(tree))
        noting = WrittenWith(decode)
        shown = noting("value", data)
        assert shown is not None and json.loads(shown) == tree
        assert encode(noting.schemas["value"], shown.decode()) == data
    assert noting.schemas == {"value": f"#{proto} River"}


def test_numbers_that_json_does_not_have_are_shown_and_encoded_again(registry: SchemaRegistry) -> None:
    """A browser reads no NaN: the page of such a record stayed empty, and the record could not be produced again."""
    registry.register("gauges-value", Schema('{"type": "array", "items": ["null", "double"]}'))
    data = RegistryEncoder(registry)("gauges-value", '[1.5, null, "NaN", "-Infinity"]')
    shown = RegistryDecoder(registry)("value", data)
    assert shown == b'[1.5, null, "NaN", "-Infinity"]'
    assert RegistryEncoder(registry)("gauges-value", shown.decode()) == data


@pytest.mark.parametrize(
    ("named", "text", "error", "says"),
    [
        ("rivers-value", "{", DoesNotFit, "not JSON"),
        ("rivers-value", "[]", DoesNotFit, "an object"),
        ("rivers-value", '{"km": 1}', DoesNotFit, "lacks 'name'"),
        ("rivers-value", '{"name": "x"}', DoesNotFit, "lacks 'width'"),
        ("rivers-value", '{"name": "x", "kms": 1}', DoesNotFit, "'kms'"),
        ("rivers-value", '{"name": 1}', DoesNotFit, "name is text"),
        ("plain-value", "{}", DoesNotFit, "JSON Schema"),
        ("plain-value", '{"n": NaN}', DoesNotFit, "NaN"),
        ("proto-value", '{"river": "x"}', DoesNotFit, "Lake"),
        ("proto-value", "1", DoesNotFit, "Lake"),
        ("nothing-value", "{}", RegistryError, "nothing-value"),
        ("#99", "{}", RegistryError, "99"),
        ("#x", "{}", ConfigError, "#7"),
        ("#99999999999", "{}", ConfigError, "#7"),
        ("rivers-value", "[" * 100_000, DoesNotFit, "not JSON"),
    ],
)
def test_what_cannot_be_encoded_is_a_sentence(
    registry: SchemaRegistry, named: str, text: str, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says) as refused:
        RegistryEncoder(registry)(named, text)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("schema", "value", "made"),
    [
        ("long", 2**62, 2**62),
        ("double", 1, 1.0),
        (["null", "string"], None, None),
        (["bytes", "string"], "AAE=", "AAE="),
        (["null", "bytes"], "AAE=", b"\0\1"),
        (["null", "double"], "-Infinity", -math.inf),
        (["double", "string"], "NaN", "NaN"),
        ({"type": "array", "items": "int"}, [1, 2], [1, 2]),
        ({"type": "string", "logicalType": "uuid"}, "x", "x"),
    ],
)
def test_values_of_avro_are_made_of_json(schema: Any, value: Any, made: Any) -> None:
    assert JsonToAvro(schema).of(value) == made


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ("int", 2**31),
        ("int", True),
        ("int", 1.5),
        ("boolean", 1),
        ("bytes", "?"),
        ("null", 0),
        ("double", "1"),
        ("double", 10**400),
        (["null", "int"], "x"),
        ([], 1),
        ({"type": "fixed", "name": "F", "size": 3}, "AAE="),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, ["A"]),
        ({"type": "int", "logicalType": "date"}, "soon"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, "much"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, []),
    ],
)
def test_values_that_do_not_fit_avro_are_refused(schema: Any, value: Any) -> None:
    with pytest.raises(DoesNotFit):
        JsonToAvro(schema).of(value)


def test_a_value_that_nests_without_end_is_refused() -> None:
    node = {"type": "record", "name": "N", "fields": [{"name": "n", "type": ["null", "N"]}]}
    value: Any = None
    for _ in range(400):
        value = {"n": value}
    with pytest.raises(DoesNotFit):
        JsonToAvro(node).of(value)
