"""JSON Schema serializers: checks, references, and bytes that fit no schema."""

import json
from typing import Any

import pytest

from moldau.client.registry.json_schema import JsonSchemaDeserializer, JsonSchemaSerializer
from moldau.client.registry.schema_registry import SchemaRegistry
from moldau.client.registry.schemas import JSON, Reference, Schema
from moldau.errors import DoesNotFit, NotFramed, SchemaInvalid

RIVER = {
    "$schema": "http://json-schema.org/draft-07/schema#", "title": "River", "type": "object",
    "properties": {"name": {"type": "string"}, "km": {"type": "number", "minimum": 0}}, "required": ["name"],
}  # fmt: skip


def test_a_value_crosses_with_its_schema_id_in_front(registry: SchemaRegistry) -> None:
    serializer = JsonSchemaSerializer(registry, RIVER)
    data = serializer({"name": "Úhlava", "km": 108.5}, "t")
    assert data == b"\0\0\0\0\1" + '{"name":"Úhlava","km":108.5}'.encode()
    assert JsonSchemaDeserializer(registry)(data) == {"name": "Úhlava", "km": 108.5}
    assert serializer(None, "t") is None and JsonSchemaDeserializer(registry)(None) is None
    JsonSchemaSerializer(registry, RIVER, subject_name_strategy="record")({"name": "a"}, "t")
    assert registry.subjects() == ["t-value", "River"]


@pytest.mark.parametrize(
    ("value", "sentence"),
    [({"km": 1}, '"name" is a required property'), ({"name": "x", "km": -1}, r"the value\['km'\] does not fit"),
     ([], "is not of type"), ({"name": float("nan")}, "cannot be JSON"), ({"name": object()}, "cannot be JSON")],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_its_callers_error(registry: SchemaRegistry, value: Any, sentence: str) -> None:
    with pytest.raises(DoesNotFit, match=sentence):
        JsonSchemaSerializer(registry, RIVER)(value, "t")


@pytest.mark.parametrize(
    ("data", "kind"),
    [(b"{}", NotFramed), (b"\0\0\0\0\1{", DoesNotFit), (b"\0\0\0\0\1\xff", DoesNotFit), (b"\0\0\0\0\1{}", DoesNotFit),
     (b"\0\0\0\0\1" + b"[" * 100_000, DoesNotFit), (b'\0\0\0\0\1{"name":"a"}x', DoesNotFit)],
)  # fmt: skip
def test_bytes_that_cannot_be_read_say_why(registry: SchemaRegistry, data: bytes, kind: Any) -> None:
    JsonSchemaSerializer(registry, RIVER).for_topic("t", "value")
    with pytest.raises(kind):
        JsonSchemaDeserializer(registry)(data)


def test_a_schema_without_a_draft_may_be_one_of_draft_7(registry: SchemaRegistry) -> None:
    pair = {"type": "array", "items": [{"type": "string"}, {"type": "number"}]}
    serializer = JsonSchemaSerializer(registry, pair)
    assert JsonSchemaDeserializer(registry)(serializer(["Úhlava", 108.5], "t")) == ["Úhlava", 108.5]
    with pytest.raises(DoesNotFit, match=r"\[1\]"):
        serializer(["Úhlava", "long"], "t")


def test_references_come_from_the_registry_and_never_from_the_network(registry: SchemaRegistry) -> None:
    registry.register("river", Schema(json.dumps(RIVER), JSON))
    gauge = {"type": "object", "properties": {"river": {"$ref": "river.json"}}}
    serializer = JsonSchemaSerializer(registry, Schema(json.dumps(gauge), JSON, (Reference("river.json", "river", 1),)))
    assert JsonSchemaDeserializer(registry)(serializer({"river": {"name": "x"}}, "t")) == {"river": {"name": "x"}}
    with pytest.raises(DoesNotFit, match=r"\['river'\]"):
        serializer({"river": {}}, "t")
    for wrong in ({"$ref": "http://127.0.0.1:1/x.json"}, {"type": "nothing"}, 5):
        with pytest.raises(SchemaInvalid, match="JSON Schema is wrong"):
            JsonSchemaSerializer(registry, Schema(json.dumps(wrong), JSON)).for_topic("t", "value")
