"""A position belongs to a topic, not to its name: offsets of a topic that was deleted mean nothing in the next one."""

import uuid

import pytest

from harness.patience import Deadline, wait_until
from moldau.client.administration.admin import Admin
from moldau.client.consuming import polling
from moldau.client.consuming.async_consumer import AsyncConsumer
from moldau.client.consuming.consumer import Consumer
from moldau.client.producing.producer import Producer
from moldau.errors import LogTruncated
from moldau.names import TopicPartition
from moldau.testing import Broker
from tests.client.consuming.test_truncation import play, some
from tests.client.scripted_cluster import TOPIC, ScriptedCluster

TP = TopicPartition("orders", 0)


def make(broker: Broker, values: list[bytes]) -> None:
    with Admin(broker.address) as admin, Producer(broker.address) as producer:
        if TP.topic in admin.list_topics():
            admin.delete_topic(TP.topic)
            assert wait_until(lambda: TP.topic not in admin.list_topics())
        admin.create_topic(TP.topic, partitions=1)
        for value in values:
            producer.send(TP.topic, value)


def read(consumer: Consumer, count: int) -> list[bytes | None]:
    found, deadline = list[bytes | None](), Deadline()
    while len(found) < count:
        assert not deadline.passed, found
        found += [record.value for record in consumer.poll(100)]
    return found


OLD, NEW = [b"old %d" % number for number in range(3)], [b"new %d" % number for number in range(8)]


def test_a_consumer_reads_a_topic_that_was_made_anew_from_where_a_reset_says() -> None:
    with Broker() as broker, Consumer(broker.address, auto_offset_reset="earliest") as consumer:
        make(broker, OLD)
        consumer.assign([TP])
        assert read(consumer, 3) == OLD
        make(broker, NEW)
        assert read(consumer, 8) == NEW


def test_without_a_reset_a_consumer_hears_that_its_topic_was_made_anew() -> None:
    with Broker() as broker, Consumer(broker.address, auto_offset_reset="none") as consumer:
        make(broker, OLD)
        consumer.assign([TP])
        consumer.seek(TP, 0)
        assert read(consumer, 3) == OLD
        make(broker, NEW)
        for _ in range(2):
            with pytest.raises(LogTruncated, match="orders-0 was deleted and created again") as truncated:
                read(consumer, 1)
            assert (truncated.value.position, truncated.value.offset) == (3, None)
        consumer.seek(TP, 2)
        assert read(consumer, 6) == NEW[2:]


@pytest.mark.parametrize("reset", ["latest", "none"])
def test_metadata_that_name_a_former_topic_for_a_moment_take_no_position_away(
    reset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "ANOTHER_TOPIC_S", 3_600.0)  # a moment, however slow this machine is
    former, present = uuid.uuid4(), uuid.uuid4()

    async def scenario(cluster: ScriptedCluster, consumer: AsyncConsumer) -> None:
        cluster.topic_id, cluster.log, cluster.leader_epoch = present, [0] * 6, 0
        consumer.seek(TopicPartition(TOPIC, 0), 0)
        assert await some(consumer, 6) == list(range(6))
        cluster.topic_id = former
        await consumer._router.refresh([TOPIC])
        assert await consumer.poll(10) == []
        cluster.log = [0] * 9
        cluster.topic_id = present
        assert await some(consumer, 3) == [6, 7, 8]

    play(scenario, auto_offset_reset=reset)


@pytest.mark.parametrize("reset", ["latest", "none"])
def test_a_consumer_that_waits_for_the_first_record_reads_the_first_one_of_the_topic_made_anew(reset: str) -> None:
    with Broker() as broker, Consumer(broker.address, auto_offset_reset=reset) as consumer:
        make(broker, [])
        consumer.assign([TP])
        consumer.seek(TP, 0)
        assert consumer.poll(100) == []
        make(broker, NEW)
        assert read(consumer, 8) == NEW
