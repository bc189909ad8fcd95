"""Python's clients send records over mutual TLS and read them: `over_tls.py CLIENT BOOTSTRAP CA PEM`.

PEM has the client's key and certificate. Prints `ok`, or what the client says: its log, the name of its error, and its
text.
"""

import asyncio
import logging
import ssl
import sys

SECONDS = 30
RECORDS = [b"%03d" % number * 30_000 for number in range(40)]
"""3.6 MB."""


def confluent(bootstrap: str, authority: str, own: str) -> None:
    from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

    failed: list[KafkaError] = []

    def told(error: KafkaError) -> None:
        if error.code() in (KafkaError._SSL, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN):
            failed.append(error)

    settings = {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SSL",
        "ssl.ca.location": authority,
        **({"ssl.certificate.location": own, "ssl.key.location": own} if own else {}),
        "error_cb": told,
        "log_level": 0,
    }
    producer = Producer(settings)
    for record in RECORDS:
        producer.produce("secure", record, partition=0)
    for _ in range(SECONDS * 10):
        if not producer.flush(0.1) or failed:
            break
    if failed:
        producer.purge()
        raise KafkaException(failed[0])
    consumer = Consumer({**settings, "group.id": "confluent", "auto.offset.reset": "earliest"})
    consumer.subscribe(["secure"])
    found = []
    while len(found) < len(RECORDS):
        message = consumer.poll(SECONDS)
        assert message is not None and message.error() is None
        found.append(message.value())
    consumer.close()
    assert found == RECORDS


def kafka_python(bootstrap: str, authority: str, own: str) -> None:
    from kafka import KafkaConsumer, KafkaProducer

    settings = {
        "bootstrap_servers": bootstrap,
        "security_protocol": "SSL",
        "ssl_cafile": authority,
        **({"ssl_certfile": own, "ssl_keyfile": own} if own else {}),
    }
    producer = KafkaProducer(max_block_ms=SECONDS * 1000, **settings)
    for record in RECORDS:
        producer.send("secure", record, partition=0).get(SECONDS)
    producer.close()
    consumer = KafkaConsumer("secure", auto_offset_reset="earliest", group_id="kafka-python", **settings)
    assert [next(consumer).value for _ in RECORDS] == RECORDS
    consumer.close()


def aiokafka(bootstrap: str, authority: str, own: str) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

    context = ssl.create_default_context(cafile=authority)
    if own:
        context.load_cert_chain(own)
    settings = {"bootstrap_servers": bootstrap, "security_protocol": "SSL", "ssl_context": context}

    async def both() -> None:
        producer = AIOKafkaProducer(**settings)
        await producer.start()
        for record in RECORDS:
            await producer.send_and_wait("secure", record, partition=0)
        await producer.stop()
        consumer = AIOKafkaConsumer("secure", auto_offset_reset="earliest", group_id="aiokafka", **settings)
        await consumer.start()
        found = [(await asyncio.wait_for(consumer.getone(), SECONDS)).value for _ in RECORDS]
        await consumer.stop()
        assert found == RECORDS

    asyncio.run(both())


if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR, stream=sys.stdout)
    client, *arguments = sys.argv[1:]
    try:
        {"confluent": confluent, "kafka_python": kafka_python, "aiokafka": aiokafka}[client](*arguments)
    except BaseException as error:
        print(type(error).__name__, error)
    else:
        print("ok")
