"""Plans that even out brokers: how even they get, and that they copy no byte more than that takes."""

import pytest

from moldau.cli.cluster.moving.balancing import TOLERANCE, balanced, relieved, spread_to
from moldau.names import TopicPartition
from tests.cli.cluster.moving.layouts import MB, check, drawn, layout


@pytest.mark.parametrize("seed", range(5))
def test_brokers_hold_the_same_and_only_what_is_above_the_mean_was_copied(seed: int) -> None:
    cluster = drawn(seed, 6, 500)
    before = cluster.bytes_by_broker()
    plan = balanced(cluster)
    held, leads = check(cluster, plan).bytes_by_broker(), cluster.after(plan).leaders_by_broker()
    mean = sum(before.values()) / 6
    assert max(held.values()) - min(held.values()) <= TOLERANCE * mean
    surplus = sum(size - mean for size in before.values() if size > mean)
    assert sum(cluster.copies(plan).values()) <= surplus * (1 + TOLERANCE)
    assert max(leads.values()) - min(leads.values()) <= 1
    assert balanced(drawn(seed, 6, 500)) == plan, "same layout, same plan"


def test_what_is_even_stays() -> None:
    assert balanced(layout(([1], 5 * MB), ([2], 5 * MB), ([3], 5 * MB))) == {}
    assert balanced(layout()) == {}
    assert balanced(layout(([1], 5 * MB), brokers=(1,))) == {}


def test_empty_partitions_are_evened_out_too() -> None:
    after = check(cluster := layout(*[([1], 0)] * 9), balanced(cluster))
    assert sorted(after.replicas_by_broker().values()) == [3, 3, 3]


def test_no_more_bytes_are_copied_than_allowed() -> None:
    cluster = layout(*[([1], 10 * MB)] * 9)
    for most, moves in ((0, 0), (9 * MB, 0), (10 * MB, 1), (35 * MB, 3)):
        assert sum(cluster.copies(balanced(cluster, most)).values()) == moves * 10 * MB


def test_a_replica_that_is_larger_than_what_is_too_much_stays() -> None:
    cluster = layout(([1], 100 * MB), ([2], 1 * MB), ([3], 1 * MB))
    assert balanced(cluster) == {}


@pytest.mark.parametrize("seed", range(3))
def test_a_new_broker_gets_its_share_and_the_others_get_nothing(seed: int) -> None:
    cluster = drawn(seed, 7, 400, tells_racks=False)
    plan = spread_to(cluster, [7])
    after = check(cluster, plan)
    assert all({*replicas} - {*cluster.partitions[tp].replicas} <= {7} for tp, replicas in plan.items())
    share = after.bytes_by_broker()[7] / (sum(after.bytes_by_broker().values()) / 7)
    assert 1 - TOLERANCE <= share <= 1 + TOLERANCE


def test_only_full_brokers_are_relieved_with_the_smallest_replica_that_is_enough() -> None:
    held = [([1], 40 * MB), ([1], 15 * MB), ([1], 6 * MB), ([2], 30 * MB), ([3], 1 * MB)]
    cluster = layout(*held, used={1: 85 * MB, 2: 60 * MB, 3: 20 * MB})
    assert relieved(cluster, 0.8) == {TopicPartition("t", 2): (3,)}
    assert relieved(cluster, 0.9) == {}
    assert relieved(cluster, 0.8, max_bytes=5 * MB) == {}


def test_no_broker_is_filled_to_relieve_another_one() -> None:
    cluster = layout(([1], 30 * MB), used={1: 90 * MB, 2: 60 * MB, 3: 55 * MB})
    assert relieved(cluster, 0.8) == {}
    assert relieved(layout(([1], 30 * MB)), 0.8) == {}, "no broker tells the size of its disk"


def test_a_plan_for_ten_thousand_partitions_looks_at_few_replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the time, since that depends on the machine: how often a replica is looked at."""
    from moldau.cli.cluster.moving import balancing

    looks = 0
    original = balancing._Evening.may_move

    def counted(*given: object) -> bool:
        nonlocal looks
        looks += 1
        return original(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(balancing._Evening, "may_move", counted)
    check(cluster := drawn(1, 9, 10_000), balanced(cluster))
    assert looks < 400_000
