"""Where the replicas of new partitions go: evenly, and in different racks as long as there are any."""

from collections import Counter

import hypothesis.strategies as st
import pytest
from hypothesis import given

from moldau.cluster.state.image import BrokerImage, Endpoint
from moldau.cluster.state.placement import Draw, placed, start_at

THERE = (Endpoint("PLAINTEXT", "PLAINTEXT", "host", 9092),)
DRAWS = st.builds(Draw, st.integers(0, 50), st.integers(0, 50))


def brokers(*racks: str | None) -> dict[int, BrokerImage]:
    return {number: BrokerImage(number, THERE, rack) for number, rack in enumerate(racks, start=1)}


def test_partitions_go_round_the_brokers_and_followers_shift_with_every_round() -> None:
    assert placed(brokers(None, None, None), 7, 2) == [(1, 2), (2, 3), (3, 1), (1, 3), (2, 1), (3, 2), (1, 2)]


def test_the_documented_example_of_five_brokers_and_ten_partitions() -> None:
    assert placed(brokers(*[None] * 5), 10, 3) == [
        (1, 2, 3), (2, 3, 4), (3, 4, 5), (4, 5, 1), (5, 1, 2), (1, 3, 4), (2, 4, 5), (3, 5, 1), (4, 1, 2), (5, 2, 3),
    ]  # fmt: skip


def test_the_draw_moves_the_first_replicas_and_the_followers() -> None:
    assert placed(brokers(None, None, None), 3, 2, Draw(1, 1)) == [(2, 1), (3, 2), (1, 3)]


def test_partitions_that_are_added_go_on_where_the_first_ones_ended() -> None:
    three = brokers(None, None, None)
    assert placed(three, 4, 2) + placed(three, 3, 2, Draw(start_at(three, 1)), 4) == placed(three, 7, 2)


def test_racks_are_taken_in_turn() -> None:
    six = brokers("a", "a", "b", "b", "c", "c")
    racks = [[six[broker].rack for broker in replicas] for replicas in placed(six, 6, 3)]
    assert all(sorted(map(str, one)) == ["a", "b", "c"] for one in racks)
    assert [replicas[0] for replicas in placed(six, 6, 1)] == [1, 3, 5, 2, 4, 6]


def test_with_a_broker_without_a_rack_racks_do_not_count() -> None:
    assert placed(brokers("a", None, "a"), 3, 1) == [(1,), (2,), (3,)]


@pytest.mark.parametrize(("missing", "start"), [(1, 0), (2, 1), (3, 2), (4, 2), (9, 3)])
def test_the_first_broker_may_be_away_by_now(missing: int, start: int) -> None:
    there = {number: BrokerImage(number, THERE) for number in (1, 2, 4)}
    assert start_at(there, missing) == start


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 40), DRAWS)
def test_replicas_are_on_different_brokers_and_leaders_are_spread_evenly(
    count: int, factor: int, partitions: int, draw: Draw
) -> None:
    replicas = placed(brokers(*[None] * count), partitions, min(factor, count), draw)
    assert len(replicas) == partitions
    assert all(len(set(one)) == len(one) == min(factor, count) for one in replicas)
    led = Counter(dict.fromkeys(range(1, count + 1), 0)) + Counter(one[0] for one in replicas)
    assert max(led.values(), default=0) - min([led[broker] for broker in range(1, count + 1)]) <= 1


@given(st.lists(st.sampled_from("abcd"), min_size=1, max_size=9), st.integers(1, 9), st.integers(1, 40), DRAWS)
def test_a_rack_gets_a_second_replica_only_when_all_racks_have_one(
    racks: list[str], factor: int, partitions: int, draw: Draw
) -> None:
    there = brokers(*racks)
    factor = min(factor, len(racks))
    for replicas in placed(there, partitions, factor, draw):
        assert len(set(replicas)) == factor
        assert len({there[broker].rack for broker in replicas}) == min(factor, len(set(racks)))
