"""`moldau cluster status`: brokers, controller, and the partitions that are not well."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from harness.brokers import SOURCE, Broker
from harness.patience import stretched, wait_until
from moldau import Admin
from moldau.cli.cluster.status import is_well, print_status, sick_topics, status_of
from moldau.client.administration.admin import ClusterDescription, EligibleLeaders
from moldau.client.cluster_view import PartitionView, TopicView
from moldau.names import TopicPartition
from moldau.peers.address import Address
from moldau.testing import Cluster
from tests.cli.conftest import Moldau

BROKERS = {1: Address("a", 9092), 2: Address("b", 9093)}
SICK = {
    "t": TopicView(
        "t",
        uuid.UUID(int=1),
        False,
        {
            0: PartitionView(1, 4, (1, 2), (1, 2)),
            1: PartitionView(-1, 5, (2,), (2,)),
            2: PartitionView(1, 6, (1, 3), (1,)),
        },
    )
}
DESCRIBED = ClusterDescription("c", 2, BROKERS, {1: "r1", 2: None})
ELIGIBLE = {TopicPartition("t", 2): EligibleLeaders((3,), ())}


def test_the_status_counts_what_each_broker_leads_and_names_what_is_not_well() -> None:
    found = status_of(DESCRIBED, SICK, {}, {"t": 2}, ELIGIBLE)
    assert found["brokers"] == [
        {"broker": 1, "address": "a:9092", "rack": "r1", "leads": 2, "replicas": 2},
        {"broker": 2, "address": "b:9093", "rack": None, "leads": 0, "replicas": 2},
    ]
    assert (found["controller"], found["without_leader"], found["under_replicated"]) == (2, 1, 1)
    assert [(one["partition"], one["leader"], one["leader_epoch"]) for one in found["unhealthy"]] == [
        (1, None, 5),
        (2, 1, 6),
    ]
    assert [(one["min_in_sync"], one["below_min_in_sync"], one["eligible"]) for one in found["unhealthy"]] == [
        (2, False, []),  # one replica is all that it can have
        (2, True, [3]),
    ]
    assert found["below_min_in_sync"] == 1


def test_what_a_broker_does_not_say_of_settings_and_eligible_replicas_is_left_open() -> None:
    found = status_of(DESCRIBED, SICK, {}, {}, {})
    assert [(one["min_in_sync"], one["below_min_in_sync"], one["eligible"]) for one in found["unhealthy"]] == [
        (None, False, []),
        (None, False, []),
    ]


def test_only_topics_that_are_not_well_are_asked_about() -> None:
    well = TopicView("w", uuid.UUID(int=2), False, {0: PartitionView(1, 4, (1, 2), (2, 1))})
    assert sick_topics({"w": well, **SICK}) == ["t"]


def test_all_is_well_when_every_known_broker_is_up_or_as_many_as_were_asked_for() -> None:
    up = status_of(DESCRIBED, {}, {}, {}, {})
    away = status_of(replace(DESCRIBED, fenced={3: Address("c", 9094)}), {}, {}, {}, {})
    assert [is_well(up), is_well(up, 2), is_well(up, 3)] == [True, True, False]
    assert [is_well(away), is_well(away, 2), is_well(away, 3)] == [False, True, False]
    assert not is_well(status_of(DESCRIBED, SICK, {}, {}, {}), 2)
    assert not is_well(status_of(replace(DESCRIBED, controller_id=-1), {}, {}, {}, {}), 2)


def test_people_see_it_as_tables(capsys) -> None:  # type: ignore[no-untyped-def]
    print_status(
        status_of(replace(DESCRIBED, fenced={3: Address("c", 9094)}), SICK, {}, {"t": 2}, ELIGIBLE), as_json=False
    )
    assert capsys.readouterr().out.splitlines() == [
        "cluster c  2 brokers  controller 2",
        "BROKER  ADDRESS  RACK  LEADS  REPLICAS",
        "1       a:9092   r1        2         2",
        "2*      b:9093   -         0         2",
        "broker 3 at c:9094 is away; if it will not come back, run `moldau cluster unregister 3`",
        "1 topic, 3 partitions: 1 without a leader, 1 under-replicated, 1 below min.insync.replicas",
        "PARTITION  LEADER  EPOCH  REPLICAS  IN SYNC  MIN IN SYNC  ELIGIBLE",
        "t-1             -      5  2         2        2            -",
        "t-2             1      6  1,3       1        2!           3",
    ]


def test_a_broker_that_is_away_is_asked_for_where_partitions_have_no_leader_without_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    topics = {"t": TopicView("t", uuid.UUID(int=1), False, {0: PartitionView(-1, 5, (3, 2), ())})}
    eligible = {TopicPartition("t", 0): EligibleLeaders((3,), ())}
    status = status_of(replace(DESCRIBED, fenced={3: Address("c", 9094)}), topics, {}, {"t": 1}, eligible)
    print_status(status, as_json=False)
    assert (
        "broker 3 at c:9094 is away: start it, since 1 partition without a leader needs it; if it will not come back"
        in capsys.readouterr().out
    )


def test_a_broker_alone_is_a_cluster_of_one(moldau: Moldau, broker: Broker, fresh: Callable[[], str]) -> None:
    moldau("topics", "create", fresh(), "--partitions", "2")
    found = moldau("cluster", "status", "--json").json
    [only] = found["brokers"]
    assert (only["broker"], only["address"], found["controller"]) == (1, broker.address, 1)
    assert only["leads"] == only["replicas"] == found["partitions"] >= 2
    assert found["unhealthy"] == []
    lines = moldau("cluster", "status").lines
    assert lines[0] == f"cluster {found['cluster_id']}  1 broker  controller 1"
    assert lines[-1].endswith("0 without a leader, 0 under-replicated, 0 below min.insync.replicas")


def test_dead_brokers_are_seen_in_what_is_below_its_minimum_and_who_may_lead(offline: Moldau) -> None:
    settings = {"default_replication_factor": 3, "min_insync_replicas": 2, "max_request_partition_size_limit": 1}
    with Cluster(brokers=3, **settings) as cluster:
        waited = offline("cluster", "status", "--wait", "0", "--brokers", "4", "-b", cluster.address)
        assert (waited.code, waited.err) == (1, "3 of 4 brokers are up\n")
        topic, (_, two, three) = cluster.create_topic("t", 2), cluster.brokers
        three.kill()
        two.kill()

        def seen() -> bool:
            found = offline("cluster", "status", "--json", "-b", cluster.address).json
            # Whoever went last is eligible, and both if the controller has seen both go at once.
            return found["below_min_in_sync"] == 2 and all(
                one["in_sync"] == [1] and 2 in one["eligible"] for one in found["unhealthy"]
            )

        assert wait_until(seen)
        waited = offline("cluster", "status", "--wait", "0", "--json", "-b", cluster.address)
        assert (waited.code, waited.json["below_min_in_sync"]) == (1, 2)
        two.start()
        with Admin(cluster.address) as admin:
            assert wait_until(lambda: len(admin.describe_topics([topic])[topic].partitions[1].isr) == 2)
            assert wait_until(lambda: not admin.describe_eligible_leaders([topic, "missing"]))
            found = offline("cluster", "status", "--json", "-b", cluster.address).json
            assert (found["under_replicated"], found["below_min_in_sync"]) == (2, 0)
            three.start()
            waited = offline("cluster", "status", "--wait", str(round(stretched())), "--json", "-b", cluster.address)
            assert (waited.code, waited.json["unhealthy"], waited.json["away"]) == (0, [], [])
        assert "give one of them" in offline("cluster", "status", "--watch", "--wait", "1").error
        assert "give both" in offline("cluster", "status", "--brokers", "3").error


def test_a_change_is_printed_when_it_is_seen(broker: Broker, moldau: Moldau, fresh: Callable[[], str]) -> None:
    command = [sys.executable, "-m", "moldau", "cluster", "status", "--watch", "--json", "-b", broker.address]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as watching:
        assert watching.stdout is not None
        try:
            first = json.loads(watching.stdout.readline())
            moldau("topics", "create", fresh(), "--partitions", "3")
            second = json.loads(watching.stdout.readline())
        finally:
            watching.terminate()
    assert (second["topics"], second["partitions"]) == (first["topics"] + 1, first["partitions"] + 3)
    assert second["time_ms"] >= first["time_ms"]


def test_without_a_broker_it_is_one_sentence(offline: Moldau, tmp_path: Path) -> None:
    assert "localhost:1" in offline("cluster", "status", "-b", "localhost:1").error


def test_a_wait_goes_on_while_no_broker_answers_yet(tmp_path: Path) -> None:
    """As after a command that has started one in the background."""
    later = Broker(tmp_path, {})
    later.start()
    later.stop()
    command = [sys.executable, "-m", "moldau", "cluster", "status", "--wait", str(round(stretched(60)))]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    with subprocess.Popen(
        [*command, "-b", later.address], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=environment
    ) as waiting:
        assert waiting.stderr is not None
        assert "Connection refused" in waiting.stderr.readline()
        later.start()
        assert waiting.wait(stretched(60)) == 0
    later.stop()
