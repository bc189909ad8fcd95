"""confluent-kafka (librdkafka) lives through restarts; see `lasting.py`."""

import sys

from confluent_kafka import Consumer, Producer
from lasting import BOOTSTRAP, GROUP, PARTITIONS, PROTOCOL, TOPIC, notes, run

producer = Producer({"bootstrap.servers": BOOTSTRAP, "enable.idempotence": True, "acks": "all"})
consumer = Consumer(
    {
        "bootstrap.servers": BOOTSTRAP,
        "group.id": GROUP,
        "group.protocol": PROTOCOL,
        "auto.offset.reset": "earliest",
    }
)
consumer.subscribe([TOPIC])


def send(number: int) -> None:
    producer.produce(
        TOPIC,
        str(number).encode(),
        partition=number % PARTITIONS,
        on_delivery=lambda error, _: notes.told(number, error),
    )


def poll() -> list[bytes]:
    values = []
    for message in consumer.consume(500, 0.1):
        if message.error():
            print(message.error(), file=sys.stderr)
        else:
            values.append(message.value())
    return values


run(send, lambda: producer.poll(0), poll)
consumer.close()
