"""Commits of one consumer follow each other, automatic ones and the application's."""

from moldau.client.consuming.consumer import Consumer
from moldau.client.producing.producer import Producer
from moldau.names import TopicPartition
from moldau.testing import Broker


def test_a_consumer_that_seeks_back_commits_that_though_an_earlier_automatic_commit_had_the_same_offset() -> None:
    tp = TopicPartition("orders", 0)
    with Broker() as broker:
        broker.create_topic(tp.topic, 1)
        with Producer(broker.address) as producer:
            producer.send(tp.topic, b"first")
        settings = {"group_id": "billing", "auto_offset_reset": "earliest", "auto_commit_interval_ms": 0}
        with (
            Consumer(broker.address, **settings) as consumer,  # type: ignore[arg-type]
            broker.fault("OffsetCommit", delay_ms=300, times=1),
        ):
            consumer.subscribe(tp.topic)
            while not consumer.poll(100):
                pass
            consumer.commit()
            assert consumer.committed([tp])[tp].offset == 1
            consumer.seek(tp, 0)
        with Consumer(broker.address, **settings) as consumer:  # type: ignore[arg-type]
            assert consumer.committed([tp])[tp].offset == 0
