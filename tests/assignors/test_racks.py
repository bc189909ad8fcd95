"""Members get partitions in their racks, and the shares are those of `range`."""

from hypothesis import given
from hypothesis import strategies as st

from moldau.assignors import Subscriptions, range_assign
from moldau.assignors.racks import range_assign_near
from tests.assignors.checks import MEMBERS, check, names

RACK = st.sampled_from("xyz")
REPLICAS = st.dictionaries(st.sampled_from("tuvw"), st.lists(st.frozensets(RACK), max_size=7))
RACKS = st.dictionaries(st.sampled_from("abcdef"), RACK | st.none())
X, Y = frozenset("x"), frozenset("y")


def test_each_member_gets_the_partitions_of_its_rack() -> None:
    members = {"a": ["t"], "b": ["t"]}
    assigned = range_assign_near(members, {"t": [Y, X, Y, X]}, {}, {"a": "x", "b": "y"})
    assert names(assigned) == {"a": "t1 t3", "b": "t0 t2"}


def test_topics_that_are_alike_stay_together() -> None:
    members = {"a": ["t", "u"], "b": ["t", "u"]}
    assigned = range_assign_near(members, {"t": [Y, X], "u": [Y, X | Y]}, {}, {"a": "x", "b": "y"})
    assert names(assigned) == {"a": "t1 u1", "b": "t0 u0"}


def test_a_share_is_no_larger_for_being_near() -> None:
    assigned = range_assign_near({"a": ["t"], "b": ["t"]}, {"t": [X, X, X, Y]}, {}, {"a": "x", "b": "z"})
    assert names(assigned) == {"a": "t0 t1", "b": "t2 t3"}


def test_without_a_rack_in_common_it_is_range() -> None:
    members, replicas = {"a": ["t"], "b": ["t"]}, {"t": [X, Y, X]}
    assert range_assign_near(members, replicas, {}, {"a": "z"}) == range_assign(members, {"t": 3})


@given(members=MEMBERS, replicas=REPLICAS, racks=RACKS)
def test_every_partition_has_one_owner_and_shares_are_those_of_range(
    members: Subscriptions, replicas: dict[str, list[frozenset[str]]], racks: dict[str, str | None]
) -> None:
    counts = {topic: len(partitions) for topic, partitions in replicas.items()}
    assigned = range_assign_near(members, replicas, {}, racks)
    check(assigned, members, counts)
    plain = range_assign(members, counts)
    for topic in counts:
        sizes = [sorted(sum(tp.topic == topic for tp in own) for own in one.values()) for one in (assigned, plain)]
        assert sizes[0] == sizes[1]
