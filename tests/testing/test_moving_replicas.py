"""Partitions move to other brokers while they are written: Kafka's answers on the way, and what is left on disk."""

import logging
from functools import partial
from pathlib import Path

import pytest

from harness.patience import wait_until
from moldau import Admin, Producer, TopicPartition
from moldau.client.administration.cluster import Reassignment
from moldau.errors import NoReassignmentInProgress
from moldau.testing import Cluster
from tests.testing.replicas import assert_equal_below_watermark
from tests.testing.test_cluster import read

TP = TopicPartition("events", 0)


def test_a_partition_moves_is_cancelled_and_leaves_nothing_where_it_was(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sent = [b"%06d" % number * 20 for number in range(3_000)]
    with (
        Cluster(brokers=3, data_dir=tmp_path, min_insync_replicas=1, log_segment_delete_delay_ms=0) as cluster,
        Admin(cluster.address) as admin,
        Producer(cluster.address, acks="all", enable_idempotence=True) as producer,
    ):
        admin.create_topic("events", assignment={0: [1, 2]})

        def send(some: list[bytes]) -> None:
            for value in some:
                producer.send("events", value, partition=0)
            producer.flush()

        send(sent[:1000])
        cluster.brokers[2].stop()
        assert admin.alter_reassignments({TP: [2, 1]}) == {TP: None}
        cluster.brokers[2].start()
        assert wait_until(lambda: admin.alter_reassignments({TP: [2, 3]}) == {TP: None})
        send(sent[1000:2000])
        assert wait_until(partial(_is_on, admin, 2, 3))
        assert isinstance(admin.alter_reassignments({TP: None})[TP], NoReassignmentInProgress)
        assert wait_until(lambda: not list(tmp_path.glob("*1/events-0*")), 60), list(tmp_path.glob("*/events-0*"))

        cluster.brokers[0].stop()
        send(sent[2000:])
        assert admin.alter_reassignments({TP: [3, 2]}) == {TP: None}
        cluster.brokers[0].start()
        assert_equal_below_watermark(cluster, "events", 1, at_least=3000)
        assert read(cluster.address, "events", 1, len(sent)) == sorted(sent)


def _is_on(admin: Admin, *replicas: int) -> bool:
    part = admin.describe_topics(["events"])["events"].partitions[0]
    return sorted(part.isr) == sorted(replicas) == sorted(part.replicas) and admin.list_reassignments() == {}


def test_what_waits_for_a_broker_that_is_away_is_listed_and_can_be_cancelled(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Cluster(brokers=3, data_dir=tmp_path, min_insync_replicas=1) as cluster, Admin(cluster.address) as admin:
        admin.create_topic("events", assignment={0: [1, 2, 3]})
        cluster.brokers[2].stop()
        assert wait_until(lambda: 3 not in admin.describe_topics(["events"])["events"].partitions[0].isr)
        assert admin.alter_reassignments({TP: [3]}) == {TP: None}
        assert admin.list_reassignments() == {TP: Reassignment((3, 1, 2), (), (1, 2))}
        assert admin.list_reassignments([TopicPartition("events", 1)]) == {}
        assert admin.alter_reassignments({TP: None}) == {TP: None}
        assert admin.list_reassignments() == {}
        assert admin.describe_topics(["events"])["events"].partitions[0].replicas == (3, 1, 2)

        assert admin.alter_reassignments({TP: [1, 2]}) == {TP: None}
        assert wait_until(partial(_is_on, admin, 1, 2))
        with caplog.at_level(logging.WARNING, "moldau"):
            cluster.brokers[2].start()
        [line] = [one.getMessage() for one in caplog.records if "kept but not served" in one.getMessage()]
        assert line.startswith("the logs of 1 partition are kept but not served, because other brokers have")
        assert "events-0" in line
        assert list(tmp_path.glob("*3/events-0"))
