"""Every partition gets exactly one owner who subscribes to its topic, and the shares are as even as the assignor
promises.
"""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.assignors import Assignment, consecutive, range_assign
from moldau.names import TopicPartition
from tests.worlds.groups.sticky import sticky_assign

PARTITIONS = st.dictionaries(st.sampled_from("tuvw"), st.integers(0, 7))
MEMBERS = st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("tuvwx"), max_size=4))


def names(assignment: Assignment) -> dict[str, str]:
    return {member: " ".join(f"{tp.topic}{tp.partition}" for tp in owned) for member, owned in assignment.items()}


def check(assignment: Assignment, members: Mapping[str, list[str]], partitions: Mapping[str, int]) -> None:
    assert list(assignment) == sorted(members)
    owned = [tp for each in assignment.values() for tp in each]
    wanted = {topic for topics in members.values() for topic in topics}
    everything = [
        TopicPartition(topic, p) for topic, count in partitions.items() if topic in wanted for p in range(count)
    ]
    assert sorted(owned) == sorted(everything)
    assert all(tp.topic in members[member] for member, each in assignment.items() for tp in each)


def test_range_gives_consecutive_partitions_of_each_topic() -> None:
    members = {"b": ["t", "u"], "a": ["t", "u"], "c": ["t"]}
    assert names(range_assign(members, {"t": 4, "u": 3})) == {"a": "t0 t1 u0 u1", "b": "t2 u2", "c": "t3"}


def test_partitions_are_shared_out_in_consecutive_pieces() -> None:
    assert list(consecutive(5, "ab")) == [("a", range(3)), ("b", range(3, 5))]
    assert list(consecutive(2, "abc")) == [("a", range(1)), ("b", range(1, 2))], "the others get none"
    assert list(consecutive(2, "")) == []


def test_sticky_moves_no_more_than_it_must() -> None:
    owned = {"a": [TopicPartition("t", p) for p in (0, 1, 2)], "b": [TopicPartition("t", p) for p in (3, 4, 5)]}
    members = {"a": ["t"], "b": ["t"], "c": ["t"]}
    moved = sticky_assign(members, {"t": 6}, owned)
    assert names(moved) == {"a": "t0 t1", "b": "t3 t4", "c": "t2 t5"}
    assert sticky_assign(members, {"t": 6}, moved) == moved
    assert names(sticky_assign({"a": ["t"], "c": ["t"]}, {"t": 6}, moved)) == {"a": "t0 t1 t3", "c": "t2 t4 t5"}


def test_two_who_claim_the_same_partition_do_not_both_get_it() -> None:
    claim = [TopicPartition("t", 0)]
    assert names(sticky_assign({"a": ["t"], "b": ["t"]}, {"t": 1}, {"a": claim, "b": claim})) == {"a": "t0", "b": ""}


@pytest.mark.parametrize("assign", [range_assign, lambda m, p: sticky_assign(m, p, {})])
@given(members=MEMBERS, partitions=PARTITIONS)
def test_every_partition_has_exactly_one_owner(
    assign: object, members: dict[str, list[str]], partitions: dict[str, int]
) -> None:
    assert callable(assign)
    check(assign(members, partitions), members, partitions)


@given(members=st.sets(st.sampled_from("abcdef"), min_size=1), count=st.integers(0, 30), before=MEMBERS)
def test_with_equal_subscriptions_shares_differ_by_one_at_most(
    members: set[str], count: int, before: dict[str, list[str]]
) -> None:
    subscriptions = {member: ["t"] for member in members}
    owned = range_assign({member: ["t"] for member in before}, {"t": count}) if before else {}
    for assignment in (
        range_assign(subscriptions, {"t": count}),
        sticky_assign(subscriptions, {"t": count}, owned),
    ):
        check(assignment, subscriptions, {"t": count})
        shares = [len(each) for each in assignment.values()]
        assert max(shares) - min(shares) <= 1
