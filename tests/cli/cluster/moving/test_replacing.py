"""Plans that empty brokers: everything goes, to where there is most room, and racks stay as different as they were."""

import pytest

from moldau.cli.cluster.moving.replacing import drained, replaced
from moldau.errors import ConfigError
from moldau.names import TopicPartition
from tests.cli.cluster.moving.layouts import MB, check, drawn, layout


def test_what_a_broker_has_goes_to_those_that_hold_least() -> None:
    cluster = layout(([3], 5 * MB), ([3], 1 * MB), ([1], 3 * MB), ([2], 1 * MB))
    plan = drained(cluster, [3])
    assert plan == {TopicPartition("t", 0): (2,), TopicPartition("t", 1): (1,)}
    assert cluster.copies(plan) == {TopicPartition("t", 0): 5 * MB, TopicPartition("t", 1): 1 * MB}


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_left_on_drained_brokers_and_no_other_partition_moves(seed: int) -> None:
    cluster = drawn(seed, 9, 300)
    plan = drained(cluster, [1, 5])
    after = check(cluster, plan)
    assert not {1, 5} & after.replicas_by_broker().keys()
    assert all({1, 5} & {*cluster.partitions[tp].replicas} for tp in plan)
    assert drained(drawn(seed, 9, 300), [5, 1]) == plan, "same layout, same plan"


def test_a_broker_that_is_down_is_drained_too() -> None:
    cluster = layout(([9, 1], MB), ([1, 2], MB))
    assert drained(cluster, [9]) == {TopicPartition("t", 0): (1, 3)}


def test_leaders_of_a_drained_broker_are_shared_out() -> None:
    cluster = layout(*[([3, 1, 2], 0)] * 8, brokers=(1, 2, 3, 4))
    leads = cluster.after(drained(cluster, [3])).leaders_by_broker()
    assert sorted(leads.values()) == [2, 3, 3] and 3 not in leads


def test_too_few_brokers_are_one_sentence() -> None:
    with pytest.raises(ConfigError, match="t-0 has 3 replicas, and too few brokers would be left for them: start more"):
        drained(layout(([1, 2, 3], 0)), [2])


def test_a_broker_takes_the_place_of_another_one() -> None:
    cluster = layout(([1, 2], 5), ([2, 3], 7), ([3, 4], 0), brokers=(1, 3, 4))
    plan = replaced(cluster, 2, 4)
    assert plan == {TopicPartition("t", 0): (1, 4), TopicPartition("t", 1): (4, 3)}


def test_where_the_new_broker_has_a_replica_already_a_third_one_gets_it() -> None:
    cluster = layout(([2, 4], 5), brokers=(1, 2, 3, 4))
    assert replaced(cluster, 2, 4) == {TopicPartition("t", 0): (1, 4)}
