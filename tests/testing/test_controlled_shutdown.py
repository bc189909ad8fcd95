"""Brokers of several are stopped while clients write: they hand over what they lead first."""

import logging
from math import inf
from pathlib import Path

import pytest

from harness.patience import stretched, wait_until
from harness.running_time import RunningTime
from harness.steady import SteadyWrites
from harness.tiers import LONG
from moldau.client.administration.admin import Admin
from moldau.testing import Cluster
from tests.testing.replicas import in_sync
from tests.testing.test_cluster import read

PARTITIONS = 3
GAP_S = stretched(0.5) if LONG else inf
"""Real time: for the long tier."""


def test_brokers_are_restarted_in_turn_and_no_write_waits_for_long(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "moldau")
    with Cluster(brokers=3, data_dir=tmp_path, default_replication_factor=3, min_insync_replicas=2) as cluster:
        cluster.create_topic("levels", partitions=PARTITIONS)
        with (
            RunningTime() as clock,
            SteadyWrites(cluster.address, "levels", PARTITIONS, clock.now_s) as writes,
            Admin(cluster.address) as admin,
        ):
            for number, broker in enumerate(cluster.brokers, 1):
                began_s = clock.now_s()
                assert wait_until(lambda began_s=began_s: writes.first_after(began_s))
                caplog.clear()
                began_s = clock.now_s()
                broker.stop()
                said = [record.getMessage() for record in caplog.records]
                about_to, closing = f"broker {number} is about to stop", "stopping: closing"
                steps = [
                    next(at for at, line in enumerate(said) if part in line)
                    for part in (about_to, "3 partitions changed", closing)
                ]
                assert steps == sorted(steps), said
                broker.start()
                assert wait_until(lambda: in_sync(admin, "levels") == [[1, 2, 3]] * PARTITIONS)
                gap_s = writes.longest_gap_s(began_s)
                assert gap_s < GAP_S, f"no write was acknowledged for {gap_s:.3f} s"
        assert not writes.failed
        assert read(cluster.address, "levels", PARTITIONS, len(writes.sent)) == sorted(writes.sent)


def test_the_last_brokers_do_not_wait_for_those_that_are_stopped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "moldau")
    cluster = Cluster(brokers=3, data_dir=tmp_path, default_replication_factor=3, min_insync_replicas=2)
    with cluster:
        cluster.create_topic("levels", partitions=PARTITIONS)
    assert not [record for record in caplog.records if "so this broker stops while" in record.getMessage()]
    assert any("no other replica is in sync" in record.getMessage() for record in caplog.records)
    with cluster, Admin(cluster.address) as admin:
        assert wait_until(lambda: in_sync(admin, "levels") == [[1, 2, 3]] * PARTITIONS)
