"""The sticky assignors: even, with as few moves as possible, and never two owners."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from moldau.assignors import Assignment, Subscriptions
from moldau.assignors.sticky import Claim, Claims, cooperative_assign, owners, sticky_assign
from moldau.names import TopicPartition
from tests.assignors.checks import MEMBERS, PARTITIONS, SUBSCRIPTION, check, names

PLACES = st.builds(TopicPartition, st.sampled_from("tuvwx"), st.integers(-1, 9))
CLAIMS = st.dictionaries(st.sampled_from("abcdef"), st.builds(Claim, st.lists(PLACES), st.integers(-1, 2)))
CHANGES = st.lists(st.tuples(st.sampled_from("abcdef"), st.none() | SUBSCRIPTION), max_size=8)
"""Members that come, subscribe to something else, or leave (None)."""


def places(text: str) -> list[TopicPartition]:
    return [TopicPartition(name[0], int(name[1:])) for name in text.split()]


def claims_of(assignment: Assignment, generation: int = 1) -> dict[str, Claim]:
    return {member: Claim(own, generation) for member, own in assignment.items()}


def settle(members: Subscriptions, partitions: Mapping[str, int], claims: Claims) -> tuple[Assignment, int]:
    """Rebalances of cooperative members until nobody has to give anything up; a partition that a member is given is one
    that no other member holds at that moment."""
    held = {member: set(claims[member].partitions) if member in claims else set() for member in members}
    rounds = 0
    while True:
        rounds += 1
        now = {member: Claim(sorted(own), rounds) for member, own in held.items()}
        assigned = cooperative_assign(members, partitions, now)
        given = {member: set(own) for member, own in assigned.items()}
        for member, own in given.items():
            for other in held:
                assert member == other or not (own & held[other]), "handed over before its owner gave it up"
        moved = any(held[member] - given[member] for member in held)
        held = given
        if not moved:
            return assigned, rounds


def test_sticky_moves_no_more_than_it_must() -> None:
    members = {"a": ["t"], "b": ["t"], "c": ["t"]}
    owned = {"a": Claim(places("t0 t1 t2")), "b": Claim(places("t3 t4 t5"))}
    moved = sticky_assign(members, {"t": 6}, owned)
    assert names(moved) == {"a": "t0 t1", "b": "t3 t4", "c": "t2 t5"}
    assert sticky_assign(members, {"t": 6}, claims_of(moved)) == moved
    left = sticky_assign({"a": ["t"], "c": ["t"]}, {"t": 6}, claims_of(moved))
    assert names(left) == {"a": "t0 t1 t3", "c": "t2 t4 t5"}


def test_members_with_one_more_keep_it() -> None:
    owned = {"a": Claim(places("t0")), "b": Claim(places("t1 t2"))}
    assert names(sticky_assign({"a": ["t"], "b": ["t"]}, {"t": 3}, owned)) == {"a": "t0", "b": "t1 t2"}


def test_the_claim_of_the_latest_generation_counts() -> None:
    claims = {"a": Claim(places("t0 t1"), 4), "b": Claim(places("t1 t2"), 5)}
    assert owners(claims) == dict(zip(places("t0 t1 t2"), "abb", strict=True))
    assert names(sticky_assign({"a": ["t"], "b": ["t"]}, {"t": 3}, claims)) == {"a": "t0", "b": "t1 t2"}


def test_two_who_claim_the_same_partition_do_not_both_get_it() -> None:
    members, claim = {"a": ["t"], "b": ["t"]}, Claim(places("t0"), 3)
    assert owners({"a": claim, "b": claim}) == {}
    assert names(sticky_assign(members, {"t": 1}, {"a": claim, "b": claim})) == {"a": "t0", "b": ""}
    assert names(cooperative_assign(members, {"t": 1}, {"a": claim, "b": claim})) == {"a": "", "b": ""}


def test_a_partition_that_moves_is_nobodys_for_one_rebalance() -> None:
    members, owned = {"a": ["t"], "b": ["t"]}, {"a": Claim(places("t0 t1 t2 t3"), 1)}
    first = cooperative_assign(members, {"t": 4}, owned)
    assert names(first) == {"a": "t0 t1", "b": ""}
    assert names(cooperative_assign(members, {"t": 4}, claims_of(first, 2))) == {"a": "t0 t1", "b": "t2 t3"}


@given(members=MEMBERS, partitions=PARTITIONS, claims=CLAIMS)
def test_every_partition_has_exactly_one_owner_whatever_members_claim(
    members: Subscriptions, partitions: dict[str, int], claims: dict[str, Claim]
) -> None:
    check(sticky_assign(members, partitions, claims), members, partitions)


@given(members=st.sets(st.sampled_from("abcdef"), min_size=1), partitions=PARTITIONS, claims=CLAIMS)
def test_with_equal_subscriptions_shares_differ_by_one_at_most(
    members: set[str], partitions: dict[str, int], claims: dict[str, Claim]
) -> None:
    shares = sticky_assign({member: list(partitions) for member in members}, partitions, claims)
    sizes = [len(own) for own in shares.values()]
    assert max(sizes) - min(sizes) <= 1


@given(members=MEMBERS, partitions=PARTITIONS, claims=CLAIMS)
def test_no_partition_could_move_to_a_subscriber_with_two_fewer(
    members: Subscriptions, partitions: dict[str, int], claims: dict[str, Claim]
) -> None:
    shares = sticky_assign(members, partitions, claims)
    for giver, own in shares.items():
        for tp in own:
            for taker in shares:
                assert tp.topic not in members[taker] or len(shares[taker]) + 1 >= len(own), (giver, taker, tp)


@given(members=MEMBERS, partitions=PARTITIONS, claims=CLAIMS)
def test_what_is_even_stays_as_it_is(
    members: Subscriptions, partitions: dict[str, int], claims: dict[str, Claim]
) -> None:
    shares = sticky_assign(members, partitions, claims)
    assert sticky_assign(members, partitions, claims_of(shares)) == shares


@given(st.sets(st.sampled_from("abcdef"), min_size=1), st.sampled_from("abcdef"), st.integers(0, 30))
def test_a_member_that_leaves_or_comes_moves_only_its_own_share(members: set[str], other: str, count: int) -> None:
    few, all_ = {m: ["t"] for m in members - {other}}, {m: ["t"] for m in members | {other}}
    before = sticky_assign(all_, {"t": count}, {})
    after = sticky_assign(few, {"t": count}, claims_of(before))
    assert all(set(before[member]) <= set(own) for member, own in after.items())
    back = sticky_assign(all_, {"t": count}, claims_of(after, 2))
    moved = sum(len(set(own) - set(back[member])) for member, own in after.items())
    assert moved == (len(back[other]) if few else 0)


@given(members=MEMBERS, partitions=PARTITIONS, changes=CHANGES)
def test_cooperative_members_settle_and_no_partition_is_handed_over_before_its_owner_gave_it_up(
    members: dict[str, list[str]], partitions: dict[str, int], changes: list[tuple[str, list[str] | None]]
) -> None:
    owned, _ = settle(members, partitions, {})
    for member, topics in changes:
        members = {name: wanted for name, wanted in members.items() if name != member}
        if topics is not None:
            members[member] = topics
        owned, rounds = settle(members, partitions, claims_of({m: p for m, p in owned.items() if m in members}))
        check(owned, members, partitions)
        assert rounds <= 3


@given(members=MEMBERS, partitions=PARTITIONS, claims=CLAIMS)
def test_the_order_in_which_members_are_named_does_not_matter(
    members: dict[str, list[str]], partitions: dict[str, int], claims: dict[str, Claim]
) -> None:
    back = dict(reversed(members.items()))
    others = dict(reversed(claims.items()))
    assert sticky_assign(members, partitions, claims) == sticky_assign(back, partitions, others)
    assert cooperative_assign(members, partitions, claims) == cooperative_assign(back, partitions, others)
