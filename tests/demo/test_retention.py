"""Retention goes by record time: the settings of the demo's topics, and what happens to 2013 without it."""

from pathlib import Path

from harness.patience import wait_until
from moldau.client.administration.admin import Admin
from moldau.client.producing.producer import Producer
from moldau.demo.broker_process import running_broker
from moldau.demo.run import KEEP_FOREVER
from moldau.names import TopicPartition

NEW_YEAR_2013_MS = 1_356_998_400_000
OFTEN = ("log.retention.check.interval.ms=100", "log.initial.task.delay.ms=100")


def test_a_record_of_2013_is_deleted_by_default_and_kept_in_the_demos_topics(tmp_path: Path) -> None:
    with running_broker(tmp_path / "data", tmp_path / "pid", tmp_path / "broker.log", OFTEN) as bootstrap:
        with Admin(bootstrap) as admin, Producer(bootstrap) as producer:
            admin.create_topic("usual", partitions=1, replication_factor=1)
            admin.create_topic("kept", partitions=1, replication_factor=1, configs=KEEP_FOREVER)
            for topic in ("kept", "usual"):
                producer.send(topic, b"old", timestamp_ms=NEW_YEAR_2013_MS).result()
            assert wait_until(lambda: admin.watermarks("usual")[TopicPartition("usual", 0)] == (1, 1), pause_s=0.05)
            assert admin.watermarks("kept")[TopicPartition("kept", 0)] == (0, 1)
