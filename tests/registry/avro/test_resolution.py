"""Which Avro schema reads what another wrote: the specification's rules, one by one, and the levels made of them."""

import json
from typing import Any

import pytest

from moldau.registry.avro.schema import AvroDefinition
from moldau.registry.levels import LEVELS, incompatibilities
from tests.registry.asking import record

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
PROMOTED = {("int", "long"), ("int", "float"), ("int", "double"), ("long", "float"), ("long", "double"),
            ("float", "double"), ("string", "bytes"), ("bytes", "string")}  # fmt: skip
"""(writer, reader)"""
ENUM: dict[str, Any] = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
FIXED = {"type": "fixed", "name": "F", "size": 4}
LIST = record("L", ("value", "int"), ("next", ["null", "L"], None))


def definition(tree: Any) -> AvroDefinition:
    return AvroDefinition(json.dumps(tree), {}, is_new=False)


def problems(reader: Any, writer: Any) -> list[str]:
    """The kinds of the problems, and where."""
    found = definition(reader).unreadable(definition(writer), "new", "old")
    return [f"{one.split(chr(39))[1]} {one.split('path ')[1].split(chr(39))[1]}" for one in found]


@pytest.mark.parametrize("writer", PRIMITIVES)
def test_primitives_are_promoted_as_the_specification_says(writer: str) -> None:
    readers = {reader for reader in PRIMITIVES if not problems(reader, writer)}
    assert readers == {writer, *(reader for one, reader in PROMOTED if one == writer)}


@pytest.mark.parametrize(
    ("reader", "writer", "expected"),
    [
        (record("R", ("a", "int"), ("b", "int", 1)), record("R", ("a", "int")), []),
        (record("R", ("b", "int")), record("R", ("a", "int")), ["READER_FIELD_MISSING_DEFAULT_VALUE /fields/0"]),
        (record("R"), record("R", ("a", "int")), []),
        (record("R", ("a", "long")), record("R", ("a", "int")), []),
        (record("R", ("a", "int")), record("R", ("a", "long")), ["TYPE_MISMATCH /fields/0/type"]),
        (record("R"), record("S"), ["NAME_MISMATCH /name"]),
        (record("x.R"), record("y.R"), []),
        (record("R", aliases=["S"]), record("S"), []),
        (record("R"), "int", ["TYPE_MISMATCH /type"]),
        ("int", record("R"), ["TYPE_MISMATCH /"]),
        ({**ENUM, "symbols": ["A", "B", "C"]}, ENUM, []),
        (ENUM, {**ENUM, "symbols": ["A", "B", "C"]}, ["MISSING_ENUM_SYMBOLS /symbols"]),
        ({**ENUM, "default": "A"}, {**ENUM, "symbols": ["C"]}, []),
        (FIXED, {**FIXED, "size": 8}, ["FIXED_SIZE_MISMATCH /size"]),
        ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}, []),
        ({"type": "map", "values": "int"}, {"type": "map", "values": "long"}, ["TYPE_MISMATCH /values"]),
        (["null", "int"], "int", []),
        (["null", "long"], "int", []),
        (["null", "string"], "int", ["MISSING_UNION_BRANCH /"]),
        ("long", ["int", "long"], []),
        ("int", ["int", "string"], ["TYPE_MISMATCH /"]),
        (["int", "string", "null"], ["string", "int"], []),
        (["int"], ["int", "null"], ["MISSING_UNION_BRANCH /1"]),
        (["null", record("R", ("a", "int", 0))], ["null", record("R")], []),
        (["null", record("R", ("a", "int"))], ["null", record("R")], ["MISSING_UNION_BRANCH /1"]),
        (LIST, LIST, []),
        (record("L", ("value", "long"), ("next", ["null", "L"], None)), LIST, []),
    ],
)  # fmt: skip
def test_each_rule_of_resolution(reader: Any, writer: Any, expected: list[str]) -> None:
    assert problems(reader, writer) == expected


def test_a_field_is_found_by_its_alias() -> None:
    reader = record("R")
    reader["fields"] = [{"name": "new", "type": "int", "aliases": ["old"]}]
    assert problems(reader, record("R", ("old", "int"))) == []


def test_recursive_types_that_differ_deep_inside_are_found_out() -> None:
    other = record("L", ("value", "string"), ("next", ["null", "L"], None))
    assert problems(other, LIST) == ["TYPE_MISMATCH /fields/0/type", "MISSING_UNION_BRANCH /fields/1/type/1"]


def test_a_branch_that_fails_only_later_does_not_count_as_readable() -> None:
    """B is compared while A counts as readable, and A is not: what was learned of B then is not true."""
    inner = record("B", ("a", ["null", "A"], None))
    reader, writer = record("A", ("b", inner), ("x", "int")), record("A", ("b", inner))
    assert "READER_FIELD_MISSING_DEFAULT_VALUE /fields/1" in problems(reader, writer)
    assert "MISSING_UNION_BRANCH /fields/0/type/fields/0/type/1" in problems(reader, writer)


ADDED, REMOVED, BOTH = record("R", ("a", "int"), ("b", "int")), record("R"), record("R", ("a", "int"))


@pytest.mark.parametrize("level", LEVELS)
def test_each_level_compares_in_its_direction_and_as_far_back_as_it_says(level: str) -> None:
    def allows(new: Any, *old: Any) -> bool:
        previous = [(number, definition(one)) for number, one in enumerate(old, 1)]
        return not incompatibilities(level, definition(new), previous)

    assert allows(BOTH, BOTH)
    assert allows(ADDED, BOTH) == (level in ("NONE", "FORWARD", "FORWARD_TRANSITIVE"))
    assert allows(REMOVED, BOTH) == (level in ("NONE", "BACKWARD", "BACKWARD_TRANSITIVE"))
    assert allows(BOTH, "int", BOTH) == (not level.endswith("_TRANSITIVE"))
    assert allows(BOTH)


def test_the_version_that_the_schema_does_not_fit_is_named() -> None:
    previous = [(1, definition("int")), (2, definition(BOTH)), (3, definition(BOTH))]
    messages = incompatibilities("BACKWARD_TRANSITIVE", definition(BOTH), previous)
    assert messages[-3:] == [
        "{oldSchemaVersion: 1}",
        "{oldSchema: '\"int\"'}",
        "{compatibility: 'BACKWARD_TRANSITIVE'}",
    ]
