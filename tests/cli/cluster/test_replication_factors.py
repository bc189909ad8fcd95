"""Plans for more replicas, and the internal topics that have too few."""

import uuid
from collections import Counter
from collections.abc import Sequence

import pytest

from moldau.cli.cluster.replication_factors import below_their_setting, with_replicas
from moldau.client.cluster_view import PartitionView, TopicView
from moldau.errors import ConfigError
from moldau.names import OFFSETS_TOPIC, TRANSACTIONS_TOPIC

RACKS = {1: "a", 2: "a", 3: "b", 4: "b"}


def topic(*replicas: Sequence[int], name: str = "t") -> TopicView:
    parts = {number: PartitionView(who[0], 0, tuple(who), tuple(who)) for number, who in enumerate(replicas)}
    return TopicView(name, uuid.UUID(int=1), False, parts)


def test_replicas_stay_and_new_ones_and_preferred_leaders_are_spread() -> None:
    found = with_replicas(topic(*[[1]] * 12), 3, dict.fromkeys((1, 2, 3, 4)))
    assert sorted(found) == list(range(12))
    assert all(1 in replicas and len(set(replicas)) == 3 for replicas in found.values())
    assert Counter(one for replicas in found.values() for one in replicas) == {1: 12, 2: 8, 3: 8, 4: 8}
    assert Counter(replicas[0] for replicas in found.values()) == {1: 3, 2: 3, 3: 3, 4: 3}


def test_a_new_replica_is_in_another_rack_where_there_is_one() -> None:
    found = with_replicas(topic([1], [2], [3], [4]), 2, RACKS)
    assert all({RACKS[one] for one in replicas} == {"a", "b"} for replicas in found.values())


def test_partitions_that_have_enough_are_left_out() -> None:
    assert list(with_replicas(topic([1, 2], [2]), 2, RACKS)) == [1]
    assert with_replicas(topic([1, 2], [2, 1]), 2, RACKS) == {}


def test_replicas_out_of_sync_are_removed_first_and_then_the_last_ones() -> None:
    lagging = topic([1, 2, 3], [1, 2, 3], [1, 2])
    lagging.partitions[0] = lagging.partitions[0]._replace(isr=(2, 3))
    assert with_replicas(lagging, 2, RACKS) == {0: [2, 3], 1: [1, 2]}


def test_what_cannot_be_is_one_sentence() -> None:
    with pytest.raises(ConfigError, match="t cannot have 5 replicas: 4 brokers of the cluster are up"):
        with_replicas(topic([1]), 5, RACKS)


def test_internal_topics_with_fewer_replicas_than_their_setting_are_found_with_the_command() -> None:
    topics = {
        OFFSETS_TOPIC: topic([1], [2], name=OFFSETS_TOPIC),
        TRANSACTIONS_TOPIC: topic([1, 2], name=TRANSACTIONS_TOPIC),
    }
    settings = {
        "offsets.topic.replication.factor": "3",
        "transaction.state.log.replication.factor": "3",
        "transaction.state.log.min.isr": "2",
    }
    assert [one["command"] for one in below_their_setting(topics, settings, 3)] == [
        "moldau topics alter __consumer_offsets --replication-factor 3",
        "moldau topics alter __transaction_state --replication-factor 3 --config min.insync.replicas=2",
    ]
    assert [one["wanted"] for one in below_their_setting(topics, settings, 2)] == [2]
    assert below_their_setting(topics, settings, 1) == []
    assert below_their_setting(topics, {}, 3) == []
