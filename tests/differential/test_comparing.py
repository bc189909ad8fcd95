"""The referee sees: wrong codes, shifted offsets, missing elements; and it does not see what a rule takes out."""

import uuid

import pytest

from moldau.protocol.apis import FETCH, JOIN_GROUP, METADATA, PRODUCE
from tests.differential.batches import NOW, T0, batch, read_batches
from tests.differential.comparing import ABSENT, Accepted, Difference, accepts, compare, mutations, show, weigh
from tests.differential.normalising import normalised
from tests.differential.playing import Outcome
from tests.differential.recording import ANY
from tests.differential.script import Step, Tree

STEP = Step("a step", PRODUCE, 8)


def reply(tree: Tree, **variables: object) -> Outcome:
    return Outcome("reply", tree, variables)


def found(kafka: Outcome, ours: Outcome, step: Step = STEP) -> list[str]:
    one, other = (normalised(step.api.name, outcome, set()) for outcome in (kafka, ours))
    return [difference.path for difference in compare(step, one, other, set())]


PRODUCED = {
    "responses": [
        {
            "name": "t",
            "partition_responses": [
                {"index": 0, "error_code": 0, "base_offset": 7, "error_message": None},
                {"index": 1, "error_code": 3, "base_offset": -1, "error_message": "no such"},
            ],
        }
    ],
    "throttle_time_ms": 0,
}


def test_equal_replies_are_equal() -> None:
    assert found(reply(PRODUCED), reply(PRODUCED)) == []


def test_every_mutation_of_a_reply_is_seen() -> None:
    bent = list(mutations(reply(PRODUCED)))
    assert len(bent) == 6
    for what, outcome in bent:
        assert found(reply(PRODUCED), outcome), what
        assert found(outcome, reply(PRODUCED)), what


def test_mutations_of_records_are_seen() -> None:
    records = read_batches(batch((b"k", b"v"), b"w"))
    tree = {"responses": [{"partitions": [{"error_code": 0, "records": records}]}]}
    step = Step("fetch", FETCH, 12)
    kinds = [what for what, outcome in mutations(reply(tree)) if found(reply(tree), outcome, step)]
    assert len(kinds) == len(list(mutations(reply(tree))))
    assert any("records[0].base_offset" in what for what in kinds)


def test_another_outcome_is_a_difference() -> None:
    assert found(reply(PRODUCED), Outcome("closed")) == ["outcome"]
    assert found(Outcome("silence"), reply(PRODUCED)) == ["outcome"]
    assert found(Outcome("closed"), Outcome("closed")) == []


def test_what_kafkas_plays_left_open_equals_anything() -> None:
    assert compare(STEP, Outcome("reply", {"a": ANY, "b": 1}), Outcome("reply", {"a": 5, "b": 1}), set()) == []
    assert compare(STEP, Outcome("either", ANY), Outcome("closed"), set()) == []
    left = compare(STEP, Outcome("reply", {"a": ANY, "b": 1}), Outcome("reply", {"a": 5, "b": 2}), set())
    assert [difference.path for difference in left] == ["b"]


def test_null_is_not_an_empty_string_nor_false_zero() -> None:
    assert found(reply({"a": None}), reply({"a": ""})) == ["a"]
    assert found(reply({"a": False}), reply({"a": 0})) == ["a"]


def test_ids_ports_hosts_texts_and_times_of_the_clock_may_differ() -> None:
    one = {
        "host": "a",
        "port": 1,
        "cluster_id": "x",
        "topic_id": uuid.UUID(int=5),
        "error_message": "no",
        "timestamp": NOW,
    }
    two = {
        "host": "b",
        "port": 2,
        "cluster_id": "y",
        "topic_id": uuid.UUID(int=6),
        "error_message": "No.",
        "timestamp": NOW + 9,
    }
    step = Step("metadata", METADATA, 12)
    assert found(reply(one), reply(two), step) == []
    assert found(reply(one), reply({**two, "error_message": None}), step) == ["error_message"]
    assert found(reply(one), reply({**two, "topic_id": uuid.UUID(int=0)}), step) == ["topic_id"]
    assert found(reply({"timestamp": T0}), reply({"timestamp": T0 + 1}), step) == ["timestamp"]


def test_an_id_that_was_saved_must_be_the_same_wherever_it_stands() -> None:
    step = Step("join", JOIN_GROUP, 5)
    kafka = reply({"leader": "c-1", "member_id": "c-1"}, me="c-1")
    assert found(kafka, reply({"leader": "d-2", "member_id": "d-2"}, me="d-2"), step) == []
    assert found(kafka, reply({"leader": "e-3", "member_id": "d-2"}, me="d-2"), step) == ["leader"]


def test_arrays_without_an_order_are_compared_by_name_and_others_in_their_order() -> None:
    step = Step("metadata", METADATA, 1)
    there = {"topics": [{"name": "a"}, {"name": "b"}]}
    assert found(reply(there), reply({"topics": there["topics"][::-1]}), step) == []
    assert found(reply({"replica_nodes": [1, 2]}), reply({"replica_nodes": [2, 1]}), step) == [
        "replica_nodes[0]",
        "replica_nodes[1]",
    ]


def test_one_missing_of_many_with_names_is_one_difference() -> None:
    there = {"c": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}
    assert found(reply(there), reply({"c": [{"name": "a"}, {"name": "c"}]})) == ["c[1]"]
    assert found(reply(there), reply({"c": [*there["c"], {"name": "d"}]})) == ["c[3]"]


def test_a_difference_is_accepted_by_request_version_field_and_step() -> None:
    difference = Difference(STEP, "responses[0].error_code", 1, 2)
    accepted = Accepted("Produce", (7, 9), "responses[*].error_code", "since")
    assert accepts(accepted, difference)
    for wrong in (
        Accepted("Fetch", (7, 9), "responses[*].error_code", "since"),
        Accepted("Produce", (9, 9), "responses[*].error_code", "since"),
        Accepted("Produce", (7, 9), "responses[*].index", "since"),
        Accepted("Produce", (7, 9), "responses[*].error_code", "since", "another step"),
    ):
        assert not accepts(wrong, difference)


def test_an_element_that_one_side_lacks_is_accepted_by_its_name() -> None:
    accepted = Accepted("Produce", (8, 8), "c[*]", "since", about=("a", "b"))
    assert accepts(accepted, Difference(STEP, "c[0]", {"name": "b"}, ABSENT))
    assert accepts(accepted, Difference(STEP, "c[0]", ABSENT, {"name": "a"}))
    assert not accepts(accepted, Difference(STEP, "c[0]", {"name": "c"}, ABSENT))
    assert not accepts(accepted, Difference(STEP, "c[0]", 1, 2))


def test_what_nobody_accepted_and_what_did_not_come_up_are_told() -> None:
    used = Accepted("Produce", (8, 8), "a", "since")
    unused = Accepted("Produce", (8, 8), "b", "since")
    mine = [Difference(STEP, "a", 1, 2), Difference(STEP, "c", 1, 2)]
    assert weigh(mine, (used, unused)) == ([mine[1]], [unused])


@pytest.mark.parametrize("tree", [PRODUCED, None, {"long": "x" * 10_000}])
def test_both_replies_are_shown_with_their_differences(tree: Tree) -> None:
    shown = show(STEP, reply(tree), Outcome("closed"), [Difference(STEP, "outcome", "reply", "closed")])
    assert "Kafka 'reply', Moldau 'closed'" in shown
    assert len(shown) < 8000
