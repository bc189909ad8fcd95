"""Parts of `oneOf` and its like are matched: exactly, and in few comparisons where few parts have changed."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from moldau.registry.json_schema import combinations, comparing
from moldau.registry.json_schema.schema import JsonDefinition

SIZES = some.integers(0, 5)


def event(number: int, **more: Any) -> dict[str, Any]:
    kind = {"const": f"event {number}"}
    return {"type": "object", "properties": {"kind": kind, **more}, "required": ["kind"], "additionalProperties": False}


def changes(old: Any, new: Any) -> list[str]:
    def made(tree: Any) -> JsonDefinition:
        return JsonDefinition(json.dumps(tree), {}, is_new=False)

    return [one.split('"')[1] for one in made(new).unreadable(made(old), "new", "old")]


@given(some.data(), SIZES, SIZES)
def test_no_more_pairs_can_be_made_whatever_was_guessed(data: some.DataObject, before: int, after: int) -> None:
    edges = data.draw(some.sets(some.tuples(some.integers(0, 4), some.integers(0, 4))))
    guesses = data.draw(some.dictionaries(some.integers(0, 4), some.integers(0, 4)))
    guesses = {one: at for one, at in guesses.items() if one < before and at < after}
    found = combinations._matched(guesses, before, after, lambda one, at: (one, at) in edges)
    best = max(
        sum((one, at) in edges for one, at in zip(olds, news, strict=True))
        for size in range(min(before, after) + 1)
        for olds in itertools.combinations(range(before), size)
        for news in itertools.permutations(range(after), size)
    )
    assert found == best


def test_a_few_changes_among_hundreds_of_parts_need_few_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "PAIRS_MAX", 10_000)
    old = [event(number) for number in range(600)]
    assert changes({"oneOf": old}, {"oneOf": [event(1000), *old[5:], *old[:5]]}) == []
    assert changes({"oneOf": old}, {"oneOf": [event(number, more={}) for number in range(600)]}) == []
    assert changes({"oneOf": old}, {"oneOf": old[1:]}) == ["SUM_TYPE_NARROWED"]
    assert changes({"oneOf": old}, {"oneOf": [*old[1:], event(1000)]}) == ["COMBINED_TYPE_SUBSCHEMAS_CHANGED"]


def test_parts_that_are_references_are_compared_where_they_lead() -> None:
    old = {"oneOf": [{"$ref": f"#/definitions/{name}"} for name in "ab"], "definitions": {"a": event(1), "b": event(2)}}
    assert changes(old, {**old, "definitions": {"a": event(2), "b": event(1)}}) == []
    assert changes(old, {**old, "definitions": {"a": event(2), "b": event(3)}}) == ["COMBINED_TYPE_SUBSCHEMAS_CHANGED"]


def test_a_hundred_parts_that_have_all_changed_are_compared_each_with_each() -> None:
    old, new = ([event(number + more) for number in range(100)] for more in (0, 1000))
    assert changes({"oneOf": old}, {"oneOf": new}) == ["COMBINED_TYPE_SUBSCHEMAS_CHANGED"]
