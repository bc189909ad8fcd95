"""Python's clients send records and read them back: what drivers share that differ in their settings only.

A driver hands over each client's settings; `told` prints `ok`, or what the client says: its log, the name of its error,
and its text.
"""

import asyncio
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

SECONDS = 30


def confluent(settings: Mapping[str, Any], topic: str, records: Sequence[bytes], ends: Sequence[str]) -> None:
    """`ends`: the names of librdkafka's errors after which the producer is not waited for."""
    from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

    failed: list[KafkaError] = []

    def seen(error: KafkaError) -> None:
        if error.code() in [getattr(KafkaError, name) for name in ends]:
            failed.append(error)

    own = {**settings, "error_cb": seen, "log_level": 0}
    producer = Producer(own)
    for record in records:
        producer.produce(topic, record, partition=0)
    for _ in range(SECONDS * 10):
        if not producer.flush(0.1) or failed:
            break
    if failed:
        producer.purge()
        raise KafkaException(failed[0])
    consumer = Consumer({**own, "group.id": "confluent", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found = []
    while len(found) < len(records):
        message = consumer.poll(SECONDS)
        assert message is not None and message.error() is None, message
        found.append(message.value())
    consumer.close()
    assert found == list(records)


def kafka_python(settings: Mapping[str, Any], topic: str, records: Sequence[bytes]) -> None:
    from kafka import KafkaConsumer, KafkaProducer

    producer = KafkaProducer(max_block_ms=SECONDS * 1000, **settings)
    for record in records:
        producer.send(topic, record, partition=0).get(SECONDS)
    producer.close()
    consumer = KafkaConsumer(topic, auto_offset_reset="earliest", group_id="kafka-python", **settings)
    assert [next(consumer).value for _ in records] == list(records)
    consumer.close()


def aiokafka(settings: Mapping[str, Any], topic: str, records: Sequence[bytes]) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    async def both() -> None:
        producer = AIOKafkaProducer(**settings)
        await producer.start()
        for record in records:
            await producer.send_and_wait(topic, record, partition=0)
        await producer.stop()
        consumer = AIOKafkaConsumer(topic, auto_offset_reset="earliest", group_id="aiokafka", **settings)
        await consumer.start()
        found = [(await asyncio.wait_for(consumer.getone(), SECONDS)).value for _ in records]
        await consumer.stop()
        assert found == list(records)

    asyncio.run(both())


def told(clients: Mapping[str, Callable[..., None]]) -> None:
    """Run the client that the first argument of the command names, with the others."""
    logging.basicConfig(level=logging.ERROR, stream=sys.stdout)
    client, *arguments = sys.argv[1:]
    try:
        clients[client](*arguments)
    except BaseException as error:
        print(type(error).__name__, error)
    else:
        print("ok")
