"""Which Avro schemas are valid, and the one way to write each."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from moldau.client.registry.schemas import Schema
from moldau.registry.avro.schema import AvroDefinition
from moldau.registry.kinds import Definitions
from moldau.registry.refusals import Refused
from tests.registry.asking import record


def written(tree: Any, references: dict[str, str] | None = None) -> Any:
    return json.loads(AvroDefinition(json.dumps(tree), references or {}, is_new=True).text)


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ('"int"', '"int"'),
        ("int", '"int"'),
        ('{"type": "int"}', '"int"'),
        ('{"logicalType": "date", "type": "int"}', '{"type":"int","logicalType":"date"}'),
        ('{"items": "int", "type": "array", "x": 1}', '{"type":"array","items":"int","x":1}'),
        ('{"values": ["null", "int"], "type": "map"}', '{"type":"map","values":["null","int"]}'),
        ('{"symbols": ["A"], "name": "n.E", "doc": "d", "default": "A", "type": "enum"}',
         '{"type":"enum","name":"E","namespace":"n","doc":"d","symbols":["A"],"default":"A"}'),
        ('{"size": 3, "name": "F", "type": "fixed", "aliases": ["G"]}',
         '{"type":"fixed","name":"F","size":3,"aliases":["G"]}'),
        (('{"type": "record", "name": "R", "namespace": "n", "z": 1, "aliases": ["S", "m.T"], "fields":'
         '[{"type": "int", "name": "a", "default": 0, "doc": "d", "order": "ascending", "p": "q"}]}'),
         ('{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":"int","doc":"d","default":0,'
         '"p":"q"}],"z":1,"aliases":["S","m.T"]}')),
        (('{"type": "record", "name": "n.R", "fields": [{"name": "a", "type": {"type": "fixed", "name": "n.F", "size":'
         ' 1}}, {"name": "b", "type": "n.F"}, {"name": "c", "type": {"type": "enum", "name": "m.E", "symbols": []}}]}'),
         ('{"type":"record","name":"R","namespace":"n","fields":[{"name":"a","type":{"type":"fixed","name":"F","size":1}}'
         ',{"name":"b","type":"F"},{"name":"c","type":{"type":"enum","name":"E","namespace":"m","symbols":[]}}]}')),
        ('{"type": "record", "name": "R", "doc": "\\u00dapa", "fields": []}',
         '{"type":"record","name":"R","doc":"Úpa","fields":[]}'),
    ],
)  # fmt: skip
def test_a_schema_is_stored_as_avros_own_library_writes_it(given: str, stored: str) -> None:
    assert AvroDefinition(given, {}, is_new=True).text == stored
    assert AvroDefinition(stored, {}, is_new=True).text == stored


@pytest.mark.parametrize(
    "wrong",
    [
        "{", "", "[]]", "7", "{}", '"intt"', '{"type":"record","name":"R"}', '{"type":"record","fields":[]}',
        '{"type":"record","name":"1R","fields":[]}', '{"type":"record","name":"R","fields":[{"name":"a"}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"a","type":"int"}]}',
        '{"type":"record","name":"R","fields":[{"name":"a b","type":"int"}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":"x"}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":["null","int"],"default":"x"}]}',
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int","order":"up"}]}',
        '{"type":"record","name":"int","fields":[]}', '{"type":"enum","name":"E","symbols":["A","A"]}',
        '{"type":"enum","name":"E","symbols":["A"],"default":"B"}', '{"type":"enum","name":"E","symbols":[1]}',
        '{"type":"fixed","name":"F","size":-1}', '{"type":"fixed","name":"F","size":"1"}', '{"type":"array"}',
        '["int","int"]', '[["int"]]', '{"type":"record","name":"R","fields":[],"aliases":"S"}',
        '[{"type":"fixed","name":"F","size":1},{"type":"fixed","name":"F","size":1}]',
        "[" * 50_000, '{"type":"array","items":' * 300 + '"int"' + "}" * 300,
    ],
)  # fmt: skip
def test_a_wrong_schema_is_refused_with_a_sentence(wrong: str) -> None:
    with pytest.raises(Refused) as refused:
        Definitions().parse(Schema(wrong), {}, is_new=True)
    assert refused.value.code == 42201 and len(str(refused.value)) < 300


def test_a_stored_schema_may_have_a_default_that_does_not_fit() -> None:
    wrong = json.dumps(record("R", ("a", "int", "x")))
    assert AvroDefinition(wrong, {}, is_new=False).text


def test_types_of_references_are_names_in_the_text() -> None:
    river = json.dumps(record("cz.River"))
    gauge = record("cz.Gauge", ("river", "River"), ("more", {"type": "array", "items": "cz.River"}))
    stored = written(gauge, {"cz.River": river})
    assert [field["type"] for field in stored["fields"]] == ["River", {"type": "array", "items": "River"}]


NAMES = some.sampled_from(["A", "B", "n.C", "m.n.D"])
TREES = some.recursive(
    some.sampled_from(["null", "int", "string", "A", {"type": "int", "logicalType": "date"}]) | NAMES,
    lambda inner: some.one_of(
        some.lists(inner, max_size=3),
        some.builds(lambda one: {"type": "array", "items": one}, inner),
        some.builds(lambda name, one: record(name, ("x", one)), NAMES, inner),
    ),
    max_leaves=8,
)


@given(TREES)
def test_what_is_stored_is_stored_the_same_again_and_reads_itself(tree: Any) -> None:
    try:
        first = AvroDefinition(json.dumps(tree), {}, is_new=True)
    except Refused:
        return
    again = AvroDefinition(first.text, {}, is_new=True)
    assert again.text == first.text and again.normalized() == first.normalized()
    assert AvroDefinition(first.normalized(), {}, is_new=True).normalized() == first.normalized()
    assert again.unreadable(first, "new", "old") == []
