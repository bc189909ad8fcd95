"""kafka-python lives through restarts; see `lasting.py`."""

import sys
import time
from pathlib import Path

from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import KafkaError
from lasting import BOOTSTRAP, GROUP, PARTITIONS, TOPIC, notes, run

sys.path.append(str(Path(__file__).parents[1] / "drivers"))
from lost_joins import rejoin_if_lost

producer = KafkaProducer(bootstrap_servers=BOOTSTRAP, enable_idempotence=True, acks="all")
consumer = KafkaConsumer(TOPIC, bootstrap_servers=BOOTSTRAP, group_id=GROUP, auto_offset_reset="earliest")


def send(number: int) -> None:
    sent = producer.send(TOPIC, str(number).encode(), partition=number % PARTITIONS)
    sent.add_callback(lambda _: notes.told(number))
    sent.add_errback(lambda error: notes.told(number, error))


def poll() -> list[bytes]:
    """Nothing while a broker is away, which `poll` raises."""
    try:
        taken = consumer.poll(100)
    except KafkaError as error:
        if not error.retriable:
            raise
        print(repr(error), file=sys.stderr)
        time.sleep(0.1)
        return []
    rejoin_if_lost(consumer)
    return [record.value for records in taken.values() for record in records]


run(send, lambda: None, poll)
producer.close()
consumer.close()
