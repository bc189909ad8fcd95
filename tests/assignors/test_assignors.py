"""Every partition gets exactly one owner who subscribes to its topic, and the shares are as even as the assignor
promises.
"""

from hypothesis import given
from hypothesis import strategies as st

from moldau.assignors import Subscriptions, consecutive, range_assign, round_robin_assign
from tests.assignors.checks import INSTANCES, MEMBERS, PARTITIONS, check, names


def test_range_gives_consecutive_partitions_of_each_topic() -> None:
    members = {"b": ["t", "u"], "a": ["t", "u"], "c": ["t"]}
    assert names(range_assign(members, {"t": 4, "u": 3})) == {"a": "t0 t1 u0 u1", "b": "t2 u2", "c": "t3"}


def test_partitions_are_shared_out_in_consecutive_pieces() -> None:
    assert list(consecutive(5, "ab")) == [("a", range(3)), ("b", range(3, 5))]
    assert list(consecutive(2, "abc")) == [("a", range(1)), ("b", range(1, 2))], "the others get none"
    assert list(consecutive(2, "")) == []


def test_in_round_robin_members_take_turns_over_all_topics() -> None:
    everybody = {"a": ["t", "u"], "b": ["u", "t"]}
    assert names(round_robin_assign(everybody, {"t": 3, "u": 3})) == {"a": "t0 t2 u1", "b": "t1 u0 u2"}
    members = {"a": ["t"], "b": ["t", "u"], "c": ["t", "u", "v"]}
    assigned = round_robin_assign(members, {"t": 1, "u": 2, "v": 3, "w": 4})
    assert names(assigned) == {"a": "t0", "b": "u0", "c": "u1 v0 v1 v2"}


def test_static_members_come_first_and_by_their_instance_ids() -> None:
    members, instances = {"a": ["t"], "b": ["t"], "c": ["t"], "d": ["t"]}, {"b": "z", "d": "y", "c": None}
    assert names(range_assign(members, {"t": 3}, instances)) == {"d": "t0", "b": "t1", "a": "t2", "c": ""}
    assert names(round_robin_assign(members, {"t": 5}, instances)) == {"d": "t0 t4", "b": "t1", "a": "t2", "c": "t3"}


def test_a_static_member_that_comes_back_with_another_id_keeps_its_partitions() -> None:
    before = range_assign({"a": ["t"], "b": ["t"]}, {"t": 4}, {"a": "one", "b": "two"})
    after = range_assign({"z": ["t"], "b": ["t"]}, {"t": 4}, {"z": "one", "b": "two"})
    assert (after["z"], after["b"]) == (before["a"], before["b"])


@given(members=MEMBERS, partitions=PARTITIONS, instances=INSTANCES)
def test_every_partition_has_exactly_one_owner(
    members: Subscriptions, partitions: dict[str, int], instances: dict[str, str]
) -> None:
    check(range_assign(members, partitions, instances), members, partitions)
    check(round_robin_assign(members, partitions, instances), members, partitions)


@given(topics=PARTITIONS, count=st.integers(1, 6))
def test_with_equal_subscriptions_round_robin_shares_differ_by_one_at_most(topics: dict[str, int], count: int) -> None:
    members = {member: list(topics) for member in "abcdef"[:count]}
    shares = [len(own) for own in round_robin_assign(members, topics).values()]
    assert max(shares) - min(shares) <= 1


@given(members=st.sets(st.sampled_from("abcdef"), min_size=1), count=st.integers(0, 30))
def test_with_range_topics_of_the_same_size_and_subscribers_are_shared_out_alike(members: set[str], count: int) -> None:
    assigned = range_assign({member: ["t", "u"] for member in members}, {"t": count, "u": count})
    for own in assigned.values():
        numbers = {topic: [tp.partition for tp in own if tp.topic == topic] for topic in "tu"}
        assert numbers["t"] == numbers["u"]
        assert count // len(members) <= len(numbers["t"]) <= count // len(members) + 1
