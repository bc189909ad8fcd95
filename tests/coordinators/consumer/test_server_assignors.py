"""Whoever joins, leaves or subscribes anew: each partition has one owner who wants it, shares are as even as they can
be, and among members that subscribe to the same nothing moves that need not.
"""

import uuid
from collections.abc import Mapping
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from moldau.coordinators.consumer.server_assignors import ASSIGNORS, Given, MemberSpec, range_assign, uniform_assign

T, U, V, W = TOPICS = [uuid.UUID(int=number) for number in (1, 2, 3, 4)]
COUNTS = st.dictionaries(st.sampled_from(TOPICS[:3]), st.integers(0, 9))
SUBSCRIPTIONS = st.frozensets(st.sampled_from(TOPICS))
NAMES = st.sampled_from("abcdefg")
HELD = st.dictionaries(st.sampled_from(TOPICS), st.frozensets(st.integers(0, 9), max_size=6), max_size=3)
MEMBERS = st.dictionaries(
    NAMES, st.builds(MemberSpec, SUBSCRIPTIONS, st.none() | st.text("ij", min_size=1, max_size=1), st.none(), HELD)
)


def wants(*topics: uuid.UUID, instance: str | None = None) -> MemberSpec:
    return MemberSpec(frozenset(topics), instance, None, {})


def after(members: Mapping[str, MemberSpec], last: Given) -> dict[str, MemberSpec]:
    """The members with what they were given last."""
    return {
        member: spec._replace(assigned={topic: frozenset(ps) for topic, ps in last.get(member, {}).items()})
        for member, spec in members.items()
    }


def places(given: Mapping[uuid.UUID, object]) -> set[tuple[uuid.UUID, int]]:
    return {(topic, p) for topic, partitions in given.items() for p in partitions}  # type: ignore[attr-defined]


def loads(given: Given) -> dict[str, int]:
    return {member: len(places(own)) for member, own in given.items()}


def check(members: Mapping[str, MemberSpec], counts: Mapping[uuid.UUID, int], given: Given) -> None:
    assert given.keys() == members.keys()
    owned = [(topic, p) for own in given.values() for topic, partitions in own.items() for p in partitions]
    wanted = {topic for spec in members.values() for topic in spec.topics}
    assert sorted(owned) == sorted((topic, p) for topic in counts if topic in wanted for p in range(counts[topic]))
    assert all(topic in members[member].topics for member, own in given.items() for topic in own)
    assert all(partitions and partitions == sorted(partitions) for own in given.values() for partitions in own.values())


@given(MEMBERS, COUNTS, st.sampled_from(sorted(ASSIGNORS)), st.randoms())
def test_each_partition_has_one_owner_who_wants_it_in_whatever_order_members_come(
    members: dict[str, MemberSpec], counts: dict[uuid.UUID, int], name: str, chance: Random
) -> None:
    given = ASSIGNORS[name](members, counts)
    check(members, counts, given)
    shuffled = dict(chance.sample(list(members.items()), len(members)))
    assert ASSIGNORS[name](shuffled, dict(reversed(counts.items()))) == given


@given(MEMBERS, COUNTS)
def test_uniform_leaves_nobody_two_above_another_who_could_take_one(
    members: dict[str, MemberSpec], counts: dict[uuid.UUID, int]
) -> None:
    given = uniform_assign(members, counts)
    load = loads(given)
    for member, own in given.items():
        for topic in own:
            assert all(load[member] <= load[other] + 1 for other in members if topic in members[other].topics)


@given(MEMBERS, COUNTS)
def test_uniform_moves_nothing_the_second_time(members: dict[str, MemberSpec], counts: dict[uuid.UUID, int]) -> None:
    given = uniform_assign(members, counts)
    assert uniform_assign(after(members, given), counts) == given


@given(st.frozensets(NAMES, min_size=1), st.frozensets(NAMES, min_size=1), st.integers(0, 20), st.integers(0, 9))
def test_of_alike_members_uniform_moves_as_few_partitions_as_evenness_takes(
    before: frozenset[str], now: frozenset[str], size: int, growth: int
) -> None:
    first = uniform_assign({member: wants(T, U) for member in before}, {T: size, U: 3})
    members = after({member: wants(T, U) for member in now}, first)
    given = uniform_assign(members, {T: size + growth, U: 3})
    total = size + growth + 3
    least, more = divmod(total, len(now))
    had = sorted((len(places(spec.assigned)) for spec in members.values()), reverse=True)
    could_stay = sum(min(own, least + (position < more)) for position, own in enumerate(had))
    stayed = sum(len(places(own) & places(members[member].assigned)) for member, own in given.items())
    assert stayed == could_stay
    assert sorted(loads(given).values()) == sorted(least + (position < more) for position in range(len(now)))


def test_uniform_deals_consecutive_partitions_and_takes_the_last_ones() -> None:
    members = {"a": wants(T)}
    first = uniform_assign(members, {T: 6})
    assert first == {"a": {T: [0, 1, 2, 3, 4, 5]}}
    second = uniform_assign(after(members | {"b": wants(T)}, first), {T: 6})
    assert second == {"a": {T: [0, 1, 2]}, "b": {T: [3, 4, 5]}}
    third = uniform_assign(after({name: wants(T) for name in "abc"}, second), {T: 6})
    assert third == {"a": {T: [0, 1]}, "b": {T: [3, 4]}, "c": {T: [2, 5]}}


def test_uniform_gives_a_topic_with_one_taker_to_it_and_the_rest_to_the_others() -> None:
    members = {"a": wants(T, U), "b": wants(T)}
    assert uniform_assign(members, {T: 4, U: 4}) == {"a": {U: [0, 1, 2, 3]}, "b": {T: [0, 1, 2, 3]}}


def test_who_does_not_subscribe_any_more_keeps_nothing_of_the_topic() -> None:
    members = after({"a": wants(U), "b": wants(T)}, {"a": {T: [0, 1]}, "b": {}})
    assert uniform_assign(members, {T: 2, U: 1}) == {"a": {U: [0]}, "b": {T: [0, 1]}}


def test_range_splits_topics_of_the_same_size_alike_static_members_first() -> None:
    members = {"a": wants(T, U), "b": wants(T, U), "c": wants(T, U, instance="z")}
    given = range_assign(members, {T: 4, U: 4})
    assert given == {"a": {T: [2], U: [2]}, "b": {T: [3], U: [3]}, "c": {T: [0, 1], U: [0, 1]}}


def test_range_gives_nothing_to_members_beyond_the_partitions() -> None:
    assert range_assign({"a": wants(T), "b": wants(T), "c": wants(U)}, {T: 1, U: 0}) == {
        "a": {T: [0]},
        "b": {},
        "c": {},
    }


@given(st.integers(1, 12), st.dictionaries(NAMES, st.sampled_from([wants(T, U, V), wants(T, U, V, instance="i")])))
def test_range_splits_what_is_subscribed_to_together_alike(size: int, members: dict[str, MemberSpec]) -> None:
    for own in range_assign(members, dict.fromkeys((T, U, V), size)).values():
        assert own == {} or own == dict.fromkeys((T, U, V), own[T])
