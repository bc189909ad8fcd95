"""The script covers what it must, and is what it seems: every API at its lowest, a middle and its highest version."""

from collections import Counter

import pytest

from moldau.protocol.apis import APIS
from tests.differential.accepted import ACCEPTED, ACCEPTED_MAX
from tests.differential.brokers import SETTINGS
from tests.differential.script import V, build, check_fields, find, step, steps_of
from tests.differential.steps import SCRIPT

METADATA = APIS[3]


def test_there_are_at_least_120_requests_with_names_of_their_own() -> None:
    assert len([one for one in SCRIPT if not one.collects]) >= 120
    assert [name for name, times in Counter(one.name for one in SCRIPT).items() if times > 1] == []


@pytest.mark.parametrize("api", APIS.values(), ids=lambda api: api.name)
def test_every_api_is_asked_at_its_lowest_a_middle_and_its_highest_version(api: object) -> None:
    played = {one.version for one in SCRIPT if one.api is api and one.frame is None}
    assert api.low in played  # type: ignore[attr-defined]
    assert api.high in played  # type: ignore[attr-defined]
    between = range(api.low + 1, api.high)  # type: ignore[attr-defined]
    assert not between or played & set(between)


def test_every_variable_is_saved_before_it_is_used() -> None:
    saved: set[str] = set()
    for one in SCRIPT:
        assert variables_of(one.fields) <= saved, one.name
        saved |= set(one.save)


def variables_of(value: object) -> set[str]:
    if isinstance(value, V):
        return {value.name}
    if isinstance(value, dict):
        return {name for item in value.values() for name in variables_of(item)}
    return {name for item in value for name in variables_of(item)} if isinstance(value, list | tuple) else set()


def test_accepted_differences_are_few_and_each_says_why() -> None:
    for accepted in ACCEPTED.values():
        assert len(accepted) <= ACCEPTED_MAX
        assert all(len(one.reason) > 20 for one in accepted)
    assert "node.id" in SETTINGS


def test_steps_of_a_newer_kafka_are_not_asked_of_an_older_one() -> None:
    steps = [step("old", METADATA, 4), step("new", METADATA, 4, since="4.4.0")]
    assert steps_of("4.3.1", steps) == steps[:1]
    assert steps_of("4.4.0", steps) == steps_of("4.10.0", steps) == steps


def test_a_field_that_is_none_is_an_error_when_the_script_is_loaded() -> None:
    with pytest.raises(ValueError, match="no field 'nmae'"):
        step("a slip", METADATA, 4, {"topics": [{"nmae": "t"}]})
    check_fields(METADATA.request, {"topics": [{"name": "t"}]}, "right")


def test_variables_and_functions_of_them_are_filled_in() -> None:
    built = build(METADATA.request, {"topics": [{"name": V("t")}, {"name": lambda v: v["t"] * 2}]}, {"t": "ab"})
    assert [topic.name for topic in built.topics] == ["ab", "abab"]


def test_a_path_finds_by_position_and_by_name() -> None:
    tree = {"topics": [{"name": "a", "n": 1}, {"name": "b.c", "n": 2}]}
    assert find(tree, "topics[0].n") == 1
    assert find(tree, "topics[name=b.c].n") == 2
    with pytest.raises(LookupError):
        find(tree, "topics[name=z].n")
