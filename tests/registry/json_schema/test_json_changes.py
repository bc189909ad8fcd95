"""Which changes of a JSON Schema keep old values valid: the table, change by change, and what jsonschema-rs says."""

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as some

from moldau.client.registry.schemas import Schema
from moldau.registry.json_schema.schema import JsonDefinition
from moldau.registry.kinds import Definitions
from moldau.registry.refusals import Refused
from tests.registry.asking import LocalRegistry

INT, TEXT, NUM = {"type": "integer"}, {"type": "string"}, {"type": "number"}


def closed(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False, "required": list(required)}


def opened(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


def kinds(old: Any, new: Any, references: dict[str, str] | None = None) -> list[str]:
    def made(tree: Any) -> JsonDefinition:
        return JsonDefinition(json.dumps(tree), references or {}, is_new=False)

    return [one.split('"')[1] for one in made(new).unreadable(made(old), "new", "old")]


PARTLY = {"type": "object", "additionalProperties": TEXT}
TUPLE = {"type": "array", "items": [INT, TEXT]}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (INT, INT, []), (INT, NUM, []), (NUM, INT, ["TYPE_NARROWED"]), (INT, TEXT, ["TYPE_CHANGED"]),
        (INT, True, []), (INT, {}, []), ({}, INT, ["TYPE_CHANGED"]), (False, INT, []), (INT, False, ["TYPE_CHANGED"]),
        (INT, {**INT, "title": "t", "description": "d", "default": 1, "$id": "http://x/y"}, []),
        (INT, {**INT, "maximum": 3}, ["MAXIMUM_ADDED"]), ({**INT, "maximum": 3}, INT, []),
        ({**INT, "maximum": 3}, {**INT, "maximum": 4}, []),
        ({**INT, "maximum": 3}, {**INT, "maximum": 2}, ["MAXIMUM_DECREASED"]),
        ({**INT, "minimum": 3}, {**INT, "minimum": 2}, []),
        ({**INT, "minimum": 3}, {**INT, "minimum": 4}, ["MINIMUM_INCREASED"]),
        ({**INT, "maximum": 3}, {**INT, "maximum": 3, "exclusiveMaximum": True},
         ["MAXIMUM_REMOVED", "EXCLUSIVE_MAXIMUM_ADDED"][1:]),
        ({**INT, "maximum": 3, "exclusiveMaximum": True}, {**INT, "maximum": 3}, []),
        ({**NUM, "exclusiveMinimum": 1}, {**NUM, "minimum": 1}, []),
        ({**NUM, "minimum": 2}, {**NUM, "exclusiveMinimum": 1}, []),
        ({**NUM, "minimum": 1}, {**NUM, "exclusiveMinimum": 1}, ["EXCLUSIVE_MINIMUM_ADDED"]),
        ({**NUM, "exclusiveMaximum": 5}, {**NUM, "maximum": 4}, ["MAXIMUM_ADDED"]),
        ({**TEXT, "maxLength": 3}, {**TEXT, "maxLength": 3, "minLength": 1}, ["MIN_LENGTH_ADDED"]),
        ({**INT, "multipleOf": 4}, {**INT, "multipleOf": 2}, []),
        ({**INT, "multipleOf": 2}, {**INT, "multipleOf": 4}, ["MULTIPLE_OF_EXPANDED"]),
        ({**INT, "multipleOf": 2}, {**INT, "multipleOf": 3}, ["MULTIPLE_OF_CHANGED"]),
        ({**TEXT, "maxLength": 3}, {**TEXT, "maxLength": 2}, ["MAX_LENGTH_DECREASED"]),
        ({**TEXT, "pattern": "a"}, TEXT, []), (TEXT, {**TEXT, "pattern": "a"}, ["PATTERN_ADDED"]),
        ({**TEXT, "pattern": "a"}, {**TEXT, "pattern": "b"}, ["PATTERN_CHANGED"]),
        ({"enum": ["a"]}, {"enum": ["a", "b"]}, []), ({"enum": ["a", "b"]}, {"enum": ["a"]}, ["ENUM_ARRAY_NARROWED"]),
        ({"enum": ["a"]}, {"enum": ["b"]}, ["ENUM_ARRAY_CHANGED"]), ({"enum": [1]}, {"enum": [True]},
                                                                     ["ENUM_ARRAY_CHANGED"]),
        ({"const": 1}, {"const": 1}, []), ({"const": 1}, {"const": 2}, ["ENUM_ARRAY_CHANGED"]),
        # Content models: what may be added or removed depends on whether further properties are allowed.
        (opened(a=INT), opened(a=INT, b=INT), ["OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"]),
        (opened(a=INT), opened("b", a=INT, b=INT), ["REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL"]),
        (opened(a=INT), opened("b", a=INT, b={**INT, "default": 1}),
         ["REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL"]),
        (opened(a=INT), opened(a=INT, b={}), []), (opened(a=INT, b=INT), opened(a=INT), []),
        (closed(a=INT), closed(a=INT, b=INT), []),
        (closed(a=INT), closed("b", a=INT, b=INT), ["REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL"]),
        (closed(a=INT), closed("b", a=INT, b={**INT, "default": 1}), []),
        (closed(a=INT, b=INT), closed(a=INT), ["PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL"]),
        (closed(a=INT, b=False), closed(a=INT), []), (closed(a=INT), opened(a=INT), []),
        (opened(a=INT), closed(a=INT), ["ADDITIONAL_PROPERTIES_REMOVED"]),
        (closed(a=INT), closed("a", a=INT), ["REQUIRED_ATTRIBUTE_ADDED"]),
        (closed(a=INT), closed("a", a={**INT, "default": 1}), []), (closed("a", a=INT), closed(a=INT), []),
        (PARTLY, {**PARTLY, "properties": {"a": TEXT}}, []),
        (PARTLY, {**PARTLY, "properties": {"a": INT}},
         ["TYPE_CHANGED", "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL"]),
        ({**PARTLY, "properties": {"a": TEXT}}, PARTLY, []),
        (PARTLY, {"type": "object"}, []), ({"type": "object"}, PARTLY, ["ADDITIONAL_PROPERTIES_NARROWED"]),
        ({"type": "object"}, {"type": "object", "maxProperties": 3}, ["MAX_PROPERTIES_ADDED"]),
        ({"type": "object"}, {"type": "object", "dependentRequired": {"a": ["b"]}}, ["DEPENDENCY_ARRAY_ADDED"]),
        ({"type": "object", "dependencies": {"a": ["b", "c"]}}, {"type": "object", "dependencies": {"a": ["b"]}}, []),
        # Arrays.
        ({"type": "array", "items": INT}, {"type": "array", "items": NUM}, []),
        ({"type": "array", "items": INT}, {"type": "array", "items": TEXT}, ["TYPE_CHANGED"]),
        ({"type": "array"}, {"type": "array", "uniqueItems": True}, ["UNIQUE_ITEMS_ADDED"]),
        ({"type": "array", "maxItems": 3}, {"type": "array"}, []),
        (TUPLE, {**TUPLE, "additionalItems": False}, ["ADDITIONAL_ITEMS_REMOVED"]),
        ({**TUPLE, "additionalItems": False}, TUPLE, []),
        (TUPLE, {"type": "array", "items": [INT, TEXT, INT]}, ["ITEM_ADDED_TO_OPEN_CONTENT_MODEL"]),
        ({**TUPLE, "additionalItems": False}, {**TUPLE, "items": [INT, TEXT, INT], "additionalItems": False}, []),
        ({**TUPLE, "additionalItems": False}, {"type": "array", "items": [INT], "additionalItems": False},
         ["ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL"]),
        ({"type": "array", "prefixItems": [INT]}, {"type": "array", "prefixItems": [TEXT]}, ["TYPE_CHANGED"]),
        # Combinations.
        (INT, {"oneOf": [TEXT, INT]}, []), (INT, {"type": ["integer", "null"]}, []), (INT, {"anyOf": [INT]}, []),
        ({"oneOf": [TEXT, INT]}, {"oneOf": [INT]}, ["SUM_TYPE_NARROWED"]),
        ({"oneOf": [INT]}, {"oneOf": [INT, TEXT]}, []), ({"oneOf": [INT, TEXT]}, {"oneOf": [TEXT, NUM]}, []),
        ({"oneOf": [INT, TEXT]}, {"oneOf": [TEXT, TEXT]}, ["COMBINED_TYPE_SUBSCHEMAS_CHANGED"]),
        ({"oneOf": [INT, TEXT]}, {"anyOf": [INT, TEXT]}, []),
        ({"anyOf": [INT, TEXT]}, {"oneOf": [INT, TEXT]}, ["COMBINED_TYPE_CHANGED"]),
        ({"allOf": [INT, {"maximum": 3}]}, INT, []),
        ({"allOf": [INT]}, {"allOf": [INT, {"maximum": 3}]}, ["PRODUCT_TYPE_EXTENDED"]),
        # Apicurio 1367: a schema that is compared with combinations of its kind.
        ({**NUM, "maximum": 3}, {**NUM, "anyOf": [{"maximum": 3}, {"multipleOf": 6}]}, []),
        ({**NUM, "maximum": 3}, {**NUM, "anyOf": [{"maximum": 2}, {"multipleOf": 6}]}, ["TYPE_CHANGED"]),
        ({"anyOf": [INT, NUM]}, NUM, []), ({"oneOf": [INT, NUM]}, INT, ["TYPE_CHANGED"]),
        ({"const": "a"}, {"enum": ["a", "b"]}, []), ({"enum": ["a"]}, {"const": "a"}, []),
        ({"enum": ["a", "b"]}, {"const": "a"}, ["ENUM_ARRAY_NARROWED"]),
        ({"const": "a"}, {"const": "b"}, ["ENUM_ARRAY_CHANGED"]),
        ({"const": "a"}, {"enum": ["b", "c"]}, ["ENUM_ARRAY_CHANGED"]),
        ({"not": INT}, {"not": {"type": "integer", "maximum": 3}}, []),
        ({"not": {"type": "integer", "maximum": 3}}, {"not": INT}, ["NOT_TYPE_EXTENDED"]),
    ],
)  # fmt: skip
def test_each_change(old: Any, new: Any, expected: list[str]) -> None:
    assert kinds(old, new) == expected


def test_recursive_schemas_are_compared() -> None:
    def tree(value: Any) -> dict[str, Any]:
        return closed(value=value, next={"$ref": "#"})

    assert kinds(tree(INT), tree(INT)) == [] and kinds(tree(INT), tree(NUM)) == []
    assert "TYPE_CHANGED" in kinds(tree(INT), tree(TEXT))


def test_references_are_followed_by_name_id_pointer_and_anchor() -> None:
    other = {"$id": "http://x/river.json", "definitions": {"km": INT}, "$defs": {"name": {"$anchor": "name", **TEXT}}}
    references = {"river.json": json.dumps(other)}
    for where in ("river.json#/definitions/km", "http://x/river.json#/definitions/km"):
        assert kinds({"$ref": where}, NUM, references) == [] and kinds({"$ref": where}, TEXT, references)
    assert kinds({"$ref": "http://x/river.json#name"}, TEXT, references) == []
    assert kinds({"$ref": "#/$defs/a%20b", "$defs": {"a b": INT}}, INT) == []
    registry = LocalRegistry()
    registry.register("river", other, schemaType="JSON")
    refers = [{"name": "river.json", "subject": "river", "version": 1}]
    gauge = {"$ref": "river.json#/definitions/km"}
    assert registry.register("gauge", gauge, schemaType="JSON", references=refers).tree == {"id": 2}
    assert registry.ask("GET", "/schemas/ids/2").tree["schemaType"] == "JSON"
    assert registry.register("bad", gauge, schemaType="JSON").tree["error_code"] == 42201


def test_a_schema_without_a_draft_may_be_one_of_draft_7() -> None:
    registry = LocalRegistry()
    assert registry.register("pair", TUPLE, schemaType="JSON").tree == {"id": 1}
    assert registry.register("pair", {**TUPLE, "items": [TEXT, TEXT]}, schemaType="JSON").tree["error_code"] == 40901
    newest = "https://json-schema.org/draft/2020-12/schema"
    for wrong in ({"$schema": newest, **TUPLE}, {**TUPLE, "minItems": "a"}):
        assert registry.register("wrong", wrong, schemaType="JSON").tree["error_code"] == 42201


@pytest.mark.parametrize(
    "wrong",
    ["", "x", "[]", "7", '{"type": 7}', '{"type": "strin"}', '{"minimum": "a"}', '{"$ref": "#/nowhere"}',
     '{"$ref": "#"}', '{"required": "a"}', "[" * 50_000, '{"not":' * 200 + "{}" + "}" * 200],
)  # fmt: skip
def test_a_wrong_schema_is_refused_with_a_sentence(wrong: str) -> None:
    with pytest.raises(Refused) as refused:
        Definitions().parse(Schema(wrong, "JSON"), {}, is_new=True)
    assert refused.value.code == 42201 and len(str(refused.value)) < 400


def test_what_would_take_for_ever_to_compare_is_refused() -> None:
    """Parts that have all changed: each one is compared with each of the former ones."""

    def wide(bound: int) -> Any:
        return {"oneOf": [{"type": "integer", "minimum": number, "maximum": bound} for number in range(320)]}

    registry = LocalRegistry()
    assert registry.register("s", wide(3), schemaType="JSON").status == 200
    answer = registry.register("s", wide(2), schemaType="JSON")
    assert answer.tree["error_code"] == 42201 and "pairs" in answer.tree["message"]


def test_a_pattern_of_a_stranger_is_matched_in_linear_time() -> None:
    old = {"type": "object", "patternProperties": {"^(a+)+$": TEXT}, "additionalProperties": False}
    new = {**old, "properties": {"a" * 60 + "b": INT}}
    assert kinds(old, new) == []
    assert kinds(old, {**old, "properties": {"aa": INT}})[0] == "TYPE_CHANGED"


VALUES = some.sampled_from(
    [0, 1, 2.5, -3, "a", "bb", True, None, [], [1, "a"], {}, {"a": 1}, {"a": "x"}, {"b": 2, "a": 1}]
)
LEAVES = some.sampled_from([
    INT, TEXT, NUM, {"type": "null"}, {"type": "boolean"}, {}, True, False, {**INT, "minimum": 1},
    {**TEXT, "maxLength": 1}, {"enum": [1, "a"]}, {"const": 1}, {"type": ["integer", "string"]},
])  # fmt: skip
SCHEMAS = some.recursive(
    LEAVES,
    lambda inner: some.one_of(
        some.builds(
            lambda one, word: {word: one},
            some.lists(inner, min_size=1, max_size=2),
            some.sampled_from(["anyOf", "allOf"]),
        ),
        some.builds(lambda one: {"not": one}, inner),
        some.builds(
            lambda one, more: {"type": "object", "properties": {"a": one}, **more},
            inner,
            some.sampled_from([{}, {"required": ["a"]}, {"additionalProperties": False}]),
        ),
        some.builds(lambda one: {"type": "array", "items": one}, inner),
    ),
    max_leaves=4,
)


@given(SCHEMAS, SCHEMAS, some.lists(VALUES, max_size=14))
def test_what_an_allowed_new_schema_refuses_the_old_one_refused_too(old: Any, new: Any, values: list[Any]) -> None:
    if kinds(old, new):
        return
    before, after = jsonschema_rs.validator_for(old), jsonschema_rs.validator_for(new)
    for value in values:
        assert after.is_valid(value) or not before.is_valid(value), (old, new, value)


def test_text_is_compact_and_normalized_text_is_sorted() -> None:
    made = JsonDefinition('{"type": "object", "b": 1, "a": {"d": 1, "c": 2}}', {}, is_new=True)
    assert made.text == '{"type":"object","b":1,"a":{"d":1,"c":2}}'
    assert made.normalized() == '{"a":{"c":2,"d":1},"b":1,"type":"object"}'
