"""`moldau cluster status`: brokers, controller, and the partitions that are not well."""

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

from harness.brokers import SOURCE, Broker
from moldau.cli.cluster.commands import _print, status_of
from moldau.client.administration.admin import ClusterDescription
from moldau.client.cluster_view import PartitionView, TopicView
from moldau.peers.address import Address
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


def test_the_status_counts_what_each_broker_leads_and_names_what_is_not_well() -> None:
    found = status_of(ClusterDescription("c", 2, BROKERS, {1: "r1", 2: None}), SICK, {})
    assert found["brokers"] == [
        {"broker": 1, "address": "a:9092", "rack": "r1", "leads": 2, "replicas": 2},
        {"broker": 2, "address": "b:9093", "rack": None, "leads": 0, "replicas": 2},
    ]
    assert (found["controller"], found["without_leader"], found["under_replicated"]) == (2, 1, 1)
    assert [(one["partition"], one["leader"], one["leader_epoch"]) for one in found["unhealthy"]] == [
        (1, None, 5),
        (2, 1, 6),
    ]


def test_people_see_it_as_tables(capsys) -> None:  # type: ignore[no-untyped-def]
    _print(status_of(ClusterDescription("c", 2, BROKERS, {1: "r1", 2: None}), SICK, {}), as_json=False)
    assert capsys.readouterr().out.splitlines() == [
        "cluster c  2 brokers  controller 2",
        "BROKER  ADDRESS  RACK  LEADS  REPLICAS",
        "1       a:9092   r1        2         2",
        "2*      b:9093   -         0         2",
        "1 topic, 3 partitions: 1 without a leader, 1 under-replicated",
        "PARTITION  LEADER  EPOCH  REPLICAS  IN SYNC",
        "t-1             -      5  2         2",
        "t-2             1      6  1,3       1",
    ]


def test_a_broker_alone_is_a_cluster_of_one(moldau: Moldau, broker: Broker, fresh: Callable[[], str]) -> None:
    moldau("topics", "create", fresh(), "--partitions", "2")
    found = moldau("cluster", "status", "--json").json
    [only] = found["brokers"]
    assert (only["broker"], only["address"], found["controller"]) == (1, broker.address, 1)
    assert only["leads"] == only["replicas"] == found["partitions"] >= 2
    assert found["unhealthy"] == []
    lines = moldau("cluster", "status").lines
    assert lines[0] == f"cluster {found['cluster_id']}  1 broker  controller 1"
    assert lines[-1].endswith("0 without a leader, 0 under-replicated")


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
