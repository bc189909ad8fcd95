"""confluent-kafka writes and reads messages exactly: `confluent.py write|read ADDRESS TOPIC COUNT CODEC`."""

from typing import Any

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, Producer, TopicPartition
from exact import Message, run


def write(address: str, topic: str, messages: list[Message], codec: str) -> None:
    settings = {"bootstrap.servers": address, "compression.type": codec, "partitioner": "murmur2_random"}
    producer = Producer({**settings, "sticky.partitioning.linger.ms": 0})
    failed: list[Any] = []
    for message in messages:
        producer.produce(
            topic,
            message.value,
            message.key,
            headers=message.headers,
            timestamp=message.timestamp_ms,
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
    left = producer.flush(60)
    assert not left and not failed, (left, failed)


def read(address: str, topic: str, count: int) -> list[Message]:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "unused", "enable.auto.commit": False})
    partitions = consumer.list_topics(topic, 60).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
    found: list[Message] = []
    while len(found) < count:
        for one in consumer.consume(count - len(found), 1):
            assert not one.error(), one.error()
            kind, time_ms = one.timestamp()
            assert kind != TIMESTAMP_NOT_AVAILABLE
            headers = [(name, value) for name, value in one.headers() or []]
            found.append(Message(one.key(), one.value(), headers, time_ms, one.partition(), one.offset()))
    consumer.close()
    return found


run(write, read)
