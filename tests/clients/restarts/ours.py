"""Moldau's own client lives through restarts; see `lasting.py`."""

import sys

from lasting import BOOTSTRAP, GROUP, PARTITIONS, PROTOCOL, TOPIC, notes, run

from moldau import Consumer, Producer
from moldau.errors import KafkaError

producer = Producer(BOOTSTRAP)
consumer = Consumer(BOOTSTRAP, group_id=GROUP, group_protocol=PROTOCOL, auto_offset_reset="earliest")
consumer.subscribe(TOPIC)


def send(number: int) -> None:
    sent = producer.send(TOPIC, str(number), partition=number % PARTITIONS)
    sent.add_done_callback(lambda one: notes.told(number, one.exception()))


def poll() -> list[bytes]:
    try:
        return [record.value for record in consumer.poll(100)]
    except KafkaError as error:
        if not error.retriable:
            raise
        print(repr(error), file=sys.stderr)
        return []


run(send, lambda: None, poll)
producer.close()
consumer.close()
